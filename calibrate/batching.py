"""Which samplers do runs have? Names, which load nothing.

>>> sorted(PLANNED)
['poisson', 'random-allocation', 'shuffled-epochs']
"""

from __future__ import annotations

__all__ = ["CORRELATED", "PLANNED", "SAMPLED"]

# Runs with fresh noise at every answer, in files of plans and in the shell.
PLANNED = ("poisson", "random-allocation", "shuffled-epochs")
# Runs with correlated noise: on sampled batches, and on all records.
SAMPLED = ("poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "random-allocation")
CORRELATED = (*SAMPLED, "full")
