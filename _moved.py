"""Modules that have moved stay importable under their former names, with a DeprecationWarning.

>>> import warnings
>>> with warnings.catch_warnings(record=True) as caught:
...     warnings.simplefilter("always")
...     from dpcal.accountants import answers
...     former = __import__("dpcal.accountants.bounds", fromlist=["answers"])
>>> former is answers
True
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# For each room, its former modules and where they are now. A name that is a function of the room
# too (``dpcal.calibrate.dpsgd``) has no entry: importing it would hide the function.
_ROOMS = {
    "dpcal.accountants": {
        "loss": "losses",
        "sampled": "losses.sampled_gaussian",
        "discrete_gaussian": "losses.discrete_gaussian",
        "bounds": "answers",
        "accounts": "adaptive.account",
        "filters": "adaptive.filters",
        "profile": "curves.profile",
        "tradeoff": "curves.tradeoff",
        "conversions": "curves.conversions",
        "certificate": "certificates.certify",
        "correlated.confidence": "correlated.draws.confidence",
        "correlated.estimators": "correlated.draws.estimators",
        "correlated.montecarlo": "correlated.draws.montecarlo",
    },
    "dpcal.calibrate": {
        "prover": "auditing.prover",
        "audit_recheck": "auditing.recheck",
    },
    "dpcal.optim": {
        "oracle": "boundary.oracle",
        "noise": "boundary.streams",
        "ledger": "boundary.ledger",
        "choices": "boundary.choices",
        "boundary.estimate": "estimate",
        "robust": "objectives.robust",
        "softmax": "objectives.softmax",
        "networks": "objectives.networks",
        "custom": "objectives.custom",
    },
}
MOVED = {
    f"{room}.{former}": f"{room}.{now}"
    for room, names in _ROOMS.items()
    for former, now in names.items()
}


class _Alias(Loader):
    """Give the module that now stands elsewhere, and leave it as it is."""

    def __init__(self, former: str) -> None:
        self.former = former

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        now = MOVED[self.former]
        warnings.warn(f"module {self.former} is now {now}", DeprecationWarning, stacklevel=2)
        module = import_module(now)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, _Alias(fullname)) if fullname in MOVED else None


def install() -> None:
    """Let Python find the former names, after every module that is really there."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
