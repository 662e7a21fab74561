"""Stationary points: SpiderBoost, tree Spider, recursive regularization, JL (2206.00846).

Arora, Bassily, Gonzalez, Guzman, Menart, Ullah, "Faster Rates of Convergence to Stationary Points
in Differentially Private Optimization". ``abar = sqrt(d log(1/delta)) / (n epsilon)`` is the rate
variable.

>>> from dpcal.calibrate.papers.prover import prove
>>> verdict = prove(SCHEDULE.resolve(SCHEDULE.claim("E1.printed")))
>>> verdict.status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(__name__)
