"""Second-order stationary points of stochastic minimax problems: DP-RGDA (arXiv 2602.01339).

``eb = sqrt(d ell)/(n epsilon)`` with ``ell = log(1/delta)``, ``rr = n eb``, and ``ell1 =
log(4/delta1)``.

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("ER-33.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(__name__)
