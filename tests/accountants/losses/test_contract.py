"""Every finite loss with a law keeps the contract of losses, and a broken one is found."""

import dataclasses

import pytest

from dpcal.accountants import LossSuite, check_loss
from dpcal.accountants.losses.discrete import discrete_laplace, pure, randomized_response
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.laplace import BoundedRange, Laplace
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

REMOVED, ADDED = (SampledGaussian(0.1, 1.5, side) for side in ("remove", "add"))
OTHER = SampledGaussian(0.2, 1.5, "add")
GEOMETRIC = discrete_laplace(noise_parameter=0.5, sensitivity=2)
LOSSES = [
    *(Gaussian(2.0), Laplace(1.5), BoundedRange(0.8), DiscreteGaussian(2.0, 1), pure(1.0)),
    *(FixedBatchGaussian(0.02, 0.7), REMOVED, ADDED, GEOMETRIC),
    *(randomized_response(noise_parameter=0.3, num_buckets=4),),
    RandomChoice(((0.6, REMOVED), (0.4, SampledGaussian(0.3, 2.0, "remove")))),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_keep_the_contract(loss):
    check_loss(loss, loss.opposite)


class TestOurs(LossSuite):
    """The suite that other packages inherit."""

    pairs = (*((loss, loss) for loss in (Gaussian(2.0), pure(1.0), GEOMETRIC)), (REMOVED, ADDED))


def changed(name, change):
    """Return a Gaussian loss of which one answer is changed."""

    def wrong(self, at):
        return change(getattr(Gaussian, name)(self, at))

    return type("Wrong", (Gaussian,), {name: wrong, "compiled": None})(2.0)


CHEAP = changed("log_delta", lambda found: (found[0] - 30.0, 0.0))
MOMENTS = changed("cumulants", lambda found: found * [1.1, 1.0, 1.0, 1.0])
HALF, TENTH = (changed("log_mgf_bound", lambda found, x=x: x * found) for x in (0.5, 0.1))


@pytest.mark.parametrize(
    ("pair", "fact"),
    [
        ((MOMENTS,), "Q has mass 1|slope of log M"),
        ((HALF,), "log_mgf_bound"),
        ((changed("log_delta", lambda found: (0.0, 0.0)),), "Chernoff"),
        ((dataclasses.replace(pure(1.0), log_reference=(-0.3, -1.3)),), "P has mass 1|slope of"),
        ((REMOVED, OTHER), "opposite"),
    ],
)
def test_a_broken_loss_is_found(pair, fact):
    with pytest.raises(ValueError, match=fact):
        check_loss(*pair)


@pytest.mark.parametrize(
    ("pair", "test"),
    [
        ((CHEAP, CHEAP), "two_uses_cost_between_one_and_two"),
        ((TENTH, Gaussian(2.0)), "moments_bounds_and_tilts"),
        ((REMOVED, OTHER), "moments_bounds_and_tilts"),
    ],
)
def test_the_suite_finds_a_broken_loss(pair, test):
    suite = type("Suite", (LossSuite,), {"pairs": (pair,)})()
    with pytest.raises((AssertionError, ValueError)):
        getattr(suite, f"test_{test}")()


def test_a_suite_without_losses_is_refused():
    with pytest.raises(ValueError, match=r"pairs must have a pair of losses, got none"):
        LossSuite().test_moments_bounds_and_tilts()
