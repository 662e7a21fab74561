"""Optimizers made of loops: the driver adds the keywords, the checks and the result.

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
from collections.abc import Callable
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from numpy.typing import ArrayLike

from dpcal import calibrate, optim
from dpcal._internal import validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import DpcalError
from dpcal.optim import boundary
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run, warn_of_noise, written
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

if TYPE_CHECKING:
    from dpcal.optim.boundary.book import BudgetBook

__all__ = [
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
    "keeps_ledger",
    "oracle_of",
    "planned",
    "read",
    "released",
    "run",
    "step_size",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_ASKED: ContextVar[list[Oracle] | None] = ContextVar("asked", default=None)

Begin: TypeAlias = Callable[..., Run]
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
    return optim.registry.spender(plan.optimizer)(objective, plan=plan, **chosen, **options)


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
        said = asdict(replace(self, builder=None, function=None))
        return {name: value for name, value in said.items() if name not in ("builder", "function")}


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
    the run that it returns by ``run.move``. ``begin(steps=None, *, initial=None, center=None)``
    opens the oracle, with its file or budget. The run has ``steps`` moves, by default one for each
    answer of the plan; a start, if the user chooses none; and a centre of the ball, the origin when
    omitted. A refusal before ``begin`` opens nothing and costs nothing. The algorithm returns
    parameters, None for the last iterate, or a :class:`dpcal.optim.Result` of its own kind.

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


def keeps_ledger(optimizer: Callable[_P, _T]) -> Callable[_P, _T]:
    """Add the ledger of all releases to the errors that leave an optimizer."""

    @functools.wraps(optimizer)
    def run(*args: _P.args, **options: _P.kwargs) -> _T:
        asked: list[Oracle] = []
        before = _ASKED.set(asked)
        try:
            return optimizer(*args, **options)
        except BaseException as error:
            if asked and released(error) is None:
                vars(error)["ledger"] = asked[0].ledger.frozen()
                # The error may show answers: write them first, and raise it even if this fails.
                with suppress(OSError, ValueError, sqlite3.Error, DpcalError):
                    written(asked[0])
                    vars(error)["ledger"] = getattr(asked[0], "held", asked[0].ledger).frozen()
            raise
        finally:
            _ASKED.reset(before)

    return run


_ONCE = "begin must be called once: a plan pays for one run."
_OF_RUNS = ("radius", "callback", "callback_every")


@keeps_ledger
def _spent(made: Callable[..., Any], names: list[str], given: dict[str, Any]) -> Result:
    """Check the arguments, open the oracle, and run an algorithm to its end."""
    objective, plan = given["objective"], given["plan"]
    check_answers(objective)
    begun: list[Run] = []
    found = None
    with ExitStack() as running:

        def begin(
            steps: int | None = None,
            *,
            initial: ArrayLike | None = None,
            center: ArrayLike | None = None,
        ) -> Run:
            if begun:
                raise RuntimeError(_ONCE)
            steps = sum(query.count for query in plan.queries) if steps is None else steps
            start = given.get("initial") if initial is None else initial
            own = {name: given[name] for name in _OF_RUNS if name in given}
            state = Run(objective, steps=steps, initial=start, center=center, **own)
            warn_of_noise(plan, objective.dimension)
            how = (given[name] for name in ("seed", "store", "store_every"))
            state.oracle = oracle_of(objective, plan, *how)
            running.enter_context(state)
            begun.append(state)
            return state

        found = made(objective, plan, begin, **{name: given[name] for name in names})
    if isinstance(found, Result):
        return found
    if not begun:
        raise RuntimeError(_ONCE)
    return begun[0].result(found)


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
    asked = _ASKED.get()
    if asked is not None:
        asked[:] = [oracle]
    return oracle


def check_answers(records: Any) -> None:
    """Refuse an object that is neither an objective nor an oracle."""
    # Since Python 3.12 isinstance(records, Oracle) does not call __getattr__ for attributes.
    answers = (name for name in vars(Oracle) if not name.startswith("_"))
    if not isinstance(records, Objective) and not all(hasattr(records, name) for name in answers):
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


def step_size(plan: Plan, objective: Problem, learning_rate: float | None) -> float:
    """Return the learning rate that was chosen, or the plan's, shortened for the regulariser.

    The plan's learning rate is for the loss without the regulariser. A learning rate with which the
    regulariser by itself would make iterates diverge is refused.
    """
    l2 = float(getattr(objective, "l2", 0.0))
    if learning_rate is None:
        eta = validate.positive(learning_rate=plan.parameters.get("learning_rate"))
        return eta / (1 + eta * l2)
    eta = validate.positive(learning_rate=learning_rate)
    if eta * l2 >= 2:
        raise ValueError(
            f"learning_rate must be below 2 / l2 = {2 / l2:.6g}, beyond which iterates diverge, "
            f"got {learning_rate!r}."
        )
    return eta


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
