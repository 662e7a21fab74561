"""Every event is priced or refused with its reason, and the documents say which."""

import re

import pytest
from _tree import ROOT
from dp_accounting import dp_event

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.interface import has_bracket
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.errors import UnsupportedEvent

DOCUMENT = ROOT / "docs" / "accountants.md"

GAUSSIAN = events.GaussianDpEvent(1.0)

# One example of each class of events.
EXAMPLES = [
    events.NoOpDpEvent(),
    events.NonPrivateDpEvent(),
    events.UnsupportedDpEvent(),
    events.RandomizedResponseDpEvent(0.5, 3),
    GAUSSIAN,
    events.LaplaceDpEvent(1.0),
    events.DiscreteLaplaceDpEvent(0.5, 1),
    events.DiscreteGaussianDpEvent(1.0, 1),
    events.EpsilonDeltaDpEvent(0.5, 1e-6),
    accountants.from_pmf([0.6, 0.4], [0.4, 0.6]),
    events.ExponentialMechanismDpEvent(0.5),
    events.PermuteAndFlipDpEvent(0.5),
    events.RandomAllocationDpEvent(1.0, 10),
    events.UnequalAllocationDpEvent(((1.0, 3, 0.9), (2.0, 1, 0.1))),
    events.ExchangedRowsDpEvent(1.0, (0.0, 2.0), (0.9, 0.1)),
    events.AllocatedDpEvent(events.LaplaceDpEvent(1.0), 3),
    events.ShuffledEpochsDpEvent(10.0, 10, 1),
    events.LastIterateDpEvent(2.0, 60, 0.9),
    events.AboveThresholdDpEvent(8.0, 16.0),
    events.GaussianAboveThresholdDpEvent(8.0, 16.0, 20),
    events.ReportNoisyMaxDpEvent(8.0),
    events.SelfComposedDpEvent(GAUSSIAN, 2),
    events.ComposedDpEvent([GAUSSIAN, events.LaplaceDpEvent(1.0)]),
    events.PoissonSampledDpEvent(0.1, GAUSSIAN),
    events.SampledWithReplacementDpEvent(10, 2, GAUSSIAN),
    events.SampledWithoutReplacementDpEvent(10, 2, GAUSSIAN),
    events.SingleEpochTreeAggregationDpEvent(1.0, [3, 4]),
    events.RepeatAndSelectDpEvent(GAUSSIAN, 3.0, 1.0),
    events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]),
    events.ZCDpEvent(0.5),
    events.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0),
    events.CorrelatedGaussianDpEvent(
        matrix.LambdaCGD(steps=10, decay=0.5), correlated.Poisson(0.1), 1.0, draws=2000, seed=0
    ),
]


def classes(root):
    """A class and all classes below it."""
    return {root} | {found for child in root.__subclasses__() for found in classes(child)}


def test_there_is_an_example_of_every_event():
    known = {type(example) for example in EXAMPLES}
    modules = (dp_event.__name__, events.__name__)
    missing = {c for c in classes(dp_event.DpEvent) if c.__module__ in modules} - known
    assert missing == {dp_event.DpEvent}


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_every_event_is_priced_or_refused_in_sentences(event, relation):
    refusal = None
    try:
        answer = accountants.epsilon(event, delta=1e-5, neighboring_relation=relation)
    except UnsupportedEvent as error:
        refusal = str(error)
    if refusal is None:
        assert 0 <= answer.lower <= answer.upper
        assert (answer.upper < float("inf")) == (not isinstance(event, events.NonPrivateDpEvent))
    else:
        form = r"No theorem here prices .* under neighboring relation '.*'\.( .*\.)?"
        assert re.fullmatch(form, refusal, re.DOTALL)
        assert relation in refusal


def rows():
    """Cells of the documented table, by event."""
    lines = DOCUMENT.read_text().splitlines()
    start = lines.index("| event | " + " | ".join(RELATIONS) + " | by |")
    found = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[name.strip("`")] = cells
    return found


def verdict_of(event, relation):
    """What an event has: a law ("yes"), a bracket, Renyi divergences alone, or none ("refused")."""
    if has_bracket(event, relation):
        return "a bracket"
    try:
        if isinstance(event, events.CorrelatedGaussianDpEvent | events.ShuffledEpochsDpEvent):
            accountants.epsilon(event, delta=1e-5, neighboring_relation=relation)
            return "yes"
        return "yes" if decompose(event, relation).has_law else "Renyi"
    except UnsupportedEvent:
        return "refused"


def test_the_documented_table_is_true():
    table = rows()
    for event in EXAMPLES:
        name = type(event).__name__
        assert name in table, f"docs/accountants.md has no row for {name}"
        for relation, cell in zip(RELATIONS, table[name], strict=False):
            verdict = verdict_of(event, relation)
            assert cell.split(",")[0] == verdict, f"{name} under {relation}: {verdict}"
    assert set(table) == {type(event).__name__ for event in EXAMPLES}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "event",
    [
        events.PoissonSampledDpEvent(0.0, GAUSSIAN),
        events.SelfComposedDpEvent(events.PoissonSampledDpEvent(0.0, GAUSSIAN), 100),
        events.PoissonSampledDpEvent(0.5, events.PoissonSampledDpEvent(0.0, GAUSSIAN)),
        events.TruncatedSubsampledGaussianDpEvent(100, 0.0, 20, 1.0),
    ],
)
def test_a_record_that_is_never_sampled_costs_nothing(event, relation):
    assert accountants.epsilon(event, delta=1e-9, neighboring_relation=relation).upper == 0
    assert accountants.delta(event, epsilon=0.0, neighboring_relation=relation).upper == 0
    both = events.ComposedDpEvent([event, events.GaussianDpEvent(3.0)])
    alone = accountants.epsilon(
        events.GaussianDpEvent(3.0), delta=1e-9, neighboring_relation=relation
    )
    assert accountants.epsilon(both, delta=1e-9, neighboring_relation=relation) == alone


@pytest.mark.parametrize(
    ("parameter", "sensitivity"),
    [(0.0, 1), (-1.0, 1), (float("inf"), 1), (float("nan"), 1), (1e308, 10), (1e11, 11), (1.0, 0)],
)
def test_discrete_laplace_noise_out_of_range_is_refused(parameter, sensitivity):
    event = events.DiscreteLaplaceDpEvent(parameter, sensitivity)
    for sampled in (event, events.PoissonSampledDpEvent(0.5, event)):
        with pytest.raises(ValueError, match=r"must be .*, got"):
            accountants.epsilon(sampled, delta=1e-6)
