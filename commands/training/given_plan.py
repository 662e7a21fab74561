"""A plan that was made before: which options it stands for, and whether it costs what it says."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcal import _validate
from dpcal._files import text_of
from dpcal.calibrate import Plan
from dpcal.commands.training.tuning import TUNING, flag
from dpcal.errors import reason_of

__all__ = ["checked_tuning", "of_plan"]

# A price may differ by this between two machines, relatively.
_ROUNDING = 1e-6
# Options that a plan has settled, beside its target and those of the optimizer.
_SETTLED = (
    *("n", "smoothness", "gap", "accountant"),
    *("noise", "decay", "bands", "separation", "proved"),
)
_TARGET = ("epsilon", "delta", "neighboring_relation", "optimizer")


def of_plan(options: Namespace) -> tuple[Namespace, Plan]:
    """Return options with a plan's own in the places that it settles, and the plan.

    Raises
    ------
    ValueError
        If the file is no plan, the plan costs more than it says, or an option contradicts it.
    """
    given = _validate.instance(Plan, Path, use_plan=options.use_plan)
    plan = given if isinstance(given, Plan) else _read(given)
    price = plan.price()
    if price > plan.epsilon * (1 + _ROUNDING):
        raise ValueError(
            f"--use-plan must meet its target: its answers cost epsilon = {price:.6g} at delta = "
            f"{plan.delta:g} by accountant {plan.accountant!r}, got a target of {plan.epsilon:g}."
        )
    for name in (*TUNING, *_SETTLED):
        # A person's rows are the schema's to say, and are compared with the plan's.
        told = getattr(options, name)
        if told not in (None, False, "auto") and name not in ("group_size", "clipped"):
            raise ValueError(f"{flag(name)} does not go with --use-plan, which says it.")
    own = {name: getattr(plan, name) for name in _TARGET}
    for name, value in own.items():
        told = getattr(options, name)
        if told not in (None, value):
            raise ValueError(f"{flag(name)} must be the plan's, {value}, or left out, got {told}.")
    public = plan.neighboring_relation == "add-or-remove-one"
    settled = {**own, "accountant": plan.accountant, "n": plan.n if public else None}
    return Namespace(**{**vars(options), **settled}), plan


def checked_tuning(plan: Plan, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plan says of persons; refuse another unit of privacy than the schema's."""
    unit = {"group_size": plan.group_size, "clipped": plan.clipped}
    default = {"group_size": 1, "clipped": "row"}
    for name, value in unit.items():
        asked = told.get(name, default[name])
        if asked != value:
            raise ValueError(
                f"--use-plan must be about the persons of the schema, with {flag(name)} {asked}, "
                f"got a plan with {value}."
            )
    return {name: value for name, value in unit.items() if value != default[name]}


def _read(path: Path) -> Plan:
    """Return the plan in a file."""
    text = text_of(path, "--use-plan must be a readable file")
    try:
        return Plan.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {reason_of(error)}") from error
