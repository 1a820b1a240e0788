# SPDX-License-Identifier: Apache-2.0
"""A server whose addresses are on a VLAN above a bond: what carries the packets, and addresses on several devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import VLAN, check_outputs, print_server_outputs

from sonde.design.routes.kernel_tables import make_link_details
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
    ("old", "new", "fault_kind", "location", "expected_sentence"),
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
    tmp_path: Path, old: str, new: str, fault_kind: str, location: str, expected_sentence: str
) -> None:
    outputs = print_server_outputs(VLAN)
    assert old in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(old, new)
    faults = [fault for fault in check_outputs(tmp_path, outputs, device=VLAN).faults if fault.location == location]
    assert [fault.kind for fault in faults] == [fault_kind]
    assert expected_sentence in faults[0].problem


@pytest.mark.parametrize(("count", "expected_kinds"), [(4711, ["bond port unstable"]), (2, [])])
def test_port_that_lost_its_link_often_is_reported(tmp_path: Path, count: int, expected_kinds: list[str]) -> None:
    outputs = print_server_outputs(VLAN)
    old = "    link/ether 52:54:00:a0:00:01 brd ff:ff:ff:ff:ff:ff\n4: eth3"
    state = (
        f"    bond_slave state ACTIVE mii_status UP link_failure_count {count} perm_hwaddr 52:54:00:a0:00:01 queue_id 0"
    )
    assert old in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(old, old.replace("4: eth3", f"{state}\n4: eth3"))
    faults = check_outputs(tmp_path, outputs, device=VLAN).faults
    assert [(fault.kind, fault.location) for fault in faults] == [(kind, "eth2") for kind in expected_kinds]


def test_json_shows_how_often_a_port_lost_its_link() -> None:
    row = (
        '{"ifname": "eth2", "flags": ["SLAVE", "UP"], "mtu": 9000, "master": "bond0", "addr_info": [], "linkinfo":'
        ' {"info_slave_kind": "bond", "info_slave_data": {"mii_status": "UP", "link_failure_count": 4711}}}'
    )
    assert parse_host_tables(f"[{row}]", "addr.json").link_details["eth2"].link_failures == 4711


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


BOND_LINE = "    bond mode 802.3ad miimon 100 ad_aggregator {} ad_num_ports 2 ad_actor_key 15 ad_partner_mac {} "
PORT_LINE = "    bond_slave state ACTIVE mii_status {} link_failure_count 0 perm_hwaddr 52:54:00:a0:00:03 queue_id 0 "
SWITCH, NO_SWITCH = "aa:bb:cc:00:00:01", "00:00:00:00:00:00"


@pytest.mark.parametrize(
    ("aggregators", "partner", "state", "faults"),
    [
        ((1, 1, 1), SWITCH, "UP", []),
        ((2, 2, 1), SWITCH, "UP", [("bond port not used", "eth3")]),
        ((1, 2, 1), SWITCH, "UP", [("bond port not used", "eth2")]),
        ((1, 1, 2), SWITCH, "DOWN", [("bond port down", "eth3")]),
        ((1, 1, 2), NO_SWITCH, "UP", [("bond without a partner", "bond0")]),
    ],
)
def test_port_outside_the_aggregator_is_reported(
    tmp_path: Path, aggregators: tuple[int, int, int], partner: str, state: str, faults: list[tuple[str, str]]
) -> None:
    bond, first, second = aggregators
    outputs = print_server_outputs()
    lines = outputs["addr"].splitlines()
    for device, line in (
        ("bond0:", BOND_LINE.format(bond, partner)),
        ("eth2:", f"{PORT_LINE.format('UP')}ad_aggregator_id {first} ad_actor_oper_port_state 61 "),
        ("eth3:", f"{PORT_LINE.format(state)}ad_aggregator_id {second} ad_actor_oper_port_state 61 "),
    ):
        index = next(number for number, text in enumerate(lines) if f" {device}" in text)
        lines.insert(index + 2, line)
    outputs["addr"] = "\n".join(lines) + "\n"
    verdict = check_outputs(tmp_path, outputs)
    assert [(fault.kind, fault.location) for fault in verdict.faults] == faults
    assert "the aggregator of a bond" in {item.subject for item in verdict.comparisons}


def test_json_shows_the_aggregator_of_a_bond_and_its_port() -> None:
    text = """[{"ifname": "bond0", "addr_info": [], "linkinfo": {"info_kind": "bond", "info_data": {"mode": "802.3ad",
      "ad_info": {"aggregator": 3, "num_ports": 1, "partner_mac": "aa:bb:cc:00:00:01"}}}},
     {"ifname": "eth3", "addr_info": [], "master": "bond0", "flags": ["SLAVE"], "linkinfo": {"info_slave_kind": "bond",
      "info_slave_data": {"state": "ACTIVE", "mii_status": "DOWN", "ad_aggregator_id": 2}}}]"""
    details = parse_host_tables(text, "addr.json").link_details
    assert (details["bond0"].aggregator, details["bond0"].lacp_partner) == (3, "aa:bb:cc:00:00:01")
    assert (details["eth3"].aggregator, details["eth3"].has_port_failed) == (2, True)


class Attributes(dict[str, object]):
    """A netlink message or attribute by the names that pyroute2 gives its parts."""

    def get_attr(self, name: str) -> object:
        return self.get(name)


def test_netlink_shows_the_aggregator_of_a_bond_and_its_port() -> None:
    state = Attributes(IFLA_BOND_AD_INFO_AGGREGATOR=3, IFLA_BOND_AD_INFO_PARTNER_MAC=SWITCH)
    bond = Attributes(IFLA_INFO_KIND="bond", IFLA_INFO_DATA=Attributes(IFLA_BOND_AD_INFO=state))
    data = Attributes(IFLA_BOND_SLAVE_MII_STATUS=2, IFLA_BOND_SLAVE_AD_AGGREGATOR_ID=1)
    port = Attributes(IFLA_INFO_SLAVE_KIND="bond", IFLA_INFO_SLAVE_DATA=data)
    details = [
        make_link_details(Attributes(IFLA_IFNAME=name, IFLA_LINKINFO=link, flags=0), {})
        for name, link in (("bond0", bond), ("eth3", port), ("lo", None))
    ]
    assert [(each.aggregator, each.lacp_partner, each.has_port_failed) for each in details] == [
        (3, SWITCH, False), (1, "", True), (None, "", False)
    ]  # fmt: skip
