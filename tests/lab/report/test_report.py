# SPDX-License-Identifier: Apache-2.0
"""Content of the page for records whose truth is known."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from make_record import record_lines, write_run
from record_scene import Pages, Scene, Work, steady
from scenarios import CACHED_READ, COLD_READ, HOSTILE, SCENARIOS

from sonde.findings.best_numbers import NO_STORAGE_NUMBER
from sonde.model.errors import ReportError
from sonde.report import write_report

Shown = Callable[[str], str]
FORMAT = Path(__file__).resolve().parents[3] / "schema" / "record" / "record.schema.json"


class Words(HTMLParser):
    """Collects the visible words of a page, and every element with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._hidden += tag in ("style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "title")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.parts))


@cache
def written(name: str) -> list[dict[str, Any]]:
    """The record of a scene."""
    return record_lines(SCENARIOS[name])


@pytest.fixture(scope="module")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The page on a scene; it is made once."""

    @cache
    def html(name: str) -> str:
        folder = tmp_path_factory.mktemp("shown")
        return write_report([write_run(folder / "run-0", SCENARIOS[name])], folder / "report.html").read_text("utf-8")

    return html


def total(name: str, phase: str) -> dict[str, Any]:
    """The total rate of a phase, as the record of the scene has it."""
    end = next(line for line in written(name) if line["type"] == "phase_end" and line["phase"] == phase)
    rate: dict[str, Any] = end["rates"]["total"]
    return rate


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "many tasks"])
def test_the_generator_writes_records_that_match_the_schema(name: str) -> None:
    validator = Draft202012Validator(json.loads(FORMAT.read_text(encoding="utf-8")))
    for line in written(name):
        validator.validate(line)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_yields_a_page(report_page: Shown, name: str) -> None:
    html = report_page(name)
    page = Words(html)
    assert "Summary" in page.text
    assert "Definitions" in page.text
    assert "Where" in page.text
    assert len(html.encode()) < 1_500_000


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "many tasks"])
def test_the_page_has_no_script_and_no_address_outside_itself(report_page: Shown, name: str) -> None:
    page = Words(report_page(name))
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "object", "embed")
        for attribute, value in attributes.items():
            assert not attribute.startswith("on"), f"{tag} {attribute}"
            if attribute in ("href", "src"):
                assert (value or "").startswith(("#", "data:,", "data:image/png;base64,"))
    policy = next(dict(a) for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in (policy["content"] or "")


def test_the_worked_example_of_the_format_gives_a_page(tmp_path: Path) -> None:
    """It is a record of the real engine."""
    example = FORMAT.with_name("example.ndjson").read_text(encoding="utf-8")
    (tmp_path / "record.ndjson").write_text(example, encoding="utf-8")
    text = Words(write_report([tmp_path], tmp_path / "report.html").read_text(encoding="utf-8")).text
    ends = [json.loads(row) for row in example.splitlines() if '"phase_end"' in row]
    assert ends
    for end in ends:
        assert f"{end['rates']['total']['bytes']:,}" in text or f"{end['rates']['total']['ops']:,}" in text
    assert "The run has no end" not in text


def test_headline_is_the_total_rate_with_bytes_and_seconds(report_page: Shown) -> None:
    rate = total("typical", "write")
    text = Words(report_page("typical")).text
    assert f"{rate['bytes_per_s'] / 1e9:.2f} GB/s" in text
    assert f"{rate['bytes_per_s'] / 2**30:.2f} GiB/s" in text
    assert f"{rate['bytes']:,} B / {rate['seconds']:.4f} s, first open to last close" in text


def test_small_operations_are_reported_per_second(report_page: Shown) -> None:
    rate = total("typical", "random-read")
    text = Words(report_page("typical")).text
    assert f"{round(rate['ops_per_s'], -2):,.0f} op/s" in text
    assert f"{rate['ops']:,} operations / {rate['seconds']:.4f} s" in text


def test_storage_and_cache_numbers_are_separate(report_page: Shown) -> None:
    html = report_page("typical")
    text = Words(html).text
    storage, cache = text.index("Storage, for seconds only"), text.index("Page cache: not storage numbers")
    summary = text[: text.index("How far to trust")]
    assert storage < summary.index("From storage: 0 % of the data was in the page cache") < cache
    assert cache < summary.index("Served from page cache: not a storage number")


def test_change_of_the_rate_is_described(report_page: Shown) -> None:
    stepped = Words(report_page("stepped")).text
    match = re.search(r"Fell from ([\d.]+) GB/s to ([\d.]+) MB/s after ([\d.]+) s", stepped)
    assert match
    assert float(match[1]) == pytest.approx(1.6, rel=0.1)
    assert float(match[2]) == pytest.approx(400, rel=0.1)
    assert float(match[3]) == pytest.approx(2.0, abs=0.15)
    ramping = Words(report_page("ramping")).text
    match = re.search(r"Fell gradually from ([\d.]+) MB/s to ([\d.]+) MB/s", ramping)
    assert match
    assert float(match[1]) == pytest.approx(900, rel=0.1)
    assert float(match[2]) == pytest.approx(300, rel=0.15)
    assert "Steady, ±" in Words(report_page("one task")).text
    for name in ("one task", "stepped"):  # a sign is explained where it occurs, and nowhere else
        summary = Words(report_page(name)).text.split("How far to trust")[0]
        assert summary.count("±: where the rate was") == ("Steady, ±" in summary), name


def test_slow_task_is_reported_with_its_host(report_page: Shown) -> None:
    text = Words(report_page("slow task")).text
    assert re.search(r"Task 11 on node18 reached [\d.]+ MB/s, the median task [\d.]+ MB/s\.", text)
    assert "stonewall" in text


@pytest.mark.parametrize(
    ("name", "expected_sentence"),
    [
        ("failed", "The run failed: Task 2 on node17 could not read: Input/output error."),
        ("interrupted", "The run was interrupted: SIGINT."),
        ("lost", "The run has no end: its engine was killed or lost, or is still at work."),
    ],
)
def test_unfinished_run_is_reported_at_the_top(report_page: Shown, name: str, expected_sentence: str) -> None:
    text = Words(report_page(name)).text
    assert expected_sentence in text[: text.index("Summary")]
    assert "Not finished: read; the phase before it stands." in text[: text.index("Summary")]
    assert "GB/s" in text


def test_truncated_record_is_rendered_up_to_its_last_line(page: Pages) -> None:
    text = Words(page(Scene(works=[Work(), COLD_READ]), cut=400)).text
    assert "breaks off in the middle of its last line" in text[: text.index("Summary")]
    assert "Sequential read" in text


@pytest.fixture(scope="module")
def typical_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a typical run."""
    return write_run(tmp_path_factory.mktemp("typical") / "run", SCENARIOS["typical"])


@pytest.mark.parametrize("line_count", range(1, 12))
def test_a_record_cut_after_any_line_gives_a_page(typical_run: Path, tmp_path: Path, line_count: int) -> None:
    folder = Path(shutil.copytree(typical_run, tmp_path / "run"))
    record = folder / "record.ndjson"
    record.write_bytes(b"\n".join(record.read_bytes().split(b"\n")[:line_count]) + b"\n")
    text = Words(write_report([folder], tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "The run has no end" in text


def test_no_text_of_the_record_becomes_markup(report_page: Shown) -> None:
    for name in ("odd names", "failed"):
        html = report_page(name)
        page = Words(html)
        assert "<script" not in html
        assert "alert(1)" in page.text
        assert "\\n" in page.text
        assert "\\xff" in page.text
        for hidden in ("\u202e", "\x1b", "\udcff"):
            assert hidden not in html
        assert all("\x1b" not in (a.get("data-tip") or "") for _, a in page.elements if a.get("data-tip"))


def test_the_plan_on_the_page_is_the_plan(report_page: Shown) -> None:
    page = Words(report_page("odd names"))
    start = page.text.index('{ "schema": "sonde-plan/2"')
    plan, _ = json.JSONDecoder().raw_decode(page.text[start:])
    assert plan["target"]["path"] == HOSTILE


def test_a_file_system_in_memory_is_never_called_storage(report_page: Shown) -> None:
    text = Words(report_page("in memory")).text
    assert NO_STORAGE_NUMBER in text
    assert "Files on tmpfs live in memory: not a storage number." in text


def test_several_runs_share_one_summary(page: Pages) -> None:
    write, read = (
        Scene(works=[Work(curve=steady(300e6))], title="Writes"),
        Scene(works=[COLD_READ, CACHED_READ], title="Reads"),
    )
    html = page(write, read, title="Check of /scratch")
    document = Words(html)
    summary = document.text[: document.text.rindex("How far to trust")].replace("\N{NO-BREAK SPACE}", " ")
    assert "Check of /scratch" in summary
    assert summary.count("GB/s") >= 3
    assert summary.index("Sequential write, 4 tasks") < summary.index("Page cache: not storage numbers")
    anchors = {a["href"] for tag, a in document.elements if tag == "a" and (a.get("href") or "").startswith("#r")}
    ids = {f"#{a['id']}" for _, a in document.elements if a.get("id")}
    assert anchors == {"#r1", "#r2", "#r1p1", "#r2p1", "#r2p2"}
    assert anchors <= ids


def test_runs_without_a_storage_number_are_not_praised(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / f"run-{index}", Scene(works=[CACHED_READ])) for index in range(2)]
    text = Words(write_report(folders, tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert re.search(r"Of \d+ numbers none is of storage", text)
    assert "nothing speaks against any of them" not in text


def test_five_thousand_tasks_are_written_quickly_and_stay_small(tmp_path: Path) -> None:
    took, out = {}, tmp_path / "report.html"
    folders = {name: write_run(tmp_path / name, SCENARIOS[name]) for name in ("typical", "many tasks")}
    for name in ("typical", "typical", "many tasks"):  # the first one includes the time of imports and templates
        begun = time.process_time()
        write_report([folders[name]], out)
        took[name] = time.process_time() - begun
    assert took["many tasks"] < 10 * took["typical"]
    assert out.stat().st_size < 1_500_000
    assert "5,000\N{NO-BREAK SPACE}tasks" in out.read_text(encoding="utf-8")


def test_folder_without_a_run_is_rejected_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"holds no record\.ndjson"):
        write_report([tmp_path], tmp_path / "report.html")
    (tmp_path / "record.ndjson").write_text("PNG\n", encoding="utf-8")
    with pytest.raises(ReportError, match="no line that can be read"):
        write_report([tmp_path], tmp_path / "report.html")
    with pytest.raises(ReportError, match="name at least one"):
        write_report([], tmp_path / "report.html")
    folder = write_run(tmp_path / "run", SCENARIOS["one task"])
    with pytest.raises(ReportError, match="cannot be written"):
        write_report([folder], tmp_path / "missing" / "report.html")
    assert not list(tmp_path.glob("**/.report*"))


def test_newer_report_replaces_the_older_report(page: Pages, tmp_path: Path) -> None:
    page(SCENARIOS["one task"])
    second = page(SCENARIOS["stepped"])
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == second
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
