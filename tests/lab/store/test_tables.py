# SPDX-License-Identifier: Apache-2.0
"""Series of nodes as rows that anybody can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from make_record import write_run
from record_scene import Scene, Work, steady

from sonde.model.confined_files import ConfinedDirectory
from sonde.model.line_members import RateSpread
from sonde.model.lines import SeriesLine
from sonde.model.record import read_record
from sonde.store.summary import build_summary_document
from sonde.store.tables import SERIES_FILE, TARGETS_FILE, write_tables

EXAMPLE = Path(__file__).resolve().parents[3] / "schema" / "record" / "example.ndjson"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / SERIES_FILE).to_pylist()
    return rows


def test_node_rows_add_up_to_the_total_rows(tmp_path: Path) -> None:
    run = write_run(tmp_path, Scene(works=[Work(curve=steady(400e6), seconds=3.0)], tasks=6, nodes=3))
    with ConfinedDirectory.open(tmp_path) as directory:
        write_tables(directory, "r", read_record(run / "record.ndjson"))
    rows = rows_of(tmp_path)
    total_rows = {row["slice"]: row for row in rows if row["scope"] == "all"}
    assert {row["node"] for row in rows if row["scope"] == "node"} == {0, 1, 2}
    assert len(total_rows) > 10
    for number, row in total_rows.items():
        nodes = [node_row for node_row in rows if node_row["scope"] == "node" and node_row["slice"] == number]
        assert len(nodes) == 3
        assert sum(node_row["bytes"] for node_row in nodes) == row["bytes"]
        assert sum(node_row["active"] for node_row in nodes) == row["active"]
        assert {node_row["extreme"] for node_row in nodes} == {None}


def test_node_spread_and_reason_of_selection_are_columns(tmp_path: Path) -> None:
    run = write_run(tmp_path, Scene(works=[Work()]))
    reader = read_record(run / "record.ndjson")
    spread = RateSpread(min=(1.0, None), p25=(2.0, None), p50=(3.0, None), p75=(4.0, None), max=(5.0, None))
    band = SeriesLine(t=0.0, phase="write", scope="nodes", nodes=300, slice_s=0.5, bytes=(10, 20), ops=(1, 2))
    slow = SeriesLine(t=0.0, phase="write", scope="node", node=17, extreme="slowest", slice_s=1.0, bytes=(9,), ops=(1,))
    phase = next(iter(reader.phases.values()))
    phase.series[:] = [SeriesLine(**{**vars(band), "node_rate": spread, "node_ops_rate": spread}), slow]
    with ConfinedDirectory.open(tmp_path) as directory:
        write_tables(directory, "r", reader)
    first, second, third = rows_of(tmp_path)
    assert (first["scope"], first["node"], first["start_s"], first["node_rate_p50"]) == ("nodes", None, 0.0, 3.0)
    assert (second["start_s"], second["node_rate_p50"], second["node_ops_rate_max"]) == (0.5, None, None)
    assert first["node_ops_rate_min"] == 1.0
    assert (third["node"], third["extreme"], third["slice_s"]) == (17, "slowest", 1.0)


def test_target_rows_have_server_unit_and_slices(tmp_path: Path) -> None:
    reader = read_record(EXAMPLE)
    levels = {"OSS": {"oss1": ["OST0002"], "oss2": ["OST0003"]}, "SSU": {"ssu1": ["OST0002", "OST0003", "OST0004"]}}
    facts = {"id": "r", "parents": {"system": "site", "levels": levels}}
    with ConfinedDirectory.open(tmp_path) as directory:
        write_tables(directory, "r", reader, facts)
    rows = {(row["target"], row["kind"]): row for row in pq.read_table(tmp_path / TARGETS_FILE).to_pylist()}
    (phase,) = [phase for phase in reader.phases.values() if phase.targets]
    assert phase.targets is not None
    assert phase.end is not None
    assert phase.end.seconds.elapsed
    target_rows = {(row[0], row[1]): dict(zip(phase.targets.columns, row, strict=True)) for row in phase.targets.rows}
    assert rows.keys() == target_rows.keys()
    for key, row in rows.items():
        assert {name: row[name] for name in target_rows[key]} == target_rows[key]
        assert row["bytes_per_s"] == row["bytes"] / phase.end.seconds.elapsed
        assert (row["server"], row["unit"]) == ({"OST0002": "oss1", "OST0003": "oss2"}[key[0]], "ssu1")
    slices = [row for row in rows_of(tmp_path) if row["scope"] == "target"]
    for (target, kind), row in rows.items():
        own_slices = [slice_row for slice_row in slices if (slice_row["target"], slice_row["kind"]) == (target, kind)]
        for name in ("bytes", "ops", "single_ops", "single_ns"):
            assert sum(slice_row[name] for slice_row in own_slices) == row[name]
    # Of the described system run.json keeps what the record names.
    parents = build_summary_document(reader, facts, 0, "")["parents"]
    assert parents == {"system": "site", "levels": {**levels, "SSU": {"ssu1": ["OST0002", "OST0003"]}}}


def test_run_without_targets_has_no_target_table(tmp_path: Path) -> None:
    run = write_run(tmp_path, Scene(works=[Work()]))
    reader = read_record(run / "record.ndjson")
    with ConfinedDirectory.open(tmp_path) as directory:
        write_tables(directory, "r", reader, {"parents": {"system": "site", "levels": {"OSS": {"a": ["OST0000"]}}}})
    assert not (tmp_path / TARGETS_FILE).exists()
    assert "parents" not in build_summary_document(reader, {}, 0, "")
