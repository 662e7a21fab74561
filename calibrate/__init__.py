"""How much noise does a target need? Noise levels, and one plan builder per optimizer.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.query('gradient').noise_multiplier:.4f}")
1.0290
"""

from dpcal.calibrate.dpsgd import dpsgd
from dpcal.calibrate.noise import batch_size, noise_multiplier, sampling_probability, steps
from dpcal.calibrate.plan import Plan, Query

__all__ = [
    "Plan",
    "Query",
    "batch_size",
    "dpsgd",
    "noise_multiplier",
    "sampling_probability",
    "steps",
]
