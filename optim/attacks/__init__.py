"""Would an attack tell? Attacks on runs of one's own, to find what a privacy claim got wrong.

:func:`replay` runs anything that trains twice, on neighbouring data, with the same answers, and
checks every sum, batch, noise and entry of the ledger. :func:`likelihood` bounds epsilon from below
by all that a run's answers say of canaries; :func:`plant` and :func:`one_run` by what one run shows
from outside.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
