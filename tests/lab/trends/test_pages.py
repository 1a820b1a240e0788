# SPDX-License-Identifier: Apache-2.0
"""The pages of compare and trend: complete in themselves, and they say what is known to be true."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

AddRun = Callable[..., Path]
Sonde = Callable[..., Any]
HOSTILE = "</style><script>alert(1)</script>\u202e"


def curve(random: np.random.Generator, slow: bool) -> list[float]:
    u = (np.arange(80) + 0.5) / 80
    shape = np.exp(-2 * u) if slow else np.ones(80)
    values: list[float] = (1e9 * shape * np.exp(random.normal(0, 0.1, 80))).tolist()
    return values


@pytest.fixture
def declining_file_system(add_run: AddRun) -> None:
    """Ten good days and ten on which reads of one of two file systems decline; its name would break a careless page."""
    random = np.random.default_rng(1)
    for day in range(20):
        for storage in ("lustre:fs1 /a", HOSTILE):
            slow = day >= 10 and storage == HOSTILE
            rates = {(op, op): float(np.exp(random.normal(0, 0.03))) * 1e9 for op in ("read", "write")}
            rates[("read", "read")] *= 0.4 if slow else 1.0
            slices = {"read": curve(random, slow), "write": curve(random, False)}
            node = {"kernel": "Linux 6.1"} if day >= 10 else {}
            add_run(day, rates, storage=storage, slices=slices, node=node)


def complete_in_itself(html: str) -> bool:
    """No script, nothing fetched, nothing that hides."""
    asks = re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", html)
    return "<script" not in html and not asks and "http-equiv" in html and "\u202e" not in html


def test_compare_writes_a_self_contained_page(sonde: Sonde, declining_file_system: None, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    completed = sonde("compare", "2026-01-01..2026-01-10", "2026-01-11..2026-01-31", "-o", page, "--unit", "fs1=12")
    assert completed.code == 0, completed.err
    html = page.read_text(encoding="utf-8")
    assert complete_in_itself(html)
    assert "1 of 4 numbers became slower" in html
    assert html.count('class="cname"') >= 4
    assert "The shape changed" in html
    assert "steady decline" in html
    assert "Rate by unit" in html
    assert "Linux 6.1" in html
    assert len(html) < 500_000


def test_trend_writes_a_self_contained_page(sonde: Sonde, declining_file_system: None, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert sonde("trend", "-o", page).code == 0
    html = page.read_text(encoding="utf-8")
    assert complete_in_itself(html)
    assert html.count('data-chart="history"') == 4
    assert "Slower now: " in html
    assert "−60 %" in html or "−61 %" in html or "−59 %" in html


@pytest.mark.parametrize("unit_text", ["fs1", "fs1=", "=3", "fs1=-1", "fs1=inf"])
def test_invalid_unit_option_is_rejected(sonde: Sonde, add_run: AddRun, archive: Path, unit_text: str) -> None:
    add_run(0, {("read", "read"): 1e9})
    completed = sonde("compare", "last", "last", "--unit", unit_text)
    assert completed.code == 2
    assert "NAME=COUNT" in completed.err


def test_a_page_that_cannot_be_written_is_one_sentence(
    sonde: Sonde, declining_file_system: None, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    completed = sonde("trend", "-o", tmp_path / "file" / "page.html")
    assert completed.code in (2, 3)
    assert len(completed.sentences) == 1


def test_repeatedly_slow_node_is_reported(sonde: Sonde, add_run: AddRun, archive: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    names = [f"nid{number:05d}" for number in range(40)]
    for day in range(16):
        hosts = {name: 1e9 * float(np.exp(random.normal(0, 0.03))) for name in names}
        hosts["nid00007"] /= 1.38 if day >= 8 else 1.0
        hosts["nid00030"] /= 2.0 if day == 3 else 1.0
        slices = {"read": curve(random, False)}
        add_run(day, {("read", "read"): 4e10 * (0.7 if day >= 8 else 1.0)}, hosts=hosts, slices=slices)
    page = tmp_path / "page.html"
    assert sonde("compare", "2026-01-01..2026-01-08", "2026-01-09..2026-01-31", "-o", page).code == 0
    html = page.read_text(encoding="utf-8")
    assert html.count('data-chart="heat"') == 2
    assert re.search(r"Slower than the middle node again and again: nid00007 \(2[78] %, in 8 of 8 runs\)\.", html)
    assert "No node was slower than the others again and again." in html
    assert re.search(r"Without node nid00007 the run would have been [34][0-9] % faster", html)
    assert complete_in_itself(html)


def test_two_systems_on_a_page_have_separate_rows(sonde: Sonde, add_run: AddRun, archive: Path, tmp_path: Path) -> None:
    """They were one row of the table, in which the second overwrote the first."""
    for system, factor in (("haswell", 0.1), ("knl", 0.5)):
        for storage in ("lustre:scratch /a", "lustre:project /a"):
            for day in range(12):
                rate = 1e9 + 1e6 * day
                slow = factor if day >= 6 and storage == "lustre:scratch /a" else 1.0
                add_run(day, {("read", "read"): rate * slow, ("write", "write"): rate}, system=system, storage=storage)
    page = tmp_path / "page.html"
    assert sonde("compare", "2026-01-01..2026-01-06", "2026-01-07..2026-01-12", "-o", page).code == 0
    html = page.read_text(encoding="utf-8")
    matrix = html[html.index('data-chart="matrix"') :]
    rows = re.findall(r'<th scope="row">([^<]+)</th>(.*?)</tr>', matrix)
    changes = {name: re.findall(r"−\d+ %", fields) for name, fields in rows}
    assert changes["lustre:scratch /a on haswell"] == ["−90 %"]
    assert changes["lustre:scratch /a on knl"] == ["−50 %"]
    assert len(changes) == 4


def test_plan_differences_appear_in_text_page_and_json(
    sonde: Sonde, add_run: AddRun, archive: Path, tmp_path: Path
) -> None:
    phases = [{"id": "read", "op": "read", "cache": "cold"}]
    for day in range(12):
        data: dict[str, object] = {"access": {"transfer": "1MiB"}}
        if day >= 6:
            data["io"] = {"direct": True}
        plan = {"id": "probe", "data": data, "phases": phases, "target": {"path": f"/scratch/{day}"}}
        add_run(day, {("read", "read"): 1e9 if day < 6 else 8e8 + 1e6 * day}, document=plan)
    page = tmp_path / "page.html"
    sides = ("2026-01-01..2026-01-06", "2026-01-07..2026-01-12")
    completed = sonde("compare", *sides, "-o", page)
    assert "not the same data.io.direct: not set → true" in completed.out
    assert "target.path" not in completed.out
    html = page.read_text(encoding="utf-8")
    assert "data.io.direct" in html
    assert "did not measure the same on both sides" in html
    (number,) = sonde("compare", *sides, "--json").json["numbers"]
    assert number["differs_in"] == [{"name": "data.io.direct", "before": "not set", "after": "true"}]
