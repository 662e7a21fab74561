from dpcal.plot.privacy import (
    STYLES as STYLES,
    Curve as Curve,
    Line as Line,
    profile as profile,
    trade_off_curve as trade_off_curve,
)
from dpcal.plot.scores import (
    added as added,
    along_run as along_run,
    crossings as crossings,
    errors as errors,
    samplers as samplers,
)
from dpcal.plot.style import (
    BLUE as BLUE,
    INK as INK,
    MUTED as MUTED,
    RED as RED,
    check_picture as check_picture,
    figure_and_axes as figure_and_axes,
    legend as legend,
    note as note,
    plain_ticks as plain_ticks,
    save as save,
    svg as svg,
)
