"""Private estimators for scikit-learn: ``fit`` spends a budget, and says what it spent.

They stand in pipelines, cross-validation and grid search as other estimators do, and need the extra
``sklearn``. Each fit is one plan, answered by the privacy boundary of :mod:`dpcal.optim`;
``epsilon_spent_`` is computed from the ledger of what was released.

>>> import numpy as np
>>> from dpcal.estimators import LogisticRegression
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((5_000, 3))
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> model = LogisticRegression(epsilon=1.0, delta=1e-6, classes=[False, True]).fit(X, y)
>>> bool(model.score(X, y) > 0.9), bool(model.epsilon_spent_ <= 1.0)
(True, True)
"""

from typing import Any

from dpcal import _lazy
from dpcal.errors import needing

_find, __dir__, __all__ = _lazy.attach(__name__)


def __getattr__(name: str) -> Any:
    """Return an estimator, or say which extra it needs."""
    with needing("sklearn"):
        return _find(name)
