from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark.svg import COLOURS, STYLE, WIDTH, Series, bars, colour, element, lines

values = st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3)


def drawn(chart: str, tag: str) -> list[dict[str, str]]:
    """The attributes of every element with this tag, in order."""
    return [found.attrib for found in ElementTree.fromstring(chart).iter(tag)]


def texts(chart: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(chart).iter("text")]


def test_an_element_escapes_its_attributes_and_takes_children_as_markup() -> None:
    assert element("a", "<b/>", class_='x"<', stroke_width=1.25) == '<a class="x&quot;&lt;" stroke-width="1.2"><b/></a>'
    assert element("br") == "<br/>"


def test_a_line_runs_from_the_left_to_the_right_and_higher_is_up() -> None:
    chart = lines("t", ["1", "3", "5"], [Series("a", [0.0, 0.5, 1.0])])
    points = [(float(circle["cx"]), float(circle["cy"])) for circle in drawn(chart, "circle")]
    across, down = zip(*points, strict=True)
    assert across[1] - across[0] == across[2] - across[1] > 0
    assert down[0] - down[1] == down[1] - down[2] > 0


def test_the_axis_starts_at_the_tenth_below_the_lowest_value() -> None:
    chart = lines("t", ["1", "3"], [Series("a", [0.83, 1.0]), Series("b", [0.95, None])])
    assert texts(chart) == ["100", "90", "80", "1", "3"]


def test_a_long_axis_has_fewer_rules_and_keeps_the_one_at_a_hundred() -> None:
    assert texts(lines("t", ["1"], [Series("a", [0.15])])) == ["100", "80", "60", "40", "20", "1"]


def test_a_system_without_a_value_has_no_point_there() -> None:
    assert len(drawn(lines("t", ["1", "3"], [Series("a", [0.5, None])]), "circle")) == 1


def test_bars_are_as_long_as_their_values() -> None:
    chart = bars("t", ["x", "y"], [Series("a", [0.5, 1.0]), Series("b", [0.25, None])], 1, str)
    lengths = [float(bar["width"]) for bar in drawn(chart, "rect")]
    assert lengths == [0.5 * lengths[2], 0.25 * lengths[2], lengths[2]]
    assert texts(chart) == ["x", "0.5", "0.25", "y", "1.0"]


def test_a_whisker_spans_its_interval() -> None:
    chart = bars("t", ["x"], [Series("a", [0.5], [(0.25, 1.0)])], 1, str)
    (whisker,) = drawn(chart, "line")
    (bar,) = drawn(chart, "rect")
    left, unit = float(bar["x"]), float(bar["width"]) / 0.5
    assert [float(whisker["x1"]), float(whisker["x2"])] == pytest.approx([left + 0.25 * unit, left + 1.0 * unit])


@given(st.lists(values, max_size=10), st.text('a<&>"日', max_size=9))
def test_charts_are_well_formed_and_inside_their_frame(series: list[list[float | None]], name: str) -> None:
    made = [Series(name, one) for one in series]
    for chart in (lines(name, [name] * 3, made), bars(name, [name] * 3, made, 1, str)):
        (frame,) = drawn(chart, "svg")
        width, height = (float(number) for number in frame["viewBox"].split()[2:])
        assert width == WIDTH
        assert all(0 <= float(circle["cx"]) <= width and 0 <= float(circle["cy"]) <= height for circle in drawn(chart, "circle"))
        assert all(float(bar["x"]) + float(bar["width"]) <= width for bar in drawn(chart, "rect"))


def test_nothing_to_draw_is_no_error() -> None:
    assert drawn(bars("t", ["x"], [Series("a", [0.0])], 0, str), "rect")[0]["width"] == "0"


def test_every_colour_is_in_the_style_and_comes_again_after_the_last() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    assert re.findall(r"\.(s\d)\{--c:", STYLE) == [colour(place) for place in range(len(COLOURS))]
    assert colour(len(COLOURS)) == colour(0)
