"""Calibration of correlated noise to a target, and comparison of its strategies."""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.calibrate.correlated.calibration import (
        CalibratedNoise as CalibratedNoise,
        Calibration as Calibration,
        noise_multiplier as noise_multiplier,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
