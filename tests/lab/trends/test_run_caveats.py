# SPDX-License-Identifier: Apache-2.0
"""compare, gate and trend say on every surface that runs were measured on a machine that others used too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sonde.store.summary import read_summary
from sonde.store.tags import change_tags
from sonde.trends.run_caveats import CaveatCount, count_caveats, list_caveat_sentences

AddRun = Callable[..., Path]
Sonde = Callable[..., Any]
RATES = {("read", "read"): 1e9, ("write", "write"): 5e8}
WHY = "other processes used 1.9 cores of this node during the phase"
BUSY = {"id": "noisy_node", "phase": "read", "severity": "warning", "text": WHY}


@pytest.fixture
def runs(add_run: AddRun, archive: Path) -> Callable[..., None]:
    """Six quiet runs tagged old, and six tagged new, of which as many as asked for have these findings."""

    def add(busy: int, *findings: Mapping[str, Any]) -> None:
        for day in range(6):
            rates = {key: rate * (1 + day / 100) for key, rate in RATES.items()}
            change_tags(add_run(day, rates), added_tags=["old", "baseline:good"])
            day_findings = findings if day < busy else ()
            change_tags(add_run(day + 10, rates, findings=day_findings), added_tags=["new"])

    return add


def test_compare_marks_the_side_measured_on_a_busy_machine(
    sonde: Sonde, runs: Callable[..., None], tmp_path: Path
) -> None:
    runs(4, BUSY)
    page = tmp_path / "page.html"
    completed = sonde("compare", "tag:old", "tag:new", "-o", page)
    assert f"! Doubtful after, read: {WHY} (in 4 of 6 runs)." in completed.out
    assert completed.out.count("doubtful") == 1  # the row of reads, and no other
    html = page.read_text(encoding="utf-8")
    assert "1 of them is doubtful; see why." in html
    assert f"{WHY} (in 4 of 6 runs)" in html
    numbers = sonde("compare", "tag:old", "tag:new", "--json").json["numbers"]
    caveats = {number["key"]["op"]: number["caveats"] for number in numbers}
    assert caveats["write"] == []
    assert caveats["read"] == [
        {"side": "after", "phase": "read", "id": "noisy_node", "text": WHY, "runs": 4, "of": 6, "varies": False,
         "plan": "probe"}
    ]  # fmt: skip


def test_caveat_counts_only_the_runs_of_its_plan(sonde: Sonde, add_run: AddRun) -> None:
    """Both groups have two plans with a phase `write`; one of the plans has a doubtful run."""
    for day, group in enumerate(("g1", "g2")):
        add_run(day, {("write", "write"): 1e9}, plan="a", group=group)
        add_run(day + 0.1, {("write", "write"): 1e9}, plan="b", group=group, findings=[{**BUSY, "phase": "write"}])
    completed = sonde("compare", "g1", "g2")
    assert f"! Doubtful before, write: {WHY}." in completed.out
    doubtful = [line for line in completed.out.splitlines() if line.endswith("too few runs, doubtful")]
    assert [line.split()[0] for line in doubtful] == ["b"]
    assert completed.out.count("an interval needs 5 runs") == 1
    assert "COV" not in completed.out


def test_finding_of_a_run_applies_to_each_of_its_numbers(sonde: Sonde, runs: Callable[..., None]) -> None:
    runs(6, {**BUSY, "phase": ""})
    completed = sonde("compare", "tag:old", "tag:new")
    assert f"! Doubtful after, read, write: {WHY} (in 6 of 6 runs)." in completed.out


def test_remarks_and_quiet_runs_raise_no_doubt(sonde: Sonde, runs: Callable[..., None]) -> None:
    runs(6, {**BUSY, "severity": "info"})
    assert "oubtful" not in sonde("compare", "tag:old", "tag:new").out
    assert "oubtful" not in sonde("gate", "last", "--baseline", "good").out
    assert sonde("gate", "last", "--baseline", "good", "--json").json["caveats"] == []


@pytest.mark.parametrize("against", [("--baseline", "good"), ("--at-least", "read=100MB/s")])
def test_passing_gate_warns_about_a_busy_machine(
    sonde: Sonde, runs: Callable[..., None], against: tuple[str, str]
) -> None:
    runs(6, BUSY)
    completed = sonde("gate", "last", *against)
    assert completed.code == 0
    assert "Good, but doubtful: " in completed.out
    assert f"! Doubtful now, read: {WHY}." in completed.out
    (caveat,) = sonde("gate", "last", *against, "--json").json["caveats"]
    assert (caveat["side"], caveat["id"], caveat["runs"], caveat["of"]) == ("now", "noisy_node", 1, 1)


def test_failing_gate_warns_about_a_busy_machine(sonde: Sonde, runs: Callable[..., None]) -> None:
    runs(6, BUSY)
    completed = sonde("gate", "last", "--at-least", "read=9GB/s", "--retests", "0")
    assert completed.code == 1
    assert "Too slow, but doubtful: 1 run" in completed.out


def test_trend_begins_with_the_caveat_of_a_busy_machine(
    sonde: Sonde, runs: Callable[..., None], tmp_path: Path
) -> None:
    runs(4, BUSY)
    caveat = f"Doubtful, 1 of 2 histories: {WHY} (in 4 of its last 10 runs)."
    page = tmp_path / "page.html"
    fresh = sonde("trend", "-o", page)
    for completed in (fresh, sonde("trend")):  # from nothing, and remembered
        assert caveat in " ".join(completed.out[: completed.out.index("histor", 200)].split())
        (row,) = [line for line in completed.out.splitlines() if line.rstrip().endswith("4 of 10")]
        assert "read" in row
    html = page.read_text(encoding="utf-8")
    assert caveat in html
    assert f"Doubtful in 4 of the last 10 runs: {WHY}." in html
    for _ in range(2):
        completed = sonde("trend", "--json").json
        assert caveat in completed["summary"]
        caveats = {entry["labels"]["phase"]: entry["caveats"] for entry in completed["histories"]}
        assert caveats["write"] == []
        assert [(entry["id"], entry["runs"], entry["of"]) for entry in caveats["read"]] == [("noisy_node", 4, 10)]


def test_trend_of_quiet_runs_has_no_caveat(sonde: Sonde, runs: Callable[..., None]) -> None:
    runs(6, {**BUSY, "severity": "info"})
    assert "oubtful" not in sonde("trend").out


def test_caveat_of_busy_machine_names_the_slower_histories(sonde: Sonde, add_run: AddRun) -> None:
    for day in range(30):
        slow = day >= 24
        findings = [BUSY, {**BUSY, "phase": "write"}] if slow else []
        rates = {
            key: rate * (1 + day % 3 / 100) * (0.4 if slow and key[0] == "read" else 1) for key, rate in RATES.items()
        }
        add_run(day, rates, findings=findings)
    sentence = sonde("trend", "--json").json["summary"]
    assert sentence.startswith("Slower now: probe · read")
    assert f"Doubtful, 1 of 1 slower history: {WHY} (in 6 of its last 10 runs)." in sentence


def test_caveat_text_has_frequency_and_reason() -> None:
    caveat = CaveatCount("after", "read", "noisy_node", "others used it.", 3, 5)
    assert caveat.text_with_count == "others used it (in 3 of 5 runs)"
    assert (
        replace(caveat, varies=True).text_with_count
        == "others used it (in 3 of 5 runs; the text is that of the last of them)"
    )
    assert replace(caveat, runs=1, of=1).text_with_count == "others used it"
    assert replace(caveat, text="").text_with_count == "noisy_node (in 3 of 5 runs)"
    assert caveat.to_json() == {
        "side": "after", "phase": "read", "id": "noisy_node", "text": "others used it.", "runs": 3, "of": 5,
        "varies": False, "plan": "",
    }  # fmt: skip


def test_each_caveat_of_a_side_is_one_sentence_by_worst_phase() -> None:
    few, most = CaveatCount("after", "read", "x", "few", 4, 9), CaveatCount("after", "write", "x", "most", 3, 6)
    assert list_caveat_sentences(
        [few, most, replace(few, side="before"), replace(few, id="y", text="other", of=1)]
    ) == [
        "after, read, write: most (in up to 3 of 6 runs).",
        "before, read: few (in 4 of 9 runs).",
        "after, read: other.",
    ]
    assert list_caveat_sentences([]) == []


def test_caveats_are_counted_by_phase_with_the_latest_text(add_run: AddRun) -> None:
    """Three of four runs have the phase; two of these have the caveat, one of them twice."""
    early, late = {**BUSY, "text": "early"}, {**BUSY, "text": "late"}
    runs = [
        read_summary(add_run(0, RATES, findings=[early, {**early, "text": "again"}])),
        read_summary(add_run(1, RATES)),
        read_summary(add_run(2, RATES, findings=[late])),
        read_summary(add_run(3, {("write", "write"): 1e9}, findings=[BUSY])),
    ]
    assert count_caveats("after", runs, ["read", "read"]) == [
        CaveatCount("after", "read", "noisy_node", "late", 2, 3, True)
    ]
    assert count_caveats("after", runs, ["write", "nothing"]) == []
    assert count_caveats("after", runs[:1], ["read"]) == [CaveatCount("after", "read", "noisy_node", "again", 1, 1)]
