"""Flower with this package's accountant: ``DifferentialPrivacy...(accountant=Accountant(config))``.

The unit is a client, and a release is a round's noisy sum of clipped updates.

>>> from flwr.supercore.privacy_accounting import PrivacyConfig  # doctest: +SKIP
>>> accountant = Accountant(PrivacyConfig(...))  # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpcal import _validate
from dpcal.accountants import Account, events
from dpcal.errors import BudgetExceeded, needing
from dpcal.report import Policy

with needing("flower"):
    from flwr.supercore.privacy_accounting import (
        GaussianPrivacyEvent,
        NeighboringRelation,
        PrivacyConfig,
        PrivacySpent,
        SamplingMethod,
    )

__all__ = ["Accountant"]

_VERSION = 1
_BACKEND = "dpcal"
_SAMPLERS = {SamplingMethod.POISSON: "poisson", SamplingMethod.WITHOUT_REPLACEMENT: "fixed-size"}


class Accountant:
    """Flower's ``PrivacyAccountant`` on the characteristic accountant.

    Parameters
    ----------
    config
        Flower's ``PrivacyConfig``: target delta, population, neighboring relation, sampling method
        and, if there is one, the largest epsilon. Or leave it out and give its fields by keyword,
        the last three of which may be strings: ``target_delta``, ``population_size``,
        ``neighboring_relation``, ``sampling_method``, ``max_epsilon``.
    policy
        What the server allows: a :class:`dpcal.report.Policy` or the path of its TOML file. The
        unit is ``"client"``, and ``min_records`` is the least population.

    Raises
    ------
    ValueError
        If the configuration does not keep the policy; :meth:`compose` raises ``BudgetExceeded`` for
        a release with which epsilon at the target delta would not keep it, and does not count it.

    Notes
    -----
    Under ``"replace-one"`` a replaced client moves the sum by up to twice the clipping norm, and is
    priced so.
    """

    def __init__(
        self,
        config: PrivacyConfig | None = None,
        *,
        policy: Policy | Path | str | None = None,
        **fields: Any,
    ) -> None:
        if config is None:
            fields["neighboring_relation"] = NeighboringRelation(fields["neighboring_relation"])
            fields["sampling_method"] = SamplingMethod(fields["sampling_method"])
            config = PrivacyConfig(**fields)
        self._config = config
        self._releases: list[tuple[GaussianPrivacyEvent, int]] = []
        self._policy = Policy.read(policy) if isinstance(policy, Path | str) else policy
        if broken := self._broken(0.0):
            raise ValueError(f"config must keep the policy. {' '.join(broken)}")

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
        release = (event, _validate.count(count=count))
        self._account([release])
        self._check([*self._releases, release])
        self._releases.append(release)

    def get_epsilon(self, delta: float) -> float:
        """Return epsilon of all releases at a delta in (0, 1), rounded up."""
        _validate.probability(delta=delta)
        return self._account().epsilon(delta).upper if self._releases else 0.0

    def get_delta(self, epsilon: float) -> float:
        """Return delta of all releases at an epsilon >= 0, rounded up."""
        _validate.non_negative(epsilon=epsilon)
        return self._account().delta(epsilon).upper if self._releases else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what was spent, at a delta in (0, 1) or the target delta."""
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
        limit = _validate.positive(max_epsilon=limit)
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
            },
            "compositions": [
                {
                    "event": {
                        "noise_multiplier": event.noise_multiplier,
                        "sample_size": event.sample_size,
                        "population_size": event.population_size,
                    },
                    "count": count,
                }
                for event, count in self._releases
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`state_dict` returned, for the same configuration.

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
                (GaussianPrivacyEvent(**row["event"]), _validate.count(count=row["count"]))
                for row in state["compositions"]
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"state must hold compositions, lacks or misuses {error}.") from error
        self._account(releases)
        self._check(releases)
        self._releases = releases

    def _check(self, releases: list[tuple[GaussianPrivacyEvent, int]]) -> None:
        """Refuse releases that the policy does not allow together."""
        if self._policy is None or not releases:
            return
        if broken := self._broken(self._account(releases).epsilon(self._config.target_delta).upper):
            raise BudgetExceeded(f"the release is refused. {' '.join(broken)}")

    def _broken(self, epsilon: float) -> list[str]:
        """Return what the policy does not allow, at an epsilon of all releases."""
        if self._policy is None:
            return []
        config = self._config
        return self._policy.violations(
            {
                "max_epsilon": epsilon,
                "max_delta": config.target_delta,
                "min_records": config.population_size,
                "neighboring_relations": [config.neighboring_relation.value],
                "units": ["client"],
                "samplers": [_SAMPLERS.get(config.sampling_method, "full")],
                "noise": ["gaussian"],
            }
        )

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
        gaussian = events.GaussianDpEvent(release.noise_multiplier)
        method = self._config.sampling_method
        if method is SamplingMethod.POISSON:
            return events.PoissonSampledDpEvent(release.sample_size / population, gaussian)
        if method is SamplingMethod.WITHOUT_REPLACEMENT:
            return events.SampledWithoutReplacementDpEvent(
                population, release.sample_size, gaussian
            )
        return gaussian
