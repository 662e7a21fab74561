"""One HTML page of scores: tables of verdicts, by accountant and by family, and a picture.

The picture has a point for each answer at or above the truth: processor time to the right, the
excess over the bracket upwards. Answers inside the bracket are on the lowest line.
"""

from __future__ import annotations

import html
import math
from typing import Any

from benchmarks.corpus.scoring import VERDICTS

Score = dict[str, Any]

_COLORS = ("#1b6ca8", "#d1495b", "#edae49", "#00798c", "#6a4c93", "#66a182", "#8d6b48", "#2e4057",
           "#c05299", "#7a7a7a", "#3d9970")  # fmt: skip
# Powers of ten on either axis, and the size of the picture.
_SECONDS, _EXCESS = (-4, 1), (-10, 3)
_WIDTH, _HEIGHT, _MARGIN = 760, 420, 64

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0 2rem; }
td, th { padding: .2rem .6rem; border-bottom: 1px solid #ddd; }
td, th { text-align: right; white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
.below { color: #b00020; font-weight: bold; }
body { padding: 0 1rem; }
.wide { overflow-x: auto; }
svg { width: 100%; min-width: 40rem; max-width: 60rem; height: auto; }
"""


def page(scores: list[Score]) -> str:
    """Return the page of the scores of several accountants."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>Scores of accountants</title>",
        f"<style>{_STYLE}</style><h1>Scores of accountants</h1>",
        "<p>Verdicts on rows with proved brackets. <span class='below'>below</span>: an epsilon or "
        "a delta that is too small. Excess: over the bracket's upper end, relative.</p>",
        _summary(scores),
        "<h2>Tightness against time</h2>",
        f"<div class='wide'>{picture(scores)}</div>",
        "<h2>By family of questions</h2><p>inside / above / below / all others</p>",
        _families(scores),
        "</html>",
    ]
    return "\n".join(parts)


def _row(cells: list[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _summary(scores: list[Score]) -> str:
    head = [
        "accountant",
        "version",
        "rows",
        *VERDICTS,
        "median excess",
        "worst shortfall",
        "median s",
    ]
    lines = [_row(head, "th")]
    for each in scores:
        totals = each["totals"]
        counts = [
            f"<span class='below'>{totals[name]}</span>"
            if name == "below" and totals[name]
            else str(totals[name])
            for name in VERDICTS
        ]
        numbers = [totals[name] for name in ("median_excess", "worst_shortfall", "median_seconds")]
        title = html.escape(each["accountant"])
        lines.append(
            _row(
                [
                    title,
                    html.escape(each["version"]),
                    str(each["rows"]),
                    *counts,
                    *map(_shown, numbers),
                ]
            )
        )
    return f"<div class='wide'><table>{''.join(lines)}</table></div>"


def _families(scores: list[Score]) -> str:
    names = list(dict.fromkeys(name for each in scores for name in each["families"]))
    lines = [_row(["family", *(html.escape(each["accountant"]) for each in scores)], "th")]
    for name in names:
        cells = []
        for each in scores:
            totals = each["families"].get(name)
            if totals is None:
                cells.append("")
                continue
            others = sum(totals[key] for key in VERDICTS if key not in ("inside", "above", "below"))
            text = f"{totals['inside']} / {totals['above']} / {totals['below']} / {others}"
            cells.append(f"<span class='below'>{text}</span>" if totals["below"] else text)
        lines.append(_row([name, *cells]))
    return f"<div class='wide'><table>{''.join(lines)}</table></div>"


def _place(value: float, ends: tuple[int, int], length: int) -> float:
    power = math.log10(value) if value > 0 else ends[0]
    share = (min(max(power, ends[0]), ends[1]) - ends[0]) / (ends[1] - ends[0])
    return share * (length - 2 * _MARGIN)


def picture(scores: list[Score]) -> str:
    """Return the picture as SVG."""
    lines = []
    for power in range(_SECONDS[0], _SECONDS[1] + 1):
        x = _MARGIN + _place(10.0**power, _SECONDS, _WIDTH)
        lines.append(f"<text x='{x:.0f}' y='{_HEIGHT - 42}' text-anchor='middle'>1e{power}</text>")
    for power in range(_EXCESS[0], _EXCESS[1] + 1, 2):
        y = _HEIGHT - _MARGIN - _place(10.0**power, _EXCESS, _HEIGHT)
        label = "inside" if power == _EXCESS[0] else f"1e{power}"
        lines.append(f"<text x='{_MARGIN - 8}' y='{y + 4:.0f}' text-anchor='end'>{label}</text>")
        lines.append(f"<path d='M{_MARGIN} {y:.0f}H{_WIDTH - _MARGIN}' stroke='#e5e5e5'/>")
    lines.append(
        f"<text x='{_WIDTH / 2}' y='{_HEIGHT - 18}' text-anchor='middle'>"
        "processor time of an answer (seconds)</text>"
    )
    lines.append(
        f"<text transform='translate(14 {_HEIGHT / 2}) rotate(-90)' text-anchor='middle'>"
        "excess over the bracket (share of its upper end)</text>"
    )
    for index, each in enumerate(scores):
        color = _COLORS[index % len(_COLORS)]
        dots = [
            f"<circle cx='{_MARGIN + _place(item['seconds'], _SECONDS, _WIDTH):.1f}' "
            f"cy='{_HEIGHT - _MARGIN - _place(item['by'], _EXCESS, _HEIGHT):.1f}' r='2.2'/>"
            for item in each["answers"]
            if item["verdict"] in ("inside", "above")
        ]
        lines.append(f"<g fill='{color}' fill-opacity='.45'>{''.join(dots)}</g>")
        y = 20 + 18 * index
        lines.append(f"<circle cx='{_WIDTH}' cy='{y - 4}' r='5' fill='{color}'/>")
        lines.append(f"<text x='{_WIDTH + 10}' y='{y}'>{html.escape(each['accountant'])}</text>")
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH + 180} {_HEIGHT}' "
        f"font-size='12' font-family='system-ui, sans-serif'>{''.join(lines)}</svg>"
    )


# -- tables for docs/corpus.md


def markdown(scores: list[Score]) -> str:
    """Return the tables of the page as Markdown, without families that no peer answers."""
    head = ["accountant", "version", "rows", *VERDICTS, "median excess", "median time"]
    lines = [head, ["---"] * len(head)]
    for each in scores:
        totals = each["totals"]
        excess, seconds = totals["median_excess"], totals["median_seconds"]
        lines.append(
            [
                each["accountant"],
                each["version"],
                f"{each['rows']:,}",
                *(_bold(totals[name], name) for name in VERDICTS),
                "" if excess is None else f"{excess:.1e}",
                "" if seconds is None else f"{1000 * seconds:.0f} ms",
            ]
        )
    names = list(dict.fromkeys(name for each in scores for name in each["families"]))
    second = [["family", *(each["accountant"] for each in scores)], ["---"] * (len(scores) + 1)]
    for name in names:
        cells = [_cell(each["families"].get(name)) for each in scores]
        peers = [
            cell for each, cell in zip(scores, cells, strict=True) if each["package"] != "dpcal"
        ]
        if any(peers):
            second.append([name, *cells])
    return "\n\n".join(
        "\n".join("| " + " | ".join(cells) + " |" for cells in table) for table in (lines, second)
    )


def _bold(count: int, name: str) -> str:
    return f"**{count}**" if name == "below" and count else str(count)


def _cell(totals: dict[str, Any] | None) -> str:
    """Return numbers inside, above and below; nothing where no answer is a number."""
    if totals is None or not any(totals[name] for name in VERDICTS[:4]):
        return ""
    return " / ".join(_bold(totals[name], name) for name in ("inside", "above", "below"))
