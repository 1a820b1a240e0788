# SPDX-License-Identifier: Apache-2.0
"""Rules of arptables and of the family arp of nft, which are no rules of IP."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs, print_server_outputs

ARPTABLES = "*filter\n:INPUT ACCEPT\n:OUTPUT {}\n{}COMMIT\n"
NFT = """table arp filter {{
	chain input {{
		type filter hook input priority filter; policy {};
		{}
	}}
}}
"""
EBTABLES = "*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT ACCEPT\n-A INPUT -p IPv4 -i eth0 --ip-proto tcp -j DROP\n"


@pytest.mark.parametrize("text", [
    ARPTABLES.format("DROP", ""),
    ARPTABLES.format("ACCEPT", "-A INPUT -i bond0 --h-length 6 --h-type 1 -j DROP\n"),
    ARPTABLES.format("ACCEPT", "-A INPUT -j DROP -s 10.160.15.1 --h-length 6 --opcode 2 --h-type 1\n"),
    NFT.format("drop", ""), NFT.format("accept", 'iifname "bond0" arp operation reply drop'),
    NFT.format("accept", "arp saddr ip 10.160.15.0/24 drop"),
    NFT.format("accept", "arp htype 1 arp ptype ip arp operation request arp daddr ip 10.160.0.1 drop"),
])  # fmt: skip
def test_rule_that_drops_arp_of_routers_is_reported(tmp_path: Path, text: str) -> None:
    (fault,) = check_outputs(tmp_path, print_server_outputs() | {"arptables-save": text}).faults
    assert fault.kind == "ARP dropped"
    assert "10.160.15.1" in fault.problem


@pytest.mark.parametrize("text", [
    ARPTABLES.format("ACCEPT", ""), ARPTABLES.format("ACCEPT", "-A INPUT -i mgmt -j DROP\n"),
    ARPTABLES.format("ACCEPT", "-A OUTPUT -s 10.99.0.1 -o bond0 --h-length 6 -j DROP\n"),
    NFT.format("accept", 'iifname "mgmt" drop'), NFT.format("accept", "arp saddr ip 10.160.15.9 drop"),
])  # fmt: skip
def test_rule_for_other_arp_packets_is_no_fault(tmp_path: Path, text: str) -> None:
    assert check_outputs(tmp_path, print_server_outputs() | {"arptables-save": text}).faults == ()


def test_rules_of_a_router_are_compared_with_hosts(tmp_path: Path) -> None:
    text = ARPTABLES.format("ACCEPT", "-A INPUT -s 10.150.0.7 -j DROP\n")
    faults = check_outputs(tmp_path, {"arptables-save": text, "sysctl": "net.ipv4.ip_forward = 1\n"}, "gw1").faults
    (problem,) = [fault.problem for fault in faults if fault.kind == "ARP dropped"]
    assert problem.startswith("requests or answers of ARP with 10.150.0.7 are dropped")


def test_rules_of_ebtables_are_not_understood(tmp_path: Path) -> None:
    verdict = check_outputs(tmp_path, print_server_outputs() | {"ebtables-save": EBTABLES})
    assert verdict.faults == ()
    assert verdict.not_understood == ("ebtables-save has rules for bridged packets, which no check reads",)


def test_bridge_tables_of_nft_are_not_understood(tmp_path: Path) -> None:
    bridge = (
        "table bridge site {\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n"
    )
    for folder, text in (("alone", bridge), ("both", f"table inet site {{\n\tchain a {{\n\t}}\n}}\n{bridge}")):
        verdict = check_outputs(tmp_path / folder, print_server_outputs() | {"nft": text})
        assert verdict.faults == ()
        assert verdict.not_understood == ("nft has rules for bridged packets, which no check reads",)
