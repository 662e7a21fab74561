"""Which samplers do runs have? Names, which load nothing.

>>> sorted(PLANNED)
['poisson', 'random-allocation', 'shuffled-epochs']
"""

from __future__ import annotations

PLANNED = ("poisson", "random-allocation", "shuffled-epochs")
SAMPLED = ("poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "random-allocation")
CORRELATED = (*SAMPLED, "full")
