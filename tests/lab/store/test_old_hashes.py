# SPDX-License-Identifier: Apache-2.0
"""Runs that were kept when plans were hashed by older rules: their series go on, and nothing is joined that differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import run_builders

from sonde.model.plan_hash import HASH_VERSION, compute_plan_hash
from sonde.store.rows import rows_of

PLAN: dict[str, Any] = {
    "schema": "sonde-plan/2",
    "id": "daily",
    "target": {"path": "/a/probe"},
    "data": {"access": {"transfer": "1MiB", "block": "16MiB", "segments": 4}},
    "phases": [
        {"id": "write", "op": "write"},
        {"id": "read", "op": "read", "access": {"transfer": "4KiB", "segments": 2}},
    ],
}
OLD_KEY = {name: value for name, value in run_builders.KEY.items() if name != "plan_hash"} | {
    "experiment": "0a1b2c3d4e5f"
}


def hash_in_index(folder: Path) -> str:
    row, _ = rows_of(folder, folder.name, 0)
    assert row["problem"] is None if "problem" in row else True
    return str(row["plan_hash"])


def old_run(root: Path, plan: dict[str, Any] | None, **members: Any) -> Path:
    facts: dict[str, Any] = {"processes": 1, "threads": 4, "nodes": 1, "series": OLD_KEY} | members
    folder = run_builders.add_run(root, "20260101T000000Z-daily-0001", **facts)
    if plan is not None:
        (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def test_a_run_with_its_plan_gets_todays_hash(tmp_path: Path) -> None:
    simple = {**PLAN, "phases": PLAN["phases"][:1]}
    assert hash_in_index(old_run(tmp_path, simple)) == compute_plan_hash(simple, 1, 4, 1)


def test_a_run_of_today_is_taken_at_its_word(tmp_path: Path) -> None:
    key = {**run_builders.KEY, "version": HASH_VERSION}
    assert hash_in_index(old_run(tmp_path, PLAN, series=key)) == run_builders.KEY["plan_hash"]


@pytest.mark.parametrize("plan", [None, "garbage"])
def test_without_its_plan_the_old_hash_stays_apart(tmp_path: Path, plan: str | None) -> None:
    folder = old_run(tmp_path, None)
    if plan is not None:
        (folder / "plan.json").write_text(plan)
    assert hash_in_index(folder) == "1:0a1b2c3d4e5f"


def test_what_other_tools_did_keeps_its_hash(tmp_path: Path) -> None:
    folder = old_run(tmp_path, None, source={"tool": "IOR 4.1.0"})
    assert hash_in_index(folder) == "0a1b2c3d4e5f"


def test_a_plan_that_is_valid_no_more_has_a_hash_of_its_own(tmp_path: Path) -> None:
    novel = {**PLAN, "novelty": 1}
    assert hash_in_index(old_run(tmp_path, novel)) not in (compute_plan_hash(PLAN, 1, 4, 1), "1:0a1b2c3d4e5f")
