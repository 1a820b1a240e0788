# SPDX-License-Identifier: Apache-2.0
"""Bonds that ask addresses by ARP whether their ports work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bond_links import OPTIONS, print_links
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.table_reader import parse_host_tables

ROUTER = "10.160.15.1"


def check_bond(folder: Path, lost: int, down: bool, neighbors: str = "", **options: Any) -> tuple[RouteFault, ...]:
    """The faults of a bond that watches by ARP. Its ports have been lost so often, the second is down where `down`."""
    rows = print_links()
    links = {row["ifname"]: row for row in rows}
    links["bond0"]["linkinfo"]["info_data"] = {
        name: value for name, value in OPTIONS.items() if name != "ad_info"
    } | {"mode": "active-backup", "miimon": 0, "arp_interval": 1000, "min_links": 0, **options}  # fmt: skip
    for port in ("eth2", "eth3"):
        links[port]["linkinfo"]["info_slave_data"] = {"mii_status": "UP", "link_failure_count": lost}
    if down:
        links["eth3"]["linkinfo"]["info_slave_data"]["mii_status"] = "DOWN"
    outputs = print_server_outputs() | {"addr": json.dumps(rows)}
    return check_outputs(folder, outputs | ({"neigh": neighbors} if neighbors else {})).faults


@pytest.mark.parametrize(
    ("targets", "lost", "down", "neighbors", "sentence"),
    [
        (["10.160.7.250"], 41, True, "", "the system file has no host and no router with 10.160.7.250"),
        (["10.160.7.250"], 0, True, "", "the system file has no host and no router with 10.160.7.250"),
        (["10.160.7.250"], 0, False, "10.160.7.250 dev bond0 FAILED\n", "10.160.7.250 does not answer"),
        (["10.99.0.1"], 0, False, "", "10.99.0.1 is on no network of bond0 (10.160.0.0/20)"),
        (["10.160.0.1"], 0, False, "", "10.160.0.1 is an address of this host itself"),
    ],
)
def test_silent_arp_target_is_a_single_fault(
    tmp_path: Path, targets: list[str], lost: int, down: bool, neighbors: str, sentence: str
) -> None:
    (fault,) = check_bond(tmp_path, lost, down, neighbors, arp_ip_target=targets)
    assert (fault.kind, fault.location) == ("bond asks a silent address", f"bond0: arp_ip_target {targets[0]}")
    assert sentence in fault.problem
    assert "cable" not in fault.problem + fault.remedy


def test_remedy_names_a_router_that_answers(tmp_path: Path) -> None:
    neighbors = f"{ROUTER} dev bond0 lladdr 52:54:00:bb:00:01 REACHABLE\n"
    (fault,) = check_bond(tmp_path, 41, True, neighbors, arp_ip_target=["10.160.7.250"])
    assert f"arp_ip_target {ROUTER}, which answers" in fault.remedy


@pytest.mark.parametrize("targets", [[ROUTER], ["10.160.7.250"], [ROUTER, "10.160.7.250"]])
def test_bond_without_lost_ports_has_no_fault(tmp_path: Path, targets: list[str]) -> None:
    assert check_bond(tmp_path, 0, False, arp_ip_target=targets) == ()


def test_one_silent_target_counts_where_all_must_answer(tmp_path: Path) -> None:
    targets = [ROUTER, "10.99.0.1"]
    assert check_bond(tmp_path / "any", 0, False, arp_ip_target=targets, arp_all_targets="any") == ()
    (fault,) = check_bond(tmp_path / "all", 0, False, arp_ip_target=targets, arp_all_targets="all")
    assert fault.location == "bond0: arp_ip_target 10.99.0.1"


def test_port_without_router_answers_is_reported(tmp_path: Path) -> None:
    (fault,) = check_bond(tmp_path, 0, True, arp_ip_target=[ROUTER])
    assert (fault.kind, fault.location) == ("bond port down", "eth3")
    assert f"gets no answer of {ROUTER} by ARP" in fault.problem
    assert "VLAN" in fault.remedy


def test_arp_interval_without_a_target_is_reported(tmp_path: Path) -> None:
    (fault,) = check_bond(tmp_path, 0, False, arp_ip_target=None)
    assert (fault.kind, fault.location) == ("bond ports not watched", "bond0")


def test_text_and_json_have_the_same_targets() -> None:
    text = (
        "5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000\n"
        "    bond mode active-backup miimon 0 updelay 0 downdelay 0 arp_interval 1000 arp_missed_max 2"
        f" arp_ip_target {ROUTER},10.160.15.2 arp_all_targets any\n"
    )
    rows = print_links()
    links = {row["ifname"]: row for row in rows}
    links["bond0"]["linkinfo"]["info_data"]["arp_ip_target"] = [ROUTER, "10.160.15.2"]
    for output in (text, json.dumps(rows)):
        options = parse_host_tables(output, "addr").link_details["bond0"].bond_options
        assert options["arp_ip_target"] == f"{ROUTER},10.160.15.2"
