"""A PyTorch loop that spends a plan: ``Guard(model, plan)``.

>>> import torch  # doctest: +SKIP
>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=1000, batch_size=100, epochs=5, epsilon=2.0, delta=1e-6)
>>> guard = Guard(model, plan)  # doctest: +SKIP
>>> for inputs, targets in guard.loader(dataset):  # doctest: +SKIP
...     if guard.backward(inputs, targets):
...         optimizer.step()
>>> guard.epsilon(1e-6)  # doctest: +SKIP
"""

from __future__ import annotations

import copy
import hashlib
import math
import os
import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.adapters import loaders
from dpcal.adapters.ahead import Ahead
from dpcal.adapters.clipping import CLIPPINGS, ClippedSums, Threshold, records_in
from dpcal.adapters.ranks import Alone, RankedOracle, Ranks, RanksLost, check_same
from dpcal.adapters.stepwise import Guarded, OutOfTurn
from dpcal.calibrate.plan import Plan
from dpcal.errors import BudgetExceeded, needing
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.result import Result

with needing("torch"):
    import torch
    import torch.distributed as dist
    from torch import Tensor, nn
    from torch.utils._pytree import tree_map
    from torch.utils.data import Dataset, TensorDataset, default_collate

__all__ = ["Guard", "collate"]

Loss = Callable[[Tensor, Tensor], Tensor]
Gradients = Callable[[nn.Module, Any, Any], Mapping[str, Tensor]]
Collate = Callable[[list[Any]], Any]


class Guard(Guarded):
    r"""Stands between a model and its records: only a noisy mean of clipped gradients leaves it.

    The guard draws the batch of every step as the plan states, and the answer is in the ledger
    before the batch is loaded. Gradients are clipped record by record and summed on the model's
    device, large ones without being formed (``dpcal.adapters.clipping``): the model sees a batch of
    one record at a time, by ``torch.vmap``. One record moves the sum, which is rounded to whole
    numbers, by at most ``max_norm``, all rounding included. Noise is discrete, independent or
    correlated as the plan states. A record adds zero if its gradient is NaN or infinite, or if the
    norm overflows single precision.

    On several ranks, or with a ``store``, the released bits do not depend on the number of ranks:
    see :mod:`dpcal.adapters.ranks`. Every rank makes the guard, takes the pieces that its loader
    gives, and has the same ``.grad``, or its shard of it, at the end of a step.

    Parameters
    ----------
    model
        A module. Its parameters that require gradients are trained; none of its layers may mix the
        records of a batch. Batch normalisation does, unless it is in eval mode and has running
        statistics.
    plan
        Plan with one query of gradients, for example from :func:`dpcal.calibrate.dpsgd` or
        :func:`dpcal.calibrate.correlated_dpsgd`. On several ranks the plan of rank 0 counts, and
        the plan may be None on the others: a plan with a simulated epsilon is not the same when it
        is made again.
    loss
        ``loss(output, target)`` of a batch of one record, a scalar; cross entropy when omitted.
    gradients
        ``gradients(model, inputs, targets)`` returns, for each trained parameter's name, the
        gradients of single records, shape (m, \*shape); it takes the place of ``torch.vmap`` where
        that cannot run the model. A record's gradient must depend on that record only.
    clipping
        How a record's gradient is brought within ``max_norm``. ``"flat"`` shortens it where it is
        longer. ``"per-layer"`` shortens the part of each of L layers to ``max_norm / sqrt(L)``, a
        weight and its bias being one. ``"automatic"`` divides it by its norm plus 0.01 and takes
        it times ``max_norm``, which then is part of the learning rate (Bu, Wang, Zha and Karypis
        2023, Automatic clipping). One record moves the sum by at most ``max_norm`` with each.
    quantile
        In (0, 1): gradients are clipped to this quantile of their norms instead, which
        ``threshold.norm`` follows from ``max_norm`` on, and scaled to ``max_norm``. Each answer has
        one more number, the count of records within the quantile. This number takes a little of the
        bound, so that the cost is the plan's (Andrew, Thakkar, McMahan and Ramaswamy 2021,
        Differentially private learning with adaptive clipping). Not for correlated noise.
    seed
        For repeatable runs. A seed that others know voids the claim, and one seed is good for one
        data set.
    store
        Path of a file with the run, of rank 0: a job that was killed goes on with the same bits.
    group
        A ``torch.distributed.ProcessGroup`` that adds whole numbers on the CPU, as Gloo does; the
        default one when omitted, if it has several ranks.

    Raises
    ------
    ValueError
        If the plan has queries other than gradients, the model mixes records or is sharded already,
        or nothing is trained.
    RanksDisagree
        If ranks have other plans, parameters or versions; by the loader, if their data sets have
        other records or another order.
    """

    def __init__(
        self,
        model: nn.Module,
        plan: Plan | None,
        *,
        loss: Loss = nn.functional.cross_entropy,
        gradients: Gradients | None = None,
        clipping: str = "flat",
        quantile: float | None = None,
        seed: Seed = None,
        store: str | os.PathLike[str] | None = None,
        group: Any = None,
    ) -> None:
        if isinstance(model, nn.parallel.DistributedDataParallel):
            model = model.module
        _check_mixing(model)
        self._shapes = {
            name: tuple(each.shape) for name, each in model.named_parameters() if each.requires_grad
        }
        if not self._shapes:
            raise ValueError("model must have parameters that require gradients, got none.")
        if any(map(_is_sharded, model.parameters())):
            raise ValueError(
                "model must be whole, and shard its parameters after the guard is made: "
                "fully_shard(model), for instance."
            )
        self.model = model
        self._gradients = gradients
        self._turn = RLock()
        self._left = self._piece = 0
        self._alone = False
        self._values: dict[str, Tensor] = {}
        validate.choice(CLIPPINGS, clipping=clipping)
        if quantile is not None and clipping != "flat":
            raise ValueError(
                f"clipping must be 'flat' with a quantile, which moves one norm, got {clipping!r}."
            )
        dimension = sum(map(math.prod, self._shapes.values())) + (quantile is not None)
        ranks = _ranks(group)
        self._ranked: RankedOracle | None = None
        alone = ranks.size == 1 and group is None and store is None
        if plan is not None and alone:
            self.threshold = _threshold(plan, quantile)
            self._oracle = Ahead(plan, dimension=dimension, seed=seed)
            self._clipped = ClippedSums(model, self._shapes, loss, clipping, records=plan.n)
            return
        # A copy of the functions: parameters may become shards, with hooks that gather them.
        held = {id(each): nn.Parameter(each.to("meta")) for each in model.parameters()}
        model = copy.deepcopy(model, held)
        shapes = self._shapes if quantile is None else {**self._shapes, "": (1,)}
        self._oracle = self._ranked = RankedOracle(
            plan, ranks, shapes, self._question, seed=seed, store=store
        )
        self.threshold = _threshold(self.plan, quantile)
        self._clipped = ClippedSums(model, self._shapes, loss, clipping, records=self.plan.n)

    def loader(
        self,
        dataset: Dataset[Any],
        *,
        at_most: int | None = None,
        collate: Collate = default_collate,
    ) -> Iterator[Any]:
        """Return an iterator over the batches of all remaining steps.

        Parameters
        ----------
        dataset
            Data set with as many items as the plan has records. A ``DataLoader`` is refused,
            because its batches are not the plan's.
        at_most
            Largest number of records in memory, at least 1. Larger batches come in pieces, and
            :meth:`backward` returns True at the last piece. All records at once when omitted; on
            ranks the default of :meth:`dpcal.adapters.ranks.RankedOracle.pieces`.
        collate
            Function that makes a batch of a list of items, as a ``DataLoader``'s ``collate_fn``. An
            item's part of the batch must depend on that item only: pad to a fixed length, not to
            the longest item, and mix no items.

        Yields
        ------
        object
            Batch that ``collate`` makes of records, or a piece of the batch. An empty batch has the
            same form, with length 0. On several ranks each has its own pieces, and at least one.
        """
        if hasattr(dataset, "batch_sampler"):
            found = loaders.check(dataset)
            raise ValueError(
                "dataset must be a data set, for the guard draws the batches that it prices: give "
                f"loader.dataset, not a loader with {found.name}. {found.sentence}"
            )
        size = len(dataset)
        if size != self.plan.n:
            raise ValueError(f"dataset must have the plan's n={self.plan.n} items, got {size}.")
        repeated = loaders.repetition(dataset)
        if repeated:
            raise ValueError(f"dataset must have each record once, and {repeated}.")
        piece = None if at_most is None else validate.count(at_most=at_most)
        return self._batches(dataset, piece, collate)

    def _batches(self, dataset: Any, piece: int | None, collate: Any) -> Iterator[Any]:
        if self.remaining:
            batch = collate([dataset[0]])
            records_in(batch, batch)
            if self._ranked is not None:
                self._ranked.check_records(partial(_record, dataset))
        while self.remaining:
            _check_mixing(self.model)
            pieces = self._oracle.pieces(piece)
            for left, (number, rows) in zip(reversed(range(len(pieces))), pieces, strict=True):
                if not self._oracle.drawn:  # the batch was given up
                    break
                self._left, self._piece = left, number
                self._alone = self._ranked is None and len(pieces) == 1
                yield _loaded(dataset, rows, collate)
            if self._oracle.drawn:
                self._oracle.give_up()
                raise OutOfTurn("backward must be called for every batch that the loader gave.")

    def backward(self, inputs: Any, targets: Any) -> bool:
        """Take gradients of a batch, or of a piece of one; fill ``.grad`` when it is complete.

        After an exception nothing of these records is summed: hand them in again, or call
        :meth:`give_up`.

        Parameters
        ----------
        inputs, targets
            As :meth:`loader` gave them, possibly moved to another device: tensors, or tuples, lists
            and mappings of them, which the model takes as its arguments or keywords.

        Returns
        -------
        bool
            Whether ``.grad`` of every trained parameter now holds a noisy mean gradient, so that an
            optimizer may take its step.

        Raises
        ------
        BudgetExceeded
            If the plan is used up.
        OutOfTurn
            If the loader gave no batch.
        ValueError
            If a layer that mixes records was put into training mode, or inputs and targets have
            different numbers of records.
        RuntimeError
            If the model changes a layer's input in place after its use.
        """
        # A thread that fills .grad must not find the tensors in place of the module's parameters.
        with self._turn:
            return self._step(inputs, targets)

    def _step(self, inputs: Any, targets: Any) -> bool:
        if not self._oracle.drawn:
            if not self.remaining:
                raise BudgetExceeded(
                    f"the plan's {self.plan.queries[0].count} steps are spent; no record is read."
                )
            raise OutOfTurn("backward needs a batch that guard.loader(dataset) gave.")
        _check_mixing(self.model)
        count = records_in(inputs, targets)
        if count:
            with self._same_draws():
                self._oracle.add_whole(count, partial(self._sums, inputs, targets))
        if self._left:
            return False
        mean = self._oracle.answer()
        if self.threshold is not None:
            bound = self.plan.queries[0].max_norm
            mean[:-1] *= self.threshold.norm / (self.threshold.kept * bound)
            self.threshold.follow((mean[-1] / (self.threshold.share * bound) + 1) / 2)
        self._fill(mean)
        self._values = {}
        return True

    def result(self) -> Result:
        """Return the run so far, for :func:`dpcal.report.save`; ``w`` are the trained parameters.

        A run that ends before its plan costs the whole plan. Your loop must make sure that nothing
        else is learned from the records.
        """
        parts = [each.detach() for each in self.model.parameters() if each.requires_grad]
        whole: Any = [each.full_tensor() if _is_sharded(each) else each for each in parts]
        w = torch.cat([each.flatten().cpu().double() for each in whole]).numpy()
        steps = self.plan.queries[0].count
        return Result(
            w=w,
            ledger=self.ledger,
            plan=self.plan,
            complete=self.remaining == 0,
            message=f"{steps - self.remaining} of {steps} steps were taken.",
            status="stopped" if self.remaining else "finished",
            early=self.remaining > 0,
            seed_given=self._oracle.seed_given,
            noise=self._oracle.noise,
        )

    def state_dict(self) -> dict[str, Any]:
        """See :meth:`dpcal.adapters.stepwise.Guarded.state_dict`."""
        norm = None if self.threshold is None else self.threshold.norm
        return {**super().state_dict(), "threshold": norm}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See :meth:`dpcal.adapters.stepwise.Guarded.load_state_dict`."""
        norm = state.get("threshold")
        if (norm is None) != (self.threshold is None):
            raise ValueError("state must be of a guard with a quantile if this one has one.")
        super().load_state_dict(state)
        if self.threshold is not None:
            self.threshold.norm = validate.positive(threshold=norm)

    def _question(self) -> bytes:
        """Return a digest of the parameters, which are gathered for this step if they are shards.

        A ValueError is raised for shards together with your own ``gradients`` function.
        """
        digest = hashlib.blake2b(digest_size=32)
        digest.update(repr(self.threshold).encode() if self.threshold else b"")
        for name, each in self.model.named_parameters():
            found: Any = each.detach()
            if _is_sharded(each):
                if self._gradients is not None:
                    raise ValueError("gradients must be None for a model with sharded parameters.")
                found = found.full_tensor()
            self._values[name] = found
            digest.update(found.contiguous().view(torch.uint8).cpu().numpy())
        return digest.digest()

    @contextmanager
    def _same_draws(self) -> Iterator[None]:
        """Make the model's draws, as for dropout, the same on every rank and at each repetition."""
        if self._ranked is None:
            yield
            return
        with torch.random.fork_rng():
            torch.manual_seed(self._ranked.seed_of(self._piece))
            yield

    def _sums(self, inputs: Any, targets: Any, some: Any, bound: float) -> Any:
        """Return clipped sums in whole steps and fractions; see StepwiseOracle.add_whole."""
        if not isinstance(some, slice):
            inputs, targets = tree_map(lambda each: each[some], (inputs, targets))
        if self._gradients is None:
            if self._ranked is not None:
                pairs = zip(self._clipped.model.modules(), self.model.modules(), strict=True)
                for own, each in pairs:
                    own.training = each.training
            values = self._values or dict(self.model.named_parameters())
            return self._clipped(inputs, targets, values, bound, self.threshold, alone=self._alone)
        with torch.enable_grad():
            found = self._gradients(self.model, inputs, targets)
        count = records_in(inputs, targets)
        for name, shape in self._shapes.items():
            if found[name].shape != (count, *shape):
                raise ValueError(
                    f"gradients of {name!r} must have shape {(count, *shape)}, one a record, "
                    f"got {tuple(found[name].shape)}."
                )
        return self._clipped.of(found, bound, self.threshold)

    def _fill(self, gradient: Vector) -> None:
        parameters = dict(self.model.named_parameters())
        found = torch.from_numpy(gradient[: self._clipped.dimension])
        parts = found.split([math.prod(shape) for shape in self._shapes.values()])
        for (name, shape), part in zip(self._shapes.items(), parts, strict=True):
            each = parameters[name]
            part = part.to(device=each.device, dtype=each.dtype).reshape(shape)
            each.grad = _sharded_as(each, part) if _is_sharded(each) else part


class _Processes:
    """The ranks of a process group; see :class:`dpcal.adapters.ranks.Ranks`."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self._first = 0 if group is None else dist.get_global_rank(group, 0)

    def told(self, make: Callable[[], Any]) -> Any:
        made: list[Any] = [None, None]
        if self.rank == 0:
            try:
                made[1] = make()
            except Exception as error:
                made[0] = error
        with _reached():
            dist.broadcast_object_list(made, src=self._first, group=self._group)
        if made[0] is not None:
            raise made[0]
        return made[1]

    def same(self, **values: Any) -> None:
        gathered: list[Any] = [None] * self.size
        with _reached():
            dist.all_gather_object(gathered, values, group=self._group)
        check_same(gathered)

    def total(self, whole: NDArray[np.int64]) -> NDArray[np.int64]:
        with _reached():
            dist.all_reduce(torch.from_numpy(whole), group=self._group)
        return whole


@contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise RanksLost(f"the ranks of the run do not answer: {reason}.") from error


def _threshold(plan: Plan, quantile: float | None) -> Threshold | None:
    """Return the first threshold: the noise of its share of records is a twentieth, as a rule."""
    if quantile is None:
        return None
    validate.probability(quantile=quantile)
    query = plan.queries[0]
    if query.correlation is not None:
        raise ValueError(
            "quantile must be None for a plan with correlated noise: what noise takes back of "
            "earlier noise would be scaled by another threshold."
        )
    share = min(10 * query.noise_multiplier / query.expected_batch_size(plan.n), 0.3)
    return Threshold(query.max_norm, quantile, share)


def _ranks(group: Any) -> Ranks:
    if group is None and not (dist.is_available() and dist.is_initialized()):
        return Alone()
    return _Processes(group)


def _check_mixing(model: nn.Module) -> None:
    """Refuse modules with an output, or statistics, for one record that depend on others.

    Clipping one record's gradient would then not bound the record's effect on the sum.
    """
    for name, module in model.named_modules():
        if _mixes(module):
            raise ValueError(
                f"model must not mix the records of a batch, and its module {name!r} "
                f"({type(module).__name__}) does in this mode: keep it in eval mode with running "
                "statistics, in every step, or use group or layer normalisation."
            )


def _mixes(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return module.training or module.running_mean is None
    if isinstance(module, nn.modules.instancenorm._InstanceNorm):
        # Outputs are normalised record by record, but running statistics are over all records.
        updates = module.training or not module.track_running_stats
        return updates and module.running_mean is not None
    return False


def _is_sharded(parameter: Tensor) -> bool:
    return hasattr(parameter, "full_tensor")


def _sharded_as(parameter: Any, whole: Tensor) -> Tensor:
    """Return the shard of a tensor that every rank has, in the parameter's places."""
    from torch.distributed.tensor import distribute_tensor

    places = (parameter.device_mesh, parameter.placements)
    made: Tensor = distribute_tensor(whole, *places, src_data_rank=None)
    return made


def collate(dataset: Dataset[Any], collate_fn: Collate = default_collate) -> Collate:
    """Return a ``collate_fn`` that also takes empty batches, at which ``default_collate`` fails.

    An empty batch has the form of a batch of the first record, with length 0: shapes of records are
    taken for public.

    Parameters
    ----------
    dataset
        Data set of the loader; its first item is read at once.
    collate_fn
        Function that makes a batch of a list of items: tensors, texts, and mappings and sequences
        of them.

    Raises
    ------
    TypeError
        If a batch holds anything else: its length cannot be made 0.
    """
    empty = _emptied(collate_fn([dataset[0]]), strict=True)
    return partial(_collated, collate_fn, empty)


def _collated(collate_fn: Collate, empty: Any, items: list[Any]) -> Any:
    return collate_fn(items) if items else empty


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Make a data set's draws from the usual generators, as for augmentation, repeatable."""
    plain, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(legacy)  # noqa: NPY002


def _record(dataset: Any, row: int) -> bytes:
    """Return bytes by which records differ."""
    with _seeded(0):
        return b"".join(_told_apart(dataset[row]))


def _told_apart(part: Any) -> Iterator[bytes]:
    if isinstance(part, Mapping):
        part = list(part.items())
    if isinstance(part, Tensor):
        part = part.detach().cpu()
        yield f"{part.dtype} {tuple(part.shape)}".encode()
        part = part.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()
    elif isinstance(part, np.ndarray) and not part.dtype.hasobject:
        yield f"{part.dtype} {part.shape}".encode()
        part = part.tobytes()
    if isinstance(part, list | tuple):
        yield f"{len(part)} parts".encode()
        for each in part:
            yield from _told_apart(each)
    else:
        yield part if isinstance(part, bytes) else pickle.dumps(part)


def _loaded(dataset: Any, rows: Rows, collate_fn: Collate) -> Any:
    if type(dataset) is TensorDataset and collate_fn is default_collate:
        return [each[torch.from_numpy(rows)] for each in dataset.tensors]
    if len(rows):
        return collate_fn([dataset[int(row)] for row in rows])
    return _emptied(collate_fn([dataset[0]]))


def _emptied(batch: Any, *, strict: bool = False) -> Any:
    """Return a batch of one record without that record; None for a part that has no such form."""
    if isinstance(batch, Tensor):
        return batch[:0]
    if isinstance(batch, Mapping):
        return {name: _emptied(each, strict=strict) for name, each in batch.items()}
    if isinstance(batch, list | tuple):
        # Collated texts are a sequence with one text a record: an empty batch has none.
        parts = [each for each in batch if not isinstance(each, str | bytes)]
        return [_emptied(each, strict=strict) for each in parts]
    if strict:
        raise TypeError(
            "collate_fn must make batches of tensors, texts, mappings and sequences, got a "
            f"{type(batch).__name__}: give the loader a collate_fn that also takes an empty list."
        )
    return None
