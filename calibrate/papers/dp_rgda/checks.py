"""Programs that claims and errata of the paper name."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.kinds import Enumeration


def _refresh_counts_once(literal: bool) -> bool:
    """After a refresh the new point has weight one, the old point zero."""
    at_new, at_old = 1, 0
    if literal:
        at_new, at_old = at_new + 1, at_old - 1
    return (at_new, at_old) == (1, 0)


CHECKS: dict[str, Enumeration] = {
    "refresh_alone": Enumeration(_refresh_counts_once, [False], complete=True),
    "refresh_and_increment": Enumeration(_refresh_counts_once, [True]),
}
