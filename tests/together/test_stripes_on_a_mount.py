# SPDX-License-Identifier: Apache-2.0
"""Stripes on a described machine that is mounted: what was set or asked for is what the engine's record says."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOV = struct.Struct("<IIQQIHH")  # struct lov_user_md_v1 of lustre_user.h, without its objects
V1 = 0x0BD10BD0
Mount = Callable[..., Path]


def run_engine(engine: Path, tmp_path: Path, plan: dict[str, Any]) -> tuple[int, str, list[dict[str, Any]]]:
    """Exit code, what it complained of, lines of the record."""
    record = tmp_path / "record.ndjson"
    record.unlink(missing_ok=True)
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [str(engine), "run", str(tmp_path / "plan.json"), "--record", str(record)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    return done.returncode, done.stderr, [json.loads(line) for line in lines]


def small_plan(path: Path, striping: dict[str, Any] | None = None, **target: Any) -> dict[str, Any]:
    """Two tasks that write 49 pages into a file each, which is no whole number of stripes of 64 KiB."""
    members = {"path": str(path), "min_free": 0, "keep": True, **target}
    return {
        "schema": "sonde-plan/2",
        "id": "t",
        "target": members | ({"striping": striping} if striping else {}),
        "tasks": {"threads": 2},
        "data": {"access": {"transfer": 4096, "block": 49 * 4096}},
        "phases": [{"id": "write", "op": "write"}],
    }


def told_by_mount(file: Path) -> tuple[int, int, list[int]]:
    """Stripe size, count and targets of a file in the mount's own words."""
    fields = os.getxattr(file, "sonde.layout").decode().split()
    layout = dict(zip(fields[::2], fields[1::2], strict=True))
    return (
        int(layout["stripe_size:"]),
        int(layout["stripe_count:"]),
        [int(target) for target in layout["targets:"].split(",")],
    )


def collect_target_usage(file: Path) -> list[list[Any]]:
    """Bytes on each target, counted page by page."""
    size, _, targets = told_by_mount(file)
    held: dict[str, int] = {}
    for page in range(0, file.stat().st_size, 4096):
        name = f"OST{targets[page // size % len(targets)]:04x}"
        held[name] = held.get(name, 0) + 4096
    return [[name, held[name]] for name in sorted(held)]


def check_layout(lines: list[dict[str, Any]], files: list[Path]) -> dict[str, Any]:
    """The line `layout` says of these files, in the order of their numbers, what the mount says; gives the line."""
    (layout,) = (line for line in lines if line["type"] == "layout")
    rows = [dict(zip(layout["columns"], row, strict=True)) for row in layout["rows"]]
    assert [row["targets"] for row in rows] == [collect_target_usage(file) for file in files]
    for row, file in zip(rows, files, strict=True):
        size, count, _ = told_by_mount(file)
        shape = {"pattern": "raid0", "start": 0, "stripe_bytes": size, "stripe_count": count}
        assert layout["shapes"][row["shape"]] == [shape]
    assert layout["kind"] == "lustre"
    return dict(layout)


def test_the_engine_reads_the_layout_that_was_set(mount_model: Mount, engine: Path, tmp_path: Path) -> None:
    directory = mount_model("--no-cost")
    (directory / "wide").mkdir()
    os.setxattr(directory / "wide", "lustre.lov", LOV.pack(V1, 1, 0, 0, 65536, 2, 0xFFFF))
    code, complaint, lines = run_engine(engine, tmp_path, small_plan(directory / "wide", directory="d"))
    assert code == 0, complaint
    files = [directory / "wide" / "d" / f"data.t{task:08}" for task in range(2)]
    assert [told_by_mount(file)[:2] for file in files] == [(65536, 2)] * 2
    assert "requested" not in check_layout(lines, files)


@pytest.mark.parametrize("where", ["own directory", "found directory", "in place"])
def test_stripes_of_a_plan_are_set_and_read_back(mount_model: Mount, engine: Path, tmp_path: Path, where: str) -> None:
    directory = mount_model("--no-cost")
    plan = small_plan(directory, {"count": 2, "size": "128KiB", "start": 1}, directory="d")
    files = [directory / "d" / f"data.t{task:08}" for task in range(2)]
    if where != "own directory":
        (directory / "d").mkdir()
        plan["target"]["use_existing"] = True
    if where == "in place":
        del plan["target"]["directory"]
        plan["data"]["files"] = {"paths": [str(directory / "d" / "f")], "mapping": "per_task"}
        files = [directory / "d" / f"f.{task:08}" for task in range(2)]
        plan["phases"][0]["open"] = "exclusive"
    code, complaint, lines = run_engine(engine, tmp_path, plan)
    assert code == 0, complaint
    assert [told_by_mount(file) for file in files] == [(131072, 2, [1, 0])] * 2
    assert check_layout(lines, files)["requested"] == {"stripe_count": 2, "stripe_bytes": 131072, "start": 1}
    assert [line["id"] for line in lines if line["type"] == "finding" and "strip" in line["id"]] == []
    # A directory of the user's keeps the layout that it had, and nothing else is left in it.
    if where == "own directory":
        assert os.getxattr(directory / "d", "sonde.layout").startswith(b"stripe_count: 2")
    else:
        with pytest.raises(OSError, match="No data"):
            os.getxattr(directory / "d", "sonde.layout")
    leftovers = [
        name
        for folder in (directory, directory / "d")
        for name in os.listdir(folder)
        if name.startswith(".sonde-strip")
    ]
    assert leftovers == []


def test_differing_stripe_grant_is_a_finding(mount_model: Mount, engine: Path, tmp_path: Path) -> None:
    directory = mount_model("--no-cost")  # has two targets and no pools
    code, _, lines = run_engine(engine, tmp_path, small_plan(directory, {"count": 5, "pool": "flash"}))
    assert code == 0
    (finding,) = (line for line in lines if line["type"] == "finding" and line["id"] == "striping_differs")
    assert finding["text"] == (
        "2 of 2 files were not striped as target.striping asks; the first has 2 targets instead of 5, no pool instead"
        " of pool flash"
    )


@pytest.mark.parametrize("member", ["own", "paths"])
def test_stripes_that_cannot_be_had_end_the_run_before_a_byte_moves(
    mount_model: Mount, engine: Path, tmp_path: Path, member: str
) -> None:
    directory = mount_model("--no-cost")
    plan = small_plan(directory, {"start": 9})
    if member == "paths":
        plan["target"]["use_existing"] = True
        plan["data"]["files"] = {"paths": [str(directory / "f")]}
    code, complaint, lines = run_engine(engine, tmp_path, plan)
    assert (code, lines) == (2, [])
    assert complaint.count("\n") == 1
    assert "target.striping (start 9) was not granted at" in complaint
    assert os.listdir(directory) == []


def test_ior_sets_the_stripes_that_its_options_ask_for(mount_model: Mount, engine: Path) -> None:
    directory = mount_model("--no-cost")
    options = ["-w", "-k", "-b", "256k", "-t", "64k", "-o", str(directory / "file")]
    stripes = ["--posix.lustre.stripecount=2", "--posix.lustre.stripesize=64k", "--posix.lustre.startost=1"]
    done = subprocess.run([str(engine), "ior", *options, *stripes], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert told_by_mount(directory / "file") == (65536, 2, [1, 0])
