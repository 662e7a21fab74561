from dpcal.calibrate.papers import schedules as schedules
from dpcal.calibrate.papers.report import (
    FORMATS as FORMATS,
    Audit as Audit,
    Finding as Finding,
    audit as audit,
)
