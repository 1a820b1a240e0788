# SPDX-License-Identifier: Apache-2.0
"""Counters of `ethtool -S` and perfquery: many errors are a fault, few are usual."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.errors import UserError

STATISTICS = """NIC statistics:
     rx_packets: 900000000
     tx_packets: 900000000
     rx_out_of_buffer: 12
     rx_packets_phy: 900000000
     rx_crc_errors_phy: 3
     rx_discards_phy: 0
     link_down_events_phy: 2
"""
PORT_COUNTERS = """# Port counters: Lid 12 port 1 (CapMask: 0x5300)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............0
LinkErrorRecoveryCounter:........0
LinkDownedCounter:...............1
PortRcvErrors:...................0
PortXmitDiscards:................0
VL15Dropped:.....................4
PortXmitPkts:....................900000000
PortRcvPkts:.....................900000000
PortXmitWait:....................88123
"""


@pytest.mark.parametrize(("old", "new", "fault_kind", "expected_sentence"), [
    ("link_down_events_phy: 2", "link_down_events_phy: 61", "link unstable", "has lost its link 61 times"),
    ("rx_crc_errors_phy: 3", "rx_crc_errors_phy: 90000", "packets arrive broken", "90000 of 900000000 packets"),
    ("rx_out_of_buffer: 12", "rx_out_of_buffer: 90000", "packets dropped early", "90000 of 900000000 packets"),
    ("rx_discards_phy: 0", "rx_discards_phy: 90000", "packets dropped early", "the ring of eth2 was full"),
])  # fmt: skip
@pytest.mark.parametrize(("name", "head"), [("ethtool-S-eth2", ""), ("counters", "# ethtool -S eth2\n")])
def test_errors_in_counters_of_the_driver_are_reported(
    tmp_path: Path, old: str, new: str, fault_kind: str, expected_sentence: str, name: str, head: str
) -> None:
    outputs = print_server_outputs()
    assert check_outputs(tmp_path / "healthy", outputs | {name: head + STATISTICS}).faults == ()
    (fault,) = check_outputs(tmp_path / "worn", outputs | {name: head + STATISTICS.replace(old, new)}).faults
    assert (fault.kind, fault.location) == (fault_kind, "eth2")
    assert expected_sentence in fault.problem


def test_counters_of_ip_and_of_the_driver_are_one_fault(tmp_path: Path) -> None:
    outputs = print_server_outputs()
    port = "4: eth3:"
    counters = "    RX:  bytes packets errors dropped  missed   mcast\n    900 900000000 90000 0 0 0\n"
    outputs["addr"] = outputs["addr"].replace(port, f"{counters}{port}")
    outputs["ethtool-S-eth2"] = STATISTICS.replace("crc_errors_phy: 3", "crc_errors_phy: 80000")
    (fault,) = check_outputs(tmp_path, outputs).faults
    assert (fault.kind, fault.location) == ("packets arrive broken", "eth2")


def test_counters_of_an_unknown_interface_are_refused() -> None:
    with pytest.raises(UserError, match="name the file ethtool-S-DEVICE"):
        parse_host_tables(STATISTICS, "counters.txt")


@pytest.mark.parametrize(("old", "new", "kinds"), [
    ("", "", []),
    ("SymbolErrorCounter:..............0", "SymbolErrorCounter:..............65535", ["InfiniBand errors"]),
    ("LinkDownedCounter:...............1", "LinkDownedCounter:...............37", ["InfiniBand errors"]),
    ("PortRcvErrors:...................0", "PortRcvErrors:...................65535", ["InfiniBand errors"]),
    ("PortXmitDiscards:................0", "PortXmitDiscards:................65535", ["packets not sent"]),
])  # fmt: skip
def test_errors_of_an_infiniband_port_are_reported(tmp_path: Path, old: str, new: str, kinds: list[str]) -> None:
    assert old in PORT_COUNTERS
    outputs = print_server_outputs() | {"perfquery": PORT_COUNTERS.replace(old, new) if old else PORT_COUNTERS}
    faults = check_outputs(tmp_path, outputs).faults
    assert [(fault.kind, fault.location) for fault in faults] == [(kind, "Lid 12 port 1") for kind in kinds]
