"""``dpcal train``: fit a private linear model to a table of one's own, with a report."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser, Namespace

from dpcal.commands import training
from dpcal.commands._options import (
    REPORT,
    TABLE,
    TARGET,
    add_help_all,
    add_options,
    relation,
)
from dpcal.commands.training.tuning import CORRELATED_NOISE, MINIMAX, NOISES, OPTIONS, SAMPLERS

EXAMPLES = (
    "patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6",
    "patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6 --budget "
    "clinic.budget -o second-report",
)
# What --help shows, 23 lines of at most 80 characters; --help-all shows every option.
SCREEN = """\
usage: dpcal train FILE --target COLUMN --epsilon E --delta D [options]

Fit a private linear model to a table of your own, and report what it claims.
  FILE                   text with a row of names, also compressed, or parquet
  --schema TOML          types, ranges, classes: 'dpcal schema FILE' drafts one
  --target COLUMN        what to predict
  --epsilon E --delta D  the target of privacy: E >= 0, D in (0, 1)
  --n N                  public number of records (default: read from the table)
  --bounds LOW:HIGH      public range of every feature, where there is no schema
  --group-size K         rows that a person has at most (default: the schema's)
  --class-weights V,W    public weights of the two classes (default: 1,1)
  --loss, --optimizer    logistic or squared; what 'dpcal optimizers' lists
  --epochs E             passes over the records (default: 20)
  --held-out HOW         scores: noisy (the default), unprotected or none
  --budget FILE          charge the run to this budget book
  -o FOLDER, --force     the report (default: dpcal-report); replace an old one
  --json, --help-all     print one JSON document; show every option

examples:
"""
RECORDS = f"""
[table]{TABLE}
--csv FILE:path                    another way to name the table
--target COLUMN                    what to predict
--schema TOML:path                 types, ranges, categories, ...: 'dpcal schema FILE' drafts one
    (default: numbers)
--classes A,B                      the two classes (default: the schema's, or read)
--class-weights V,W                public weights > 0 of the classes, in their order: what the
    loss of a record is multiplied by, before clipping (default: the schema's, or 1)
--silos COLUMN                     for distributed_psgd: a category of the schema that says whose
    record it is; each silo adds its own noise and has its own ledger (default: one silo)
--n N:whole                        public number of records, for a claim under add-or-remove-one
    (default: the schema's, or read, for one under replace-special)
--bounds LOW:HIGH|FILE             public range of every feature, or a JSON file of column: [low,
    high] (default: features are used as they are)
--target-bounds LOW:HIGH           public range of the target of a squared loss, scaled likewise
--test-fraction F:number=0.2       chance in [0, 1) that a record is held out (default:
    %(default)s)
--held-out noisy|unprotected|none  scores of held-out records: paid by these, not protected, or
    none (default: noisy; none with --budget, which charges scores like a run)
"""
MODEL = """
[model and training]
--optimizer NAME=dpsgd  one of those that 'dpcal optimizers' lists (default: %(default)s)
--loss NAME=logistic    logistic or squared (default: %(default)s)
--l2 L2:number=0.0      regulariser >= 0
--no-intercept          fit no intercept: with --l2 the loss is then strongly convex
[constants | public bounds; those that --bounds does not imply, or better ones]
--smoothness L:number   of one record's loss, > 0, without --l2
--gap F:number          on how much the loss can fall below its start, > 0
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the table, the target, the model and its training."""
    add_options(
        parser,
        RECORDS,
        TARGET,
        relation("replace-special, or add-or-remove-one with --n"),
        MODEL,
        OPTIONS,
        CORRELATED_NOISE,
        MINIMAX,
        """
--mechanism NAME    discrete noise and exact sums, or gaussian noise in floating point, whose
    traces the claim leaves out (default: discrete, but for correlated noise)
--seed SEED:whole   >= 0; to be kept secret (default: fresh from the system)
--budget FILE:path  charge the run to this budget book, and refuse it if it does not fit; a new
    book takes the run's epsilon and delta for its total
""",
        REPORT,
        loss=("logistic", "squared"),
        noise=NOISES,
        mechanism=("discrete", "gaussian"),
        sampler=SAMPLERS,
    )
    add_help_all(parser, screen=SCREEN + _wrapped(EXAMPLES))


def run(options: Namespace) -> int:
    """Read, calibrate, train, and write the report."""
    return training.fit_table(options)


def _wrapped(examples: tuple[str, ...]) -> str:
    """Return examples as a shell takes them, on lines of at most 80 characters."""
    lines = []
    for example in examples:
        line = textwrap.wrap(f"dpcal train {example}", 76, subsequent_indent="    ")
        lines.append(" \\\n  ".join(line))
    return "".join(f"  {line}\n" for line in lines)
