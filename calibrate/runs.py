"""Runs of Gaussian noise on batches, with sizes and an event. One number can be left out.

Sizes are exact: ``Fraction(512, 60_000)`` is that rate, and the double that stands for a rate is
never below it, so that no epsilon is too small.

>>> from dataclasses import replace
>>> run = SampledRun(n=60_000, batch_size=512, epochs=100, noise_multiplier=0.8)
>>> print(f"{run.epsilon(delta=1e-5):.3f}")
9.134
>>> shuffled = replace(run, sampler="shuffled-epochs")
>>> shuffled.event()
ShuffledEpochsDpEvent(noise_multiplier=0.8, batches=117, epochs=100, remainder=True)
>>> shuffled.relation
'replace-special'

You can solve for the number that is left out:

>>> run = SampledRun(n=60_000, batch_size=600, epochs=10).solved(epsilon=2.0, delta=1e-6)
>>> print(f"{run.noise_multiplier:.4f}")
1.0290
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from dpcal._internal import lazy
from dpcal.calibrate.batching import PLANNED
from dpcal.errors import DpcalError

if TYPE_CHECKING:
    from dpcal.accountants import Epsilon
    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate.plan import Plan

_accountants = lazy.Module("dpcal.accountants")
_events = lazy.Module("dpcal.accountants.events")
_directions = lazy.Module("dpcal.accountants.directions")
_dpsgd = lazy.Module("dpcal.calibrate.plans.dpsgd")
_noise = lazy.Module("dpcal.calibrate.noise")
_validate = lazy.Module("dpcal._internal.validate")

Relation = Literal["add-or-remove-one", "replace-one", "replace-special"]
Sampler = Literal[
    "poisson", "random-allocation", "without-replacement", "with-replacement", "shuffled-epochs"
]


def _said(number: object) -> str:
    """Return a number as it is written in a message."""
    return str(number) if isinstance(number, Fraction) else repr(number)


def rate_of(exact: Fraction) -> float:
    """Return the smallest double that is not below a rate: a larger rate costs no less.

    >>> rate_of(Fraction(3, 10)), rate_of(Fraction(1, 2))
    (0.30000000000000004, 0.5)
    """
    nearest = exact.numerator / exact.denominator
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


@dataclass(frozen=True, kw_only=True)
class SampledRun:
    """A run of Gaussian noise on sampled batches, in which one number can be left out.

    Parameters
    ----------
    sampler
        Way to draw batches.
    sampling_probability
        Probability in (0, 1] that a record joins a step: an exact decimal or fraction.
    n
        Public number of records.
    batch_size
        Batch size in [1, n]; expected, where the size is random.
    steps
        Number of steps >= 1.
    epochs
        Passes > 0 over the records, in place of steps.
    noise_multiplier
        Standard deviation > 0 of the noise, in units of the clipping norm.
    neighboring_relation
        Neighboring relation (default: the sampler's own).

    Raises
    ------
    ValueError
        If a size is out of range, or is given twice.
    """

    sampler: Sampler = "poisson"
    sampling_probability: Fraction | float | None = None
    n: int | None = None
    batch_size: int | None = None
    steps: int | None = None
    epochs: Fraction | float | None = None
    noise_multiplier: float | None = None
    neighboring_relation: Relation | None = None

    def __post_init__(self) -> None:
        _validate.choice(tuple(RUN_SAMPLERS), sampler=self.sampler)
        for name in ("n", "batch_size", "steps"):
            if getattr(self, name) is not None:
                _validate.count(**{name: getattr(self, name)})
        if self.noise_multiplier is not None:
            _validate.noise(noise_multiplier=self.noise_multiplier)
        if self.neighboring_relation is not None:
            relation = _directions.relation_of(self.neighboring_relation)
            object.__setattr__(self, "neighboring_relation", relation)
        n, batch, rate, epochs = self.n, self.batch_size, self.sampling_probability, self.epochs
        if (n is None) != (batch is None):
            raise ValueError("n and batch_size go together: give both or neither.")
        if rate is not None and n is not None:
            raise ValueError("n and batch_size stand for sampling_probability, which was given.")
        if epochs is not None and self.steps is not None:
            raise ValueError("steps and epochs exclude each other: give one of them.")
        if n is not None and batch is not None and not 1 <= batch <= n:
            raise ValueError(f"batch_size must be in [1, n={n}], got {batch}.")
        if rate is not None and not (isinstance(rate, Real) and 0 < rate <= 1):
            raise ValueError(f"sampling_probability must be a number in (0, 1], got {_said(rate)}.")
        if epochs is not None and not (isinstance(epochs, Real) and 0 < epochs < math.inf):
            raise ValueError(f"epochs must be a finite number > 0, got {_said(epochs)}.")

    @property
    def rate(self) -> Fraction | None:
        """The exact sampling probability."""
        if self.n is not None and self.batch_size is not None:
            return Fraction(self.batch_size, self.n)
        return None if self.sampling_probability is None else Fraction(self.sampling_probability)

    @property
    def length(self) -> int | None:
        """Number of steps, rounded up where passes were given."""
        if self.epochs is None or self.rate is None:
            return self.steps
        return math.ceil(Fraction(self.epochs) / self.rate)

    @property
    def relation(self) -> Relation:
        """Neighboring relation: the given one, or the sampler's own."""
        if self.neighboring_relation is None:
            return RUN_SAMPLERS[self.sampler].relation
        return self.neighboring_relation

    @property
    def batches(self) -> int:
        """Batches in a pass over the records, rounded up."""
        (rate,) = self.known("rate")
        count: int = math.ceil(1 / rate)
        return count

    @property
    def full_batches(self) -> int:
        """Batches of the largest size in a pass over the records."""
        (rate,) = self.known("rate")
        count: int = math.floor(1 / rate)
        return count

    @property
    def passes(self) -> int:
        """Passes over the records, rounded up."""
        if self.epochs is not None:
            return math.ceil(self.epochs)
        (steps,) = self.known("length")
        return int(-(-steps // self.batches))

    def known(self, *names: str) -> tuple[Any, ...]:
        """Return attributes; raise ``ValueError`` with the arguments that give missing ones."""
        missing = {_GIVEN_BY[name]: None for name in names if getattr(self, name) is None}
        if missing:
            raise ValueError(f"sampler={self.sampler!r} needs {' and '.join(missing)}.")
        return tuple(getattr(self, name) for name in names)

    def event(self) -> DpEvent:
        """Return the event of the run.

        Raises
        ------
        ValueError
            If a number that the sampler needs was left out.
        """
        return RUN_SAMPLERS[self.sampler].event(self)

    def epsilon(self, *, delta: float, **how: Any) -> Epsilon:
        """Return :func:`dpcal.epsilon` of the run, under its neighboring relation.

        Parameters
        ----------
        delta
            Delta in (0, 1).
        **how
            Other keywords of that function.
        """
        relation: dict[str, Any] = {"neighboring_relation": self.relation}
        found: Epsilon = _accountants.epsilon(self.event(), delta=delta, **relation, **how)
        return found

    def certified(self) -> tuple[DpEvent, str]:
        """Return the event that a certificate is about, and its description in words.

        Raises
        ------
        ValueError
            If a number that the sampler needs was left out.
        """
        if self.sampler != "random-allocation" or self.relation != "replace-one":
            return self.event(), str(self)
        # Hockey-stick divergences are jointly convex: a mixture of runs is no easier to tell apart
        # from a run, or from a mixture with the same shares, than the worst of these runs.
        (sigma,) = self.known("noise_multiplier")
        known = _events.SelfComposedDpEvent(_events.GaussianDpEvent(sigma), self.passes)
        return known, (
            "a run that also tells in which batch of a pass each record is. The upper bound holds "
            f"for {self}, which it dominates"
        )

    def solved(self, *, epsilon: float, delta: float, accountant: str = "auto") -> SampledRun:
        """Return the run with the number that was left out, which meets (epsilon, delta).

        Parameters
        ----------
        epsilon
            Target epsilon > 0.
        delta
            Target delta in (0, 1).
        accountant
            Accountant whose epsilon must meet the target, where the noise is solved for.

        Raises
        ------
        ValueError
            If not exactly one is left out of the noise multiplier, the number of steps (or of
            passes) and the sampling probability.
        DpcalError
            If no theorem covers the run under its neighboring relation, or nothing meets the
            target.
        """
        name = self.left_out
        how: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        how["neighboring_relation"] = self.relation
        if name == "noise_multiplier":
            how["accountant"] = accountant
        elif accountant != "auto":
            raise ValueError(f"accountant is for solving for the noise, got {accountant!r}.")
        solve = getattr(_noise, "steps" if name == "epochs" else name)
        value = solve(lambda each: replace(self, **{name: each}).event(), **how)
        return replace(self, **{name: value})

    def plan(self, *, epsilon: float, delta: float, **how: Any) -> Plan:
        """Return the plan of DP-SGD on these batches, with noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon
            Target epsilon > 0.
        delta
            Target delta in (0, 1).
        **how
            Other keywords of :func:`dpcal.calibrate.dpsgd`.

        Raises
        ------
        ValueError
            If a size is missing, or DP-SGD has no such sampler.
        """
        if self.sampler not in PLANNED or self.noise_multiplier is not None:
            raise ValueError(
                f"sampler must be one of {', '.join(PLANNED)} for a plan, whose noise is solved "
                f"for, got {self.sampler!r} and noise_multiplier={self.noise_multiplier!r}."
            )
        self.known("n", "length")
        whole = self.sampler != "poisson" and self.epochs is not None
        length = {"epochs": float(self.epochs or 0)} if whole else {"steps": self.length}
        sizes = {"n": self.n, "batch_size": self.batch_size, "sampler": self.sampler, **length}
        target = {"epsilon": epsilon, "delta": delta, "neighboring_relation": self.relation}
        plan: Plan = _dpsgd.dpsgd(**sizes, **target, **how)
        return plan

    @property
    def left_out(self) -> str:
        """The name of the one number that was left out, to be solved for."""
        steps = "steps" if self.sampler in _BY_STEPS else "epochs"
        values = {
            "noise_multiplier": self.noise_multiplier,
            steps: self.steps or self.epochs,
            "sampling_probability": self.rate,
        }
        names = [name for name, value in values.items() if value is None]
        if len(names) != 1:
            raise ValueError(
                "noise_multiplier, steps (or epochs) and sampling_probability (or n and "
                f"batch_size): exactly one must be left out, to be solved for, but {len(names)} "
                "are."
            )
        if names == ["sampling_probability"] and self.sampler != "poisson":
            raise ValueError(f"sampler={self.sampler!r} needs n and batch_size.")
        return names[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        values: dict[str, Any] = {"sampler": self.sampler}
        if self.rate is not None:
            values["sampling_probability"] = rate_of(self.rate)
            values["exact_sampling_probability"] = str(self.rate)
        values |= {
            "noise_multiplier": self.noise_multiplier,
            "steps": self.length,
            "n": self.n,
            "batch_size": self.batch_size,
            "epochs": None if self.epochs is None else float(self.epochs),
        }
        return {name: value for name, value in values.items() if value is not None}

    def __str__(self) -> str:
        batches = RUN_SAMPLERS[self.sampler].says.format(run=self)
        return f"Gaussian noise of {self.noise_multiplier!r} clipping norms on {batches}"


_GIVEN_BY = {
    "rate": "sampling_probability (or n and batch_size)",
    "n": "n and batch_size",
    "batch_size": "n and batch_size",
    "length": "steps (or epochs)",
    "noise_multiplier": "noise_multiplier",
}
_BY_STEPS = ("poisson", "without-replacement", "with-replacement")


@dataclass(frozen=True)
class _Sampler:
    """A way to draw batches.

    Parameters
    ----------
    event
        Function from a run to its event.
    relation
        Neighboring relation of a claim, unless another one is given.
    assumes
        Property of the running code that the claim needs.
    says
        Description of a batch, as a format of ``run``.
    """

    event: Callable[[SampledRun], DpEvent]
    relation: Relation
    assumes: str
    says: str


def _poisson(run: SampledRun) -> DpEvent:
    rate, sigma, steps = run.known("rate", "noise_multiplier", "length")
    return _events.dpsgd(sampling_probability=rate_of(rate), noise_multiplier=sigma, steps=steps)


def _drawn(kind: str, run: SampledRun) -> DpEvent:
    n, sigma, steps = run.known("n", "noise_multiplier", "length")
    batch = getattr(_events, kind)(n, run.batch_size, _events.GaussianDpEvent(sigma))
    return _events.SelfComposedDpEvent(batch, steps)


def _shuffled(run: SampledRun) -> DpEvent:
    (sigma,) = run.known("noise_multiplier")
    full = run.full_batches
    return _events.ShuffledEpochsDpEvent(
        sigma, batches=full, epochs=run.passes, remainder=full < run.batches
    )


def _allocated(run: SampledRun) -> DpEvent:
    (sigma,) = run.known("noise_multiplier")
    return _events.SelfComposedDpEvent(
        _events.RandomAllocationDpEvent(sigma, run.batches), run.passes
    )


RUN_SAMPLERS: Mapping[Sampler, _Sampler] = MappingProxyType(
    {
        "poisson": _Sampler(
            _poisson,
            "add-or-remove-one",
            "every record joins every batch by a coin of its own",
            "{run.length} Poisson samples, which each record joins with probability {run.rate}",
        ),
        "random-allocation": _Sampler(
            _allocated,
            "add-or-remove-one",
            "in every pass each record draws one of the batches, independently of the others",
            "{run.batches} batches a pass, of which each record draws one, in {run.passes} passes",
        ),
        "without-replacement": _Sampler(
            partial(_drawn, "SampledWithoutReplacementDpEvent"),
            "add-or-remove-one",
            "every batch is a fresh uniform set of batch_size records",
            "{run.length} batches of {run.batch_size} distinct records out of {run.n}",
        ),
        "with-replacement": _Sampler(
            partial(_drawn, "SampledWithReplacementDpEvent"),
            "add-or-remove-one",
            "every batch is batch_size independent draws of one record",
            "{run.length} batches of {run.batch_size} draws from {run.n} records",
        ),
        "shuffled-epochs": _Sampler(
            _shuffled,
            "replace-special",
            "every pass cuts a fresh uniform permutation of all records, of a fixed number",
            "shuffled batches, in {run.passes} passes with {run.full_batches} of the largest size",
        ),
    }
)


@dataclass(frozen=True)
class SamplerRow:
    """Cost of a run with one sampler.

    Parameters
    ----------
    run
        The run, with this sampler and its noise.
    assumes
        Property of the running code that the claim needs.
    epsilon
        Epsilon of the run; None where the noise was solved for a target, or no theorem covers
        the run.
    refused
        Reason why there is no answer; empty where there is one.
    """

    run: SampledRun
    assumes: str
    epsilon: Epsilon | None = None
    refused: str = ""


def compare_samplers(
    run: SampledRun,
    *,
    delta: float,
    epsilon: float | None = None,
    samplers: Sequence[Sampler] = tuple(RUN_SAMPLERS),
) -> tuple[SamplerRow, ...]:
    """Return the cost of a run by each way to draw its batches, or the noise for a target.

    Parameters
    ----------
    run
        A run with n, batch_size and length, and with a noise multiplier unless you give an
        epsilon. Its own sampler does not matter.
    delta
        Delta in (0, 1).
    epsilon
        Target > 0, in place of a noise multiplier.
    samplers
        Samplers to compare.

    >>> run = SampledRun(n=6_000, batch_size=600, epochs=3, noise_multiplier=2.0)
    >>> for row in compare_samplers(run, delta=1e-5, samplers=("poisson", "shuffled-epochs")):
    ...     print(row.run.sampler, row.run.relation, f"{row.epsilon.upper:.2f}")
    poisson add-or-remove-one 1.29
    shuffled-epochs replace-special 3.43
    """
    check_target(run, epsilon)
    run.known("rate", "length")
    runs = [replace(run, sampler=each) for each in samplers]
    return tuple(_row(each, epsilon, delta) for each in runs)


def check_target(run: SampledRun, epsilon: object) -> None:
    """Raise ``ValueError`` unless a run has its noise, or a target from which it follows."""
    if (epsilon is None) == (run.noise_multiplier is None):
        raise ValueError(
            "noise_multiplier and epsilon: exactly one must be given, for epsilons or for the "
            "noise that a target needs."
        )


def _row(run: SampledRun, epsilon: float | None, delta: float) -> SamplerRow:
    assumes = RUN_SAMPLERS[run.sampler].assumes
    try:
        if epsilon is not None:
            return SamplerRow(run.solved(epsilon=epsilon, delta=delta), assumes)
        return SamplerRow(run, assumes, run.epsilon(delta=delta))
    except DpcalError as error:
        return SamplerRow(run, assumes, refused=str(error))


def run_of_values(told: Mapping[str, Any]) -> SampledRun:
    """Return the run of values that :func:`values_of_run` returned.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the values are of another origin.
    """
    rate, epochs = _exact(told["rate"]), _exact(told["epochs"])
    found = SampledRun(
        sampler=told["sampler"],
        sampling_probability=rate if told["n"] is None else None,
        n=told["n"],
        batch_size=told["batch_size"],
        steps=told["steps"] if epochs is None else None,
        epochs=epochs,
        noise_multiplier=told["noise_multiplier"],
        neighboring_relation=told["relation"],
    )
    if values_of_run(found) != {name: told[name] for name in values_of_run(found)}:
        raise ValueError(f"values must be those of one run, got {dict(told)!r}.")
    return found


def _exact(told: str | None) -> Fraction | None:
    """Return a written fraction; one such as 1e999999999, which would take the memory, is none."""
    if told is not None and not re.fullmatch(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?", told):
        raise ValueError(f"fraction must be digits, or a quotient of digits, got {told!r}.")
    return None if told is None else Fraction(told)


def values_of_run(run: SampledRun) -> dict[str, Any]:
    """Return all that a run was given as JSON values, which certificates keep."""
    names = ("sampler", "n", "batch_size", "noise_multiplier", "relation")
    exact = {
        "rate": run.rate,
        "epochs": None if run.epochs is None else Fraction(run.epochs),
    }
    values = {name: None if value is None else str(value) for name, value in exact.items()}
    return {**{name: getattr(run, name) for name in names}, "steps": run.length, **values}
