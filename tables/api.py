"""A model of a table, or statistics of it: typed, and without imports until the call.

>>> import inspect
>>> [*inspect.signature(train).parameters][:5]
['table', 'schema', 'target', 'epsilon', 'delta']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.calibrate import Plan
    from dpcal.tables.fit import Fitted
    from dpcal.tables.releasing.answering import Release
    from dpcal.tables.schema import Schema

_fit = lazy.Module("dpcal.tables.fit")
_releasing = lazy.Module("dpcal.tables.releasing.answering")

Relation = Literal["add-or-remove-one", "replace-one", "replace-special"]


def train(
    table: Any,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    *,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    n: int | None = None,
    loss: Literal["logistic", "squared"] = "logistic",
    l2: float = 0.0,
    intercept: bool = True,
    optimizer: str | None = None,
    settings: Mapping[str, Any] | None = None,
    class_weights: Mapping[str, float] | None = None,
    use_plan: Plan | str | Path | None = None,
    group_size: int | None = None,
    test_fraction: float = 0.2,
    held_out: Literal["noisy", "unprotected", "none"] | None = None,
    budget: str | Path | None = None,
    seed: int | None = None,
    neighboring_relation: Relation | None = None,
) -> Fitted:
    """Fit a private linear model to a table, and return it with the content of its report.

    Parameters
    ----------
    table
        A polars or pandas data frame, a mapping from names to columns, a list of rows as mappings,
        or the path of a file.
    schema
        Types, ranges and classes of the columns: a :class:`dpcal.tables.Schema`, its JSON values,
        or a TOML file, which 'dpcal schema FILE' drafts. Without one every feature is a number.
    target
        Column to predict (default: the schema's).
    epsilon
        Target epsilon > 0 (default: the plan's).
    delta
        Delta of the target, in (0, 1) (default: the plan's).
    n
        Public number of records, or of persons with clipped=user, for a claim under
        add-or-remove-one (default: the schema's, which counts rows, or read, for one under
        replace-special).
    loss
        Loss: logistic for two classes, squared for numbers.
    l2
        Regulariser >= 0.
    intercept
        Fit an intercept. Without one and with l2, the loss is strongly convex.
    optimizer
        Name of an optimizer; 'dpcal optimizers' lists them (default: dpsgd or noisy_gd with the
        steps of the smallest predicted error, as 'dpcal recommend' computes it; dpsgd if you give
        settings).
    settings
        Keywords of the optimizer's plan builder, such as steps, epochs, batch_size and max_norm, or
        public constants of the loss: smoothness and gap. 'dpcal optimizers NAME' lists the keywords
        of an optimizer.
    class_weights
        Weights of the classes: public numbers > 0 that multiply the loss of a class's records
        (default: the schema's). Gradients are weighted and then clipped: weights cost nothing.
    use_plan
        A :class:`dpcal.Plan`, or the file of one, in place of a target.
    group_size
        Largest number >= 1 of rows of one person, by the schema's column of type person; more rows
        are left out (default: the schema's, or 1).
    test_fraction
        Share in [0, 1) of the records, or persons, that are held out.
    held_out
        Scores of held-out records: noisy, paid by these records; unprotected; or none (default:
        noisy; none with a budget book, which charges scores like a run).
    budget
        Budget book that pays for the run; a run that does not fit is refused. The total of a new
        book is the run's epsilon and delta.
    seed
        Seed of the noise, >= 0; keep it secret (default: fresh from the system).
    neighboring_relation
        Neighboring relation (default: replace-special, or add-or-remove-one with n).

    Returns
    -------
    Fitted
        Model, run and content of the report; ``save(folder)`` writes files that ``dpcal verify``
        checks.

    Raises
    ------
    ValueError
        If an argument is out of range, or does not go with the others. Nothing was spent.
    UnsupportedEvent
        If no theorem bounds the cost of the request.
    MissingExtra
        If polars or matplotlib is not installed.
    BudgetExceeded
        If the run does not fit into the budget book.
    """
    made: Fitted = _fit.fitted(_fit.Request(**locals()))
    return made


def release(
    table: Any,
    schema: Schema | Mapping[str, Any] | str | Path,
    statistics: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    by: str | None = None,
    where: str | None = None,
    find_groups: bool = False,
    n: int | None = None,
    group_size: int | None = None,
    budget: str | Path | None = None,
) -> Release:
    """Release statistics of a table, with noise solved for all of them together.

    Parameters
    ----------
    table
        A polars or pandas data frame, a mapping from names to columns, a list of rows as mappings,
        or the path of a file.
    schema
        Types, ranges and categories of the columns: a :class:`dpcal.tables.Schema`, its JSON
        values, or a TOML file, which 'dpcal schema FILE' drafts. Numbers are clamped to their
        ranges.
    statistics
        ``"count"`` or ``"count age > 65"``, ``"sum stay"``, ``"mean stay"``, ``"variance stay"``,
        ``"histogram department, sex"`` or ``"histogram age:20"``, ``"quantile bp 0.1 0.5 0.9"``.
        Each can end in ``where CONDITION`` and ``by AXES``.
    epsilon
        Target epsilon > 0 of all statistics together.
    delta
        Delta of the target, in (0, 1).
    by
        Groups of all statistics: columns, separated by commas. NAME:PARTS splits the range of a
        number into equal parts.
    where
        Rows that count: comparisons with and, or, not, in.
    find_groups
        Find the groups of a column in ``by`` that the schema does not describe: all groups with
        enough rows.
    n
        Public number of rows, for a claim under add-or-remove-one (default: the schema's, or read,
        for one under replace-special).
    group_size
        Largest number of rows of one person (default: the schema's).
    budget
        Budget book that pays for the release; a release that does not fit is refused. The total of
        a new book is the release's epsilon and delta.

    Returns
    -------
    Release
        Values with standard errors and confidence intervals; ``frame()`` is a data frame, and
        ``save(folder)`` writes files that ``dpcal verify`` checks.

    Raises
    ------
    ValueError
        If an argument is out of range, or a cell does not match the schema.
    BudgetExceeded
        If the release does not fit into the budget book.
    """
    made: Release = _releasing.released(**locals())
    return made
