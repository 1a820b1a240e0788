# SPDX-License-Identifier: Apache-2.0
"""Runs of a group are one row of `sonde list`, and one row each in `sonde show GROUP` when there are many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import run_builders

from sonde.experiments.results import Results
from sonde.model.experiment import make_experiment
from sonde.store.groups import write_group_request

RUNS = 20


@pytest.fixture
def root(archive: Path) -> Path:
    for number in range(RUNS):
        rate = 1e9 + 1e7 * number
        status = "failed" if number == 7 else "done"
        phases = [run_builders.build_phase(rate=rate, classification="storage")]
        run_builders.add_run(
            archive,
            f"20260102T0000{number:02d}Z-io-{number:04x}",
            phases,
            group="survey",
            status=status,
            tasks=number + 1,
        )
    run_builders.add_run(archive, "20260103T000000Z-other-0001")
    for number in range(3):
        run_builders.add_run(archive, f"20260104T00000{number}Z-few-{number:04x}", group="small")
    return archive


def test_large_group_is_one_row_of_the_list(sonde: Any, root: Path) -> None:
    result = sonde("list")
    rows = result.out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["survey", "20260103T000000Z-other-0001", *(
        f"20260104T00000{number}Z-few-{number:04x}" for number in range(3)
    )]  # fmt: skip
    for text in ("survey (20 runs)", "2026-01-02 00:00", "1 to 20", "19 done, 1 failed", "1.19 GB/s", "good"):
        assert text in rows[0]
    assert "--runs lists each run" in result.err
    assert len(sonde("list", "--runs").out.splitlines()) == RUNS + 5
    assert [row.split()[0] for row in sonde("list", "-n", "1").out.splitlines()[1:]] == ["20260104T000002Z-few-0002"]
    assert "20 earlier" not in result.err
    assert len(sonde("list", "--json").json) == RUNS + 4


def test_filters_count_the_runs_of_a_group(sonde: Any, root: Path) -> None:
    assert "survey (19 runs)" in sonde("list", "--status", "done").out
    (row,) = sonde("list", "--status", "failed").out.splitlines()[1:]
    assert row.startswith("20260102T000007Z-io-0007")


def test_show_of_a_large_group_prints_a_row_for_each_run(sonde: Any, root: Path) -> None:
    result = sonde("show", "survey")
    assert result.code == 0
    assert len(result.out.splitlines()) == RUNS + 1
    assert "survey has 20 runs; `sonde show RUN` prints the phases of one" in result.err


@pytest.mark.parametrize(
    ("search_text", "listed_name", "unlisted_name"),
    [("", "quick", ""), ("hpcs", "hpcs-07", "quick"), ("CHECKPOINT AND RESTART, MANY", "hpcs-07", "hpcs-01")],
)
def test_experiments_lists_names_that_run_takes(
    sonde: Any, search_text: str, listed_name: str, unlisted_name: str
) -> None:
    arguments = ("experiments", *search_text.splitlines())
    names = [row["name"] for row in sonde(*arguments, "--json").json]
    assert listed_name in names
    assert unlisted_name not in names
    assert len(sonde(*arguments).out.splitlines()) >= len(names)


def test_unknown_text_names_no_experiment(sonde: Any) -> None:
    result = sonde("experiments", "nosuch")
    assert (result.code, result.out) == (2, "")
    assert "`sonde experiments` lists all" in result.err


@pytest.mark.parametrize(("stored", "is_used"), [("edison", True), ("gone.toml", False), ("", False)])
def test_report_of_a_group_uses_the_system_of_its_runs(
    sonde: Any, archive: Path, monkeypatch: pytest.MonkeyPatch, stored: str, is_used: bool
) -> None:
    """`sonde run --system edison`, then `sonde report GROUP` without it."""
    document = {
        "schema": "sonde-experiment/2",
        "id": "x",
        "plan": {"data": {"access": {"volume": "1MiB"}}, "phases": [{"id": "write", "op": "write"}]},
    }
    request = {"origin": "x.toml", "profile": "", "settings": [], "document": document, "where": {"system": stored}}
    write_group_request(archive, "mine", {**request, "document": make_experiment(document, "x.toml").document})
    systems: list[Any] = []

    def write_page(results: Results, page: Path, system: Any, formats: Any) -> tuple[list[Path], list[Any]]:
        systems.append(system)
        return [], []

    monkeypatch.setattr("sonde.experiments.page.page.write_experiment_page", write_page)
    result = sonde("report", "mine")
    assert result.code == 0, result.err
    assert (systems[0] is not None) == is_used
    assert ("cannot be used" in result.err) == (stored == "gone.toml")
    if stored:
        assert sonde("report", "mine", "--system", "cumulus").code == 0
        assert systems[1].id == "cumulus"


@pytest.mark.parametrize(
    ("classification", "finding", "validity"),
    [
        ("cache", "cache_suspect", "good"),
        ("short", "too_short", "good"),
        ("storage", "cache_suspect", "doubtful: possibly cached"),
        ("cache", "noisy_node", "doubtful: other load on the node"),
    ],
)
def test_list_shows_no_caveat_that_the_classification_states(
    sonde: Any, archive: Path, classification: str, finding: str, validity: str
) -> None:
    phases = [
        run_builders.build_phase(classification="storage"),
        run_builders.build_phase("read", classification=classification),
    ]
    findings = [{"id": finding, "phase": "read", "severity": "warning", "text": "a reason"}]
    run_builders.add_run(archive, "20260102T000000Z-io-0000", phases, findings=findings)
    (row,) = sonde("list").out.splitlines()[1:]
    assert row.endswith(validity)
    runs = sonde("list", "--validity", validity.partition(":")[0], "--finding", finding, "--json").json
    assert len(runs) == 1
