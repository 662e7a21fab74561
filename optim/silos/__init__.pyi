from dpcal.optim.boundary.ledger import ONE_OF_A_SILO as ONE_OF_A_SILO
from dpcal.optim.silos.averaging import SiloOracle as SiloOracle
from dpcal.optim.silos.dask import DaskSilos as DaskSilos
from dpcal.optim.silos.local import (
    Description as Description,
    Silo as Silo,
    SiloLost as SiloLost,
)
from dpcal.optim.silos.partitioned import (
    Partitioned as Partitioned,
    PartitionsLost as PartitionsLost,
)
