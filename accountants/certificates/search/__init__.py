"""Which numbers make a good proof? Chosen in floats, by the kind of argument; never trusted.

For each kind of proof a function ``choose_...`` takes the losses with the numbers of their uses,
the epsilon at which delta is bounded, the logarithm of delta in doubles, and the wanted width of
the bounds, relative to delta. It raises OutOfReach where no proof of its kind and of affordable
size exists. Losses that no proof covers are refused before, by ``certify``.
"""

__all__: list[str] = []
