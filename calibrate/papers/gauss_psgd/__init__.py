"""Second-order stationary points: Gauss-PSGD, Ada-DP-SPIDER, private model selection.

A perturbed SGD: the Gaussian noise of a private variance-reduced oracle drives its escape phases.
``p = sqrt(d)/(n epsilon)``; ``e1 .. e4`` are the accuracies at which each error of the oracle by
itself equals alpha.

>>> from dpcal.calibrate.papers.prover import prove
>>> verdict = prove(SCHEDULE.resolve(SCHEDULE.claim("E5.printed")))
>>> verdict.status, verdict.reason.split(" grows ")[1]
('REFUTED', 'by the power 1/42 more than claimed')
"""

from dpcal.calibrate.papers.claims.language import schedule_of

__all__ = ["SCHEDULE"]

SCHEDULE = schedule_of(__name__)
