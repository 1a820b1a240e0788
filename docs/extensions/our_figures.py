# SPDX-License-Identifier: Apache-2.0
"""Draws our numbers beside published ones, from the small records in ``docs/published/ours``.

``<!-- ours: EXPERIMENT -->`` on a page of its own line (and ``<!-- simulated: EXPERIMENT -->`` from
``docs/published/simulated``) becomes the figures of that experiment as SVG, its tables, and what came of its claims,
after a sentence on the machine. The records are written by ``tools/keep_figures.py``, with the values that the
documents print for the same figures, which the experiments have: they are drawn to the left.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # tests import this file without Sphinx
    from sphinx.application import Sphinx

KEPT = Path(__file__).resolve().parents[1] / "published" / "ours"
SIMULATED = KEPT.parent / "simulated"
PLACE = re.compile(r"^<!-- (ours|simulated): ([\w.-]+) -->$", re.MULTILINE)
WIDTH, HEIGHT = 340, 210
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 22, 34
LONGEST = 22  # characters of a name below a chart
TONES = ("#0b62a8", "#c2500a", "#3a7d44", "#8a4fa3", "#7a6a00", "#666666")
DASHES = ("", "5 3", "2 2", "8 3 2 3", "1 3", "10 4")
UNITS = {"B/s": ("GB/s", 1e9), "op/s": ("k op/s", 1e3), "s": ("s", 1.0), "1": ("", 1.0)}
Chart = Mapping[str, Any]


def amount(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


class Panel:
    """One chart as SVG that stands alone: frame, values up the side from 0, and words below. Values that lie further
    apart than a factor of 30 get a logarithmic side instead."""

    def __init__(self, title: str, unit: str, values: Sequence[float]) -> None:
        self.unit, self.scale = UNITS.get(unit, (unit, 1.0))
        above = [value / self.scale for value in values if value > 0] or [1.0]
        most, least = max(above), min(above)
        self.log = most / least > 30
        if self.log:
            self.least, self.most = 10.0 ** math.floor(math.log10(least)), 10.0 ** math.ceil(math.log10(most))
            ticks = [self.least * 10.0**at for at in range(round(math.log10(self.most / self.least)) + 1)]
        else:
            raw = most / 4
            unit_of = 10.0 ** math.floor(math.log10(raw))
            step = next(one * unit_of for one in (1, 2, 2.5, 5, 10) if one * unit_of >= raw)
            self.least, self.most = 0.0, step * math.ceil(most / step)
            ticks = [step * at for at in range(round(self.most / step) + 1)]
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
            f'aria-label="{html.escape(title, quote=True)}" font-family="sans-serif" font-size="10">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="14" font-size="11" fill="#222">{html.escape(title)}</text>',
        ]
        for tick in ticks:
            y = self.y(tick * self.scale)
            self.parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            self.words(LEFT - 4, y + 3, amount(tick), "end")
        self.words(LEFT - 4, TOP - 10, self.unit, "end")

    def y(self, value: float) -> float:
        told = value / self.scale
        if self.log:
            share = math.log(max(told, self.least) / self.least) / math.log(self.most / self.least)
        else:
            share = told / self.most
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def words(self, x: float, y: float, text: str, anchor: str = "middle", tone: str = "#333") -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{tone}">{html.escape(text)}</text>'
        )

    def path(self, data: str, tone: str, dash: str = "", width: float = 1.8) -> None:
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="{data}" fill="none" stroke="{tone}" stroke-width="{width}"{dashed}/>')

    def keys(self, names: Sequence[str]) -> None:
        if len(names) < 2:
            return
        x = float(LEFT)
        for at, name in enumerate(names):
            self.path(f"M{x:.0f} {HEIGHT - 7}h14", TONES[at % 6], DASHES[at % 6])
            self.words(x + 17, HEIGHT - 4, name, "start")
            x += 26 + 5.6 * len(name)

    def render(self) -> str:
        return "".join([*self.parts, "</svg>"])


def numbered(places: Sequence[str]) -> bool:
    """Whether names of places are too long to stand below a chart, on two rows and whole: their numbers do then."""
    most = min(LONGEST, 2 * (WIDTH - LEFT - RIGHT) / (5.4 * max(1, len(places))))
    return len(places) > 1 and any(len(name) >= most for name in places)


def places_words(panel: Panel, places: Sequence[str], at: Sequence[float]) -> None:
    if numbered(places) and len(places) <= 7:
        places = [str(number) for number in range(1, len(places) + 1)]
    every = max(1, -(-len(places) // 7))
    wide = any(5.4 * len(name) * len(places) > WIDTH - LEFT for name in places) and every == 1
    for number, (name, x) in enumerate(zip(places, at, strict=True)):
        if number % every == 0:
            lower = 9 if wide and number % 2 else 0  # long names stand on two rows
            panel.words(x, HEIGHT - BOTTOM + 12 + lower, name if len(name) < LONGEST else name[: LONGEST - 2] + "…")


def of_places(title: str, kind: str, chart: Chart) -> str:
    """Curves or bars over places."""
    known = [one for line in chart["series"] for one in line["values"] if one]
    panel = Panel(title, chart["unit"], [v for one in known for v in one if v is not None])
    places, lines = chart["places"], chart["series"]
    if len(places) == 1:
        kind = "bars"
    width = (WIDTH - LEFT - RIGHT) / len(places)
    middle = [LEFT + width * (at + 0.5) for at in range(len(places))]
    for at, line in enumerate(lines):
        tone, dash, path = TONES[at % 6], DASHES[at % 6], ""
        for x, one in zip(middle, line["values"], strict=True):
            if not one:
                continue
            value, low, high = one
            if kind == "bars":
                each = 0.8 * width / len(lines)
                x = x - 0.4 * width + each * (at + 0.5)
                y = panel.y(value)
                panel.parts.append(
                    f'<rect x="{x - each * 0.45:.1f}" y="{y:.1f}" width="{each * 0.9:.1f}" '
                    f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{tone}" fill-opacity="0.75"/>'
                )
            else:
                path += f"{'L' if path else 'M'}{x:.1f} {panel.y(value):.1f}"
            if low is not None and high is not None:
                panel.path(f"M{x:.1f} {panel.y(low):.1f}V{panel.y(high):.1f}", tone if path else "#222", width=1)
        if path.count("L") or not path:
            panel.path(path, tone, dash)
        else:  # one number alone is a dot
            x, y = (float(one) for one in path[1:].split())
            panel.path(f"M{x - 2.5:.1f} {y:.1f}h5", tone, width=5)
    places_words(panel, places, middle)
    panel.keys([line["name"] for line in lines])
    return panel.render()


def of_time(title: str, chart: Chart) -> str:
    """A rate over time."""
    panel = Panel(title, chart["unit"], [max(line["values"], default=0) for line in chart["series"]])
    end = max(line["step_s"] * len(line["values"]) for line in chart["series"])
    across = (WIDTH - LEFT - RIGHT) / end
    for at, line in enumerate(chart["series"]):
        points = [
            f"{LEFT + across * line['step_s'] * (n + 0.5):.1f} {panel.y(value):.1f}"
            for n, value in enumerate(line["values"])
        ]
        panel.path("M" + "L".join(points), TONES[at % 6], DASHES[at % 6])
    for part in (0.0, 0.5, 1.0):
        panel.words(
            LEFT + across * end * part, HEIGHT - BOTTOM + 13, f"{amount(end * part)} s", "end" if part else "start"
        )
    panel.keys([line["name"] for line in chart["series"]])
    return panel.render()


def pictures(figure: Mapping[str, Any]) -> Iterator[str]:
    """Published charts, where their numbers are printed, and ours after them."""
    kind = figure["kind"]
    for chart in figure.get("published", [])[:4]:
        title = f"published: {chart['title']}" if chart["title"] else "published"
        yield of_places(title, kind, chart)
    for chart in figure["charts"][:4]:
        title = f"ours: {chart['title']}" if chart["title"] else "ours"
        yield of_time(title, chart) if kind == "over_time" else of_places(title, kind, chart)


def cell(found: Sequence[Any] | None) -> str:
    if found is None:
        return "–"
    value, low, high, unit = found
    told, scale = UNITS.get(unit, (unit, 1.0))
    if unit == "s" and 0 < value < 0.1:
        told, scale = ("ms", 1e-3) if value >= 1e-4 else ("µs", 1e-6)
    between = "" if low is None or high is None else f" [{amount(low / scale)}, {amount(high / scale)}]"
    return f"{amount(value / scale)}{between} {told}".strip()


def beside(printed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table of the published numbers with ours; of another machine, so the ratio says nothing by itself."""
    yield "| in the document | source | published | ours | ours over theirs |"
    yield "|---|---|---|---|---|"
    for one in printed:
        what = f"`{one['of']}`" + (f": {one['quote']}" if one["quote"] else "")
        ratio = "–" if one["ratio"] is None else amount(one["ratio"])
        yield f"| {what} | {one['source']} | {one['published']} | {cell(one['ours'])} | {ratio} |"
    yield ""


def section(kept: Mapping[str, Any]) -> Iterator[str]:
    """Everything of one record, as Markdown with pictures."""
    conditions = f" {kept['conditions'][0].upper()}{kept['conditions'][1:]}." if kept["conditions"] else ""
    if "key" in kept:
        yield f"`{kept['experiment']}`, profile {kept['profile']}, {kept['runs']} simulated runs: {kept['machine']}."
    else:
        day = f"{kept['date'][:4]}-{kept['date'][4:6]}-{kept['date'][6:]}"
        runs = f"{kept['runs']} runs on {day}"
        yield f"Ours: `{kept['experiment']}`, profile {kept['profile']}, {runs}; {kept['machine']}."
    yield conditions
    yield ""
    yield from (f"* Not run, {where}: {why}" for where, why in list(kept.get("refusals", {}).items())[:6])
    yield ""
    for figure in kept["figures"]:
        drawn = list(pictures(figure))
        more = "" if figure.get("published") else " The document prints no numbers for it."
        names: Sequence[str] = next((one["places"] for one in figure["charts"] if numbered(one.get("places", ()))), ())
        if 0 < len(names) <= 7:
            more += " Below the charts: " + "; ".join(f"{at} {name}" for at, name in enumerate(names, 1)) + "."
        caption = html.escape(f"{figure['title'] or figure['id']}; in the document: {figure['source']}.{more}")
        yield f"<figure>{''.join(drawn)}<figcaption>{caption}</figcaption></figure>"
        yield ""
    for table in kept["tables"]:
        yield f"| {' | '.join([*table['rows'], *table['metrics']])} |"
        yield "|" + "---|" * (len(table["rows"]) + len(table["metrics"]))
        for names, found in table["lines"]:
            yield f"| {' | '.join([*names, *(cell(found.get(metric)) for metric in table['metrics'])])} |"
        yield ""
    if kept.get("published"):
        yield from beside(kept["published"])
    yield from (f"* {one}" for one in kept["effects"])
    yield ""
    yield "| claim | outcome here | found |"
    yield "|---|---|---|"
    for one in kept["claims"]:
        yield f"| {one['id']} | {one['verdict']} | {one['found'].replace('|', chr(92) + '|')} |"
    yield ""


def ours(name: str, folder: Path = KEPT) -> str:
    """The Markdown of one experiment. Raises FileNotFoundError."""
    kept = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return "\n".join(section(kept))


def expand(app: Sphinx, _name: str, source: list[str]) -> None:
    """Replaces every asking line of a page."""

    def drawn(found: re.Match[str]) -> str:
        folder = KEPT if found[1] == "ours" else SIMULATED
        app.env.note_dependency(str(folder / f"{found[2]}.json"))
        return ours(found[2], folder)

    source[0] = PLACE.sub(drawn, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", expand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
