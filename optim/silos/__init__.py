"""Records that stay where they are: silos that answer with noise, and who averages their answers.

A :class:`Silo` answers about its own records, in this process; :class:`DaskSilos` are silos on the
workers of a Dask cluster. :class:`SiloOracle` averages, and answers optimizers.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
