"""Silos, which keep their records and answer with noise, and an oracle that averages the answers.

A :class:`Silo` answers about its own records, in the process of its owner; :class:`SiloOracle`
averages, and answers optimizers. :class:`Partitioned` is one data set on a Dask cluster, which its
owner trusts.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.optim.boundary.ledger import ONE_OF_A_SILO as ONE_OF_A_SILO
    from dpcal.optim.silos.averaging import SiloOracle as SiloOracle
    from dpcal.optim.silos.local import (
        Description as Description,
        Silo as Silo,
        SiloLost as SiloLost,
    )
    from dpcal.optim.silos.partitioned import (
        Partitioned as Partitioned,
        PartitionsLost as PartitionsLost,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
