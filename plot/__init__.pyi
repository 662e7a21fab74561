from dpcal.plot.accuracy import (
    Point as Point,
    added as added,
    along_run as along_run,
    strategies as strategies,
    utility as utility,
)
from dpcal.plot.loaders import samplers as samplers
from dpcal.plot.predicted import crossings as crossings, errors as errors
from dpcal.plot.privacy import (
    STYLES as STYLES,
    Curve as Curve,
    Line as Line,
    RenyiCurve as RenyiCurve,
    TradeOffCurve as TradeOffCurve,
    profile as profile,
    renyi_curve as renyi_curve,
    trade_off_curve as trade_off_curve,
)
from dpcal.plot.style import (
    BLUE as BLUE,
    INK as INK,
    MUTED as MUTED,
    RED as RED,
    check_picture as check_picture,
    note as note,
    png as png,
    save as save,
    svg as svg,
)
