"""One-line switches for Opacus, Flower, PipelineDP, PyTorch and JAX. Each is an extra.

``dpcal.adapters.opacus``
    ``PrivacyEngine(accountant="dpcal")``.
``dpcal.adapters.flower``
    ``Accountant(config)``, Flower's protocol of a privacy accountant.
``dpcal.adapters.rounds``
    ``round_event(...)``: the event of a round of federated learning, for any framework.
``dpcal.adapters.pipeline_dp``
    ``BudgetAccountant(epsilon, delta)``: one scale for all noises of a pipeline.
``dpcal.adapters.torch``
    ``Guard(model, plan)``: Poisson batches, clipping, calibrated noise, a ledger, and a stop.
``dpcal.adapters.loaders``
    Samplers in place of ``shuffle=True``, with their cost, and ``check(loader)``; in numpy.
``dpcal.adapters.ranks``
    ``RankedOracle(plan, ranks, ...)``: one run on several processes, in numpy.
``dpcal.adapters.optax``
    ``Guard(plan, params, loss)``: the same for JAX, in place of ``jax.grad``.
``dpcal.adapters.stepwise``
    ``StepwiseOracle(plan, dimension=...)``, for a loop of another framework, in numpy.

Accountants of dp-accounting's interface are in :mod:`dpcal.accountants`. No other package imports
this one, and importing it imports none of the libraries.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.adapters import (
        flower as flower,
        loaders as loaders,
        opacus as opacus,
        optax as optax,
        pipeline_dp as pipeline_dp,
        ranks as ranks,
        rounds as rounds,
        stepwise as stepwise,
        torch as torch,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
