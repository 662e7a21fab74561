"""dp-accounting's own behaviour suite, unchanged, for this package's accountants."""

import math
import unittest

import dp_accounting
import numpy as np
import pytest
from dp_accounting import privacy_accountant_test
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpcal.accountants import CharacteristicAccountant, RenyiAccountant, events

RELATIONS = tuple(dp_accounting.NeighboringRelation)


class CharacteristicAccountantTest(privacy_accountant_test.PrivacyAccountantTest):
    def _make_test_accountants(self):
        return [CharacteristicAccountant(relation) for relation in RELATIONS]


class RenyiAccountantTest(privacy_accountant_test.PrivacyAccountantTest):
    def _make_test_accountants(self):
        return [RenyiAccountant(relation) for relation in RELATIONS]


def test_the_suite_is_not_skipped():
    loader = unittest.TestLoader()
    for case in (CharacteristicAccountantTest, RenyiAccountantTest):
        result = loader.loadTestsFromTestCase(case).run(unittest.TestResult())
        assert result.wasSuccessful()
        assert result.testsRun > 10
        assert not result.skipped


def sampled(sigma, steps=100):
    return events.SelfComposedDpEvent(
        events.PoissonSampledDpEvent(0.01, events.GaussianDpEvent(sigma)), steps
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (CharacteristicAccountant, PLDAccountant),
        (RenyiAccountant, lambda: RdpAccountant(np.linspace(10, 40, 301))),
    ],
)
def test_calibrates_inside_dp_accounting(ours, theirs):
    # From [0, 1] upwards: the calibrator asks for the event without noise, too.
    sigma = dp_accounting.calibrate_dp_mechanism(ours, sampled, 1.0, 1e-6, tol=1e-5)
    assert ours().compose(sampled(sigma)).get_epsilon(1e-6) <= 1.0
    assert theirs().compose(sampled(sigma)).get_epsilon(1e-6) == pytest.approx(1.0, rel=3e-3)


def test_no_noise_is_read_as_dp_accounting_reads_it():
    silent = events.GaussianDpEvent(0.0)
    for q, epsilon in ((0.0, 0.0), (0.01, math.inf), (1.0, math.inf)):
        accountant = CharacteristicAccountant().compose(events.PoissonSampledDpEvent(q, silent))
        assert accountant.get_epsilon(0.5 if q else 0) == epsilon, q


def test_delta_zero_asks_for_pure_privacy_and_the_ledger_is_what_was_composed():
    accountant = CharacteristicAccountant("replace-special").compose(events.GaussianDpEvent(1.0))
    assert accountant.neighboring_relation is dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    assert accountant.ledger == events.GaussianDpEvent(1.0)
    assert accountant.get_epsilon(0) == float("inf")
    assert accountant.get_delta(float("inf")) == 0
    assert accountant.get_epsilon(1) == 0
