"""The registry of optimizers, and how a loop becomes one: the keywords, the checks, the result.

An optimizer is one file: its row, with its problems and its public knowledge, and its algorithm.
Each row is read where its optimizer is, and no other module is loaded for it. Other packages enter
an optimizer by :func:`register`, or by an entry point of its name in the group
``dpcal.optimizers`` with the row as its object.

>>> row = OPTIMIZERS["noisy_gd"]
>>> row.problem, row.rate
('smooth, convex or not', '(sqrt(d) / (n epsilon))^(1/2)')
>>> row.build() is calibrate.noisy_gd, row.optimizer() is optim.noisy_gd
(True, True)

:func:`run` spends a plan by the optimizer that it names, and documents the keywords of all:

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> X = np.random.default_rng(0).standard_normal((1_000, 3))
>>> objective = optim.Logistic(X, X @ [1.0, -2.0, 0.5] > 0, classes=[0, 1])
>>> plan = calibrate.dpsgd(n=1_000, batch_size=100, steps=20, epsilon=1.0, delta=1e-6)
>>> run(objective, plan, seed=0).message
'took all 20 planned steps'

An algorithm is a function that checks its options, begins a run and takes its steps.
:func:`algorithm` makes an optimizer of the function, with the keywords of ``run`` and its own:

>>> @algorithm()
... def descent(objective, plan, begin, *, rate=0.1):
...     run = begin()
...     while run.going:
...         run.move(run.w - rate * run.oracle.gradient(run.w, "gradient"))
>>> descent(objective, plan, seed=0, rate=0.5, callback=lambda progress: progress.step == 7).message
'stopped by the callback after 7 of 20 planned steps'
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, overload

from numpy.typing import ArrayLike

from dpcal import calibrate, optim
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import DpcalError, NonFiniteAnswer
from dpcal.optim import boundary
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import Oracle, PrivateOracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run, warn_of_noise, written
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

if TYPE_CHECKING:
    from dpcal.optim.boundary.book import BudgetBook

__all__ = [
    "OPTIMIZERS",
    "SELECTIONS",
    "Algorithm",
    "Begin",
    "Optimizer",
    "Plan",
    "Problem",
    "Run",
    "Store",
    "Vector",
    "algorithm",
    "check_answers",
    "check_plan",
    "find",
    "known",
    "ledger_kept",
    "oracle_of",
    "planned",
    "read",
    "register",
    "released",
    "run",
]

_T = TypeVar("_T")

_GROUP = "dpcal.optimizers"

Store: TypeAlias = "str | os.PathLike[str] | BudgetBook | None"
Problem = Objective | Oracle

_F = TypeVar("_F", bound=Callable[..., Any])
_R = TypeVar("_R", bound=Result)
_R_co = TypeVar("_R_co", bound=Result, covariant=True)


def run(
    objective: Any,
    plan: Plan,
    *,
    seed: Seed = None,
    initial: ArrayLike | None = None,
    radius: float = math.inf,
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    **options: Any,
) -> Any:
    """Run the optimizer that a plan names, spending the plan.

    For example, for a plan of :func:`dpcal.calibrate.dpsgd` the call is ``optim.dpsgd(objective,
    plan)``. An optimizer takes the keywords below that apply to its algorithm, and options of its
    own.

    Parameters
    ----------
    objective
        Objective over the plan's number of records, or an oracle about one.
    plan
        Plan from the builder of the same name in ``dpcal.calibrate``. The plan fixes all answers:
        their kinds, their number and their noise.
    seed
        Integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh entropy. A
        seed that others know voids the privacy claim.
    initial
        Start, shape (dimension,); the origin when omitted. The start must not depend on the
        records. Constants of the plan that are about the start, its gap, must hold there.
    radius
        Radius > 0 of a ball that every iterate is projected onto, around the origin unless the
        optimizer has another centre; infinite for none.
    callback
        Function of a :class:`dpcal.optim.Progress`, called every ``callback_every`` steps and after
        the last. A true return value stops the run, which then costs its whole plan. The value must
        not depend on the records, except through the progress.
    callback_every
        Whole number >= 1; a hundredth of the largest number of steps when omitted. It does not
        change the iterates.
    store
        Path of a file that holds the run. You can start the run again after its process has ended:
        see :mod:`dpcal.optim.boundary.store`. The file is a secret, and takes answers one by one.
        The store can also be a :class:`dpcal.optim.BudgetBook`, which the run is charged to.
    store_every
        Steps of a transaction of the file, at least 1. More are faster; a run that is killed
        repeats up to this many steps, with answers that were not released.
    **options
        Options of the optimizer.

    Returns
    -------
    Result
        Outcome of the optimizer. If iterates overflow, the run stops with a ``RuntimeWarning``,
        incomplete, at a finite iterate. A record with a gradient that is not finite contributes
        zero. A run that ends early because of released values costs its whole plan.

    Raises
    ------
    TypeError
        If the optimizer does not take a keyword.
    ValueError
        If the plan is not for an optimizer that is known, or for this objective, or an argument is
        out of range.
    """
    given, defaults = locals(), run.__kwdefaults__ or {}
    chosen = {
        name: given[name]
        for name, default in defaults.items()
        if given[name] is not default
        and not (isinstance(given[name], int | float) and given[name] == default)
    }
    check_plan(plan)
    row = SELECTIONS.get(plan.optimizer) or find(plan.optimizer)
    return row.optimizer()(objective, plan=plan, **chosen, **options)


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """One optimizer, as data; its method :meth:`describes` is a decorator of the function.

    Parameters
    ----------
    name, summary
        Name of the plan builder and of the optimizer, the function's name by default; and the
        method in a line.
    problem, rate, measure, theorem
        Class of losses of the theorem, rate and measure of the error, without logarithms and
        constants, and author, year and number.
    needs
        Public knowledge in addition to n, the dimension, epsilon and delta: names of
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
        Whether the optimizer is for comparison, and not recommended.
    beaten
        Name of an optimizer to use in its place, which ended lower at the same cost on every convex
        loss of a study (docs/explanation/optimizers.md); empty where none did.
    builder, function
        Functions that make and spend plans; by default the functions of its name in
        ``dpcal.calibrate`` and ``dpcal.optim``.
    """

    name: str = ""
    summary: str
    problem: str
    needs: tuple[str, ...]
    rate: str
    measure: str
    theorem: str
    relations: tuple[str, ...] = ("add-or-remove-one", "replace-one", "replace-special")
    options: tuple[str, ...] = ()
    constants: bool = True
    blocks: bool = False
    comparator: bool = False
    beaten: str = ""
    builder: Callable[..., Any] | None = None
    function: Callable[..., Any] | None = None

    def describes(self, function: _F) -> _F:
        """Return a function, with its attribute ``row``: this row, with the function in it."""
        row = replace(self, name=self.name or function.__name__, function=function)
        vars(function)["row"] = row
        return function

    def build(self) -> Callable[..., Any]:
        """Return the plan builder."""
        return self.builder or getattr(calibrate, self.name)

    def optimizer(self) -> Callable[..., Any]:
        """Return the optimizer, called with an objective, a plan and a seed."""
        return self.function or getattr(optim, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values, without its functions."""
        own = ("builder", "function")
        return {name: value for name, value in vars(self).items() if name not in own}


class _Rows(Mapping[str, Optimizer]):
    """Rows by name; a row is an attribute of its optimizer, and its module is loaded for it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Optimizer:
        if name not in self._names:
            raise KeyError(name)
        row: Optimizer = getattr(optim, name).row
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


OPTIMIZERS = _Rows(
    *("dpsgd", "noisy_gd", "kl_spider", "proximal_point", "adaptive_gd", "spiderboost"),
    *("tree_spider", "recursive_regularization", "jl_glm", "gauss_psgd", "distributed_psgd"),
    *("correlated_dpsgd", "dp_rgda", "dp_sgda", "privatediff", "sto_spider", "ada_dp_spider"),
)

SELECTIONS = _Rows("select_point")

_ENTERED: dict[str, Optimizer] = {}


def register(row: Optimizer) -> Optimizer:
    """Enter an optimizer of your own, in place of an earlier one of its name; return its row.

    The row has a ``builder``, which makes plans for an optimizer of its name, and a ``function``. A
    row without one of them, or with the name of an optimizer of this package, raises a ValueError.
    """
    if row.builder is None or row.function is None:
        raise ValueError(f"row must have a builder and a function, got {row.name!r} without.")
    if row.name in OPTIMIZERS or row.name in SELECTIONS:
        raise ValueError(f"name must be new, got {row.name!r}, which is this package's own.")
    _ENTERED[row.name] = row
    return row


def known() -> dict[str, Optimizer]:
    """Return all optimizers by name, with registered ones and ones of installed packages."""
    return {**OPTIMIZERS, **_entered()}


def find(name: str) -> Optimizer:
    """Return the optimizer called ``name``, or refuse the name with a list of all."""
    row = OPTIMIZERS.get(name) or _ENTERED.get(name) or _entered().get(name)
    if row is None:
        names = ", ".join(map(repr, (*OPTIMIZERS, *_ENTERED)))
        raise ValueError(f"optimizer must be one of {names}, got {name!r}.")
    return row


def _entered() -> dict[str, Optimizer]:
    """Return the rows of other packages, with the entry points of installed packages."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=_GROUP):
        if entry.name not in _ENTERED:
            register(entry.load())
    return _ENTERED


class Algorithm(Protocol[_R_co]):
    """An optimizer, with the keywords of :func:`dpcal.optim.run` and its own options.

    Its ``row`` is its entry in the registry, if it has one.
    """

    __name__: str
    row: Optimizer

    def __call__(
        self,
        objective: Any,
        plan: Plan,
        *,
        seed: Seed = None,
        initial: ArrayLike | None = None,
        radius: float = math.inf,
        callback: Callback | None = None,
        callback_every: int | None = None,
        store: Store = None,
        store_every: int = 1,
        **options: Any,
    ) -> _R_co:
        """Spend a plan; return the outcome."""


class Begin:
    """Begins the run of an algorithm, once: opens the oracle, with its file or budget.

    ``given`` are the arguments of the optimizer, and ``running`` ends with the run.
    """

    def __init__(self, given: dict[str, Any], running: ExitStack) -> None:
        self.given, self.running = given, running
        self.run: Run | None = None

    def __call__(
        self,
        steps: int | None = None,
        *,
        initial: ArrayLike | None = None,
        center: ArrayLike | None = None,
    ) -> Run:
        """Return the run, with its oracle.

        The run has ``steps`` planned moves, by default one for each answer of the plan. It has a
        start, if the user does not choose it, and a centre of the ball, the origin when omitted.
        """
        if self.run is not None:
            raise RuntimeError(_ONCE)
        given, objective, plan = self.given, self.given["objective"], self.given["plan"]
        run = Run(
            objective,
            steps=sum(query.count for query in plan.queries) if steps is None else steps,
            initial=given.get("initial") if initial is None else initial,
            radius=given.get("radius", math.inf),
            center=center,
            callback=given["callback"],
            callback_every=given["callback_every"],
        )
        warn_of_noise(plan, objective.dimension)
        run.oracle = oracle_of(objective, plan, given["seed"], given["store"], given["store_every"])
        self.running.enter_context(ledger_kept(run.oracle))
        self.run = run
        return run


class _Enter(Protocol):
    """A decorator of algorithms: the optimizer returns a Result, or the algorithm's own kind."""

    @overload
    def __call__(self, made: Callable[..., Vector | None]) -> Algorithm[Result]: ...

    @overload
    def __call__(self, made: Callable[..., _R]) -> Algorithm[_R]: ...

    def __call__(self, made: Callable[..., Any]) -> Algorithm[Any]:
        """Return the optimizer."""


def algorithm(*, initial: bool = True) -> _Enter:
    """Return a decorator that makes an optimizer of ``algorithm(objective, plan, begin, **own)``.

    The algorithm checks the plan and its own options, calls ``begin`` once, and takes the steps of
    the run that it returns by ``run.move``. A refusal before ``begin`` opens nothing and costs
    nothing. The algorithm returns parameters, None for the last iterate, or a
    :class:`dpcal.optim.Result` of its own kind.

    The optimizer takes an objective, a plan, the keywords of :func:`dpcal.optim.run` and the
    algorithm's own. The algorithm receives the keywords of ``run`` that it names. An algorithm that
    names ``radius`` lets the user choose a ball.

    Parameters
    ----------
    initial
        Whether the user may choose where to start.
    """

    def enter(made: Callable[..., Any]) -> Algorithm[Any]:
        takes, named = inspect.signature(run).parameters, inspect.signature(made)
        own = [each for each in named.parameters.values() if each.kind is each.KEYWORD_ONLY]
        names = [each.name for each in own]
        hidden = {"options", *([] if initial else ["initial"]), *({"radius"} - {*names})}
        shared = [each for name, each in takes.items() if name not in hidden]
        new = [each for each in own if each.name not in takes]
        returned = named.return_annotation
        signature = inspect.Signature(
            [*shared[:3], *new, *shared[3:]],
            return_annotation=returned if str(returned).endswith("Result") else "Result",
        )

        @functools.wraps(made, assigned=("__module__", "__name__", "__qualname__"))
        def optimizer(*args: Any, **keywords: Any) -> Result:
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"{made.__name__}() {error}") from None
            bound.apply_defaults()
            row = vars(optimizer).get("row")
            check_plan(bound.arguments["plan"], *([row.name] if row else []))
            return _spent(made, names, bound.arguments)

        optimizer.__doc__ = f"{inspect.getdoc(made) or ''}\n\n{_SEE_ALSO}"
        optimizer.__signature__ = signature  # type: ignore[attr-defined]  # for ``help``
        return cast(Algorithm[Any], optimizer)

    return cast(_Enter, enter)


_SEE_ALSO = """See Also
--------
dpcal.optim.run : Documents the other keywords, the result and the errors."""


@contextmanager
def ledger_kept(oracle: Oracle) -> Iterator[None]:
    """Add the ledger of all of an oracle's releases to an error that leaves."""
    try:
        yield
    except BaseException as error:
        if released(error) is None:
            vars(error)["ledger"] = oracle.ledger.frozen()
            # The error may show answers: write them first, and raise it even if this fails.
            with suppress(OSError, ValueError, sqlite3.Error, DpcalError):
                written(oracle)
                vars(error)["ledger"] = getattr(oracle, "held", oracle.ledger).frozen()
        raise


_ONCE = "begin must be called once: a plan pays for one run."


def _spent(made: Callable[..., Any], names: list[str], given: dict[str, Any]) -> Result:
    """Check the arguments, open the oracle, and run an algorithm to its end."""
    objective, plan = given["objective"], given["plan"]
    check_answers(objective)
    with ExitStack() as running:
        begin, found = Begin(given, running), None
        try:
            found = made(objective, plan, begin, **{name: given[name] for name in names})
        except NonFiniteAnswer as error:
            if begin.run is None:
                raise
            begin.run.fail(error)
        if isinstance(found, Result):
            return found
        if begin.run is None:
            raise RuntimeError(_ONCE)
        return begin.run.result(found)


def oracle_of(
    records: Objective | Oracle,
    plan: Plan,
    seed: Seed = None,
    store: Store = None,
    every: int = 1,
) -> Oracle:
    """Return the oracle of an optimizer: a new one about an objective's records, or the one given.

    An oracle that is given has its own plan and randomness: another plan, a seed or a store raise a
    ValueError, and so does ``every``, the answers of a transaction, without a file. The other
    arguments are as in :func:`dpcal.optim.run`.
    """
    if not isinstance(records, Objective):
        check_answers(records)
        if records.plan != plan:
            raise ValueError("plan must be the oracle's own, oracle.plan, got another one.")
        if seed is not None or store is not None or every != 1:
            raise ValueError("seed and store go with an objective, got one with an oracle.")
        oracle = records
    elif store is None:
        if every != 1:
            raise ValueError(f"store_every goes with a store, got store_every={every!r} without.")
        oracle = PrivateOracle(records, plan, seed=seed)
    elif isinstance(store, str | os.PathLike):
        oracle = boundary.stored(store, records, plan, seed=seed, every=every)
        oracle.closes_with_run = True
    elif hasattr(store, "oracle"):
        oracle = store.oracle(records, plan, seed=seed, every=every)
    else:
        raise TypeError(
            "store must be a path of a file, a BudgetBook, book.with_store(path), or None, got "
            f"{store!r}."
        )
    return oracle


def check_answers(records: Any) -> None:
    """Refuse an object that is neither an objective nor an oracle."""
    if isinstance(records, Objective):
        return
    # Since Python 3.12 isinstance(records, Oracle) does not call __getattr__ for attributes.
    if not all(hasattr(records, name) for name in vars(Oracle) if not name.startswith("_")):
        raise TypeError(f"objective must be an Objective or an Oracle, got {records!r}.")


def released(error: BaseException) -> Ledger | None:
    """Return the ledger of a run that ended with an error; None if it had released nothing.

    The ledger is the attribute ``ledger`` of the error that the optimizer raised,
    ``KeyboardInterrupt`` too.

    >>> objective = optim.Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1])
    >>> plan = calibrate.dpsgd(n=2, batch_size=2, steps=10, epsilon=1.0, delta=1e-6)
    >>> def interrupt(progress):
    ...     raise KeyboardInterrupt
    >>> try:
    ...     optim.dpsgd(objective, plan, callback=interrupt, callback_every=4)
    ... except KeyboardInterrupt as error:
    ...     released(error)
    <Ledger of 4 answers about 2 records, add-or-remove-one>
    """
    ledger = getattr(error, "ledger", None)
    return ledger if isinstance(ledger, Ledger) else None


def planned(plan: Plan, *kinds: str) -> tuple[Query, ...]:
    """Return a plan's queries; refuse a plan unless they are of these kinds, in order.

    Kinds at the end with a question mark, ``"gradient difference?"``, may be missing.
    """
    found = [query.kind for query in plan.queries]
    wanted = [kind for place, kind in enumerate(kinds) if place < len(found) or kind[-1] != "?"]
    if found != [kind.rstrip("?") for kind in wanted]:
        raise ValueError(
            f"plan must have queries of kinds {list(kinds)}, got "
            f"{[(query.name, query.kind) for query in plan.queries]}."
        )
    return plan.queries


def read(plan: Plan, check: Callable[..., _T], *names: str) -> list[_T]:
    """Return parameters of a plan that pass a check, as ``validate.positive``."""
    return [check(**{name: plan.parameters.get(name)}) for name in names]


def check_plan(plan: Any, *optimizers: str) -> None:
    """Refuse a list of plans, another object, or a plan for other optimizers."""
    if not isinstance(plan, Plan):
        raise TypeError(
            f"plan must be a Plan, as the builders of dpcal.calibrate return, got a "
            f"{type(plan).__name__}. Plans of silos, by calibrate.silo_plans, are for "
            "optim.distributed_psgd."
        )
    if optimizers and plan.optimizer not in optimizers:
        raise ValueError(
            f"plan must be for optimizer {optimizers[0]!r}, got one for {plan.optimizer!r}."
        )
