# SPDX-License-Identifier: Apache-2.0
"""Faults planted into the outputs of a sound host and a sound router: each is named, and nothing else is."""

from __future__ import annotations

import pytest
from planted_route_faults import (
    HOST_FAULTS,
    ROUTER_FAULTS,
    Edit,
    check_outputs,
    make_host_outputs,
    make_router_outputs,
)

# Faults that follow from a planted one.
CONSEQUENCES = {
    "interface missing": {"not on the network"},
    "second interface on the network": {"address of another host"},
    "standby used first": {"route never used"},
    "far network on link": {"table without a route", "router without a table", "prefix too short"},
    "rule without a table": {"router without a table"},
    "all rules in one table": {"table without a rule", "mark of another router"},
    "router in several tables": {"router without a table"},
    "no route": {"rule without a table"},
    "ARP not answered": {"wrong device"},
}


def test_sound_host_has_no_fault_in_many_comparisons() -> None:
    verdict = check_outputs(make_host_outputs())
    assert verdict.faults == ()
    assert len(verdict.comparisons) > 30
    router = check_outputs(make_router_outputs(), "routers")
    assert router.faults == ()
    assert len(router.comparisons) > 8


@pytest.mark.parametrize(
    ("fault_kind", "edit"), [case[1:] for case in HOST_FAULTS], ids=[case[0] for case in HOST_FAULTS]
)
def test_planted_host_fault_is_reported(fault_kind: str, edit: Edit) -> None:
    outputs = make_host_outputs()
    edit(outputs)
    kinds = {fault.kind for fault in check_outputs(outputs).faults}
    assert fault_kind in kinds
    assert kinds <= {fault_kind} | CONSEQUENCES.get(fault_kind, set())


@pytest.mark.parametrize(
    ("fault_kind", "edit"), [case[1:] for case in ROUTER_FAULTS], ids=[case[0] for case in ROUTER_FAULTS]
)
def test_planted_router_fault_is_reported(fault_kind: str, edit: Edit) -> None:
    outputs = make_router_outputs()
    edit(outputs)
    assert {fault.kind for fault in check_outputs(outputs, "routers").faults} == {fault_kind}


def test_foreign_rules_and_routes_are_no_faults() -> None:
    outputs = make_host_outputs()
    outputs["rules"] += "100:\tfrom 192.168.9.7 lookup 50\n101:\tfrom all to 172.16.0.0/12 lookup 50\n"
    outputs["routes"] += "default via 192.168.9.254 dev mgmt table 50\nblackhole 172.31.0.0/16\n"
    assert check_outputs(outputs).faults == ()
