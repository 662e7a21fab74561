"""Is it better to clip rows of persons, or the sums of persons? Excess risks on one table.

    python -m benchmarks persons

Of several clipping norms and learning rates the best one is printed, by the mean over two tables.
"""

from __future__ import annotations

import itertools

import numpy as np

from dpcal import calibrate, optim

PERSONS, FEATURES, STEPS, DELTA = 1_500, 10, 300, 1e-6
CLIPS = {"row": (0.125, 0.25, 0.5), "user": (0.25, 0.5, 1.0, 2.0)}
RATES = (0.125, 0.25, 0.5, 1.0)


def table(rows: int, alike: float, seed: int) -> tuple[optim.Logistic, np.ndarray]:
    """Return a logistic regression on rows of persons, of whom a share is alike, and the owners."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(FEATURES)
    owners = np.repeat(np.arange(PERSONS), rows)
    shared = rng.standard_normal((PERSONS, FEATURES))[owners]
    X = np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.standard_normal(shared.shape)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = 6 * (X @ w) / np.linalg.norm(w)
    y = (scores + rng.logistic(size=len(X)) > 0).astype(int)
    return optim.Logistic(X, y, classes=[0, 1], fit_intercept=False), owners


def excess(clipped: str, rows: int, alike: float, epsilon: float) -> tuple[float, float]:
    """Return the least mean excess risk, and the noise multiplier, at this epsilon."""
    made = [table(rows, alike, seed) for seed in (0, 1)]
    n = PERSONS * (rows if clipped == "row" else 1)
    about = {"n": n, "batch_size": n // 10, "steps": STEPS, "epsilon": epsilon, "delta": DELTA}
    found = []
    for clip, rate in itertools.product(CLIPS[clipped], RATES):
        plan = calibrate.dpsgd(**about, group_size=rows, clipped=clipped, max_norm=clip)
        losses = []
        for objective, owners in made:
            best = objective.loss(objective.minimize())
            asked = (
                optim.Users(objective, owners, group_size=rows) if clipped == "user" else objective
            )
            result = optim.dpsgd(
                asked, plan, output="linear", learning_rate=rate / clip, noise="gaussian"
            )
            losses.append(objective.loss(result.w) - best)
        found.append(float(np.mean(losses)))
    return min(found), plan.queries[0].noise_multiplier


def main() -> None:
    """Print a row for each epsilon, number of rows and likeness."""
    print("| epsilon | rows | alike | rows clipped | noise | sums clipped | noise |")
    print("|---|---|---|---|---|---|---|")
    for epsilon, rows, alike in itertools.product((1.0, 4.0), (2, 8), (0.0, 0.9)):
        cells = [excess(clipped, rows, alike, epsilon) for clipped in CLIPS]
        told = " | ".join(f"{risk:.1e} | {noise:.2f}" for risk, noise in cells)
        print(f"| {epsilon:g} | {rows} | {alike} | {told} |", flush=True)


if __name__ == "__main__":
    main()
