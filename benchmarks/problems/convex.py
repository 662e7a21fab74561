"""Where do optimizers for losses that need not be convex end on convex ones, beside DP-SGD?

``python -m benchmarks convex [--seeds 2]`` fits logistic regressions of rows of norm 1 with a
regulariser, at epsilon 0.5, 1 and 4, delta 1e-6, a record blanked, and prints mean excesses of the
regularised training loss: of DP-SGD at the settings of :class:`dpcal.calibrate.defaults.Defaults`,
and of other optimizers at their builders' settings, told the constants of the loss. Means
are over ``--seeds`` runs on 20,000 records, and as many more as there are fewer records. The last
lines have the least, the geometric mean and the largest of the ratios to DP-SGD's excess.
"""

import argparse
import itertools
import math
import warnings

import numpy as np

from dpcal import calibrate, optim
from dpcal.calibrate.defaults import Defaults
from dpcal.calibrate.plans.common import single_release
from dpcal.errors import VacuousSchedule

DELTA, RELATION = 1e-6, "replace-special"
NAMES = ("noisy_gd", "spiderboost", "adaptive_gd", "recursive_regularization")

_LARGEST = 20_000


def problem(n, d, l2):
    """Return an objective and the least value of its loss."""
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.random(n) < 1 / (1 + np.exp(-4 * (X[:, 0] - X[:, 1])))
    objective = optim.Logistic(X, y, l2=l2, fit_intercept=False, classes=[False, True])
    return objective, objective.loss(objective.minimize())


def by_dpsgd(objective, epsilon):
    """Return parameters of DP-SGD at the default settings for rows of norm 1."""
    n, d = objective.n, objective.dimension
    target = {"epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}
    release = single_release(*target.values())
    tuned = Defaults.of("logistic", n=n, dimension=d, row_norm=1.0, release=release)
    sizes = {"batch_size": tuned.batch_size, "steps": tuned.steps, "max_norm": tuned.max_norm}
    plan = calibrate.dpsgd(n=n, **sizes, **target)
    rate = tuned.learning_rate(plan.query("gradient").noise_multiplier, l2=objective.l2)
    return optim.dpsgd(objective, plan, learning_rate=rate, output="linear").w


def by_builder(name, objective, epsilon):
    """Return parameters of another optimizer at the settings of its builder."""
    l2 = objective.l2
    constants = optim.Logistic.constants_for(row_norm=1.0, l2=l2, fit_intercept=False)
    plan = getattr(calibrate, name)(
        constants,
        n=objective.n,
        dimension=objective.dimension,
        epsilon=epsilon,
        delta=DELTA,
        neighboring_relation=RELATION,
        **({"l2": l2} if name == "adaptive_gd" else {}),
    )
    return optim.run(objective, plan).w


def row(n, d, l2, epsilon, seeds, names=NAMES):
    """Return the mean excess of DP-SGD, and of each of the others."""
    objective, least = problem(n, d, l2)

    def mean(run, *settings):
        return float(np.mean([objective.loss(run(*settings)) - least for _ in range(seeds)]))

    others = [mean(by_builder, name, objective, epsilon) for name in names]
    return mean(by_dpsgd, objective, epsilon), *others


def main(seeds):
    """Print the table."""
    warnings.simplefilter("ignore", VacuousSchedule)
    print(f"{'n x d':12}{'l2':>8}{'epsilon':>9}{'dpsgd':>10}" + "".join(f"{x:>26}" for x in NAMES))
    ratios = []
    grid = itertools.product((1_000, 5_000, _LARGEST), (5, 30), (0.001, 0.01, 0.1), (0.5, 1.0, 4.0))
    for n, d, l2, epsilon in grid:
        own, *others = row(n, d, l2, epsilon, seeds * _LARGEST // n)
        ratios.append([each / own for each in others])
        cells = "".join(f"{each:26.1e}" for each in others)
        print(f"{f'{n} x {d}':12}{l2:8g}{epsilon:9g}{own:10.1e}{cells}", flush=True)
    for name, found in zip(NAMES, zip(*ratios, strict=True), strict=True):
        mean = math.exp(np.mean(np.log(found)))
        print(f"{name}: {min(found):.2f}, {mean:.2f}, {max(found):.0f} over {len(found)} cells")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    main(parser.parse_args().seeds)
