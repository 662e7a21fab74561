"""Which privacy losses does an event compose? From a ``DpEvent`` to dominating pairs.

>>> from dpcal.accountants import events
>>> composition = decompose(
...     events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=50), "add-or-remove-one"
... )
>>> [direction.name for direction in composition.directions]
['remove', 'add']
>>> composition.directions[0].parts
((SampledGaussian(sampling_probability=0.01, noise_multiplier=1.0, direction='remove'), 50),)
"""

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.directions import RELATIONS, Composition
from dpcal.accountants.mechanisms.leaves import composed, leaves
from dpcal.accountants.mechanisms.table import dominating_pairs

__all__ = ["decompose", "leaves"]


def decompose(event: events.DpEvent, neighboring_relation: str) -> Composition:
    """Return the dominating pairs that ``event`` composes.

    Parameters
    ----------
    event
        Any nesting of ``ComposedDpEvent`` and ``SelfComposedDpEvent`` over supported mechanisms.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Raises
    ------
    UnsupportedEvent
        If no theorem in this package covers a mechanism under this relation.
    """
    _validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
    return composed(event, neighboring_relation, dominating_pairs)
