"""``dpcal train --model kan|mlp``: a network in place of a linear model, by the plan of its paper.

KANs take the settings of Wang et al. 2026, Corollary 5.5, or of 5.3 with ``--noise lambda-cgd``:
steps, batches, rate and width follow from the margin, a public number. Networks of tanh units are
trained by DP-SGD as Abadi et al. 2016 have it. Scaled features are divided by their reach, and the
start is drawn from a public seed.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal.commands.training.task import Task
from dpcal.commands.training.tuning import flag
from dpcal.optim.objectives.networks import NETWORKS, network_scores
from dpcal.tables import REACH

if TYPE_CHECKING:
    from dpcal.calibrate import Plan

__all__ = ["Network", "NetworkTask"]

# Public seed of the start, and of a KAN's second layer.
_SEED = 0
# Hidden units of an MLP where their number is not given.
_WIDTH = 16
_OF_KAN = ("max_norm", "gamma")
_OF_MLP = ("batch_size", "epochs", "steps", "max_norm", "learning_rate", "sampler")


@dataclass(frozen=True, kw_only=True)
class Network:
    """The options of a network.

    Parameters
    ----------
    kind
        ``"kan"`` or ``"mlp"``.
    width
        Hidden units >= 1; None for those of the plan, or 16.
    """

    kind: str
    width: int | None = None

    @classmethod
    def asked(cls, options: Namespace, tuning: Mapping[str, Any]) -> Network | None:
        """Return the network of the command's options; None for a linear model."""
        kind = options.model
        if kind in (None, "linear"):
            if options.width is not None:
                raise ValueError("--width is for --model kan or mlp.")
            return None
        refused = {
            "--loss squared": options.loss != "logistic",
            "--features other than linear": options.features != "linear",
            "--class-weights": options.class_weights is not None,
            "--cluster": options.cluster is not None,
            "--silos": options.silos is not None,
            "--no-intercept": not options.intercept,
            "--optimizer": options.optimizer not in (None, "dpsgd", "correlated_dpsgd"),
            "--noise other than lambda-cgd": options.noise not in (None, "lambda-cgd"),
            "--noise": kind == "mlp" and options.noise is not None,
            "--separation": options.separation is not None,
            **{flag(name): name not in (_OF_KAN if kind == "kan" else _OF_MLP) for name in tuning},
        }
        for name, given in refused.items():
            if given:
                raise ValueError(f"{name} does not go with --model {kind}.")
        if kind == "kan" and options.use_plan is None and "gamma" not in tuning:
            raise ValueError(
                "--model kan needs --gamma, the margin in (0, 1] of its paper's plan, a public "
                "number: it says how many steps and hidden units there are."
            )
        width = options.width
        return cls(kind=kind, width=None if width is None else _validate.count(width=width))


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkTask(Task):
    """Records for a network; before it is planned its width may not be known."""

    network: Network

    def of(self, X: NDArray[np.float64], y: NDArray[Any]) -> Any:
        """Return the network's loss on such records."""
        told: dict[str, Any] = self.about_network
        sizes = {name: told[name] for name in told if name not in ("kind", "scale")}
        make: Any = NETWORKS[self.network.kind]
        return make(X / REACH, y, classes=list(self.classes or (0.0, 1.0)), l2=self.l2, **sizes)

    def planned(self, plan: Plan) -> Task:
        """Return the task with the width that was given, or that of the plan."""
        width = self.network.width or int(plan.parameters.get("width") or _WIDTH)
        return replace(self, network=replace(self.network, width=width))

    @property
    def options(self) -> dict[str, Any]:
        """The public start; and the last iterate, since means of networks are no network."""
        return {"initial": self.objective.initial(_SEED), "output": "last"}

    @property
    def about_network(self) -> dict[str, Any]:
        """What a model's file says of the network."""
        told = {"kind": self.network.kind, "width": self.network.width or _WIDTH, "scale": REACH}
        return told | ({"seed": _SEED} if self.network.kind == "kan" else {})

    def told(self) -> dict[str, Any]:
        """Return further entries of a report on the training."""
        return {"network": self.about_network}

    def decide(self, X: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each row, shape (m,), that the second class has above the first."""
        return network_scores(X=X, w=w, **self.about_network)

    def score(self, w: NDArray[np.float64]) -> float:
        """Return the held-out accuracy of parameters."""
        known = np.isfinite(self.X_test).all(axis=1)
        return float(((self.decide(self.X_test[known], w) > 0) == self.y_test[known]).mean())
