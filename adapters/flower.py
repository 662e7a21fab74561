"""Flower with this package's accountant: ``DifferentialPrivacy...(accountant=Accountant(config))``.

The unit is a client, and a release is a round's noisy sum of clipped updates. Flower clips, draws
clients and noise, and counts replies; metrics leave it without noise.

>>> from flwr.supercore.privacy_accounting import PrivacyConfig  # doctest: +SKIP
>>> accountant = Accountant(PrivacyConfig(...))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

from dpcal._internal import validate
from dpcal.accountants import Account, events
from dpcal.adapters.rounds import RELATIONS, round_event
from dpcal.errors import needing

with needing("flower"):
    from flwr.supercore.privacy_accounting import (
        GaussianPrivacyEvent,
        PrivacyConfig,
        PrivacySpent,
    )

__all__ = ["Accountant"]

_VERSION = 1
_BACKEND = "dpcal"
_EVENT = ("noise_multiplier", "sample_size", "population_size")


class Accountant:
    """Flower's ``PrivacyAccountant`` on the characteristic accountant.

    Parameters
    ----------
    config
        Flower's ``PrivacyConfig``: target delta, population, neighboring relation, sampling method
        and, if there is one, the largest epsilon.
    secret_draws
        Whether the cost counts on clients that are drawn uniformly from at least
        ``population_size`` of them, so that only the server learns who was drawn. For the method
        ``"no-amplification"``, the only one of Flower's strategies.

    Raises
    ------
    ValueError
        If the relation does not belong to the sampling method.

    Notes
    -----
    Under ``"no-amplification"`` and ``"without-replacement"`` a round has a fixed number of
    clients, and one client moves the sum by up to twice the clipping norm:
    :mod:`dpcal.adapters.rounds`.
    """

    def __init__(self, config: PrivacyConfig, *, secret_draws: bool = False) -> None:
        relation, method = config.neighboring_relation.value, config.sampling_method.value
        if relation != RELATIONS[method]:
            raise ValueError(
                f"neighboring_relation must be {RELATIONS[method]!r} for the sampling method "
                f"{method!r}, got {relation!r}."
            )
        self._config = config
        self._secret = secret_draws
        self._releases: list[tuple[GaussianPrivacyEvent, int]] = []
        # One client is enough to refuse settings that no round can have.
        self._event(GaussianPrivacyEvent(1.0, 1, config.population_size))

    @property
    def config(self) -> PrivacyConfig:
        """The privacy configuration."""
        return self._config

    @property
    def num_releases(self) -> int:
        """Number of releases."""
        return sum(count for _, count in self._releases)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Add ``count`` >= 1 equal releases."""
        release = (event, validate.count(count=count))
        self._account([release])
        self._releases.append(release)

    def get_epsilon(self, delta: float) -> float:
        """Return epsilon of all releases at a delta in (0, 1), rounded up."""
        validate.probability(delta=delta)
        return self._account().epsilon(delta).upper if self._releases else 0.0

    def get_delta(self, epsilon: float) -> float:
        """Return delta of all releases at an epsilon >= 0, rounded up."""
        validate.non_negative(epsilon=epsilon)
        return self._account().delta(epsilon).upper if self._releases else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return the epsilon that was spent, at a delta in (0, 1) or the target delta."""
        at = self._config.target_delta if delta is None else delta
        return PrivacySpent(
            epsilon=self.get_epsilon(at),
            delta=at,
            num_releases=self.num_releases,
            accounting_method=_BACKEND,
        )

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Return whether ``count`` more releases would exceed an epsilon at the target delta.

        Parameters
        ----------
        event
            The release.
        max_epsilon
            A number > 0; the configuration's when omitted.
        count
            At least 1.
        """
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon must be given here or in the configuration, got None.")
        limit = validate.positive(max_epsilon=limit)
        together = self._account([*self._releases, (event, count)])
        return bool(together.epsilon(self._config.target_delta).upper > limit)

    def state_dict(self) -> dict[str, object]:
        """Return the configuration and all releases, as JSON values."""
        config = self._config
        return {
            "schema_version": _VERSION,
            "backend": _BACKEND,
            "config": {
                "target_delta": config.target_delta,
                "population_size": config.population_size,
                "neighboring_relation": config.neighboring_relation.value,
                "sampling_method": config.sampling_method.value,
                "max_epsilon": config.max_epsilon,
                **({"secret_draws": True} if self._secret else {}),
            },
            "compositions": [
                {"event": {name: getattr(event, name) for name in _EVENT}, "count": count}
                for event, count in self._releases
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`, for the same configuration.

        Raises
        ------
        ValueError
            If the state is another backend's or configuration's, or malformed; nothing changes.
        """
        own = self.state_dict()
        for name in ("schema_version", "backend", "config"):
            if state.get(name) != own[name]:
                raise ValueError(f"state must have {name} {own[name]!r}, got {state.get(name)!r}.")
        try:
            releases = [
                (GaussianPrivacyEvent(**row["event"]), validate.count(count=row["count"]))
                for row in state["compositions"]
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"state must hold compositions, lacks or misuses {error}.") from error
        self._account(releases)
        self._releases = releases

    def _account(self, releases: list[tuple[GaussianPrivacyEvent, int]] | None = None) -> Account:
        account = Account(neighboring_relation=self._config.neighboring_relation.value)
        for event, count in self._releases if releases is None else releases:
            account.compose(self._event(event), count)
        return account

    def _event(self, release: GaussianPrivacyEvent) -> events.DpEvent:
        population = self._config.population_size
        if release.population_size != population:
            raise ValueError(
                f"event must be for the configuration's population_size={population}, got "
                f"{release.population_size}."
            )
        return round_event(
            **{name: getattr(release, name) for name in _EVENT},
            sampling_method=self._config.sampling_method.value,
            secret_draws=self._secret,
        )
