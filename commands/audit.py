"""``dpcal audit``: prove or refute the printed settings of six papers, or evaluate them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import dpcal
from dpcal.commands._shared import bar
from dpcal.commands._signature import Answer
from dpcal.report.output import at_most, columns, dump


def audit(
    paper: str | None = None,
    *,
    explain: str | None = None,
    at: Mapping[str, Any] | None = None,
    format: Literal["table", "json", "markdown", "latex"] = "table",  # noqa: A002
    output: Path | None = None,
    processes: int = 2,
    fresh: bool = False,
) -> Answer:
    """Prove or refute the printed settings of six papers, or plan with them.

    The exit status is 1 when a verdict is not as expected.

    Parameters
    ----------
    paper
        kl_condition, spiderboost, gauss_psgd, dp_rgda, kan or moments (default: all six), a file
        my_paper.py or a module package.module that defines SCHEDULE, or a name that an installed
        package offers.
    explain
        One claim or erratum, with formula and evidence.
    at
        With n=1e6 d=100 and so on, print every setting's value, the theorem's plan and its cost: n,
        epsilon, delta, relation, and constants in the paper's letters, which an error lists. The
        paper may be another algorithm of a paper: tree_spider, recursive_regularization, jl_glm,
        proximal_point, adaptive_gd, select_point, dp_rgda_population.
    format
        Of the report.
    output
        Write the report to a file.
    processes
        Children that decide claims, each with limits of time and memory; 0 decides them in this
        process.
    fresh
        Decide all claims again, also those that an earlier call has decided.

    Examples
    --------
    dpcal audit kl_condition --explain EP1
    dpcal audit spiderboost --at n=60000 d=784 epsilon=1 delta=1e-6 L0=1 L1=1 F0=1 --json
    """
    if (explain or at) and not paper:
        asked = "--explain" if explain else "--at"
        raise ValueError(f"{asked} needs a paper, as in: dpcal audit kl_condition --explain EP1.")
    if at:
        document, text = _evaluated(str(paper), dict(at))
        return _written(Answer(document, dump(document) if format == "json" else text), output)
    report = dpcal.calibrate.audit(
        paper,
        only=explain,
        progress=bar("dpcal audit", "claim"),
        processes=processes,
        store=None if fresh else dpcal.calibrate.papers.default_store(),
    )
    text = report.explain(explain) if explain else report.render(format)
    document = json.loads(report.render("json"))
    return _written(Answer(document, text.rstrip("\n"), 0 if report.ok else 1), output)


def _written(answer: Answer, output: Path | None) -> Answer:
    """Write the text of an answer to a file, if one is named."""
    if output is None:
        return answer
    output.write_text(answer.text + "\n", encoding="utf-8")
    return Answer(answer.document, f"written to {output}", answer.status)


def _evaluated(paper: str, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a theorem's settings at numbers, with its plan and the plan's cost."""
    if missing := {"n", "epsilon", "delta"} - given.keys():
        raise ValueError(f"--at must have {', '.join(sorted(missing))}, got none of them.")
    plan, settings = dpcal.calibrate.theorem_at(paper, **given)
    cost = plan.price()
    names = ("setting", "value", "printed", "source")
    document = {
        "settings": [dict(zip(names, row, strict=True)) for row in settings],
        "plan": plan.to_dict(),
        "priced_epsilon": float(cost),
        "accuracy_kind": plan.accuracy_kind,
    }
    rows = [("setting", "value", "as printed", "source"), *settings]
    lines = columns([(a, _told(b), _told(c), d) for a, b, c, d in rows])
    cost_line = f"epsilon {at_most(cost, digits=6)} at delta {plan.delta:g}"
    return document, "\n".join([*lines, "", str(plan), cost_line])


def _told(value: Any) -> str:
    """Return a cell of the table: seven digits of a number, a dash where there is none."""
    return "-" if value is None else f"{value:.7g}" if isinstance(value, float) else str(value)
