"""Run it: private optimizers, the privacy boundary, and the ledger of all releases.

An ``Objective`` (``Logistic``, ``Softmax``, ``FromGradients``, ...) holds records,
``PrivateOracle`` answers queries about them with noise, and ``run`` spends a plan by the optimizer
that it names, such as ``dpsgd``, and returns a ``Result`` with a ``Ledger`` of all releases.
``registry.OPTIMIZERS`` is a table of the optimizers.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
