"""Private estimators for scikit-learn: ``fit`` spends a budget, and reports it.

They stand in pipelines, cross-validation and grid search as other estimators do, and need the extra
``sklearn``. Each fit is one plan, answered by the privacy boundary of :mod:`dpcal.optim`;
``epsilon_spent_`` is computed from the ledger of released answers.

>>> import numpy as np
>>> from dpcal.estimators import LogisticRegression
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((5_000, 3))
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> model = LogisticRegression(epsilon=1.0, delta=1e-6, classes=[False, True]).fit(X, y)
>>> bool(model.score(X, y) > 0.9), bool(model.epsilon_spent_ <= 1.0)
(True, True)
"""

from typing import TYPE_CHECKING, Any

from dpcal._internal import lazy
from dpcal.errors import needing

if TYPE_CHECKING:
    from dpcal.estimators.features import (
        Bins as Bins,
        OneHotEncoder as OneHotEncoder,
        RandomFeatures as RandomFeatures,
        Splines as Splines,
    )
    from dpcal.estimators.kmeans import KMeans as KMeans
    from dpcal.estimators.linear import (
        LinearRegression as LinearRegression,
        LogisticRegression as LogisticRegression,
        Ridge as Ridge,
    )
    from dpcal.estimators.preprocessing import (
        PCA as PCA,
        Clipper as Clipper,
        QuantileTransformer as QuantileTransformer,
        SimpleImputer as SimpleImputer,
        StandardScaler as StandardScaler,
    )
    from dpcal.estimators.scores import (
        noisy_accuracy as noisy_accuracy,
        noisy_r2 as noisy_r2,
        noisy_roc_auc as noisy_roc_auc,
    )
    from dpcal.estimators.search import PrivateSearch as PrivateSearch
    from dpcal.estimators.split import split_budget as split_budget
else:
    _find, __dir__, __all__ = lazy.attach(__name__)

    def __getattr__(name: str) -> Any:
        """Return an estimator, or raise an error that names the missing extra."""
        with needing("sklearn"):
            return _find(name)
