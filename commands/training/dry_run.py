"""``dpcal train --plan``: what a training would ask, and what it would cost, before it does."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import dpcal
from dpcal.commands.checking.output import present
from dpcal.commands.checking.progress import stage
from dpcal.commands.training.cluster import connected
from dpcal.commands.training.data import read
from dpcal.commands.training.evaluation import print_warnings, warn_before
from dpcal.commands.training.plans import calibrated, compared
from dpcal.commands.training.request import Request

__all__ = ["show_plan"]


def show_plan(options: Namespace) -> int:
    """Print the plan of a training, its noise and its cost; nothing is spent or written."""
    request = Request.of(options)
    with connected(request.cluster) as client:
        task = read(request, stage(options, ""), client).task
    asked = compared(request, task)
    table = None if asked is None else dpcal.calibrate.recommend(**asked)
    plan = calibrated(request, task, table)
    task = task.planned(plan)
    print_warnings(warn_before(plan))
    dimension = task.objective.dimension
    document: dict[str, Any] = {
        "optimizer": plan.optimizer,
        "chosen": table is not None,
        "plan": plan.to_dict(),
        "dimension": dimension,
        "passes": plan.evaluations / plan.n,
        "evaluations": plan.evaluations,
    }
    seconds = ""
    if task.about_network is None:  # whose gradients are those that are timed
        document["seconds"] = plan.seconds(dimension)
        seconds = f", about {document['seconds']:.1g} s of this machine"
    lines = [str(plan)]
    if table is not None:
        document["recommendation"] = table.to_dict()
        lines += ["dpsgd or noisy_gd, by their predicted excess of the training loss:", str(table)]
    lines.append(
        f"{document['passes']:.3g} passes, {plan.evaluations:.3g} gradients of {dimension} "
        f"parameters{seconds}"
    )
    lines.append("nothing was spent: without --plan this plan is run")
    present(options, document, "\n".join(lines))
    return 0
