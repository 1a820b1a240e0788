# SPDX-License-Identifier: Apache-2.0
"""The checks of a host with each of its plans become one."""

from __future__ import annotations

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_file_systems import join_checks
from sonde.design.layout.faults import LayoutCheck, LayoutFault

CAUSE = LayoutFault("failed drive in an array", "md1", "sdc is marked as failed", "", "")
EFFECT = LayoutFault("no spare", "md1", "raid6 md1 has no hot spare", "", "")
EXPLAINED = LayoutFault(CAUSE.kind, "md1", CAUSE.problem, "", "", consequences=("md1: raid6 md1 has no hot spare",))
OTHER = LayoutFault("not as planned", "/home", "it is xfs; planned is ext4", "", "")


def test_fault_that_another_check_explains_is_dropped() -> None:
    checks = [LayoutCheck((CAUSE, EFFECT), (), ()), LayoutCheck((EXPLAINED, OTHER), (), ())]
    assert join_checks(checks).faults == (EXPLAINED, OTHER)


def test_fact_in_a_check_is_not_unknown() -> None:
    items = (CheckedItem("paths", "dm-0"), CheckedItem("spares", "md1"))
    checks = [LayoutCheck((), ("the stripe", "the date"), items[:1], ("a",)), LayoutCheck((), ("the date",), items)]
    joined = join_checks(checks)
    assert (joined.unknown, joined.checked_items, joined.not_compared) == (("the date",), items, ("a",))


def test_fault_with_its_planned_value_replaces_that_without() -> None:
    planned = LayoutFault("requests are cut", "sda", "max_sectors_kb is 128; planned is 1024", "", "", planned="1024")
    alone = LayoutFault("requests are cut", "sda", "max_sectors_kb is 128", "", "")
    checks = [LayoutCheck((alone,), (), ()), LayoutCheck((planned,), (), ())]
    assert join_checks(checks).faults == join_checks(checks[::-1]).faults == (planned,)
