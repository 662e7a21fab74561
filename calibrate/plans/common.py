"""Shared parts of plan builders: checked constants, a target with its noise, queries.

>>> from dpcal.calibrate import Constants
>>> given = Given.of(Constants(lipschitz=2.0, smoothness=float("inf")), n=200, dimension=3,
...                  epsilon=1.0, delta=1e-6)
>>> given.known("lipschitz", "max_norm")
2.0
>>> given.known("smoothness", "learning_rate")
Traceback (most recent call last):
    ...
dpcal.calibrate.constants.UnknownConstant: learning_rate must be given where \
constants.smoothness is no number > 0, got inf.
>>> sampling_of(50, 200, "add-or-remove-one")["sampling_probability"]
0.25
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpcal._internal import validate
from dpcal._internal.roots import NoBracket, Stop, bisect, bracket
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.calibrate.constants import Constants, UnknownConstant
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.persons import for_group
from dpcal.calibrate.plan import Parameter, Plan, compose
from dpcal.calibrate.query import Query
from dpcal.calibrate.targets import EventOf
from dpcal.errors import TargetUnreachable, UnsupportedEvent, warn_caller

SAMPLERS = ("fixed-size", "poisson")

# Relative: a setting within this of a whole number is taken for that number.
_WHOLE = 1e-12

# Relative, above sqrt(count): keeps the sum of the answers' shares of the budget below one.
_ABOVE_ROUNDING = 1e-12

# Seconds of a noisy answer and of the gradient of one record on a fast processor.
_LEAST_ANSWER, _LEAST_GRADIENT = 1e-6, 1e-8

_WEEK = 7 * 86_400.0

_LARGEST_SIZE = 1e30

# Relative precision of the size from which a theorem promises something: two digits.
_SIZE_RATIO = 1.02


class Target(NamedTuple):
    """A privacy target: epsilon >= 0, delta in (0, 1), the neighboring relation, and the unit.

    The unit is a person with at most ``group_size`` records; these rows or their sum are
    ``clipped``: see :class:`dpcal.calibrate.Query`. The ``accountant`` computes epsilon. With a
    ``noise_multiplier``, leave out epsilon.
    """

    epsilon: float
    delta: float
    relation: str
    group_size: int = 1
    clipped: str = "row"
    accountant: str = "auto"
    noise_multiplier: float | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """Keywords of a question about this target, for single records."""
        asked = {"epsilon": self.epsilon, "delta": self.delta}
        return {**asked, "neighboring_relation": self.relation, "accountant": self.accountant}

    def noise(self, event_of_sigma: EventOf) -> float:
        """Return the least noise multiplier with which an event of one record meets the target."""
        if self.noise_multiplier is not None:
            return validate.positive(noise_multiplier=self.noise_multiplier)
        records = self.group_size if self.clipped == "row" else 1
        return noise_multiplier(
            lambda value: for_group(event_of_sigma(value), records, self.relation), **self.asked
        )

    def met_by(self, queries_of: Callable[[float], tuple[Query, ...]], n: int) -> tuple[Query, ...]:
        """Return queries on n records, at the least argument with which they meet the target."""

        def event(value: float) -> events.DpEvent:
            return compose(((each, each.count) for each in queries_of(value)), n, self.relation)

        return queries_of(self.noise(event))

    def plan(
        self,
        optimizer: str,
        n: int,
        queries: tuple[Query, ...],
        parameters: Mapping[str, Parameter],
    ) -> Plan:
        """Return the plan of this target; a plan about persons that misses it is refused."""
        if self.group_size > 1 or self.clipped != "row":
            size = validate.count(group_size=self.group_size)
            unit: dict[str, Any] = {"group_size": size, "clipped": self.clipped}
            queries = tuple(dataclasses.replace(query, **unit) for query in queries)
        asked = {**self.asked, "epsilon": float(self.epsilon), "delta": float(self.delta)}
        plan = Plan(optimizer=optimizer, n=n, queries=queries, parameters=parameters, **asked)
        if self.noise_multiplier is not None:
            plan = dataclasses.replace(plan, epsilon=float(plan.price()))
        elif self.group_size > 1 and self.clipped == "row" and plan.price() > self.epsilon:
            raise UnsupportedEvent(
                f"group_size must be 1 for {optimizer}, whose noise is set for single records, got "
                f"{self.group_size}."
            )
        _warn_endless(plan)
        return plan


@dataclass(frozen=True, kw_only=True)
class Given:
    """The checked inputs: constants of one record's loss, number of records, target.

    d is the number of parameters; a minimax problem's is a pair.
    """

    constants: Constants
    n: int
    d: Any
    target: Target

    @classmethod
    def of(
        cls,
        constants: Constants,
        *,
        n: int,
        dimension: int | Sequence[int],
        epsilon: float,
        delta: float,
        neighboring_relation: str = "add-or-remove-one",
        **unit: Any,
    ) -> Given:
        """Return a builder's arguments; ``unit`` holds the other fields of the target."""
        target = Target(epsilon, delta, validate.relation(neighboring_relation), **unit)
        return cls(constants=constants, n=validate.count(n=n), d=dimension, target=target)

    @property
    def z(self) -> float:
        """Noise multiplier of one Gaussian release that spends the whole target."""
        return single_release(*self.target)

    def known(self, field: str, argument: str | None = None, given: float | None = None) -> float:
        """Return the value that was given for an argument, or else the constant in its place.

        The constant is called ``field``, and must be a finite number > 0 where nothing was given.
        The ``argument`` may be given instead, a number > 0; it is None where only the constant will
        do.
        """
        if argument is not None and given is not None:
            return validate.positive(**{argument: given})
        value = getattr(self.constants, field)
        if value is None or not 0 < value < math.inf:
            needed = f"{argument} must be given where constants.{field} is no number > 0"
            if argument is None:
                needed = f"constants.{field} must be a finite number > 0"
            raise UnknownConstant(f"{needed}, got {value!r}.")
        return float(value)

    def plan(
        self, optimizer: str, queries: tuple[Query, ...], parameters: Mapping[str, Parameter]
    ) -> Plan:
        """Return the plan of this target."""
        return self.target.plan(optimizer, self.n, queries, parameters)


def builder(
    relation: str | None = "add-or-remove-one",
    *,
    sizes: str = "dimension",
    options: type | None = None,
) -> Callable[[Callable[..., Plan]], Callable[..., Plan]]:
    """Return a decorator that makes a plan builder of a function of the shared parameters.

    The function takes a :class:`Given`, and keywords of its own. The builder takes ``constants``,
    and keywords ``n``, the name of the dimension, ``epsilon`` or ``noise_multiplier``, ``delta``,
    the function's own, ``neighboring_relation``, ``group_size``, ``accountant``, ``public``, and
    ``clipped`` for problems in one block. It refuses constants that were measured on records,
    unless ``public=True``.

    ``relation`` is the neighboring relation when omitted and ``sizes`` the keyword of the
    dimension. The fields of the record ``options`` are keywords of the builder too, which the
    function gets as ``**options``.
    """

    def made(build: Callable[..., Plan]) -> Callable[..., Plan]:
        signature = _signature(build, relation, sizes, options)

        @functools.wraps(build)
        def checked(*constants: Constants, **keywords: Any) -> Plan:
            try:
                bound = signature.bind(*constants, **keywords)
            except TypeError as error:
                raise TypeError(f"{build.__name__}() {error}.") from None
            bound.apply_defaults()
            own = bound.kwargs
            known_of = validate.instance(Constants, constants=bound.args[0])
            if not validate.flag(public=own.pop("public")) and known_of.measured:
                raise ValueError(
                    "constants must be known without a look at the records, got some that were "
                    "measured: what is read off records gives them away through the plan. Use "
                    "constants_for(row_norm=...) of the loss, or public=True if the records are "
                    "public."
                )
            constants_of = dataclasses.replace(known_of, measured=False)
            size, shared = own.pop(sizes), {key: own.pop(key) for key in _SHARED if key in own}
            if sizes == "dimension":
                shared["dimension"] = validate.count(dimension=size)
            else:
                shared["dimension"] = validate.counts(0, **{sizes: size})
            stated = _stated_epsilon(shared)
            del shared["noise_multiplier"]

            def built(epsilon: float) -> Plan:
                return build(Given.of(constants_of, **{**shared, "epsilon": epsilon}), **own)

            return priced_by(shared["accountant"], built, stated)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return made


_EMPTY = inspect.Parameter.empty
_FIRST = {"n": _EMPTY, "delta": _EMPTY, "epsilon": None, "noise_multiplier": None}
_LAST = {"neighboring_relation": "", "group_size": 1, "clipped": "row", "accountant": "auto"}
_SHARED = (*_FIRST, *_LAST)

_MADE_ANEW = 20


def priced_by(accountant: str, built: Callable[[float], Plan], epsilon: float) -> Plan:
    """Return the plan of a target with an epsilon, by its accountant, that is at most the target's.

    Builders compose by theorems; another accountant may bound the sums a little less closely.
    """
    plan = built(epsilon)
    if accountant == "auto":
        return plan
    aim = epsilon
    for _ in range(_MADE_ANEW):
        if (price := float(plan.price())) <= epsilon:
            return dataclasses.replace(plan, epsilon=float(epsilon))
        aim *= epsilon / price * (1 - 1e-6)
        plan = built(aim)
    raise TargetUnreachable(
        f"No plan of {plan.optimizer} meets epsilon={epsilon!r} by accountant {accountant!r}: it "
        f"finds {price:.6g}."
    )


def _stated_epsilon(asked: Mapping[str, Any]) -> float:
    """Return the given epsilon, or the epsilon of one release with the given noise."""
    validate.only_one(epsilon=asked["epsilon"], noise_multiplier=asked["noise_multiplier"])
    if asked["epsilon"] is not None:
        return asked["epsilon"]  # type: ignore[no-any-return]
    if asked["neighboring_relation"] is None:
        raise ValueError("neighboring_relation must be given with noise_multiplier, got None.")
    records = asked["group_size"] if asked.get("clipped", "row") == "row" else 1
    release = for_group(events.GaussianDpEvent(asked["noise_multiplier"]), records)
    how = {name: asked[name] for name in ("delta", "neighboring_relation", "accountant")}
    return float(epsilon_of(release, **how))


def _signature(
    build: Callable[..., Plan], relation: str | None, sizes: str, options: type | None
) -> inspect.Signature:
    """Return the public signature of a builder."""

    def keywords(values: Mapping[str, Any]) -> list[inspect.Parameter]:
        kind = inspect.Parameter.KEYWORD_ONLY
        return [inspect.Parameter(name, kind, default=value) for name, value in values.items()]

    signature = inspect.signature(build)
    own = list(signature.parameters.values())[1:]
    if options is not None:
        own[-1:] = keywords({each.name: each.default for each in dataclasses.fields(options)})
    rest = [own.pop()] if own[-1].kind == inspect.Parameter.VAR_KEYWORD else []
    last = {**_LAST, "neighboring_relation": relation, "public": False}
    if sizes != "dimension":
        del last["clipped"]
    constants = inspect.Parameter("constants", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first = keywords({"n": _EMPTY, sizes: _EMPTY, **_FIRST})
    return signature.replace(parameters=[constants, *first, *own, *keywords(last), *rest])


def positive_or(default: float, **argument: float | None) -> float:
    """Return an argument that must be a number > 0, or the default where it is None."""
    (value,) = argument.values()
    return default if value is None else validate.positive(**argument)


def rate_of(learning_rate: float | None) -> dict[str, Parameter]:
    """Return a step size > 0 as a parameter of a plan, which has none where it is None."""
    if learning_rate is None:
        return {}
    return {"learning_rate": validate.positive(learning_rate=learning_rate)}


@functools.cache
def single_release(epsilon: float, delta: float, neighboring_relation: str, *unit: Any) -> float:
    """Return the noise multiplier of one Gaussian release that spends the whole target."""
    return Target(epsilon, delta, neighboring_relation, *unit).noise(events.GaussianDpEvent)


def repeated(multiplier: float, count: int) -> float:
    """Return the noise multiplier of ``count`` releases that are as private as a single one."""
    return multiplier * math.sqrt(count) * (1 + _ABOVE_ROUNDING)


def replaced_in_place(neighboring_relation: str) -> None:
    """Refuse a relation under which disjoint parts do not compose in parallel."""
    allowed = ("replace-one", "replace-special")
    validate.choice(allowed, neighboring_relation=neighboring_relation)


def rounded_up(number: float) -> int:
    """Return the least whole number >= 1 that is not below ``number``, up to rounding errors."""
    return max(1, math.ceil(number * (1 - _WHOLE)))


def rounded_down(number: float) -> int:
    """Return the largest whole number not above ``number``, up to rounding errors; 1 at least."""
    return max(1, math.floor(number * (1 + _WHOLE)))


def gradients(max_norm: float, noise_multiplier: float, count: int, **fields: Any) -> Query:
    """Return the query ``"gradient"`` about all records; other fields may be given."""
    query: dict[str, Any] = {"name": "gradient", "kind": "gradient", "sampler": "full", **fields}
    return Query(max_norm=max_norm, noise_multiplier=noise_multiplier, count=count, **query)


def differences(of: Query, per_distance: float, **fields: Any) -> Query:
    """Return the query ``"difference"`` next to a query for gradients; other fields may be given.

    The fields of the query for gradients hold unless they are given. A record's change is bounded
    per unit of distance, and capped at 2 C, with C the bound on gradients.
    """
    kind = {"name": "difference", "kind": "gradient difference", "proportional": True}
    bounds = {"max_norm": per_distance, "cap": 2 * of.max_norm}
    return dataclasses.replace(of, **{**kind, **bounds, **fields})


def told_of(record: Any, names: str) -> dict[str, Parameter]:
    """Return fields of a record by name, as parameters of a plan."""
    return {name: getattr(record, name) for name in names.split()}


def check_given(record: Any, checks: Mapping[str, Callable[..., Any]]) -> None:
    """Check the fields of a record by name; None is allowed where it is the default."""
    for each in dataclasses.fields(record):
        value = getattr(record, each.name)
        if each.name in checks and not (value is each.default is None):
            checks[each.name](**{each.name: value})


def at_most(n: int, **size: int) -> int:
    """Return a number of records, refused outside of [1, n]."""
    ((name, value),) = size.items()
    if validate.count(**size) > n:
        raise ValueError(f"{name} must be at most n={n}, got {value}.")
    return int(value)


def disjoint(size: int, partition: str) -> dict[str, Any]:
    """Return the keywords of a query about disjoint parts of so many records."""
    return {
        "sampler": "fixed-size",
        "batch_size": size,
        "composition": "disjoint",
        "partition": partition,
    }


def sampling_of(size: int, n: int, relation: str, sampler: str | None = None) -> dict[str, Any]:
    """Return the keywords of a query about samples of a size in [1, n]; all records where it is n.

    The sampler is ``"fixed-size"`` or ``"poisson"``; None for the default of the relation.
    """
    at_most(n, batch_size=size)
    chosen = sampler or ("fixed-size" if relation == "replace-one" else "poisson")
    validate.choice(SAMPLERS, sampler=chosen)
    chosen = "full" if size == n else chosen
    return {
        "sampler": chosen,
        "sampling_probability": size / n if chosen == "poisson" else None,
        "batch_size": int(size) if chosen == "fixed-size" else None,
    }


def _informative_from(meets: Callable[[float], bool], n: int) -> int:
    """Return the number of records, to two digits, from which a promise, not met at n, is met."""
    try:
        sides = bracket(meets, miss=n / 2, start=float(n), last=_LARGEST_SIZE)
        high = bisect(meets, sides, Stop(relative=1 - 1 / _SIZE_RATIO), geometric=True).meet
    except NoBracket as none:
        high = 2 * none.at
    digits = 10 ** max(0, math.floor(math.log10(high)) - 1)
    return int(math.ceil(high / digits) * digits)


_SAYS = {"guarantee": "it promises", "order": "it promises the order"}


def promise(
    name: str,
    value: float,
    trivial: tuple[str, float],
    accuracy: Callable[[float], float],
    n: int,
    *,
    kind: str = "order",
) -> dict[str, Parameter]:
    """Return a plan's parameters about its theorem's accuracy; warn if the accuracy is trivial.

    The optimizer ``name`` promises ``value`` at n records and about ``accuracy`` at others;
    ``trivial`` is the name and value of a bound that holds without an optimizer. See
    :attr:`dpcal.calibrate.Plan.accuracy_kind` for ``kind``.
    """
    meaning, bound = trivial
    record: dict[str, Parameter] = {"accuracy": value, "accuracy_kind": kind}
    if value < bound:
        return {**record, "vacuous": False}
    start = _informative_from(lambda size: accuracy(size) < bound, n)
    warn_caller(
        f"the theorem of {name} is vacuous at n={n}: {_SAYS[kind]} {value:.3g}, no better than the "
        f"{meaning} {bound:.3g}; it is informative from about n={start:.2g}."
    )
    return {**record, "vacuous": True, "informative_from_n": start}


def warn_no_step(name: str, n: int, why: str) -> None:
    """Warn of a run that spends its budget and takes no step."""
    warn_caller(f"{name} takes no step at n={n} but by chance, and spends its budget: {why}.")


def _warn_endless(plan: Plan) -> None:
    """Warn of a plan with more answers and gradients than anyone waits for."""
    answers, asked = sum(query.sums for query in plan.queries), plan.evaluations
    seconds = answers * _LEAST_ANSWER + asked * _LEAST_GRADIENT
    if seconds > _WEEK:
        warn_caller(
            f"this plan of {plan.optimizer} is too long to be run: it asks for {answers:.3g} noisy "
            f"answers and {asked:.3g} gradients of one record, which take a processor at least "
            f"{seconds / 86_400:.3g} days."
        )


def warn_below_noise(name: str, n: int, what: str, threshold: float, noise: float) -> None:
    """Warn of a threshold below the noise; both are norms, the noise's on average."""
    if noise > threshold:
        warn_caller(
            f"the noise of {name} is above its threshold at n={n}: {what} must be at most "
            f"{threshold:.3g}, and noise alone makes it {noise:.3g}, whatever the records say."
        )


def warn_convex(name: str) -> None:
    """Warn of an optimizer that ended above DP-SGD on every convex loss of a study."""
    warn_caller(
        f"the loss is convex, and {name} ended above dpsgd at the same price on all of 54 "
        "logistic regressions (docs/explanation/optimizers.md); calibrate.recommend predicts "
        "errors."
    )
