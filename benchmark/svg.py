"""Charts as inline SVG: two kinds, drawn by hand so that a page needs no script, no font and no other file.

A chart is 400 units wide, which is one unit a pixel on a phone. Its colours come from ``STYLE``, which the page must hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 400
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d00", "#56b4e9", "#7f7f7f", "#e69f00")
"""Okabe and Ito's, which the colour-blind tell apart (yellow darkened: it is unreadable on white)."""

STYLE = (
    "svg{display:block;width:100%;height:auto;font:11px system-ui,sans-serif;fill:currentColor}"
    "svg .axis{stroke:currentColor;opacity:.25}"
    "svg .whisker{stroke:currentColor;stroke-width:1.5}"
    "svg .line{fill:none;stroke:var(--c);stroke-width:2}"
    "svg .mark,.chip{fill:var(--c);background:var(--c)}" + "".join(f".s{n}{{--c:{colour}}}" for n, colour in enumerate(COLOURS))
)

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One system's values, one for each tick or group of the chart (None: it has none there), and their intervals if known."""

    name: str
    values: Sequence[float | None]
    intervals: Sequence[Interval | None] = ()


def element(tag: str, *children: str, **attributes: object) -> str:
    """An element around children that are markup already. ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``."""
    pairs = "".join(f' {name.rstrip("_").replace("_", "-")}="{escape(_text(value))}"' for name, value in attributes.items())
    return f"<{tag}{pairs}>{''.join(children)}</{tag}>" if children else f"<{tag}{pairs}/>"


def colour(place: int) -> str:
    """The class of the series at this place; colours come again after eight."""
    return f"s{place % len(COLOURS)}"


def lines(title: str, ticks: Sequence[str], series: Sequence[Series]) -> str:
    """A line a series over evenly spaced ``ticks``. Values are fractions; the axis starts at the tenth below the lowest.

    Later series are dashed, so that lines that coincide are both seen.
    """
    left, right, top, bottom = 38, WIDTH - 14, 10, 190
    known = [value for one in series for value in one.values if value is not None]
    floor = min(math.floor(10 * min(known, default=0) + 1e-9) / 10, 0.9)

    def x(place: int) -> float:
        return left + (right - left) * place / max(len(ticks) - 1, 1)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - floor) / (1 - floor)

    parts = []
    tenths = range(round(10 * floor), 11)
    for tenth in tenths[:: -math.ceil(len(tenths) / 6)]:  # at most six rules, one of them at 100
        parts.append(element("line", x1=left, x2=right, y1=y(tenth / 10), y2=y(tenth / 10), class_="axis"))
        parts.append(_label(f"{10 * tenth}", left - 6, y(tenth / 10) + 4, "end"))
    parts += [_label(tick, x(place), bottom + 18, "middle") for place, tick in enumerate(ticks)]
    for place, one in enumerate(series):
        points = [(x(tick), y(value), value) for tick, value in enumerate(one.values) if value is not None]
        dash = f"{8 - place % 4} {2 * (place % 4)}"
        path = " ".join(f"{_text(across)},{_text(down)}" for across, down, _ in points)
        parts.append(element("polyline", points=path, stroke_dasharray=dash, class_=f"line {colour(place)}"))
        parts += [
            element("circle", _tip(one.name, f"{100 * value:.1f}"), cx=across, cy=down, r=3.5, class_=f"mark {colour(place)}")
            for across, down, value in points
        ]
    return _svg(title, bottom + 26, parts)


def bars(title: str, groups: Sequence[str], series: Sequence[Series], top: float, shown: Callable[[float], str]) -> str:
    """A bar a series in each group, from 0 to ``top``, with the value as ``shown`` and a whisker where an interval is known."""
    left, right = 4, WIDTH - 46

    def x(value: float) -> float:
        return left + (right - left) * value / (top or 1)

    parts = []
    height = 0
    for place, group in enumerate(groups):
        parts.append(_label(group, left, height + 13, "start"))
        height += 18
        for number, one in enumerate(series):
            value = one.values[place]
            if value is None:
                continue
            bar = {"x": left, "y": height, "width": x(value) - left, "height": 11, "class_": f"mark {colour(number)}"}
            parts.append(element("rect", _tip(one.name, shown(value)), **bar))
            interval = one.intervals[place] if one.intervals else None
            if interval:
                middle = height + 5.5
                parts.append(element("line", x1=x(interval[0]), x2=x(interval[1]), y1=middle, y2=middle, class_="whisker"))
            parts.append(_label(shown(value), x(max(value, *(interval or (0,)))) + 5, height + 10, "start"))
            height += 14
        height += 6
    return _svg(title, height, parts)


def _svg(title: str, height: int, parts: Sequence[str]) -> str:
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=title)


def _label(text: str, x: float, y: float, anchor: str) -> str:
    return element("text", escape(text), x=x, y=y, text_anchor=anchor)


def _tip(name: str, value: str) -> str:
    return element("title", escape(f"{name}: {value}"))


def _text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
