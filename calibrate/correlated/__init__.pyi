from dpcal.calibrate.correlated.calibration import (
    CONFIRMATIONS as CONFIRMATIONS,
    CalibratedNoise as CalibratedNoise,
    Calibration as Calibration,
    noise_multiplier as noise_multiplier,
)
