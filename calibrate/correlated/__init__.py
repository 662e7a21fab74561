"""How much correlated noise does a target need, and which correlation is worth it?"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
