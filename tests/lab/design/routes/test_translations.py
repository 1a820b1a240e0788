# SPDX-License-Identifier: Apache-2.0
"""Rules of nat that lead planned connections elsewhere, on hosts and routers."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import build_site, check_outputs, print_server_outputs

from sonde.design.routes.check_router import check_router_tables
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.table_reader import parse_host_tables

IPTABLES = """*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
{}
COMMIT
"""
NFT = """table ip nat {{
	chain prerouting {{
		type nat hook prerouting priority dstnat; policy accept;
		{}
	}}
	chain output {{
		type nat hook output priority -100; policy accept;
		{}
	}}
	chain postrouting {{
		type nat hook postrouting priority srcnat; policy accept;
		{}
	}}
}}
"""


def check_server(folder: Path, text: str) -> tuple[RouteFault, ...]:
    return check_outputs(folder, print_server_outputs() | {"firewall": text}).faults


@pytest.mark.parametrize("text", [
    IPTABLES.format("-A PREROUTING -p tcp -m tcp --dport 1191 -j REDIRECT --to-ports 11911"),
    IPTABLES.format("-A PREROUTING -d 10.160.0.1/32 -j DNAT --to-destination 10.160.0.9"),
    IPTABLES.format("-A OUTPUT -d 10.150.0.0/16 -p tcp -m tcp --dport 2049 -j DNAT --to-destination 127.0.0.1:2050"),
    IPTABLES.format("-A PREROUTING -d 10.160.0.1/32 -j NETMAP --to 10.160.1.0/24"),
    NFT.format("tcp dport 1191 redirect to :11911", "", ""),
    NFT.format("iifname \"bond0\" tcp dport { 988, 1191 } dnat to 192.168.9.7:1191", "", ""),
    NFT.format("", "ip daddr 10.150.0.0/16 dnat to 10.150.0.9", ""),
])  # fmt: skip
def test_redirected_connections_of_a_host_are_reported(tmp_path: Path, text: str) -> None:
    (fault,) = check_server(tmp_path, text)
    assert fault.kind == "connections redirected"
    assert "get another destination" in fault.problem


@pytest.mark.parametrize(("address", "owner"), [
    ("192.168.9.7", "an address of another interface"), ("10.9.9.9", "no address of this host"),
])  # fmt: skip
@pytest.mark.parametrize("is_nft", [False, True])
def test_foreign_source_address_of_a_host_is_reported(tmp_path: Path, address: str, owner: str, is_nft: bool) -> None:
    text = NFT.format("", "", f"oifname \"bond0\" snat to {address}") if is_nft else IPTABLES.format(
        f"-A POSTROUTING -o bond0 -j SNAT --to-source {address}")  # fmt: skip
    (fault,) = check_server(tmp_path, text)
    assert fault.kind == "addresses translated"
    assert f"get the source address {address}, {owner}, instead of 10.160.0.1" in fault.problem


@pytest.mark.parametrize("line", [
    "-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DNAT --to-destination 172.17.0.2",
    "-A PREROUTING -i docker0 -j DNAT --to-destination 172.17.0.2",
    "-A PREROUTING -i bond0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80",
    "-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE", "-A POSTROUTING -o bond0 -j MASQUERADE",
    "-A POSTROUTING -o bond0 -j SNAT --to-source 10.160.0.1", "-A POSTROUTING -o mgmt -j SNAT --to-source 10.9.9.9",
])  # fmt: skip
def test_usual_translations_of_a_host_are_no_fault(tmp_path: Path, line: str) -> None:
    assert check_server(tmp_path, IPTABLES.format(line)) == ()


@pytest.mark.parametrize(("line", "kinds"), [
    ("-A PREROUTING -i hsn0 -p tcp --dport 1191 -j DNAT --to-destination 10.160.0.3", ["connections redirected"]),
    ("-A PREROUTING -p tcp -m tcp --dport 2049 -j REDIRECT --to-ports 2050", ["connections redirected"]),
    ("-A PREROUTING -p tcp -m tcp --dport 443 -j DNAT --to-destination 10.160.0.3", []),
])  # fmt: skip
def test_redirection_of_a_router_is_one_fault(line: str, kinds: list[str]) -> None:
    tables = parse_host_tables(IPTABLES.format(line), "iptables-save")
    faults = [item for item in check_router_tables(find_fabrics(build_site()), tables, "gw1")
              if isinstance(item, RouteFault) and item.location.startswith("iptables")]  # fmt: skip
    assert [fault.kind for fault in faults] == kinds
