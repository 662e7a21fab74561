"""Draws of numbers and events for the questions of the corpus.

>>> rounded(0.123456)
0.123
>>> times(gaussian(2.0), 3)["count"]
3
"""

from __future__ import annotations

from typing import Any

import numpy as np

Event = dict[str, Any]


def rounded(value: float) -> float:
    """Return a number of three digits, as a user would write it."""
    return float(f"{value:.3g}")


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return rounded(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def whole(rng: np.random.Generator, low: int, high: int) -> int:
    return int(between(rng, low, high))


def one(rng: np.random.Generator, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def gaussian(sigma: float) -> Event:
    return {"type": "GaussianDpEvent", "noise_multiplier": sigma}


def poisson(q: float, inner: Event) -> Event:
    return {"type": "PoissonSampledDpEvent", "sampling_probability": q, "event": inner}


def times(event: Event, count: int) -> Event:
    return {"type": "SelfComposedDpEvent", "event": event, "count": count} if count > 1 else event


def composed(*events: Event) -> Event:
    return {"type": "ComposedDpEvent", "events": list(events)}


def fixed(kind: str, size: int, batch: int, inner: Event) -> Event:
    return {
        "type": kind,
        "source_dataset_size": size,
        "sample_size": batch,
        "event": inner,
    }


def discrete_laplace(rng: np.random.Generator) -> Event:
    shift = one(rng, 1, 1, 2, 3)
    return {
        "type": "DiscreteLaplaceDpEvent",
        "noise_parameter": between(rng, 0.02, 2.0),
        "sensitivity": shift,
    }
