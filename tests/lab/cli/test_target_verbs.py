# SPDX-License-Identifier: Apache-2.0
"""Verbs about a directory: plan, doctor, clean, check."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fake = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("short_report")


def test_plan_prints_explanation(sonde: Any, fake_engine: Fake, target: Path) -> None:
    result = sonde("plan", "quick", "--on", target, "--tasks", "4")
    assert result.code == 0
    for text in ("1 GiB needed", "4 (1 process x 4 threads)", "random_permute", "emptying the page cache", "0.062 x"):
        assert text in result.out
    assert list(target.iterdir()) == []


def test_plan_larger_than_free_space_gets_advice(
    sonde: Any, fake_engine: Fake, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_AVAILABLE", str(300 << 20))
    result = sonde("plan", "quick", "--on", target, "--tasks", "4")
    assert result.code == 3
    assert "does not fit; make it smaller, like --set data.access.volume=59MiB" in result.out
    result = sonde("plan", "quick", "--on", target, "--tasks", "1", "--set", "data.access.volume=280MiB")
    assert result.code == 3
    assert "--set target.min_free=0" in result.out
    assert "Write 280 MiB per task" in result.out


def test_plan_works_without_an_engine(sonde: Any, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_ENGINE", "/no/such/engine")
    result = sonde("plan", "quick", "--on", target)
    assert result.code == 0
    assert "schema only" in result.err


@pytest.mark.parametrize(("load", "expected_state"), [(0.1, "yes"), (2.3, "partly")])
def test_doctor_reports_high_load(
    sonde: Any, fake_engine: Fake, monkeypatch: pytest.MonkeyPatch, load: float, expected_state: str
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    (fact,) = [fact_row for fact_row in sonde("doctor", "--json").json["facts"] if fact_row["topic"] == "load"]
    assert fact["state"] == expected_state
    assert f"{load} processes" in fact["text"]
    assert ("doubtful" in fact["remedy"]) == (expected_state == "partly")


def test_doctor_reports_facts(sonde: Any, fake_engine: Fake, target: Path) -> None:
    result = sonde("doctor", target)
    assert result.code == 0
    for topic in ("engine", "clock", "backend posix", "O_DIRECT", "drop caches", "open files", "mpiexec", "archive"):
        assert topic in result.out
    fake_engine(type="iso9660")
    assert sonde("doctor", target).code == 3
    topics = [fact["topic"] for fact in sonde("doctor", "--json").json["facts"]]
    assert "target" not in topics


def test_clean_prints_removed_directories(
    sonde: Any, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = [
        {"directory": f"{target}/sonde-a", "run": "a", "files": 3, "bytes": 4096, "remaining": []},
        {"directory": f"{target}/sonde-b", "not_removed": "its run b is still going on (process 7)"},
    ]
    stuck = [{"directory": f"{target}/sonde-c", "run": "c", "files": 1, "bytes": 1, "remaining": ["sonde-c/mine.txt"]}]
    engine = tmp_path / "engine"
    for entries, code in ((answer, 0), (stuck, 1), ([], 0)):
        engine.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(entries)}\nEND\nexit {code}\n")
        engine.chmod(0o755)
        monkeypatch.setenv("SONDE_ENGINE", str(engine))
        result = sonde("clean", target)
        assert result.code == code
        if entries == answer:
            assert "removed 3 files, 4 KiB" in result.out
            assert "still going on" in result.out
            assert "would remove 3 files" in sonde("clean", target, "--dry-run").out
        elif entries:
            assert "mine.txt" in result.out
            assert "1 file of" in result.sentences[0]
        else:
            assert "Nothing to remove" in result.out


def test_clean_outside_the_directory_needs_yes(
    sonde: Any, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = [f"{target}/sonde-a", "/mnt/disk/sonde-a"]
    entry = {"directory": roots[0], "run": "a", "directories": roots, "outside": roots[1:]}
    removed = {**entry, "files": 3, "bytes": 4096, "remaining": []}
    kept_entry = {
        **entry,
        "not_removed": "its run has files outside, in /mnt/disk/sonde-a: add --yes to remove them there too",
    }
    engine = tmp_path / "engine"
    engine.write_text(
        f"#!/bin/sh\ncase \"$*\" in *--yes*|*--dry-run*) echo '{json.dumps([removed])}';;\n"
        f"*) echo '{json.dumps([kept_entry])}'; exit 2;; esac\n"
    )
    engine.chmod(0o755)
    monkeypatch.setenv("SONDE_ENGINE", str(engine))
    refused = sonde("clean", target)
    assert refused.code == 2
    assert "not removed: its run has files outside" in refused.out
    assert f"{roots[0]} is not removed: its run has files outside, in {roots[1]}: add --yes" in refused.sentences[0]
    assert sonde("clean", target, "--json").code == 2
    result = sonde("clean", target, "--dry-run")
    assert (result.code, f"also in {roots[1]}, outside: needs --yes" in result.out) == (0, True)
    done = sonde("clean", target, "--yes")
    assert (done.code, f"also in {roots[1]}\n" in done.out) == (0, True)
    assert "removed 3 files" in done.out


def test_check_prints_figures(sonde: Any, fake_engine: Fake, target: Path, archive: Path) -> None:
    result = sonde("check", target)
    assert result.code == 0
    for text in (
        "into page cache: not a storage number",
        "write, until on storage",
        "from storage",
        "random 4 KiB reads a second",
        "files/s",
        "Report",
    ):
        assert text in result.out
    (document,) = (archive / "reports").glob("*.json")
    group = json.loads(document.read_text())["id"]
    assert (archive / "reports" / f"{group}.html").read_text().startswith("Check of ")
    assert sonde("show", group).code == 0
    runs = sonde("list", "--json").json
    assert all(run["role"] == "check" for run in runs)
    assert len(sonde("list", "--json", "--all").json) > len(runs)


def test_check_prints_duration_and_space_before_start(sonde: Any, fake_engine: Fake, target: Path) -> None:
    result = sonde("check", target)
    assert re.search(r"This takes about \d+ (?:s|min).* and up to [\d.]+ [KMG]iB of space\.", result.err)
    parts = re.findall(r"\((\d) of (\d)\), about (.+) left", result.err)
    assert [int(number) for number, _, _ in parts] == list(range(1, len(parts) + 1))
    assert parts[-1][0] == parts[-1][1]


def test_figures_of_all_cores_name_task_count(sonde: Any, fake_engine: Fake, target: Path) -> None:
    figures = sonde("check", target, "--json").json["figures"]
    for figure in figures:
        if figure["key"].endswith("-all"):
            assert f"{figure['tasks']} tasks" in figure["section"]
        elif figure["key"].endswith("-1"):
            assert figure["tasks"] == 1
