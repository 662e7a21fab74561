"""Run studies by name, or all of them: ``python -m benchmarks [NAME ...]``.

With ``--page`` their tables replace those of the evaluation in the documentation, between two lines
that have a study's name. Each study is a module that can be run by itself, with options:
``python -m benchmarks.NAME --help`` or its docstring says more. Options after a single name are the
study's.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "evaluation.md"

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
    parser.add_argument("--page", action="store_true", help=f"keep the tables in {PAGE.name}")
    given, options = parser.parse_known_args()
    chosen = [name for name in given.studies if name in STUDIES]
    # Words that are no studies are a study's own, as in "utility slopes".
    options = [word for word in given.studies if word not in STUDIES] + options
    if options and len(chosen) != 1:
        known = ", ".join(STUDIES)
        parser.error(f"NAME must be one of {known}, with its options, got {' '.join(options)}")
    for name in chosen or STUDIES:
        print(f"== {name}: {STUDIES[name]}", flush=True)
        # A process each: a study may restart itself, and must not warm another's caches.
        command = COMMANDS.get(name, [f"benchmarks.{name}"])
        words = [sys.executable, "-m", *command, *options]
        done = subprocess.run(words, check=True, text=True, stdout=PIPE if given.page else None)
        if given.page:
            keep(" ".join([name, *options]), done.stdout)


def keep(study, tables):
    """Put what a study printed in its place in the page."""
    ends = f"<!-- {study} -->", "<!-- end -->"
    place = re.compile(f"(?<={ends[0]}\n).*?(?={ends[1]})", re.DOTALL)
    text, count = place.subn(lambda _: f"\n{tables.strip()}\n\n", PAGE.read_text(), count=1)
    PAGE.write_text(text if count else f"{text}\n{ends[0]}\n\n{tables.strip()}\n\n{ends[1]}\n")


if __name__ == "__main__":
    main()
