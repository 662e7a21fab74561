"""How much noise does a target need? Noise levels, and one plan builder per optimizer.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.query('gradient').noise_multiplier:.4f}")
1.0290
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
