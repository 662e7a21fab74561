"""What does this cost? Privacy accountants that share one reading of the privacy loss.

>>> from dpcal.accountants import epsilon, events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> answer = epsilon(event, delta=1e-6)
>>> print(f"epsilon is between {answer.lower:.10f} and {answer.upper:.10f}")
epsilon is between 6.9073844950 and 6.9073844950
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
