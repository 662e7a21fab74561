"""How fast are the likelihood ratios of correlated noise, and what do they say?

    python -m benchmarks.correlated [--draws N] [--epsilons]

Times are processor seconds on one thread for 1000 rounds. The yardsticks are the same recursion
with 16 nodes in numpy: log M one draw at a time, with all nodes of a round in each call, as one
writes it down; log M of all draws at once, two matrix products and one ``logaddexp`` a round; and M
itself of all draws at once, two matrix products and one ``exp`` a draw and round, without a bound
on its error.

With ``--epsilons``, the near-exact epsilon at delta = 1e-5 for sampling probability 0.01, beside
the Renyi bound; z is the noise multiplier over the largest norm of a column of C.
"""

import argparse
import os
import sys
import time

ROUNDS, RATE, DELTA = 1000, 0.01, 1e-5


def restart_with_one_thread():
    """Restart with one BLAS thread, because the kernel uses one."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.correlated", *sys.argv[1:]])


def lambda_cgd(decay):
    from dpcal.accountants.matrix import LambdaCGD

    return LambdaCGD(ROUNDS, decay)


def from_normalised(decay, z):
    """The standard deviation that the literature names by z: it divides by the largest column."""
    return z / (1 - decay**2) ** 0.5


def in_numpy(engine, a):
    """The recursion of ``GridEngine`` for Poisson sampling, one whole round at a time."""
    import numpy as np

    s, W0, W1 = engine._grid
    b, decay = engine.mechanism.energies, engine.mechanism.decay
    M = np.zeros((s.size, a.shape[1]))
    for t in range(ROUNDS - 1, -1, -1):
        idle = W0 @ M + np.log1p(-RATE)
        join = W1 @ M + (np.log(RATE) + a[t] - b[t] / 2) - (decay * b[t] * s)[:, None]
        M = np.logaddexp(idle, join)
    return M[0]


def likelihoods_in_numpy(engine, a):
    """Likelihood ratios by M instead of log M, divided by its largest value in every round."""
    import numpy as np

    s, W0, W1 = engine._grid
    b, decay = engine.mechanism.energies, engine.mechanism.decay
    M, log_scale = np.ones((s.size, a.shape[1])), np.zeros(a.shape[1])
    for t in range(ROUNDS - 1, -1, -1):
        join = np.exp(-decay * b[t] * s)[:, None] * (W1 @ M)
        join *= RATE * np.exp(a[t] - b[t] / 2)
        M = (1 - RATE) * (W0 @ M) + join
        log_scale += np.log(M[0])
        M /= M[0]
    return log_scale


def draw_by_draw(engine, a):
    """Likelihood ratios of one draw after another."""
    import numpy as np

    s, W0, W1 = engine._grid
    b, decay = engine.mechanism.energies, engine.mechanism.decay
    idle, join = np.log1p(-RATE), np.log(RATE)
    values = np.empty(a.shape[1])
    for draw in range(a.shape[1]):
        M = np.zeros(s.size)
        for t in range(ROUNDS - 1, -1, -1):
            h = a[t, draw] - b[t] / 2
            M = np.logaddexp(idle + W0 @ M, join + h - decay * b[t] * s + W1 @ M)
        values[draw] = M[0]
    return values


def cost(function, draws):
    """Processor seconds for 100,000 draws, best of three, and the value."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        value = function()
        best = min(best, time.process_time() - start)
    return best / draws * 1e5, value


def engines(draws):
    import numpy as np

    from dpcal.accountants.correlated.likelihood import BracketEngine, GridEngine, ParticleEngine
    from dpcal.accountants.correlated.mechanism import Mechanism
    from dpcal.accountants.samplers import Poisson

    run = Mechanism.of(lambda_cgd(0.9), noise_multiplier=from_normalised(0.9, 2.0))
    law = Poisson(RATE).automaton(ROUNDS)
    x = run.sigma * np.random.default_rng(0).standard_normal((ROUNDS, draws))
    a = run.fields(x)
    grid = GridEngine(run, law, 16)
    few = np.ascontiguousarray(a[:, :256])
    theirs, truth = cost(lambda: in_numpy(grid, a), draws)
    plain, by_likelihood = cost(lambda: likelihoods_in_numpy(grid, a), draws)
    single, by_one = cost(lambda: draw_by_draw(grid, few[:, :32]), 32)
    for name, seconds, value in (
        ("numpy, draw by draw", single, by_one),
        ("numpy, all draws", theirs, truth),
        ("numpy, all draws, M", plain, by_likelihood),
    ):
        apart = np.abs(value - truth[: value.size]).max()
        print(f"{name:20} {seconds:8.1f} s per 100,000 draws   apart {apart:.1e}")
    for name, engine, fields in (
        ("grid, 16 nodes", grid, a),
        ("grid, 32 nodes", GridEngine(run, law, 32), a),
        ("log M, 16 nodes", GridEngine(run, law, 16, logarithmic=True), a),
        ("log M, 32 nodes", GridEngine(run, law, 32, logarithmic=True), a),
        ("bracket, above", BracketEngine(run, law), a),
        ("bracket, below", BracketEngine(run, law, upper=False), a),
        ("16 particles", ParticleEngine(run, law, 16), few),
    ):
        ours, value = cost(
            lambda engine=engine, fields=fields: engine.log_ratio(fields), fields.shape[1]
        )
        apart = np.abs(value - truth[: value.size]).max()
        print(
            f"{name:20} {ours:8.1f} s   numpy / ours = {single / ours:6.1f} draw by draw, "
            f"{theirs / ours:5.1f} all at once, {plain / ours:5.1f} by M   apart {apart:.1e}"
        )


def epsilons(draws):
    from dpcal.accountants import correlated

    for decay, z in ((0.5, 2.0), (0.9, 4.0), (0.9, 2.0), (0.9, 0.8)):
        for statistics in ("asymptotic", "certified"):
            start = time.process_time()
            try:
                answer = correlated.epsilon(
                    lambda_cgd(decay),
                    correlated.Poisson(RATE),
                    noise_multiplier=from_normalised(decay, z),
                    delta=DELTA,
                    statistics=statistics,
                    draws=draws,
                    seed=1,
                )
            except ValueError as refusal:
                print(f"decay {decay} z {z}: {refusal}")
                continue
            seconds = time.process_time() - start
            print(
                f"decay {decay} z {z}: epsilon {answer.estimate:.3f} in [{answer.lower:.3f}, "
                f"{answer:.3f}], proved {answer.certified:.3f}, {answer.method}, {seconds:.0f} s"
            )


def main():
    parser = argparse.ArgumentParser(description="Time and read correlated-noise accountants.")
    parser.add_argument("--draws", type=int, default=2048)
    parser.add_argument("--epsilons", action="store_true", help="also solve for epsilon")
    options = parser.parse_args()
    engines(options.draws)
    if options.epsilons:
        epsilons(max(options.draws, 16_384))


if __name__ == "__main__":
    restart_with_one_thread()
    main()
