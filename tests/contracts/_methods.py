"""Every way of ours to answer epsilon and delta, behind one small interface.

A method answers for a run: ``count`` Gaussian mechanisms with a noise multiplier, on Poisson
samples where it prices these. What it promises, and how tightly, is data; the suite asks all alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix


@dataclass(frozen=True)
class Run:
    """What is priced: ``count`` steps with a noise multiplier, each on a Poisson sample."""

    noise_multiplier: float = 2.0
    sampling_probability: float = 0.2
    count: int = 16

    @property
    def event(self) -> Any:
        """The run as an event."""
        return events.dpsgd(
            sampling_probability=self.sampling_probability,
            noise_multiplier=self.noise_multiplier,
            steps=self.count,
        )

    @property
    def mu(self) -> float:
        """The run as one Gaussian mechanism, where every record takes part in every step."""
        return math.sqrt(self.count) / self.noise_multiplier


def of(answer: Any) -> tuple[float, float]:
    """Return both ends of an answer."""
    return float(answer.lower), float(answer.upper)


@dataclass(frozen=True)
class Method:
    """One way to answer both questions, and what is promised of it.

    Attributes
    ----------
    name
        As tests are called.
    epsilon, delta
        Take a run and the other parameter.
    run
        A run that the method prices.
    samples
        Whether it prices sampling.
    gap
        How far, relatively, epsilon(delta(e)) may be above e, and the logarithm of
        delta(epsilon(d)) above that of d: what separates two questions to one bound.
    """

    name: str
    epsilon: Callable[[Run, float], tuple[float, float]]
    delta: Callable[[Run, float], tuple[float, float]]
    run: Run = field(default_factory=Run)
    samples: bool = True
    gap: float = 1e-6

    def __str__(self) -> str:
        return self.name


def asked(name: str, event: Any, options: Any = MappingProxyType({}), **promises: Any) -> Method:
    """Return the method that asks for the event of a run."""
    return Method(
        name,
        cache(lambda run, at: of(accountants.epsilon(event(run), delta=at, **options))),
        cache(lambda run, at: of(accountants.delta(event(run), epsilon=at, **options))),
        **promises,
    )


def accountant(name: str, **promises: Any) -> Method:
    """Return an accountant of the interface, by its name."""
    options = {"accountant": name, **promises.pop("options", {})}
    return asked(name, lambda run: run.event, options, **promises)


def whole_run(name: str, sampler: Callable[[float], Any], decay: float, **promises: Any) -> Method:
    """Return a run of correlated noise: lambda-CGD with this decay, 0 for independent steps."""

    def event(run: Run) -> Any:
        return events.CorrelatedGaussianDpEvent(
            matrix.LambdaCGD(run.count, decay),
            sampler(run.sampling_probability),
            run.noise_multiplier,
            statistics="none",
        )

    return asked(name, event, **promises)


METHODS = (
    accountant("characteristic"),
    accountant("renyi"),
    accountant("pld", options={"interval": 1e-3}, gap=1e-4),
    # Two answers of prv-accountant are each within its error in epsilon of the truth.
    accountant("prv", options={"eps_error": 0.05}, gap=0.5),
    # Certificates are slow: a run of few steps.
    Method(
        "certificate",
        cache(lambda run, at: of(accountants.certify(run.event, delta=at))),
        cache(lambda run, at: of(accountants.certify(run.event, epsilon=at))),
        run=Run(count=4),
        gap=1e-3,
    ),
    whole_run(
        "correlated, exact",
        lambda q: correlated.CyclicPoisson(bands=2, sampling_probability=q),
        0.0,
    ),
    whole_run("correlated, long memory", correlated.Poisson, 0.5, run=Run(noise_multiplier=6.0)),
)
