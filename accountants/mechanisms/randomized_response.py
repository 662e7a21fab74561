"""Randomized response.

>>> from dpcal.accountants import epsilon
>>> event = events.RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2)
>>> print(f"{epsilon(event, delta=0, neighboring_relation='replace-one'):.6f}")      # log 3
1.098612
"""

from __future__ import annotations

from dpcal.accountants import events
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import blanked_response, randomized_response
from dpcal.accountants.mechanisms.row import Pairs, Row, refuse


@Row(events.RandomizedResponseDpEvent(0.5, 3), "finite sums", record="scaled")
def _response(event: events.RandomizedResponseDpEvent, relation: str) -> Pairs | PrivacyLoss:
    if relation == "add-or-remove-one":
        raise refuse(
            event, relation, "An answer that is there or not reveals the record's presence."
        )
    parameters = {"noise_parameter": event.noise_parameter, "num_buckets": event.num_buckets}
    if relation == "replace-special":
        return blanked_response(**parameters)
    return randomized_response(**parameters)
