# SPDX-License-Identifier: Apache-2.0
"""A server whose addresses are on a VLAN above a bond: what carries the packets, and addresses on several devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import VLAN, check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables

BOND = "bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu"
PORT = "eth2: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu"


def test_healthy_server_with_a_vlan_has_no_fault(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, print_server_outputs(VLAN), device=VLAN)
    assert verdict.faults == ()
    compared = {(item.subject, item.location) for item in verdict.comparisons}
    assert {("the number of a VLAN", VLAN), ("a port of a bond", "eth3"), ("the queue of the interface", "bond0")} <= (
        compared
    )
    assert not any("accept_redirects" in text for text in verdict.not_compared), "sysctl prints bond0/210"


@pytest.mark.parametrize(
    ("old", "new", "kind", "location", "sentence"),
    [
        ("id 210 <", "id 211 <", "another VLAN", VLAN, "VLAN 211, not 210"),
        ("protocol 802.1Q", "protocol 802.1ad", "another VLAN", VLAN, "tags its packets by 802.1ad"),
        (f"{BOND} 9000 qdisc noqueue", f"{BOND} 9000 qdisc tbf", "interface slowed down", "bond0", "is tbf"),
        (f"{PORT} 9000 qdisc mq", f"{PORT} 9000 qdisc netem", "interface slowed down", "eth2", "is netem"),
        (f"{BOND} 9000", f"{BOND} 1500", "MTU mismatch", "bond0", "carries bond0.210, takes packets of 1500 B"),
        (f"{PORT} 9000", f"{PORT} 1500", "MTU mismatch", "eth2", "a port of bond0, takes packets of 1500 B"),
        ("6: bond0.210", "    inet 10.160.0.1/20 scope global bond0\n6: bond0.210", "address on two interfaces",
         "10.160.0.1", "bond0 has 10.160.0.1 too, besides bond0.210"),
    ],
)  # fmt: skip
def test_fault_below_a_vlan_is_reported_once(
    tmp_path: Path, old: str, new: str, kind: str, location: str, sentence: str
) -> None:
    outputs = print_server_outputs(VLAN)
    assert old in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(old, new)
    faults = [fault for fault in check_outputs(tmp_path, outputs, device=VLAN).faults if fault.location == location]
    assert [fault.kind for fault in faults] == [kind]
    assert sentence in faults[0].problem


def test_json_shows_the_vlan_and_both_devices() -> None:
    row = (
        '{"ifname": "%s", "flags": ["UP"], "mtu": 9000, "link": "bond0", "addr_info": '
        '[{"family": "inet", "local": "10.160.0.1", "prefixlen": 20}], '
        '"linkinfo": {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": 211, "flags": ["REORDER_HDR"]}}}'
    )
    tables = parse_host_tables(f"[{row % VLAN},{row % 'bond1.210'}]", "addr.json")
    assert (tables.link_details[VLAN].parent, tables.link_details[VLAN].vlan) == ("bond0", 211)
    assert tables.address_devices == {"10.160.0.1": (VLAN, "bond1.210")}
    assert tables.list_devices_with_address("10.160.0.1", ["bond1.210"]) == ("bond1.210",)


def test_dots_in_a_device_name_are_no_levels(tmp_path: Path) -> None:
    outputs = print_server_outputs(VLAN)
    wrong = "net.ipv4.conf.bond0.210.rp_filter"
    outputs["90-routes.conf"] = f"{wrong} = 2\nnet.ipv4.conf.bond0/210.accept_redirects = 0\n"
    (fault,) = check_outputs(tmp_path, outputs, device=VLAN).faults
    assert (fault.kind, fault.location) == ("setting not applied", f"{wrong} in the configuration files")
    assert fault.remedy == "write net.ipv4.conf.bond0/210.rp_filter"
    outputs["sysctl"] = (
        outputs["sysctl"]
        .replace("bond0/210.rp_filter = 2", "bond0/210.rp_filter = 1")
        .replace("net.ipv4.conf.all.rp_filter = 2", "net.ipv4.conf.all.rp_filter = 0")
    )
    del outputs["90-routes.conf"]
    faults = [fault for fault in check_outputs(tmp_path, outputs, device=VLAN).faults if "rp_filter" in fault.location]
    assert "net.ipv4.conf.bond0/210.rp_filter = 1" in [fault.location for fault in faults], "sysctl takes it so"
