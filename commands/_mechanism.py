"""What is run, as commands are told it: a sampler, its sizes, the noise, and the event of it all.

Sizes are exact: ``512/60000`` and ``0.3`` are fractions, and the double that stands for a rate is
never below it, so that no price is too small.

>>> run = Mechanism.of(sampler="shuffled-epochs", n=60_000, batch_size=512, epochs=Fraction(100),
...                    noise_multiplier=0.8)
>>> run.event()
ShuffledEpochsDpEvent(noise_multiplier=0.8, batches=117, epochs=100, remainder=True)
>>> run.relation
'replace-special'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal.commands._shared import Relation

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

__all__ = ["SAMPLERS", "Mechanism", "Sampler", "noise_of", "rate_of"]

ADD_OR_REMOVE, ZERO_OUT = "add-or-remove-one", "replace-special"
REPLACE_ONE = "replace-one"
Sampler = Literal[
    "poisson", "random-allocation", "without-replacement", "with-replacement", "shuffled-epochs"
]


def rate_of(exact: Fraction) -> float:
    """Return the smallest double that is not below a rate: a larger rate costs no less.

    >>> rate_of(Fraction(3, 10)), rate_of(Fraction(1, 2))
    (0.30000000000000004, 0.5)
    """
    nearest = exact.numerator / exact.denominator
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


@dataclass(frozen=True)
class Mechanism:
    """A run of Gaussian noise on batches, whose parameters may be known in part.

    Parameters
    ----------
    sampler
        A key of ``SAMPLERS``.
    n, batch_size
        Numbers of records, and of records in a batch; None where they were not told.
    rate
        The exact sampling probability, or None.
    steps
        Number of steps, or None.
    epochs
        Passes over the records, rounded up, or None.
    noise_multiplier
        Or None.
    relation
        The neighboring relation that was told, or the sampler's own.
    """

    sampler: str
    n: int | None
    batch_size: int | None
    rate: Fraction | None
    steps: int | None
    epochs: Fraction | None
    noise_multiplier: float | None
    relation: str

    @classmethod
    def of(
        cls,
        *,
        sampler: Sampler = "poisson",
        sampling_probability: Fraction | None = None,
        n: int | None = None,
        batch_size: int | None = None,
        steps: int | None = None,
        epochs: Fraction | None = None,
        noise_multiplier: float | None = None,
        neighboring_relation: Relation | None = None,
    ) -> Mechanism:
        """Return a run of Gaussian noise on sampled batches, as it is told.

        Parameters
        ----------
        sampler
            How batches are drawn.
        sampling_probability
            Probability in (0, 1] that a record joins a step: an exact decimal or fraction.
        n
            Number of records, public.
        batch_size
            (Expected) batch, in [1, n].
        steps
            Number of steps >= 1.
        epochs
            Passes > 0, instead of steps.
        noise_multiplier
            Standard deviation > 0 of the noise, in units of the clipping norm.
        neighboring_relation
            What neighbors differ by (default: the sampler's own).

        Raises
        ------
        ValueError
            If a size is out of range, or is told twice.
        """
        rate, batch = sampling_probability, batch_size
        if (n is None) != (batch is None):
            raise ValueError("--n and --batch-size go together: give both or neither.")
        if rate is not None and n is not None:
            raise ValueError(
                "--n and --batch-size stand for the sampling probability: omit "
                "--sampling-probability."
            )
        if steps is not None and epochs is not None:
            raise ValueError("Exactly one of --steps and --epochs may be given.")
        if n is not None and batch is not None:
            if not 1 <= batch <= n:
                raise ValueError(f"batch_size must be in [1, n={n}], got {batch}.")
            rate = Fraction(batch, n)
        if rate is not None and not 0 < rate <= 1:
            raise ValueError(f"sampling_probability must be a number in (0, 1], got {rate}.")
        if epochs is not None and epochs <= 0:
            raise ValueError(f"epochs must be a number > 0, got {epochs}.")
        if epochs is not None and rate is not None:
            steps = math.ceil(epochs / rate)
        relation = neighboring_relation or SAMPLERS[sampler].relation
        return cls(sampler, n, batch, rate, steps, epochs, noise_multiplier, relation)

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
        (steps,) = self.known("steps")
        count: int = -(-steps // self.batches)
        return count

    def event(self, **instead: Any) -> DpEvent:
        """Return the event of the run, with parameters replaced by name.

        Raises
        ------
        ValueError
            If a parameter that the sampler needs is missing.
        """
        return SAMPLERS[self.sampler].event(replace(self, **instead))

    def certified(self) -> tuple[DpEvent, str]:
        """Return the event that a certificate is about, and what it is about in words.

        Raises
        ------
        ValueError, UnsupportedEvent
            If a parameter that the sampler needs is missing, or no proof covers the run.
        """
        sampler = SAMPLERS[self.sampler]
        if sampler.dominated is None:
            return self.event(), self.sentence()
        event, words = sampler.dominated(self)
        if not words:
            return event, self.sentence()
        return event, f"{words}. The upper bound holds for {self.sentence()}, which it dominates"

    def told(self) -> dict[str, Any]:
        """Return all parameters as JSON values, from which :meth:`again` reads them."""
        values = vars(self)
        exact = {name: None if values[name] is None else str(values[name]) for name in _EXACT}
        return values | exact

    @classmethod
    def again(cls, told: Mapping[str, Any]) -> Mechanism:
        """Return the run of the values that :meth:`told` returned.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it did not write this.
        """
        values = {each.name: told[each.name] for each in fields(cls)}
        if values["sampler"] not in SAMPLERS:
            raise ValueError(f"sampler must be one of {sorted(SAMPLERS)}.")
        exact = {name: None if values[name] is None else Fraction(values[name]) for name in _EXACT}
        return cls(**values | exact)

    def to_dict(self) -> dict[str, Any]:
        """Return what is run as JSON values."""
        values: dict[str, Any] = {"sampler": self.sampler}
        if self.rate is not None:
            values["sampling_probability"] = rate_of(self.rate)
            values["exact_sampling_probability"] = str(self.rate)
        values |= {name: getattr(self, name) for name in _TOLD}
        if self.epochs is not None:
            values["epochs"] = float(self.epochs)
        return {name: value for name, value in values.items() if value is not None}

    def sentence(self) -> str:
        """Return what is run, in words."""
        batches = SAMPLERS[self.sampler].says.format(run=self)
        return f"Gaussian noise of {self.noise_multiplier!r} clipping norms on {batches}"

    def known(self, *names: str) -> tuple[Any, ...]:
        """Return these parameters; raise ``ValueError`` with the options that give missing ones."""
        missing = {_OPTIONS[name]: None for name in names if getattr(self, name) is None}
        if missing:
            raise ValueError(f"--sampler {self.sampler} needs {' and '.join(missing)}.")
        return tuple(getattr(self, name) for name in names)


# Fractions, which are written as texts.
_EXACT = ("rate", "epochs")
_TOLD = ("noise_multiplier", "steps", "n", "batch_size")
_OPTIONS = {
    "rate": "--sampling-probability (or --n and --batch-size)",
    "n": "--n and --batch-size",
    "batch_size": "--n and --batch-size",
    "steps": "--steps (or --epochs)",
    "noise_multiplier": "--noise-multiplier",
}


# -- samplers


@dataclass(frozen=True)
class _Sampler:
    """A way to draw batches, for commands.

    Parameters
    ----------
    event
        From what was told to an event.
    relation
        The neighboring relation that a claim is for, unless another one is asked.
    assumes
        What must be true of the code that runs, for the claim to hold.
    says
        What a batch is, in words, as a format of ``run``.
    dominated
        From what was told to an event that is certified in place of the run's, because it dominates
        it, and what it stands for, in words, which are empty if it is the run itself. None where
        the run's own event is certified.
    """

    event: Callable[[Mechanism], DpEvent]
    relation: str
    assumes: str
    says: str
    dominated: Callable[[Mechanism], tuple[DpEvent, str]] | None = None


def _poisson(run: Mechanism) -> DpEvent:
    rate, sigma, steps = run.known("rate", "noise_multiplier", "steps")
    return dpcal.accountants.events.dpsgd(
        sampling_probability=rate_of(rate), noise_multiplier=sigma, steps=steps
    )


def _drawn(kind: str, run: Mechanism) -> DpEvent:
    events = dpcal.accountants.events
    n, sigma, steps = run.known("n", "noise_multiplier", "steps")
    batch = getattr(events, kind)(n, run.batch_size, events.GaussianDpEvent(sigma))
    return events.SelfComposedDpEvent(batch, steps)


def _shuffled(run: Mechanism) -> DpEvent:
    (sigma,) = run.known("noise_multiplier")
    full = run.full_batches
    return dpcal.accountants.events.ShuffledEpochsDpEvent(
        sigma, batches=full, epochs=run.passes, remainder=full < run.batches
    )


def _allocated(run: Mechanism) -> DpEvent:
    (sigma,) = run.known("noise_multiplier")
    events = dpcal.accountants.events
    epoch = events.RandomAllocationDpEvent(sigma, run.batches)
    return events.SelfComposedDpEvent(epoch, run.passes)


def _allocated_or_told(run: Mechanism) -> tuple[DpEvent, str]:
    return (_allocated(run), "") if run.relation != REPLACE_ONE else _told_batches(run)


def _told_batches(run: Mechanism) -> tuple[DpEvent, str]:
    # A mixture of runs against one run, or against a mixture of the same shares, is no easier to
    # tell apart than the worst of them: hockey-stick divergences are jointly convex.
    (sigma,) = run.known("noise_multiplier")
    events = dpcal.accountants.events
    told = events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), run.passes)
    return told, "a run that also tells in which batch of a pass each record is"


SAMPLERS: Mapping[str, _Sampler] = MappingProxyType(
    {
        "poisson": _Sampler(
            _poisson,
            ADD_OR_REMOVE,
            "every record joins every batch by a coin of its own",
            "{run.steps} Poisson samples, which each record joins with probability {run.rate}",
        ),
        "random-allocation": _Sampler(
            _allocated,
            ADD_OR_REMOVE,
            "in every pass each record draws one of the batches, independently of the others",
            "{run.batches} batches a pass, of which each record draws one, in {run.passes} passes",
            _allocated_or_told,
        ),
        "without-replacement": _Sampler(
            partial(_drawn, "SampledWithoutReplacementDpEvent"),
            ADD_OR_REMOVE,
            "every batch is a fresh uniform set of batch_size records",
            "{run.steps} batches of {run.batch_size} distinct records out of {run.n}",
        ),
        "with-replacement": _Sampler(
            partial(_drawn, "SampledWithReplacementDpEvent"),
            ADD_OR_REMOVE,
            "every batch is batch_size independent draws of one record",
            "{run.steps} batches of {run.batch_size} draws from {run.n} records",
        ),
        "shuffled-epochs": _Sampler(
            _shuffled,
            ZERO_OUT,
            "every pass cuts a fresh uniform permutation of all records, of a fixed number",
            "shuffled batches, in {run.passes} passes with {run.full_batches} of the largest size",
        ),
    }
)


def noise_of(told: Mechanism, *, epsilon: float, delta: float, accountant: str = "auto") -> float:
    """Return a noise multiplier at which a run costs no more than a target.

    Parameters
    ----------
    told
        The run, whose own noise multiplier has no say.
    epsilon, delta
        The target.
    accountant
        By whose epsilon the target is met.

    Raises
    ------
    DpcalError
        If no theorem prices the run under its neighboring relation.
    ValueError
        If the accountant gives no answer.

    >>> run = Mechanism("random-allocation", 512, 512, Fraction(1), None, Fraction(1), None,
    ...                 "replace-special")
    >>> round(noise_of(run, epsilon=4.377178, delta=1e-5), 5)  # one Gaussian answer: mu = 1
    1.0
    """
    target: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "neighboring_relation": told.relation,
    }

    def event_of(sigma: float) -> Any:
        return told.event(noise_multiplier=sigma)

    return float(dpcal.calibrate.noise_multiplier(event_of, **target, accountant=accountant))
