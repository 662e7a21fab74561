"""Property tests repeat their examples, and a worker keeps to one processor.

Linear algebra on several threads would wait for processors that other workers use: small products
then take fifty times as long.
"""

import os

from hypothesis import settings

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
