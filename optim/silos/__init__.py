"""Records that stay where they are: silos that answer with noise, and who averages their answers.

A :class:`Silo` answers about its own records, in this process; :class:`DaskSilos` are silos on the
workers of a Dask cluster. :class:`SiloOracle` averages, and is what optimizers ask.
"""

from dpcal.optim.silos.averaging import SiloOracle
from dpcal.optim.silos.dask import DaskSilos
from dpcal.optim.silos.local import ONE_OF_A_SILO, Description, Silo, SiloLost

__all__ = ["ONE_OF_A_SILO", "DaskSilos", "Description", "Silo", "SiloLost", "SiloOracle"]
