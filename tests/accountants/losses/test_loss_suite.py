"""The suite that other packages inherit finds losses that break the contract, and no others."""

import pytest

from dpcal.accountants import LossSuite
from dpcal.accountants.losses.discrete import discrete_laplace, pure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

REMOVED, ADDED = (SampledGaussian(0.1, 1.5, side) for side in ("remove", "add"))


GEOMETRIC = discrete_laplace(noise_parameter=0.5, sensitivity=2)


class TestOurs(LossSuite):
    pairs = (
        *((loss, loss) for loss in (Gaussian(2.0), pure(1.0), GEOMETRIC)),
        (REMOVED, ADDED),
    )


class WrongDelta(Gaussian):
    def log_delta(self, epsilon):
        return -30.0 - epsilon, 0.0


class WrongDecay(Gaussian):
    @property
    def compiled(self):
        return None

    def log_mgf_bound(self, c):
        return 0.1 * super().log_mgf_bound(c)


def failing(*pair):
    suite = type("Suite", (LossSuite,), {"pairs": (pair,)})()
    found = set()
    for name in vars(LossSuite):
        if name.startswith("test_"):
            try:
                getattr(suite, name)()
            except (AssertionError, ValueError):
                found.add(name)
    return found


def test_broken_losses_are_found():
    wrong = WrongDelta(2.0)
    assert failing(wrong, wrong) >= {"test_two_uses_cost_between_one_and_two"}
    assert failing(WrongDecay(2.0), Gaussian(2.0)) >= {"test_moments_bounds_and_tilts"}
    assert failing(REMOVED, SampledGaussian(0.2, 1.5, "add")) >= {"test_moments_bounds_and_tilts"}


def test_a_suite_without_losses_is_refused():
    with pytest.raises(ValueError, match=r"pairs must have a pair of losses, got none"):
        LossSuite().test_moments_bounds_and_tilts()
