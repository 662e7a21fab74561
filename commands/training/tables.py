"""Records from a file, their public ranges, and their split; what is wrong is said in a sentence.

>>> ranges = Ranges(low=np.array([0.0]), high=np.array([8.0]))
>>> ranges.scale(np.array([[0.0], [4.0], [9.0]])).ravel().tolist()  # 9 is clamped to the range
[-4.0, 0.0, 4.0]
"""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["REACH", "Ranges", "Table", "read_csv", "read_ranges", "split"]

# A range is taken to span eight standard deviations, so that scaled features have unit size, which
# is what the optimizer's default learning rate supposes.
REACH = 4.0


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV file: column names, and cells as text, with the line that each row began on."""

    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        """Return the cells of one column."""
        if name not in self.columns:
            raise ValueError(
                f"target must be one of the columns {', '.join(map(repr, self.columns))}, "
                f"got {name!r}."
            )
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def numbers(self, names: list[str]) -> NDArray[np.float64]:
        """Return columns as finite numbers, shape (rows, len(names))."""
        places = [self.columns.index(name) for name in names]
        try:
            values = np.array([[row[place] for place in places] for row in self.rows], dtype=float)
        except ValueError:
            values = np.full((1, 1), math.nan)
        if not np.isfinite(values).all():
            self._name_the_cell(names, places)
        return values.reshape(len(self.rows), len(names))

    def _name_the_cell(self, names: list[str], places: list[int]) -> None:
        for line, row in zip(self.lines, self.rows, strict=True):
            for name, place in zip(names, places, strict=True):
                try:
                    wrong = not math.isfinite(float(row[place]))
                except ValueError:
                    wrong = True
                if wrong:
                    raise ValueError(
                        f"Every cell must be a finite number, got {row[place]!r} in row {line}, "
                        f"column {name!r}."
                    )


def read_csv(path: Path) -> Table:
    """Read a comma-separated file with one row of column names.

    Raises
    ------
    ValueError
        If the file cannot be read, has no records, repeats a column name, or a row has another
        number of cells than the first.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            numbered = [(reader.line_num, row) for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"csv must be a readable table, got {str(path)!r}: {error}.") from error
    if len(numbered) < 2:
        raise ValueError(
            f"csv must hold a row of column names and at least one record, got {str(path)!r} with "
            f"{len(numbered)} rows."
        )
    columns = tuple(name.strip() for name in numbered[0][1])
    if len(set(columns)) != len(columns):
        raise ValueError(f"csv must name its columns distinctly, got {', '.join(columns)}.")
    for line, row in numbered:
        if len(row) != len(columns):
            raise ValueError(
                f"Every row must have {len(columns)} cells, as the first has, got {len(row)} in "
                f"row {line}."
            )
    return Table(columns, [row for _, row in numbered[1:]], [line for line, _ in numbered[1:]])


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

    def undo(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values that :meth:`scale` maps to ``scaled``; for power 1."""
        return np.asarray(self.low + (scaled / REACH + 1) / 2 * (self.high - self.low))

    def to_dict(self, names: list[str]) -> dict[str, Any]:
        """Return the map as JSON values."""
        pairs = zip(names, self.low.tolist(), self.high.tolist(), strict=True)
        return {
            "map": f"clamp to the range, then [low, high] -> [-4, 4] by position^{self.power:g}",
            "ranges": {name: [low, high] for name, low, high in pairs},
        }


def read_ranges(text: str, names: list[str], *, option: str = "bounds") -> Ranges:
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
                f"got {text!r}: {error}."
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
    ends = np.array([pairs[name] for name in names], dtype=float).reshape(-1, 2)
    return Ranges(ends[:, 0], ends[:, 1])


def split(n: int, test: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row numbers for training and for testing: a fixed shuffle that sees only n."""
    order = np.random.default_rng(0).permutation(n)
    return np.sort(order[: n - test]), np.sort(order[n - test :])
