"""Numbers that make a good proof, chosen in floats by the kind of argument; never trusted.

A contour is chosen by ``choose_contour``, grids of laws by ``order_proofs``: from the losses with
the numbers of their uses, the epsilon at which delta is bounded, the logarithm of delta in doubles,
and the wanted width of the bounds, relative to delta. Losses that no proof covers are refused
before, by ``certify``.
"""

__all__: list[str] = []
