"""How is one budget split over a pipeline? By weights, as far as exact composition reaches.

>>> from sklearn.pipeline import make_pipeline
>>> from dpcal.estimators import LogisticRegression, StandardScaler
>>> steps = make_pipeline(StandardScaler(bounds=(-3, 3)), LogisticRegression(classes=[0, 1]))
>>> model = split_budget(steps, epsilon=1.0, delta=1e-6, weights=[1, 4])
>>> [round(step.epsilon, 6) for step in model]
[0.244513, 0.978052]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.calibrate import noise_multiplier
from dpcal.errors import TargetUnreachable
from dpcal.estimators.parts import private_steps
from dpcal.estimators.queries import RELATION


def split_budget(
    pipeline: Any,
    *,
    epsilon: float,
    delta: float,
    weights: Sequence[float] | None = None,
) -> Any:
    """Return a copy of a pipeline with private steps that share (epsilon, delta).

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
        Weights of the private steps, > 0, in their order. Equal when omitted.

    Raises
    ------
    ValueError
        If there is no private step, the weights are not one positive number for each, or a step
        that is not private learns from the records.
    """
    whole = validate.positive(epsilon=epsilon), validate.probability(delta=delta)
    made = clone(pipeline)
    private = private_steps(made)
    if not private:
        raise ValueError("pipeline must have a private step, got none.")
    units = sorted({step.rows_per_person for step in private.values()})
    if len(units) > 1:
        raise ValueError(f"rows_per_person must be the same for all private steps, got {units}.")
    given = [1.0] * len(private) if weights is None else weights
    if len(given) != len(private):
        raise ValueError(
            f"weights must be one for each of {', '.join(private)}, got {len(given)} of them."
        )
    positive = [validate.positive(weights=weight) for weight in given]
    total = math.fsum(positive)
    # Rounded down, so that deltas do not add up to more than the whole.
    parts = [weight / total * (1 - 2.0**-50) for weight in positive]
    shares = dict(zip(private, parts, strict=True))

    def together(noise: float) -> events.DpEvent:
        own = {name: (whole[0] * share / noise, whole[1] * share) for name, share in shares.items()}
        return events.ComposedDpEvent([step._cost(*own[name]) for name, step in private.items()])

    target: dict[str, Any] = {"epsilon": whole[0], "delta": whole[1]}
    try:
        found = noise_multiplier(together, **target, neighboring_relation=RELATION)
        scale = max(1.0, 1 / found)
    except TargetUnreachable:
        scale = 1.0  # at which epsilons and deltas add up to the whole
    for name, step in private.items():
        step.set_params(epsilon=whole[0] * shares[name] * scale, delta=whole[1] * shares[name])
    return made
