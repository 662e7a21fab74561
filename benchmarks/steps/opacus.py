"""One DP-SGD step of Opacus on the task of :mod:`benchmarks.steps.dpsgd`, in microseconds, as JSON.

Runs under an interpreter of its own, which needs no dpcal::

    python3 -m venv opacus-env
    opacus-env/bin/pip install torch==2.13.0 opacus==1.6.0
    opacus-env/bin/python -m benchmarks.steps.opacus --threads 1

``as documented`` is what ``PrivacyEngine.make_private`` sets up: its Poisson data loader and its
optimizer. ``batch in hand`` leaves the loader out: batches of 1,000 are gathered beforehand, and
only forward, backward, clipping, noise and update are timed.
"""

import argparse
import json
import statistics
import time
import warnings

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

N, D, BATCH = 100_000, 100, 1_000


def trainer():
    """Return model, optimizer, loader as Opacus makes them, and the records."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(N, D, generator=generator)
    y = (torch.rand(N, generator=generator) < 0.5).float()
    model = torch.nn.Linear(D, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(X, y), batch_size=BATCH)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=True,
    )
    return model, optimizer, loader, X, y


def step(model, optimizer, X, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(X).squeeze(-1), y)
    loss.backward()
    optimizer.step()


def per_step(run, steps):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) / steps * 1e6


def measure(*, rounds):
    model, optimizer, loader, X, y = trainer()
    batches = [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, N, BATCH)]

    def as_documented():
        for batch in loader:
            step(model, optimizer, *batch)

    def batch_in_hand():
        for batch in batches:
            step(model, optimizer, *batch)

    batch_in_hand()
    return {
        "as documented": statistics.median(per_step(as_documented, len(loader)) for _ in range(3)),
        "batch in hand": statistics.median(
            per_step(batch_in_hand, len(batches)) for _ in range(rounds)
        ),
    }


def main():
    parser = argparse.ArgumentParser(description="Time one DP-SGD step of Opacus.")
    parser.add_argument("--threads", type=int, help="torch threads; torch's default when omitted")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    print(json.dumps(measure(rounds=options.rounds)))


if __name__ == "__main__":
    main()
