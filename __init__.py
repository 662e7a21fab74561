"""Calibrated differential privacy for optimization.

Three rooms, each imported when it is first used:

``dpcal.accountants``
    What does a mechanism cost? ``epsilon``, ``delta``, ``compare``, and the accountants themselves.
``dpcal.calibrate``
    How much noise does a target need? ``noise_multiplier`` and one plan builder per optimizer.
``dpcal.optim``
    Run it: private optimizers, the privacy boundary ``PrivateOracle``, and the ledger.

Three more are imported when they are first used as well: ``dpcal.tables`` makes records of a table,
``dpcal.report`` writes and verifies what a run claims, and ``dpcal.plot`` draws it.
``dpcal.load_model`` reads the model that a run has left. ``dpcal.estimators`` are scikit-learn
estimators that spend a budget (extra ``sklearn``), ``dpcal.adapters`` are switches for Opacus,
Flower and PyTorch, and ``dpcal.budget`` is a budget that runs share.

>>> import dpcal
>>> event = dpcal.accountants.events.dpsgd(
...     sampling_probability=0.01, noise_multiplier=1.0, steps=10_000
... )
>>> print(f"{dpcal.accountants.epsilon(event, delta=1e-6):.6f}")
6.907384
"""

from typing import TYPE_CHECKING

from dpcal import _lazy

if TYPE_CHECKING:
    from dpcal import accountants, adapters, calibrate, estimators, optim, plot, report, tables
    from dpcal.optim.boundary.budget.shared import budget
    from dpcal.tables import load_model

    __version__: str

__all__ = [
    "__version__",
    "accountants",
    "adapters",
    "budget",
    "calibrate",
    "estimators",
    "load_model",
    "optim",
    "plot",
    "report",
    "tables",
]

_ROOMS = ("accountants", "adapters", "calibrate", "estimators", "optim", "plot", "report", "tables")
_HOMES = {
    **{room: f"dpcal.{room}" for room in _ROOMS},
    "budget": "dpcal.optim.boundary.budget.shared",
    "load_model": "dpcal.tables.model",
}
_find, __dir__ = _lazy.attributes(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("dpcal")
    return _find(name)
