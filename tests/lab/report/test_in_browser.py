# SPDX-License-Identifier: Apache-2.0
"""Reports in a real browser: quiet console, no request, every chart drawn, nothing wider than the screen."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser, find_browser
from make_record import write_run
from record_scene import Scene
from scenarios import COLD_READ, RANDOM, SCENARIOS

from sonde.report import write_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (Debian: apt install chromium)"),
]

# Kind, size, and marks of each chart. A mark counts when its box has an extent; the lines of the grid do not count.
CHARTS = """JSON.stringify([...document.querySelectorAll('[data-chart]')].map(chart => {
  const frame = chart.querySelector('.frame, .bar, .heat').getBoundingClientRect();
  const marks = [...chart.querySelectorAll('svg path:not(.grid), .bar i, .heat img')].map(mark => {
    const box = mark.getBoundingClientRect();
    return Math.max(box.width, box.height) > 0.5 && getComputedStyle(mark).visibility === 'visible'
      && (mark.tagName !== 'IMG' || mark.naturalWidth > 1);
  });
  const letters = [...chart.querySelectorAll('.x span, .y span, .hnames span')].filter(
    one => one.getBoundingClientRect().width > 0);
  return {kind: chart.dataset.chart, width: frame.width, height: frame.height,
          marks: marks.filter(seen => seen).length, letters: letters.length};
}))"""
# What sticks out to the right, but for what scrolls on its own.
WIDER = """JSON.stringify([...document.querySelectorAll('body *')].filter(one =>
  one.getBoundingClientRect().right > innerWidth + 0.5 && one.getBoundingClientRect().width > 0 &&
  !one.closest('.scroll')).map(one => one.outerHTML.slice(0, 80)))"""


# Everything that is to be read, but for names on bars.
TEXT_ELEMENTS = [
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "a",
        "td",
        "th",
        "figcaption",
        ".explanation",
        ".detail",
        ".second",
        ".note",
        ".pid",
    ),
    *(
        ".lb:not(.on)",
        ".y span",
        ".x span",
        ".digits.good",
        ".digits.dull",
        ".classification.good",
        ".classification.dull",
    ),
    *(
        ".facts dt",
        ".facts dd",
        ".exact",
        ".rates .x",
        ".rates .v span",
        ".severity",
        ".warning .severity",
        ".position",
    ),
]


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browser() as page:
        yield page


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of each scene, and one of several runs."""
    root = tmp_path_factory.mktemp("reports")
    folders = {name: write_run(root / name.replace(" ", "-"), scene) for name, scene in SCENARIOS.items()}
    pages = {name: write_report([folder], root / f"{folder.name}.html") for name, folder in folders.items()}
    group = [folders[name] for name in ("typical", "slow task", "failed", "one task")]
    pages["group"] = write_report(group, root / "group.html", "Check of /scratch")
    return pages


# Pieces of titles that lines break in two. A line may end at a space, and where the page marks it.
BROKEN_TITLES = """JSON.stringify([...document.querySelectorAll('h1, .runtitle')].flatMap(title => {
  const texts = [...title.childNodes].filter(node => node.nodeType === Node.TEXT_NODE);
  return texts.flatMap(node => [...node.data.matchAll(/\\S+/g)].filter(match => {
    const range = document.createRange();
    range.setStart(node, match.index); range.setEnd(node, match.index + match[0].length);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1;
  }).map(match => match[0]));
}))"""
# Names below charts of members, with their boxes.
MEMBER_NAMES = """JSON.stringify([...document.querySelectorAll(
  '[data-chart=nodes] .x, [data-chart=tasks] .x')].map(axis => [...axis.querySelectorAll('span')].map(span => {
  const box = span.getBoundingClientRect();
  return [span.textContent, box.left, box.right, Math.round(box.top)];
})))"""


def charts(tab: Page) -> list[dict[str, Any]]:
    charts_found: list[dict[str, Any]] = json.loads(tab.evaluate(CHARTS))
    return charts_found


@pytest.mark.parametrize("name", [*SCENARIOS, "group"])
@pytest.mark.parametrize("width", [1280, 360])
def test_report_logs_no_error_fetches_no_file_and_fits_the_screen(
    tab: Page, reports: dict[str, Path], name: str, width: int
) -> None:
    tab.open(reports[name], width=width)
    assert tab.messages == []
    fetched = [
        request for request in tab.requests if not request.startswith("data:image/png;base64,")
    ]  # pictures lie in the page
    assert fetched == [reports[name].resolve().as_uri()]
    for chart in charts(tab):
        assert chart["width"] > 200, chart
        assert chart["height"] >= 10, chart
        assert chart["marks"] > 0, chart
        if chart["kind"] != "split":
            assert chart["letters"] > 0, chart
    assert json.loads(tab.evaluate(WIDER)) == []
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1280, 390])
def test_member_names_are_visible_and_do_not_overlap(tab: Page, reports: dict[str, Path], width: int) -> None:
    tab.open(reports["slow task"], width=width)
    names = json.loads(tab.evaluate(MEMBER_NAMES))
    assert names
    for row in names:
        for name, begin, end, _ in row:
            assert end - begin > 5, name
        for line in {top for *_, top in row}:
            boxes = sorted((begin, end) for _, begin, end, top in row if top == line)
            assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(boxes)), row


def test_title_with_long_path_breaks_between_its_parts(tab: Page, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", SCENARIOS["typical"])
    title = "Write, then read (with data.access.volume=4MiB,phases.write.stop.stonewall=20s,data.random_seed=123456789)"
    tab.open(write_report([folder], tmp_path / "page.html", title), width=390)
    assert tab.evaluate("document.querySelector('h1').textContent") == title
    assert json.loads(tab.evaluate(BROKEN_TITLES)) == []
    assert json.loads(tab.evaluate(WIDER)) == []


def test_a_complete_run_has_all_its_charts(tab: Page, reports: dict[str, Path]) -> None:
    tab.open(reports["slow task"])
    assert [chart["kind"] for chart in charts(tab)] == [
        "timeline",
        "rate",
        "nodes",
        "heat",
        "latency",
        "tasks",
        "latency",
        "latency",
        "split",
    ]


def test_five_thousand_tasks_have_no_element_each(tab: Page, reports: dict[str, Path]) -> None:
    """The time to open a page depends on its number of elements; this page opens as fast as that of a typical run."""
    tab.open(reports["many tasks"])
    assert tab.evaluate("document.getElementsByTagName('*').length") < 5_000
    typical, many_tasks = (reports[name].stat().st_size for name in ("typical", "many tasks"))
    assert many_tasks < typical


@pytest.mark.parametrize("dark", [False, True])
def test_letters_can_be_read_in_both_schemes(tab: Page, reports: dict[str, Path], dark: bool) -> None:
    """Contrast of text against the page, as WCAG 2 computes it: 4.5 for words."""
    tab.open(reports["typical"], dark=dark)
    colors = tab.evaluate(
        f"JSON.stringify({json.dumps(TEXT_ELEMENTS)}.map(s => [s, document.querySelector(s)]).map(([s, one]) =>"
        " [s, one && getComputedStyle(one).color, getComputedStyle(document.body).backgroundColor]))"
    )
    for selector, ink, paper in json.loads(colors):
        assert ink is not None, selector
        assert contrast(ink, paper) >= 4.5, (selector, ink, paper)


def contrast(color: str, other: str) -> float:
    bright = sorted((luminance(color), luminance(other)))
    return (bright[1] + 0.05) / (bright[0] + 0.05)


def luminance(color: str) -> float:
    parts = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_printed_report_keeps_its_charts_and_is_light(tab: Page, reports: dict[str, Path], tmp_path: Path) -> None:
    tab.open(reports["typical"], dark=True)
    pdf = tab.pdf(tmp_path / "report.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert 2 <= pdf.count(b"/Type /Page\n") <= 14
    tab.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert all(chart["marks"] > 0 and chart["width"] > 200 for chart in charts(tab))
    assert tab.evaluate("getComputedStyle(document.querySelector('details.values')).display") == "none"


def test_a_check_is_printed_on_six_pages_with_a_verdict_and_contents(tab: Page, tmp_path: Path) -> None:
    works = [
        replace(work, id=f"phase-{index}")
        for index, work in enumerate([*SCENARIOS["typical"].works, COLD_READ, RANDOM])
    ]
    folders = [write_run(tmp_path / f"part-{index}", Scene(works=works, title=f"Part {index}")) for index in range(5)]
    tab.open(write_report(folders, tmp_path / "check.html", "Check of /scratch"))
    text = tab.evaluate("document.body.innerText").replace("\N{NO-BREAK SPACE}", " ")
    places = [text.index(fragment) for fragment in ("Best from storage", "Of 30 numbers 25 are of storage", "Part 4")]
    assert places == sorted(places), "the verdict, then the contents"
    linked = "[...document.querySelectorAll('nav a')].every(one => document.querySelector(one.getAttribute('href')))"
    assert tab.evaluate(linked) is True
    assert tab.evaluate("document.querySelectorAll('nav a').length") >= 7
    assert tab.pdf(tmp_path / "check.pdf").read_bytes().count(b"/Type /Page\n") <= 6


def test_pointing_at_a_chart_shows_the_value(tab: Page, reports: dict[str, Path]) -> None:
    tab.open(reports["typical"])
    point = json.loads(
        tab.evaluate(
            """(() => { const one = document.querySelectorAll('[data-chart=rate] .over i')[30];
            one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();
            return JSON.stringify([box.x + box.width / 2, box.y + box.height / 2, one.dataset.tip]); })()"""
        )
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=point[0], y=point[1])
    text = tab.evaluate(
        "getComputedStyle(document.querySelectorAll('[data-chart=rate] .over i')[30], '::after').content"
    )
    assert "GB/s" in point[2]
    assert "GB/s" in text
