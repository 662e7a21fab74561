"""Run studies by name, or all of them: ``python -m benchmarks [NAME ...]``.

Each study is a module that can be run by itself, with options: ``python -m benchmarks.NAME --help``
or its docstring says more. Options after a single name are the study's.
"""

import argparse
import subprocess
import sys

STUDIES = {
    "accountants": "epsilon and calibration beside four other packages",
    "performance": "one page: times beside other packages and numpy, starts, plans and runs",
    "streams": "correlated noise against the normals that it is made from",
    "corpus": "our answers to all questions with proved brackets",
    "gate": "how close the answers are to 1,535 questions that people ask, and their times",
    "sweep": "every answer at 10,000 random points against independent bounds",
    "allocations": "random allocations from a wide box: widths, times and monotonicity",
    "little_noise": "the same at 2,000 points where losses are in the hundreds",
    "constants": "what breaks if a numeric constant of the inversion is halved or doubled",
    "audit": "the time that each paper's claims take to decide, and the slowest of them",
    "textbook": "48 inequalities of the field: how many are proved, and in how many seconds",
    "correlated": "likelihood ratios of correlated noise against numpy, and what they say",
    "correlated_claims": "claims about correlated noise: coverage, an attack, other seeds",
    "dpsgd_step": "one DP-SGD step against two BLAS passes",
    "optimizers_kl": "rates of the optimizers under the KL condition, and the cost of a step",
    "optimizers_spider": "SpiderBoost and embedded models: slopes in n and d, speed of their loops",
    "optimizers_second_order": "escapes from a saddle, silos, digits, and speed of Gauss-PSGD",
    "minimax": "DP-RGDA past saddles, sensing beside a data-free control, fairness and AUC",
    "digits_auc": "AUC on digits at constants that nobody chose, beside DP-SGD",
    "kan": "accuracy of a network over the correlation of its noise, at one price",
    "kan_stability": "coupled runs of KANs on neighboring tables, beside their bound",
    "sensing_learned": "matrix sensing with enough measurements, beside walks without data",
    "lower_bounds": "the hard instances of lower bounds, and how near optimizers come to them",
    "noise": "every optimizer and estimator with discrete noise beside Gaussian",
    "overhead": "every optimizer's step beside plain numpy, full batches, draws, ledger and memory",
    "mlp_step": "a private step of a network beside Opacus and beside one without privacy",
    "optimizers": "every optimizer beside DP-SGD on records, and its slope beside its theorem",
    "estimators": "private estimators on six tables beside other packages",
    "curved": "linear models on splines, bins and random features beside DP-EBM",
    "persons": "rows of persons clipped one by one, beside their sums, at equal epsilon",
    "recommended": "the optimizer that is recommended first, on sixty problems that fitted nothing",
    "untuned": "settings of DP-SGD that nobody chose, beside the best in hindsight",
    "solvers": "four other private solvers of linear models beside DP-SGD's defaults",
    "convex": "optimizers for losses that need not be convex, on convex ones beside DP-SGD",
    "sealed": "what it saves that the last iterate alone is released, and what averages save",
    "samplers": "DP-SGD on three kinds of batches, and correlated noise, at one price",
    "partitions": "sums over a data set on two workers of a cluster, beside one process",
    "adapters": "tests of the adapters beside PyTorch, Opacus, Flower and JAX",
    "sklearn_releases": "check_estimator on four releases of scikit-learn",
    "budget_book": "a charge to a budget book of up to 10,000 rows",
    "tables": "a million rows by twenty, from the file to the objective: time and memory",
    "mutants": "300 changes of the code, and how many of them the tests find",
    "demo_settings": "what tuning would bring the demonstration, and what it would cost",
}
# Studies that are in a folder of their own, or are another module's with other arguments.
COMMANDS = {
    "corpus": ["benchmarks.corpus", "score", "dpcal"],
    "allocations": ["benchmarks.claims.allocations"],
    "little_noise": ["benchmarks.sweep", "--little-noise", "--points", "2000"],
    "textbook": ["benchmarks.claims.textbook"],
    "dpsgd_step": ["benchmarks.steps.dpsgd"],
    "noise": ["benchmarks.steps.noise"],
    "mlp_step": ["benchmarks.steps.mlp"],
    "overhead": ["benchmarks.steps.overhead"],
    "partitions": ["benchmarks.steps.partitions"],
    "performance": ["benchmarks.steps.performance"],
    "correlated_claims": ["benchmarks.claims.correlated"],
    "kan_stability": ["benchmarks.problems.kan_stability"],
    "sensing_learned": ["benchmarks.problems.sensing_learned"],
    "lower_bounds": ["benchmarks.problems.lower_bounds"],
    "digits_auc": ["benchmarks.problems.digits_auc"],
    "curved": ["benchmarks.problems.curved"],
    "persons": ["benchmarks.problems.persons"],
    "recommended": ["benchmarks.problems.recommended"],
    "untuned": ["benchmarks.problems.untuned"],
    "solvers": ["benchmarks.problems.solvers"],
    "convex": ["benchmarks.problems.convex"],
    "sealed": ["benchmarks.problems.sealed"],
    "samplers": ["benchmarks.problems.samplers"],
    "adapters": ["benchmarks.sklearn_releases", "--adapters"],
}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run studies.")
    names = "; ".join(f"{name}: {text}" for name, text in STUDIES.items())
    parser.add_argument("studies", nargs="*", metavar="NAME", help=f"{names} (default: all)")
    given, options = parser.parse_known_args()
    if options and len(given.studies) != 1:
        parser.error(f"options go with one study, got {' '.join(options)}")
    chosen = given.studies or list(STUDIES)
    unknown = [name for name in chosen if name not in STUDIES]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(STUDIES)}, got {', '.join(unknown)}")
    for name in chosen:
        print(f"== {name}: {STUDIES[name]}", flush=True)
        # A process each: a study may restart itself, and must not warm another's caches.
        command = COMMANDS.get(name, [f"benchmarks.{name}"])
        subprocess.run([sys.executable, "-m", *command, *options], check=True)


if __name__ == "__main__":
    main()
