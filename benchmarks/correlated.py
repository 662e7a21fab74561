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


def in_numpy(mechanism, a, nodes=32):
    """The recursion for Poisson sampling at Chebyshev nodes of the sum, a whole round at a time."""
    import numpy as np

    b, decay = mechanism.energies, mechanism.decay
    s = 0.5 / (1 - decay) * (1 - np.cos(np.pi * np.arange(nodes) / (nodes - 1)))
    values = np.linalg.inv(np.polynomial.chebyshev.chebvander(2 * (1 - decay) * s - 1, nodes - 1))
    idle, join = (
        np.polynomial.chebyshev.chebvander(2 * (1 - decay) * to - 1, nodes - 1) @ values
        for to in (decay * s, decay * s + 1)
    )
    M, log_scale = np.ones((s.size, a.shape[1])), np.zeros(a.shape[1])
    for t in range(ROUNDS - 1, -1, -1):
        joined = np.exp(-decay * b[t] * s)[:, None] * (join @ M)
        M = (1 - RATE) * (idle @ M) + RATE * np.exp(a[t] - b[t] / 2) * joined
        log_scale += np.log(M[0])
        M /= M[0]
    return log_scale


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

    from dpcal.accountants.correlated.likelihood import Likelihood
    from dpcal.accountants.correlated.mechanism import Mechanism
    from dpcal.accountants.samplers import Poisson

    run = Mechanism.of(lambda_cgd(0.9), noise_multiplier=from_normalised(0.9, 2.0))
    engine = Likelihood.of(run, Poisson(RATE).automaton(ROUNDS))
    a = run.fields(run.sigma * np.random.default_rng(0).standard_normal((ROUNDS, draws)))
    theirs, truth = cost(lambda: in_numpy(run, a), draws)
    print(f"numpy {theirs:8.1f} s per 100,000 draws")
    for name, above in (("above", True), ("below", False)):
        ours, value = cost(lambda above=above: engine.log_ratio(a, above=above), draws)
        apart = value - truth
        print(
            f"{name} {ours:8.1f} s   numpy / ours = {theirs / ours:5.1f}   "
            f"log L less truth from {apart.min():.1e} to {apart.max():.1e}"
        )


def epsilons(draws):
    from dpcal.accountants import correlated

    for decay, z in ((0.5, 2.0), (0.9, 4.0), (0.9, 2.0), (0.9, 0.8)):
        start = time.process_time()
        answer = correlated.epsilon(
            lambda_cgd(decay),
            correlated.Poisson(RATE),
            noise_multiplier=from_normalised(decay, z),
            delta=DELTA,
            draws=draws,
            seed=1,
        )
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
