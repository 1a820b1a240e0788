# SPDX-License-Identifier: Apache-2.0
"""Link addresses of neighbors: fixed, shared and wrong ones, on a router and between two hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import build_site, check_outputs, print_server_outputs

from sonde.design.routes.check_host import check_host
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError

ADDRESSES = """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    link/ether 52:54:00:96:00:02 brd ff:ff:ff:ff:ff:ff
    inet 10.150.255.2/16 scope global hsn0
    inet6 fd00:150::f002/64 scope global
3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    link/ether 52:54:00:a0:ff:02 brd ff:ff:ff:ff:ff:ff
    inet 10.160.15.2/20 scope global eth0
    inet6 fd00:160::f002/64 scope global
"""
SYSCTL = "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\n"
SERVER = "10.160.0.1 dev eth0 lladdr 52:54:00:a0:00:01"
CLIENT = "10.150.0.7 dev hsn0 lladdr 52:54:00:96:00:77"
# Neighbors that a router has without a mistake: hosts, another router, and a host that the plan does not have.
NEIGHBORS = f"""{SERVER} REACHABLE
{CLIENT} STALE
10.150.0.9 dev hsn0 FAILED
10.150.255.1 dev hsn0 lladdr 52:54:00:96:00:01 DELAY
10.150.99.99 dev hsn0 lladdr 52:54:00:96:99:99 PERMANENT
fd00:160::1 dev eth0 lladdr 52:54:00:a0:00:01 STALE
"""


def check_router(folder: Path, neighbors: str) -> RouteCheck:
    return check_outputs(folder, {"addr": ADDRESSES, "sysctl": SYSCTL, "neigh": neighbors}, "gw2")


def test_neighbors_of_a_healthy_router_have_no_fault(tmp_path: Path) -> None:
    verdict = check_router(tmp_path, NEIGHBORS)
    assert verdict.faults == ()
    compared = [item.location for item in verdict.comparisons if item.subject == "the link addresses of neighbors"]
    assert compared == ["hsn", "storage-net"]


@pytest.mark.parametrize(
    ("old", "new", "fault_kind", "location", "expected_sentence"),
    [
        (f"{SERVER} REACHABLE", f"{SERVER} PERMANENT", "fixed neighbor", "10.160.0.1",
         "has fixed nsd1 (10.160.0.1) to 52:54:00:a0:00:01 (permanent)"),
        ("7 dev hsn0 lladdr 52:54:00:96:00:77", "7 dev hsn0 lladdr 52:54:00:96:00:01", "two hosts, one link address",
         "10.150.0.7, 10.150.255.1", "both have 52:54:00:96:00:01"),
        ("52:54:00:96:00:77", "52:54:00:A0:FF:02", "host with the own link address", "10.150.0.7",
         "nid07 (10.150.0.7) has the link address of eth0"),
        ("10.150.0.7 dev hsn0", "10.150.0.7 dev eth0", "wrong device", "10.150.0.7", "answered on eth0"),
    ],
)  # fmt: skip
def test_wrong_neighbor_of_a_router_is_one_fault(
    tmp_path: Path, old: str, new: str, fault_kind: str, location: str, expected_sentence: str
) -> None:
    assert old in NEIGHBORS
    (fault,) = check_router(tmp_path, NEIGHBORS.replace(old, new)).faults
    assert (fault.kind, fault.location) == (fault_kind, location)
    assert expected_sentence in fault.problem


def test_fixed_neighbors_of_a_script_are_one_fault(tmp_path: Path) -> None:
    lines = "".join(
        f"10.150.0.{number} dev hsn0 lladdr 52:54:00:96:01:{number:02} PERMANENT\n" for number in range(1, 7)
    )
    (fault,) = check_router(tmp_path, NEIGHBORS.replace(CLIENT, "10.150.77.1 dev hsn0") + lines).faults
    assert fault.location == "10.150.0.1, 10.150.0.2, 10.150.0.3, …"
    assert "and 3 further entries: after an interface is replaced" in fault.problem


@pytest.mark.parametrize(("link_address", "state", "kinds"), [
    ("52:54:00:a0:00:01", "REACHABLE", []), ("52:54:00:A0:00:01", "STALE", []),
    ("52:54:00:a0:00:03", "STALE", ["wrong link address"]),
    ("52:54:00:a0:00:03", "PERMANENT", ["wrong link address"]), ("52:54:00:a0:00:01", "PERMANENT", ["fixed neighbor"]),
])  # fmt: skip
def test_neighbor_is_compared_with_the_other_side(link_address: str, state: str, kinds: list[str]) -> None:
    neighbors = f"10.160.0.1 dev eth0 lladdr {link_address} {state}\n"
    outputs = [parse_host_tables(text, name) for name, text in (("addr", ADDRESSES), ("neigh", neighbors))]
    router = outputs[0].merge_tables(outputs[1]).merge_tables(parse_host_tables(SYSCTL, "sysctl"))
    server = parse_host_tables(print_server_outputs()["addr"], "addr")
    faults = check_host(build_site(), "gw2", router, server).faults
    assert [fault.kind for fault in faults] == kinds
    assert kinds != ["wrong link address"] or "but it is at 52:54:00:a0:00:01 on bond0" in faults[0].problem


def test_router_as_the_other_side_shows_its_link_addresses(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["neigh"] = "10.160.15.2 dev bond0 lladdr 52:54:00:a0:ff:99 STALE\n"
    server = parse_host_tables("", "neigh")
    for name, text in outputs.items():
        server = server.merge_tables(parse_host_tables(text, name))
    verdict = check_host(build_site(), "nsd1", server, parse_host_tables(ADDRESSES, "addr"))
    assert [(fault.kind, fault.location) for fault in verdict.faults] == [("wrong link address", "10.160.15.2")]
    assert "how hsn answers by IPv4: the files of --other-side are of the router gw2" in verdict.unknown


@pytest.mark.parametrize("text", ["", "\n", "[ ]\n", "[]"])
@pytest.mark.parametrize("name", ["neigh", "ip-neigh.json", "nid01.neighbors"])
def test_empty_list_of_neighbors_is_no_unknown_list(tmp_path: Path, name: str, text: str) -> None:
    outputs = print_server_outputs()
    assert "neighbors" in check_outputs(tmp_path, outputs).unknown
    verdict = check_outputs(tmp_path, {**outputs, name: text})
    assert "neighbors" not in verdict.unknown
    assert verdict.faults == ()


@pytest.mark.parametrize("name", ["nexthop", "ip-nexthop.txt"])
def test_empty_list_of_next_hops_is_accepted(tmp_path: Path, name: str) -> None:
    """`ip nexthop` prints no line on a host without next-hop objects."""
    assert check_outputs(tmp_path, {**print_server_outputs(), name: ""}).faults == ()


def test_empty_file_of_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="route4"):
        check_outputs(tmp_path, {"route4": "\n"})
