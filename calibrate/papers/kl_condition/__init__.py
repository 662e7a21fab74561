"""Private non-convex optimization under the Kurdyka-Lojasiewicz condition (Menart et al.).

``F(w) - F* <= gamma^kappa ||grad F(w)||^kappa``, and four algorithms: KL Spider (1), private
proximal point (2), adaptive noisy gradient descent (3) and projected noisy descent for a
regularized loss (4).

>>> from dpcal.calibrate.papers.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("EP1.printed"))).status
'REFUTED'
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(__name__)
