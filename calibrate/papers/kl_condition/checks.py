"""Programs that claims and errata of the paper name: loops, sums, and prices."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from dpcal.calibrate.papers.claims.language import Claim, Enumeration


def _recursion_is_maximum(case: tuple[Fraction, int, int]) -> bool:
    """Phi_k = max(c^-k F0, floor) solves the recursion, for F0 = 1."""
    contraction, inverse, rounds = case
    lowest = Fraction(1, inverse)
    value = Fraction(1)
    for _ in range(rounds):
        value = max(value / contraction, lowest)
    return value == max(contraction**-rounds, lowest)


def _weights_sum_to_one(steps: int) -> bool:
    """The weights 2 t / (T (T + 1)) of Algorithm 4 sum to one."""
    return sum(Fraction(2 * k, steps * (steps + 1)) for k in range(1, steps + 1)) == 1


def _literal_loop_count(steps: Fraction) -> bool:
    """``while t <= T`` makes at most T steps."""
    taken = 0
    while taken <= steps:
        taken += 1
    return taken <= steps


def _repaired_loop_count(steps: Fraction) -> bool:
    """``while t < ceil(T)`` makes ceil(T) steps, and releases one difference less."""
    taken, releases, limit = 0, 0, max(1, ceil(steps))
    while taken < limit:
        taken += 1
        releases += taken < limit
    return taken == limit and releases == limit - 1


def _unbounded_filter(costs: tuple[int, ...]) -> bool:
    """Testing past cost only keeps the total within a budget of 8."""
    total = 0
    for cost in costs:
        if total > 8:
            break
        total += cost
    return total <= 8


def _strict_filter(costs: tuple[int, ...]) -> bool:
    """Testing the total including the coming release keeps it within a budget of 8."""
    total = 0
    for cost in costs:
        if total + cost > 8:
            break
        total += cost
    return total <= 8


_COSTS = [(3, 3, 3, 3), (8, 1), (1,) * 12, (5, 2, 2, 9), (7, 8)]


def _printed_restart(case: tuple[int, int]) -> bool:
    """The next round starts at a tested iterate: index t - 1 after leaving at t."""
    limit, leaves_at = case
    index = min(leaves_at, limit) - 1
    return index == min(leaves_at, limit)


def _repaired_restart(case: tuple[int, int]) -> bool:
    """Index t after leaving at t is defined and was tested, or ends a full round."""
    limit, leaves_at = case
    index = min(leaves_at, limit)
    return 0 <= index <= limit


def _first_round_is_defined(start: int) -> bool:
    """The loop over rounds begins with the round that was initialized."""
    return start == 1


_ROUNDS = [(limit, leave) for limit in (1, 3) for leave in (0, 1, 3)]


CHECKS: dict[str, Claim] = {
    "recursion_is_maximum": Enumeration(
        "",
        _recursion_is_maximum,
        [(Fraction(p, 8), q, k) for p in (9, 12, 20) for q in (3, 50, 4000) for k in (1, 5, 17)],
    ),
    "weights_sum_to_one": Enumeration("", _weights_sum_to_one, list(range(1, 40))),
    "repaired_loop_count": Enumeration(
        "", _repaired_loop_count, [Fraction(k, 4) for k in range(2, 30)]
    ),
    "literal_loop_count": Enumeration(
        "", _literal_loop_count, [Fraction(k, 4) for k in range(4, 30)]
    ),
    "strict_filter": Enumeration("", _strict_filter, _COSTS),
    "unbounded_filter": Enumeration("", _unbounded_filter, _COSTS),
    "repaired_restart": Enumeration("", _repaired_restart, _ROUNDS),
    "printed_restart": Enumeration("", _printed_restart, _ROUNDS),
    "first_round_is_1": Enumeration("", _first_round_is_defined, [1], complete=True),
    "first_round_is_0": Enumeration("", _first_round_is_defined, [0]),
}
