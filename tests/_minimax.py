"""What tests of minimax optimizers share: problems, the acceptance plan, runs without noise."""

import tomllib
from contextlib import contextmanager
from unittest import mock

import numpy as np
from _tree import DATA
from saddles import ToySaddle

from dpcal import calibrate
from dpcal.calibrate.plans.variance_reduction import Releases
from dpcal.optim import minimax
from dpcal.optim.boundary import oracle
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.objectives.arrays import digest_of

START = [0.3, 0.0]
SADDLE = tomllib.loads((DATA / "saddle.toml").read_text())
SADDLE |= {"n": 20_000, "max_norm": 2.5, "batch_size": 2_000}

# The counts of the paper's experiment, as printed.
COUNTS = {"n": 400, "refresh_size": 200, "batch_size": 50, "steps": 400, "period": 10, "inner": 5}
EXPERIMENT = Releases(**COUNTS, relation="add-or-remove-one", literal=True)


class MatrixSensing(minimax.Minimax):
    """``mean of y_i (<A_i, U V^T> - b_i) - y_i^2 / 2``, with a dual number for each record."""

    def __init__(self, A, b, *, rank, block_shares=None):
        self.A, self.b, self.rank = A, b, rank
        dimensions = (sum(A.shape[1:]) * rank, len(b))
        super().__init__(
            self._pairs,
            n=len(b),
            dimensions=dimensions,
            loss=lambda x, y, rows: y[rows] * self._measured(x, rows)[0] - y[rows] ** 2 / 2,
            block_shares=block_shares,
        )

    def digest(self):
        return digest_of(self.A, self.b)

    def _measured(self, x, rows):
        """Return residuals and their gradients in x."""
        U, V = np.split(x.reshape(-1, self.rank), [self.A.shape[1]])
        AV, AU = self.A[rows] @ V, np.swapaxes(self.A[rows], 1, 2) @ U
        slopes = np.concatenate([AV.reshape(len(rows), -1), AU.reshape(len(rows), -1)], axis=1)
        return np.einsum("ipr,pr->i", AV, U) - self.b[rows], slopes

    def _pairs(self, x, y, rows):
        residuals, slopes = self._measured(x, rows)
        dual = np.zeros((len(rows), self.n))
        dual[np.arange(len(rows)), rows] = residuals - y[rows]
        return y[rows, np.newaxis] * slopes, dual

    def best_response(self, x, *, start=None):
        return self._measured(np.asarray(x), np.arange(self.n))[0]


RNG = np.random.default_rng(3)
N = 120
X = RNG.standard_normal((N, 3))
LABELS = (X @ [1.0, -1.0, 0.5] + 0.3 * RNG.standard_normal(N) > 0).astype(int)
GROUPS = RNG.integers(0, 3, N)
TARGETS = X @ [0.5, 0.2, -0.4] + 0.1 * RNG.standard_normal(N)
MATRICES = np.random.default_rng(6).standard_normal((N, 3, 2)) / 2
FROM_DATA = {"classes_from_data": True}
FAIR = {"dual_l2": 0.3, "primal_l2": 0.1, "groups_from_data": True, **FROM_DATA}


def bilinear(x, y, rows):
    """Gradients of F = <a, x> <a, y>."""
    a = X[rows]
    return (a @ y)[:, np.newaxis] * a, (a @ x)[:, np.newaxis] * a


PROBLEMS = {
    "toy": lambda **more: ToySaddle(n=N, seed=1, **more),
    "fair": lambda **more: minimax.FairClassification(X, LABELS, GROUPS, **FAIR, **more),
    "shift": lambda **more: minimax.CovariateShift(X, TARGETS, dual_l2=3.0, tilt_norm=2.0, **more),
    "auc": lambda **more: minimax.AUCMaximization(
        X, LABELS, positive_share=0.4, **FROM_DATA, **more
    ),
    "sensing": lambda **more: MatrixSensing(MATRICES, MATRICES.sum((1, 2)), rank=1, **more),
    # Sums of the last one are not compiled.
    "own": lambda **more: minimax.Minimax(bilinear, n=N, dimensions=(3, 3), dual_l2=2.0, **more),
}


def toy(n=20_000, **more):
    return ToySaddle(n=n, seed=0, **more)


def acceptance(**changes):
    """Return the plan of the acceptance problem, with changes."""
    return calibrate.dp_rgda(ToySaddle.constants, **{**SADDLE, **changes})


def curvature(problem, x):
    """Return the smallest eigenvalue of the Hessian of Phi."""
    return float(np.linalg.eigvalsh(problem.phi_hessian(x))[0])


@contextmanager
def noiseless():
    """Answer without noise; samples are drawn as ever."""
    with (
        mock.patch.object(Mechanism, "add_noise"),
        mock.patch.object(oracle, "kernel_of", return_value=None),
    ):
        yield
