"""The demonstration's records: the Wisconsin diagnostic breast-cancer table in scikit-learn.

The ranges are those that the table's published description states, rounded outward to one digit.
They are written here as constants, taken as public, and not read off the records at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from dpcal import Logistic
from dpcal.tables import REACH

HELD_OUT = 114
RANGES = {
    "mean radius": (6, 30),
    "mean texture": (9, 40),
    "mean perimeter": (40, 200),
    "mean area": (100, 3000),
    "mean smoothness": (0.05, 0.2),
    "mean compactness": (0.01, 0.4),
    "mean concavity": (0, 0.5),
    "mean concave points": (0, 0.3),
    "mean symmetry": (0.1, 0.4),
    "mean fractal dimension": (0.04, 0.1),
    "radius error": (0.1, 3),
    "texture error": (0.3, 5),
    "perimeter error": (0.7, 30),
    "area error": (6, 600),
    "smoothness error": (0.001, 0.04),
    "compactness error": (0.002, 0.2),
    "concavity error": (0, 0.4),
    "concave points error": (0, 0.06),
    "symmetry error": (0.007, 0.08),
    "fractal dimension error": (0.0008, 0.03),
    "worst radius": (7, 40),
    "worst texture": (10, 50),
    "worst perimeter": (50, 300),
    "worst area": (100, 5000),
    "worst smoothness": (0.07, 0.3),
    "worst compactness": (0.02, 2),
    "worst concavity": (0, 2),
    "worst concave points": (0, 0.3),
    "worst symmetry": (0.1, 0.7),
    "worst fractal dimension": (0.05, 0.3),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """Records to train on as an objective, and records that are held out."""

    objective: Logistic
    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]

    def score(self, w: NDArray[np.float64]) -> float:
        """Return the held-out accuracy of parameters."""
        return float((self.objective.predict(self.X_test, w) == self.y_test).mean())


def breast_cancer() -> Task:
    """Return the task, 455 records to train on and 114 held out."""
    table = load_breast_cancer()
    X, y = scaled(table.data), table.target_names[table.target]
    training, held_out = split(len(y), HELD_OUT)
    # scikit-learn's default, C = 1, in these units: a function of n, which is public.
    known: dict[str, Any] = {"classes": ("benign", "malignant"), "l2": 1 / len(training)}
    return Task(
        objective=Logistic(X[training], y[training], **known),
        X_train=X[training],
        y_train=y[training],
        X_test=X[held_out],
        y_test=y[held_out],
    )


def scaled(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return records with each value clamped to its range, which is mapped to [-4, 4]."""
    low, high = np.array(list(RANGES.values()), dtype=float).T
    return np.asarray(REACH * (2 * ((np.clip(X, low, high) - low) / (high - low)) - 1))


def scaling() -> dict[str, Any]:
    """Return what was done to the records, as JSON values."""
    return {
        "map": "clamp to the range, then [low, high] -> [-4, 4] by position^1",
        "ranges": {name: [float(low), float(high)] for name, (low, high) in RANGES.items()},
    }


def split(n: int, test: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row numbers for training and for testing: a fixed shuffle that sees only n."""
    order = np.random.default_rng(0).permutation(n)
    return np.sort(order[: n - test]), np.sort(order[n - test :])
