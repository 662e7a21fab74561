"""Calibrated differential privacy: from a target (epsilon, delta) to a run with a checked claim.

>>> import dpcal
>>> event = dpcal.events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> print(f"{dpcal.epsilon(event, delta=1e-6):.6f}")
6.907384

The names that most users need are here, and each is imported when it is first used. Everything else
is in a package of its own:

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
    Files that state and verify the claim of a run, and pictures.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal import (
        accountants as accountants,
        adapters as adapters,
        calibrate as calibrate,
        estimators as estimators,
        optim as optim,
        plot as plot,
        report as report,
        tables as tables,
    )
    from dpcal.accountants import events as events
    from dpcal.accountants.certificates.certify import certify as certify
    from dpcal.accountants.certificates.verify import verify_certificate as verify_certificate
    from dpcal.accountants.curves.tradeoff import attack_risk as attack_risk, trade_off as trade_off
    from dpcal.accountants.interface import compare as compare, delta as delta, epsilon as epsilon
    from dpcal.calibrate.noise import (
        batch_size as batch_size,
        noise_multiplier as noise_multiplier,
        steps as steps,
    )
    from dpcal.calibrate.plan import Plan as Plan
    from dpcal.calibrate.query import Query as Query
    from dpcal.optim.boundary.book import BudgetBook as BudgetBook
    from dpcal.optim.boundary.ledger import Ledger as Ledger
    from dpcal.optim.boundary.oracle import PrivateOracle as PrivateOracle
    from dpcal.optim.budget import budget as budget
    from dpcal.optim.objectives.custom import FromGradients as FromGradients
    from dpcal.optim.objectives.linear import Logistic as Logistic, Squared as Squared
    from dpcal.optim.objectives.softmax import Softmax as Softmax
    from dpcal.optim.registry import run as run
    from dpcal.optim.result import Result as Result
    from dpcal.report.verification import verify as verify
    from dpcal.tables.api import release as release, train as train
    from dpcal.tables.model import load_model as load_model

    __version__: str
else:
    _find, __dir__, __all__ = lazy.attach(__name__)

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("dpcal")
        return _find(name)
