"""The privacy boundary: an answer is admitted, recorded, summed over a batch, and made noisy."""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
