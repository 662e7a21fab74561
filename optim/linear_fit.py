"""The fit of a linear model: a query about the length of rows, then noisy steps on all records.

A hundredth of the squared budget releases the mean squared norm of rows, from which clip and step
size follow (:class:`dpcal.calibrate.defaults.Defaults`), so that nothing has to be tuned.

>>> import numpy as np
>>> X = np.random.default_rng(0).uniform(-1, 1, (5_000, 3))
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> two = LinearSettings(classes=(False, True))
>>> fit = fit_linear("logistic", X, y, row_norm=3**0.5, epsilon=1.0, delta=1e-6, settings=two)
>>> [(query.name, query.count) for query in fit.ledger.entries]
[('scale', 1), ('gradient', 120)]
>>> bool(fit.epsilon(1e-6) <= 1.0), bool(((X @ fit.w > 0) == y).mean() > 0.9)
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.calibrate import Constants, Plan, Query, noise_multiplier, noisy_gd
from dpcal.calibrate.defaults import SCALE_SHARE, Defaults, full_steps
from dpcal.calibrate.plans.common import gradients, repeated
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.seeds import Seed, spawned
from dpcal.optim.budget import prepaid
from dpcal.optim.driver import Callback, check_callback
from dpcal.optim.objectives.arrays import numbers, parameters, row_norms
from dpcal.optim.objectives.custom import Users
from dpcal.optim.objectives.domains import blanked, classes_and_weights, codes, finite_rows
from dpcal.optim.objectives.linear import Logistic, Squared
from dpcal.optim.objectives.placed import as_they_are, by_row, objective_of, vectors_of
from dpcal.optim.objectives.softmax import Softmax
from dpcal.optim.registry import Store, oracle_of, run
from dpcal.optim.result import Result

Table = NDArray[np.float64]

RELEASES = ("all", "last")

# They average iterates by growing weights: as private as the last, less noisy.
AVERAGED = ("dpsgd", "noisy_gd")

SCALE = "scale"

_RELATION = "replace-special"

_LEAST_SCALE = 0.01

# Relative margin of a bound: rounding in a norm shortens no vector, and noise hides the rest.
_ROOM = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class LinearSettings:
    """Settings of a linear fit; a setting of None follows from public numbers.

    Parameters
    ----------
    classes
        Two or more different labels of a logistic loss, in sort order.
    class_weight
        For each class a public number > 0 that the gradients of its records are multiplied by
        before they are clipped; None for 1.
    l2
        Strength >= 0 of the regulariser ``l2 / 2 ||w||^2``.
    max_norm
        Clip > 0 of one record's weighted gradient.
    steps, learning_rate
        Number of passes >= 1, and step size > 0.
    release
        ``"all"``: every iterate may be released, and their mean is the model. ``"last"``: only the
        last iterate is, for a convex loss, and ``l2`` saves noise.
    fit_intercept
        Whether there is an intercept in addition to the columns, as the last parameter; ``l2``
        leaves it out.
    """

    classes: Any = None
    class_weight: Mapping[Any, float] | None = None
    l2: float = 0.0
    max_norm: float | None = None
    steps: int | None = None
    learning_rate: float | None = None
    release: str = "all"
    fit_intercept: bool = False

    def __post_init__(self) -> None:
        validate.non_negative(l2=self.l2)
        validate.choice(RELEASES, release=self.release)
        validate.flag(fit_intercept=self.fit_intercept)
        for name in ("max_norm", "learning_rate"):
            if getattr(self, name) is not None:
                validate.positive(**{name: getattr(self, name)})
        if self.steps is not None:
            validate.count(steps=self.steps)
        if self.classes is not None:
            object.__setattr__(self, "classes", declared(self.classes))
        self.weight  # noqa: B018  weights of other classes are refused

    @property
    def weight(self) -> float:
        """The largest weight of a class."""
        if self.class_weight is None:
            return 1.0
        known = np.asarray([] if self.classes is None else self.classes)
        try:
            _, weights = classes_and_weights(known, known, self.class_weight, from_data=False)
        except (ValueError, TypeError, AttributeError):
            raise ValueError(
                f"class_weight must be a finite number > 0 for each of the classes "
                f"{known.tolist()}, got {self.class_weight!r}."
            ) from None
        return 1.0 if weights is None else float(weights.max())

    @property
    def asks_scale(self) -> bool:
        """Whether clip or step size follow from the norm of rows, which is queried first."""
        chosen = self.max_norm is not None and self.learning_rate is not None
        return self.release == "all" and not chosen

    @property
    def columns(self) -> int:
        """Number of parameters for each column of the records."""
        many = self.classes is not None and len(self.classes) > 2
        return len(self.classes) if many else 1

    def loss(self, name: str) -> str:
        """Return the name of the loss, ``softmax`` for more than two classes."""
        return "softmax" if self.columns > 1 else name


def query_on_all(name: str, bound: float, multiplier: float, count: int = 1, **more: Any) -> Query:
    """Return a query of ``count`` noisy answers about all records, with a bound on each record."""
    return gradients(bound, multiplier, count, name=name, **more)


def sum_query(name: str, norm: float, multiplier: float, count: int = 1) -> Query:
    """Return the query of ``count`` noisy sums of one vector a record, over all records."""
    return query_on_all(name, norm * _ROOM, multiplier, count)


def scale_query(release: float) -> Query:
    """Return the query about the norm of rows, by the noise of one release of the whole budget."""
    return sum_query(SCALE, 1.0, repeated(release / math.sqrt(SCALE_SHARE), 1))


def asked_before(plan: Plan, scale: Query) -> Plan:
    """Return a plan that queries the scale first, and has more noise on later answers."""
    query = plan.query("gradient")

    def both(value: float) -> Plan:
        return replace(plan, queries=(scale, replace(query, noise_multiplier=value)))

    names = ("epsilon", "delta", "neighboring_relation", "accountant")
    target = {name: getattr(plan, name) for name in names}
    return both(noise_multiplier(lambda value: both(value).event, **target))


def _shares(rows: Table, *, norm: float, most: float) -> Table:
    """Return squared norms, in units of ``norm`` squared; each depends on its row only."""
    return np.minimum((row_norms(rows) / norm) ** 2, most)[:, np.newaxis]


def tuned(
    settled: Defaults, query: Query, *, weight: float = 1.0, l2: float = 0.0, **given: float | None
) -> tuple[float, float]:
    """Return clip and step size, where ``max_norm`` and ``learning_rate`` are not given.

    Parameters
    ----------
    settled
        Defaults for the typical norm of rows.
    query
        Query of the gradients.
    weight
        Largest weight of a class: its gradients are longer by this factor, and curve more by it.
    l2
        Strength of the regulariser.
    """
    max_norm, rate = given.get("max_norm"), given.get("learning_rate")
    clip = weight * settled.max_norm if max_norm is None else max_norm
    if rate is None:
        noise = query.noise_multiplier
        rate = settled.learning_rate(noise, clip / weight, l2=l2 / weight) / weight
    return clip, rate


def plan_linear(
    loss: str,
    *,
    n: int,
    dimension: int,
    row_norm: float,
    epsilon: float,
    delta: float,
    settings: LinearSettings,
    release: float | None = None,
    group_size: int = 1,
) -> Plan:
    """Return the plan of a fit, made before a record is read.

    Parameters
    ----------
    loss
        ``"logistic"`` or ``"squared"``.
    n, dimension
        Number of records, which is public, and number of columns.
    row_norm, epsilon, delta, settings, group_size
        Arguments as in :func:`fit_linear`.
    release
        Noise multiplier of one release that costs the fit's share of the target; the whole target
        when omitted.
    """
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighboring_relation": _RELATION}
    if release is None:
        release = group_size * repeated(noise_multiplier(events.GaussianDpEvent, **given), 1)
    sizes: dict[str, Any] = {"n": n, "dimension": dimension * settings.columns, "release": release}
    kind = settings.loss(loss)
    if settings.release == "last":
        return noisy_gd(
            _convex(kind, Defaults.of(kind, row_norm=row_norm, batch_size=n, **sizes), settings),
            n=n,
            dimension=dimension,
            group_size=group_size,
            steps=settings.steps,
            learning_rate=settings.learning_rate,
            release="last",
            **given,
        )
    steps = full_steps(kind, **sizes) if settings.steps is None else settings.steps
    share = 1 - SCALE_SHARE if settings.asks_scale else 1.0
    gradient = sum_query("gradient", 1.0, repeated(release / math.sqrt(share), steps), steps)
    queries = [*([scale_query(release)] if settings.asks_scale else []), gradient]
    if group_size > 1:
        queries = [replace(each, group_size=group_size) for each in queries]
    return Plan(
        optimizer="noisy_gd",
        n=n,
        queries=tuple(queries),
        parameters={"steps": steps, "one_release": release},
        **given,
    )


def _convex(kind: str, settled: Defaults, settings: LinearSettings) -> Constants:
    """Return the constants of the loss of records within a norm."""
    if kind == "softmax":
        raise ValueError(
            "release='last' needs two declared classes: clipped gradients of more are not those of "
            f"a convex loss. Got {settings.classes!r}."
        )
    given = {"row_norm": settled.row_norm, "l2": settings.l2}
    if kind == "squared":
        known = Squared.constants_for(**given, fit_intercept=False, target_bound=1.0)
    else:
        known = Logistic.constants_for(**given, fit_intercept=False, largest_weight=settings.weight)
    clip = settings.weight * settled.max_norm if settings.max_norm is None else settings.max_norm
    return replace(known, lipschitz=clip)


def fit_linear(
    loss: str,
    X: Any,
    y: Any,
    *,
    row_norm: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    settings: LinearSettings | None = None,
    plan: Plan | None = None,
    guess: float | None = None,
    group_size: int = 1,
    owners: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    callback: Callback | None = None,
    store: Store = None,
    seed: Seed = None,
) -> Any:
    """Return a private linear model of all records, charged to the budgets in use.

    Parameters
    ----------
    loss
        ``"logistic"`` or ``"squared"``.
    X, y
        Records, shape (n, d), with a constant column where there is an intercept, and their labels
        or targets, shape (n,); in memory or in partitions of a cluster. A record with a number that
        is not finite, or of another class, is zeroed out. The number n is public.
    row_norm
        Bound > 0 on the L2 norm of records, needed without a plan of its own. Longer records count
        for no more.
    epsilon, delta
        The target, > 0 and in (0, 1); neighbors differ by one record that is there or zeroed out
        (``"replace-special"``). The plan's target where a plan is given.
    settings
        A :class:`LinearSettings`.
    plan
        Plan of :func:`plan_linear` that was made before, or any other plan for a linear model,
        which is run as it is. A query of the name ``SCALE`` comes first.
    guess
        Norm > 0 that a plan assumes for rows. Rows are multiplied by one number, the same for all,
        so that they have this norm as far as the query ``SCALE`` shows. Without a guess, clip and
        rate follow from that query's answer.
    group_size
        Largest number of records of one person, >= 1.
    owners
        Number of the person of each record, shape (n,), where sums of a person's gradients are
        clipped.
    initial
        Start that was released; the origin when omitted.
    callback, store, seed
        Arguments as in :func:`dpcal.optim.run`.

    Returns
    -------
    Result
        The parameters, shape (d,), with one more for an intercept, or (classes * d,) for more than
        two classes, for the records as they were given; its ledger holds the scale too.

    Raises
    ------
    ValueError
        If an argument is out of range, or the loss of ``release="last"`` is not convex.
    BudgetExceeded
        If a budget does not cover the fit; no record was read.

    References
    ----------
    Wang, Ye and Xu 2017, Algorithm 3; Bok, Su and Altschuler 2024 (``release="last"``).
    """
    settings, group_size = settings or LinearSettings(), validate.count(group_size=group_size)
    _check(loss, X, settings, initial, callback)
    n, d = X.shape
    if plan is None:
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "group_size": group_size}
        given["row_norm"] = validate.positive(row_norm=row_norm)
        plan = plan_linear(loss, n=n, dimension=d, settings=settings, **given)
    how: dict[str, Any] = {"seed": seed, "store": store}
    X = X if settings.classes is None else of_classes(X, y, settings.classes)
    relation = validate.instance(Plan, plan=plan).neighboring_relation
    factor, own, norm = 1.0, plan, row_norm or 1.0
    entries: Sequence[Query] = ()
    objective = objective_of(partial(_loss_of, settings=settings), X, y)
    with prepaid(plan):
        typical = norm
        if plan.queries[0].name == SCALE:
            # A kept file refuses a seed that it has seen: this query takes a child of the seed.
            asked = how if store is None else {**how, "seed": spawned(seed, 2)[0]}
            typical, entries = _typical_norm(X, plan, row_norm if guess is None else None, **asked)
        if "one_release" in plan.parameters:
            sizes = settings.loss(loss), d * settings.columns
            own = _stepped(plan, *sizes, typical, norm, settings)
        elif entries and guess is not None:
            own, factor = replace(plan, queries=plan.queries[1:]), guess / typical
            X = by_row(partial(np.multiply, factor), X)
            settings = replace(settings, l2=settings.l2 * factor**2)
            objective = objective_of(partial(_loss_of, settings=settings), X, y)
        if owners is not None:
            objective = Users(objective, owners, group_size=group_size)
        averaged = own.optimizer in AVERAGED and settings.release == "all"
        options: dict[str, Any] = {"output": "linear"} if averaged else {}
        result: Result = run(objective, own, initial=initial, callback=callback, **options, **how)
    if not entries and own is plan:
        return result
    queries = plan.queries if factor != 1 else (*plan.queries[:-1], *own.queries)
    return replace(
        result,
        w=np.append(result.w[:d] * factor, result.w[d:]),
        plan=replace(own, queries=queries),
        ledger=Ledger(plan.n, relation, entries=[*entries, *result.ledger.entries]),
    )


def _check(
    loss: str, X: Any, settings: LinearSettings, initial: ArrayLike | None, callback: Any
) -> None:
    """Refuse arguments of a fit that do not go together, before anything is spent."""
    validate.choice(("logistic", "squared"), loss=loss)
    if (loss == "logistic") != (settings.classes is not None):
        raise ValueError(f"classes go with loss='logistic', got {settings.classes!r}, {loss!r}.")
    if len(getattr(X, "shape", ())) != 2:
        raise ValueError(f"X must be an array of shape (n, d), got {type(X).__name__}.")
    check_callback(callback)
    if initial is not None:
        parameters(numbers("initial", initial), X.shape[1] * settings.columns, "initial")


def _stepped(
    plan: Plan,
    loss: str,
    dimension: int,
    typical: float,
    bound: float,
    settings: LinearSettings,
) -> Plan:
    """Return the plan of the steps, with the clip and rate for rows of a typical norm."""
    query, sizes = plan.query("gradient"), cast("dict[str, Any]", plan.parameters)
    settled = Defaults.of(
        loss,
        n=plan.n,
        dimension=dimension,
        row_norm=typical,
        release=sizes["one_release"],
        steps=query.count,
        batch_size=plan.n,
        bound=bound,
    )
    chosen = {"max_norm": settings.max_norm, "learning_rate": settings.learning_rate}
    clip, rate = tuned(settled, query, weight=settings.weight, l2=settings.l2, **chosen)
    told = {"steps": query.count, "learning_rate": rate}
    return replace(plan, queries=(replace(query, max_norm=clip * _ROOM),), parameters=told)


def _typical_norm(
    X: Any, plan: Plan, bound: float | None, *, seed: Seed, store: Store
) -> tuple[float, Sequence[Query]]:
    """Return the root mean square norm of rows, with noise, and the ledger's entries for it.

    ``bound`` is the unit of the norms that the plan's query is about; one when None.
    """
    query = plan.queries[0]
    shares = by_row(partial(_shares, norm=bound or 1.0, most=1.0 if bound else math.inf), X)
    squares = objective_of(partial(vectors_of, as_they_are, 1), shares)
    name = "sum" if bound else SCALE
    part = replace(plan, optimizer=name, queries=(query,), parameters={})
    oracle = oracle_of(squares, part, seed, store)
    (told,) = oracle.gradient(np.zeros(1), query.name)
    if hasattr(oracle, "close"):
        oracle.close()
    square, entries = max(float(told), 0.0), oracle.ledger.entries
    # Rows are taken to be longer by one deviation: too low a clip costs more than it saves.
    if bound is not None:
        release: Any = plan.parameters["one_release"]
        square += release / math.sqrt(SCALE_SHARE) / plan.n
        return bound * math.sqrt(min(1.0, max(_LEAST_SCALE, square))), entries
    square = min(query.max_norm, square + query.noise_multiplier * query.max_norm / plan.n)
    return math.sqrt(square), entries


def declared(classes: Any) -> NDArray[Any]:
    """Return declared classes in sort order; ValueError if they are not two or more."""
    found: NDArray[Any] = np.unique(np.asarray(classes))
    if len(found) < 2 or np.ndim(classes) != 1:
        raise ValueError(f"classes must be two or more different labels, got {classes!r}.")
    return found


def of_classes(rows: Any, labels: Any, classes: Any) -> Any:
    """Return records, all NaN where the label is none of these; ValueError for other types."""
    return by_row(partial(_of_classes, classes=np.asarray(classes)), rows, labels)


def _of_classes(rows: Table, labels: NDArray[Any], *, classes: NDArray[Any]) -> Table:
    return blanked(rows, codes("y", labels, classes) >= 0, math.nan)


def _loss_of(rows: Table, y: NDArray[Any], *, settings: LinearSettings) -> Any:
    """Return the loss of records that are known and of these classes; others are zeroed out."""
    given: dict[str, Any] = {"fit_intercept": settings.fit_intercept, "l2": settings.l2}
    if settings.classes is None:
        return Squared(rows, y, **given)
    classes = np.asarray(settings.classes)
    code = codes("y", y, classes)
    known = finite_rows(rows) & (code >= 0)
    # A zeroed-out record has a zero gradient for any label, also at the intercept. Gradients are
    # weighted and then clipped, so that a record moves the sum by the clip at most.
    rows = blanked(rows, known, math.nan if settings.fit_intercept else 0.0)
    labels = classes[np.where(known, code, 0)]
    loss = Softmax if len(classes) > 2 else Logistic
    return loss(rows, labels, classes=classes, class_weights=settings.class_weight, **given)
