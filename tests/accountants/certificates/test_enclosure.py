"""Enclosures: what a proof proves holds the truth, by other arithmetic and by closed forms.

The modules below ``certify`` are asked directly, as a certificate could hide a wrong enclosure.
"""

import itertools
import json
import math
from decimal import Decimal

import numpy as np
import pytest
from _integrals import sampled_moment
from _tree import DATA
from flint import acb, arb, ctx

from dpcal.accountants import certify, events
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose
from dpcal.accountants.certificates.proofs import Proof
from dpcal.accountants.certificates.search.contour import choose_contour
from dpcal.accountants.certificates.search.lines import line_of
from dpcal.accountants.certificates.transforms import (
    Line,
    SampledGaussianTransform,
    sums_of_powers,
)
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

ROWS = json.loads((DATA / "poisson_gaussian.json").read_text())["rows"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "width"),
    [(row, 1e-3 if place % 3 else 1e-10) for place, row in enumerate(ROWS)],
    ids=lambda item: (
        f"{item['q']}-{item['sigma']}-{item['epsilon']}" if isinstance(item, dict) else None
    ),
)
def test_the_reference_is_inside(row, width):
    parts = ((SampledGaussian(row["q"], row["sigma"], row["direction"]), row["steps"]),)
    truth = Decimal(row["delta"])
    about = float(truth.ln())
    chosen = choose_contour(parts, row["epsilon"], log_delta=about, width=width)
    lower, upper = enclose(chosen, parts, row["epsilon"])
    # The truth is given to 20 digits, and proved to 13 or more.
    slack = truth * Decimal("1e-13")
    low, high = decimal_bounds(lower, upper, 30)
    assert low <= truth + slack
    assert truth - slack <= high
    assert float((upper.upper() - lower.lower()) / upper) < 10 * width


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 1.0), (0.3, 0.5), (0.2, 5.0)])
def test_transforms_agree_with_rigorous_integration(q, sigma, direction):
    c, h = 2.5, 3.0
    loss = SampledGaussian(q, sigma, direction)
    transform, line = SampledGaussianTransform(loss), line_of(loss, 20.0, c, 3 * h)
    beyond = transform.beyond(line, c, arb(h))
    for k, value in enumerate(transform.along(line, c, h, 4)):
        with ctx.workprec(96):
            truth = sampled_moment(q, sigma, direction, complex(c, k * h)).exp()
            assert value.overlaps(truth)
            assert k == 0 or abs(truth) <= beyond


SHORT_OR_COARSE = [
    *(((2.0, -8, 8), 1.0, (0.25, 0.5, 1.0)), ((3.0, -6, 6), 1.0, (0.25, 0.5, 1.0))),
    *(((0.25, -6, 14), 1.0, (0.25, 0.5, 1.0)), ((0.25, -12, 10), 1.0, (0.25, 0.5, 1.0))),
    ((2.0, -120, 120), 4.0, (1.5, 1.56)),
]


@pytest.mark.parametrize(("line", "sigma", "angles"), SHORT_OR_COARSE)
def test_the_errors_of_a_coarse_line_and_of_a_short_one_are_in_the_transform(line, sigma, angles):
    """E w^2 under Q is 1 + q^2 (e^(1 / sigma^2) - 1)."""
    with ctx.workprec(128):
        transform = SampledGaussianTransform(SampledGaussian(0.5, sigma, "remove"))
        truth = 1 + (arb(sigma**-2).exp() - 1) / 4
        for angle in angles:
            found = transform.at(Line(angle, *line), 1.0)
            assert found.contains(truth)
            assert abs(found.mid() - truth) > 1e-9  # and not by the sum alone


def sizes(x, height, q, sigma, power):
    """Return the absolute values of the integrand of a sampled Gaussian on a line."""
    z = x + 1j * height
    w = 1 - q + q * np.exp((2 * z - 1) / (2 * sigma**2))
    return np.abs(np.exp(-z * z / (2 * sigma**2)) * w**power) / (sigma * math.sqrt(2 * math.pi))


COARSE = [((1.4, 1.5, -90, 90), 1.0), ((1.0, 6.0, -60, 60), 3.0)]
SHORT = [((0.3, 0.1, -40, 400), 2.0), ((0.3, 0.1, -400, 75), 2.0), ((1.2, 0.05, -60, 400), 1.0)]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("c", [0.5, 2.0])
@pytest.mark.parametrize(("line", "sigma"), COARSE + SHORT)
def test_the_error_of_a_line_bounds_its_strip_and_all_points_beyond_its_ends(
    line, sigma, c, direction
):
    """The two edges of the strip bound what a step leaves out, by contour integration."""
    q, line, way = 0.02, Line(*line), 1 if direction == "remove" else -1
    power, height = (1 + c if way > 0 else -c), way * line.angle * sigma**2
    with ctx.workprec(64):
        transform = SampledGaussianTransform(SampledGaussian(q, sigma, direction))
        error = float(transform._error(line, arb(c)).lower())
    x = np.linspace(-25 * sigma, 25 * sigma, 20_001)
    edges = sum(sizes(x, y, q, sigma, power).sum() * (x[1] - x[0]) for y in (0, 2 * height))
    places = np.arange(-math.ceil(25 * sigma / line.step), math.ceil(25 * sigma / line.step) + 1)
    left_out = places[(places < line.first) | (places > line.last)] * line.step
    beyond = line.step * sizes(left_out, height, q, sigma, power).sum()
    assert error >= edges / math.expm1(2 * math.pi * abs(height) / line.step) + beyond


def test_powers_of_a_turn_keep_their_digits():
    with ctx.workprec(128):
        last = sums_of_powers([acb(1)], [acb(0, 0.785)], acb(1), 40_000)[-1]
        assert last.overlaps(acb(0, 39_999 * arb(0.785)).exp())
        assert last.rel_accuracy_bits() > 100


class ProofOfChance(Proof):
    """What is said of the losses that stand at either end of a rounded probability."""

    def work_at_128(self, parts):
        return 0.0

    def bound(self, parts, epsilon, above):
        return arb(parts[0][0].sampling_probability)


@pytest.mark.parametrize("loss", [SampledGaussian, FixedBatchGaussian])
def test_a_rounded_quotient_lies_strictly_between_the_chances_at_either_end(loss):
    others = ("add",) if loss is SampledGaussian else ()
    for size, source in itertools.product((1, 3, 10, 511), (7, 49, 1000, 60_000, 10**9 + 7)):
        if size < source:
            parts = ((loss(size / source, 1.0, *others), 1),)
            lower, upper = enclose(ProofOfChance(256), parts, 0.0, rounded=True)
            with ctx.workprec(256):
                chance = arb(size) / source
                assert lower < chance < upper
                assert upper - lower < 1e-14 * chance


@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one", "replace-special"])
def test_a_gaussian_has_its_closed_form(relation):
    certificate = certify(
        events.GaussianDpEvent(2.0), epsilon=1.0, neighboring_relation=relation, width=1e-12
    )
    with ctx.workprec(200):
        mu = arb(1) if relation == "replace-one" else arb(1) / 2
        upper_tail, lower_tail = (
            ((1 / mu + sign * mu / 2) / arb(2).sqrt()).erfc() / 2 for sign in (-1, 1)
        )
        truth = upper_tail - arb(1).exp() * lower_tail
        assert arb(str(certificate.lower)) <= truth <= arb(str(certificate.upper))
