"""What can be asked of an optimizer on the command line? Its plan builder's keywords, as a table.

Which optimizer takes which is in ``dpcal.optim.registry``; here is how each is read and described,
so that ``dpcal train --help`` loads no optimizer.

>>> from argparse import ArgumentParser
>>> from dpcal.commands._options import add_options
>>> parser = ArgumentParser()
>>> add_options(parser, OPTIONS)
>>> given_tuning(parser.parse_args(["--gamma", "2", "--kappa", "1.5"]))
{'gamma': 2.0, 'kappa': 1.5}
"""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

from dpcal.commands._options import fields_of

__all__ = [
    "CORRELATED_NOISE",
    "MINIMAX",
    "NOISES",
    "OPTIONS",
    "PROBLEMS",
    "TUNING",
    "flag",
    "given_tuning",
]


OPTIONS = """
[tuning | each is for some optimizers: 'dpcal optimizers NAME' lists an optimizer's own]
--batch-size B:whole              expected batch, in [1, n] (default: from passes and steps, for
    dpsgd)
--epochs E:number                 > 0 (default: by noise, at most 1000, for dpsgd)
--steps T:whole                   >= 1 (default: by the optimizer)
--sampler NAME:way                whose records a step takes: poisson; random-allocation (each
    record draws one batch of an epoch) or shuffled-epochs, for dpsgd; or, with --noise, poisson,
    cyclic-poisson, min-separation, balls-in-bins, random-allocation or full (default: poisson);
    in short: allocation, shuffle
--max-norm C:number               clipping norm > 0 of a record's gradient (default: the norm of
    most rows, as ranges tell, for dpsgd; else what the bounds imply)
--learning-rate R:number          > 0 (default: follows from public numbers)
--difference-batch-size B:whole   records behind a gradient difference (default: by the optimizer)
--drift K:number                  squared movement >= 0 after which a gradient is fresh; 0 for all
    (default: by the optimizer)
--period P:whole                  every so many gradients one is fresh, in place of --drift
--threshold X:number              > 0: an escape begins at gradients of 3 X (default: the size of
    their error)
--escape-radius R:number          > 0: farther than this is an escape (default: follows from the
    bounds)
--escape-steps S:whole            of a round, >= 1 (default: follows from the bounds)
--escape-rounds Q:whole           of an escape, >= 1 (default: 4)
--reset rewind|carry|fresh        what a gradient estimate is when a round begins (default:
    rewind)
--passes E:whole                  how often a record may be used, >= 1 (default: 1)
--group-size K:whole              rows of one person at most, >= 1, by the schema's column of type
    'person'; more are left out (default: the schema's, or 1)
--clipped row|user                what is drawn, and clipped: each row, or the sum of the rows of a
    person, for dpsgd and --noise (default: row)
--gamma G:number                  KL constant > 0: F(w) - F* <= (G ||grad F(w)||)^kappa (default:
    (2 l2)^(-1/2) with --no-intercept and kappa = 2); or margin in (0, 1] of --model kan
--kappa K:number                  KL exponent (default: 2)
--beta P:number                   failure probability of the promised accuracy, in (0, 1)
    (default: 0.05)
--weak-convexity W:number         W >= 0 that makes F + W/2 ||w||^2 convex (default: 0)
--inner-steps S:whole             gradients >= 1 of a stage (default: 512), or of an outer step
--failure-probability P:number    in (0, 1): choose what is proved but with this probability
    (default: what does well on average)
--distance W:number               public bound > 0 on the norm of a minimiser (default: sqrt(d))
--subsolver noisy_gd|phased_sgd   what minimises in a round (default: noisy_gd)
--inner spiderboost|noisy_gd|recursive_regularization|tree_spider  optimizer of embedded records
    (default: spiderboost)
--embedding-dimension K:whole     of embedded records, >= 1 (default: by the optimizer)
--rank R:whole                    public bound >= 1 on the dimension of the records' span
    (default: none)
--matrix gaussian|sparse          kind of the embedding (default: gaussian)
--matrix-seed N:whole             seed >= 0 of the embedding, which is public (default: 0)
"""

PROBLEMS = ("fair", "robust", "auc")
NOISES = ("lambda-cgd", "banded", "bisr", "blt", "square-root", "tree")
CORRELATED_NOISE = f"""
[correlated noise (--optimizer correlated_dpsgd)]
--noise NAME          what correlates the noise of the steps: {", ".join(NOISES)} (default:
    nothing)
--decay DECAY:number  for lambda-cgd: share in [0, 1) of the last noise taken back
--bands BANDS:whole   for banded and bisr: diagonals >= 1 of C or of its inverse (default: 4); for
    blt: buffers
--separation B:whole  steps between two of one record, at least
--proved              calibrate by proved bounds, not by draws, at the price of more noise
"""
MINIMAX = f"""
[minimax problems (--optimizer dp_rgda, dp_sgda, ...)]
--problem {"|".join(PROBLEMS)}     worst mixture of groups, worst shift of covariates, or area
    under the ROC curve
--group COLUMN                 for fair: whose categories are groups
--dual-l2 M:number=1.0         for fair and robust: regulariser > 0 of the dual variable (default:
    %(default)s)
--positive-share P:number=0.5  for auc: public guess in (0, 1) (default: %(default)s)
"""

TUNING = tuple(name.replace("-", "_") for name in re.findall(r"^--(\S+)", OPTIONS, re.MULTILINE))


def flag(name: str) -> str:
    """Return how a keyword is spelled on the command line."""
    return f"--{name.replace('_', '-')}"


def given_tuning(options: Namespace) -> dict[str, Any]:
    """Return what was given of ``OPTIONS``, by keyword."""
    values = fields_of(options, *TUNING)
    return {name: value for name, value in values.items() if value is not None}
