"""One small event of every class, its answers, and what the page of mechanisms says of it."""

import functools
import math
import tomllib
from fractions import Fraction

import numpy as np
from _tree import DATA, ROOT

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.directions import RELATIONS
from dpcal.errors import BackendRefused, UnsupportedEvent

ADD, REPLACE, SPECIAL = RELATIONS
GAUSSIAN, LAPLACE = events.GaussianDpEvent(1.0), events.LaplaceDpEvent(1.0)
DISCRETE = events.DiscreteLaplaceDpEvent(0.5, 1)

EXAMPLES = [
    events.NoOpDpEvent(),
    events.NonPrivateDpEvent(),
    events.UnsupportedDpEvent(),
    events.RandomizedResponseDpEvent(0.5, 3),
    GAUSSIAN,
    LAPLACE,
    DISCRETE,
    events.DiscreteGaussianDpEvent(1.0, 1),
    events.EpsilonDeltaDpEvent(0.5, 1e-6),
    accountants.from_pmf([0.6, 0.4], [0.4, 0.6]),
    events.ExponentialMechanismDpEvent(0.5),
    events.PermuteAndFlipDpEvent(0.5),
    events.RandomAllocationDpEvent(2.0, 5),
    events.UnequalAllocationDpEvent(((2.0, 5, 0.8), (2.0, 1, 0.2))),
    events.ExchangedRowsDpEvent(1.0, (0.0, 2.0), (0.9, 0.1)),
    events.AllocatedDpEvent(DISCRETE, 2),
    events.ShuffledEpochsDpEvent(3.0, 2, 1),
    events.LastIterateDpEvent(8.0, 60, 0.9),
    events.AboveThresholdDpEvent(8.0, 16.0),
    events.GaussianAboveThresholdDpEvent(8.0, 16.0, 20),
    events.ReportNoisyMaxDpEvent(8.0),
    events.SelfComposedDpEvent(GAUSSIAN, 2),
    events.ComposedDpEvent([GAUSSIAN, LAPLACE]),
    events.PoissonSampledDpEvent(0.1, GAUSSIAN),
    events.SampledWithReplacementDpEvent(10, 2, GAUSSIAN),
    events.SampledWithoutReplacementDpEvent(10, 2, GAUSSIAN),
    events.SingleEpochTreeAggregationDpEvent(1.0, [3, 4]),
    events.RepeatAndSelectDpEvent(GAUSSIAN, 3.0, 1.0),
    events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]),
    events.ZCDpEvent(0.5),
    events.TruncatedSubsampledGaussianDpEvent(20, 0.1, 5, 1.0),
    events.CorrelatedGaussianDpEvent(
        matrix.Banded(6, 2), correlated.CyclicPoisson(3, 0.5), 3.0, draws=1024, seed=1
    ),
]
# Compositions and samples of which only some accountants know a law.
COMPOSED = [
    events.ComposedDpEvent([events.ShuffledEpochsDpEvent(3.0, 2, 1), GAUSSIAN]),
    events.PoissonSampledDpEvent(0.1, events.ZCDpEvent(0.1)),
    events.AllocatedDpEvent(events.EpsilonDeltaDpEvent(0.5, 0.0), 2),
    events.CorrelatedGaussianDpEvent(matrix.Identity(6), correlated.Poisson(0.05), 2.0),
]
ALL = EXAMPLES + COMPOSED
# Expressions of events that are refused or odd, by the name of a table, as the file explains.
WRITTEN = tomllib.loads((DATA / "events.toml").read_text(encoding="utf-8"))
SHORT = {name.removesuffix("DpEvent"): value for name, value in vars(events).items()}
SHORT |= {"from_pmf": accountants.from_pmf, "CORRELATED": EXAMPLES[-1]}
SHORT |= {"np": np, "Fraction": Fraction, "inf": math.inf, "nan": math.nan}


def made(text):
    """Return the event that an expression of the file makes."""
    return eval(text, SHORT)


def documented():
    """Return the cells of the table in ``docs/accountants.md``, by name of event and relation."""
    lines = (ROOT / "docs" / "accountants.md").read_text().splitlines()
    start = lines.index("| event | " + " | ".join(RELATIONS) + " | by |") + 2
    end = lines.index("", start)
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end])
    return {
        (name.strip("`"), relation): cell
        for name, *cells in rows
        for relation, cell in zip(RELATIONS, cells, strict=False)
    }


@functools.cache
def answered(place, relation, accountant="auto"):
    """Return the epsilon of an example at delta = 1e-5, or the text of the refusal."""
    how = {"interval": 1e-3} if accountant == "pld" else {}
    how |= {"neighboring_relation": relation, "accountant": accountant}
    try:
        return accountants.epsilon(ALL[place], delta=1e-5, **how)
    except (UnsupportedEvent, BackendRefused) as error:
        return str(error)


def priced():
    """Yield every example with each of its answers and the first relation that has it."""
    for place, event in enumerate(EXAMPLES):
        seen = {answered(place, relation): relation for relation in reversed(RELATIONS)}
        yield from ((event, r, answer) for answer, r in seen.items() if not isinstance(answer, str))
