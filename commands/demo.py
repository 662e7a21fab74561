"""``dpcal demo``: the whole way from targets to checked private runs, on real records."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from dpcal.commands import training
from dpcal.commands._options import REPORT, add_options

EXAMPLES = ("-o dpcal-report", "-o demo-report --json")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the output folder."""
    add_options(parser, REPORT)


def run(options: Namespace) -> int:
    """Calibrate, train, and write the report."""
    return training.demonstrate(options)
