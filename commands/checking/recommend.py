"""``dpcal recommend``: which optimizer fits a linear model best? No record is read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import dpcal
from dpcal.commands._options import TARGET, add_options, fields_of, relation
from dpcal.commands.checking.output import present

EXAMPLES = (
    "--loss logistic --n 20000 --dimension 10 --epsilon 1 --delta 1e-6",
    "--loss squared --n 5000 --dimension 4 --epsilon 2 --delta 1e-6 --json",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the problem, by its public sizes, and the target."""
    add_options(
        parser,
        """
--loss logistic|squared!    targets of squared losses are in [-1, 1]
--n N:whole!                number of records
--dimension D:whole!        number of parameters, the intercept among them
--row-norm R:number=1.0     bound on the norm of a row, with its constant column (default:
    %(default)s)
--typical-norm R:number     root mean square of the rows' norms, if it is public (default: 0.6 of
    the bound)
--l2 L:number=0.0           weight of the penalty (default: %(default)s)
--passes E:number           most passes over the records (default: 60 of steps on samples, and of
    steps on all records as many as noise allows)
--picture FILE:path         a .png or .svg file: errors from a thirtieth to thirty times N, and
    where the first row changes
""",
        TARGET,
        relation(default="replace-special"),
    )


def run(options: Namespace) -> int:
    """Print a row for each optimizer, best first, and the bounds."""
    sizes = ("n", "dimension", "row_norm", "typical_norm", "l2", "passes")
    target = ("epsilon", "delta", "neighboring_relation")
    table = dpcal.calibrate.recommend(options.loss, **fields_of(options, *sizes, *target))
    document, text = table.to_dict(), str(table)
    if options.picture is not None:
        document["crossings"] = _drawn(options, fields_of(options, *sizes, *target))
        text += f"\npicture written to {options.picture}"
    present(options, document, text)
    return 0


def _drawn(options: Namespace, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Draw errors against the number of records; return where the first row changes."""
    dpcal.plot.check_picture(options.picture)
    n = sorted({max(1, round(options.n * 30.0 ** (place / 4))) for place in range(-4, 5)})
    tables = [dpcal.calibrate.recommend(options.loss, **(asked | {"n": each})) for each in n]
    figure = dpcal.plot.errors(n, tables)
    title = "Predicted errors by the number of records"
    dpcal.plot.save(figure, options.picture, title=title, description=tables[0].note)
    found = dpcal.plot.crossings(n, tables)
    return [{"n": where, "before": one, "after": two} for where, one, two in found]
