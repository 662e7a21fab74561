"""How good is a classifier on held-out records? Everything from one table of counts.

The counts are of records by their true class and by the probability that the model gave to the
second class, in ten equal bins. If they carry noise, whatever follows from them is as private as
they are.

>>> counts = np.array([[40.0, 10.0], [5.0, 45.0]])  # rows: true class; columns: two bins
>>> found = metrics(counts, ("no", "yes"))
>>> found["accuracy"], found["majority_baseline"], found["auc"]
(0.85, 0.5, 0.85)
>>> found["confusion"]["yes"]
{'no': 5.0, 'yes': 45.0}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINS", "cells", "metrics"]

# The probability is cut into this many bins. Each adds a noisy count to sums; with fewer, AUC and
# calibration are coarser.
BINS = 10


def cells(labels: NDArray[Any], probability: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the cell of each record in the flattened table of counts.

    Parameters
    ----------
    labels
        0 or 1, shape (m,).
    probability
        Of class 1 as the model gave it, in [0, 1], shape (m,).
    """
    # A probability of 1/2 stands for the first class, as in predictions: bins exclude their start.
    bins = np.clip(np.ceil(probability * BINS).astype(np.intp) - 1, 0, BINS - 1)
    return np.asarray((labels > 0) * BINS + bins, dtype=np.intp)


def metrics(
    counts: NDArray[np.float64], labels: Sequence[str], *, noise: float = 0.0
) -> dict[str, Any]:
    """Return accuracy, its standard error and baseline, AUC, recall, confusion and calibration.

    Parameters
    ----------
    counts
        Shape (2, bins), bins even: rows are true classes, columns bins of probability. They may
        carry noise, and be negative.
    labels
        The two classes.
    noise
        Standard deviation of the noise on each count.
    """
    counts = np.asarray(counts, dtype=np.float64)
    bins = counts.shape[1]
    half = bins // 2
    total = max(float(counts.sum()), 1.0)
    share = _share(float(counts[1].sum()), total)
    accuracy = _share(float(counts[0, :half].sum() + counts[1, half:].sum()), total)
    known = np.maximum(counts, 0.0)
    confusion = np.stack([known[:, :half].sum(axis=1), known[:, half:].sum(axis=1)], axis=1)
    # Half of all cells are right ones: their noise adds up, and so does the chance of drawing.
    error = math.sqrt(accuracy * (1 - accuracy) / total + counts.size / 2 * (noise / total) ** 2)
    return {
        "records": round(total, 1),
        "accuracy": accuracy,
        "standard_error": error,
        "majority_baseline": max(share, 1 - share),
        "auc": _auc(known),
        "thresholds": [_at(known, edge, bins) for edge in range(1, bins)],
        "confusion": {
            true: {said: float(confusion[i, j]) for j, said in enumerate(labels)}
            for i, true in enumerate(labels)
        },
        "calibration": [
            {
                "predicted": (column + 0.5) / bins,
                "observed": _share(known[1, column], known[:, column].sum()),
                "records": float(known[:, column].sum()),
            }
            for column in range(bins)
            if known[:, column].sum() > 0
        ],
    }


def _share(part: float, whole: float) -> float:
    return float(min(1.0, max(0.0, part / whole))) if whole > 0 else 0.0


def _auc(counts: NDArray[np.float64]) -> float | None:
    """Probability that a record of class 1 scores higher than one of class 0; ties count half."""
    first, second = counts
    below = np.cumsum(first) - first
    pairs = float(first.sum() * second.sum())
    return float((second * (below + first / 2)).sum()) / pairs if pairs > 0 else None


def _at(counts: NDArray[np.float64], edge: int, bins: int) -> dict[str, float]:
    """Recall, false alarms and precision where class 1 is said from this bin on."""
    said = counts[:, edge:].sum(axis=1)
    return {
        "threshold": edge / bins,
        "recall": _share(said[1], counts[1].sum()),
        "false_alarms": _share(said[0], counts[0].sum()),
        "precision": _share(said[1], said.sum()),
    }
