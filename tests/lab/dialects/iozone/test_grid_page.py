# SPDX-License-Identifier: Apache-2.0
"""The page of an IOzone grid says what its numbers are about, and shows them as IOzone's users know them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from archive_builders import NOISY, normalize_blanks
from browser import browser, find_browser
from make_record import write_run
from record_scene import MIB, Scene, Work, steady

from sonde.dialects.iozone.grid_page import write_grid_page
from sonde.dialects.iozone.plans import IozoneCell
from sonde.model.record import read_record
from sonde.model.run import RecordedRun, make_recorded_run

FACTS = [("On", "node17 · 64 CPUs"), ("When", "21 November 2026, 20:45 UTC")]
WIDER = """[...document.querySelectorAll("body *")].filter(one =>
  one.getBoundingClientRect().right > innerWidth + 0.5 &&
  one.getBoundingClientRect().width > 0 && !one.closest('.scroll')).length"""


def make_grid(tmp_path: Path, cached: bool) -> tuple[dict[IozoneCell, dict[str, float]], dict[IozoneCell, RecordedRun]]:
    """Two file sizes by two record sizes; reads direct, or from the page cache."""
    rates, runs = {}, {}
    for index, (file, record) in enumerate([(1024, 64), (1024, 256), (4096, 64), (4096, 256)]):
        how: dict[str, Any] = {"cache": "warm", "residency": 1.0} if cached else {"cache": "direct", "direct": True}
        read = Work(
            "read",
            "read",
            steady(1e8 * (index + 1)),
            2.0,
            record * 1024,
            fsync=0,
            findings=(NOISY,) * (index == 0),
            **how,
        )
        folder = write_run(tmp_path / f"cell-{index}", Scene(works=[Work("write", seconds=2.0), read], tasks=1))
        cell = IozoneCell(file, record)
        runs[cell] = make_recorded_run(read_record(folder / "record.ndjson"), folder)
        rates[cell] = {"write": 2**30 / 4 * (index + 1), "read": MIB * 100.0 * (index + 1)}
    return rates, runs


def write_page(tmp_path: Path, cached: bool) -> str:
    rates, runs = make_grid(tmp_path, cached)
    out = write_grid_page(rates, runs, "iozone -a", FACTS, tmp_path / "page.html")
    assert out is not None
    return out.read_text(encoding="utf-8")


def test_page_begins_with_count_of_non_storage_numbers(tmp_path: Path) -> None:
    text = normalize_blanks(write_page(tmp_path, cached=True))
    warning = text.index("4 of 8 numbers are not of storage: 4 from or into the page cache.")
    assert warning < text.index("All tests")
    assert "Other processes used 2.0 cores of this node during the phase. (1 number.)" in text
    assert "not of storage:" not in normalize_blanks(write_page(tmp_path / "direct", cached=False))


def test_grid_page_has_machine_date_command_and_classic_table(tmp_path: Path) -> None:
    html = write_page(tmp_path, cached=True)
    text = normalize_blanks(html)
    for expected_text in ("node17 · 64 CPUs", "21 November 2026", "iozone -a", "kB reclen write read"):
        assert expected_text in text
    rows = re.findall(r"<tr><td class=\"n\">(.*?)</tr>", html)
    cells = [re.sub(r"<[^>]*>", " ", row).split() for row in rows]
    assert cells[0] == ["1024", "64", "262,144", "102,400°"], "KiB/s, and a sign where it is not of storage"
    assert [row[:2] for row in cells] == [["1024", "64"], ["1024", "256"], ["4096", "64"], ["4096", "256"]]


def test_surface_cells_are_darker_for_higher_rates(tmp_path: Path) -> None:
    html = write_page(tmp_path, cached=False)
    surface = html[html.index("<h2>Write</h2>") : html.index("<h2>Read</h2>")]
    assert re.findall(r'<td class="(\w+)" title', surface) == ["up2", "up3", "up4", "up4"]
    assert re.findall(r'scope="(?:col|row)">([^<]*)', surface) == [
        "64 KiB",
        "256 KiB",
        "1 MiB",
        "4 MiB",
    ]


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (Debian: apt install chromium)")
def test_the_widest_automatic_grid_is_not_cut_on_a_desktop(tmp_path: Path) -> None:
    """IOzone's own range of records, 4 KiB to 16 MiB: 13 columns."""
    rates, runs = make_grid(tmp_path, cached=True)
    (run, *_), (rate, *_) = runs.values(), rates.values()
    cells = [IozoneCell(16384, 4 << power) for power in range(13)]
    out = tmp_path / "page.html"
    write_grid_page(dict.fromkeys(cells, rate), dict.fromkeys(cells, run), "iozone -a", FACTS, out)
    with browser() as tab:
        tab.open(out, width=1280)
        assert tab.evaluate(
            "[...document.querySelectorAll('.scroll')].every(one => one.scrollWidth <= one.clientWidth)"
        )


@pytest.mark.browser
@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed (Debian: apt install chromium)")
@pytest.mark.parametrize("window_width", [1280, 390])
def test_grid_page_has_no_overflow_and_no_overlapping_text(tmp_path: Path, window_width: int) -> None:
    write_page(tmp_path, cached=True)
    overlaps = """(() => { const boxes = [...document.querySelectorAll('.surface th, .surface td')].map(one =>
      one.getBoundingClientRect()); return boxes.some((a, i) => boxes.some((b, j) => i < j && a.left < b.right - 1 &&
      b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)); })()"""
    with browser() as tab:
        tab.open(tmp_path / "page.html", width=window_width)
        assert tab.evaluate(WIDER) == 0
        assert tab.evaluate(overlaps) is False
