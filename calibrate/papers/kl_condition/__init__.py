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

SCHEDULE = schedule_of(
    __name__,
    title="Non-convex optimization under the KL condition",
    citation=(
        "Menart, Ullah, Arora, Bassily, Guzman: Differentially Private Non-Convex Optimization "
        "under the KL Condition with Optimal Rates"
    ),
    notes=(
        "EP13 and EP15 are LOOSE: the printed bounds hold, and would hold with half the noise or "
        "twice the budget.",
        "EP11 has no corrected side: that one draw has the variance of one draw says nothing.",
        "EP2, EU7 and EU20: their corrected sides repeat a definition (DEFINITION).",
    ),
)
