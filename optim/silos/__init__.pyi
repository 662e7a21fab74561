from dpcal.optim.silos.averaging import SiloOracle as SiloOracle
from dpcal.optim.silos.dask import DaskSilos as DaskSilos
from dpcal.optim.silos.local import (
    ONE_OF_A_SILO as ONE_OF_A_SILO,
    Description as Description,
    Silo as Silo,
    SiloLost as SiloLost,
)
