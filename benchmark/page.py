"""Standings as one HTML page that needs nothing else: style, charts and manifests are in it; no script, no link."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmark.charts import charts
from benchmark.sets_data import SETS
from benchmark.standings import Standing, columns, label
from benchmark.svg import STYLE, colour, element

TITLES: Mapping[str, str] = {"longmemeval": "LongMemEval", "locomo": "LoCoMo", "chinese": "Chinese", "code": "Code"}

NOTES: Mapping[str, str] = {
    "longmemeval": "Sessions are ranked. ndcg@10 is the textbook's, ndcg_lme@10 the data set's own; the two can't be compared. "
    "Peers publish ten sessions, so beside them MRR counts the first ten only.",
    "locomo": "Turns are ranked, unless a figure says session. containment is a proxy of what could be answered: "
    "a short gold answer stands in the returned text.",
    **dict.fromkeys(SETS, "Messages are ranked. The set is small and was written for this bench."),
}

COSTS: Mapping[str, tuple[str, float]] = {
    "index_bytes": ("index, MiB", 2**20),
    "database_bytes": ("database, MiB", 2**20),
    "embedded_texts": ("texts embedded", 1),
    "embedded_tokens": ("tokens embedded, estimated: bytes / 4", 1),
}
"""Of ``performance``: heading, and what the number is divided by."""

PAGE_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:0 auto;padding:1rem}"
    "h1,h2,h3{line-height:1.2}h2{margin-top:2rem}small{opacity:.7;font-weight:400}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3rem .8rem .3rem 0;text-align:right;vertical-align:top;white-space:nowrap;border-bottom:1px solid #8884}"
    "th:first-child,td:first-child{text-align:left}td small,figcaption small{display:block}"
    ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:1.5rem 2rem}"
    "figure{margin:0}figcaption{margin-bottom:.4rem;font-weight:600}"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:1.2rem 0;list-style:none}"
    ".chip{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em}"
    "details{margin:.6rem 0}pre{overflow-x:auto;font-size:12px;padding:.6rem;border:1px solid #8884}"
)


def heading(found: Sequence[Standing]) -> str:
    """The benchmark, the data file where a result of ours names it, and how many questions are compared."""
    data = next((one.system.result.manifest["data"] for one in found if one.system.result), None)
    file = f"{data['file']} (SHA-256 {data['sha256'][:12]}), " if data else ""
    return f"{TITLES[found[0].benchmark]}: {file}{found[0].n_all} questions"


def page(groups: Sequence[Sequence[Standing]]) -> str:
    """A whole HTML document, which is well-formed XML too; a group is the standings of one benchmark."""
    title = "Memory retrieval, measured"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", PAGE_STYLE + STYLE),
    )
    body = element("body", element("h1", title), *map(_section, groups))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _section(found: Sequence[Standing]) -> str:
    return element(
        "section",
        element("h2", escape(heading(found))),
        element("p", _about(found[0])),
        _scores(found),
        _legend(found),
        element("div", *charts(found), class_="grid"),
        *_runs(found),
    )


def _about(one: Standing) -> str:
    """How many questions stands first, because everything hangs on it."""
    unscored = f" ({one.n_all} with the unscored ones: the last line of a row)" if one.n_all > one.n else ""
    return (
        f"{one.n} questions{unscored}, the same for every system. Per cent, higher is better; in brackets the 95% "
        f"interval over the questions. {NOTES[one.benchmark]}"
    )


def _scores(found: Sequence[Standing]) -> str:
    names = columns(found)
    rows = [[escape(one.name), _count(one), *(_score(one, name) for name in names)] for one in found]
    return _table(["", "n", *map(label, names)], rows)


def _count(one: Standing) -> str:
    return _cell(f"{one.n}{element('small', '&#160;')}", one, str(one.n_all))  # nothing stands beside the interval


def _score(one: Standing, metric: str) -> str:
    if metric not in one.means:
        return "–"
    low, high = one.intervals[metric]
    interval = element("small", f"[{100 * low:.1f}, {100 * high:.1f}]")
    return _cell(f"{100 * one.means[metric]:.1f}{interval}", one, f"{100 * one.all_means[metric]:.1f}")


def _cell(scored: str, one: Standing, everything: str) -> str:
    """A figure, and below it the one with the unscored questions, where there are any."""
    return scored + (element("small", everything) if one.n_all > one.n else "")


def _legend(found: Sequence[Standing]) -> str:
    chips = (element("span", "", class_=f"chip {colour(place)}") + escape(one.name) for place, one in enumerate(found))
    return element("ul", *(element("li", chip) for chip in chips), class_="legend")


def _runs(found: Sequence[Standing]) -> Iterator[str]:
    """What our runs cost, and the manifest of each: what it takes to run it again."""
    runs = [(one.name, one.system.result) for one in found if one.system.result]
    if not runs:
        return
    yield element("h3", "What it took")
    costs = [[escape(name), *(_cost(result.performance, key) for key in COSTS)] for name, result in runs]
    yield _table(["", *(heading for heading, _ in COSTS.values())], costs)
    yield element("h3", "How it was run")
    for name, result in runs:
        manifest = json.dumps(result.manifest, indent=2, ensure_ascii=False)
        yield element("details", element("summary", escape(name)), element("pre", escape(manifest)))


def _cost(performance: Mapping[str, float | None], key: str) -> str:
    value = performance.get(key)
    return "–" if value is None else f"{value / COSTS[key][1]:,.0f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are markup; the frame scrolls sideways where the screen is narrow."""
    head = element("tr", *(element("th", escape(text)) for text in header))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("div", element("table", head, *body), class_="scroll")
