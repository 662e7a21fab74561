"""``dpcal select``: which of several models is a second-order stationary point, told in private."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from dpcal.commands import training
from dpcal.commands._options import (
    add_options,
    add_output,
    add_relation,
    add_table,
    add_target,
    whole,
)

EXAMPLES = (
    "new.csv --candidates dpcal-report second-report --accuracy 2 --epsilon 1 --delta 1e-6 -o "
    "selection",
    "patients.csv --candidates dpcal-report second-report --same-records --accuracy 2 --method "
    "above-threshold --epsilon 1 --delta 1e-6 -o another-selection",
)
METHODS = ("gaussian", "gaussian-score", "above-threshold", "report-noisy-max")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the holdout, the candidates and the test."""
    _add_records(parser)
    _add_test(parser)
    add_target(parser, needed=True)
    add_relation(parser, default=None, note="the reports' with --same-records, or replace-special")
    parser.add_argument(
        "--seed", type=whole, help=">= 0; to be kept secret (default: fresh from the system)"
    )
    add_output(parser)


def run(options: Namespace) -> int:
    """Test the candidates, and write the report; the exit status is 1 if none passes."""
    return training.select_model(options)


def _add_records(parser: ArgumentParser) -> None:
    """Declare what is tested, and on which records."""
    table = parser.add_argument_group("holdout: records that the candidates are tested on")
    add_table(table)
    add_options(
        table,
        """
--schema TOML:path  of the table, where the candidates are points (default: the models')
--target COLUMN     what points predict, of the schema
""",
    )
    points = parser.add_argument_group("candidates")
    add_options(
        points,
        """
--candidates FILE:path+  in order: reports or model.json files of 'dpcal train', or JSON files
    with a list of points, each a list of the weights and the intercept
--same-records           the candidates' reports are about the holdout's records too: their prices
    and that of the test are composed
--other-records          they are not, although the table has the name of a report's
--l2 L2:number=0.0       >= 0: regulariser (default: %(default)s)
""",
    )
    points.add_argument(
        "--no-intercept", dest="intercept", action="store_false", help="models have none"
    )


def _add_test(parser: ArgumentParser) -> None:
    """Declare what a candidate must pass."""
    test = parser.add_argument_group("test")
    add_options(test, "--accuracy ALPHA:number  > 0: an ALPHA-second-order point is to be found")
    test.add_argument(
        "--method",
        choices=METHODS,
        default=METHODS[0],
        metavar="NAME",
        help=f"{', '.join(METHODS)} (default: %(default)s)",
    )
    add_options(
        test,
        "--failure-probability P:number=0.1  of what is said of the outcome, in (0, 1) "
        "(default: %(default)s)",
    )
