"""The costs of samplers: epsilon at the given noise, or the noise that meets targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dpcal
from dpcal.commands._mechanism import SAMPLERS, Mechanism, noise_of
from dpcal.errors import DpcalError
from dpcal.report.output import at_most, columns, interval

__all__ = ["cell", "priced", "table_of"]

# Significant digits of an answer that is known to so many, and of the ends of a bracket.
_DIGITS, _FEW_DIGITS = 6, 4


def priced(
    run: Mapping[str, Any],
    names: Iterable[str],
    targets: Sequence[tuple[float | None, float]],
) -> list[dict[str, Any]]:
    """Return a row for each sampler: its answers at (epsilon, delta), or a refusal.

    Where epsilon is None, the answer is the epsilon of the run's own noise. ``run`` are keywords of
    :meth:`Mechanism.of`.
    """
    return [_row(Mechanism.of(**{**run, "sampler": name}), targets) for name in names]


def _row(run: Mechanism, targets: Sequence[tuple[float | None, float]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sampler": run.sampler,
        "neighboring_relation": run.relation,
        "assumes": SAMPLERS[run.sampler].assumes,
        "mechanism": run.to_dict(),
    }
    try:
        answers = [_answer(run, epsilon, delta) for epsilon, delta in targets]
    except DpcalError as error:
        return {**row, "answers": [], "refused": str(error)}
    return {**row, "answers": answers}


def _answer(run: Mechanism, epsilon: float | None, delta: float) -> dict[str, Any]:
    if epsilon is not None:
        noise = noise_of(run, epsilon=epsilon, delta=delta)
        return {"epsilon": epsilon, "delta": delta, "noise_multiplier": noise}
    event, relation = run.event(), run.relation
    found = dpcal.accountants.epsilon(event, delta=delta, neighboring_relation=relation)
    return {"delta": delta, "epsilon": found.to_dict()}


def cell(answer: Mapping[str, Any]) -> str:
    """Return the noise of an answer, or the upper end of its epsilon, or both ends of a bracket."""
    if "noise_multiplier" in answer:
        return at_most(answer["noise_multiplier"], digits=_DIGITS)
    lower, upper = answer["epsilon"]["lower"], answer["epsilon"]["upper"]
    if _is_bracket(answer):
        return interval(lower, upper, digits=_FEW_DIGITS)
    return at_most(upper, digits=_DIGITS)


def _is_bracket(answer: Mapping[str, Any]) -> bool:
    """Whether the ends of an answer differ in the digits that are shown."""
    found = answer.get("epsilon")
    return isinstance(found, dict) and found["lower"] < found["upper"] * (1 - 10.0 ** (1 - _DIGITS))


def table_of(rows: Sequence[Mapping[str, Any]], heads: Sequence[str]) -> str:
    """Return a table of rows, in 80 columns for one target, with numbered notes below it."""
    table = [("", "sampler", "relation", *heads)]
    for place, row in enumerate(rows, start=1):
        cells = [cell(each) for each in row["answers"]] or ["refused"] * len(heads)
        table.append((f"({place})", row["sampler"], row["neighboring_relation"], *cells))
    lines = columns(table)
    lines += ["", "Each claim holds if"]
    lines += [f"({place}) {row['assumes']}" for place, row in enumerate(rows, start=1)]
    lines += [f"\n{row['sampler']}: {row['refused']}" for row in rows if "refused" in row]
    if any(_is_bracket(each) for row in rows for each in row["answers"]):
        lines += ["", "[lower, upper] is a bracket: epsilon is proved to be between its ends."]
    if heads[0].startswith("("):
        lines += ["", "Numbers are the noise multipliers that meet each target (epsilon, delta)."]
    return "\n".join(lines).rstrip()
