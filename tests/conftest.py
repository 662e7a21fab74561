"""Property tests repeat their examples, and a worker keeps to one processor.

Linear algebra on several threads would wait for processors that other workers use: small products
then take fifty times as long.
"""

import os

import pytest
from _installed import installed, wheel
from hypothesis import settings

__all__ = ["installed", "replays", "wheel"]

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def replays(request):
    """Let tests run the same seed, plan and records again; what is tested is mostly that."""
    # Imported here, for numpy must not be imported before the number of its threads is set.
    from dpcal.optim import replaying

    if "same_noise_is_refused" in request.node.name or "boundary.seeds" in request.node.name:
        yield
        return
    with replaying():
        yield
