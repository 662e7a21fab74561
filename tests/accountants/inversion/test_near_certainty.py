"""Deltas that are nearly 1: every way of inverting keeps its upper end above them."""

import math

import numpy as np
import pytest
from _integrals import in_balls

from dpcal._ext import question
from dpcal.accountants.answers import Bounds
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.cut import split
from dpcal.accountants.inversion.solve import log_delta_on_contours
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian


def _compiled(direction, epsilon, patient=False):
    found = question.log_delta(direction.laws, epsilon, patient=patient)
    return found and Bounds(*found)


def _cut(direction, epsilon):
    laws, beyond = split(direction.parts, epsilon, -0.1)
    found = question.log_delta(laws, epsilon, True, beyond)
    return found and Bounds(*found)


WAYS = {
    "answer": log_delta_bounds,
    "compiled": _compiled,
    "chosen": lambda item, at: log_delta_on_contours(Total(item.parts), at),
    "one contour": lambda item, at: _compiled(item, at, patient=True),
    "cut": _cut,
}


def _draw(seed, index):
    """A law, an epsilon, and the log of a bound exp(a epsilon) M(-a)^T on 1 - delta."""
    rng = np.random.default_rng([seed, index])
    q, sigma = float(10 ** rng.uniform(-5, -0.05)), float(10 ** rng.uniform(-1, 1))
    loss = SampledGaussian(q, sigma, ("remove", "add")[index % 2])
    a, target = float(rng.uniform(0.0, 1.0) ** 2), float(rng.uniform(-70, -0.5))
    log_mass, mean = loss.cumulants([-a])[0, :2]
    steps = math.ceil(target / (log_mass + a * mean)) if log_mass + a * mean < 0 else 0
    direction = Direction("", ((loss, steps),))
    return direction, steps * mean, steps * (log_mass + a * mean)


def _found(direction, epsilon):
    for name, way in WAYS.items():
        try:
            bounds = way(direction, epsilon)
        except OutOfReach:
            continue
        if bounds is not None:
            yield name, bounds


def _search(seed, indices, *, work=0.0):
    """How often each way answers, and how many balls; fails at the first bounds that are wrong."""
    seen = dict.fromkeys([*WAYS, "balls"], 0)
    for index in indices:
        direction, epsilon, bound = _draw(seed, index)
        if not (0 < direction.parts[0][1] < 1e9 and epsilon > 0):
            continue
        least = math.log1p(-math.exp(bound * (1 - 1e-9)))
        balls = in_balls(direction, epsilon, work, width=1e-24) if work and bound > -40 else None
        seen["balls"] += balls is not None
        for name, bounds in _found(direction, epsilon):
            assert bounds.upper >= max(least, bounds.lower), (name, direction, epsilon)
            if balls is not None:
                meets = bounds.lower <= balls[1] and balls[0] <= bounds.upper
                assert meets, (name, direction, epsilon)
            seen[name] += 1
    return seen


def test_bounds_near_1_agree_with_balls():
    assert _search(5, [215], work=5e5)["balls"] == 1


@pytest.mark.slow
@pytest.mark.study
def test_bounds_near_1_hold_everywhere():
    seen = _search(11, range(1500), work=3e5)
    assert min(seen["answer"], seen["one contour"]) > 400
    assert min(seen["cut"], seen["balls"]) > 10
