"""Strategies to compare: one or more of each family, and families by name.

>>> from dpcal.accountants.matrix import PREFIX_SUMS, Single
>>> [each.kind for each in chosen(("lambda-cgd=0.5", "banded=4"), 100, Single(), PREFIX_SUMS)]
['lambda-CGD', 'banded']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from dpcal.accountants import matrix
from dpcal.accountants.matrix import Participation, Strategy, Workload

_TREE_STEPS = 4096
_BANDS = 16
# Buffers of a BLT, and bands of a banded inverse: few, so that memory stays small.
_FEW = 4
# Decays that cost little privacy: little of a contribution remains when the record returns.
_DECAYS = (0.25, 0.5, 0.75, 0.9)
_DOUBLING = (2, 4, 8, 16, 32, 64, 128)


class Family(NamedTuple):
    """A family of strategies.

    Attributes
    ----------
    size
        The unit of its size; empty if it has no size.
    member
        Function that returns the member for a number of steps and of a size.
    optimised
        Whether the member is the best one for a participation and a workload.
    """

    size: str
    member: Callable[..., Strategy | Best]
    optimised: bool = False


@dataclass(frozen=True)
class Best:
    """Banded strategies with a growing number of bands, to find the best one.

    Parameters
    ----------
    steps
        Number of steps.
    participation, workload
        Participation and workload for which the strategies are optimised.
    """

    steps: int
    participation: Participation
    workload: Workload

    def __iter__(self) -> Iterator[Strategy]:
        """Yield the strategies in turn, with bands that double."""
        yield matrix.Identity(self.steps)
        for bands in _DOUBLING:
            if bands <= self.steps:
                yield matrix.Banded.optimised(bands=bands, **vars(self))


FAMILIES = {
    "identity": Family("", matrix.Identity),
    "tree": Family("", matrix.Tree),
    "efficient-tree": Family("", partial(matrix.Tree, efficient=True)),
    "square-root": Family("", matrix.SquareRoot),
    "lambda-cgd": Family("decay", matrix.LambdaCGD),
    "lambda-cgd=best": Family("", matrix.LambdaCGD.optimised, optimised=True),
    "banded=best": Family("", Best, optimised=True),
    "banded": Family("bands", matrix.Banded.optimised, optimised=True),
    "banded-inverse": Family("inverse bands", matrix.BandedInverse.optimised, optimised=True),
    "bisr": Family("inverse bands", matrix.BISR),
    "bifr": Family("inverse bands", matrix.BIFR.optimised, optimised=True),
    "blt": Family("buffers", matrix.BLT.optimised, optimised=True),
}


def chosen(
    strategies: Sequence[Strategy | Best | str],
    steps: int,
    participation: Participation,
    workload: Workload,
) -> tuple[Strategy | Best, ...]:
    """Return strategies; a text gives a strategy by the name and size of its family.

    Parameters
    ----------
    strategies
        Strategies for as many steps, or texts such as ``"lambda-cgd=0.5"``, ``"banded=4"``,
        ``"banded-inverse=4"``, ``"blt=1"``, ``"bisr=4"``, ``"bifr=4"``, ``"tree"``,
        ``"efficient-tree"``, ``"square-root"``, ``"identity"``, ``"banded=best"`` (the number of
        bands with the least error at the target) and ``"lambda-cgd=best"`` (for the participation).
    steps
        Number of steps.
    participation, workload
        The schedule and the workload that families with parameters are optimised for.

    Raises
    ------
    ValueError
        For a name that is not in this list, or a strategy for another number of steps.
    """
    if not strategies:
        raise ValueError("strategies must be one or more, got none.")
    found = []
    for each in strategies:
        strategy = _named(each, steps, participation, workload) if isinstance(each, str) else each
        if strategy.steps != steps:
            raise ValueError(f"strategies must be for steps={steps}, got {strategy!r}.")
        found.append(strategy)
    return tuple(found)


def _named(
    text: str, steps: int, participation: Participation, workload: Workload
) -> Strategy | Best:
    name, _, given = (text, "", "") if text in FAMILIES else text.partition("=")
    if name not in FAMILIES or bool(given) != bool(FAMILIES[name].size):
        allowed = (f"{key}=<{of.size}>" if of.size else key for key, of in FAMILIES.items())
        raise ValueError(f"strategies must be among {', '.join(allowed)}, got {text!r}.")
    family = FAMILIES[name]
    real = family.size == "decay"
    try:
        size = [float(given) if real else int(given)] if given else []
    except ValueError:
        kind = "a number" if real else "a whole number"
        raise ValueError(f"{family.size} of {name} must be {kind}, got {given!r}.") from None
    aim = {"participation": participation, "workload": workload} if family.optimised else {}
    return family.member(steps, *size, **aim)


def usual(steps: int, participation: Participation) -> tuple[str, ...]:
    """Return one or more strategies of each family, for participations that are known."""
    places = participation.earliest(steps)
    bands = min(_BANDS, int(places[1]) if len(places) > 1 else steps)
    trees = ("tree", "efficient-tree") if steps <= _TREE_STEPS else ()
    few = (f"banded-inverse={min(_FEW, steps)}", f"blt={_FEW}")
    banded = (f"banded={bands}",) if bands > 1 else ()
    return ("identity", *trees, "lambda-cgd=best", *few, *banded, "square-root")


def for_random_batches(steps: int) -> tuple[str, ...]:
    """Return one or more strategies of each family, for batches that are drawn at random."""
    tree = ("tree",) if 1 < steps <= _TREE_STEPS else ()
    decays = (f"lambda-cgd={decay}" for decay in _DECAYS)
    few = (f"banded-inverse={min(_FEW, steps)}", "blt=1", f"blt={_FEW}")
    return ("identity", *tree, *decays, "banded=best", *few, "square-root")
