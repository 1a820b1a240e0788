# SPDX-License-Identifier: Apache-2.0
"""The drive below a local file system, and the pieces in which files lie on it: on real ext4 and XFS, small ones."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_under_test import ROOT, Engine, write_plan
from jsonschema import Draft202012Validator

FAULTS = Path(__file__).parents[1] / "faults"
KIB64 = 65536


@pytest.fixture
def mount_point(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system on a loop device."""
    monkeypatch.syspath_prepend(str(FAULTS))
    import file_systems

    with file_systems.file_system(request.param, tmp_path) as mounted:
        yield mounted


@pytest.mark.parametrize("mount_point", ["ext4", "xfs"], indirect=True)
def test_file_extents_equal_filefrag_output(engine: Engine, mount_point: Path) -> None:
    plan = write_plan(
        mount_point,
        {"id": "write", "op": "write"},
        {"id": "read", "op": "read"},
        tasks={"threads": 3},
        data={"files": {"mapping": "per_task", "name": "data"}, "io": {"fsync": "end"}},
        target={"keep": True},
    )
    result = engine.run(plan)
    assert result.code == 0, result.err
    first, line = result.of("layout")
    assert first["rows"] == line["rows"]
    assert (line["kind"], line["files"], line["reported"]) == ("local", 3, 3)
    (mount,) = [row.split() for row in Path("/proc/self/mounts").read_text().splitlines() if f" {mount_point} " in row]
    drive = mount[0].removeprefix("/dev/")
    assert line["shapes"] == [[{"pattern": "whole", "start": 0, "stripe_count": 1}]]
    assert line["targets"] == [[drive, 3, 48 * KIB64]]
    rows = [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
    for row in rows:
        assert row["targets"] == [[drive, 16 * KIB64]]
        assert 1 <= row["fragments"] <= row["extents"]
        assert KIB64 <= row["longest_bytes"] <= 16 * KIB64
        assert row["unplaced_bytes"] == 0
    schema = json.loads((ROOT / "schema/record/record.schema.json").read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(line)] == []
    # On one drive the figures of the phase are those of the target.
    assert result.of("targets") == []
    if shutil.which("filefrag"):
        for row in rows:
            (path,) = mount_point.rglob(f"data.t{row['task']:08d}")
            output = subprocess.run(["filefrag", str(path)], capture_output=True, text=True, check=True).stdout
            counted = re.search(r"(\d+) extents? found", output)
            assert counted is not None
            assert row["fragments"] == int(counted.group(1)), output


@pytest.mark.parametrize("mount_point", ["ext4"], indirect=True)
def test_delayed_allocation_leaves_extents_unplaced(engine: Engine, mount_point: Path) -> None:
    result = engine.run(write_plan(mount_point, data={"files": {"mapping": "shared", "name": "data"}}))
    assert result.code == 0, result.err
    (line,) = result.of("layout")
    (row,) = [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
    placed = row["longest_bytes"] if row["fragments"] <= 1 else None
    assert placed is None or placed + row["unplaced_bytes"] == row["bytes"]
