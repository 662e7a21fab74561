"""How is one budget split over a pipeline? By weights, so that the steps' budgets add up to it.

>>> from sklearn.pipeline import make_pipeline
>>> from dpcal.estimators import LogisticRegression, StandardScaler
>>> steps = make_pipeline(StandardScaler(bounds=(-3, 3)), LogisticRegression(classes=[0, 1]))
>>> model = split_budget(steps, epsilon=1.0, delta=1e-6, weights=[1, 4])
>>> [round(step.epsilon, 6) for step in model]
[0.2, 0.8]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from dpcal import _validate
from dpcal.estimators.base import PrivateEstimator

__all__ = ["split_budget"]


def split_budget(
    pipeline: Any,
    *,
    epsilon: float,
    delta: float,
    weights: Sequence[float] | Mapping[str, float] | None = None,
) -> Any:
    """Return a copy of a pipeline whose private steps share (epsilon, delta).

    The parts add up to the whole, which basic composition allows whatever the steps are. What a fit
    really costs is less, for releases compose better than that; :func:`dpcal.budget` says how much.

    Parameters
    ----------
    pipeline
        A scikit-learn ``Pipeline``, fitted or not, with at least one private step.
    epsilon
        A finite number > 0 for one fit of the whole pipeline.
    delta
        A number in (0, 1) for one fit of the whole pipeline.
    weights
        Of the private steps, > 0: a sequence in their order, or a mapping from the names of steps.
        Equal when omitted.

    Raises
    ------
    ValueError
        If there is no private step, or the weights are not one positive number for each.
    """
    whole = _validate.positive(epsilon=epsilon), _validate.probability(delta=delta)
    made = clone(pipeline)
    private = {name: step for name, step in made.steps if isinstance(step, PrivateEstimator)}
    if not private:
        raise ValueError("pipeline must have a private step, got none.")
    given = dict.fromkeys(private, 1.0) if weights is None else weights
    if not isinstance(given, Mapping):
        if len(given) != len(private):
            raise ValueError(
                f"weights must be one for each of {', '.join(private)}, got {len(given)} of them."
            )
        given = dict(zip(private, given, strict=True))
    if set(given) != set(private):
        raise ValueError(
            f"weights must be for the private steps {', '.join(private)}, got {', '.join(given)}."
        )
    positive = {name: _validate.positive(weights=weight) for name, weight in given.items()}
    total = math.fsum(positive.values())
    for name, step in private.items():
        # Rounded down, so that the parts do not add up to more than the whole.
        share = positive[name] / total * (1 - 2.0**-50)
        step.set_params(epsilon=whole[0] * share, delta=whole[1] * share)
    return made
