# SPDX-License-Identifier: Apache-2.0
"""Faults that follow from another one are not reported beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import VLAN, check_outputs, print_server_outputs

ROUTERS = ("10.160.15.1", "10.160.15.2", "10.160.15.3")


def print_neighbors(states: tuple[str, str, str]) -> str:
    texts = {"REACHABLE": "lladdr 52:54:00:bb:00:0{} REACHABLE", "FAILED": "FAILED"}
    return "".join(
        f"{address} dev {VLAN} {texts[state].format(number)}\n"
        for number, (address, state) in enumerate(zip(ROUTERS, states, strict=True), start=1)
    )


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        (("FAILED", "FAILED", "FAILED"), ["another VLAN"]),
        (("REACHABLE", "FAILED", "REACHABLE"), ["another VLAN", "router does not answer"]),
    ],
)
def test_silent_routers_behind_a_wrong_vlan_are_one_fault(
    tmp_path: Path, states: tuple[str, str, str], kinds: list[str]
) -> None:
    outputs = print_server_outputs(VLAN) | {"neigh": print_neighbors(states)}
    outputs["addr"] = outputs["addr"].replace("vlan protocol 802.1Q", "vlan protocol 802.1ad")
    assert sorted({fault.kind for fault in check_outputs(tmp_path, outputs, device=VLAN).faults}) == kinds


def test_silent_router_alone_is_still_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs(VLAN) | {"neigh": print_neighbors(("FAILED", "FAILED", "FAILED"))}
    kinds = [fault.kind for fault in check_outputs(tmp_path, outputs, device=VLAN).faults]
    assert kinds == ["router does not answer"] * 3


def test_table_of_a_diverting_rule_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["rule"] = outputs["rule"].replace("32766:", "900:\tfrom 10.160.0.1 lookup 200\n32766:", 1)
    outputs["route"] += "default via 10.160.15.200 dev bond0 table 200\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, "into table 200" in fault.problem) == ("traffic diverted", True)


def test_diverting_route_that_expires_is_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["route6"] += "fd00:150::/64 via fe80::1 dev bond0 proto ra metric 100 expires 1799sec pref high\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.kind == "traffic diverted"


def test_long_neighbor_lifetime_is_one_fault_per_setting(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += "net.ipv4.neigh.bond0.base_reachable_time_ms = 400000\n"
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert fault.location == "net.ipv4.neigh.bond0.base_reachable_time_ms = 400000"
