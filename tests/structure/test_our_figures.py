# SPDX-License-Identifier: Apache-2.0
"""The pictures of our own on the pages of published tests: each page draws what is kept, and what is kept is small and
of an experiment that is there.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "published"
FIGURE_FILES = sorted(path for path in (PAGES / "ours").glob("*.json") if path.stem != "published")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("our_figures", ROOT / "docs/extensions/our_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["our_figures"] = module
    spec.loader.exec_module(module)
    return module


def test_pages_reference_exactly_the_stored_figures() -> None:
    names_on_pages = {
        name for page in PAGES.glob("*.md") for name in re.findall(r"<!-- ours: (\S+) -->", page.read_text())
    }
    assert names_on_pages == {path.stem for path in FIGURE_FILES}
    assert names_on_pages


@pytest.mark.parametrize("path", FIGURE_FILES, ids=lambda path: path.stem)
def test_a_record_is_small_and_of_claims_that_the_experiment_makes(path: Path) -> None:
    assert path.stat().st_size < 100_000
    figures = json.loads(path.read_text())
    assert re.fullmatch(r"20\d{6}", figures["date"])
    file = next((ROOT / "experiments").rglob(f"{path.stem}.toml"))
    written = tomllib.loads(file.read_text())
    assert [entry["id"] for entry in figures["claims"]] == [entry["id"] for entry in written["expect"]]
    assert {entry["id"] for entry in figures["figures"]} <= {entry["id"] for entry in written.get("figures", [])}


@pytest.mark.parametrize("path", FIGURE_FILES, ids=lambda path: path.stem)
def test_pictures_are_svg_within_their_frame(drawing: ModuleType, path: Path) -> None:
    text = drawing.ours(path.stem)
    pictures = re.findall(r"<svg.*?</svg>", text)
    figures = json.loads(path.read_text())
    assert len(pictures) >= len(figures["figures"])
    for picture in pictures:
        assert len(picture) < 100_000
        root = ElementTree.fromstring(picture)
        for path_element in root.iter(f"{SVG}path"):
            numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path_element.get("d", ""))]
            assert all(-1 <= number <= drawing.WIDTH for number in numbers)
    assert all(f"| {path_element['id']} | {path_element['verdict']} |" in text for path_element in figures["claims"])


def test_point_height_is_proportional_to_its_value(drawing: ModuleType) -> None:
    chart = {
        "unit": "B/s",
        "places": ["a", "b"],
        "series": [{"name": "s", "values": [[1e9, 0.5e9, 2e9], [2e9, None, None]]}],
    }
    root = ElementTree.fromstring(drawing.of_places("t", "curve", chart))
    line = next(
        path_element.get("d", "")
        for path_element in root.iter(f"{SVG}path")
        if path_element.get("stroke-width") == "1.8"
    )
    (_, first), (_, second) = re.findall(r"([\d.]+) ([\d.]+)", line)
    bottom = drawing.HEIGHT - drawing.BOTTOM
    assert bottom - float(second) == pytest.approx(2 * (bottom - float(first)), rel=0.02)


def test_single_number_is_visible(drawing: ModuleType) -> None:
    chart = {"unit": "B/s", "places": ["a", "b"], "series": [{"name": "s", "values": [None, [2e9, None, None]]}]}
    root = ElementTree.fromstring(drawing.of_places("t", "curve", chart))
    assert sum(path_element.get("d", "").endswith("h5") for path_element in root.iter(f"{SVG}path")) == 1


def test_values_of_different_magnitude_use_a_logarithmic_axis(drawing: ModuleType) -> None:
    panel = drawing.Panel("t", "op/s", [2e4, 4e6])
    assert panel.log
    assert panel.y(1e5) - panel.y(1e6) == pytest.approx(panel.y(1e6) - panel.y(1e7))
    assert not drawing.Panel("t", "op/s", [2e4, 4e5]).log


def test_long_chart_names_are_numbered_and_explained_in_the_caption(drawing: ModuleType) -> None:
    names = [f"POSIX, a file for each task, {size}" for size in ("10k", "1m1", "1m2")]
    series = [{"name": "write", "values": [[1e9, 0.9e9, 1.1e9]] * 3}]
    chart = {"title": "", "unit": "B/s", "x": "plan", "places": names, "series": series}
    figure = {"id": "f", "title": "Three tests", "source": "slide 1", "kind": "bars", "charts": [chart]}
    figures = {"experiment": "e", "profile": "ci", "runs": 3, "date": "20261122", "machine": "a machine",
            "conditions": "busy",
            "figures": [figure], "tables": [], "effects": [], "claims": []}  # fmt: skip
    text = "\n".join(drawing.section(figures))
    picture = re.search(r"<svg.*?</svg>", text)
    assert picture is not None
    assert "POSIX" not in picture.group()
    assert all(f">{number}<" in picture.group() for number in (1, 2, 3))
    assert f"1 {names[0]}; 2 {names[1]}; 3 {names[2]}." in text
    assert "a machine." in text
    assert " Busy." in text
    assert not drawing.numbered(["4KiB", "64KiB", "1MiB"])
    assert drawing.cell([0.0000079, 0.000007, 0.000008, "s"]) == "7.9 [7, 8] µs"
