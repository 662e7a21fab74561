"""Programs that claims and errata of the paper name: loops and sums."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Claim, Enumeration


def _releases(case: tuple[int, int, int, bool]) -> int:
    total, inner, period, skip = case
    refreshes = -(-total // period)
    return total * inner - (refreshes if skip else 0)


def _increments_fit_rounds(case: tuple[int, int, int]) -> bool:
    """The inner loop makes at most T increment releases."""
    return _releases((*case, False)) <= case[0]


def _increments_counted(case: tuple[int, int, int]) -> bool:
    """The corrected inner loop makes T K minus the number of refreshes."""
    total, inner, period = case
    made = sum(
        not (step == 0 and round_ % period == 0) for round_ in range(total) for step in range(inner)
    )
    return made == _releases((total, inner, period, True))


_COUNTS = [(4, 5, 2), (6, 2, 3), (10, 5, 4)]


def _corrected_inner_loop(steps: int) -> bool:
    """K inner steps let y move: the last candidate is K - 1 ascent steps away."""
    return steps - 1 >= 1


def _printed_inner_loop(steps: int) -> bool:
    """The selected candidate among k = 0..K-1 can differ from y_t."""
    return max(range(steps)) > 0


def _refresh_counts_once(literal: bool) -> bool:
    """After a refresh the new point has weight one, the old point zero."""
    at_new, at_old = 1, 0
    if literal:
        at_new, at_old = at_new + 1, at_old - 1
    return (at_new, at_old) == (1, 0)


def _smallest_is_first(values: tuple[int, ...]) -> bool:
    """The smallest of the growing noise norms is not the first one."""
    return min(range(len(values)), key=values.__getitem__) != 0


def _cumulative_norms() -> list[tuple[int, ...]]:
    """Expected squared norms of cumulative sums of five independent noises, in units of one."""
    return [tuple(range(1, 6))]


def _last_is_kept(values: tuple[int, ...]) -> bool:
    """Taking the last candidate always moves."""
    return len(values) - 1 > 0


CHECKS: dict[str, Claim] = {
    "increments_counted": Enumeration("", _increments_counted, _COUNTS),
    "increments_fit_rounds": Enumeration("", _increments_fit_rounds, _COUNTS),
    "refresh_alone": Enumeration("", _refresh_counts_once, [False], complete=True),
    "refresh_and_increment": Enumeration("", _refresh_counts_once, [True]),
    "corrected_inner_loop": Enumeration("", _corrected_inner_loop, [2, 3, 5]),
    "printed_inner_loop": Enumeration("", _printed_inner_loop, [1]),
    "last_is_kept": Enumeration("", _last_is_kept, _cumulative_norms()),
    "smallest_is_first": Enumeration("", _smallest_is_first, _cumulative_norms()),
}
