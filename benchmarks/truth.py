"""What is epsilon really? Composed sampled Gaussians by Laplace inversion, 80 bits, no dpcal.

    python -m benchmarks.truth

The answers beside which :mod:`benchmarks.accountants` puts every package. delta(epsilon) is the
integral of exp(-epsilon z) M(z) / (z (z + 1)) / (2 pi i) along Re z = c, with M the transform of
the privacy loss (Alghamdi et al. 2023, theorem 3.1). Both this integral and the one over the noise
inside M are trapezoid sums in numpy's long double, whose powers follow from one another by
multiplication; each is halved until the answer stays. Add or remove one, the larger direction.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

REAL, COMPLEX = np.longdouble, np.clongdouble
PI = 4 * np.arctan(REAL(1.0))
REACH = 11.0
NEGLIGIBLE = 1e-21
AGREEMENT = 1e-13


class Loss:
    """The composed loss of steps (q, sigma, count), seen through log M(z)."""

    def __init__(self, steps, *, remove, points):
        self.steps, self.remove, self.points = steps, remove, points
        self.counts = np.array([count for _, _, count in steps], dtype=REAL)

    def _grids(self, c):
        """Losses and logarithms of weighted densities at points that hold all of M(c)."""
        losses, logs, starts, total = [], [], [], 0
        for q, sigma, _ in self.steps:
            end = REACH * sigma + (2.0 + c if self.remove else 1.0)
            count = math.ceil((end + REACH * sigma) / sigma * self.points)
            x, step = np.linspace(REAL(-REACH * sigma), REAL(end), count, retstep=True)
            s = REAL(sigma)
            loss = np.logaddexp(np.log1p(-REAL(q)), np.log(REAL(q)) + (2 * x - 1) / (2 * s * s))
            power = 1 + c if self.remove else -c
            density = np.log(step / (s * np.sqrt(2 * PI))) - x * x / (2 * s * s)
            losses.append(loss)
            logs.append(density + power * loss)
            starts.append(total)
            total += count
        return np.concatenate(losses), np.concatenate(logs), starts

    def log_real(self, c):
        """Sum of log M(c), c real."""
        _, logs, starts = self._grids(c)
        ends = [*starts[1:], len(logs)]
        logs = [np.logaddexp.reduce(logs[i:j]) for i, j in zip(starts, ends, strict=True)]
        return float(self.counts @ np.array(logs, dtype=REAL))

    def on_contour(self, c, h):
        """Yield the sum of log M(c + i k h) - log M(c) for k = 0, 1, ..."""
        losses, logs, starts = self._grids(c)
        heights = np.maximum.reduceat(logs, starts)
        sizes = np.diff([*starts, len(logs)])
        powers = np.exp(logs - np.repeat(heights, sizes)).astype(COMPLEX)
        turn = np.exp(COMPLEX(1j) * (h if self.remove else -h) * losses)
        first = np.log(np.add.reduceat(powers, starts))
        while True:
            yield self.counts @ (np.log(np.add.reduceat(powers, starts)) - first)
            powers *= turn


def _saddle(loss, delta):
    """Where the contour crosses the real axis, log M there, and a first epsilon."""

    def bound(log_c):
        c = math.exp(log_c)
        return (loss.log_real(c) - math.log(delta) - math.log1p(c)) / c + math.log(c / (1 + c))

    found = minimize_scalar(bound, bounds=(-8.0, 6.0), method="bounded")
    c = math.exp(found.x)
    return c, loss.log_real(c), float(found.fun)


def _factors(loss, c, h):
    """M(z) / M(c) / (z (z + 1)) at the nodes of the contour, until they are negligible."""
    factors, recent = [], math.inf
    contour = loss.on_contour(c, h)
    while not factors or recent >= NEGLIGIBLE * float(abs(factors[0])):
        z = COMPLEX(complex(c, len(factors) * h))
        factors.append(np.exp(next(contour)) / (z * (z + 1)))
        size = float(abs(factors[-1]))
        recent = size if len(factors) == 1 else max(0.9 * recent, size)
    return np.array(factors)


def _solve(factors, c, h, height, delta, epsilon):
    """Newton's method for log delta(epsilon) on fixed nodes."""
    k = np.arange(len(factors), dtype=REAL)
    z = c + COMPLEX(1j) * k * h
    weights = np.where(k == 0, REAL(0.5), REAL(1.0)) * h / PI
    target = np.log(REAL(delta)) - height
    epsilon = REAL(epsilon)
    for _ in range(50):
        terms = weights * factors * np.exp(-COMPLEX(1j) * k * h * epsilon)
        total, slope = terms.real.sum(), -(z * terms).real.sum()
        step = (np.log(total) - epsilon * c - target) * total / slope
        epsilon -= step
        if abs(step) < 1e-17 * abs(epsilon):
            break
    return float(epsilon)


def _direction(steps, delta, *, remove, points):
    loss = Loss(steps, remove=remove, points=points)
    c, height, epsilon = _saddle(loss, delta)
    h = 2 * math.pi * c / (45.0 - math.log(delta))
    while True:
        factors = _factors(loss, c, h)
        fine = _solve(factors, c, h, height, delta, epsilon)
        coarse = _solve(factors[::2], c, 2 * h, height, delta, epsilon)
        if abs(fine - coarse) < AGREEMENT * abs(fine):
            return fine
        h /= 2


def epsilon(steps, delta):
    """Return epsilon at ``delta`` of Poisson-sampled Gaussian steps.

    Parameters
    ----------
    steps
        Tuples (sampling probability, noise multiplier, count).
    delta
        In (0, 1).
    """
    answers = [
        max(_direction(steps, delta, remove=remove, points=points) for remove in (True, False))
        for points in (8, 12)
    ]
    if abs(answers[0] - answers[1]) > 10 * AGREEMENT * answers[1]:
        raise ArithmeticError(f"The sums over the noise disagree: {answers}.")
    return answers[1]


def main():
    many = [(0.002 + 0.0001 * i, 0.8 + 0.005 * i) for i in range(200)]
    for steps, delta in (
        ([(0.01, 1.0, 10_000)], 1e-6),
        ([(0.01, 1.0, 10_000)], 1e-15),
        ([(0.01, 1.0, 10_000)], 1e-30),
        ([(q, sigma, 1) for q, sigma in many], 1e-6),
    ):
        print(len(steps), "distinct steps,", f"delta = {delta:g}:", f"{epsilon(steps, delta):.13g}")


if __name__ == "__main__":
    main()
