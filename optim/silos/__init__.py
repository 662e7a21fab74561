"""Silos, which keep their records and answer with noise, and an oracle that averages the answers.

A :class:`Silo` answers about its own records, in this process; :class:`DaskSilos` are silos on the
workers of a Dask cluster. :class:`SiloOracle` averages, and answers optimizers.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
