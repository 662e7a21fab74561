"""Steps of ``Guard`` next to Opacus: seconds, memory, accuracy and epsilon on one plan.

Digits, in batches of 144 Poisson samples: six networks, of which Opacus takes the transformer with
attention of its own. Steps of all engines are taken in turn, in all orders, on one thread, and the
least time counts; memory is the most that a step of 719 records holds of PyTorch's own.

    python -m benchmarks torch [--models mlp cnn] [--seeds 5] [--steps 30]
"""

import argparse
import statistics
import time
import warnings
from itertools import cycle, islice, pairwise, permutations

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from sklearn.datasets import load_digits
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset

from dpcal import calibrate
from dpcal.adapters.torch import Guard

DELTA, EPSILON, BATCH = 1e-5, 4.0, 144
ENGINES = ("guard", "ghost", "hooks")


class Transformer(nn.Module):
    """Two blocks over 16 words of four pixels."""

    def __init__(self):
        super().__init__()
        self.words = nn.Linear(4, 32)
        blocks = [nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True) for _ in range(2)]
        self.blocks, self.last = nn.Sequential(*blocks), nn.Linear(32, 10)

    def forward(self, x):  # noqa: D102
        return self.last(self.blocks(self.words(x.unflatten(1, (16, 4)))).mean(1))


def dense(*sizes):
    layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
    return nn.Sequential(*[part for each in layers[:-1] for part in (each, nn.Tanh())], layers[-1])


def convolutions():
    convolve = [nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)]
    parts = [part for each in convolve for part in (each, nn.Tanh(), nn.MaxPool2d(2))]
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), *parts, nn.Flatten(), nn.Linear(256, 10))


MODELS = {
    "mlp": lambda: dense(64, 128, 10),
    "wide": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Upsample(28), nn.Flatten(), dense(784, 128, 10)
    ),
    "cnn": convolutions,
    "301k": lambda: dense(64, 512, 512, 10),
    "1.13M": lambda: dense(64, 1024, 1024, 10),
    "transformer": Transformer,
}


def digits():
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 8 - 1, dtype=torch.float32), torch.tensor(y)
    order = np.random.default_rng(0).permutation(len(y))
    return [TensorDataset(X[rows], y[rows]) for rows in np.split(order, [1437])]


def optimizer_of(kind, model):
    if kind == "transformer":
        return torch.optim.AdamW(model.parameters(), lr=0.01)
    return torch.optim.SGD(model.parameters(), lr=0.5)


def planned(data, steps, batch=BATCH):
    target = {"epsilon": EPSILON, "delta": DELTA}
    return calibrate.dpsgd(n=len(data), batch_size=batch, steps=steps, max_norm=1.0, **target)


def steps_of(engine, kind, plan, data, seed=0):
    """Yield the model and the epsilon after each step."""
    torch.manual_seed(seed)
    model = MODELS[kind]()
    query, batch = plan.queries[0], plan.parameters["batch_size"]
    if engine == "guard":
        optimizer, guard = optimizer_of(kind, model), Guard(model, plan)
        for inputs, targets in guard.loader(data):
            if guard.backward(inputs, targets):
                optimizer.step()
            yield model, lambda: guard.ledger.epsilon(DELTA)
        return
    model = ModuleValidator.fix(model)
    private, loss = PrivacyEngine(accountant="prv"), nn.CrossEntropyLoss()
    made = private.make_private(
        module=model, optimizer=optimizer_of(kind, model), criterion=loss,
        data_loader=DataLoader(data, batch_size=batch), max_grad_norm=query.max_norm,
        noise_multiplier=query.noise_multiplier, grad_sample_mode=engine,
    )  # fmt: skip
    model, optimizer, loader, loss = (*made[:2], made[-1], made[2] if engine == "ghost" else loss)
    while True:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
            yield model, lambda: private.get_epsilon(DELTA)


def seconds(kind, data, steps):
    """Return the least processor and wall seconds of a step, by engine, taken in turn."""
    plan = planned(data, steps + 3)
    running = {engine: steps_of(engine, kind, plan, data) for engine in ENGINES}
    found = {engine: [] for engine in ENGINES}
    for order in islice(cycle(permutations(ENGINES)), steps):
        for engine in order:
            begun = time.process_time(), time.perf_counter()
            next(running[engine])
            found[engine].append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
    return {engine: np.min(times[3:], axis=0) for engine, times in found.items()}


def accuracy(engine, kind, data, tested, seeds, steps=100):
    """Return the mean accuracy, its standard error, and epsilon."""
    shares, plan = [], planned(data, steps)
    for seed in range(seeds):
        model, spent = list(islice(steps_of(engine, kind, plan, data, seed), steps))[-1]
        X, y = tested.tensors
        with torch.no_grad():
            shares.append(float((model(X).argmax(1) == y).float().mean()))
    error = statistics.stdev(shares) / seeds**0.5 if seeds > 1 else float("nan")
    return statistics.mean(shares), error, spent()


def a_record(engine, kind, data):
    """Return the kilobytes a record that a step holds at most, of PyTorch's own allocations.

    Batches have half of the records: Opacus draws with a probability of one over a whole number.
    """
    batch = (len(data) + 1) // 2
    running = steps_of(engine, kind, planned(data, 3, batch), data)
    next(running)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        next(running)
    events = [e for e in profiled.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return max(np.cumsum([event.nbytes() for event in events])) / 1024 / batch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    data, tested = digits()
    print("| model | engine | ms a step | ms on the wall | kB a record | accuracy | epsilon |")
    print("|---|---|---|---|---|---|---|")
    for kind in asked.models:
        times = seconds(kind, data, asked.steps)
        size = sum(each.numel() for each in MODELS[kind]().parameters())
        for engine in ENGINES:
            used, wall = 1e3 * times[engine]
            row = f"| {kind}, {size:,} | {engine} | {used:.1f} | {wall:.1f} |"
            row += f" {a_record(engine, kind, data):.1f} |"
            if engine != "hooks":  # which has the law of ghost mode
                mean, error, epsilon = accuracy(engine, kind, data, tested, asked.seeds)
                row += f" {mean:.3f} ({error:.3f}) | {epsilon:.4f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
