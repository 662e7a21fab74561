"""Which optimizers exist, for which problems, and with which public knowledge? A table.

>>> from dpcal import calibrate, optim
>>> row = OPTIMIZERS["noisy_gd"]
>>> row.problem, row.rate
('smooth, convex or not', '(sqrt(d) / (n epsilon))^(1/2)')
>>> row.build() is calibrate.noisy_gd, row.optimizer() is optim.noisy_gd
(True, True)

To add an optimizer, add a row: the driver, commands and documentation read the table. Reading it
loads no loop. Other packages enter theirs by :func:`register`, or by an entry point of its name in
the group ``dpcal.optimizers``, whose object is the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from dpcal.optim.result import Result

__all__ = ["OPTIMIZERS", "SELECTIONS", "Optimizer", "find", "known", "register", "spender"]

# Entry points of other packages whose objects are rows.
_GROUP = "dpcal.optimizers"


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """One optimizer, as data.

    Parameters
    ----------
    name, summary
        Name of its plan builder and of the optimizer, and its method in a line.
    problem, rate, measure, theorem
        Class of losses of its theorem, how which error falls, without logarithms and constants, and
        author, year and number.
    needs
        Public knowledge beside n, the dimension, epsilon and delta: names of
        :class:`dpcal.calibrate.Constants` or of the builder's keywords; "a or b" if b can take the
        place of a.
    relations
        Neighboring relations that it can be calibrated for; the first is the commands' default.
    options
        Keywords of the builder that are options of commands.
    constants, blocks
        Whether the builder takes constants first, and whether it is for minimax problems, with
        ``dimensions``, a pair, in place of ``dimension``.
    comparator
        Whether it is there to compare others with, and not recommended.
    beaten
        Name of an optimizer that ended lower at the same price on every convex loss of a study
        (``python -m benchmarks convex``), and is to be taken there; empty where none did.
    home
        Its module below ``dpcal.optim``; by default a first-order module of its own name.
    builder, function
        Functions that make and spend plans, of a registered optimizer.
    """

    name: str
    summary: str
    problem: str
    needs: tuple[str, ...]
    rate: str
    measure: str
    theorem: str
    relations: tuple[str, ...]
    options: tuple[str, ...] = ()
    constants: bool = True
    blocks: bool = False
    comparator: bool = False
    beaten: str = ""
    home: str = ""
    builder: Callable[..., Any] | None = None
    function: Callable[..., Any] | None = None

    @property
    def module(self) -> str:
        """The module of the optimizer."""
        return f"dpcal.optim.{self.home or f'first_order.{self.name}'}"

    def build(self) -> Callable[..., Any]:
        """Return the plan builder."""
        return self.builder or _function("dpcal.calibrate", self.name)

    def optimizer(self) -> Callable[..., Result]:
        """Return the optimizer, called with an objective, a plan and a seed."""
        return self.function or _function(self.module, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values, without its functions."""
        places = ("home", "builder", "function")
        return {name: value for name, value in asdict(self).items() if name not in places}


def _function(module: str, name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


_FIXED = ("add-or-remove-one", "replace-one", "replace-special")
# Relations under which a record stays in its part of a partition.
_IN_PLACE = ("replace-one", "replace-special")

_ESCAPING = (
    "max_norm",
    "learning_rate",
    "batch_size",
    "difference_batch_size",
    "drift",
    "period",
    "threshold",
    "escape_radius",
    "escape_steps",
    "escape_rounds",
    "reset",
    "passes",
    "steps",
    "failure_probability",
)

# The relation that the paper uses comes first.
_REPLACED_FIRST = ("replace-one", "add-or-remove-one", "replace-special")

_ROWS = (
    Optimizer(
        name="dpsgd",
        summary="noisy gradient steps on random batches",
        problem="convex, for the rate; any, for the privacy",
        needs=("batch_size", "epochs or steps", "max_norm"),
        rate="sqrt(d) / (n epsilon)",
        measure="excess risk",
        theorem="Abadi et al. 2016, Algorithm 1; Bassily, Smith and Thakurta 2014, Theorem 2.4",
        relations=_FIXED,
        options=(
            *("batch_size", "epochs", "steps", "sampler"),
            *("max_norm", "learning_rate", "group_size", "clipped"),
        ),
        constants=False,
    ),
    Optimizer(
        name="noisy_gd",
        summary="noisy gradient steps on all records",
        problem="smooth, convex or not",
        needs=("lipschitz or max_norm", "smoothness or learning_rate", "gap or steps"),
        rate="(sqrt(d) / (n epsilon))^(1/2)",
        measure="gradient norm",
        theorem="Wang, Ye and Xu 2017, Theorem 5",
        relations=_FIXED,
        options=("steps", "max_norm", "learning_rate", "group_size"),
    ),
    Optimizer(
        name="kl_spider",
        summary="rounds of a noisy gradient and its noisy differences, each to its target",
        problem="smooth and Kurdyka-Lojasiewicz with 1 <= kappa <= 2, convex or not",
        needs=("lipschitz", "smoothness", "gamma", "kappa"),
        rate="(sqrt(d) / (n epsilon))^kappa",
        measure="excess risk",
        theorem="Menart et al. 2024, Algorithm 1, Theorem 1",
        relations=_FIXED,
        options=("gamma", "kappa", "beta", "l2"),
    ),
    Optimizer(
        name="proximal_point",
        summary="stages of noisy descent on the loss pulled to where the last one ended",
        problem="weakly convex and Kurdyka-Lojasiewicz with kappa >= 2, smooth or not",
        needs=("lipschitz", "gamma", "kappa"),
        rate="(sqrt(d) / (n epsilon))^kappa",
        measure="excess risk",
        theorem="Menart et al. 2024, Algorithms 2 and 4, Theorem 2",
        relations=_FIXED,
        options=("gamma", "kappa", "weak_convexity", "beta", "inner_steps", "group_size"),
    ),
    Optimizer(
        name="adaptive_gd",
        beaten="dpsgd",
        summary="gradient steps with noise in proportion to a noisy norm",
        problem="smooth; Kurdyka-Lojasiewicz, for the rate, of unknown gamma and 1 <= kappa <= 2",
        needs=("lipschitz", "smoothness"),
        rate="(sqrt(d) / (n epsilon))^(2 kappa / (4 - kappa)) + (n epsilon)^(-kappa / 2)",
        measure="excess risk",
        theorem="Menart et al. 2024, Algorithm 3, Theorems 4 and 5",
        relations=_FIXED,
        options=("steps", "l2"),
    ),
    Optimizer(
        name="spiderboost",
        beaten="dpsgd",
        summary="noisy gradients now and then, small noisy differences in between",
        problem="smooth, convex or not",
        needs=("lipschitz or max_norm", "smoothness", "gap or steps"),
        rate="(sqrt(d) / (n epsilon))^(2/3)",
        measure="gradient norm",
        theorem="Arora et al. 2022, Theorems 1 and 9 (corrected)",
        relations=_FIXED,
        options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    ),
    Optimizer(
        name="tree_spider",
        summary="one pass in disjoint batches, differences along a binary tree",
        problem="smooth, convex or not; population risk",
        needs=("lipschitz or max_norm", "smoothness", "gap"),
        rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(1/2)",
        measure="gradient norm",
        theorem="Arora et al. 2022, Theorems 3 and 4 (corrected)",
        relations=_IN_PLACE,
        options=("max_norm", "failure_probability"),
    ),
    Optimizer(
        name="recursive_regularization",
        beaten="dpsgd",
        summary="rounds with ever stronger regularisers, each on records of its own",
        problem="smooth and convex; population risk",
        needs=("lipschitz or max_norm", "smoothness", "distance"),
        rate="n^(-1/2) + sqrt(d) / (n epsilon)",
        measure="gradient norm",
        theorem="Arora et al. 2022, Theorem 5 (corrected)",
        relations=_IN_PLACE,
        options=("max_norm", "distance", "subsolver"),
    ),
    Optimizer(
        name="jl_glm",
        summary="another optimizer on randomly embedded records",
        problem="linear models, convex or not; population risk",
        needs=("lipschitz or max_norm", "smoothness", "gap"),
        rate="n^(-1/2) + min((sqrt(rank) / (n epsilon))^(2/3), (n epsilon)^(-2/5))",
        measure="gradient norm",
        theorem="Arora et al. 2022, Theorem 6 and Corollary 1",
        relations=_FIXED,
        options=(
            "max_norm",
            "inner",
            "embedding_dimension",
            "rank",
            "matrix",
            "matrix_seed",
            "group_size",
        ),
    ),
    Optimizer(
        name="gauss_psgd",
        home="second_order.gauss_psgd",
        summary="one pass of gradients and differences, whose noise leaves saddle points",
        problem="smooth with smooth Hessians, not convex; second-order points of population risk",
        needs=("lipschitz or max_norm", "smoothness", "hessian_lipschitz or escape_radius"),
        rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(2/5) + (d / (n^3 epsilon^2))^(2/17)",
        measure="alpha of an alpha-second-order stationary point",
        theorem="Tao et al. 2025, Algorithms 1 and 2, Theorem 2 (corrected)",
        relations=_IN_PLACE,
        options=_ESCAPING,
    ),
    Optimizer(
        name="distributed_psgd",
        home="second_order.distributed_psgd",
        summary="gauss_psgd on the mean of many silos, each private by itself",
        problem="smooth with smooth Hessians, not convex; mean of the silos' population risks",
        needs=("lipschitz or max_norm", "smoothness", "hessian_lipschitz or escape_radius"),
        rate=(
            "(m n)^(-1/3) + (sqrt(d) / (sqrt(m) n epsilon))^(2/5) + "
            "(d / (m^2 n^3 epsilon^2))^(2/17)"
        ),
        measure="alpha of an alpha-second-order stationary point",
        theorem="Tao et al. 2025, Algorithm 3, Theorem 3 (corrected)",
        relations=_IN_PLACE,
        options=_ESCAPING,
    ),
    Optimizer(
        name="correlated_dpsgd",
        summary="gradient steps whose noise takes back part of the noise before",
        problem="any; rates are known for convex losses and for wide networks",
        needs=("strategy", "batch_size", "max_norm"),
        rate="sqrt(d) / (n epsilon)",
        measure="excess risk",
        theorem="Denisov et al. 2022; Choquette-Choo et al. 2024; Kalinin et al. 2026",
        relations=("add-or-remove-one", "replace-special"),
        options=(
            *("batch_size", "epochs", "steps", "sampler"),
            *("max_norm", "learning_rate", "clipped"),
        ),
        constants=False,
    ),
    Optimizer(
        name="dp_rgda",
        home="minimax.dp_rgda",
        summary="normalised descent along tracked gradients, and escapes from saddle points",
        problem="minimax, smooth, strongly concave in y; or a plain smooth loss",
        needs=(
            "lipschitz or max_norm",
            "smoothness",
            "strong_concavity",
            "gap or steps",
            "hessian_lipschitz",
        ),
        rate="(sqrt(d) / (n epsilon))^(2/3)",
        measure="gradient norm of the value function",
        theorem="Xu et al. 2026, Algorithms 2 and 3, Theorem 1 (corrected)",
        relations=_REPLACED_FIRST,
        options=("steps", "batch_size", "max_norm", "inner_steps", "group_size"),
        blocks=True,
    ),
    Optimizer(
        name="dp_sgda",
        home="comparators.dp_sgda",
        comparator=True,
        summary="one noisy step down in x and up in y at a time",
        problem="minimax, strongly concave in y; convex in x, for the rate",
        needs=("lipschitz or max_norm", "smoothness", "strong_concavity"),
        rate="1 / sqrt(n) + sqrt(d) / (n epsilon)",
        measure="primal-dual risk",
        theorem="Yang et al. 2022, Algorithm 1",
        relations=_REPLACED_FIRST,
        options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
        blocks=True,
    ),
    Optimizer(
        name="privatediff",
        home="comparators.privatediff",
        comparator=True,
        summary="noisy ascents in y, and restarts and differences in x",
        problem="minimax, smooth, strongly concave in y",
        needs=("lipschitz or max_norm", "smoothness", "strong_concavity"),
        rate="(sqrt(d) / (n epsilon))^(2/3)",
        measure="gradient norm of the value function",
        theorem="Zhang et al. 2025, approximately",
        relations=_REPLACED_FIRST,
        options=("steps", "batch_size", "max_norm", "learning_rate", "inner_steps", "group_size"),
        blocks=True,
    ),
    Optimizer(
        name="sto_spider",
        home="comparators.explicit",
        comparator=True,
        summary="sampled gradients now and then, clipped differences in between",
        problem="smooth, convex or not; an explicit value function",
        needs=("lipschitz or max_norm", "smoothness"),
        rate="(sqrt(d) / (n epsilon))^(2/3)",
        measure="gradient norm",
        theorem="Liu et al. 2023, as Xu et al. 2026 run it",
        relations=_REPLACED_FIRST,
        options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    ),
    Optimizer(
        name="ada_dp_spider",
        home="comparators.explicit",
        comparator=True,
        summary="gradients afresh when the iterate has drifted, differences in between",
        problem="smooth, convex or not; an explicit value function",
        needs=("lipschitz or max_norm", "smoothness"),
        rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(2/5)",
        measure="gradient norm",
        theorem="Tao et al. 2025, as Xu et al. 2026 run it",
        relations=_REPLACED_FIRST,
        options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    ),
)

OPTIMIZERS = {row.name: row for row in _ROWS}


# Methods that choose among known points: no command trains with them.
SELECTIONS: dict[str, Optimizer] = {
    row.name: row
    for row in (
        Optimizer(
            name="select_point",
            home="second_order.select_point",
            summary="the first of several points that passes a private test, or the best of them",
            problem="smooth with smooth Hessians; second-order points of population risk",
            needs=(
                "candidates",
                "accuracy",
                "lipschitz or max_norm",
                "smoothness",
                "hessian_lipschitz",
            ),
            rate="alpha + (m n)^(-1/2) + d sqrt(candidates) / (sqrt(m) n epsilon)",
            measure="alpha of an alpha-second-order stationary point",
            theorem="Tao et al. 2025, Algorithm 4, Theorem 4 (corrected), Remark 5; "
            "Dwork et al. 2009",
            relations=_REPLACED_FIRST,
            options=(
                "candidates",
                "accuracy",
                "method",
                "silos",
                "rank",
                "max_norm",
                "failure_probability",
            ),
        ),
    )
}


# Rows that were registered, by name.
_ENTERED: dict[str, Optimizer] = {}


def register(row: Optimizer) -> Optimizer:
    """Enter an optimizer of your own, in place of an earlier one of its name; return its row.

    The row has a ``builder``, whose plans are for an optimizer of its name, and a ``function``. A
    row without one of them, or with the name of an optimizer of this package, raises a ValueError.
    """
    if row.builder is None or row.function is None:
        raise ValueError(f"row must have a builder and a function, got {row.name!r} without.")
    if row.name in OPTIMIZERS or row.name in SELECTIONS:
        raise ValueError(f"name must be new, got {row.name!r}, which is this package's own.")
    _ENTERED[row.name] = row
    return row


def known() -> dict[str, Optimizer]:
    """Return all optimizers, registered ones and those of installed packages too, by name."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP):
        if entry.name not in _ENTERED:
            register(entry.load())
    return {**OPTIMIZERS, **_ENTERED}


def find(name: str) -> Optimizer:
    """Return the optimizer called ``name``, or refuse the name with a list of all."""
    row = OPTIMIZERS.get(name) or _ENTERED.get(name) or known().get(name)
    if row is None:
        names = ", ".join(map(repr, known()))
        raise ValueError(f"optimizer must be one of {names}, got {name!r}.")
    return row


def spender(name: str) -> Callable[..., Any]:
    """Return the function that spends plans for ``name``: an optimizer, or a selection."""
    return (SELECTIONS.get(name) or find(name)).optimizer()
