"""Opacus with this package's accountant: ``PrivacyEngine(accountant="dpcal")``.

Importing this module registers the accountant. Its epsilon is certified, and Opacus' own
accountants return estimates with errors. A solver searches for sigma.

>>> from opacus import PrivacyEngine  # doctest: +SKIP
>>> import dpcal.adapters.opacus  # doctest: +SKIP
>>> engine = PrivacyEngine(accountant="dpcal")  # doctest: +SKIP
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcal._ext.sums import grid_step
from dpcal._internal import annexes
from dpcal.accountants import Epsilon, epsilon, events
from dpcal.accountants.samplers import Poisson
from dpcal.adapters import loaders
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded, UnsupportedEvent, needing
from dpcal.optim.boundary.seeds import Seed, claim, key_of, keyed_generator, root_of

with needing("opacus"):
    import torch
    from opacus.accountants import registry
    from opacus.accountants.accountant import IAccountant
    from opacus.optimizers import (
        AdaClipDPOptimizer,
        DPOptimizer,
        DPOptimizerFastGradientClipping,
    )

__all__ = ["Accountant", "History", "check", "correlate"]


class Accountant(IAccountant):  # type: ignore[misc]
    """Opacus' interface to the characteristic accountant.

    Attributes
    ----------
    history
        Triples (noise multiplier, sampling probability, steps), as Opacus keeps them. Steps are
        Poisson sampled Gaussian mechanisms, and neighbors differ by one record that is added or
        removed. Steps are accounted for at the probability of
        :func:`dpcal.adapters.loaders.drawn_probability`. A step on k batches that Opacus
        accumulated counts as k steps, with noise that is smaller by sqrt(k).
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []
        self._rates: list[float] = []

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return the function that Opacus calls in each step of an optimizer, before it moves.

        Parameters
        ----------
        sample_rate
            Probability in (0, 1] that a record is in a batch of its loader.

        Raises
        ------
        UnsupportedEvent
            If the returned function meets an optimizer with adaptive clipping.
        """
        self._rates.append(sample_rate)

        def hook(optimizer: Any) -> None:
            if isinstance(optimizer, AdaClipDPOptimizer):
                raise UnsupportedEvent(
                    "Adaptive clipping has no price here: one record moves Opacus' count of "
                    "unclipped records by 1, where the theorem (Andrew et al. 2021) has 1/2, and "
                    "the divisor of the count is the size of the batch, without noise."
                )
            # Opacus would account for one batch at k times the rate; a record may be in all k here.
            # The noise is a sum of k parts, and releasing each part costs no less.
            batches = optimizer.accumulated_iterations
            noise = optimizer.noise_multiplier / math.sqrt(batches)
            for _ in range(batches):
                self.step(noise_multiplier=noise, sample_rate=sample_rate)

        return hook

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Add one step.

        Parameters
        ----------
        noise_multiplier
            Standard deviation >= 0 of the noise, in units of the clipping norm.
        sample_rate
            Probability in (0, 1] that a record is in the batch.
        """
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def check(self, loader: Any) -> loaders.Verdict:
        """Return the finding about a loader; refuse batches that cost more than the steps here.

        Parameters
        ----------
        loader
            Loader of the steps' batches, or the loader of a ``BatchMemoryManager``. Without
            ``poisson_sampling``, Opacus leaves a loader as it is, and its accountants still assume
            Poisson samples.

        Raises
        ------
        UnsupportedEvent
            If the loader's batches are not Poisson samples, or have a higher rate than a step that
            was taken or is to come; or if there is no such step.
        """
        rates = [*self._rates, *(rate for _, rate, steps in self.history if steps)]
        if not rates:
            raise UnsupportedEvent(
                "The sampling rate of the steps is not known yet: check the loader after "
                "make_private, or after a step."
            )
        found, least = loaders.check(loader), min(rates)
        if not isinstance(found.law, Poisson):
            raise UnsupportedEvent(
                f"Steps are priced as Poisson samples, and the loader has {found.name}. "
                f"{found.sentence}"
            )
        if found.law.sampling_probability > loaders.drawn_probability(least):
            raise UnsupportedEvent(
                f"Steps are priced at a rate of {least!r}, and the loader draws at "
                f"{found.law.sampling_probability!r}."
            )
        return found

    @property
    def event(self) -> events.DpEvent:
        """All steps, as one event."""
        return events.ComposedDpEvent([_event(*row) for row in self.history if row[2]])

    def get_epsilon(self, delta: float, **options: Any) -> float:
        """Return epsilon at a delta in (0, 1), rounded up; infinite for steps without noise.

        Parameters
        ----------
        delta
            In (0, 1).
        **options
            Passed to :func:`dpcal.accountants.epsilon`.
        """
        if not self.history:
            return 0.0
        found: Epsilon = epsilon(self.event, delta=delta, **options)
        return found.upper

    def __len__(self) -> int:
        """Return the number of steps."""
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name under which Opacus finds the accountant."""
        return "dpcal"

    def load_state_dict(self, state_dict: Any) -> None:
        """Take over the history of a ``state_dict``, after Opacus' own checks of it."""
        super().load_state_dict(state_dict)
        self.history = [tuple(row) for row in state_dict["history"]]


@dataclass(frozen=True)
class History:
    """Epsilon of the steps of a checkpoint, under each kind of loader.

    Attributes
    ----------
    steps
        Number of steps.
    poisson
        Epsilon if all batches were Poisson samples at the rates of the history.
    shuffled
        A proved lower and a proved upper end of epsilon if they were the batches of fresh shuffles,
        as a loader with ``shuffle=True`` makes them; None if rates or noise differ.
    """

    steps: int
    poisson: Epsilon
    shuffled: tuple[float, float] | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that state the epsilon for each kind of loader, with its condition."""
        shuffle = "rates or noise differ, which has no price here"
        if self.shuffled is not None:
            shuffle = "epsilon is in [{:.4g}, {:.4g}]".format(*self.shuffled)
        return (
            f"{self.steps} steps. If each batch was a Poisson sample (Opacus' own loader, "
            f"poisson_sampling=True), epsilon is at most {self.poisson.upper:.6g}.",
            f"If batches were shuffled (shuffle=True, poisson_sampling=False): {shuffle}.",
            "A checkpoint does not tell which. Both are about sums over a public size, and are too "
            "small for a loop that divides by the size of the batch that was drawn "
            "(arXiv:2605.15648).",
        )


def check(checkpoint: str | os.PathLike[str], *, delta: float) -> History:
    """Return the epsilon of the steps in a file of ``PrivacyEngine.save_checkpoint``.

    Parameters
    ----------
    checkpoint
        The file, or one that holds the ``state_dict`` of an accountant; no code in it is run.
    delta
        In (0, 1).

    Raises
    ------
    ValueError
        If the file is not such a checkpoint, or its accountant took no step.
    """
    try:
        found = torch.load(checkpoint, map_location="cpu", weights_only=True)
        rows = found.get("privacy_accountant_state_dict", found)["history"]
        history = [(float(noise), float(rate), int(steps)) for noise, rate, steps in rows]
    except (AttributeError, KeyError, TypeError, RuntimeError, pickle.UnpicklingError) as error:
        raise ValueError(
            f"checkpoint must be a file of Opacus' save_checkpoint, got {checkpoint}."
        ) from error
    steps = sum(count for *_, count in history)
    if not steps:
        raise ValueError(f"checkpoint must hold steps of an accountant, got none in {checkpoint}.")
    event = events.ComposedDpEvent([_event(*row) for row in history if row[2]])
    shuffled = None
    if len(history) == 1 and history[0][0] > 0:
        ((noise, rate, _),) = history
        batches = max(1, round(1 / rate))

        def priced(length: int, epochs: int) -> Epsilon:
            shuffles = events.ShuffledEpochsDpEvent(noise, length, epochs)
            return epsilon(shuffles, delta=delta, neighboring_relation="replace-special")

        # A broken-off epoch costs no more than a whole one; a last batch may be short.
        whole, begun = steps // batches, -(-steps // batches)
        least = priced(batches, whole).lower if whole else 0.0
        shuffled = least, priced(max(1, batches - 1), begun).upper
    return History(steps, epsilon(event, delta=delta), shuffled)


def correlate(optimizer: DPOptimizer, plan: Plan, loader: Any, *, seed: Seed = None) -> None:
    """Let an optimizer of Opacus add the correlated noise of a plan, in hooks or ghost mode.

    Each step takes the next row of noise. Its cost is the plan's, ``plan.price()``. The engine's
    accountant does not apply: it records steps without noise, and returns infinity. Sums and noise
    are in single precision, as Opacus' own are, and the claim ignores this.

    Parameters
    ----------
    optimizer
        Optimizer from ``make_private``, on one process and with one bound on whole gradients, which
        is the plan's ``max_norm``.
    plan
        Plan with correlated noise, for example from :func:`dpcal.calibrate.correlated_dpsgd`.
    loader
        Loader of the run's batches, from its first step on.
    seed
        For tests: a seed that others know voids the claim.

    Raises
    ------
    NoiseReused
        If this process has drawn the noise of this seed and plan already.
    UnsupportedEvent
        If the plan has independent noise, the optimizer is of another class, or the loader's
        batches are not drawn as the plan states; by a step, if it covers several batches.
        BudgetExceeded is raised by a step after the plan's last, and gradients are deleted.
    """
    query = plan.queries[0]
    if len(plan.queries) > 1 or query.kind != "gradient" or query.correlation is None:
        raise UnsupportedEvent("plan must have one query of gradients, with correlated noise.")
    if type(optimizer) not in (DPOptimizer, DPOptimizerFastGradientClipping):
        raise UnsupportedEvent(
            "optimizer must be Opacus' DPOptimizer, or that of ghost mode, on one process and with "
            f"one bound on whole gradients, got {type(optimizer).__name__}."
        )
    if optimizer.max_grad_norm != query.max_norm:
        raise ValueError(
            f"max_grad_norm must be the plan's max_norm={query.max_norm!r}, got "
            f"{optimizer.max_grad_norm!r}."
        )
    found, wanted = loaders.check(loader), query.sampling
    fits = found.law == wanted
    if isinstance(found.law, Poisson) and isinstance(wanted, Poisson):
        fits = found.law.sampling_probability <= wanted.sampling_probability
    if not fits:
        raise UnsupportedEvent(
            f"The plan is for batches of {wanted!r}, and the loader has {found.name}: "
            f"{found.law!r}. {found.sentence}"
        )
    root = root_of(seed, "opacus", plan.to_json())
    claim(root)
    grid = annexes.grid_of(query, sum(each.numel() for each in optimizer.params))
    rows = annexes.LatticeStream(grid, lambda: keyed_generator(key_of(root, "rows")))
    step = grid_step(query.max_norm) / 2.0**rows.digits

    without = optimizer.add_noise

    def add_noise() -> None:
        try:
            if rows.step == query.count:
                raise BudgetExceeded(f"the plan's {query.count} steps are spent.")
            if optimizer.accumulated_iterations > 1:
                raise UnsupportedEvent("a step must be on one batch, got several accumulated ones.")
            noise = torch.from_numpy(rows.read() * step)
            without()
            sizes = [each.numel() for each in optimizer.params]
            for each, part in zip(optimizer.params, noise.split(sizes), strict=True):
                each.grad += part.to(each.grad).view_as(each)
        except BaseException:
            optimizer.zero_grad(set_to_none=True)
            raise

    optimizer.add_noise, optimizer.noise_multiplier = add_noise, 0.0


def _event(noise_multiplier: float, sample_rate: float, steps: int) -> events.DpEvent:
    if noise_multiplier == 0:
        return events.NonPrivateDpEvent()
    rate = loaders.drawn_probability(sample_rate)
    return events.dpsgd(sampling_probability=rate, noise_multiplier=noise_multiplier, steps=steps)


registry.register_accountant(Accountant.mechanism(), Accountant, force=True)
