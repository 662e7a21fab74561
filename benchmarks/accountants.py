"""How fast, and to how many digits, beside dp-accounting and prv-accountant?

    python -m benchmarks.accountants [--repeats 5] [--json]

Warm medians in a single process, each after one untimed call. dp-accounting's PLD is asked as its
documentation asks it: a fresh ``PLDAccountant`` at interval 1e-4, the event, ``get_epsilon``.
prv-accountant: a fresh ``PRVAccountant`` at eps_error 0.01 (delta_error = delta / 1000), then
``compute_epsilon``. Peak memory is measured in a process for each call, and so includes the
interpreter and the imports.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time

Q, SIGMA, STEPS, DELTA = 0.01, 1.0, 10_000, 1e-6
# Laplace inversion in 140-bit arithmetic.
TRUTH = 6.907384495
CALIBRATION_EPSILON = 2.0
STEP_COUNTS = tuple(10**k for k in range(2, 9))
PEER_REPEATS = 3


def event(sigma=SIGMA, steps=STEPS):
    from dpcal.accountants import events

    return events.dpsgd(sampling_probability=Q, noise_multiplier=sigma, steps=steps)


def ours():
    from dpcal.accountants import epsilon

    return float(epsilon(event(), delta=DELTA))


def dp_accounting_pld():
    from dp_accounting.pld import PLDAccountant

    return PLDAccountant(value_discretization_interval=1e-4).compose(event()).get_epsilon(DELTA)


def prv():
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    accountant = PRVAccountant(
        prvs=[PoissonSubsampledGaussianMechanism(Q, SIGMA)],
        max_self_compositions=[STEPS],
        eps_error=0.01,
        delta_error=DELTA / 1000,
    )
    return accountant.compute_epsilon(DELTA, [STEPS])[2]


def distinct_steps(repeats):
    """200 distinct steps, each so many times."""
    from dpcal.accountants import events

    return events.ComposedDpEvent(
        [
            events.dpsgd(
                sampling_probability=0.002 + 0.0001 * i,
                noise_multiplier=0.8 + 0.005 * i,
                steps=repeats,
            )
            for i in range(200)
        ]
    )


def hard_cases():
    """Event, delta and truth (Laplace inversion in higher precision) by name."""
    return {
        "200 distinct steps": (distinct_steps(1), DELTA, 0.7402241),
        "200 distinct steps, 50 times": (distinct_steps(50), DELTA, 5.2285352),
        "delta = 1e-15": (event(), 1e-15, 11.7599785),
        "delta = 1e-30": (event(), 1e-30, 17.6350611),
    }


def hard_study(repeats):
    """Our seconds, answer and error in the hard cases, and what dp-accounting's PLD answers."""
    from dpcal.accountants import epsilon

    rows = []
    for name, (asked, delta, truth) in hard_cases().items():
        seconds, value = median_seconds(
            lambda asked=asked, delta=delta: epsilon(asked, delta=delta), repeats
        )
        start = time.process_time()
        peer = float(epsilon(asked, delta=delta, accountant="pld"))
        rows.append(
            {
                "case": name,
                "truth": truth,
                "seconds": seconds,
                "epsilon": value,
                "pld_seconds": time.process_time() - start,
                "pld_epsilon": peer if math.isfinite(peer) else None,
            }
        )
    return rows


def profile_and_grid(repeats):
    """Seconds for a profile of 1000 epsilons, and for the noise multipliers of 100 targets."""
    import numpy as np

    from dpcal.accountants import log_delta
    from dpcal.calibrate import noise_multipliers

    def profile():
        return [log_delta(event(), epsilon=float(x)) for x in np.linspace(0.01, 20, 1000)][-1]

    def grid():
        return noise_multipliers(event, epsilon=np.geomspace(0.5, 8.0, 100), delta=DELTA)[-1]

    return {
        "profile of 1000 epsilons": median_seconds(profile, 1)[0],
        "noise multipliers of 100 targets": median_seconds(grid, repeats)[0],
    }


def our_calibration():
    from dpcal.calibrate import noise_multiplier

    return noise_multiplier(event, epsilon=CALIBRATION_EPSILON, delta=DELTA)


def dp_accounting_calibration():
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    def guarded(sigma):
        return event(sigma) if sigma > 0 else dp_accounting.NonPrivateDpEvent()

    return dp_accounting.calibrate_dp_mechanism(PLDAccountant, guarded, CALIBRATION_EPSILON, DELTA)


CALLS = {
    "ours": ours,
    "dp_accounting_pld": dp_accounting_pld,
    "prv": prv,
    "our_calibration": our_calibration,
    "dp_accounting_calibration": dp_accounting_calibration,
}


def median_seconds(call, repeats):
    """Median over ``repeats`` of a call's time, after one untimed call; and its answer."""
    answer = call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), float(answer)


def steps_study(repeats):
    """Median seconds of our epsilon at T = 10^2, ..., 10^8; same sigma, and sigma ~ sqrt(T)."""
    from dpcal.accountants import epsilon

    rows = []
    for steps in STEP_COUNTS:
        row = {"steps": steps}
        for name, sigma in (("fixed", SIGMA), ("scaled", max(SIGMA, math.sqrt(steps) / 100))):
            asked = event(sigma, steps)
            seconds, value = median_seconds(
                lambda asked=asked: epsilon(asked, delta=DELTA), repeats
            )
            row[name] = {"sigma": sigma, "seconds": seconds, "epsilon": value}
        rows.append(row)
    return rows


def peak_megabytes(name):
    """Peak resident memory of a fresh process that makes one call."""
    command = [sys.executable, "-m", "benchmarks.accountants", "--only", name]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(answer.stdout)


def measure(repeats):
    # Before anything grows here: a child's peak counts its parent's size at the fork.
    peaks = {name: peak_megabytes(name) for name in CALLS}
    results = {}
    for name, call in CALLS.items():
        few = repeats if name.startswith("our") else min(repeats, PEER_REPEATS)
        seconds, answer = median_seconds(call, 20 * few if name.startswith("our") else few)
        results[name] = {
            "seconds": seconds,
            "answer": answer,
            "peak_megabytes": peaks[name],
        }
    return {
        "calls": results,
        "steps": steps_study(10 * repeats),
        "hard": hard_study(repeats),
        "many": profile_and_grid(repeats),
    }


def report(results):
    calls = results["calls"]
    print(f"epsilon for q={Q}, sigma={SIGMA:g}, T={STEPS}, delta={DELTA:g}; truth {TRUTH}")
    print(f"{'':34}{'time':>12}{'ours is faster':>16}{'epsilon':>15}{'error':>10}{'memory':>9}")
    for name, text in (
        ("ours", "dpcal"),
        ("dp_accounting_pld", "dp-accounting PLD, interval 1e-4"),
        ("prv", "prv-accountant, eps_error 0.01"),
    ):
        _row(text, calls[name], calls["ours"], f"{calls[name]['answer'] - TRUTH:>10.1e}")
    print(f"\nsigma for epsilon={CALIBRATION_EPSILON:g}, the same q, T and delta")
    for name, text in (
        ("our_calibration", "dpcal"),
        ("dp_accounting_calibration", "calibrate_dp_mechanism with PLD"),
    ):
        _row(text, calls[name], calls["our_calibration"], " " * 10)
    print("\nepsilon at other T, fixed sigma = 1, and sigma = sqrt(T) / 100 above T = 10^4")
    for row in results["steps"]:
        fixed, scaled = row["fixed"], row["scaled"]
        print(
            f"T = {row['steps']:<10} {fixed['seconds'] * 1e3:8.3f} ms (epsilon "
            f"{fixed['epsilon']:.6g}) {scaled['seconds'] * 1e3:8.3f} ms (epsilon "
            f"{scaled['epsilon']:.6g})"
        )
    for name in ("fixed", "scaled"):
        times = [row[name]["seconds"] for row in results["steps"]]
        print(f"slowest over fastest, {name} sigma: {max(times) / min(times):.2f}")

    print(f"\n{'':30}{'dpcal':>12}{'error':>10}{'dp-accounting PLD':>20}{'error':>10}")
    for row in results["hard"]:
        peer = row["pld_epsilon"]
        error = "infinite" if peer is None else f"{peer - row['truth']:.1e}"
        print(
            f"{row['case']:30}{row['seconds'] * 1e3:>9.1f} ms{row['epsilon'] - row['truth']:>10.1e}"
            f"{row['pld_seconds'] * 1e3:>17.0f} ms{error:>10}"
        )
    for name, seconds in results["many"].items():
        print(f"{name:34}{seconds * 1e3:>9.0f} ms")


def _row(text, call, base, error):
    print(
        f"{text:34}{call['seconds'] * 1e3:>9.3f} ms{call['seconds'] / base['seconds']:>15.0f}x"
        f"{call['answer']:>15.9f}{error}{call['peak_megabytes']:>6.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description="Time accountants and calibration.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--only", choices=tuple(CALLS), help="make one call, print peak megabytes")
    options = parser.parse_args()
    if options.only:
        CALLS[options.only]()
        # Linux counts kilobytes, macOS bytes.
        unit = 2**20 if sys.platform == "darwin" else 2**10
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
        return
    results = measure(options.repeats)
    if options.json:
        print(json.dumps(results))
    else:
        report(results)


if __name__ == "__main__":
    main()
