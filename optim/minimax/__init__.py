"""Minimax problems and their optimizers: min over x, max over y in a convex set.

``Minimax`` takes a user's own functions; the others are common problems.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
