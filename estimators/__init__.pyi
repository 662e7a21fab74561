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
