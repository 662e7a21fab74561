"""Minimax problems and their optimizers: minimise over x what y in a convex set maximises.

``Minimax`` takes a user's own functions; the other problems are those that people solve this way.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
