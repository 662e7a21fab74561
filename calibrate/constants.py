"""Which constants of a problem must be known before its noise is chosen? Named as in the papers.

>>> Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.0, gap=0.7).gap
0.7
"""

from __future__ import annotations

from dataclasses import dataclass


class UnknownConstant(ValueError):  # noqa: N818 -- reads as what happened
    """A plan needs a constant of the loss that is missing."""


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Constants of one record's loss, as the papers name them, without the regulariser.

    A plan may use them if they are known without the records, for instance because every row was
    scaled to norm at most 1: ``dpcal.optim.Logistic.constants_for(row_norm=1.0)``.

    Parameters
    ----------
    lipschitz
        L0: bound on the norm of one record's gradient, over all parameters; infinite when there is
        none.
    smoothness
        L1: bound on the Lipschitz constant of one record's gradient; infinite when there is none.
    strong_convexity
        Strong convexity of the regularised objective, as far as the regulariser guarantees it; at
        least 0.
    gap
        F0: a public bound on ``F(w_0) - inf F``; None when it is not given. For minimax problems F
        is the value function Phi.
    strong_concavity
        mu: for minimax problems, of f in the dual variable y; at least 0.
    hessian_lipschitz
        rho: bound on the Lipschitz constant of one record's Hessian, in operator norm; None when it
        is not given.
    measured
        Whether a value was computed from records. Plan builders refuse such constants unless the
        records are declared public, because a plan is public: the largest norm among the records
        reveals with certainty whether the longest record is there.
    """

    lipschitz: float
    smoothness: float
    strong_convexity: float = 0.0
    gap: float | None = None
    strong_concavity: float = 0.0
    hessian_lipschitz: float | None = None
    measured: bool = False
