"""Compiled answers: grids against single questions, and against the readable contour."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpcal import accountants
from dpcal._ext import question
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.answers import Bounds
from dpcal.accountants.inversion.solve import epsilon_on_contours, log_delta_on_contours
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.mechanisms.decompose import decompose


def _random(count, seed):
    """Probabilities, noises, steps and targets; the first point takes no contour."""
    rng = np.random.default_rng(seed)
    q, sigma = 10 ** rng.uniform(-2.5, -1, count), 10 ** rng.uniform(-0.1, 0.6, count)
    steps = rng.integers(200, 5000, count)
    steps[0] = 1
    return q, sigma, steps, 10 ** rng.uniform(-9, -3, count)


def _event(q, sigma, steps):
    return events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps)


def test_answers_of_a_grid_are_single_answers_to_the_bit():
    q, sigma, steps, deltas = _random(40, 0)
    asked, seen = {"q": q, "sigma": sigma, "steps": steps, "delta": deltas}, []
    costs = accountants.grid(_event, **asked)
    with ThreadPoolExecutor(2) as threads:
        again = accountants.grid(_event, **asked, executor=threads, progress=seen.append)
    assert seen == [40]
    assert {"contour"} < set(costs.method.tolist())
    for i, method in enumerate(costs.method.tolist()):
        one = accountants.epsilon(_event(q[i], sigma[i], int(steps[i])), delta=deltas[i])
        ends = (one.lower, one.upper, one.method)
        assert ends == (costs.lower[i], costs.upper[i], method)
        assert ends == (again.lower[i], again.upper[i], again.method[i])


@pytest.mark.slow
def test_compiled_answers_meet_the_readable_contour():
    for *point, delta in zip(*(each[1:8].tolist() for each in _random(8, 1)), strict=True):
        for direction in decompose(_event(*point), "add-or-remove-one").directions:
            total, target = Total(direction.parts), math.log(delta)
            epsilon = Bounds(*question.epsilon(direction.compiled, target))
            log_delta = Bounds(*question.log_delta(direction.compiled, epsilon.upper))
            for compiled, readable in (
                (epsilon, epsilon_on_contours(total, target)),
                (log_delta, log_delta_on_contours(total, epsilon.upper)),
            ):
                assert compiled.lower <= readable.upper, point
                assert readable.lower <= compiled.upper, point
                assert abs(compiled.upper - compiled.lower) < 1e-6, point


def test_deltas_of_a_grid_are_broadcast():
    steps = np.array([10, 1000])
    found = accountants.grid(_event, q=0.02, sigma=1.0, steps=steps, epsilon=[[0.5], [4.0], [9.0]])
    assert found.upper.shape == found.lower.shape == found.method.shape == (3, 2)
    one = accountants.delta(_event(0.02, 1.0, 1000), epsilon=4.0)
    assert (one.lower, one.upper, one.method) == (
        found.lower[1, 1],
        found.upper[1, 1],
        found.method[1, 1],
    )


def test_a_grid_may_be_empty():
    empty = accountants.grid(_event, q=np.empty(0), sigma=1.0, steps=3, delta=1e-5)
    assert empty.upper.shape == (0,)


def test_a_whole_run_is_answered_as_alone_and_keeps_its_label():
    run = events.CorrelatedGaussianDpEvent(
        matrix.LambdaCGD(6, 0.5), correlated.Poisson(0.5), 2.0, statistics="none"
    )
    one = accountants.delta(run, epsilon=0.5)
    found = accountants.grid(
        lambda count: events.SelfComposedDpEvent(run, count), count=1, epsilon=0.5
    )
    logarithm = accountants.log_delta(run, epsilon=0.5)
    assert found.method == logarithm.method == f"{one.method}, certified"
    assert found.upper == one.upper <= math.exp(logarithm.upper) * (1 + 1e-15)
    assert math.exp(logarithm.lower) * (1 - 1e-15) <= one.lower == found.lower
