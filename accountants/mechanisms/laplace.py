"""Laplace noise on a sum.

>>> from dpcal.accountants import epsilon
>>> f"{epsilon(events.LaplaceDpEvent(2.0), delta=0)}"
'0.5'
"""

from __future__ import annotations

import math

import numpy as np

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.inversion.amplification import between
from dpcal.accountants.inversion.finite_laws import FiniteLaw, closer_above, cut, mirrored
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.mechanisms.row import Row, distance, over

_INTERVALS = 640


def _replaced(event: events.LaplaceDpEvent, q: float) -> FiniteLaw:
    """Return the law, cut into intervals of outputs between the shifts -1 and 1."""
    a = 1 / event.noise_multiplier
    x = closer_above(a, _INTERVALS) / (2 * a) + 0.5
    low, high = x[:-1], x[1:]
    log_noise = -a * low + np.log(-np.expm1(-a * (high - low)) / 2)
    away = np.full(_INTERVALS, -a)
    ends, _ = between(x, a * (2 * x - 1), np.full(len(x), -a), q)
    values, log_q = between(log_noise, a * (low + high - 1), away, q)
    half = cut(ends, log_q, log_q + values)
    tail, log_tail = between(np.array([-a - math.log(2.0)]), np.array([a]), np.array([-a]), q)

    def whole(item: FiniteLaw) -> FiniteLaw:
        values, logs = np.append(item.values, tail), np.append(item.log_reference, log_tail)
        return FiniteLaw(*mirrored(values, logs))

    return half.changed(whole)


@Row(
    events.LaplaceDpEvent(1.0),
    "a density and two atoms (Mironov 2017)",
    record="sum",
    group=over("noise_multiplier"),
    replaced=_replaced,
)
def _laplace(event: events.LaplaceDpEvent, relation: str) -> Laplace:
    scale = validate.noise(noise_multiplier=event.noise_multiplier)
    return Laplace(scale / distance(relation))
