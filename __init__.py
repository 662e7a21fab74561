"""Calibrated differential privacy: from a target (epsilon, delta) to a run whose claim is checked.

>>> import dpcal
>>> event = dpcal.events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> print(f"{dpcal.epsilon(event, delta=1e-6):.6f}")
6.907384

The names that most users need are here, and each is imported when it is first used. Everything else
is in a room:

``dpcal.accountants``
    The cost of a mechanism: ``epsilon``, ``delta``, ``compare``, and the accountants themselves.
``dpcal.calibrate``
    The noise for a target: ``noise_multiplier``, and one plan builder per optimizer.
``dpcal.optim``
    Runs: private optimizers, the privacy boundary ``PrivateOracle``, and the ledger.
``dpcal.tables``, ``dpcal.estimators``, ``dpcal.adapters``
    Tables of people, scikit-learn estimators (extra ``sklearn``), and switches for Opacus, Flower,
    Optax and PyTorch.
``dpcal.report``, ``dpcal.plot``
    Files that state and verify what a run claims, and pictures.
"""

from dpcal import _lazy

_find, __dir__, __all__ = _lazy.attach(__name__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("dpcal")
    return _find(name)
