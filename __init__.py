"""Calibrated differential privacy for optimization.

Three rooms, each imported when it is first used:

``dpcal.accountants``
    What does a mechanism cost? ``epsilon``, ``delta``, ``compare``, and the accountants themselves.
``dpcal.calibrate``
    How much noise does a target need? ``noise_multiplier`` and one plan builder per optimizer.
``dpcal.optim``
    Run it: private optimizers, the privacy boundary ``PrivateOracle``, and the ledger.

>>> import dpcal
>>> event = dpcal.accountants.events.dpsgd(
...     sampling_probability=0.01, noise_multiplier=1.0, steps=10_000
... )
>>> print(f"{dpcal.accountants.epsilon(event, delta=1e-6):.6f}")
6.907384
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcal import _moved

if TYPE_CHECKING:
    from dpcal import accountants, calibrate, optim

__all__ = ["__version__", "accountants", "calibrate", "optim"]


_moved.install()


def __getattr__(name: str) -> Any:
    if name in ("accountants", "calibrate", "optim"):
        return import_module(f"dpcal.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("dpcal")
    raise AttributeError(f"module 'dpcal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
