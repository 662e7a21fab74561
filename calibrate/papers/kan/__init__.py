"""Two-layer Kolmogorov-Arnold networks by DP-SGD with correlated noise (2605.12648).

Noise ``Z_t - lambda Z_{t-1}`` on clipped batch sums; ``r = B/n`` is the sampling rate and
``kappa`` the noise on the clipped sum in units of the clip. ``gamma`` is the margin, at most 1.

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("E02.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(
    __name__,
    title="Kolmogorov-Arnold networks by DP-SGD with correlated noise",
    citation=(
        "Wang, Schuchardt, Kalinin, Zhou, Fellenz, Lampert, Kloft: Population Risk Bounds for "
        "Kolmogorov-Arnold Networks Trained by DP-SGD with Correlated Noise, arXiv 2605.12648"
    ),
    notes=(
        "E05, E06 and E11 are LOOSE: the noise of Theorem F.12 is enough, and larger than needed.",
        "E21 and E26 are claims (I18.redundant, I32.small) instead of errata: a redundant term "
        "and large widths are printed nowhere as something else.",
        "E22 is OPEN: an assumption is missing, and all formulas are right.",
    ),
)
