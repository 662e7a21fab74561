"""What each way of sampling costs: epsilon at the given noise, or the noise for a target."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import dpcal
from dpcal.commands._options import names_of, required, sampler_name
from dpcal.commands.checking.mechanism import SAMPLERS, Mechanism, noise_of
from dpcal.commands.checking.output import at_most, interval
from dpcal.commands.checking.progress import stage
from dpcal.errors import DpcalError

__all__ = ["ALL", "cell", "is_bracket", "priced", "targets"]

ALL = ",".join(SAMPLERS)
# Significant digits of an answer that is known to so many, and of the ends of a bracket.
_DIGITS, _FEW_DIGITS = 6, 4


def targets(options: Namespace) -> list[tuple[Any, float]]:
    """Return each epsilon at each delta; None for epsilon where noise was given instead."""
    return [(epsilon, delta) for delta in options.delta for epsilon in options.epsilon or (None,)]


def priced(options: Namespace, names: str) -> list[dict[str, Any]]:
    """Return a row for each of the samplers with commas between them: its answers, or a refusal.

    Raises
    ------
    ValueError
        If a name is unknown, or a size is missing.
    """
    asked = [sampler_name(name) for name in names_of(names)]
    unknown = [name for name in asked if name not in SAMPLERS]
    if unknown or not asked:
        raise ValueError(f"--samplers must be of {ALL}, got {names!r}.")
    required(options, "n", "batch_size")
    return [_row(options, Mechanism.of(options, name)) for name in asked]


def _row(options: Namespace, told: Mechanism) -> dict[str, Any]:
    """Return the price of one sampler at each delta, or why no price is known."""
    row: dict[str, Any] = {
        "sampler": told.sampler,
        "neighboring_relation": told.relation,
        "assumes": SAMPLERS[told.sampler].assumes,
        "mechanism": told.to_dict(),
    }
    try:
        answers = _prices(options, told) if options.epsilon is None else _needs(options, told)
    except DpcalError as error:
        return {**row, "answers": [], "refused": str(error)}
    return {**row, "answers": answers}


def _prices(options: Namespace, told: Mechanism) -> list[dict[str, Any]]:
    """Return epsilon at each delta, at the given noise."""
    event, answers = told.event(), []
    for delta in options.delta:
        stage(options, f"{told.sampler} at delta = {delta:g}")
        epsilon = dpcal.accountants.epsilon(event, delta=delta, neighboring_relation=told.relation)
        answers.append({"delta": delta, "epsilon": epsilon.to_dict()})
    return answers


def _needs(options: Namespace, told: Mechanism) -> list[dict[str, Any]]:
    """Solve for the noise that each target needs."""
    answers = []
    for epsilon, delta in targets(options):
        stage(options, f"{told.sampler} for epsilon = {epsilon:g} at delta = {delta:g}")
        noise = noise_of(told, epsilon=epsilon, delta=delta)
        answers.append({"epsilon": epsilon, "delta": delta, "noise_multiplier": noise})
    return answers


def cell(answer: dict[str, Any]) -> str:
    """Return the noise of an answer, or the upper end of its epsilon, or both ends of a bracket."""
    if "noise_multiplier" in answer:
        return at_most(answer["noise_multiplier"], digits=_DIGITS)
    lower, upper = answer["epsilon"]["lower"], answer["epsilon"]["upper"]
    if is_bracket(answer):
        return interval(lower, upper, digits=_FEW_DIGITS)
    return at_most(upper, digits=_DIGITS)


def is_bracket(answer: dict[str, Any]) -> bool:
    """Whether the ends of an answer differ in the digits that are shown."""
    found = answer.get("epsilon")
    return isinstance(found, dict) and found["lower"] < found["upper"] * (1 - 10.0 ** (1 - _DIGITS))
