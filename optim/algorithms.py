"""How does a loop become an optimizer? The driver adds its keywords, the checks and the result.

The loop of an algorithm takes a run, an oracle and a plan. :func:`algorithm` makes an optimizer of
it, with the keywords that :func:`dpcal.optim.run` documents and the loop's own:

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> X = np.random.default_rng(0).standard_normal((1_000, 3))
>>> objective = optim.Logistic(X, X @ [1.0, -2.0, 0.5] > 0, classes=[0, 1])
>>> plan = calibrate.dpsgd(n=1_000, batch_size=100, steps=20, epsilon=1.0, delta=1e-6)
>>> @algorithm()
... def descent(run, oracle, plan, *, rate=0.1):
...     while run.going:
...         run.move(run.w - rate * oracle.gradient(run.w, "gradient"))
>>> descent(objective, plan, seed=0, rate=0.5, callback=lambda progress: progress.step == 7).message
'stopped by the callback after 7 of 20 planned steps'
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.optim.boundary.access import Store, check_answers, keeps_ledger, oracle_of
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import (
    Callback,
    Run,
    check_plan,
    check_start,
    level_outside,
    run,
    warn_of_noise,
)
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

__all__ = [
    "Algorithm",
    "Settings",
    "algorithm",
    "checked_plan",
    "planned",
    "step_size",
    "takes_former_names",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_DRIVEN = inspect.signature(run).parameters


class Settings:
    """Result of an algorithm's checks: planned moves, at least 1, and the keywords of its loop.

    ``initial`` is the start, if it is not the driver's, and ``center`` the centre of the ball.
    """

    def __init__(
        self,
        steps: int,
        *,
        initial: ArrayLike | None = None,
        center: ArrayLike | None = None,
        **values: Any,
    ) -> None:
        self.steps, self.initial, self.center, self.values = steps, initial, center, values

    @classmethod
    def as_given(cls, objective: Any, plan: Plan, **options: Any) -> Settings:
        """Return settings with unchanged options, and one move for each answer of the plan."""
        return cls(sum(query.count for query in plan.queries), **options)


_R_co = TypeVar("_R_co", bound=Result, covariant=True)
_R = TypeVar("_R", bound=Result)


class Algorithm(Protocol[_R_co]):
    """An optimizer: its keywords are those of :func:`dpcal.optim.run`, and its own options."""

    __name__: str

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
        noise: str | None = None,
        **options: Any,
    ) -> _R_co:
        """Spend a plan; return the outcome."""
        ...


class _Enter(Protocol):
    """A decorator of loops: the optimizer returns a Result, or the loop's own kind of it."""

    @overload
    def __call__(self, loop: Callable[..., Vector | None]) -> Algorithm[Result]: ...

    @overload
    def __call__(self, loop: Callable[..., _R]) -> Algorithm[_R]: ...

    def __call__(self, loop: Callable[..., Any]) -> Algorithm[Any]:
        """Return the optimizer."""
        ...


def algorithm(
    settings: Callable[..., Settings] = Settings.as_given,
    *,
    initial: bool = True,
    radius: bool = False,
) -> _Enter:
    """Return a decorator that makes an optimizer of a loop ``(run, oracle, plan, **values)``.

    The loop takes its steps by ``run.move``. It returns parameters, None for the last iterate, or a
    :class:`dpcal.optim.Result` of its own kind. The optimizer takes an objective, a plan, the
    keywords of :func:`dpcal.optim.run` and the algorithm's own options.

    Parameters
    ----------
    settings
        Checks the objective, the plan, its own options and those keywords of ``run`` that it names,
        before anything is opened. When omitted, the loop's keywords are the options.
    initial, radius
        Whether the user may choose where to start, and a ball.
    """

    def enter(loop: Callable[..., Any]) -> Algorithm[Any]:
        checks = loop if settings == Settings.as_given else settings
        signature = _signature(checks, loop, initial=initial, radius=radius)
        own = list(_keywords(checks))

        @functools.wraps(loop, assigned=("__module__", "__name__", "__qualname__"))
        def optimizer(*args: Any, **keywords: Any) -> Result:
            return _spent(loop, settings, own, _bound(loop, signature, args, keywords))

        optimizer.__doc__ = f"{inspect.getdoc(loop) or ''}\n\n{_SEE_ALSO}"
        optimizer.__signature__ = signature  # type: ignore[attr-defined]  # for ``help``
        return cast(Algorithm[Any], optimizer)

    return cast(_Enter, enter)


_SEE_ALSO = """See Also
--------
dpcal.optim.run : Documents the other keywords, the result and the errors."""

# Keywords by the names that they had before.
_FORMER = {"averaging": "output", "problem": "objective", "silos": "objective"}


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return a function's keyword-only parameters."""
    parameters = inspect.signature(function).parameters
    return {
        name: each
        for name, each in parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _signature(
    checks: Callable[..., Any], loop: Callable[..., Any], *, initial: bool, radius: bool
) -> inspect.Signature:
    """Return an optimizer's signature: that of :func:`run` with the algorithm's own options."""
    taken = {"initial": initial, "radius": radius, "options": False}
    shared = [each for name, each in _DRIVEN.items() if taken.get(name, True)]
    own = [each for name, each in _keywords(checks).items() if name not in _DRIVEN]
    returned = inspect.signature(loop).return_annotation
    result = returned if str(returned).endswith("Result") else "Result"
    return inspect.Signature(shared[:3] + own + shared[3:], return_annotation=result)


def takes_former_names(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make a function accept former names of its keywords, with a warning."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def today(*args: _P.args, **keywords: _P.kwargs) -> _T:
        return function(*args, **_renamed(function.__name__, known, keywords))

    return today


def _renamed(name: str, known: Collection[str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords by their current names; warn of each former name."""
    today = dict(keywords)
    for former, now in _FORMER.items():
        if former in today and former not in known and now in known and now not in today:
            value = today.pop(former)
            today[now] = "last" if former == "averaging" and value == "none" else value
            warnings.warn(
                f"{former} of {name} is now called {now}.",
                DeprecationWarning,
                stacklevel=level_outside(),
            )
    return today


def _bound(
    loop: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> dict[str, Any]:
    """Return an optimizer's arguments by name, defaults included."""
    name = loop.__name__
    try:
        bound = signature.bind(*args, **_renamed(name, signature.parameters, keywords))
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    return bound.arguments


@keeps_ledger
def _spent(
    loop: Callable[..., Any],
    settings: Callable[..., Settings],
    own: list[str],
    given: dict[str, Any],
) -> Result:
    """Check the arguments, open the oracle, and run a loop to its end."""
    objective, plan = given["objective"], given["plan"]
    check_plan(plan)
    check_answers(objective)
    made = settings(objective, plan, **{name: given[name] for name in own})
    initial = given.get("initial") if made.initial is None else made.initial
    radius = given.get("radius", math.inf)
    callback, every = given["callback"], given["callback_every"]
    if hasattr(objective, "dimension"):  # silos add their answers
        check_start(objective.dimension, initial, radius, callback, every)
        warn_of_noise(plan, objective.dimension)
    oracle = oracle_of(
        objective, plan, given["seed"], given["store"], given["noise"], given["store_every"]
    )
    state = Run(
        oracle,
        steps=made.steps,
        initial=initial,
        radius=radius,
        center=made.center,
        callback=callback,
        callback_every=every,
    )
    found = None
    with state.answering():
        found = loop(state, oracle, plan, **made.values)
    return found if isinstance(found, Result) else state.result(found)


def step_size(plan: Plan, objective: Objective | Oracle, learning_rate: float | None) -> float:
    """Return the learning rate that was chosen, or the plan's, shortened for the regulariser.

    The plan's is for the loss alone. One with which the regulariser alone would make iterates
    diverge is refused.
    """
    # An oracle about records elsewhere may have no l2.
    l2 = float(getattr(objective, "l2", 0.0))
    if learning_rate is None:
        eta = _validate.positive(learning_rate=plan.parameters.get("learning_rate"))
        return eta / (1 + eta * l2)
    eta = _validate.positive(learning_rate=learning_rate)
    if eta * l2 >= 2:
        raise ValueError(
            f"learning_rate must be below 2 / l2 = {2 / l2:.6g}, beyond which iterates diverge, "
            f"got {learning_rate!r}."
        )
    return eta


def planned(plan: Plan, optimizer: str, *kinds: str) -> tuple[Query, ...]:
    """Return a plan's queries; refuse those that are not of these kinds, in order."""
    checked_plan(plan, optimizer)
    if tuple(query.kind for query in plan.queries) != kinds:
        raise ValueError(
            f"plan must have queries of kinds {list(kinds)}, got "
            f"{[(query.name, query.kind) for query in plan.queries]}."
        )
    return plan.queries


def checked_plan(plan: Plan, optimizer: str, *others: str) -> None:
    """Refuse a plan that is for another optimizer."""
    check_plan(plan)
    if plan.optimizer not in (optimizer, *others):
        raise ValueError(
            f"plan must be for optimizer {optimizer!r}, got one for {plan.optimizer!r}."
        )
