"""What tests of minimax optimizers share: the acceptance problem, its plan, runs without noise."""

from contextlib import contextmanager
from unittest import mock

import numpy as np

from benchmarks.minimax import SADDLE
from dpcal import calibrate
from dpcal.calibrate.plans.variance_reduction import Releases
from dpcal.optim.boundary import noise as noise_module
from dpcal.optim.minimax import ToySaddle

__all__ = ["EXPERIMENT", "START", "acceptance", "curvature", "noiseless", "toy"]

START = [0.3, 0.0]

# The counts of the paper's experiment, as printed.
EXPERIMENT = Releases(
    n=400,
    steps=400,
    period=10,
    inner=5,
    refresh_size=200,
    batch_size=50,
    relation="add-or-remove-one",
    literal=True,
)


def toy(n=20_000, **more):
    return ToySaddle(n=n, seed=0, **more)


def acceptance(**changes):
    """Return the plan of the acceptance problem: a saddle between two minima."""
    asked = {**SADDLE, "n": 20_000, "batch_size": 2_000, "max_norm": 2.5, **changes}
    return calibrate.dp_rgda(ToySaddle.constants, **asked)


def curvature(problem, x):
    """Return the smallest eigenvalue of the Hessian of Phi."""
    return float(np.linalg.eigvalsh(problem.phi_hessian(x))[0])


@contextmanager
def noiseless():
    """Answer without noise; samples are drawn as ever."""
    with (
        mock.patch.object(noise_module, "add_gaussian"),
        mock.patch.object(noise_module.GaussianMechanism, "fused", False),
    ):
        yield
