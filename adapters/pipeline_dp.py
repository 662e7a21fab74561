"""PipelineDP with this package's accountant: ``DPEngine(BudgetAccountant(1.0, 1e-6), backend)``.

One scale is solved for all noises of a pipeline, with the exact epsilon of all of them together.
The unit is a privacy id, which is added or removed.

>>> import pipeline_dp  # doctest: +SKIP
>>> accountant = BudgetAccountant(total_epsilon=1.0, total_delta=1e-6)  # doctest: +SKIP
>>> engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())  # doctest: +SKIP
"""

from __future__ import annotations

from dpcal._internal import validate
from dpcal.accountants import Epsilon, events
from dpcal.accountants.rounding import next_up
from dpcal.calibrate.release_noise import Calibrated, Release, releases
from dpcal.errors import needing

with needing("pipeline-dp"):
    from pipeline_dp import aggregate_params, budget_accounting

__all__ = ["BudgetAccountant"]

_SUMS = frozenset({"Count", "Sum", "MeanCount", "MeanSum", "PrivacyIdCount", "AddDPNoise"})
_NOISE = {
    aggregate_params.MechanismType.LAPLACE: "laplace",
    aggregate_params.MechanismType.GAUSSIAN: "gaussian",
}

# Share of delta for requests that take an epsilon and a delta above 0 of their own.
_SHARE = 0.5


class BudgetAccountant(budget_accounting.BudgetAccountant):  # type: ignore[misc]
    """PipelineDP's ``BudgetAccountant`` by exact composition.

    Noise of counts, sums and means is accounted for as the Laplace or Gaussian noise that it is. A
    private selection of partitions, percentiles and thresholds take an epsilon and a delta of their
    own from PipelineDP. They are accounted for as the worst mechanism with this epsilon and delta.
    Weights have the meaning of :class:`dpcal.calibrate.Release`. PipelineDP itself refuses
    variances, sums of vectors and your own combiners with this accountant.

    Parameters
    ----------
    total_epsilon, total_delta
        The target of the whole pipeline: epsilon > 0, delta in (0, 1). Without a delta pure
        epsilons add up, as in PipelineDP's ``NaiveBudgetAccountant``.
    num_aggregations, aggregation_weights
        As PipelineDP's.

    Raises
    ------
    ValueError
        If the target is outside its range.
    """

    def __init__(
        self,
        total_epsilon: float,
        total_delta: float,
        num_aggregations: int | None = None,
        aggregation_weights: list[float] | None = None,
    ) -> None:
        validate.positive(total_epsilon=total_epsilon)
        validate.probability(total_delta=total_delta)
        super().__init__(total_epsilon, total_delta, num_aggregations, aggregation_weights)
        self._found: Calibrated | None = None

    def request_budget(
        self,
        mechanism_type: aggregate_params.MechanismType,
        sensitivity: float = 1,
        weight: float = 1,
        count: int = 1,
        noise_standard_deviation: float | None = None,
        name: str = "",
    ) -> budget_accounting.MechanismSpec:
        """Note a mechanism, and return its specification; its noise is solved for later.

        Raises
        ------
        RuntimeError
            After :meth:`compute_budgets`.
        NotImplementedError
            For a standard deviation that is given.
        """
        if self._finalized:
            raise RuntimeError("request_budget must be called before compute_budgets.")
        if noise_standard_deviation is not None:
            raise NotImplementedError(
                "noise_standard_deviation is solved for and must be None, got "
                f"{noise_standard_deviation!r}."
            )
        spec = budget_accounting.MechanismSpec(
            mechanism_type=mechanism_type, name=name, _count=validate.count(count=count)
        )
        self._register_mechanism(
            budget_accounting.MechanismSpecInternal(
                mechanism_spec=spec,
                sensitivity=validate.positive(sensitivity=sensitivity),
                weight=validate.positive(weight=weight),
            )
        )
        return spec

    def compute_budgets(self) -> None:
        """Solve for the noise of all mechanisms that were requested.

        Raises
        ------
        RuntimeError
            Inside a scope, or a second time.
        """
        if self._scopes_stack or self._finalized:
            raise RuntimeError("compute_budgets must be called once, and outside every scope.")
        self._check_aggregation_restrictions()
        self._finalize()
        if not self._mechanisms:
            return
        need = [each for each in self._mechanisms if _takes_delta(each)]
        shares = sum(each.weight * each.mechanism_spec.count for each in need)
        wanted = [self._release(each, shares) for each in self._mechanisms]
        self._found = releases(wanted, epsilon=self._total_epsilon, delta=self._total_delta)
        for each, release, noise in zip(self._mechanisms, wanted, self._found.noises, strict=True):
            spec = each.mechanism_spec
            if release.mechanism == "any":
                spec.set_eps_delta(1 / noise.scale, release.delta)
            else:
                ratio = 2**0.5 if release.mechanism == "laplace" else 1.0
                spec.set_noise_standard_deviation(next_up(ratio * noise.scale))

    def _release(self, asked: budget_accounting.MechanismSpecInternal, shares: float) -> Release:
        """Return the requested release, with its part of the total delta."""
        spec = asked.mechanism_spec
        share = asked.weight / shares if _takes_delta(asked) else 0.0
        return Release(
            spec.name,
            mechanism=_kind(spec),
            sensitivity=asked.sensitivity,
            weight=asked.weight,
            count=spec.count,
            delta=_SHARE * share * self._total_delta,
        )

    @property
    def epsilon(self) -> Epsilon:
        """Epsilon of all releases together at the total delta, with its interval."""
        return self._solved().epsilon

    @property
    def event(self) -> events.DpEvent:
        """The event of everything that was requested."""
        return self._solved().event

    def _solved(self) -> Calibrated:
        if self._found is None:
            raise RuntimeError("compute_budgets must have been called, with a mechanism requested.")
        return self._found


def _kind(spec: budget_accounting.MechanismSpec) -> str:
    """Return a mechanism's kind of noise, or ``"any"`` if it takes an epsilon of its own."""
    return _NOISE.get(spec.mechanism_type, "any") if spec.name in _SUMS else "any"


def _takes_delta(asked: budget_accounting.MechanismSpecInternal) -> bool:
    """Return whether a mechanism takes an epsilon and a delta that must not be zero."""
    spec = asked.mechanism_spec
    return _kind(spec) == "any" and bool(
        spec.mechanism_type.uses_delta
        or spec.mechanism_type is aggregate_params.MechanismType.GENERIC
    )
