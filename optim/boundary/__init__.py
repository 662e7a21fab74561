"""The privacy boundary: an answer is admitted, recorded, summed over a batch, and made noisy."""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.optim.boundary.sealed import LastIterate as LastIterate, Pass as Pass
    from dpcal.optim.boundary.store import stored as stored
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
