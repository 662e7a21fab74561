"""Does the excess risk fall as fast as the theorems on the KL condition say, and at what cost?

``python -m benchmarks.optimizers_kl`` prints log-log slopes with 95 % intervals, and times. The
functions return their data: rows of ``Point``, which :func:`slope` fits.

Problems are :class:`benchmarks.problems.kl.PowerNorm`, whose KL constants are exact; kappa = 1 is
``Softplus`` below. X = sqrt(d) / (n sqrt(rho)) is varied through n.
"""

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.problems.kl import PowerNorm, Tilted, balanced
from dpcal import calibrate
from dpcal.calibrate import Constants
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.kl_problem import Problem
from dpcal.calibrate.plans.proximal_point import stage_weights
from dpcal.optim import Logistic, PrivateOracle, adaptive_gd, kl_spider, noisy_gd, proximal_point
from dpcal.optim.first_order.proximal_point import regularized_descent

TARGET = {"public": True, "epsilon": 2.0, "delta": 1e-6}


@dataclass(frozen=True, kw_only=True)
class Point:
    """Excess risks of several seeds at one size."""

    optimizer: str
    kappa: float
    n: int
    X: float
    excess: tuple[float, ...]
    promised: float | None = None


class Softplus(Tilted):
    """``log(1 + exp(-w_1)) + |others|^2 / 2 - <x, w>``: KL with kappa = 1, infimum 0, no minimum.

    The others are kept at norm 1 at most, beyond which their part is linear. With r their norm,
    ``log(1 + exp(-w_1)) <= 2 log 2 |F_1'|`` for w_1 >= 0 and ``r^2 / 2 <= |F_2'| / 2``.
    """

    kl = (math.hypot(2 * math.log(2), 0.5), 1.0)

    @property
    def constants(self):
        """Return L0, L1 and the gap at the origin."""
        lipschitz = math.hypot(1.0, 1.0) + self._largest
        return Constants(lipschitz=lipschitz * (1 + 1e-9), smoothness=1.0, gap=math.log(2))

    def potential(self, w):
        """Return H(w)."""
        r = float(np.linalg.norm(w[1:]))
        return float(np.logaddexp(0.0, -w[0])) + (r * r / 2 if r <= 1 else r - 0.5)

    def slope(self, w):
        """Return the gradient of H."""
        slope = w / max(1.0, float(np.linalg.norm(w[1:])))
        slope[0] = -1 / (1 + np.exp(w[0]))
        return slope


def problem_of(kappa, n, d):
    """Return a problem and where to start."""
    X = balanced(n, d, seed=1)
    if kappa == 1:
        return Softplus(X), np.zeros(d)
    return PowerNorm(X, power=kappa / (kappa - 1)), np.eye(d)[0]


def rate_variable(n, d, **target):
    constants = Constants(lipschitz=1.0, smoothness=1.0)
    given = {k: v for k, v in {**TARGET, **target}.items() if k != "public"}  # of plans alone
    return Problem.of(Given.of(constants, n=n, dimension=d, **given), gamma=1.0).rate


def slope(points, *, against=None, draws=2_000):
    """Return (slope, low, high) of log excess against log X: least squares, 95 % bootstrap.

    Seeds are drawn again at every size.
    """
    x = np.log([p.X for p in points] if against is None else against)
    logs = [np.log(p.excess) for p in points]
    rng = np.random.default_rng(0)

    def fit(samples):
        return float(np.polyfit(x, [sample.mean() for sample in samples], 1)[0])

    drawn = [fit([rng.choice(sample, len(sample)) for sample in logs]) for _ in range(draws)]
    return fit(logs), *np.quantile(drawn, [0.025, 0.975]).tolist()


# ------------------------------------------------------------------------------------------ studies


def spider(kappas=(1.0, 1.25, 1.5, 2.0), *, d=10, seeds=10, sizes=None):
    """Return points of KL Spider, preset "practical"."""
    points = []
    for kappa in kappas:
        for n in sizes or (4_000, 10_000, 26_000, 64_000, 160_000):
            objective, w = problem_of(kappa, n, d)
            gamma, _ = objective.kl
            plan = calibrate.kl_spider(
                objective.constants, n=n, dimension=d, gamma=gamma, kappa=kappa, **TARGET
            )
            runs = [kl_spider(objective, plan, seed=seed, initial=w) for seed in range(seeds)]
            points.append(
                Point(
                    optimizer="kl_spider",
                    kappa=kappa,
                    n=n,
                    X=rate_variable(n, d),
                    excess=tuple(objective.loss(run.w) for run in runs),
                    promised=plan.parameters["accuracy"],
                )
            )
    return points


def spider_theory(kappas=(1.5, 2.0), *, d=2, seeds=2, sizes=(4_000, 10_000, 26_000, 64_000)):
    """Return points of KL Spider as the theorem sets it, and X with its logarithms for each.

    Its constants need X below 1e-5, hence an epsilon that protects nothing.
    """
    points, scaled = [], []
    for kappa in kappas:
        for n in sizes:
            objective, w = problem_of(kappa, n, d)
            gamma, _ = objective.kl
            known = objective.constants
            plan = calibrate.theory(
                "kl_condition",
                n=n,
                d=d,
                epsilon=4_000.0,
                delta=1e-6,
                L0=known.lipschitz,
                L1=known.smoothness,
                F0=(gamma * known.lipschitz) ** kappa if known.gap is None else known.gap,
                gamma=gamma,
                kappa=kappa,
            )
            runs = [kl_spider(objective, plan, seed=seed, initial=w) for seed in range(seeds)]
            X = rate_variable(n, d, epsilon=4_000.0)
            points.append(
                Point(
                    optimizer="kl_spider, theory",
                    kappa=kappa,
                    n=n,
                    X=X,
                    excess=tuple(objective.loss(run.w) for run in runs),
                    promised=plan.parameters["accuracy"],
                )
            )
            scaled.append(plan.parameters["floor"] ** (1 / kappa))
    return points, scaled


def proximal(kappa=3.0, *, d=4, seeds=5, sizes=(500, 900, 1_600, 2_800, 5_000)):
    """Return points of the proximal point method with growing weights, and with the printed one.

    Both have the same stages, inner steps and noise.
    """
    points = {"proximal_point": [], "printed weight": []}
    for n in sizes:
        objective, w = problem_of(kappa, n, d)
        gamma, _ = objective.kl
        plan = calibrate.proximal_point(
            objective.constants, n=n, dimension=d, gamma=gamma, kappa=kappa, **TARGET
        )
        first = stage_weights(plan)[0]

        def printed(seed, w=w, objective=objective, plan=plan, first=first):
            oracle = PrivateOracle(objective, plan, seed=seed)
            for _ in range(plan.parameters["stages"]):
                w = regularized_descent(oracle, w, first, plan.parameters["inner_steps"])
            return w

        def growing(seed, w=w, objective=objective, plan=plan):
            return proximal_point(objective, plan, seed=seed, initial=w).w

        for name, run in (("proximal_point", growing), ("printed weight", printed)):
            points[name].append(
                Point(
                    optimizer=name,
                    kappa=kappa,
                    n=n,
                    X=rate_variable(n, d),
                    excess=tuple(objective.loss(run(seed)) for seed in range(seeds)),
                )
            )
    return points


def proximal_theory(kappa=3.0, *, d=4, seeds=16, rates=(3e-2, 2.1e-2, 1.4e-2, 1e-2, 7e-3)):
    """Return points at the theorem's stages and inner steps, growing and printed weight.

    Steps are in the millions, so that all seeds run side by side with the exact mean gradient of
    |w|^p / p and its noise, for a convex loss (Ltil = 0) that a record moves by 2 L0 / n.
    """
    p = kappa / (kappa - 1)
    gamma, F0, L0 = p ** (-1 / kappa), 1 / p, 2.0
    points = {"growing weight": [], "printed weight": []}
    scaled = []
    for X in rates:
        T = math.ceil(8 * math.log(F0 / (gamma * L0 * X) ** kappa))
        S = math.ceil(math.log(2 * T / 0.05) ** 2 / X**2 / T) - 1
        noise = L0 * X * math.sqrt(2 * S * T / d)  # 2 L0 / n at cost rho / (S T) each
        floor = (8 * gamma * L0 * X * math.sqrt(4 * T)) ** kappa / 64  # of what is seen, not proved
        growing, level = [], F0
        for _ in range(T):
            growing.append(level ** ((2 - kappa) / kappa) / (8 * gamma**2))
            level = max(7 / 8 * level, floor)
        for name, weights in (("growing weight", growing), ("printed weight", growing[:1] * T)):
            w = np.tile(np.eye(d)[0], (seeds, 1))
            rng = np.random.default_rng(0)
            for weight in weights:
                w = _algorithm_4(w, weight, S, noise, L0, p, rng)
            excess = np.linalg.norm(w, axis=1) ** p / p
            points[name].append(
                Point(optimizer=name, kappa=kappa, n=0, X=X, excess=tuple(excess.tolist()))
            )
        scaled.append(X * math.sqrt(T))
    return points, scaled


def _algorithm_4(center, weight, S, noise, L0, p, rng):
    """Run Algorithm 4 on |w|^p / p for each row of centres."""
    w = mean = center
    radius = L0 / (2 * weight)
    for t in range(1, S + 1):
        norms = np.sqrt(np.einsum("ij,ij->i", w, w))[:, np.newaxis]
        g = w * norms ** (p - 2) + 2 * weight * (w - center)
        g += noise * rng.standard_normal(w.shape)
        away = w - 2 / (weight * (t + 1)) * g - center
        norms = np.sqrt(np.einsum("ij,ij->i", away, away))[:, np.newaxis]
        w = center + away * (radius / np.maximum(norms, radius))
        mean = mean + 2 / (t + 2) * (w - mean)
    return mean


def adaptive(kappas=(1.2, 1.5, 2.0), *, d=3_000, seeds=10, sizes=(200, 400, 800, 1_600, 3_200)):
    """Return points of adaptive gradient descent where the dimension rules, d >= N^(kappa / 2)."""
    points, target = [], {"epsilon": 30.0, "delta": 1e-6}
    for kappa in kappas:
        for n in sizes:
            objective, w = problem_of(kappa, n, d)
            plan = calibrate.adaptive_gd(
                objective.constants, n=n, dimension=d, **{"public": True, **target}
            )
            runs = [adaptive_gd(objective, plan, seed=seed, initial=w) for seed in range(seeds)]
            points.append(
                Point(
                    optimizer="adaptive_gd",
                    kappa=kappa,
                    n=n,
                    X=rate_variable(n, d, **target),
                    excess=tuple(objective.loss(run.w) for run in runs),
                )
            )
    return points


def compared(kappas=(1.25, 1.5, 2.0), *, d=10, seeds=5, sizes=(4_000, 26_000, 160_000)):
    """Return points of KL Spider, adaptive and plain noisy descent on the same problems."""
    points = []
    for kappa in kappas:
        for n in sizes:
            objective, w = problem_of(kappa, n, d)
            gamma, _ = objective.kl
            constants, given = objective.constants, {"n": n, "dimension": d, **TARGET}
            plans = {
                kl_spider: calibrate.kl_spider(constants, gamma=gamma, kappa=kappa, **given),
                adaptive_gd: calibrate.adaptive_gd(constants, **given),
                noisy_gd: calibrate.noisy_gd(constants, steps=100, **given),
            }
            for optimizer, plan in plans.items():
                runs = [optimizer(objective, plan, seed=seed, initial=w) for seed in range(seeds)]
                points.append(
                    Point(
                        optimizer=optimizer.__name__,
                        kappa=kappa,
                        n=n,
                        X=rate_variable(n, d),
                        excess=tuple(objective.loss(run.w) for run in runs),
                    )
                )
    return points


def step_times(sizes=(100, 500, 2_000), *, d=30, steps=4_000):
    """Return (n, fused, kernel and noise alone, numpy) in microseconds per step of Algorithm 3.

    CPU time, the least of several runs. The plain loop is the algorithm as it is written, with a
    sum for the norm and one for the gradient; it keeps no ledger.
    """
    rows = []
    for n in sizes:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = np.where(rng.random(n) < 0.7, 1.0, -1.0)
        objective = Logistic(X, y, fit_intercept=False, classes_from_data=True)
        # Loud enough a gradient and quiet enough a norm for the run to last.
        constants = Constants(lipschitz=1.0, smoothness=1e4)
        plan = calibrate.adaptive_gd(
            constants, n=n, dimension=d, epsilon=4_000.0, delta=1e-6, steps=steps
        )
        fused = []
        for seed in range(3):
            began = time.process_time()
            run = adaptive_gd(objective, plan, seed=seed)
            taken = time.process_time() - began
            fused.append(taken / run.ledger.count("gradient"))
        everyone, w = np.arange(n), np.zeros(d)

        def alone(kernel=objective.kernel, everyone=everyone, w=w, noise=rng):
            kernel(w, everyone, max_norm=1.0)
            noise.standard_normal(d + 1)

        def mean_gradient(w, X=X, y=y):
            slopes = -y / (1 + np.exp(y * (X @ w)))
            gradients = slopes[:, np.newaxis] * X
            norms = np.linalg.norm(gradients, axis=1)
            gradients *= np.minimum(1.0, 1.0 / np.maximum(norms, 1e-300))[:, np.newaxis]
            return gradients.mean(axis=0)

        def plain(w=w, mean_gradient=mean_gradient, noise=rng):
            norm = np.linalg.norm(mean_gradient(w)) + 1e-6 * noise.standard_normal()
            sigma = norm / math.sqrt(d)
            return w - 5e-5 * (mean_gradient(w) + sigma * noise.standard_normal(d))

        rows.append((n, *(1e6 * t for t in (min(fused), _time(alone), _time(plain)))))
    return rows


def _time(function, repeats=5, calls=300):
    times = []
    for _ in range(repeats):
        began = time.process_time()
        for _ in range(calls):
            function()
        times.append((time.process_time() - began) / calls)
    return min(times)


def by_kappa(points):
    return {kappa: [p for p in points if p.kappa == kappa] for kappa in {p.kappa for p in points}}


def main():
    argparse.ArgumentParser(prog="python -m benchmarks.optimizers_kl").parse_args()
    print("KL Spider, practical: slope of log excess against log X; of the promise; times kept")
    for kappa, points in sorted(by_kappa(spider()).items()):
        found, low, high = slope(points)
        promised = np.polyfit(
            np.log([p.X for p in points]), np.log([p.promised for p in points]), 1
        )
        kept = [e <= p.promised for p in points for e in p.excess]
        print(
            f"  kappa {kappa:<5g} {found:.2f} [{low:.2f}, {high:.2f}], promise {promised[0]:.2f}, "
            f"kept {sum(kept)} of {len(kept)}"
        )
    print("KL Spider, theory: slope against log (X sqrt(K log(1 / beta')))")
    points, scaled = spider_theory()
    for kappa in sorted({p.kappa for p in points}):
        chosen = [(p, s) for p, s in zip(points, scaled, strict=True) if p.kappa == kappa]
        found, low, high = slope([p for p, _ in chosen], against=[s for _, s in chosen])
        largest = max(e / p.promised for p, _ in chosen for e in p.excess)
        print(
            f"  kappa {kappa:<5g} {found:.2f} [{low:.2f}, {high:.2f}], excess at most "
            f"{largest:.2f} of the promise"
        )
    print("Proximal point, kappa = 3")
    for name, points in proximal().items():
        found, low, high = slope(points)
        excess = ", ".join(f"{np.exp(np.log(p.excess).mean()):.1e}" for p in points)
        print(f"  {name:<15} {found:.2f} [{low:.2f}, {high:.2f}]: {excess}")
    print("Proximal point, kappa = 3, at the theorem's counts: against log X, and log (X sqrt(T))")
    found, scaled = proximal_theory()
    for name, points in found.items():
        raw, corrected = slope(points), slope(points, against=scaled)
        excess = ", ".join(f"{np.exp(np.log(p.excess).mean()):.1e}" for p in points)
        print(
            f"  {name:<15} {raw[0]:.2f} [{raw[1]:.2f}, {raw[2]:.2f}], {corrected[0]:.2f} "
            f"[{corrected[1]:.2f}, {corrected[2]:.2f}]: {excess}"
        )
    print("Adaptive, d = 3000: slope against log X, and 2 kappa / (4 - kappa)")
    for kappa, points in sorted(by_kappa(adaptive()).items()):
        found, low, high = slope(points)
        print(
            f"  kappa {kappa:<5g} {found:.2f} [{low:.2f}, {high:.2f}], "
            f"theorem {2 * kappa / (4 - kappa):.2f}"
        )
    print("Compared at epsilon = 2, d = 10: geometric mean of the excess risk")
    for p in compared():
        mean = np.exp(np.log(p.excess).mean())
        print(f"  kappa {p.kappa:<5g} n {p.n:<7} {p.optimizer:<12} {mean:.1e}")
    print("Adaptive step, d = 30: microseconds fused, kernel and noise alone, numpy")
    for n, fused, alone, plain in step_times():
        print(f"  n {n:<6} {fused:.1f}, {alone:.1f}, {plain:.1f}: {plain / fused:.0f} times faster")


if __name__ == "__main__":
    # Runs are timed again, and compared, at equal seeds.
    from dpcal.optim import replaying

    with replaying():
        main()
