"""Limits at which the search ends without a proof.

>>> DEPTH > DEPTH_OF_MOVES
True
"""

DEPTH = 10  # strategies inside of strategies; each adds 1 to 3
# Depths of proofs that parts are defined, of factoring, of slopes, and of cutting a range.
DEPTH_OF_DOMAINS = DEPTH_OF_FACTORS = 5
DEPTH_OF_MOVES = 6
DEPTH_OF_CUTS = 1
SHARE = 0.35  # share of the time left that each strategy gets at the goal itself
BOXES = 2500
RATIOS = 4
NEGATIVES = 8
# Largest degree and most terms of a polynomial that is factored: in less than a second.
DEGREE = 64
FACTORED = 200
