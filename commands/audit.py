"""``dpcal audit``: prove or refute the printed settings of six papers, or evaluate them."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

import dpcal
from dpcal.commands._options import add_options, number
from dpcal.commands.checking.output import at_most, dump, warnings_printed
from dpcal.commands.checking.progress import stage

EXAMPLES = (
    "kl_condition --explain EP1",
    "spiderboost --at n=60000 d=784 epsilon=1 delta=1e-6 L0=1 L1=1 F0=1 --json",
)
FORMATS = ("table", "json", "markdown", "latex")
PAPERS = ("kl_condition", "spiderboost", "gauss_psgd", "dp_rgda", "kan", "moments")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the paper, one claim to explain, numbers to evaluate at, and how to print."""
    add_options(
        parser,
        f"""
paper ?                {", ".join(PAPERS)} (default: all six), a file my_paper.py or a module
    package.module that defines SCHEDULE, or a name that an installed package offers
--explain NAME         one claim or erratum, with formula and evidence
--at NUMBERS:setting+  at n=1e6 d=100 and so on, print every setting's value, the theorem's plan
    and its cost: n, epsilon, delta, relation, and constants in the paper's letters, which an error
    lists; PAPER may be another algorithm of a paper: tree_spider, recursive_regularization, jl_glm,
    proximal_point, adaptive_gd, select_point, dp_rgda_population
--format FORMAT=table  {", ".join(FORMATS)} (default: %(default)s)
-o --output FILE       write the report to a file
--processes N:whole=2  children that decide claims, each with limits of time and memory
    (default: %(default)s); 0 decides them in this process
--fresh                decide all claims again, also those that an earlier call has decided
""",
        format=FORMATS,
        setting=_pair,
    )


def run(options: Namespace) -> int:
    """Print the report or one explanation; the status is 1 when a verdict is not as expected."""
    if (options.explain or options.at) and not options.paper:
        asked = "--explain" if options.explain else "--at"
        raise ValueError(f"{asked} needs a paper, as in: dpcal audit {EXAMPLES[0]}.")
    if options.at:
        text, ok = _evaluated(options), True
    else:
        text, ok = _decided(options)
    if options.output is None:
        print(text.rstrip("\n"))
    else:
        Path(options.output).write_text(text, encoding="utf-8")
    return 0 if ok else 1


def _decided(options: Namespace) -> tuple[str, bool]:
    """Return the report of a paper's claims, and whether all verdicts are as expected."""
    decided = stage(options, "deciding", unit="claim").reach
    report = dpcal.calibrate.audit(
        options.paper,
        only=options.explain,
        progress=decided,
        processes=options.processes,
        store=None if options.fresh else dpcal.calibrate.papers.default_store(),
    )
    if options.json or not options.explain:
        return report.render("json" if options.json else options.format), report.ok
    return report.explain(options.explain), report.ok


def _evaluated(options: Namespace) -> str:
    """Return a theorem's settings at numbers, with its plan and the plan's cost."""
    given = dict(options.at)
    if missing := {"n", "epsilon", "delta"} - given.keys():
        raise ValueError(f"--at must have {', '.join(sorted(missing))}, got none of them.")
    with warnings_printed():
        plan, settings = dpcal.calibrate.theorem_at(options.paper, **given)
    cost = plan.price()
    if options.json or options.format == "json":
        names = ("setting", "value", "printed", "source")
        return dump(
            {
                "settings": [dict(zip(names, row, strict=True)) for row in settings],
                "plan": json.loads(plan.to_json()),
                "priced_epsilon": float(cost),
                "accuracy_kind": plan.accuracy_kind,
            }
        )
    rows = [("setting", "value", "as printed", "source"), *settings]
    lines = [f"{a:14}  {_told(b):14}  {_told(c):14}  {d}".rstrip() for a, b, c, d in rows]
    lines += ["", f"plan of {plan.optimizer}, {plan.neighboring_relation}"]
    for query in plan.queries:
        lines.append(
            f"  {query.name}: {query.count} times, noise multiplier {_told(query.noise_multiplier)}"
        )
    told = [
        f"{name} {_told(value)}" for name, value in plan.parameters.items() if value is not None
    ]
    return "\n".join(
        [
            *lines,
            f"  {', '.join(told)}",
            f"epsilon {at_most(cost, digits=6)} at delta {plan.delta:g}",
        ]
    )


def _pair(word: str) -> tuple[str, Any]:
    """Return a name and its value from ``NAME=NUMBER``; whole numbers are told from others."""
    name, mark, text = word.partition("=")
    if not mark or not name:
        raise ArgumentTypeError(f"must be NAME=NUMBER, as in n=1e6, got {word!r}")
    if name in ("corollary", "relation"):
        return name, text
    value = number(text)
    return name, int(value) if value.is_integer() and abs(value) < 1e15 else value


def _told(value: Any) -> str:
    """Return a cell of the table: seven digits of a number, a dash where there is none."""
    return "-" if value is None else f"{value:.7g}" if isinstance(value, float) else str(value)
