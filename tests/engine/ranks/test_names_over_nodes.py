# SPDX-License-Identifier: Apache-2.0
"""Operations on names by ranks of several nodes: shifts by nodes, trees of nodes, and a distributed walk."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import many_nodes
import pytest
import start_ranks
from engine_under_test import parse_record

pytestmark = pytest.mark.mpi

NODES, RANKS = 3, 2  # ranks of each node
WALK_OF_DIRECTORY = {"lookup": {"walk_from": "directory"}}
NEXT = {"by": "nodes", "n": 1}


@pytest.mark.parametrize(("tree_scope", "expected_trees"), [("shared", 1), ("per_node", NODES)])
def test_each_name_is_met_once_over_all_nodes(
    tree_scope: str, expected_trees: int, engine_path: Path, tmp_path: Path
) -> None:
    launcher = start_ranks.find_mpich()
    module = start_ranks.find_built_program("sonde-mpi-abi.so")
    reason = many_nodes.explain_unavailability()
    if reason or launcher is None or module is None:
        pytest.skip(reason or "needs the Python package mpich and sonde-mpi-abi.so")
    target = tmp_path / "target"
    target.mkdir()
    plan = {
        "schema": "sonde-plan/2",
        "id": "nodes",
        "target": {"path": str(target), "min_free": 0},
        "meta": {
            "tree": {"depth": 2, "branching": 3, "items_per_dir": 5, "scope": tree_scope},
            "file": {"write": 64, "read": 64},
            "verify": "on_read",
        },
        "phases": [
            {"id": "mktree", "op": "mktree"},
            {"id": "create", "op": "create"},
            {"id": "read", "op": "read", "shift": NEXT},
            {"id": "readdir", "op": "readdir"},
            {"id": "walk", "op": "walk"},
            {
                "id": "find",
                "op": "walk",
                "meta": {"find": {"name": "*1*", "type": "file", "size": 64}, **WALK_OF_DIRECTORY},
            },
            {"id": "remove", "op": "remove", "shift": NEXT},
            {"id": "rmtree", "op": "rmtree"},
        ],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command_inside = [str(engine_path), "run", str(tmp_path / "plan.json"), "--record", str(tmp_path / "record")]
    with many_nodes.ManyNodes(NODES, tmp_path) as nodes:
        command = nodes.mpiexec(Path(launcher.start[0]), RANKS, *command_inside, "--mpi-module", str(module))
        done = subprocess.run(command, capture_output=True, text=True, timeout=start_ranks.LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    lines = parse_record((tmp_path / "record").read_text())
    assert lines[0]["nodes"] == NODES
    ends = {line["phase"]: line for line in lines if line["type"] == "phase_end"}
    items, folders = 13 * 5 * NODES * RANKS, 13 * expected_trees
    assert {name: ends[name]["ops"]["done"] for name in ("create", "read", "remove")} == dict.fromkeys(
        ("create", "read", "remove"), items
    )
    assert ends["read"]["verify"] == {"checked_bytes": 64 * items, "mismatches": 0}
    assert ends["walk"]["entries"] == items + folders
    assert ends["walk"]["walk"] == {"directories": folders, "examined": items + folders}
    match_count = sum("1" in f"{task}.{item}" for task in range(NODES * RANKS) for item in range(65))
    tops = 1  # the walk begins one level higher
    assert ends["find"]["entries"] == items + folders + tops
    assert ends["find"]["walk"] == {"directories": folders + tops, "examined": match_count, "matched": match_count}
    assert ends["readdir"]["entries"] == items + folders - expected_trees
    assert ends["mktree"]["ops"]["done"] == ends["rmtree"]["ops"]["done"] == folders
    assert list(target.iterdir()) == []
