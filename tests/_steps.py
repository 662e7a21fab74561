"""Plans of one query of gradients, which loops of other packages step through."""

import numpy as np
from _built_plans import plan_of, query

from dpcal.calibrate import Correlation


def planned(strategy=None, *, n=40, sampler="poisson", **changes):
    """Return a plan of twelve noisy means of gradients, on Poisson samples unless told other."""
    fields = {"noise_multiplier": 2.0, "count": 12}
    if sampler == "poisson":
        fields["sampling_probability"] = 0.5
    if strategy is not None:
        fields["correlation"] = Correlation(strategy=strategy)
    asked = query(sampler=sampler, **{**fields, **changes})
    return plan_of(asked, n=n, optimizer="dpsgd", epsilon=1e9, delta=1e-6)


def task(n=600, d=6, seed=0):
    """Return a data set of PyTorch with two classes that a plane tells apart."""
    import torch

    X = np.random.default_rng(seed).standard_normal((n, d))
    y = (X[:, 0] - X[:, 1] > 0).astype(np.int64)
    return torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))


def network(d=6, seed=0):
    """Return a small network of PyTorch for this task."""
    from torch import manual_seed, nn

    manual_seed(seed)
    return nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 2))
