"""Moments accountant and DP-SGD (arXiv 1607.00133).

Names: ``q`` is the sampling probability, ``Lam = log(1/delta)``, ``lam`` the order of a moment.

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("M1.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(
    __name__,
    title="DP-SGD and the moments accountant",
    citation=(
        "Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang: Deep Learning with Differential "
        "Privacy, CCS 2016, arXiv 1607.00133"
    ),
    notes=(
        "M1: without a record the sum of T answers is N(0, T sigma^2), and with it its mean is "
        "q T. The sum exceeds q T/2 with probability at most exp(-q^2 T/(8 sigma^2)), and at least "
        "1 - 4 (q (1 - q) + sigma^2)/(q^2 T) (Chebyshev). With the noise of Theorem 1 the exponent "
        "grows as T^2, and epsilon as T.",
        "M2: the theorem holds there by other bounds; its proof does not reach it.",
        "The remainder of Lemma 3 adds at most log(16)/16 times its constant to 32/15, as q order/"
        "sigma is at most q sigma log(1/(q sigma)).",
    ),
)
