# SPDX-License-Identifier: Apache-2.0
"""Permanent link addresses of the ports of a bond, and files that name interfaces by link addresses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

from sonde.design.routes.table_reader import parse_host_tables, read_host_sources

BOND, PORT, OLD = "52:54:00:a0:00:01", "52:54:00:a0:00:77", "0c:42:a1:5e:77:10"
SCRIPT = "DEVICE=eth2\nHWADDR={}\nMASTER=bond0\nSLAVE=yes\nONBOOT=yes\nBOOTPROTO=none\n"
BONDING = """Ethernet Channel Bonding Driver: v6.12.0

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
MII Status: up

Slave Interface: eth2
MII Status: up
Permanent HW addr: {}
Slave queue ID: 0

Slave Interface: eth3
MII Status: up
Permanent HW addr: 52:54:00:a0:00:78
"""
UDEV = '# names\nSUBSYSTEM=="net", ACTION=="add", DRIVERS=="?*", ATTR{{address}}=="{}", ATTR{{type}}=="1", NAME="{}"\n'
LINK = "[Match]\nPermanentMACAddress={}\n\n[Link]\nName={}\n"


def add_port_line(outputs: dict[str, str], address: str = PORT) -> dict[str, str]:
    """The outputs with the permanent address of eth2 as `ip -d addr` prints it of a port."""
    line = f"link/ether {BOND} brd ff:ff:ff:ff:ff:ff"
    port = f"{line}\n    bond_slave state ACTIVE mii_status UP link_failure_count 0 perm_hwaddr {address} queue_id 0"
    return outputs | {"addr": outputs["addr"].replace(line, port, 1)}


def check_script(folder: Path, outputs: dict[str, str], address: str) -> list[str]:
    faults = check_outputs(folder, outputs | {"ifcfg-eth2": SCRIPT.format(address)}).faults
    return [f"{fault.location}: {fault.problem}" for fault in faults]


@pytest.mark.parametrize("source", ["ip -d", "proc", "ethtool -P"])
def test_file_for_a_replaced_port_of_a_bond_is_reported(tmp_path: Path, source: str) -> None:
    outputs = print_server_outputs()
    if source == "ip -d":
        outputs = add_port_line(outputs)
    elif source == "proc":
        outputs["proc-net-bonding-bond0"] = BONDING.format(PORT.upper())
    else:
        outputs["ethtool-P-eth2"] = f"Permanent address: {PORT}\n"
    assert check_script(tmp_path / "right", outputs, PORT.upper()) == []
    (text,) = check_script(tmp_path / "wrong", outputs, OLD.upper())
    assert text.startswith(f"ifcfg-eth2, HWADDR: the file is for the link address {OLD}, which no interface")
    assert f"eth2 has {PORT}" in text
    assert text.endswith("and then bond0 lacks this port")


def test_permanent_address_of_a_port_is_read_from_json() -> None:
    row = {"ifname": "eth2", "flags": ["UP", "SLAVE"], "address": BOND, "addr_info": [],
           "linkinfo": {"info_slave_kind": "bond", "info_slave_data": {"perm_hwaddr": PORT}}}  # fmt: skip
    zeros = {"ifname": "v0", "address": BOND, "addr_info": [], "permaddr": "00:00:00:00:00:00"}
    details = parse_host_tables(json.dumps([row, zeros]), "addr.json").link_details
    assert (details["eth2"].permanent_address, details["v0"].permanent_address) == (PORT, "")


@pytest.mark.parametrize(("name", "form"), [("70-persistent-net.rules", UDEV), ("10-port.link", LINK)])
@pytest.mark.parametrize(("address", "device", "expected_text"), [
    (OLD, "eth2", "which no interface of this host has (an adapter that was replaced?)"),
    ("52:54:00:a0:00:78", "eth2", "that of eth3, which then becomes eth2"),
    (PORT, "eth7", "which is eth2 now, the name eth7"),
    (PORT.upper(), "eth2", ""),
    (OLD, "eth9", ""),  # the line of a replaced adapter whose name is not used
])  # fmt: skip
def test_name_by_the_link_address_of_another_adapter(
    tmp_path: Path, name: str, form: str, address: str, device: str, expected_text: str
) -> None:
    outputs = print_server_outputs() | {"bonding": BONDING.format(PORT), name: form.format(address, device)}
    faults = check_outputs(tmp_path, outputs).faults
    assert [fault.kind for fault in faults] == (["interface renamed at the start"] if expected_text else [])
    assert all(expected_text in fault.problem for fault in faults)


def test_unknown_address_of_a_port_is_compared_with_no_name(tmp_path: Path) -> None:
    outputs = print_server_outputs() | {"70-net.rules": UDEV.format(OLD, "eth2")}
    assert check_outputs(tmp_path, outputs).faults == ()


@pytest.mark.parametrize("name", ["ifcfg-bond0", "50-bond0.network", "90-site.conf"])
def test_live_outputs_count_for_options_of_a_file(tmp_path: Path, name: str) -> None:
    texts = {"ifcfg-bond0": "DEVICE=bond0\nONBOOT=yes\nMTU=9000\n",
             "50-bond0.network": "[Match]\nName=bond0\n\n[Link]\nMTUBytes=9000\n",
             "90-site.conf": "net.ipv4.fib_multipath_hash_policy = 1\n"}  # fmt: skip
    alone = check_outputs(tmp_path / "alone", print_server_outputs()).not_compared
    assert check_outputs(tmp_path / "both", print_server_outputs() | {name: texts[name]}).not_compared == alone


def test_bracket_without_an_end_is_an_error_of_ip(tmp_path: Path) -> None:
    outputs = print_server_outputs() | {"rule-6.json": "[\n"}
    files = [tmp_path / name for name in outputs]
    for file in files:
        file.write_text(outputs[file.name])
    (text,) = read_host_sources(files, required_files=()).live.unread_files
    assert "rule-6.json has an opening bracket only: ip stopped there with an error" in text


def test_ethtool_output_below_a_comment_is_read() -> None:
    text = "# of node 7\n\n# second\nRing parameters for eth2:\nPre-set maximums:\nRX:\t\t8192\n"
    assert parse_host_tables(text, "ethtool-g").adapters == {"eth2": {"maximum ring RX": "8192"}}
