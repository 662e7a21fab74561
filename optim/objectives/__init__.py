"""Objectives: a mean of losses over records, with gradients per record and constants."""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
