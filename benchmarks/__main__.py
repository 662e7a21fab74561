"""Run studies by name, or all of them: ``python -m benchmarks [NAME ...]``.

You can run each study by itself, with options: see ``python -m benchmarks.NAME --help`` or the
docstring of the module. Options after a single name are the study's.
"""

import argparse
import subprocess
import sys

STUDIES = {
    "speed": "one page: times beside other packages and numpy, starts, plans and runs",
    "utility": "optimizers beside DP-SGD on records, slopes beside theorems, saddle points left",
    "corpus": "our answers to all questions with proved brackets",
    "gate": "how close the answers are to 1,535 questions that people ask, and their times",
    "sweep": "every answer at 12,000 random points against independent bounds",
    "overhead": "every optimizer's step beside plain numpy",
    "estimators": "private estimators on six tables beside other packages",
    "recommended": "the optimizer that is recommended first, on sixty problems that fitted nothing",
    "untuned": "settings of DP-SGD that nobody chose, beside the best in hindsight",
    "adapters": "tests of the adapters beside PyTorch, Opacus, Flower and JAX",
    "torch": "a guard's step beside Opacus: seconds, memory and accuracy on six networks",
    "sklearn_releases": "check_estimator on four releases of scikit-learn",
    "mutants": "300 changes of the code, and how many of them the tests find",
}
# Studies that are in a folder of their own, or are another module's with other arguments.
COMMANDS = {
    "corpus": ["benchmarks.corpus", "score", "dpcal"],
    "sweep": ["benchmarks.gate", "--families=everywhere,little_noise", "--file=build/sweep.csv"],
    "recommended": ["benchmarks.problems.recommended"],
    "untuned": ["benchmarks.problems.untuned"],
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
