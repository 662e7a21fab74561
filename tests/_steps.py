"""Plans of one query of gradients, which loops of other packages step through."""

from dpcal.calibrate import Correlation, Plan, Query

__all__ = ["planned"]


def planned(strategy=None, *, n=40, sampler="poisson", **changes):
    """Return a plan of twelve noisy means of gradients, on Poisson samples unless told other."""
    fields = {"max_norm": 1.0, "noise_multiplier": 2.0, "count": 12}
    if sampler == "poisson":
        fields["sampling_probability"] = 0.5
    if strategy is not None:
        fields["correlation"] = Correlation(strategy=strategy)
    query = Query(
        **{"name": "gradient", "kind": "gradient", "sampler": sampler, **fields, **changes}
    )
    return Plan(optimizer="dpsgd", n=n, queries=(query,), epsilon=1e9, delta=1e-6)
