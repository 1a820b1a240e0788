# SPDX-License-Identifier: Apache-2.0
"""Options, ports and counters of bonds and their VLANs, in text and in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bond_links import print_links
from dual_stack_host import ADDRESSES, VLAN, check_outputs, print_server_outputs

from sonde.design.routes.faults import RouteFault
from sonde.design.routes.table_reader import parse_host_tables

TEXT_OPTIONS = (
    "    bond mode active-backup miimon 100 updelay 0 downdelay 0 use_carrier 1 arp_interval 0 xmit_hash_policy layer2"
    " resend_igmp 1 num_grat_arp 1 all_slaves_active 0 min_links 0 lp_interval 1\n"
)


def check_links(folder: Path, edit: Callable[[dict[str, dict[str, Any]]], object]) -> tuple[RouteFault, ...]:
    """The faults after a change of the links, which are given by name."""
    rows = print_links()
    edit({row["ifname"]: row for row in rows})
    return check_outputs(folder, print_server_outputs() | {"addr": json.dumps(rows)}).faults


def set_option(**options: object) -> Callable[[dict[str, dict[str, Any]]], object]:
    return lambda links: links["bond0"]["linkinfo"]["info_data"].update(options)


def set_counters(**counters: int) -> Callable[[dict[str, dict[str, Any]]], object]:
    """Counters of a port by their names in the kernel, beside 10^9 packets in each direction."""

    def count(links: dict[str, dict[str, Any]]) -> None:
        rows = {direction: {"packets": 10**9, "errors": 0, "dropped": 0} for direction in ("rx", "tx")}
        for name, value in counters.items():
            rows[name[:2]][name[3:]] = value
        links["eth3"]["stats64"] = rows

    return count


def test_healthy_bond_has_no_fault(tmp_path: Path) -> None:
    assert check_links(tmp_path / "silent", lambda links: None) == ()
    assert check_links(tmp_path / "some", set_counters(rx_errors=40, rx_over_errors=5000, tx_carrier_errors=9)) == ()
    assert check_links(tmp_path / "drops", set_counters(rx_dropped=50_000_000, tx_dropped=2_000_000)) == ()


@pytest.mark.parametrize(
    ("edit", "fault_kind", "location", "expected_sentence"),
    [
        (set_option(xmit_hash_policy="layer2"), "bond hash by address", "bond0", "xmit_hash_policy layer2"),
        (set_option(mode="active-backup", num_peer_notif=0), "bond change not announced", "bond0", "num_grat_arp 0"),
        (set_option(miimon=60000), "dead ports are noticed late", "bond0", "60000 ms after its link has failed"),
        (set_option(downdelay=20000), "dead ports are noticed late", "bond0", "(downdelay)"),
        (set_option(min_links=3), "bond needs more ports", "bond0", "3 ports are up (min_links), and it has 2"),
        (set_option(all_slaves_active=1), "packets received twice", "bond0", "all_slaves_active"),
        (lambda links: links["eth3"]["linkinfo"]["info_slave_data"].update(ad_actor_oper_port_state=7),
         "bond port not used", "eth3", "send by eth3 (not distributing)"),
        (set_counters(rx_errors=450_000), "packets arrive broken", "eth3", "450000 of 1000000000 packets"),
        (set_counters(rx_errors=90_000, rx_missed_errors=90_000), "packets dropped early", "eth3", "ring of eth3"),
        (set_counters(tx_carrier_errors=90_000), "packets not sent", "eth3", "no carrier"),
        (set_counters(tx_dropped=12_000_000), "packets not sent", "eth3", "(tx dropped), for one of several reasons"),
        (set_counters(rx_dropped=150_000_000), "received packets dropped", "eth3", "150000000 of 1000000000 packets"),
        (set_counters(tx_collisions=90_000), "half duplex", "eth3", "90000 collisions"),
    ],
)  # fmt: skip
def test_fault_of_a_bond_is_reported(
    tmp_path: Path,
    edit: Callable[[dict[str, dict[str, Any]]], object],
    fault_kind: str,
    location: str,
    expected_sentence: str,
) -> None:
    (fault,) = check_links(tmp_path, edit)
    assert (fault.kind, fault.location) == (fault_kind, location)
    assert expected_sentence in fault.problem


def release(*names: str) -> Callable[[dict[str, dict[str, Any]]], object]:
    def edit(links: dict[str, dict[str, Any]]) -> None:
        for name in names:
            del links[name]["master"], links[name]["linkinfo"]
            links[name]["flags"].remove("SLAVE")
        if len(names) > 1:
            links["bond0"]["flags"].remove("LOWER_UP")
            links["bond0"]["operstate"] = "DOWN"

    return edit


@pytest.mark.parametrize(
    ("names", "fault_kind"), [(("eth3",), "bond with one port"), (("eth2", "eth3"), "bond without ports")]
)
def test_bond_without_its_ports_is_one_fault(tmp_path: Path, names: tuple[str, ...], fault_kind: str) -> None:
    faults = check_links(tmp_path, release(*names))
    assert [(fault.kind, fault.location) for fault in faults] == [(fault_kind, "bond0")]


def test_single_port_without_a_spare_is_no_fault(tmp_path: Path) -> None:
    def edit(links: dict[str, dict[str, Any]]) -> None:
        release("eth3")(links)
        links["eth3"]["flags"].remove("LOWER_UP")
        links["eth3"]["operstate"] = "DOWN"

    assert check_links(tmp_path, edit) == ()


def test_duplicate_link_local_address_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    old = "inet6 fe80::5054:ff:fea0:1/64 scope link"
    assert old in outputs["addr"]
    outputs["addr"] = outputs["addr"].replace(old, f"{old} dadfailed tentative")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("address not usable", "bond0: fe80::5054:ff:fea0:1")


def test_vlan_on_a_port_of_its_bond_is_reported(tmp_path: Path) -> None:
    outputs = print_server_outputs(VLAN)
    outputs["addr"] = outputs["addr"].replace("bond0.210@bond0", "bond0.210@eth2")
    (fault,) = check_outputs(tmp_path, outputs, device=VLAN).faults
    assert (fault.kind, fault.location) == ("VLAN on another device", VLAN)
    assert fault.problem == (
        "bond0.210 is on eth2, not on bond0, of which eth2 is a port: its packets use this port only"
    )


def test_text_of_a_bond_has_the_same_options(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    head = "5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP qlen 1000\n"
    for name, options, kinds in (
        ("sound", TEXT_OPTIONS, []),
        ("wrong", TEXT_OPTIONS.replace("num_grat_arp 1", "num_grat_arp 0"), ["bond change not announced"]),
        ("rare", TEXT_OPTIONS.replace("miimon 100", "miimon 9000"), ["dead ports are noticed late"]),
    ):
        text = outputs["addr"].replace(head, head + options)
        assert text != outputs["addr"]
        faults = check_outputs(tmp_path / name, outputs | {"addr": text}).faults
        assert [fault.kind for fault in faults] == kinds


def test_text_of_counters_is_read() -> None:
    text = ADDRESSES.replace(
        "3: eth2",
        "    RX:  bytes packets errors dropped  missed   mcast\n    900000000  100000  3 0 5000 7\n"
        "    TX:  bytes packets errors dropped carrier collsns\n    900000000  200000  0 0 12 2000\n3: eth2",
    )
    counters = parse_host_tables(text, "addr").link_details["mgmt"].counters
    assert (counters["rx_packets"], counters["rx_missed_errors"]) == (100_000, 5000)
    assert (counters["tx_carrier_errors"], counters["tx_collsns"]) == (12, 2000)
