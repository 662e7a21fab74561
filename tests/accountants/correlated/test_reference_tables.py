"""Every number of the tables that random allocation and shuffled epochs were first checked by.

tests/data/allocation_and_shuffle.json has prices of random allocation in 400-bit arithmetic, and
both ends of shuffled epochs by numpy. What is not in it is computed here, by quadrature on the
plane and from closed forms.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import hypergeom, norm

from dpcal.accountants import delta, epsilon, events

TABLES = json.loads(
    (Path(__file__).parents[2] / "data" / "allocation_and_shuffle.json").read_text()
)
BLANKED = {"neighboring_relation": "replace-special"}
REPLACED = {"neighboring_relation": "replace-one"}


def rows(name):
    return [mark(name, row) for row in TABLES[name]]


def mark(name, row):
    sizes = row["sigma"], row["batches"], row["epochs"]
    # Brackets that gain over known batches take seconds of processor time.
    long = name == "shuffle" and row.get("upper") != row.get("no_gain", 0)
    marks = [pytest.mark.study] if long else [pytest.mark.slow]
    return pytest.param(row, marks=marks, id="{:g}-{}-{}".format(*sizes))


def allocated(sigma, batches, epochs):
    return events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)


def known(sigma, epochs):
    return events.SelfComposedDpEvent(events.GaussianDpEvent(sigma), epochs)


@pytest.mark.parametrize("row", rows("allocation"))
def test_random_allocation(row):
    run = allocated(row["sigma"], row["batches"], row["epochs"])
    exact = max(row["removed"], row["added"])
    found = epsilon(run, delta=row["delta"])
    assert found.lower * (1 - 2e-13) <= exact <= found.upper * (1 + 2e-13)
    assert found.upper - found.lower < 1e-8 * found.upper
    at_zero = delta(run, epsilon=0.0)
    assert at_zero.lower * (1 - 2e-13) <= row["total_variation"] <= at_zero.upper * (1 + 2e-13)
    # The bound of total variation by the variance of the likelihood ratio (Scarf 1958).
    t = 1 / row["sigma"]
    c = math.expm1(row["epochs"] * math.log1p(math.expm1(t * t) / row["batches"]))
    assert at_zero.upper <= (math.sqrt(c) / 2 if c <= 1 else c / (1 + c))


@pytest.mark.parametrize("row", rows("shuffle"))
def test_shuffled_epochs(row):
    sigma, batches, epochs, at = row["sigma"], row["batches"], row["epochs"], row["delta"]
    found = epsilon(events.ShuffledEpochsDpEvent(sigma, batches, epochs), delta=at, **BLANKED)
    lower = max(*row["lower_max"], *row["lower_sum"])
    # The lower end rises as the grids of its attacks refine.
    assert lower * (1 - 1e-3) <= found.lower <= lower * (1 + 3e-3)
    assert found.lower < found.upper
    assert found.method.startswith("bracket")
    if "upper" not in row:
        return
    # Another search of alpha ends lower, and never above.
    assert found.upper <= row["upper"] * (1 + 1e-3)
    poisson = events.dpsgd(
        sampling_probability=1 / batches, noise_multiplier=sigma, steps=batches * epochs
    )
    assert float(epsilon(poisson, delta=at)) == pytest.approx(row["poisson"], rel=1e-6)
    epochs_of_draws = epsilon(allocated(sigma, batches, epochs), delta=at)
    assert float(epochs_of_draws) == pytest.approx(row["allocation"], rel=1e-9)
    assert float(epsilon(known(sigma, epochs), delta=at)) == pytest.approx(row["no_gain"], rel=1e-9)
    assert epochs_of_draws < found.lower


def plane(sigma, present, blank):
    """Return densities times area: half of the points each, both coordinates exchanged."""
    x = np.linspace(-8 * sigma - 1, 8 * sigma + 2, 1601)
    area = (x[1] - x[0]) ** 2

    def law(point):
        a, b = (norm.pdf(x, at, sigma) for at in point)
        return (np.multiply.outer(a, b) + np.multiply.outer(b, a)) / 2 * area

    return law(present), law(blank)


def worse(pair, at):
    p, q = pair
    ratio = math.exp(at)
    return max(np.maximum(p - ratio * q, 0).sum(), np.maximum(q - ratio * p, 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("substitute", "truth"),
    [(-1, 0.28621), (-0.8, 0.23149), (-0.5, 0.15734), (0, 0.05921), (0.5, 0.00363), (1, 0)],
)
def test_a_replaced_record_of_two_batches(substitute, truth):
    """The pair of +1 against -1 is the worst, and the bracket holds it."""
    exact = worse(plane(1.0, (1, 0), (substitute, 0)), 1.0)
    assert exact == pytest.approx(truth, abs=6e-6)
    assert exact <= delta(allocated(1.0, 2, 1), epsilon=1.0, **REPLACED).upper
    if substitute == 0:
        assert float(delta(allocated(1.0, 2, 1), epsilon=1.0)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "truth", "error"),
    [(2.0, 8.49e-4, 0.017), (2.5, 6.90e-5, 0.03), (2.8, 1.24e-5, 0.04), (3.0, 3.61e-6, 0.06)],
)
def test_a_replaced_record_of_a_hundred_batches_by_draws(at, truth, error):
    found = delta(allocated(1.0, 100, 10), epsilon=at, **REPLACED)
    assert found.lower <= truth * (1 + 2 * error)
    assert truth * (1 - 2 * error) <= found.upper


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "truths", "lower", "theorem", "no_gain"),
    [
        (1.0, (4.37343, 3.69739, 2.94323, 3.69739), 4.37308, 4.38026, 4.37718),
        (2.0, (1.91946, 1.46195, 1.35647, 1.46195), 1.91476, 1.98400, 1.99309),
        (5.0, (0.55775, 0.50084, 0.49698, 0.50084), 0.55324, 0.70056, 0.72552),
    ],
)
def test_a_shuffle_of_two_batches(sigma, truths, lower, theorem, no_gain):
    """The other record contributes -1, 0, 1/2 or 1: -1 is the worst of them."""
    found = epsilon(events.ShuffledEpochsDpEvent(sigma, 2, 1), delta=1e-5, **BLANKED)
    end = 1.01 * no_gain
    for other, truth in zip((-1, 0, 0.5, 1), truths, strict=True):
        pair = plane(sigma, (1, other), (0, other))
        exact = brentq(lambda at, pair=pair: math.log(worse(pair, at) / 1e-5), 0.01, end, xtol=1e-7)
        assert exact == pytest.approx(truth, rel=3e-5)
        assert exact <= found.upper * (1 + 3e-5)
    assert lower * (1 - 1e-3) <= found.lower <= truths[0] * (1 + 1e-5)
    assert found.upper <= min(theorem, no_gain) * (1 + 1e-3)
    assert float(epsilon(known(sigma, 1), delta=1e-5)) == pytest.approx(no_gain, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "lower", "no_gain"),
    [
        (0.8, 117, 1, 8.44475, 13.2067),
        (2.0, 100, 20, 2.45169, 28.3735),
        (10.0, 1000, 20, 0.0867659, 3.84861),
    ],
)
def test_a_replaced_record_of_a_shuffle(sigma, batches, epochs, lower, no_gain):
    """Others and the substitute contribute -1: an allocation with half the noise."""
    halved = epsilon(allocated(sigma / 2, batches, epochs), delta=1e-5)
    assert float(halved) == pytest.approx(lower, rel=1e-5)
    assert float(epsilon(known(sigma / 2, epochs), delta=1e-5)) == pytest.approx(no_gain, rel=1e-5)
    found = epsilon(events.ShuffledEpochsDpEvent(sigma, batches, epochs), delta=1e-5, **REPLACED)
    assert lower * (1 - 1e-5) <= found.lower <= found.upper <= no_gain * (1 + 1e-5)


@pytest.mark.slow
def test_draws_of_a_hundred_epochs_of_little_noise():
    """The first table said 139.789 at delta 1e-5: it would make half of these draws larger."""
    rng, t, runs, at = np.random.default_rng(0), 2.5, 4000, 50.0
    losses = np.zeros(runs)
    for _ in range(100):
        y = np.exp(t * rng.standard_normal((runs, 117)) - t * t / 2)
        y[:, 0] *= math.exp(t * t)
        losses += np.log(y.mean(axis=1))
    share = -np.expm1(np.minimum(at - losses, 0))
    found = delta(allocated(0.4, 117, 100), epsilon=at)
    # Five standard errors: a false alarm in a million.
    assert abs(share.mean() - found) < 5 * share.std() / math.sqrt(runs)
    at_end = epsilon(allocated(0.4, 117, 100), delta=1e-5)
    assert losses.max() < at_end.lower < at_end.upper < 0.7 * 139.789
    assert epsilon(events.ShuffledEpochsDpEvent(0.8, 117, 100), delta=1e-5, **REPLACED).upper == (
        pytest.approx(418.199, rel=1e-5)
    )


@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "at_limit", "exact"),
    [
        (1.0, 100, 10, 1.61771, 1.70150),
        (1.4289, 1000, 100, 0.93198, 0.93272),
        (0.7085, 10_000, 100, 0.93292, 0.94339),
        (10.0, 100, 100, 0.34160, 0.34159),
    ],
)
def test_the_gaussian_limit_of_many_batches_lies_on_either_side(
    sigma, batches, epochs, at_limit, exact
):
    mu = math.sqrt(epochs / batches * math.expm1(sigma**-2))
    limit = epsilon(events.GaussianDpEvent(1 / mu), delta=1e-5)
    assert float(limit) == pytest.approx(at_limit, abs=6e-6)
    found = epsilon(allocated(sigma, batches, epochs), delta=1e-5)
    assert float(found) == pytest.approx(exact, abs=6e-6)


def test_a_mixture_of_blanked_rows_that_does_not_dominate_has_its_number():
    """Of rows blanked in batches of a fixed size: tests/calibrate/test_user_events.py beats it."""
    weights = hypergeom.pmf(range(5), 10_000, 4, 100)
    weights[0] = 1 - math.fsum(weights[1:])
    mixture = events.MixtureOfGaussiansDpEvent(2.0, (0.0, 1.0, 2.0, 3.0, 4.0), tuple(weights))
    run = events.SelfComposedDpEvent(mixture, 100)
    assert float(epsilon(run, delta=1e-6)) == pytest.approx(1.0157248291, rel=1e-9)
