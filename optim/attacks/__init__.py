"""Would an attack tell? Attacks on runs of one's own, to find what a privacy claim got wrong.

:func:`replay` runs anything that trains twice, on neighbouring data, with the same answers, and
checks every sum, batch, noise and entry of the ledger. :func:`likelihood` bounds epsilon from below
by all that a run's answers say of canaries; :func:`plant` and :func:`one_run` by what one run shows
from outside.
"""

from dpcal.optim.attacks.canaries import OneRun, Power, coins, one_run, plant, power
from dpcal.optim.attacks.findings import VIOLATIONS, Finding, Replay
from dpcal.optim.attacks.likelihood import Canaries, Likelihood, likelihood
from dpcal.optim.attacks.neighbours import Neighbours, neighbours, random_table, without
from dpcal.optim.attacks.replaying import replay, replay_table

__all__ = [
    "VIOLATIONS",
    "Canaries",
    "Finding",
    "Likelihood",
    "Neighbours",
    "OneRun",
    "Power",
    "Replay",
    "coins",
    "likelihood",
    "neighbours",
    "one_run",
    "plant",
    "power",
    "random_table",
    "replay",
    "replay_table",
    "without",
]
