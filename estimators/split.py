"""How is one budget split over a pipeline? By weights, as far as exact composition reaches.

>>> from sklearn.pipeline import make_pipeline
>>> from dpcal.estimators import LogisticRegression, StandardScaler
>>> steps = make_pipeline(StandardScaler(bounds=(-3, 3)), LogisticRegression(classes=[0, 1]))
>>> model = split_budget(steps, epsilon=1.0, delta=1e-6, weights=[1, 4])
>>> [round(step.epsilon, 6) for step in model]
[0.244507, 0.978027]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from dpcal import _validate
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.estimators.base import PrivateEstimator
from dpcal.estimators.parts import learns, leaves_of
from dpcal.estimators.queries import RELATION

__all__ = ["private_steps", "split_budget"]


def split_budget(
    pipeline: Any,
    *,
    epsilon: float,
    delta: float,
    weights: Sequence[float] | Mapping[str, float] | None = None,
) -> Any:
    """Return a copy of a pipeline whose private steps share (epsilon, delta).

    Epsilons of the steps are in proportion to the weights, and the largest that exact composition
    of a fit of all steps allows; deltas are shares of the whole. Epsilons therefore add up to more
    than the whole, and never cost more.

    Parameters
    ----------
    pipeline
        A scikit-learn ``Pipeline``, fitted or not, with at least one private step; steps may be
        column transformers, feature unions and pipelines of private ones.
    epsilon
        A finite number > 0 for one fit of the whole pipeline.
    delta
        A number in (0, 1) for one fit of the whole pipeline.
    weights
        Of the private steps, > 0: a sequence in their order, or a mapping from the names of steps,
        such as ``"columntransformer__scaler"``. Equal when omitted.

    Raises
    ------
    ValueError
        If there is no private step, the weights are not one positive number for each, or a step
        that is not private learns from the records.
    """
    whole = _validate.positive(epsilon=epsilon), _validate.probability(delta=delta)
    made = clone(pipeline)
    private = private_steps(made)
    if not private:
        raise ValueError("pipeline must have a private step, got none.")
    units = sorted({step.rows_per_person for step in private.values()})
    if len(units) > 1:
        raise ValueError(f"rows_per_person must be the same for all private steps, got {units}.")
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
    # Rounded down, so that deltas do not add up to more than the whole.
    shares = {name: weight / total * (1 - 2.0**-50) for name, weight in positive.items()}
    scale = _largest_scale(private, shares, *whole)
    for name, step in private.items():
        step.set_params(epsilon=whole[0] * shares[name] * scale, delta=whole[1] * shares[name])
    return made


def private_steps(model: Any, *, fitted: bool = False) -> dict[str, PrivateEstimator]:
    """Return the private parts of a model by the names of their parameters, in order of fitting.

    They are those of pipelines, column transformers, feature unions and transformed targets, which
    fit each of them once; of another estimator, itself if it is one. Those that learn nothing with
    their parameters are left out. Of a model that is ``fitted`` they are the fitted parts.

    Raises
    ------
    ValueError
        If a part that is not private learns from the records: its fit costs privacy, and nobody
        prices it. If a part fits private ones several times, as ensembles and searches do.
    """
    leaves = leaves_of(model, fitted=fitted)
    exact = [
        f"{name!r} ({type(part).__name__})"
        for name, part in leaves
        if name and not isinstance(part, PrivateEstimator) and learns(part)
    ]
    if exact:
        raise ValueError(
            f"pipeline must have steps that are private or learn nothing, got {', '.join(exact)}, "
            "fitted to the records and not private."
        )
    return {
        name: part
        for name, part in leaves
        if isinstance(part, PrivateEstimator) and not part._is_free()
    }


def _largest_scale(
    private: Mapping[str, PrivateEstimator],
    shares: Mapping[str, float],
    epsilon: float,
    delta: float,
) -> float:
    """Return the largest factor of all epsilons; at 1 they add up to the whole."""

    def fits(scale: float) -> bool:
        parts = [
            step._cost(epsilon * shares[name] * scale, delta * shares[name])
            for name, step in private.items()
        ]
        together = events.ComposedDpEvent(parts)
        return epsilon_of(together, delta=delta, neighboring_relation=RELATION).upper <= epsilon

    low, high = 1.0, 1.0
    # Of k equal Gaussian releases each may have about sqrt(k) times its share.
    while high < len(private) and fits(2 * high):
        low = high = 2 * high
    high *= 2
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
