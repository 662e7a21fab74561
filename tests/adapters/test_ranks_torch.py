"""A guarded PyTorch loop on processes of Gloo: DDP, FSDP2, a killed job, ranks that disagree.

One program loads torch and forks the ranks of every case from it.
"""

import json
import os
import subprocess
import sys

import pytest
from _tree import ROOT

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

PROGRAM = r"""
import json, os, random, signal, sys, traceback
import numpy as np, torch, torch.distributed as dist
import torch.distributed.tensor
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import TensorDataset
from _steps import planned
from dpcal.accountants.matrix import BLT, Banded, LambdaCGD
from dpcal.adapters.torch import Guard

torch.set_num_threads(1)
folder = sys.argv[1]
X = torch.tensor(np.random.default_rng(0).standard_normal((90, 6)), dtype=torch.float32)
records = TensorDataset(X, (X[:, 0] > X[:, 1]).long())
STRATEGIES = {"lambda": LambdaCGD(6, 0.5), "BLT": BLT(6, (0.9, 0.5), (0.3, 0.1)),
              "bands": Banded(6, 3, [0.7, 0.4, 0.2])}

class Augmented(TensorDataset):  # by noise from the usual generators

    def __init__(self, inputs, targets, augmented):
        super().__init__(inputs, targets)
        self.augmented = augmented

    def __getitem__(self, row):
        x, y = super().__getitem__(row)
        if self.augmented:
            x = x + torch.randn(6) + random.random() + np.random.rand()
        return x.numpy(), y

def plan_of(kind):
    return planned(STRATEGIES.get(kind), n=90, sampling_probability=0.3, noise_multiplier=1.0,
                   count=6)

def run(rank, kind, how, store, change, seed=0):
    torch.manual_seed(rank if change == "parameters" else 0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 2))
    plan = plan_of("bands" if change == "plan" and rank else kind) if how != "told" else (
        None if rank else plan_of(kind))
    wrapped = nn.parallel.DistributedDataParallel(model) if how == "ddp" else model
    guard = Guard(wrapped, plan, seed=seed, store=store)
    if change == "twice":
        Guard(wrapped, plan, seed=0, store=store)
    if how == "fsdp":
        fully_shard(model[0]), fully_shard(model)
    table = records
    if change in ("order", "augmented"):
        generator = torch.Generator().manual_seed(rank)
        order = torch.randperm(90, generator=generator) if change == "order" else torch.arange(90)
        table = Augmented(X[order], records.tensors[1][order], change == "augmented")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    checkpoint = f"{store}.pt"
    if store and os.path.exists(checkpoint):
        held = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(held["model"]), optimizer.load_state_dict(held["optimizer"])
        guard.load_state_dict(held["guard"])
    for inputs, targets in guard.loader(table):
        step = 6 - guard.remaining
        if change == "killed" and rank == 0 and step == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        if guard.backward(inputs, targets):
            optimizer.step()
            if change == "killed" and step == 2 and rank == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                            "guard": guard.state_dict()}, checkpoint)
    whole = [each.full_tensor() if how == "fsdp" else each for each in model.parameters()]
    ends = torch.cat([each.detach().ravel() for each in whole]).tolist()
    return {"ends": ends, "answers": guard.ledger.answers, "epsilon": guard.epsilon(1e-5) <= 40}

def fork(rank, size, number, case):
    child = os.fork()
    if child:
        return child
    out = {}
    try:
        if size > 1:
            dist.init_process_group("gloo", init_method=f"file://{folder}/{number}", rank=rank,
                                    world_size=size)
        out = run(rank, *case)
    except BaseException as error:
        out = {"error": f"{type(error).__name__}: {error}"}
    with open(f"{folder}/{number}-{rank}.json", "w") as file:
        json.dump(out, file)
    os._exit(0)

for kind in ("lambda", "BLT"):  # what runs load is loaded once
    run(0, kind, "plain", f"{folder}/first-{kind}.db", "", seed=1)
for number, (size, *case) in enumerate(json.load(sys.stdin)):
    for child in [fork(rank, size, number, case) for rank in range(size)]:
        os.waitpid(child, 0)
"""

CASES = [
    (1, "independent", "plain", "{folder}/one.db", ""),
    (1, "lambda", "plain", "{folder}/lambda.db", ""),
    (1, "BLT", "plain", "{folder}/BLT.db", ""),
    (1, "bands", "plain", "{folder}/bands.db", ""),
    (2, "independent", "ddp", None, ""),
    (4, "independent", "plain", None, ""),
    (2, "independent", "fsdp", None, ""),
    (2, "lambda", "fsdp", None, ""),
    (2, "BLT", "ddp", None, ""),
    (2, "bands", "told", None, ""),
    (2, "independent", "plain", "{folder}/killed.db", "killed"),
    (2, "independent", "plain", "{folder}/killed.db", ""),
    (2, "independent", "plain", None, "plan"),
    (2, "independent", "plain", None, "parameters"),
    (2, "independent", "plain", "{folder}/twice.db", "twice"),
    (2, "independent", "plain", None, "order"),
    (2, "independent", "plain", None, "augmented"),
]


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Return what each rank of each case ends with."""
    folder = tmp_path_factory.mktemp("ranks")
    cases = [
        [part.format(folder=folder) if isinstance(part, str) else part for part in case]
        for case in CASES
    ]
    program = folder / "program.py"
    program.write_text(PROGRAM)
    folders = [str(ROOT / "tests"), str(ROOT / "benchmarks" / "problems")]
    path = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", program, folder]
    options = {"text": True, "check": True, "timeout": 240, "capture_output": True}
    subprocess.run(command, input=json.dumps(cases), env=environment, **options)
    found = {}
    for number, (size, kind, how, _, change) in enumerate(CASES):
        files = [folder / f"{number}-{rank}.json" for rank in range(size)]
        key = (size, kind, how, change, number)
        found[key] = [json.loads(file.read_text()) if file.exists() else None for file in files]
    return found


def of(ends, *case):
    """Return what the ranks of the cases end with that begin as ``case`` does."""
    return [each for key, made in ends.items() if key[: len(case)] == case for each in made]


@pytest.mark.parametrize("kind", ["independent", "lambda", "BLT", "bands"])
def test_one_two_and_four_ranks_end_at_the_same_bits(ends, kind):
    """With dropout, under DDP, FSDP2 and alone; the ledger holds the plan on every rank."""
    (alone,) = of(ends, 1, kind)
    ranked = [each for key in ends if key[1] == kind and key[3] == "" for each in ends[key]]
    assert len(ranked) >= 3
    for each in ranked:
        assert each == alone
    assert alone["answers"] == 6
    assert alone["epsilon"]
    assert max(map(abs, alone["ends"])) > 1e-2


def test_a_job_whose_first_rank_was_killed_goes_on_with_the_same_bits(ends):
    first, second = of(ends, 2, "independent", "plain", "killed")
    assert first is None
    assert second["error"].startswith("RanksLost: the ranks of the run do not answer")
    (alone,) = of(ends, 1, "independent")
    again = of(ends, 2, "independent", "plain", "")
    assert [each["ends"] for each in again] == [alone["ends"]] * 2


def test_records_that_are_augmented_by_chance_are_no_other_order(ends):
    one, other = of(ends, 2, "independent", "plain", "augmented")
    assert one == other
    assert one["answers"] == 6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("plan", "RanksDisagree: ranks must have the same plan"),
        ("parameters", "RanksDisagree: ranks must have the same parameters"),
        ("twice", "LedgerMismatch: store"),
        ("order", "RanksDisagree: ranks must have the same records in the same order"),
    ],
)
def test_ranks_that_disagree_and_a_second_guard_are_refused_in_one_sentence(ends, change, sentence):
    first, second = of(ends, 2, "independent", "plain", change)
    assert first == second
    assert first["error"].startswith(sentence)
    assert first["error"].count("\n") == 0
