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
