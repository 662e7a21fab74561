"""Names of annexes that the core needs: the one table of them, loaded when they are asked for.

An annex imports the core, and the core does not import an annex: what it needs of one is found
here by its name, so that a run without correlated noise loads nothing of it.

>>> from dpcal import _annexes
>>> _annexes.NoiseStream.__module__
'dpcal.optim.boundary.streams'
"""

from dpcal import _lazy

__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "Correlation": "dpcal.calibrate.correlated.correlation",
        "LatticeStream": "dpcal.optim.boundary.lattice",
        "NoiseStream": "dpcal.optim.boundary.streams",
        "STATISTICAL": "dpcal.accountants.correlated.table",
        "grid_of": "dpcal.optim.boundary.lattice",
        "pricing": "dpcal.accountants.correlated.pricing",
        "replacing": "dpcal.accountants.correlated.replacing",
        "shuffling": "dpcal.accountants.correlated.shuffling",
    },
)
