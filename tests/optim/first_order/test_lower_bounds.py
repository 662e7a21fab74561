"""The hard instance of a lower bound: no private run is below it, and one with less noise is.

Menart et al. 2024, Theorem 8 (with erratum EL10), in one dimension: n (1 + r) / 2 records of one
sign, r = 1 / (n epsilon), or as many of the other. No optimizer that is (epsilon, delta)-private
about replaced records has a mean excess below 0.2786 r^2 on both tables, for deltas of at most
(1 - e^-epsilon) / 16: a smaller one would show a wrong price.
"""

import dataclasses
import math

import numpy as np
import pytest

from dpcal import calibrate, optim

N, EPSILON = 400, 0.5
R = 1 / (N * EPSILON)
SHARE = (1 + R) / 2
# The losses are 1-Lipschitz and grow as they should within this radius (erratum EL9).
RADIUS = 0.36


class Table:
    """The table in which a sign is the more frequent, for an even number 1 / epsilon."""

    def __init__(self, sign):
        self.sign, self.a = sign, R / 2
        self.signs = np.full(N, -float(sign))
        self.signs[: round(N * SHARE)] = sign

    def slopes(self, w, rows):
        """Return the derivative of each record's loss at a number w, shape (m, 1)."""
        moved = self.signs[rows] * w - self.a
        return (self.signs[rows] * np.where(moved <= 0, -1.0, np.minimum(2 * moved, 1.0)))[:, None]

    def excess(self, w):
        """Return F(w) - min F, for w brought into the radius: a function of what was released."""
        u = self.sign * float(np.clip(w, -RADIUS, RADIUS))

        def loss(v):
            return self.a - v if v <= self.a else (v - self.a) ** 2

        return SHARE * loss(u) + (1 - SHARE) * loss(-u) - (1 - R) * self.a

    def objective(self):
        """Return the mean loss, by its gradients."""
        return optim.FromGradients(self.slopes, n=N, dimension=1, block=N)


def test_the_two_tables_are_lipschitz_and_grow():
    table, other = Table(1), Table(-1)
    for w in np.linspace(-RADIUS, RADIUS, 801):
        assert abs(table.slopes(w, np.arange(N))).max() <= 1
        assert table.excess(w) >= (w - table.a) ** 2 * (1 - 1e-9) - 1e-15
        assert table.excess(w) == pytest.approx(other.excess(-w))
    for w in (-0.3, 0.01, 0.2):
        slope = (table.excess(w + 1e-7) - table.excess(w - 1e-7)) / 2e-7
        assert table.objective().gradient([w])[0] == pytest.approx(slope, rel=1e-5)


def test_no_private_optimizer_is_below_the_bound_and_one_with_too_little_noise_is():
    """The best way is the sign of one noisy gradient at zero, and a step of length a that way.

    Means of 200 seeds; it is at 1.8 times the bound, with a standard error of 0.14.
    """
    target = {"epsilon": EPSILON, "delta": 1e-6, "neighboring_relation": "replace-one"}
    known = calibrate.Constants(lipschitz=1.0, smoothness=1.0)
    plan = calibrate.noisy_gd(
        known, n=N, dimension=1, steps=1, learning_rate=1.0, max_norm=1.0, **target
    )

    def over_the_bound(plan):
        means = []
        for table in (Table(1), Table(-1)):
            objective = table.objective()
            ends = [optim.noisy_gd(objective, plan, seed=seed).w[0] for seed in range(200)]
            means.append(np.mean([table.excess(math.copysign(table.a, w)) for w in ends]))
        return max(means) / (0.2786 * R**2)

    assert plan.price() <= EPSILON
    assert over_the_bound(plan) > 1.3
    (query,) = plan.queries
    quiet = dataclasses.replace(query, noise_multiplier=query.noise_multiplier / 10)
    assert over_the_bound(dataclasses.replace(plan, queries=(quiet,), epsilon=50.0)) < 1.0
