r"""File of a private model, and its predictions for new records.

A model file holds all that is needed: the schema, the classes, the parameters, the plan that they
were paid by, and the claim. A prediction is a function of published values, so that predictions
cost no privacy of the training records.

>>> from dpcal.tables.schema import Schema
>>> schema = Schema.from_toml('''
... [columns.age]
... type = "number"
... range = [0, 100]
... [columns.sick]
... type = "class"
... classes = ["no", "yes"]
... ''')
>>> model = Model(schema=schema, target=schema.column("sick"), labels=("no", "yes"),
...               weights=np.array([1.0]), intercept=-2.0)
>>> model.predict({"age": [20, 90]}).tolist()
['no', 'yes']
>>> Model.from_json(model.to_json()).predict_proba({"age": [75.0]}).tolist()
[[0.5, 0.5]]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal.files import document_of, text_of
from dpcal.tables.coding import REACH, Coding, pieces, unscaled
from dpcal.tables.reading import table_of
from dpcal.tables.schema import Column, Schema

FORMAT = "dpcal-model"

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A linear model of a table, with the coding of its cells.

    Parameters
    ----------
    schema
        Schema of the table.
    target
        Column to predict.
    labels
        The two classes, in order; empty where a number is predicted.
    weights
        Weights of the features, shape (d,), in the order of the schema's coding.
    intercept
        Added to each score.
    about
        Other content of the file: the claim, the plan, the versions.
    """

    schema: Schema
    target: Column
    labels: tuple[str, ...]
    weights: Vector
    intercept: float
    about: Mapping[str, Any] = field(default_factory=dict)
    coding: Coding = field(init=False)

    def __post_init__(self) -> None:
        coding = Coding(
            self.schema.features(self.target.name), missing_values=self.schema.missing_values
        )
        object.__setattr__(self, "coding", coding)
        weights = np.asarray(self.weights, dtype=np.float64)
        object.__setattr__(self, "weights", weights)
        if weights.shape != (len(coding.names),) or not np.isfinite(weights).all():
            raise ValueError(
                f"weights must be {len(coding.names)} finite numbers, one for each feature of the "
                f"schema, got shape {weights.shape}."
            )
        if not np.isfinite(self.intercept):
            raise ValueError(f"intercept must be a finite number, got {self.intercept!r}.")
        if len(self.labels) not in (0, 2):
            raise ValueError(f"labels must be two classes or none, got {list(self.labels)}.")

    def scores(self, X: Vector) -> Vector:
        """Return the scores of coded rows, shape (m,)."""
        return np.asarray(X @ self.weights + self.intercept)

    def decision(self, table: Any) -> Vector:
        """Return the score of each record, shape (m,): NaN where the schema leaves it out.

        Parameters
        ----------
        table
            A data frame (polars, pandas), a mapping from names to columns, a list of rows as
            mappings, or the path of a file. Columns that the model does not use are ignored.

        Raises
        ------
        MissingExtra
            If polars is not installed.
        ValueError
            If a column is missing, or a cell does not match the schema.
        """
        X, kept = self.coding.encode(table_of(table))
        scores = self.scores(np.where(kept[:, np.newaxis], X, 0.0))
        return np.asarray(np.where(kept, scores, np.nan))

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the likelier class of each record, or the number that is predicted for it.

        Parameters
        ----------
        table
            Table, as for :meth:`decision`.

        Returns
        -------
        numpy.ndarray
            Shape (m,): texts, with None where the schema leaves a record out; numbers, with NaN
            there, if the target is a number.

        Raises
        ------
        MissingExtra
            If polars is not installed.
        ValueError
            If a column is missing, or a cell does not match the schema.
        """
        return self.answers(self.decision(table))

    def answers(self, scores: Vector) -> NDArray[Any]:
        """Return the predictions of :meth:`predict` for scores of :meth:`decision`."""
        if not self.labels:
            return unscaled(scores, self.target)
        found = np.array(self.labels, dtype=object)[(scores > 0).astype(np.intp)]
        found[np.isnan(scores)] = None
        return found

    def predict_proba(self, table: Any) -> Vector:
        """Return the probability of each class, shape (m, 2), in the order of ``labels``.

        Parameters
        ----------
        table
            Table, as for :meth:`decision`.

        Raises
        ------
        MissingExtra
            If polars is not installed.
        ValueError
            If the target is a number, a column is missing, or a cell does not match the schema.
        """
        if not self.labels:
            raise ValueError(f"target {self.target.name!r} is a number, it has no classes.")
        second = self.probability(self.decision(table))
        return np.stack([1 - second, second], axis=1)

    def curves(self, points: int = 201) -> dict[str, tuple[Vector, Vector]]:
        """Return the contribution of each column with bins or splines to a score, over its range.

        Parameters
        ----------
        points
            Number >= 2 of equally spaced values of the column.

        Returns
        -------
        dict
            From the name of a column to its values and their contributions, less the mean
            contribution; both have shape (points,).
        """
        found = {}
        for column, place in self.coding.pieces():
            scores = np.linspace(-REACH, REACH, points)
            added = pieces(scores, column) @ self.weights[place]
            found[column.name] = unscaled(scores, column), added - added.mean()
        return found

    def probability(self, scores: Vector) -> Vector:
        """Return the probability of the second class for scores of :meth:`decision`."""
        small = np.exp(-np.abs(scores))
        return np.asarray(np.where(scores > 0, 1.0, small) / (1 + small))

    def to_json(self) -> str:
        """Return the model as a JSON document."""
        document = {
            "format": FORMAT,
            "version": 1,
            "target": self.target.name,
            "target_column": self.target.to_dict(),
            "classes": list(self.labels),
            "weights": dict(zip(self.coding.names, self.weights.tolist(), strict=True)),
            "intercept": float(self.intercept),
            "schema": self.schema.to_dict(),
            **self.about,
        }
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Model:
        """Read a model that :meth:`to_json` wrote.

        Raises
        ------
        ValueError
            If the text is no such document.
        """
        try:
            document = document_of(text)
            if not isinstance(document, dict):
                raise ValueError(f"it is no object, but a {type(document).__name__}")
            if document.pop("format") != FORMAT or document.pop("version") != 1:
                raise ValueError(f"its format must be {FORMAT!r}, version 1")
            name, weights = document.pop("target"), document.pop("weights")
            schema = Schema.from_dict(document.pop("schema"))
            target = Column.from_dict(name, document.pop("target_column"))
            coding = Coding(schema.features(name), missing_values=schema.missing_values)
            return cls(
                schema=schema,
                target=target,
                labels=tuple(document.pop("classes")),
                weights=np.array([weights[feature] for feature in coding.names], dtype=float),
                intercept=float(document.pop("intercept")),
                about=document,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ValueError(f"model must be a model file in JSON: {reason}.") from error


def load_model(path: str | Path) -> Model:
    """Return the model of a file that ``dpcal train`` wrote.

    Parameters
    ----------
    path
        Path of ``model.json``, or of its folder.

    Raises
    ------
    ValueError
        If the file cannot be read, or holds no model.

    Examples
    --------
    >>> load_model("nowhere.json")
    Traceback (most recent call last):
        ...
    ValueError: model must be a readable file, got 'nowhere.json': No such file or directory.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "model.json"
    return Model.from_json(text_of(path, "model must be a readable file"))
