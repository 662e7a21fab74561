"""Parameter schedules of five papers: claims, a prover, and a checker that shares nothing with it.

``schedules`` loads a paper's claims and its corrected plans, ``audit`` proves or refutes them.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
