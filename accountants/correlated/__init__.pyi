from dpcal.accountants.correlated.answers import (
    CorrelatedDelta as CorrelatedDelta,
    CorrelatedEpsilon as CorrelatedEpsilon,
)
from dpcal.accountants.correlated.draws.montecarlo import simulate as simulate
from dpcal.accountants.correlated.mechanism import Mechanism as Mechanism
from dpcal.accountants.correlated.price import (
    delta as delta,
    epsilon as epsilon,
    revealed_delta as revealed_delta,
)
from dpcal.accountants.samplers import (
    BallsInBins as BallsInBins,
    CyclicPoisson as CyclicPoisson,
    FixedSize as FixedSize,
    MinSeparation as MinSeparation,
    Poisson as Poisson,
    RandomAllocation as RandomAllocation,
    Sampler as Sampler,
)
