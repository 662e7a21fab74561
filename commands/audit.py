"""``dpcal audit``: prove or refute the printed settings of six papers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import dpcal
from dpcal.commands._options import add_options
from dpcal.commands.checking.progress import stage

EXAMPLES = ("kl_condition --explain EP1", "kl_condition --explain EP1 --json")
FORMATS = ("table", "json", "markdown", "latex")
PAPERS = ("kl_condition", "spiderboost", "gauss_psgd", "dp_rgda", "kan", "moments")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the paper, one claim to explain, and how to print."""
    add_options(
        parser,
        f"""
paper ?                {", ".join(PAPERS)} (default: all six), a file my_paper.py or a module
    package.module that defines SCHEDULE, or a name that an installed package offers
--explain NAME         one claim or erratum, with formula and evidence
--format FORMAT=table  {", ".join(FORMATS)} (default: %(default)s)
-o --output FILE       write the report to a file
--processes N:whole=2  children that decide claims, each with limits of time and memory
    (default: %(default)s); 0 decides them in this process
--fresh                decide all claims again, also those that an earlier call has decided
""",
        format=FORMATS,
    )


def run(options: Namespace) -> int:
    """Print the report or one explanation; the status is 1 when a verdict is not as expected."""
    if options.explain and not options.paper:
        raise ValueError("--explain needs a paper, as in: dpcal audit kl_condition --explain EP1.")
    decided = stage(options, "deciding", unit="claim").reach
    report = dpcal.calibrate.audit(
        options.paper,
        only=options.explain,
        progress=decided,
        processes=options.processes,
        store=None if options.fresh else dpcal.calibrate.papers.default_store(),
    )
    if options.json or not options.explain:
        text = report.render("json" if options.json else options.format)
    else:
        text = report.explain(options.explain)
    if options.output is None:
        print(text.rstrip("\n"))
    else:
        Path(options.output).write_text(text, encoding="utf-8")
    return 0 if report.ok else 1
