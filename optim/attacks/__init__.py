"""Would an attack tell? Attacks on runs of one's own, to find what a privacy claim got wrong.

:func:`replay` runs anything that trains twice, on neighbouring data, with the same answers, and
checks every sum, batch, noise and entry of the ledger.
"""

from dpcal.optim.attacks.findings import VIOLATIONS, Finding, Replay
from dpcal.optim.attacks.neighbours import Neighbours, neighbours, without
from dpcal.optim.attacks.replaying import replay, replay_table

__all__ = [
    "VIOLATIONS",
    "Finding",
    "Neighbours",
    "Replay",
    "neighbours",
    "replay",
    "replay_table",
    "without",
]
