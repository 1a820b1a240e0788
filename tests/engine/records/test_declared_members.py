# SPDX-License-Identifier: Apache-2.0
"""Each member of a record that the engine writes is declared in the schema of records."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from engine_under_test import ROOT, Engine, Plan, find_schema_errors, write_plan

EXAMPLE = [
    json.loads(line) for line in (ROOT / "schema/record/example.ndjson").read_text(encoding="utf-8").splitlines()
]


def test_example_has_declared_members_only() -> None:
    assert [complaint for line in EXAMPLE for complaint in find_schema_errors(line)] == []


@pytest.mark.parametrize(
    ("line_type", "path", "expected_path"),
    [
        ("phase_end", ("bytes",), "phase_end.bytes.extra"),
        ("phase_end", ("rates", "total"), "phase_end.rates.total.extra"),
        ("node", ("file_system",), "node.file_system.extra"),
        ("series", (), "series.extra"),
    ],
)
def test_undeclared_member_is_reported(line_type: str, path: tuple[str, ...], expected_path: str) -> None:
    line = copy.deepcopy(next(line for line in EXAMPLE if line["type"] == line_type))
    table = line
    for name in path:
        table = table[name]
    table["extra"] = 1
    assert find_schema_errors(line) == [f"{expected_path} is not declared in record.schema.json"]


def test_engine_writes_declared_members_only(engine: Engine, tmp_path: Path) -> None:
    """Data and trees, treatments, two directions at once, several processes."""
    phases: list[Plan] = [
        {"id": "write", "op": "write", "before": [{"kind": "sync"}]},
        {"id": "read", "op": "read", "stop": {"stonewall": "5s", "wearout": True}, "shift": {"by": "tasks"}},
        {
            "id": "both",
            "op": "duplex",
            "streams": [{"id": "in", "op": "read"}, {"id": "out", "op": "write", "file": 1}],
        },
    ]
    data = {"files": {"mapping": "many", "count": 2}, "verify": "both"}
    trees = [{"id": op, "op": op, "on": "meta"} for op in ("mktree", "create", "walk", "remove")]
    for plan in (
        write_plan(tmp_path, *phases, data=data, tasks={"processes": 2, "threads": 2}),
        write_plan(tmp_path, *trees, meta={"tree": {"items_per_dir": 20}}, tasks={"processes": 2}),
    ):
        result = engine.run(plan)
        assert result.code == 0, result.err
        assert {"run", "node", "phase_begin", "phase_end", "end"} <= {line["type"] for line in result.lines}
        assert [complaint for line in result.lines for complaint in find_schema_errors(line)] == []
