"""Public ranges of features that all are numbers, and the demonstration's split.

>>> ranges = Ranges(low=np.array([0.0]), high=np.array([8.0]))
>>> ranges.scale(np.array([[0.0], [4.0], [9.0]])).ravel().tolist()  # 9 is clamped to the range
[-4.0, 0.0, 4.0]
>>> read_ranges("-3:3", ["a", "b"])
{'a': (-3.0, 3.0), 'b': (-3.0, 3.0)}
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.errors import reason_of
from dpcal.tables import REACH

__all__ = ["Ranges", "read_ranges", "split"]


@dataclass(frozen=True, eq=False)
class Ranges:
    """Public ranges of features, and the map of each record that they define.

    A value is clamped to its range, and the range is mapped to [-4, 4], by the ``power`` of the
    position in it. The map of a record looks at no other record, so it costs no privacy, provided
    that the ranges were not read off the records.

    Parameters
    ----------
    low, high
        Shape (d,), low < high.
    power
        In (0, 1]: 1 for a linear map, 1/2 for positive, right-skewed measurements.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    power: float = 1.0

    def scale(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return records of shape (n, d), scaled."""
        position = (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low)
        return np.asarray(REACH * (2 * position**self.power - 1))

    def to_dict(self, names: list[str]) -> dict[str, Any]:
        """Return the map as JSON values."""
        pairs = zip(names, self.low.tolist(), self.high.tolist(), strict=True)
        return {
            "map": f"clamp to the range, then [low, high] -> [-4, 4] by position^{self.power:g}",
            "ranges": {name: [low, high] for name, low, high in pairs},
        }


def read_ranges(
    text: str, names: list[str], *, option: str = "bounds"
) -> dict[str, tuple[float, float]]:
    """Read ``LOW:HIGH``, for all columns, or a JSON file of ``{"column": [low, high], ...}``.

    Raises
    ------
    ValueError
        If neither can be read, a column is missing, or a range is not low < high.
    """
    low, colon, high = text.partition(":")
    try:
        pairs = {name: (float(low), float(high)) for name in names} if colon else {}
    except ValueError:
        pairs = {}
    if not pairs:
        try:
            document = json.loads(Path(text).read_text())
            pairs = {name: (float(document[name][0]), float(document[name][1])) for name in names}
        except (OSError, ValueError, TypeError, IndexError) as error:
            raise ValueError(
                f"{option} must be LOW:HIGH or a JSON file of column: [low, high], "
                f"got {text!r}: {reason_of(error)}."
            ) from error
        except KeyError as error:
            raise ValueError(
                f"{option} must name every feature, {text!r} lacks {error}."
            ) from error
    for name, (least, most) in pairs.items():
        if not (math.isfinite(least) and math.isfinite(most) and least < most):
            raise ValueError(
                f"{option} must have finite low < high, got {least:g}:{most:g} for column {name!r}."
            )
    return pairs


def split(n: int, test: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row numbers for training and for testing: a fixed shuffle that sees only n."""
    order = np.random.default_rng(0).permutation(n)
    return np.sort(order[: n - test]), np.sort(order[n - test :])
