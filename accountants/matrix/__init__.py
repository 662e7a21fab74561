"""Strategies of matrix mechanisms: correlated noise for the steps of a run.

A strategy is a lower-triangular matrix C; step t's noise is row t of C^-1 z. It computes its
errors, its sensitivity under a participation schema, and the event of a run without sampling, for
any accountant.

>>> from dpcal.accountants import epsilon
>>> from dpcal.accountants.matrix import FixedEpochs, Identity, LambdaCGD
>>> strategy = LambdaCGD(steps=1000, decay=0.95)
>>> schema = FixedEpochs(epochs=10, steps_per_epoch=100)
>>> event = strategy.event(40.0, schema)
>>> answer = epsilon(event, delta=1e-6, neighboring_relation="replace-special")
>>> print(f"{answer:.4f} {answer.neighboring_relation}")
1.0815 replace-special

At the same epsilon, the error of prefix sums compared with independent noise:

>>> errors = [each.mean_error(participation=schema) for each in (strategy, Identity(1000))]
>>> print(f"{errors[0] / errors[1]:.2f}")
0.22
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.accountants.matrix.base import Strategy as Strategy
    from dpcal.accountants.matrix.dense import Dense as Dense
    from dpcal.accountants.matrix.participation import (
        FixedEpochs as FixedEpochs,
        LeastSeparation as LeastSeparation,
        Participation as Participation,
        Single as Single,
    )
    from dpcal.accountants.matrix.sensitivity import Sensitivity as Sensitivity
    from dpcal.accountants.matrix.toeplitz import (
        BIFR as BIFR,
        BISR as BISR,
        BLT as BLT,
        Banded as Banded,
        BandedInverse as BandedInverse,
        Identity as Identity,
        LambdaCGD as LambdaCGD,
        SquareRoot as SquareRoot,
    )
    from dpcal.accountants.matrix.tree import Tree as Tree
    from dpcal.accountants.matrix.workloads import (
        PREFIX_SUMS as PREFIX_SUMS,
        Workload as Workload,
        learning_rates as learning_rates,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__, {"MinSeparation": "LeastSeparation"})
