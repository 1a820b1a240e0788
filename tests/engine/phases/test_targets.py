# SPDX-License-Identifier: Apache-2.0
"""Which target served an operation: by offset, exactly, whatever the pattern; layouts are given as Lustre has them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import Engine, find_schema_errors, write_plan
from lustre_layouts import KIB64, NO_END, pack_composite_layout, pack_lov_layout


def list_tables_by_phase(result: Any) -> dict[str, list[dict[str, Any]]]:
    return {
        line["phase"]: [dict(zip(line["columns"], row, strict=True)) for row in line["rows"]]
        for line in result.of("targets")
    }


def get_totals_by_target(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    return {row["target"]: (row["bytes"], row["ops"], row["single_ops"]) for row in rows}


def test_each_target_gets_the_bytes_and_operations_of_its_offsets(
    engine: Engine, target: Path, layout_folder: Path
) -> None:
    """Two tasks, each 1 MiB in 64 KiB transfers into one file: stripes of 128 KiB over three targets, in turn."""
    (layout_folder / "data").write_bytes(pack_lov_layout(2 * KIB64, 3, 1, 2))
    data = {"files": {"mapping": "shared", "name": "data"}, "access": {"transfer": "64KiB", "block": "1MiB"}}
    plan = write_plan(
        target, tasks={"processes": 2}, data=data, phases=[{"id": "write", "op": "write"}, {"id": "read", "op": "read"}]
    )
    result = engine.run(plan, env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    assert result.code == 0, result.err
    # 16 stripes: 6 on the first target, 5 on each other
    expected = {"OST0003": 6, "OST0001": 5, "OST0002": 5}
    for phase, kind in (("write", "write"), ("read", "read")):
        rows = list_tables_by_phase(result)[phase]
        assert {row["kind"] for row in rows} == {kind}
        assert get_totals_by_target(rows) == {name: (n * 2 * KIB64, 2 * n, 2 * n) for name, n in expected.items()}
        assert all(0 < row["p50_ns"] <= row["p99_ns"] <= row["max_ns"] <= row["single_ns"] for row in rows)
    for line in result.of("targets"):
        assert (line["files"], line["known_files"]) == (2, 2)
        assert line["known_bytes"] == line["bytes"] == 2 << 20
    series = [line for line in result.of("series") if line["scope"] == "target"]
    for line in [*result.of("targets"), *series]:
        assert find_schema_errors(line) == []
    for line in series:
        row = next(row for row in list_tables_by_phase(result)[line["phase"]] if row["target"] == line["target"])
        sums = {member: sum(line[member]) for member in ("bytes", "ops", "single_ops", "single_ns")}
        assert sums == {member: row[member] for member in sums}
    assert len(series) == 6


def test_an_operation_over_several_targets_is_divided_and_blames_none(
    engine: Engine, target: Path, layout_folder: Path
) -> None:
    """96 KiB from 0, 96, 192 … over stripes of 64 KiB: each lies on two targets of three, 64 and 32 KiB."""
    (layout_folder / "data").write_bytes(pack_lov_layout(KIB64, 0, 1, 2))
    data = {"files": {"mapping": "shared", "name": "data"}, "access": {"transfer": "96KiB", "block": "576KiB"}}
    result = engine.run(write_plan(target, data=data), env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    rows = list_tables_by_phase(result)["write"]
    # 9 stripes, 3 on each; operations lie on stripes 0 and 1, 1 and 2, 3 and 4, 4 and 5, …
    assert get_totals_by_target(rows) == {f"OST000{i}": (3 * KIB64, 6 if i == 1 else 3, 0) for i in range(3)}
    assert all(row["p50_ns"] is None and row["max_ns"] is None and row["single_ns"] == 0 for row in rows)


def test_stripes_on_a_single_target_are_summed(engine: Engine, target: Path, layout_folder: Path) -> None:
    (layout_folder / "data").write_bytes(pack_lov_layout(KIB64, 5))
    data = {"files": {"mapping": "shared", "name": "data"}, "access": {"transfer": "256KiB", "block": "1MiB"}}
    result = engine.run(write_plan(target, data=data), env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    assert get_totals_by_target(list_tables_by_phase(result)["write"]) == {"OST0005": (1 << 20, 4, 4)}


def test_composite_layout_changes_at_boundaries_gaps_have_no_target(
    engine: Engine, target: Path, layout_folder: Path
) -> None:
    """128 KiB on the metadata server, then one target to 512 KiB, then two; behind 1 MiB nothing is told."""
    mdt = struct.pack("<IIQQIHH", 0x0BD10BD0, 0x100, 17, 0, 2 * KIB64, 0, 0)
    parts = [
        (0, 2 * KIB64, mdt),
        (2 * KIB64, 8 * KIB64, pack_lov_layout(KIB64, 4)),
        (8 * KIB64, 16 * KIB64, pack_lov_layout(KIB64, 6, 7)),
    ]
    (layout_folder / "data").write_bytes(pack_composite_layout(parts))
    data = {"files": {"mapping": "shared", "name": "data"}, "access": {"transfer": "64KiB", "block": "1280KiB"}}
    result = engine.run(write_plan(target, data=data), env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    assert result.code == 0, result.err
    expected = {"MDT": 2, "OST0004": 6, "OST0006": 4, "OST0007": 4}
    assert get_totals_by_target(list_tables_by_phase(result)["write"]) == {
        name: (n * KIB64, n, n) for name, n in expected.items()
    }
    (line,) = result.of("targets")
    assert (line["bytes"], line["known_bytes"]) == (20 * KIB64, 16 * KIB64)


def test_queues_random_order_and_mixed_operations_are_attributed_too(
    engine: Engine, target: Path, layout_folder: Path
) -> None:
    (layout_folder / "data").write_bytes(pack_lov_layout(KIB64, 0, 1))
    data = {
        "files": {"mapping": "shared", "name": "data"},
        "access": {"transfer": "16KiB", "block": "1MiB", "order": "random_permute"},
    }
    phases = [
        {"id": "write", "op": "write"},
        {"id": "mixed", "op": "mixed", "access": {"read_ratio": 0.5}},
        {"id": "queued", "op": "read", "backend": "io_uring", "io": {"queue_depth": 4}},
    ]
    result = engine.run(write_plan(target, data=data, phases=phases), env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    if result.code != 0 and "io_uring" in result.err:
        pytest.skip("io_uring is not allowed here")
    assert result.code == 0, result.err
    tables_by_phase = list_tables_by_phase(result)
    for phase in ("write", "queued"):
        assert get_totals_by_target(tables_by_phase[phase]) == {f"OST000{i}": (1 << 19, 32, 32) for i in range(2)}
    (mixed,) = [line for line in result.of("phase_end") if line["phase"] == "mixed"]
    for kind, moved in (("read", mixed["bytes"]["read"]), ("write", mixed["bytes"]["written"])):
        assert sum(row["bytes"] for row in tables_by_phase["mixed"] if row["kind"] == kind) == moved
    assert sum(row["single_ops"] for row in tables_by_phase["mixed"]) == 64


def test_files_with_unknown_layout_are_counted(engine: Engine, target: Path, layout_folder: Path) -> None:
    for task in range(3):
        (layout_folder / f"data.t{task:08d}").write_bytes(pack_lov_layout(KIB64, task))
    plan = write_plan(target, tasks={"threads": 4}, data={"files": {"mapping": "per_task", "name": "data"}})
    result = engine.run(plan, env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    (line,) = result.of("targets")
    assert (line["files"], line["known_files"]) == (4, 3)
    assert (line["bytes"], line["known_bytes"]) == (64 * KIB64, 48 * KIB64)


def test_component_chosen_during_write_is_read_again(engine: Engine, target: Path, layout_folder: Path) -> None:
    """The second component has no targets: its bytes count for none, and the engine queries its layout once."""
    parts = [
        (0, 4 * KIB64, pack_lov_layout(KIB64, 0)),
        (4 * KIB64, NO_END, pack_lov_layout(KIB64, requested_stripes=2)),
    ]
    (layout_folder / "data").write_bytes(pack_composite_layout(parts))
    data = {"files": {"mapping": "shared", "name": "data"}, "access": {"transfer": "64KiB", "block": "512KiB"}}
    result = engine.run(write_plan(target, data=data), env={"SONDE_PRETEND_LAYOUTS": str(layout_folder)})
    assert get_totals_by_target(list_tables_by_phase(result)["write"]) == {"OST0000": (4 * KIB64, 4, 4)}


def test_file_system_without_layouts_has_no_target_lines(engine: Engine, target: Path, layout_folder: Path) -> None:
    for environment in ({}, {"SONDE_PRETEND_LAYOUTS": str(layout_folder)}):
        result = engine.run(write_plan(target), env=environment)
        assert result.code == 0
        assert result.of("targets") == []
        assert [line for line in result.of("series") if line["scope"] == "target"] == []
