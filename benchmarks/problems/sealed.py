"""What does it save that the last iterate alone leaves? Logistic regression, rows of norm 1, d = 8.

``python -m benchmarks sealed [--seeds 8]`` prints, for sizes n, strengths l2 of the regulariser and
epsilons (delta 1e-6, a record blanked):

- ``steps``, of :func:`dpcal.calibrate.noisy_gd` with ``release="last"``, and ``saved``: the noise
  that as many steps need if every iterate is released, over the noise of the last alone;
- the mean excess of the regularised training loss: of the last iterate alone (``sealed``), of the
  last of as many released ones at the same step size (``released``), and of the mean of released
  iterates, with growing weights, at the settings of :class:`dpcal.calibrate.defaults.Defaults`, 120
  to 1,000 of them (``averaged``).
"""

import argparse
import itertools

import numpy as np

from dpcal import calibrate, optim
from dpcal.calibrate.defaults import Defaults
from dpcal.calibrate.plans.common import single_release

DELTA, RELATION, DIMENSION = 1e-6, "replace-special", 8


def records(n):
    """Return rows of norm 1 and labels."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, DIMENSION))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, rng.random(n) < 1 / (1 + np.exp(-5 * X[:, 0]))


def row(n, l2, epsilon, seeds):
    """Return steps, what is saved, and the three excesses."""
    X, y = records(n)
    objective = optim.Logistic(X, y, l2=l2, fit_intercept=False, classes=[False, True])
    least = objective.loss(objective.minimize())
    known = optim.Logistic.constants_for(row_norm=1.0, l2=l2, fit_intercept=False)
    target = {"epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}
    sizes = {"n": n, "dimension": DIMENSION, **target}
    sealed = calibrate.noisy_gd(known, **sizes, release="last")
    (query,) = sealed.queries
    steps, rate = query.descent.steps, query.descent.learning_rate
    released = calibrate.noisy_gd(known, **sizes, steps=steps)
    release = single_release(epsilon, DELTA, RELATION)
    tuned = Defaults.of("logistic", n=n, dimension=DIMENSION, row_norm=1.0, release=release)
    averaged = calibrate.noisy_gd(known, **sizes, steps=tuned.steps, max_norm=tuned.max_norm)
    own = tuned.learning_rate(averaged.queries[0].noise_multiplier, l2=l2)
    ways = [
        (sealed, {}),
        (released, {"learning_rate": rate}),
        (averaged, {"learning_rate": own, "output": "linear"}),
    ]
    excess = [
        np.mean(
            [objective.loss(optim.noisy_gd(objective, plan, **how).w) - least for _ in range(seeds)]
        )
        for plan, how in ways
    ]
    return steps, released.queries[0].noise_multiplier / query.noise_multiplier, *excess


def main(seeds):
    """Print the table."""
    print("| n | l2 | epsilon | steps | saved | sealed | released | averaged |")
    print("|---|---|---|---|---|---|---|---|")
    for n, l2, epsilon in itertools.product((1_000, 10_000), (1.0, 0.1, 0.01, 0.001), (1.0, 4.0)):
        steps, saved, *excess = row(n, l2, epsilon, seeds)
        cells = " | ".join(f"{each:.1e}" for each in excess)
        print(f"| {n:,} | {l2:g} | {epsilon:g} | {steps} | {saved:.2f} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    main(parser.parse_args().seeds)
