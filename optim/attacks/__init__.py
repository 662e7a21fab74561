"""Is a privacy claim true of a run? Attacks on one's own runs, which find mistakes in claims.

:func:`replay` runs anything that trains twice, on neighbouring data, with the same answers, and
checks every sum, batch, noise and entry of the ledger. :func:`likelihood` bounds epsilon from below
by all answers of a run about canaries; :func:`plant` and :func:`one_run` by the output of one run;
:func:`many_runs` and :func:`from_confusion_matrix` by tests of many runs, of any package.
"""

from dpcal import _lazy

__getattr__, __dir__, __all__ = _lazy.attach(__name__)
