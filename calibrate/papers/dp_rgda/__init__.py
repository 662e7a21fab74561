"""Second-order stationary points of stochastic minimax problems: DP-RGDA (arXiv 2602.01339).

``eb = sqrt(d ell)/(n epsilon)`` with ``ell = log(1/delta)``, ``rr = n eb``, and ``ell1 =
log(4/delta1)``.

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("ER-33.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(
    __name__,
    title="Second-order stationary points of stochastic minimax problems",
    citation=(
        "Xu, Tao, Ding, Fan, Wang: Finding Differentially Private Second Order Stationary Points "
        "in Stochastic Minimax Optimization, arXiv 2602.01339"
    ),
    notes=(
        "ER-05 prices the release that the text has: one Poisson-sampled increment.",
        "ER-08, ER-38, ER-39, ER-56 and ER-62 have no corrected sides: both sides would be the "
        "same, or a hypothesis.",
        "ER-27 is OPEN: no condition on the noise floor is printed that could be refuted.",
        "ER-76: its corrected side repeats a definition (DEFINITION).",
    ),
)
