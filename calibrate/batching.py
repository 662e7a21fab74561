"""Which samplers do runs have, and under which relations? A table that loads nothing.

>>> sorted(PLANNED)
['poisson', 'random-allocation', 'shuffled-epochs']
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CORRELATED", "PLANNED", "SAMPLED"]

# Runs whose noise is fresh at every answer, with the relations that they are offered under.
PLANNED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "poisson": ("add-or-remove-one", "replace-one", "replace-special"),
        "random-allocation": ("add-or-remove-one", "replace-special"),
        "shuffled-epochs": ("replace-one", "replace-special"),
    }
)
# Runs with correlated noise: on sampled batches, and on all records.
SAMPLED = ("poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "random-allocation")
CORRELATED = (*SAMPLED, "full")
