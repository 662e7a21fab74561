"""Two-layer Kolmogorov-Arnold networks by DP-SGD with correlated noise (2605.12648).

Noise ``Z_t - lambda Z_{t-1}`` on clipped batch sums; ``r = B/n`` is the sampling rate and
``kappa`` the noise on the clipped sum in units of the clip. ``gamma`` is the margin, at most 1.

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("E02.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(__name__)
