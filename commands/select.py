"""``dpcal select``: which of several models is a second-order stationary point, told in private."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from dpcal.commands import training
from dpcal.commands._options import REPORT, TABLE, TARGET, add_options, relation

EXAMPLES = (
    "new.csv --candidates dpcal-report second-report --accuracy 2 --epsilon 1 --delta 1e-6 -o "
    "selection",
    "patients.csv --candidates dpcal-report second-report --same-records --accuracy 2 --method "
    "above-threshold --epsilon 1 --delta 1e-6 -o another-selection",
)
METHODS = ("gaussian", "power-method", "gaussian-score", "above-threshold", "report-noisy-max")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the holdout, the candidates and the test."""
    add_options(
        parser,
        f"""
[holdout: records that the candidates are tested on]{TABLE}
--schema TOML:path  of the table, where the candidates are points (default: the models')
--target COLUMN     what points predict, of the schema
""",
        """
[candidates]
--candidates FILE:path+  in order: reports or model.json files of 'dpcal train', or JSON files
    with a list of points, each a list of the weights and the intercept
--same-records           the candidates' reports are about the holdout's records too: their prices
    and that of the test are composed
--other-records          they are not, although the table has the name of a report's
--l2 L2:number=0.0       >= 0: regulariser (default: %(default)s)
--no-intercept           models have none
""",
        f"""
[test]
--accuracy ALPHA:number             > 0: an ALPHA-second-order point is to be found
--method NAME={METHODS[0]}              {", ".join(METHODS)} (default: %(default)s)
--failure-probability P:number=0.1  of what is said of the outcome, in (0, 1) (default:
    %(default)s)
""",
        TARGET,
        relation("the reports' with --same-records, or replace-special"),
        "--seed SEED:whole  >= 0; to be kept secret (default: fresh from the system)",
        REPORT,
        method=METHODS,
    )


def run(options: Namespace) -> int:
    """Test the candidates, and write the report; the exit status is 1 if none passes."""
    return training.select_model(options)
