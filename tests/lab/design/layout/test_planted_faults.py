# SPDX-License-Identifier: Apache-2.0
"""Faults planted into the outputs of a sound server: each is named, and nothing else is."""

from __future__ import annotations

import pytest
from planted_layout_faults import FAULTS, Edit, change, check_outputs, combine, make_server_outputs, set_queue

# Faults that follow from a planted one.
CONSEQUENCES = {
    "single path": {"multipath policy"},
    "on alternate paths": {"path failed"},
    "path failed": {"one path for all"},
    "no active path": {"path failed"},
    "vdev without redundancy": {"unequal members of a stripe"},
    "unit does not fit the stripe": {"groups are not aligned"},
    "width is no multiple of unit": {"width does not fit the stripe"},
}


def test_sound_server_has_no_fault_in_many_comparisons() -> None:
    verdict = check_outputs(make_server_outputs())
    assert verdict.faults == ()
    assert len(verdict.checked_items) > 40


@pytest.mark.parametrize(("fault_kind", "edit"), [case[1:] for case in FAULTS], ids=[case[0] for case in FAULTS])
def test_planted_fault_is_reported(fault_kind: str, edit: Edit) -> None:
    outputs = make_server_outputs()
    edit(outputs)
    kinds = {fault.kind for fault in check_outputs(outputs).faults}
    assert fault_kind in kinds
    assert kinds <= {fault_kind} | CONSEQUENCES.get(fault_kind, set())


@pytest.mark.parametrize(("edit", "action"), [
    (set_queue("md6", "sync_action", "check"), "check"), (set_queue("md6", "sync_action", "repair"), "repair"),
    (combine(set_queue("md6", "sync_action", "check"),
             change("mdadm md6", "State : clean", "State : clean, checking")), "check")])  # fmt: skip
def test_check_of_an_array_is_no_rebuild(edit: Edit, action: str) -> None:
    outputs = make_server_outputs()
    edit(outputs)
    verdict = check_outputs(outputs)
    assert verdict.faults == ()
    assert f"the rate of md6 without the {action} of md that runs; measure after it has ended" in verdict.unknown


def test_lost_drive_of_raid6_allows_another_failure() -> None:
    outputs = make_server_outputs()
    next(edit for name, _, edit in FAULTS if name == "a drive lost")(outputs)
    (fault,) = check_outputs(outputs).faults
    assert "1 more may fail" in fault.cost
    outputs["mdadm md5"] = outputs["mdadm md5"].replace("Active Devices : 9", "Active Devices : 8")
    (fault,) = check_outputs(outputs).faults
    assert "2 drives missing" in fault.problem
    assert "one more loses everything" in fault.cost
