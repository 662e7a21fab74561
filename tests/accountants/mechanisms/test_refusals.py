"""No refusal by one accountant says that nothing prices an event that accountant 'auto' prices."""

import pytest

import dpcal
from dpcal import accountants
from dpcal.accountants import events
from dpcal.accountants.correlated import BallsInBins, CyclicPoisson, Poisson
from dpcal.accountants.matrix import Banded, Identity, LambdaCGD
from dpcal.errors import BackendRefused, UnsupportedEvent

RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")
GAUSSIAN, LAPLACE = events.GaussianDpEvent(2.0), events.LaplaceDpEvent(2.0)
CORRELATED = events.CorrelatedGaussianDpEvent
EVENTS = [
    CORRELATED(Identity(20), Poisson(0.05), 2.0),
    CORRELATED(LambdaCGD(12, 0.5), Poisson(0.1), 2.0, draws=1024, seed=1),
    CORRELATED(Banded(6, 2), BallsInBins(3), 3.0, draws=1024, seed=1),
    CORRELATED(Banded(20, 4), CyclicPoisson(5, 0.5), 3.0),
    events.ShuffledEpochsDpEvent(3.0, 5, 1),
    events.ComposedDpEvent([events.ShuffledEpochsDpEvent(3.0, 5, 1), GAUSSIAN]),
    events.RandomAllocationDpEvent(2.0, 5),
    events.UnequalAllocationDpEvent(((2.0, 5, 0.8), (2.0, 1, 0.2))),
    events.AllocatedDpEvent(events.DiscreteLaplaceDpEvent(0.5, 1), 2),
    events.AllocatedDpEvent(events.EpsilonDeltaDpEvent(0.5, 0.0), 2),
    events.ZCDpEvent(0.1),
    events.RepeatAndSelectDpEvent(GAUSSIAN, 3.0, 0.0),
    events.SingleEpochTreeAggregationDpEvent(2.0, 20),
    events.RandomizedResponseDpEvent(0.5, 4),
    events.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0], [0.5, 0.5]),
    events.PoissonSampledDpEvent(0.1, events.ZCDpEvent(0.1)),
    events.SampledWithReplacementDpEvent(10, 2, LAPLACE),
    events.SampledWithoutReplacementDpEvent(10, 2, events.ExponentialMechanismDpEvent(0.5)),
    events.LastIterateDpEvent(2.0, 10),
    events.UnsupportedDpEvent(),
]


def answered(event, relation, accountant):
    """Return the answer, or the text of the refusal."""
    how = {"neighboring_relation": relation, "accountant": accountant}
    try:
        return dpcal.epsilon(event, delta=1e-5, **how)
    except (UnsupportedEvent, BackendRefused) as error:
        return str(error)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_refusal_by_one_accountant_says_whether_auto_answers(event, relation):
    auto = answered(event, relation, "auto")
    others = {name: answered(event, relation, name) for name in accountants.ACCOUNTANTS[1:]}
    for text in [each for each in others.values() if isinstance(each, str)]:
        assert text.rstrip().endswith(".")
        if isinstance(auto, str):
            assert "Only accountant 'auto'" not in text
        else:
            assert "No theorem" not in text
    if not isinstance(auto, str) and all(isinstance(each, str) for each in others.values()):
        assert all("accountant 'auto' prices" in text for text in others.values())


def test_correlated_noise_beside_another_mechanism_is_refused_truly():
    event = events.ComposedDpEvent([EVENTS[0], GAUSSIAN])
    with pytest.raises(UnsupportedEvent, match="as a whole run, alone and not in a composition"):
        dpcal.epsilon(event, delta=1e-5)
