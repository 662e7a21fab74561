"""When may one record take part? Participation schemas: guarantees of a data pipeline.

A sensitivity holds for a schema, and a schema is a guarantee of the pipeline, not of the
accountant: a record that takes part more often, or sooner again, is not covered.

>>> LeastSeparation(4, at_most=2).earliest(12).tolist()
[0, 4]
>>> FixedEpochs(3, 4).earliest(12).tolist()
[0, 4, 8]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate


class Participation(ABC):
    """A set of allowed participation patterns: the steps at which one record is in the batch.

    Attributes
    ----------
    independent
        Whether a record's steps do not depend on the presence of other records. Only then is adding
        or removing a record equivalent to zeroing its contributions out. If batches are cut from
        one shuffled list, a new record moves others, and theorems cover only ``"replace-special"``.
    """

    kind: ClassVar[str]
    independent: bool

    @abstractmethod
    def earliest(self, steps: int) -> NDArray[np.intp]:
        """Return the pattern that starts at step 0 and repeats as early as allowed.

        Raises
        ------
        ValueError
            If the schema is not one for this number of steps.
        """

    @abstractmethod
    def __str__(self) -> str: ...

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON values."""
        return {"participation": self.kind, **vars(self)}

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Participation:
        """Return the schema that :meth:`to_dict` wrote.

        >>> Participation.from_dict(FixedEpochs(3, 4).to_dict())
        FixedEpochs(epochs=3, steps_per_epoch=4, independent=False)
        """
        classes = {one.kind: one for one in (Single, FixedEpochs, LeastSeparation)}
        kind = validate.choice(tuple(classes), participation=document.get("participation"))
        fields = {name: value for name, value in document.items() if name != "participation"}
        made: Participation = classes[kind](**fields)
        return made


@dataclass(frozen=True)
class Single(Participation):
    """Each record takes part in at most one step.

    >>> str(Single())
    'at most once'
    """

    kind: ClassVar[str] = "single"
    independent: bool = False

    def __post_init__(self) -> None:
        validate.flag(independent=self.independent)

    def earliest(self, steps: int) -> NDArray[np.intp]:
        """Return step 0."""
        return np.zeros(1, np.intp)

    def __str__(self) -> str:
        return "at most once"


@dataclass(frozen=True)
class FixedEpochs(Participation):
    """Each record takes part once in each epoch, at the same place.

    Parameters
    ----------
    epochs
        Number of passes k >= 1.
    steps_per_epoch
        Length b >= 1 of a pass; (k - 1) b < steps <= k b.
    independent
        See :class:`Participation`.
    """

    kind: ClassVar[str] = "fixed epochs"
    epochs: int
    steps_per_epoch: int
    independent: bool = False

    def __post_init__(self) -> None:
        validate.flag(independent=self.independent)
        object.__setattr__(self, "epochs", validate.count(epochs=self.epochs))
        each = validate.count(steps_per_epoch=self.steps_per_epoch)
        object.__setattr__(self, "steps_per_epoch", each)

    def earliest(self, steps: int) -> NDArray[np.intp]:
        """Return steps 0, b, 2 b, ..."""
        most = self.epochs * self.steps_per_epoch
        if not most - self.steps_per_epoch < steps <= most:
            raise ValueError(
                f"steps must fill {self.epochs} epochs of {self.steps_per_epoch} steps, that is be "
                f"in [{most - self.steps_per_epoch + 1}, {most}], got {steps}."
            )
        return np.arange(0, steps, self.steps_per_epoch)

    def __str__(self) -> str:
        return f"{self.epochs} epochs of {self.steps_per_epoch} steps, same place in each"


@dataclass(frozen=True)
class LeastSeparation(Participation):
    """Two steps of one record are at least ``separation`` apart.

    Parameters
    ----------
    separation
        Distance b >= 1; 1 allows every step.
    at_most
        Largest number k >= 1 of a record's participations; None for no bound but the separation.
    independent
        See :class:`Participation`.
    """

    kind: ClassVar[str] = "min separation"
    separation: int
    at_most: int | None = None
    independent: bool = False

    def __post_init__(self) -> None:
        validate.flag(independent=self.independent)
        object.__setattr__(self, "separation", validate.count(separation=self.separation))
        if self.at_most is not None:
            object.__setattr__(self, "at_most", validate.count(at_most=self.at_most))

    def times(self, steps: int) -> int:
        """Return the largest number of participations of a record in ``steps`` steps."""
        fits = -(-steps // self.separation)
        return fits if self.at_most is None else min(fits, self.at_most)

    def earliest(self, steps: int) -> NDArray[np.intp]:
        """Return steps 0, b, 2 b, ..., as many as are allowed."""
        return np.arange(self.times(steps)) * self.separation

    def __str__(self) -> str:
        often = "" if self.at_most is None else f", at most {self.at_most} times"
        return f"at least {self.separation} steps apart{often}"
