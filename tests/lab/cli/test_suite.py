# SPDX-License-Identifier: Apache-2.0
"""``sonde suite``: one experiment after the other; one that fails does not cost the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fake = Callable[..., Path]


def write(folder: Path, name: str, **more: str) -> None:
    folder.mkdir(exist_ok=True)
    lines = [
        'schema = "sonde-experiment/2"', f'id = "{name}"', *(f"{key} = {value}" for key, value in more.items()),
        'plan = { data = { access = { volume = "1MiB" } }, phases = [{ id = "write", op = "write" }] }',
    ]  # fmt: skip
    (folder / f"{name}.toml").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "ours"
    once = "{ min = 1 }"
    write(path, "one", repeat=once, profiles='{ ci = { "data.access.volume" = "128KiB" } }')
    write(path / "deep", "two", repeat=once, storage='{ file_systems = ["fs1"] }')
    claim = "[{ id = 'c', level = 'measured', claim = 'bandwidth(write) > 1' }]"
    write(path, "three", repeat=once, expect=claim)
    (path / "plan.toml").write_text('[[phases]]\nid = "w"\nop = "write"\n', encoding="utf-8")
    return path


def test_all_experiments_of_folder_run_with_summary(
    fake_engine: Fake, sonde: Any, folder: Path, target: Path, archive: Path
) -> None:
    result = sonde("suite", folder, "--on", target, "--profile", "ci", "--no-report", "--json")
    rows = {experiment["experiment"]: experiment for experiment in result.json["experiments"]}
    assert result.code == 0, result.err
    assert {name: len(row["runs"]) for name, row in rows.items()} == {"one": 1, "two": 1, "three": 1}
    assert {name: row["profile"] for name, row in rows.items()} == {"one": "ci", "two": "", "three": ""}
    assert [claim["verdict"] for claim in rows["three"]["claims"]] == ["not judged"]
    again = sonde("suite", folder, "--on", target, "--profile", "ci", "--no-report", "--resume", "--json").json
    assert {experiment["group"] for experiment in again["experiments"]} == {row["group"] for row in rows.values()}


def test_failing_experiment_does_not_stop_the_suite(
    fake_engine: Fake, sonde: Any, folder: Path, target: Path, archive: Path
) -> None:
    result = sonde("suite", folder, "--on", f"fs1={target}", "--no-report", "-q")
    assert result.code == 1
    assert "1 of 3 experiments succeeded" in result.out
    assert "Nothing says where one is to be measured" in result.out


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["ours", "--on", "fs9=/tmp"], "--on fs9=…: no experiment in ours names it."),
        (["ours", "--pool", "P=/tmp"], "--pool P=…: no experiment in ours names it."),
        (["ours", "--only", "four"], 'There is no experiment with "four" in its name in ours.'),
        (["nowhere"], "There is no folder nowhere; name one that holds experiments, or say experiments."),
        (["deep"], "There is no folder deep"),
    ],
)
def test_invalid_arguments_print_one_sentence(
    fake_engine: Fake,
    sonde: Any,
    folder: Path,
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    expected_text: str,
) -> None:
    monkeypatch.chdir(folder.parent)
    result = sonde("suite", *arguments)
    assert (result.code, len(result.sentences)) == (2, 1)
    assert expected_text in result.sentences[0]
