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

from typing import TYPE_CHECKING

from dpcal import _lazy

if TYPE_CHECKING:
    from dpcal.estimators.kmeans import KMeans
    from dpcal.estimators.linear import LinearRegression, Ridge
    from dpcal.estimators.logistic import LogisticRegression
    from dpcal.estimators.pca import PCA
    from dpcal.estimators.quantiles import QuantileTransformer
    from dpcal.estimators.scaler import StandardScaler
    from dpcal.estimators.search import PrivateSearch
    from dpcal.estimators.split import split_budget

__all__ = [
    "PCA",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "PrivateSearch",
    "QuantileTransformer",
    "Ridge",
    "StandardScaler",
    "split_budget",
]

__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "KMeans": "dpcal.estimators.kmeans",
        "LinearRegression": "dpcal.estimators.linear",
        "LogisticRegression": "dpcal.estimators.logistic",
        "PCA": "dpcal.estimators.pca",
        "PrivateSearch": "dpcal.estimators.search",
        "QuantileTransformer": "dpcal.estimators.quantiles",
        "Ridge": "dpcal.estimators.linear",
        "StandardScaler": "dpcal.estimators.scaler",
        "split_budget": "dpcal.estimators.split",
    },
)
