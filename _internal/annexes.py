"""Names of annexes that the core needs, in one table; they are loaded at their first use.

An annex imports the core, and the core does not import an annex: it finds each one here by name, so
that a run without correlated noise loads no part of it.

>>> from dpcal._internal import annexes
>>> annexes.LatticeStream.__module__
'dpcal.optim.boundary.lattice'
"""

from dpcal._internal import lazy

__getattr__, __dir__ = lazy.attributes(
    __name__,
    {
        "Correlation": "dpcal.calibrate.correlated.correlation",
        "LatticeStream": "dpcal.optim.boundary.lattice",
        "Partitioned": "dpcal.optim.silos.partitioned",
        "Parts": "dpcal.optim.silos.parts",
        "by_partitions": "dpcal.optim.silos.parts",
        "grid_of": "dpcal.optim.boundary.lattice",
        "predicted_seconds": "dpcal.calibrate.recommending.seconds",
        "pricing": "dpcal.accountants.correlated.pricing",
        "replacing": "dpcal.accountants.loaders.replacing",
        "sample_of": "dpcal.optim.silos.parts",
        "shuffling": "dpcal.accountants.loaders.shuffling",
    },
)
