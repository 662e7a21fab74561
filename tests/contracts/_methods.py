"""Every way of ours to answer epsilon and delta, behind one small interface.

A method answers for a run: ``count`` Gaussian mechanisms with a noise multiplier, on Poisson
samples where it prices these. What it promises, and how tightly, is data; the suite asks all alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.curves import conversions

RELATION = "add-or-remove-one"


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


@dataclass(frozen=True)
class Interval:
    """An answer: between which bounds it is, and the neighboring relation that it names."""

    lower: float
    upper: float
    relation: str | None = RELATION

    @staticmethod
    def of(answer: Any) -> Interval:
        """The interval of one of the package's answers."""
        return Interval(answer.lower, answer.upper, answer.neighboring_relation)


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
    refuses
        Events that the method must refuse, and what of each the refusal names.
    """

    name: str
    epsilon: Callable[[Run, float], Interval]
    delta: Callable[[Run, float], Interval]
    run: Run = field(default_factory=Run)
    samples: bool = True
    gap: float = 1e-6
    refuses: tuple[tuple[Any, str], ...] = ()

    def __str__(self) -> str:
        return self.name


UNPRICED = events.UnsupportedDpEvent(), "UnsupportedDpEvent"
# Of zCDP only Renyi divergences are known, so accountants that need a law refuse that loss.
ZCDP = events.ZCDpEvent(0.1), "rho=0.1"


def accountant(name: str, **promises: Any) -> Method:
    """An accountant of the interface, by its name."""
    options = promises.pop("options", {})

    def epsilon(run: Any, delta: float) -> Interval:
        event = getattr(run, "event", run)
        return Interval.of(accountants.epsilon(event, delta=delta, accountant=name, **options))

    def delta(run: Any, epsilon: float) -> Interval:
        event = getattr(run, "event", run)
        return Interval.of(accountants.delta(event, epsilon=epsilon, accountant=name, **options))

    return Method(name, epsilon, delta, **promises)


def account(name: str) -> Method:
    """A growing account, asked through its own methods."""

    def filled(run: Run) -> accountants.Account:
        step = replace(run, count=1).event
        return accountants.Account().compose(step, run.count)

    return Method(
        name,
        lambda run, delta: Interval.of(filled(run).epsilon(delta)),
        lambda run, epsilon: Interval.of(filled(run).delta(epsilon)),
    )


def certificates() -> Method:
    """Certificates, which are slow: a run of few steps."""

    def certified(event: Any, **target: float) -> Interval:
        found = accountants.certify(event, **target)
        return Interval(float(found.lower), float(found.upper), found.neighboring_relation)

    return Method(
        "certificate",
        lambda run, delta: certified(getattr(run, "event", run), delta=delta),
        lambda run, epsilon: certified(getattr(run, "event", run), epsilon=epsilon),
        run=Run(count=4),
        gap=1e-3,
        refuses=(UNPRICED, ZCDP),
    )


def claim(name: str, parameter: Callable[[Run], float], **options: float) -> Method:
    """A conversion of a claim, such as rho-zCDP, of Gaussian mechanisms without sampling."""
    epsilon = getattr(conversions, f"epsilon_from_{name}")
    delta = getattr(conversions, f"delta_from_{name}")
    return Method(
        f"conversion of {name}",
        lambda run, at: Interval(0.0, epsilon(parameter(run), delta=at, **options), None),
        lambda run, at: Interval(0.0, delta(parameter(run), epsilon=at, **options), None),
        run=Run(noise_multiplier=8.0, sampling_probability=1.0),
        samples=False,
    )


def whole_run(name: str, sampler: Callable[[float], Any], decay: float, **promises: Any) -> Method:
    """A run of correlated noise: lambda-CGD with this decay, 0 for independent steps."""

    def event(run: Run) -> Any:
        return events.CorrelatedGaussianDpEvent(
            matrix.LambdaCGD(run.count, decay),
            sampler(run.sampling_probability),
            run.noise_multiplier,
            statistics="none",
        )

    return Method(
        name,
        lambda run, delta: Interval.of(accountants.epsilon(event(run), delta=delta)),
        lambda run, epsilon: Interval.of(accountants.delta(event(run), epsilon=epsilon)),
        **promises,
    )


# Two answers of prv-accountant are each within its error in epsilon of the truth.
_PRV_ERROR = 0.05

METHODS = (
    accountant("characteristic", refuses=(UNPRICED, ZCDP)),
    accountant("renyi", refuses=(UNPRICED,)),
    accountant("pld", options={"interval": 1e-3}, refuses=(UNPRICED, ZCDP), gap=1e-4),
    accountant("prv", options={"eps_error": _PRV_ERROR}, refuses=(UNPRICED, ZCDP), gap=0.5),
    account("account"),
    certificates(),
    claim("zcdp", lambda run: run.mu**2 / 2),
    claim("gdp", lambda run: run.mu),
    claim("renyi", lambda run: 10 * run.mu**2 / 2, order=10.0),
    whole_run(
        "correlated, exact",
        lambda q: correlated.CyclicPoisson(bands=2, sampling_probability=q),
        0.0,
    ),
    whole_run("correlated, conditional", correlated.Poisson, 0.5, run=Run(noise_multiplier=6.0)),
)
