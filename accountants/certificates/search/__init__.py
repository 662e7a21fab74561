"""Which numbers make a good proof? Chosen in floats, by the kind of argument; never trusted.

A function ``choose_...`` takes the losses with the number of their uses, the epsilon at which delta
is bounded, and the wanted width of the bounds on delta, relative to it. It raises OutOfReach where
no proof of its kind and of affordable size exists. :mod:`~dpcal.accountants.certificates.search`
has one for each kind; all are called by ``candidates``, which refuses losses that no proof covers.
"""

__all__: list[str] = []
