"""``dpcal corpus``: questions with proved answers, which tell which accountant is right.

The corpus belongs to the repository, not to the package: the command runs ``benchmarks.corpus`` of
a clone, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from dpcal.commands._options import add_options
from dpcal.commands.checking.output import present
from dpcal.commands.checking.progress import stage

EXAMPLES = ("score dp-accounting --rows 400", "verify poisson-0003 -o proof.json")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what is done with which rows or packages."""
    add_options(
        parser,
        """
action verify|score|generate  prove brackets again; score packages; or answer all questions anew
""",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="ids of rows to verify, families of questions to generate (default: all); packages "
        "on PyPI to score, each in a virtual environment of its own",
    )
    add_options(
        parser,
        """
--folder FOLDER:path=.  a clone of the repository (default: %(default)s)
--rows N:whole    score so many rows, as many of each family of questions (default: all)
--seconds S:number=10  processor time of one row (default: %(default)s)
--python FILE:path     an interpreter that has the package (default: a new environment)
--jobs N:whole=2  processes (default: %(default)s)
-o --output FILE:path  folder of the scores, or file for the certificate of a row, which
    'dpcal certify --check' proves again
""",
    )


def run(options: Namespace) -> int:
    """Run the corpus of a clone; the exit status is 1 if a bracket does not hold."""
    if not (options.folder / "benchmarks" / "corpus" / "__main__.py").exists():
        raise ValueError(
            f"folder must be a clone of the repository, which holds the corpus, got "
            f"{str(options.folder)!r}."
        )
    words = [options.action, *options.names, "--jobs", str(options.jobs)]
    words += ["--seconds", str(options.seconds)]
    for name in ("rows", "python", "output"):
        value = getattr(options, name)
        # Files are the caller's, and the process runs in the clone.
        given = value.absolute() if isinstance(value, Path) else value
        words += [] if value is None else [f"--{name}", str(given)]
    stage(options, f"{options.action} in {options.folder}")
    command = [sys.executable, "-m", "benchmarks.corpus", *words]
    if not options.json:
        return subprocess.run(command, cwd=options.folder, check=False).returncode
    done = subprocess.run(command, cwd=options.folder, capture_output=True, text=True, check=False)
    present(options, {"status": done.returncode, "lines": done.stdout.splitlines()}, done.stdout)
    return done.returncode
