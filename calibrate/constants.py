"""What must be known of a problem before its noise is chosen? Constants, as papers name them.

>>> Constants(lipschitz=1.0, smoothness=0.25, strong_convexity=0.0, gap=0.7).gap
0.7
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Constants"]


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Constants of one record's loss, as the papers name them, without the regulariser.

    Where an objective reads them off its records they are not private: a plan may use them when
    they are known without looking, for instance because every row was scaled to norm at most 1.

    Parameters
    ----------
    lipschitz
        L0: bound on the norm of one record's gradient, over all parameters; infinite when there is
        none.
    smoothness
        L1: bound on the Lipschitz constant of one record's gradient; infinite when there is none.
    strong_convexity
        Of the regularised objective, as far as the regulariser guarantees it; at least 0.
    gap
        F0: a public bound on ``F(w_0) - inf F``; None when nobody gave one.
    """

    lipschitz: float
    smoothness: float
    strong_convexity: float = 0.0
    gap: float | None = None
