"""Which method answers? The decision table: from matrix and sampler to method and label.

>>> print(render())  # doctest: +ELLIPSIS
| sampler | when | method | label |
|---|---|---|---|
| poisson, cyclic-poisson | fixed groups ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpcal.accountants.correlated.mechanism import WIDEST_BAND, Mechanism
from dpcal.accountants.samplers import (
    BallsInBins,
    CyclicPoisson,
    FixedSize,
    MinSeparation,
    Poisson,
    RandomAllocation,
    Sampler,
)
from dpcal.errors import UnsupportedEvent

__all__ = ["CERTIFIED", "EXACT", "LABELS", "WITH_CONFIDENCE", "Row", "decision_table"]

EXACT = "exact"
CERTIFIED = "certified"
WITH_CONFIDENCE = "statistical with certified confidence"

LABELS = (EXACT, CERTIFIED, WITH_CONFIDENCE)


@dataclass(frozen=True)
class Row:
    """One row of the table; the first row that covers a question answers it.

    Attributes
    ----------
    samplers
        Classes of the samplers.
    when
        Condition, in words; ``holds`` is the same condition as a function.
    route
        ``"product"``, ``"bins"``, ``"automaton"``, ``"proved"`` without draws, or ``"refused"``.
    method
        The method.
    refusal
        Reason why draws cannot answer, so that a deterministic bound does; None if they can.
    """

    samplers: tuple[type[Sampler], ...]
    when: str
    route: str
    method: str
    holds: Callable[[Mechanism, Sampler], bool] = lambda mechanism, sampler: True
    refusal: str | None = None

    @property
    def label(self) -> str:
        """The labels that answers carry."""
        return {"product": EXACT, "proved": CERTIFIED, "refused": "refused"}.get(
            self.route, f"{WITH_CONFIDENCE}; {CERTIFIED} without draws"
        )

    def covers(self, mechanism: Mechanism, sampler: Sampler) -> bool:
        """Whether the row answers for this mechanism and sampler."""
        return type(sampler) in self.samplers and self.holds(mechanism, sampler)


def _separated(mechanism: Mechanism, sampler: Sampler) -> bool:
    return sampler.least_separation >= mechanism.bands


def _fixed_groups(mechanism: Mechanism, sampler: Sampler) -> bool:
    groups = sampler.groups(mechanism.steps)
    return groups is not None and not groups.secret


def _one_round_each(mechanism: Mechanism, sampler: Sampler) -> bool:
    """Return whether a record joins one random round of each epoch, with equal noise."""
    epochs, alike = sampler.epochs(mechanism.steps), mechanism.column is not None
    return epochs is not None and epochs.times == mechanism.bands == 1 and alike


def _remembered(mechanism: Mechanism, sampler: Sampler) -> bool:
    """Return whether a small memory carries a record's past."""
    few = mechanism.bands <= WIDEST_BAND or mechanism.walk is not None
    return few or _separated(mechanism, sampler)


_AUTOMATA = (Poisson, CyclicPoisson, MinSeparation, RandomAllocation)

_TABLE = (
    Row(
        (Poisson, CyclicPoisson),
        "fixed groups (one for Poisson batches), at least as many as C has bands",
        "product",
        "composition of sampled Gaussians, worst group",
        lambda *run: _fixed_groups(*run) and _separated(*run),
    ),
    Row(
        (CyclicPoisson,),
        "groups fixed, fewer than C has bands, and C not Toeplitz",
        "proved",
        "participations revealed, worst group; which group is the worst for draws is not known",
        lambda *run: _fixed_groups(*run) and run[0].column is None,
        "which group is the worst is not known, so that draws of one group bound nothing; draw "
        "groups at random, or use Poisson sampling",
    ),
    Row(
        (BallsInBins, RandomAllocation),
        "one round an epoch, and C a multiple of the identity",
        "proved",
        "contour of the exact transform",
        _one_round_each,
        "proved bounds are close, and draws would tell no more",
    ),
    Row((BallsInBins,), "otherwise", "bins", "Monte Carlo in one dimension a bin, Renyi-tilted"),
    Row(
        _AUTOMATA,
        "at most 12 bands, one decaying sum, or participations further apart than bands",
        "automaton",
        "an automaton of participations and Monte Carlo, Renyi-tilted",
        _remembered,
    ),
    Row(
        _AUTOMATA,
        "otherwise",
        "proved",
        "deterministic bounds",
        refusal="no small memory carries the past of such a matrix, so that no likelihood ratio of "
        "its outputs is known",
    ),
    Row(
        (FixedSize,),
        "always",
        "refused",
        "no dominating pair is known; use Poisson sampling or the participation-revealed bound",
    ),
)


def decision_table() -> tuple[Row, ...]:
    """Return the rows, in the order in which they are tried.

    >>> [row.route for row in decision_table()][:2]
    ['product', 'proved']
    """
    return _TABLE


def chosen(mechanism: Mechanism, sampler: Sampler) -> Row:
    """Return the row that answers.

    Raises
    ------
    TypeError
        If the sampler is not one of this package.
    UnsupportedEvent
        If the table refuses, with the reason.
    """
    for row in _TABLE:
        if row.covers(mechanism, sampler):
            if row.route == "refused":
                sampler.automaton(mechanism.steps)
                raise UnsupportedEvent(f"{sampler.name!r} batches are refused: {row.method}.")
            return row
    raise TypeError(
        "sampler must be one of the samplers of dpcal.accountants.correlated, "
        f"got {sampler!r} of type {type(sampler).__name__}."
    )


def render() -> str:
    """Return the table in Markdown."""
    lines = ["| sampler | when | method | label |", "|---|---|---|---|"]
    for row in _TABLE:
        names = ", ".join(sampler.name for sampler in row.samplers)
        lines.append(f"| {names} | {row.when} | {row.method} | {row.label} |")
    return "\n".join(lines)
