"""The commands ``audit`` and ``schedule``: thin layers over the audit and the planners.

>>> main(["audit", "gauss_psgd", "--explain", "E3"])  # doctest: +ELLIPSIS
E3 (Lemmas 2 and 6): 26/5 rounds per unit of log(1/omega) are enough only for base-2 logarithms.
...
Use: Q = ceil(log(1/omega)/log(8/7)).
0
>>> main(["audit", "kl_conditon"])
2
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["add_commands", "audit_command", "main", "schedule_command"]

_FORMATS = ("table", "json", "markdown", "html")

CONSTANTS = {
    "d": "dimension",
    "L0": "Lipschitz constant",
    "L1": "smoothness constant",
    "F0": "public bound on the initial gap",
    "gamma": "KL constant, or margin for kan",
    "kappa": "KL exponent in [1, 2]",
    "beta": "failure probability",
    "G": "Lipschitz constant",
    "M": "smoothness constant (gauss_psgd), Lipschitz constant (dp_rgda)",
    "L": "smoothness constant",
    "U": "initial gap",
    "rho": "Lipschitz constant of the Hessian",
    "K": "inner steps, at least 2",
    "max_norm": "clipping norm",
}
"""What planners may ask for besides n, epsilon and delta."""


def add_commands(commands: Any) -> None:
    """Register ``audit`` and ``schedule`` on the sub-parsers of a command line.

    Each sub-parser sets ``run``, a function of the parsed arguments that returns an exit code: 0
    answered, 1 a check failed, 2 wrong input.
    """
    audit = commands.add_parser("audit", help="prove or refute the settings of five papers")
    audit.add_argument("paper", nargs="?", help="one paper; all five when omitted")
    audit.add_argument(
        "--explain", metavar="NAME", help="one claim or erratum, with formula and evidence"
    )
    audit.add_argument(
        "--format", choices=_FORMATS, default="table", help="how to print the report"
    )
    audit.add_argument("-o", "--output", metavar="FILE", help="write the report to a file")
    audit.set_defaults(run=audit_command)
    schedule = commands.add_parser(
        "schedule", help="a paper's corrected setting as a calibrated plan (JSON)"
    )
    schedule.add_argument("paper", help="one paper")
    schedule.add_argument("--n", type=float, required=True, help="number of records")
    schedule.add_argument("--epsilon", type=float, required=True, help="target epsilon")
    schedule.add_argument("--delta", type=float, required=True, help="target delta")
    schedule.add_argument("--neighboring-relation", help="relation of the guarantee")
    for name, meaning in CONSTANTS.items():
        schedule.add_argument(f"--{name.replace('_', '-')}", dest=name, type=float, help=meaning)
    schedule.set_defaults(run=schedule_command)


def audit_command(arguments: argparse.Namespace) -> int:
    """Print the report or one explanation; return 1 when a verdict is not as expected."""
    from dpcal.calibrate.auditing import audit

    if arguments.explain and not arguments.paper:
        return _refuse("--explain needs a paper, as in: dpcal audit kl_condition --explain EP1.")
    try:
        report = audit(arguments.paper, only=arguments.explain)
    except ValueError as error:
        return _refuse(error)
    if arguments.explain:
        text = report.explain(arguments.explain)
    else:
        text = report.render(arguments.format)
    _write(text, arguments.output)
    return 0 if report.ok else 1


def schedule_command(arguments: argparse.Namespace) -> int:
    """Print the plan as JSON, and on standard error what the theorem does not promise."""
    from dpcal.calibrate.schedules import load
    from dpcal.errors import DpcalError

    names = (*CONSTANTS, "neighboring_relation")
    given = {
        name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None
    }
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = load(arguments.paper).plan(
                n=arguments.n, epsilon=arguments.epsilon, delta=arguments.delta, **given
            )
    except (ValueError, TypeError, DpcalError) as error:
        return _refuse(error)
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    document = json.loads(plan.to_json())
    print(json.dumps({**document, "priced_epsilon": float(plan.price())}, indent=2))
    return 0


def _refuse(reason: object) -> int:
    print(f"dpcal: {reason}", file=sys.stderr)
    return 2


def _write(text: str, path: str | None) -> None:
    if path is None:
        print(text.rstrip("\n"))
    else:
        Path(path).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the two commands on its own."""
    parser = argparse.ArgumentParser(prog="dpcal")
    add_commands(parser.add_subparsers(required=True))
    parsed = parser.parse_args(arguments)
    code: int = parsed.run(parsed)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
