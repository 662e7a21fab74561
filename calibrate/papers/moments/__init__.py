"""Moments accountant and DP-SGD (arXiv 1607.00133).

Names: ``q`` is the sampling probability, ``Lam = log(1/delta)``, ``lam`` the order of a moment.

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("M1.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(__name__)
