"""One kind of noisy answer about the data: the query of a plan. A query, as data.

>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.01,
...               max_norm=1.0, noise_multiplier=1.0, count=10_000)
>>> query.event(n=50_000)
PoissonSampledDpEvent(sampling_probability=0.01, event=GaussianDpEvent(noise_multiplier=1.0))
>>> query.expected_batch_size(n=50_000)
500.0
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpcal._internal import annexes, validate
from dpcal.accountants import events
from dpcal.accountants.samplers import Sampler
from dpcal.calibrate.descent import Descent
from dpcal.calibrate.kinds import CHOICES, KINDS, LAPLACE, LAPLACE_TOTAL, Kind
from dpcal.calibrate.persons import for_group
from dpcal.calibrate.samplers import sampler_of
from dpcal.errors import UnsupportedEvent

if TYPE_CHECKING:
    from dpcal.calibrate.correlated.correlation import Correlation

__all__ = ["CHOICES", "KINDS", "LAPLACE", "LAPLACE_TOTAL", "Kind", "Query"]

# Range of bounds on a contribution: noise would round to 0, or squared norms be infinite.
LEAST, MOST = 1e-140, 1e140


_NEEDS: Mapping[str, Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "proportional": {"kind": ("gradient difference",)},
        "cap": {"proportional": (True,)},
        "composition": {"sampler": ("fixed-size",)},
        "partition": {"composition": ("disjoint",)},
        "answers_per_part": {"composition": ("disjoint",)},
        "budget": {"sampler": ("full",)},
        "correlation": {"kind": ("gradient",), "composition": ("sequential",), "budget": (None,)},
        "threshold": {"kind": ("labels",)},
        "epoch": {"composition": ("sequential",)},
        "descent": {"kind": ("last iterate",)},
        "clipped": {"kind": ("gradient", "gradient difference", "gradient norm", "scalar")},
    }
)
# No theorem here covers the part of all records of a person in other answers.
_OF_ROWS: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "sampler": ("full", "poisson", "fixed-size"),
        "composition": ("sequential",),
        "budget": (None,),
        "correlation": (None,),
        "kind": tuple(name for name in KINDS if name not in LAPLACE + CHOICES),
    }
)


@dataclass(frozen=True, kw_only=True)
class Query:
    """One kind of noisy answer: a sum over sampled records of clipped vectors, plus Gaussian noise.

    Parameters
    ----------
    name
        Its name for the optimizer, unique in its plan.
    kind
        May be given with hyphens in place of spaces. ``"gradient"``, ``"gradient difference"``
        (between two parameter vectors), ``"gradient norm"`` (the norm of the sum, a number),
        ``"scalar"`` (a sum of losses), ``"one pass"`` (the mean iterate of one pass of gradient
        descent over disjoint records, one at a time), ``"last iterate"`` (of gradient descent on
        all records that releases only this), ``"hessian"`` (the upper triangle of the Hessian, as a
        vector), ``"hessian vector"`` (the Hessian times a vector), ``"saddle score"`` (the distance
        of a point from passing as a second-order point, in contributions), ``"above threshold"``
        (whether a score is the first below a noisy threshold) or ``"noisy max"`` (which of several
        scores is best, after noise). Two kinds release a choice and no sum. ``"labels"`` releases
        the labels with noisy counts above ``threshold``; ``"selection"`` releases the candidate of
        the largest score after Gumbel noise of scale ``noise_multiplier * max_norm`` was added to
        every score, which is the exponential mechanism with epsilon ``2 / noise_multiplier``.
        ``"total"`` and ``"laplace total"`` are sums of numbers in [-max_norm, max_norm] over cells,
        with a record in at most one, with Gaussian noise, or with Laplace noise of scale
        ``noise_multiplier * max_norm``.
    sampler
        ``"poisson"`` (each record independently with ``sampling_probability``), ``"fixed-size"``
        (``batch_size`` distinct records, uniformly) or ``"full"`` (every record). With
        ``correlation`` also ``"cyclic-poisson"`` (each record belongs to one of ``separation``
        groups, which are sampled in turn, one at each answer), ``"min-separation"`` (a sampled
        record sits out the next ``separation - 1`` answers), ``"balls-in-bins"`` (each record is in
        every ``separation``-th answer, from one drawn at random). ``"random-allocation"`` (each
        record is in ``participations`` answers, drawn at random) is for both: of the strategy's
        answers, or, afresh for every epoch, of the ``epoch`` answers of each. Without
        ``correlation`` also ``"shuffled-epochs"`` (a permutation of all records, fresh for every
        epoch, is cut into ``epoch`` batches), with a looser epsilon in a plan with other queries.
    max_norm
        Bound C in [1e-140, 1e140] on the L2 norm of one record's contribution to the sum, enforced
        by per-record clipping. For ``"one pass"`` it bounds how far one record moves the mean
        iterate: step size times the bound on gradients. With ``proportional`` it is the bound per
        unit of distance between the two parameter vectors.
    noise_multiplier
        Standard deviation of the noise on the sum, in units of C, as in ``GaussianDpEvent``. (The
        sum's L2 sensitivity is C when a record is added, removed or zeroed out, 2 C when it is
        replaced; its norm has the same sensitivity, by the triangle inequality.) With ``budget``,
        the smallest multiplier that may be chosen. For ``"above threshold"`` and ``"noisy max"`` it
        is the scale of Laplace noise: on the threshold (twice that on each score), or on each
        score.
    count
        Largest number of answers.
    sampling_probability
        In (0, 1], of a record that is not sitting out; for ``"poisson"``, ``"cyclic-poisson"`` and
        ``"min-separation"``.
    batch_size
        At least 1; for ``"fixed-size"`` only.
    proportional
        Whether C is per unit of ``||w - w'||``; for gradient differences only.
    cap
        The bound in [1e-140, 1e140] that ``max_norm * ||w - w'||`` never exceeds; for proportional
        queries only.
    composition
        ``"sequential"``, or ``"disjoint"`` when the answers are about parts of a partition that
        share no record. Parts are not samples: they earn no amplification.
    partition
        Name of the partition, for disjoint queries only: queries with the same name take their
        parts, of ``batch_size`` records each, from one permutation of the records, so that no two
        parts of any of them overlap. The query's own name when omitted.
    answers_per_part
        How many answers in a row are about the same part, at least 1; for disjoint queries only.
    budget
        For adaptive queries, which choose their noise from public outputs before each answer: the
        noise multiplier of a single answer that would spend the whole common budget of the plan's
        adaptive queries. They must be about every record, in sequence. If multipliers z_1, z_2,
        ... always satisfy ``sum z_t^-2 <= budget^-2``, all answers together are as private as that
        one (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023).
    correlation
        For noise that is correlated from answer to answer; None for independent noise. The query
        has no event of its own then: all its answers are one event, with the same epsilon for any
        number of answers. ``noise_multiplier`` is the standard deviation of z.
    separation
        Whole number >= 1; for ``"cyclic-poisson"``, ``"min-separation"`` and ``"balls-in-bins"``
        only: a record takes part in answers that are at least so far apart.
    participations
        Whole number >= 1, at most the number of answers of an epoch, or the strategy's number of
        steps; for ``"random-allocation"`` only: number of answers in which a record takes part. It
        is 1 without ``correlation``.
    descent
        The :class:`~dpcal.calibrate.descent.Descent` behind an answer, for ``"last iterate"`` only:
        C and the noise belong to each of its steps.
    epoch
        Answers of an epoch, at least 1; for ``"random-allocation"``, where it may be omitted with
        ``correlation``, and ``"shuffled-epochs"`` only. An epoch is paid from its first answer on.
    threshold
        A number > 1 that a noisy count must exceed for its label to be released; for kind
        ``"labels"`` only.
    group_size
        Largest number of records of a person, k >= 1. The claim is then about the person: about k
        records at once, each clipped and sampled independently.
    clipped
        ``"row"``, or ``"user"`` where a person is a record: persons are sampled, and the sum of a
        person's rows is clipped. The n of the plan is the number of persons then.
    """

    name: str
    kind: str
    sampler: str
    max_norm: float
    noise_multiplier: float
    count: int
    sampling_probability: float | None = None
    batch_size: int | None = None
    proportional: bool = False
    cap: float | None = None
    composition: str = "sequential"
    partition: str | None = None
    answers_per_part: int = 1
    budget: float | None = None
    correlation: Correlation | None = None
    separation: int | None = None
    participations: int | None = None
    threshold: float | None = None
    group_size: int = 1
    clipped: str = "row"
    epoch: int | None = None
    descent: Descent | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be a non-empty string, got {self.name!r}.")
        if isinstance(self.kind, str):
            object.__setattr__(self, "kind", self.kind.replace("-", " "))
        if isinstance(self.correlation, Mapping):
            object.__setattr__(self, "correlation", annexes.Correlation(**self.correlation))
        if isinstance(self.descent, Mapping):
            object.__setattr__(self, "descent", Descent(**self.descent))
        self._check_values()
        self._check_together(f"kind={self.kind!r}", KINDS[self.kind].needs)
        for each in dataclasses.fields(self):
            if each.name in _NEEDS and getattr(self, each.name) != each.default:
                self._check_together(each.name, _NEEDS[each.name])
        if self.group_size > 1 and self.clipped == "row":
            self._check_together("group_size > 1", _OF_ROWS)
        self._check_noise()

    def _check_together(self, given: str, needs: Mapping[str, tuple[Any, ...]]) -> None:
        """Refuse values of other fields that do not go with the given ones."""
        for name, allowed in needs.items():
            if (value := getattr(self, name)) not in allowed:
                words = " or ".join(map(repr, allowed))
                raise ValueError(f"{given} is for {name}={words}, got {name}={value!r}.")

    def _check_values(self) -> None:
        """Refuse fields that are out of range for any values of the others."""
        validate.choice(tuple(KINDS), kind=self.kind)
        validate.within(LEAST, MOST, max_norm=self.max_norm)
        validate.positive(noise_multiplier=self.noise_multiplier)
        validate.count(count=self.count)
        _ = self.sampling  # refuses fields that do not go with the sampler
        if self.cap is not None:
            validate.within(LEAST, MOST, cap=self.cap)
        validate.choice(("sequential", "disjoint"), composition=self.composition)
        validate.count(answers_per_part=self.answers_per_part)
        validate.flag(proportional=self.proportional)
        if self.partition is not None and (
            not isinstance(self.partition, str) or not self.partition
        ):
            raise ValueError(f"partition must be a non-empty string, got {self.partition!r}.")
        if self.budget is not None:
            validate.positive(budget=self.budget)
        if self.threshold is not None and not validate.positive(threshold=self.threshold) > 1:
            raise ValueError(f"threshold must be a number > 1, got {self.threshold!r}.")
        if self.descent is not None:
            validate.instance(Descent, descent=self.descent)
        validate.count(group_size=self.group_size)
        validate.choice(("row", "user"), clipped=self.clipped)

    def _check_noise(self) -> None:
        """Refuse noise that does not go with the kind, the budget or the sampler."""
        for name in ("threshold", "descent"):
            if self.kind in _NEEDS[name]["kind"] and getattr(self, name) is None:
                raise ValueError(f"{name} must be given for kind={self.kind!r}, got None.")
        if self.budget is not None and self.noise_multiplier < self.budget:
            raise ValueError(
                f"noise_multiplier must be at least budget={self.budget!r}, for less noise would "
                f"spend more than all of it, got {self.noise_multiplier!r}."
            )
        if self.correlation is None:
            if not self.sampling.independent_noise:
                raise ValueError(
                    f"sampler={self.sampler!r} is for correlated noise, got correlation=None."
                )
            if self.participations is not None and (self.participations > 1 or self.epoch is None):
                raise ValueError(
                    f"sampler={self.sampler!r} with independent noise is for participations=1 and "
                    f"a given epoch, got participations={self.participations!r} and "
                    f"epoch={self.epoch!r}."
                )
            return
        _ = self.sampling.law  # refuses a sampler that no theorem covers
        if self.count > self.correlation.strategy.steps:
            raise ValueError(
                f"count must be at most the strategy's steps={self.correlation.strategy.steps}, "
                f"got {self.count!r}."
            )

    @cached_property
    def sampling(self) -> Sampler:
        """The sampler, as a record of its name and its fields."""
        return sampler_of(
            self.sampler,
            sampling_probability=self.sampling_probability,
            batch_size=self.batch_size,
            separation=self.separation,
            participations=self.participations,
            epoch=self.epoch,
        )

    def bound(self, distance: float | None = None) -> float:
        """Return the bound on one record's contribution: C, or its value at a distance.

        Parameters
        ----------
        distance
            ``||w - w'||`` >= 0; used by proportional queries, and needed by them.
        """
        if not self.proportional:
            return self.max_norm
        if distance is None:
            raise ValueError("distance must be given for a proportional query, got None.")
        bound = self.max_norm * distance
        return bound if self.cap is None else min(bound, self.cap)

    def event(self, n: int) -> events.DpEvent:
        """Return the event of one answer on ``n`` records; a partition's part is not a sample.

        For ``"above threshold"`` it is the event of all answers.

        Raises
        ------
        UnsupportedEvent
            For correlated noise: its answers are not independent mechanisms, and only all of them
            together have an epsilon.
        """
        if self.correlation is not None:
            raise UnsupportedEvent(
                f"query {self.name!r} has correlated noise: one of its answers has no price of its "
                "own. All of them together have one, that of the plan."
            )
        if self.descent is not None:
            sigma = self.noise_multiplier
            return self.descent.event(noise_multiplier=sigma, max_norm=self.max_norm, n=n)
        of_kind = KINDS[self.kind].event
        if of_kind is not None:
            return of_kind(self)
        gaussian = events.GaussianDpEvent(self.noise_multiplier)
        event = gaussian if self.composition == "disjoint" else self.sampling.event(gaussian, n)
        # Plans of batches of a fixed size about persons are under this relation.
        k = self.group_size if self.clipped == "row" else 1
        return for_group(event, k, "add-or-remove-one")

    def answers(self, n: int, count: int) -> tuple[events.DpEvent, int]:
        """Return the event of answers in a row on ``n`` records, and how often it happens.

        Where a record's batch depends on its others, an epoch, or all of them, are one event.
        """
        if self.correlation is None and not self.sampling.fresh:
            return self.sampling.answers(self.noise_multiplier, n, count)
        return self.event(n), count

    def whole_run(self, neighboring_relation: str) -> events.DpEvent:
        """Return the event of all answers with correlated noise, for any ``count``.

        Raises
        ------
        ValueError
            If the noise is independent.
        UnsupportedEvent
            If no theorem covers the strategy, the sampler or the relation.
        """
        if self.correlation is None:
            raise ValueError(f"query {self.name!r} has independent noise.")
        return self.correlation.whole_run(
            self.sampling, self.noise_multiplier, neighboring_relation
        )

    @property
    def sums(self) -> int:
        """Number of noisy sums over records: every step is one behind a last iterate."""
        return self.count if self.descent is None else self.count * self.descent.steps

    def expected_batch_size(self, n: int) -> float:
        """Return the mean number of records in one answer, of ``n``; as public as n is."""
        rounds = self.count if self.correlation is None else self.correlation.strategy.steps
        return self.sampling.expected_batch_size(n, rounds)

    def with_noise(self, noise_multiplier: float, *, checked: bool = False) -> Query:
        """Return an adaptive query with a noise multiplier that was chosen for it, fast.

        Parameters
        ----------
        noise_multiplier
            A finite number, at least this query's.
        checked
            Whether this range has been checked already.

        Raises
        ------
        ValueError
            If the query is not adaptive, or the number is too small.
        """
        if checked:
            return self._copied(noise_multiplier=noise_multiplier)
        if self.budget is None:
            raise ValueError(f"query must be adaptive, got {self.name!r}, whose noise is planned.")
        if not validate.positive(noise_multiplier=noise_multiplier) >= self.noise_multiplier:
            raise ValueError(
                f"noise_multiplier must be at least the planned {self.noise_multiplier!r} for "
                f"query {self.name!r}, got {noise_multiplier!r}."
            )
        return self._copied(noise_multiplier=float(noise_multiplier), chosen_of=self)

    def of_group(self, group_size: int) -> Query:
        """Return the query about so many records of a person, fast, for its event only."""
        return self if self.group_size == group_size else self._copied(group_size=group_size)

    def with_count(self, count: int) -> Query:
        """Return the query with another count >= 1, fast; it may exceed the strategy's limit."""
        return self._copied(count=validate.count(count=count))

    def _copied(self, **changes: Any) -> Query:
        """Return a copy with changes that need no check of the other fields."""
        made = object.__new__(Query)
        fields = made.__dict__
        fields.update(self.__dict__)
        fields.update(changes)
        return made

    @property
    def origin(self) -> Query | None:
        """The adaptive query that this one's noise was chosen for by :meth:`with_noise`, if so."""
        origin: Query | None = self.__dict__.get("chosen_of")
        return origin

    def to_dict(self) -> dict[str, Any]:
        """Return the query as JSON values, by the names of the parameters."""
        # The document of a plan without these stays the same, and so do its seeds.
        absent = {"threshold", "epoch", "clipped", "descent"} - self.given().keys()
        names = [each.name for each in dataclasses.fields(self) if each.name not in absent]
        values = {name: getattr(self, name) for name in names}
        if self.correlation is not None:
            values["correlation"] = self.correlation.to_dict()
        if self.descent is not None:
            values["descent"] = dataclasses.asdict(self.descent)
        return values

    def given(self) -> dict[str, Any]:
        """Return the values that are not at their defaults, by name, without the query's own."""
        return {
            each.name: value
            for each in dataclasses.fields(self)[1:]
            if (value := getattr(self, each.name)) != each.default
        }

    @property
    def share_of_one(self) -> float:
        """Share of the budget that one answer of an adaptive query spends, rounded up; or 0.

        It is ``(budget / noise_multiplier)^2``.
        """
        if self.budget is None:
            return 0.0
        ratio = self.budget / self.noise_multiplier
        return ratio if ratio == 1 else math.nextafter(ratio * ratio * (1 + 2.0**-51), math.inf)
