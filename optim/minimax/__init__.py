"""Minimax problems and their optimizers: min over x, max over y in a convex set.

``Minimax`` takes your own functions; the other classes are common problems.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.optim.minimax.auc import AUCMaximization as AUCMaximization
    from dpcal.optim.minimax.base import Minimax as Minimax, MinimaxObjective as MinimaxObjective
    from dpcal.optim.minimax.blocks import Anchor as Anchor, MinimaxResult as MinimaxResult
    from dpcal.optim.minimax.reweighted import (
        CovariateShift as CovariateShift,
        FairClassification as FairClassification,
    )
    from dpcal.optim.minimax.sets import (
        Ball as Ball,
        Box as Box,
        ConvexSet as ConvexSet,
        Everywhere as Everywhere,
        Simplex as Simplex,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
