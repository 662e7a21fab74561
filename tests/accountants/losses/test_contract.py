"""Every finite loss with a law keeps the contract of losses, and a broken one is found."""

import dataclasses

import pytest

from dpcal.accountants import check_loss
from dpcal.accountants.losses.discrete import discrete_laplace, pure, randomized_response
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.laplace import BoundedRange, Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

LOSSES = [
    Gaussian(2.0),
    Laplace(1.5),
    BoundedRange(0.8),
    SampledGaussian(0.1, 1.5, "remove"),
    SampledGaussian(0.1, 1.5, "add"),
    DiscreteGaussian(2.0, 1),
    pure(1.0),
    randomized_response(noise_parameter=0.3, num_buckets=4),
    discrete_laplace(noise_parameter=0.5, sensitivity=2),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_keep_the_contract(loss):
    check_loss(loss, loss.opposite)


def test_both_directions_are_reverses():
    check_loss(SampledGaussian(0.1, 1.5, "remove"), SampledGaussian(0.1, 1.5, "add"))
    with pytest.raises(ValueError, match="opposite"):
        check_loss(SampledGaussian(0.1, 1.5, "remove"), SampledGaussian(0.2, 1.5, "add"))


class WrongMoments(Gaussian):
    def cumulants(self, c):
        return super().cumulants(c) * [1.1, 1.0, 1.0, 1.0]


class WrongBound(Gaussian):
    def log_mgf_bound(self, c):
        return 0.5 * super().log_mgf_bound(c)


class WrongDelta(Gaussian):
    def log_delta(self, epsilon):
        return 0.0, 0.0


@pytest.mark.parametrize(
    ("broken", "fact"),
    [
        (WrongMoments(2.0), "Q has mass 1|slope of log M"),
        (WrongBound(2.0), "log_mgf_bound"),
        (WrongDelta(2.0), "Chernoff"),
        (
            dataclasses.replace(pure(1.0), log_reference=(-0.3, -1.3)),
            "P has mass 1|slope of the mean",
        ),
    ],
)
def test_a_broken_loss_is_found(broken, fact):
    with pytest.raises(ValueError, match=fact):
        check_loss(broken)
