"""Comparison of batch sizes at one number of gradients. The table lists batches, steps and noise.

The noise of a mean gradient, in clipping norms, is the noise multiplier over the batch size: the
noise-batch ratio of McKenna et al. 2025 (Scaling laws for differentially private language models).
Large batches make it small, and leave fewer steps.

>>> table = compare_batches(n=60_000, gradients=600_000, epsilon=2.0, delta=1e-6)
>>> for row in table.rows[::3]:
...     print(row.batch_size, row.steps, f"{row.noise_multiplier:.3f} {row.noise_batch_ratio:.1e}")
117 5128 0.731 6.2e-03
937 640 1.182 1.3e-03
7500 80 2.764 3.7e-04
60000 10 7.053 1.2e-04
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.calibrate.noise_grid import noise_multipliers
from dpcal.calibrate.runs import rate_of

_SIZES = 10


@dataclass(frozen=True)
class BatchRow:
    """One batch size at the target.

    Parameters
    ----------
    batch_size
        Expected size of the Poisson samples.
    steps
        Number of steps: gradients over the batch size.
    noise_multiplier
        Smallest noise multiplier that meets the target.
    noise_batch_ratio
        Standard deviation of the noise of a mean gradient, in clipping norms.
    """

    batch_size: int
    steps: int
    noise_multiplier: float
    noise_batch_ratio: float


@dataclass(frozen=True)
class BatchTable:
    """Batch sizes at one target and one number of gradients; ``str()`` is a table."""

    n: int
    gradients: int
    epsilon: float
    delta: float
    neighboring_relation: str
    rows: tuple[BatchRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        return {**vars(self), "rows": [vars(row) for row in self.rows]}

    def __str__(self) -> str:
        lines = [
            f"{self.gradients} gradients of {self.n} records, Poisson samples",
            f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, {self.neighboring_relation}",
            f"{'batch size':>12}{'steps':>12}{'noise multiplier':>20}{'noise / batch size':>22}",
        ]
        for row in self.rows:
            lines.append(
                f"{row.batch_size:>12}{row.steps:>12}{row.noise_multiplier:>20.6f}"
                f"{row.noise_batch_ratio:>22.4e}"
            )
        return "\n".join(lines)


def compare_batches(
    *,
    n: int,
    gradients: int,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    batch_sizes: Sequence[int] | None = None,
) -> BatchTable:
    """Return steps and noise of several batch sizes with the same total number of gradients.

    Parameters
    ----------
    n
        Number of records, >= 1, public.
    gradients
        Number of gradients of single records in the whole run, >= 1: batch size times steps.
    epsilon
        Target, > 0.
    delta
        Target, in (0, 1).
    batch_sizes
        Expected batch sizes in [1, n], each at most ``gradients`` (default: all records, halved
        nine times).

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no theorem covers Poisson samples under the neighboring relation.
    """
    most = min(validate.count(n=n), validate.count(gradients=gradients))
    if batch_sizes is None:
        batch_sizes = sorted({max(1, most >> halved) for halved in range(_SIZES)})
    for size in batch_sizes:
        if validate.count(batch_sizes=size) > most:
            raise ValueError(f"batch_sizes must be in [1, {most}], got {size}.")
    steps = [gradients // size for size in batch_sizes]
    found = noise_multipliers(
        events.dpsgd,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=neighboring_relation,
        sampling_probability=[rate_of(Fraction(size, n)) for size in batch_sizes],
        steps=steps,
    )
    rows = [
        BatchRow(size, count, sigma, sigma / size)
        for size, count, sigma in zip(batch_sizes, steps, found.tolist(), strict=True)
    ]
    relation = validate.relation(neighboring_relation)
    return BatchTable(n, gradients, float(epsilon), float(delta), relation, tuple(rows))
