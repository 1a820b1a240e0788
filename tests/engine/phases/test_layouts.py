# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of a phase's files lie, when the layouts are given to the engine in the form that Lustre has."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_under_test import Engine, find_schema_errors, write_plan
from lustre_layouts import KIB64, pack_lov_layout


@pytest.fixture
def tmpfs_folder() -> Iterator[Path]:
    """A directory on tmpfs, which reports no layout."""
    with tempfile.TemporaryDirectory(prefix="sonde-test-", dir="/dev/shm") as folder:
        yield Path(folder)


def test_each_file_of_a_task_has_its_row_and_targets_their_sums(
    engine: Engine, target: Path, layout_folder: Path
) -> None:
    for task in range(3):
        (layout_folder / f"data.t{task:08d}").write_bytes(
            pack_lov_layout(KIB64, task) if task < 2 else pack_lov_layout(KIB64, 1, 7)
        )
    plan = write_plan(target, tasks={"threads": 4}, data={"files": {"mapping": "per_task", "name": "data"}})
    result = engine.run(plan, env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    assert result.code == 0, result.err
    (line,) = result.of("layout")
    assert (line["phase"], line["kind"], line["files"], line["reported"]) == ("write", "lustre", 4, 3)
    rows = [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
    assert [(row["file"], row["task"], row["bytes"]) for row in rows] == [(task, task, 16 * KIB64) for task in range(3)]
    assert [row["targets"] for row in rows] == [
        [["OST0000", 16 * KIB64]],
        [["OST0001", 16 * KIB64]],
        [["OST0001", 8 * KIB64], ["OST0007", 8 * KIB64]],
    ]
    assert [row["shape"] for row in rows] == [0, 0, 1]
    shape = {"pattern": "raid0", "start": 0, "stripe_bytes": KIB64}
    assert line["shapes"] == [[{**shape, "stripe_count": 1}], [{**shape, "stripe_count": 2}]]
    sums = [["OST0000", 1, 16 * KIB64], ["OST0001", 2, 24 * KIB64], ["OST0007", 1, 8 * KIB64]]
    assert line["targets"] == sums
    assert find_schema_errors(line) == []


def test_shared_file_belongs_to_no_task_in_the_layout(engine: Engine, target: Path, layout_folder: Path) -> None:
    (layout_folder / "data").write_bytes(pack_lov_layout(KIB64, 3, 4))
    plan = write_plan(target, tasks={"threads": 2}, data={"files": {"mapping": "shared", "name": "data"}})
    result = engine.run(plan, env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    (line,) = result.of("layout")
    assert line["rows"] == [[0, None, 32 * KIB64, 0, [["OST0003", 16 * KIB64], ["OST0004", 16 * KIB64]]]]


def test_invalid_layout_is_reported_and_the_run_continues(engine: Engine, target: Path, layout_folder: Path) -> None:
    (layout_folder / "data").write_bytes(pack_lov_layout(KIB64, 3, 4)[:40])
    plan = write_plan(target, data={"files": {"mapping": "shared", "name": "data"}})
    result = engine.run(plan, env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    assert result.code == 0
    assert result.of("layout") == []
    (finding,) = [line for line in result.of("finding") if line["id"] == "layout_unreadable"]
    assert "ends after 40 bytes" in finding["text"]


def test_file_system_without_layouts_has_no_layout_line(engine: Engine, tmpfs_folder: Path) -> None:
    result = engine.run(write_plan(tmpfs_folder))
    assert result.code == 0
    assert result.of("layout") == []
