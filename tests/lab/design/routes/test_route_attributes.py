# SPDX-License-Identifier: Apache-2.0
"""Every attribute that `ip route` prints is read: those that the plan does not set are reported or listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables


def print_with_attribute(attribute: str) -> dict[str, str]:
    """The outputs of the server, whose table 2 has a route with an attribute."""
    outputs = print_server_outputs()
    old = "table 2 mtu 9000 via 10.160.15.2"
    assert old in outputs["route"]
    new = old.replace("mtu 9000", attribute if attribute.startswith("mtu") else f"mtu 9000 {attribute}")
    outputs["route"] = outputs["route"].replace(old, new)
    return outputs


@pytest.mark.parametrize(("attribute", "expected_text"), [
    ("initcwnd 4", "initcwnd of 4"), ("initrwnd 9", "initrwnd of 9"), ("cwnd lock 4", "cwnd of 4"),
    ("ssthresh 3", "ssthresh of 3"), ("rto_min 1s", "least timeout of 1 s"), ("rto_min lock 300ms", "0.3 s"),
    ("rtt 2s", "first timeout of 2 s"), ("reordering 1", "reordering of 1"), ("window 65535", "window of 65535 B"),
    ("congctl lock vegas", "congestion control vegas"),
])  # fmt: skip
def test_limiting_attribute_is_reported(tmp_path: Path, attribute: str, expected_text: str) -> None:
    (fault,) = check_outputs(tmp_path, print_with_attribute(attribute)).faults
    assert fault.kind == "connections limited"
    assert expected_text in fault.problem


@pytest.mark.parametrize("attribute", [
    "quickack 1", "features ecn", "mtu lock 9000", "encap ip id 3 src 0.0.0.0 dst 10.160.15.9 ttl 0 tos 0",
    "fastopen_no_cookie 1",
])  # fmt: skip
def test_changing_attribute_is_reported(tmp_path: Path, attribute: str) -> None:
    (fault,) = check_outputs(tmp_path, print_with_attribute(attribute)).faults
    assert fault.kind == "attribute not planned"
    assert attribute in fault.problem


@pytest.mark.parametrize("attribute", ["initcwnd 32", "realm 5", "rto_min 5ms", "newword 7"])
def test_harmless_attribute_is_not_examined(tmp_path: Path, attribute: str) -> None:
    verdict = check_outputs(tmp_path, print_with_attribute(attribute))
    assert verdict.faults == ()
    assert f"{attribute} of the route to 10.150.0.0/16 in table 2" in verdict.not_examined


def test_json_of_attributes_equals_their_text() -> None:
    text = ("10.2.0.0/16 via 10.1.0.1 dev eth0 realm 5 mtu 1400 window 1000 rtt 2s ssthresh 3 cwnd 4 features ecn"
            " rto_min 1s congctl cubic")  # fmt: skip
    metrics = {"mtu": 1400, "window": 1000, "rtt": 2000, "ssthresh": 3, "cwnd": 4, "ecn": None, "rto_min": 1000,
               "congestion": "cubic"}  # fmt: skip
    row = {"dst": "10.2.0.0/16", "gateway": "10.1.0.1", "dev": "eth0", "flags": [], "flow": "5", "metrics": [metrics]}
    (from_text,) = parse_host_tables(text, "routes").routes or ()
    (from_json,) = parse_host_tables(json.dumps([row]), "routes").routes or ()
    in_ms = {"rtt": "2000ms", "rto_min": "1000ms"}
    assert dict(from_json.attributes) == dict(from_text.attributes) | in_ms
    assert from_json.mtu == from_text.mtu == 1400


def test_routes_of_next_hop_objects_are_read() -> None:
    text = ("unicast 10.2.0.0/16 nhid 7 proto boot scope global\n\tnh_info id 7 group 5/6 scope global proto unspec\n"
            "\tnexthop via 10.1.0.9 dev eth0 weight 1\n\tnexthop via 10.1.0.8 dev eth0 weight 2\n")  # fmt: skip
    (route,) = parse_host_tables(text, "routes").routes or ()
    assert [(hop.via, hop.weight) for hop in route.hops] == [("10.1.0.9", 1), ("10.1.0.8", 2)]
    assert parse_host_tables("id 5 via 10.1.0.9 dev eth0 scope link\n", "nexthops").routes is None


def test_destination_of_an_encapsulation_is_ignored() -> None:
    row = ('{"dst":"10.6.0.0/16","encap":"ip","id":3,"src":"0.0.0.0","dst":"10.1.0.9","ttl":0,"tos":0,'
           '"gateway":"10.1.0.1","dev":"eth0","flags":[]}')  # fmt: skip
    (route,) = parse_host_tables(f"[{row}]", "routes").routes or ()
    assert (route.destination, route.service) == ("10.6.0.0/16", "")


@pytest.mark.parametrize(("setting", "setting_value", "fault_kind"), [
    ("ip_local_port_range", "900 60999", "ports of storage taken"),
    ("ip_local_port_range", "1024 65535", None),
    ("ip_local_reserved_ports", "988,32768-60000", "few local ports"),
    ("ip_local_reserved_ports", "988,2049", None),
    ("ip_unprivileged_port_start", "80", "privileged ports open"),
    ("ip_unprivileged_port_start", "1024", None),
])  # fmt: skip
def test_local_ports_are_checked(tmp_path: Path, setting: str, setting_value: str, fault_kind: str | None) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += f"net.ipv4.ip_local_port_range = 32768 60999\nnet.ipv4.{setting} = {setting_value}\n"
    faults = check_outputs(tmp_path, outputs).faults
    assert [(fault.kind, fault.location) for fault in faults] == (
        [(fault_kind, f"net.ipv4.{setting} = {setting_value}")] if fault_kind else []
    )


def test_reserved_ports_free_the_range(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    outputs["sysctl"] += "net.ipv4.ip_local_port_range = 900 60999\nnet.ipv4.ip_local_reserved_ports = 900-1023\n"
    assert check_outputs(tmp_path, outputs).faults == ()
