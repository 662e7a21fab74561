"""Accountants of other packages, called as their documentation shows, with their defaults.

Each :class:`Peer` accounts for a composition of Poisson-sampled Gaussian steps, (q, sigma, count)
each, under add-or-remove-one. Epsilons of other packages come from
:mod:`benchmarks.corpus.adapters`. A package is imported on its first use, so that a process holds
one package.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.corpus import adapters
from benchmarks.corpus.rows import event_of

INTERVAL = 1e-4
EPS_ERROR = 0.01


@dataclass(frozen=True)
class Peer:
    """One accountant of one package; None stands for a quantity that the package does not offer.

    ``epsilon(steps, delta)`` returns (lower end or None, upper end); ``noise_multiplier(q, count,
    epsilon, delta)`` a number.
    """

    text: str
    package: str
    epsilon: Callable
    noise_multiplier: Callable | None = None

    @property
    def installed(self):
        """Whether this interpreter has the package."""
        return importlib.util.find_spec(self.package) is not None


def _dpcal_event(steps):
    from dpcal.accountants import events

    return events.ComposedDpEvent(
        [
            events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=count)
            for q, sigma, count in steps
        ]
    )


def _dpcal(steps, delta):
    from dpcal.accountants import epsilon

    answer = epsilon(_dpcal_event(steps), delta=delta)
    return answer.lower, answer.upper


def _dpcal_calibrated(q, count, epsilon, delta):
    from dpcal.calibrate import noise_multiplier

    return noise_multiplier(
        lambda sigma: _dpcal_event([(q, sigma, count)]), epsilon=epsilon, delta=delta
    )


def _values(steps):
    """Return a composition as a row of the corpus holds it."""
    sampled = [
        {
            "type": "PoissonSampledDpEvent",
            "sampling_probability": q,
            "event": {"type": "GaussianDpEvent", "noise_multiplier": sigma},
        }
        for q, sigma, _ in steps
    ]
    counts = [count for *_, count in steps]
    composed = [
        {"type": "SelfComposedDpEvent", "event": event, "count": count}
        for event, count in zip(sampled, counts, strict=True)
    ]
    return {"type": "ComposedDpEvent", "events": composed}


def _row(steps, delta):
    """Return a question about epsilon as a row of the corpus."""
    asked = {"neighboring_relation": adapters.ADD, "direction": "worst", "asked": {"delta": delta}}
    return {"event": _values(steps), **asked}


def _epsilon_of(package, accountant):
    """Return a function of steps and delta that calls another package's accountant."""

    def epsilon(steps, delta):
        try:
            return adapters.PACKAGES[package][accountant](_row(steps, delta))
        except adapters.Refused as error:
            raise NotImplementedError from error

    return epsilon


def _google_calibrated(name, q, count, epsilon, delta):
    import dp_accounting
    from dp_accounting import pld, rdp

    accountant = {"PLD": pld.PLDAccountant, "RDP": rdp.RdpAccountant}[name]

    def event(sigma):
        if sigma <= 0:
            return dp_accounting.NonPrivateDpEvent()
        return event_of(_values([(q, sigma, count)]), dp_accounting)

    return dp_accounting.calibrate_dp_mechanism(accountant, event, epsilon, delta)


def _microsoft_calibrated(q, count, epsilon, delta):
    from prv_accountant.dpsgd import find_noise_multiplier

    return find_noise_multiplier(q, count, epsilon, delta, eps_error=EPS_ERROR)


def _opacus_calibrated(name, q, count, epsilon, delta):
    from opacus.accountants.utils import get_noise_multiplier

    return get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=q, steps=count, accountant=name
    )


def _autodp_calibrated(q, count, epsilon, delta):
    from autodp.calibrator_zoo import eps_delta_calibrator
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    last, sample = [], AmplificationBySampling(PoissonSampling=True)

    def mechanism(sigma):
        last.append(sigma)
        sampled = sample(GaussianMechanism(sigma=sigma), q, improved_bound_flag=True)
        return Composition()([sampled], [count])

    eps_delta_calibrator()(mechanism, epsilon, delta, [0.5, 10.0])
    return last[-1]


PEERS = {
    "dpcal": Peer("dpcal", "dpcal", _dpcal, _dpcal_calibrated),
    "pld": Peer(
        f"dp-accounting PLD, interval {INTERVAL:g}",
        "dp_accounting",
        _epsilon_of("dp-accounting", "PLD"),
        partial(_google_calibrated, "PLD"),
    ),
    "rdp": Peer(
        "dp-accounting RDP",
        "dp_accounting",
        _epsilon_of("dp-accounting", "RDP"),
        partial(_google_calibrated, "RDP"),
    ),
    "prv": Peer(
        f"prv-accountant, eps_error {EPS_ERROR:g}",
        "prv_accountant",
        _epsilon_of("prv-accountant", "PRV"),
        _microsoft_calibrated,
    ),
    "opacus_rdp": Peer(
        "Opacus RDP", "opacus", _epsilon_of("opacus", "RDP"), partial(_opacus_calibrated, "rdp")
    ),
    "opacus_prv": Peer(
        "Opacus PRV", "opacus", _epsilon_of("opacus", "PRV"), partial(_opacus_calibrated, "prv")
    ),
    "autodp": Peer("autodp RDP", "autodp", _epsilon_of("autodp", "RDP"), _autodp_calibrated),
    "jax": Peer(
        f"JAX Privacy PLD, interval {INTERVAL:g}", "jax_privacy", _epsilon_of("jax-privacy", "PLD")
    ),
}
