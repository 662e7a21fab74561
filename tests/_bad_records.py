"""Records that count as blank, and extreme ones: each is put into one row of a table."""

import warnings
from contextlib import contextmanager

import numpy as np

# Cells that are not finite numbers.
CELLS = (np.nan, np.inf, -np.inf, None, "secret", "", {"a": 1}, [1.0], 1j, 10**400, b"x")
# Labels that are not of the classes 0 and 1, nor of any other.
LABELS = (2, -1, 0.5, np.nan, np.inf, None, "secret", "0", (0,), [0], {}, 1j, 10**400)
# Finite numbers that overflow where they are squared, multiplied or added.
EXTREMES = (1.7e308, -1.7e308, 5e-324)


def with_cell(table, row, cell):
    """Return a copy of a table or of targets with another cell, of objects if it is no float."""
    changed = np.array(table, dtype=float if isinstance(cell, float) else object)
    place = row if changed.ndim == 1 else (row, row % changed.shape[1])
    changed[place] = cell
    return changed


def with_labels(labels, row, label):
    """Return copies of labels with another one: as an array, and as a list."""
    changed = np.array(labels, dtype=float if isinstance(label, float) else object)
    changed[row] = label
    return changed, list(changed)


@contextmanager
def strict():
    """Raise each warning, and each floating-point error of numpy."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield
