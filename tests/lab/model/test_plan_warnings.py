# SPDX-License-Identifier: Apache-2.0
"""Unlikely combinations in a plan are reported, ordinary ones are not."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.plan import Plan
from sonde.model.plan_warnings import find_plan_warnings


def make_plan(transfer: Any, **read: Any) -> Plan:
    document = {
        "schema": "sonde-plan/2",
        "id": "p",
        "target": {"path": "/tmp"},
        "data": {"access": {"transfer": transfer, "block": 4096}},
        "phases": [{"id": "fill", "op": "write"}, {"id": "look", "op": "read", **read}, {"id": "gone", "op": "remove"}],
    }
    return Plan.from_document(document, "mine.toml")


def test_forgotten_unit_is_reported_with_its_phases() -> None:
    (remark,) = find_plan_warnings(make_plan(1))
    assert remark == "mine.toml: access.transfer of fill, look is 1 B: was a unit forgotten (1KiB, 1MiB)?"
    (remark,) = find_plan_warnings(make_plan(4, access={"transfer": "4KiB"}))
    assert "of fill is 4 B" in remark


@pytest.mark.parametrize("transfer", [8, 512, "4KiB"])
def test_ordinary_transfers_are_not_remarked(transfer: Any) -> None:
    assert find_plan_warnings(make_plan(transfer)) == []


def test_tiny_transfer_warning_is_about_data_phases_only() -> None:
    ops = {"w": "write", "o": "rewrite", "r": "read", "m": "mixed", "a": "reread", "s": "stat"}
    own_access = {"r": {"access": {"transfer": 2, "block": 2}}}
    phases = [{"id": name, "op": op, **own_access.get(name, {})} for name, op in ops.items()]
    document = {"target": {"path": "/tmp"}, "data": {"access": {"transfer": 7}}, "phases": phases}
    assert find_plan_warnings(Plan.from_document(document, "mine.toml")) == [
        "mine.toml: access.transfer of w, m is 7 B: was a unit forgotten (7KiB, 7MiB)?",
        "mine.toml: access.transfer of r is 2 B: was a unit forgotten (2KiB, 2MiB)?",
    ]
