"""Run it: private optimizers, the privacy boundary, and the ledger of what was released.

An ``Objective`` (``Logistic``, ``Softmax``, ``FromGradients``, ...) holds records,
``PrivateOracle`` answers queries about them with noise, and an optimizer such as ``dpsgd``
turns a plan into a ``Result``, whose ``Ledger`` says what was released. ``registry.OPTIMIZERS`` is
a table of the optimizers.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
