# SPDX-License-Identifier: Apache-2.0
"""Rules of a router's firewall that log every packet."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import check_outputs

ROUTER = """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.150.255.2/16 scope global hsn0
    inet6 fd00:150::f002/64 scope global
3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.160.15.2/20 scope global eth0
    inet6 fd00:160::f002/64 scope global
"""
OUTPUTS = {"addr": ROUTER, "sysctl": "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\n"}
FIREWALL = """*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i hsn0 -o eth0 -j ACCEPT
-A FORWARD -i eth0 -o hsn0 -j ACCEPT
COMMIT
"""

LOG_RULE = '-A FORWARD -i hsn0 -o eth0 {}-j LOG --log-prefix "FWD: "\n'
FIRST_RULE = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
NFT = """table ip site {
	chain forward {
		type filter hook forward priority filter; policy drop;
		iifname "hsn0" oifname "eth0" LOG accept
		iifname "eth0" oifname "hsn0" accept
	}
}
"""


def test_rule_that_logs_every_packet_is_reported(tmp_path: Path) -> None:
    text = FIREWALL.replace(FIRST_RULE, LOG_RULE.format("") + FIRST_RULE)
    (fault,) = check_outputs(tmp_path / "iptables", OUTPUTS | {"iptables": text}, "gw2").faults
    assert (fault.kind, fault.location) == ("every packet logged", "iptables, line 5")
    assert "packets from hsn to storage-net are logged one by one" in fault.problem
    outputs = OUTPUTS | {"nft": NFT.replace("LOG", 'log prefix "FWD: "')}
    (fault,) = check_outputs(tmp_path / "nft", outputs, "gw2").faults
    assert (fault.kind, fault.location) == ("every packet logged", "nft, line 4")


@pytest.mark.parametrize("rules", [
    LOG_RULE.format("-m limit --limit 5/min ") + FIRST_RULE,
    LOG_RULE.format("-m conntrack --ctstate NEW ") + FIRST_RULE,
    LOG_RULE.format("-m conntrack --ctstate INVALID ") + FIRST_RULE,
    LOG_RULE.format("-s 192.168.0.0/16 ") + FIRST_RULE,
    LOG_RULE.format("-m set --match-set watched src ") + FIRST_RULE,
    FIRST_RULE + LOG_RULE.format(""),
])  # fmt: skip
def test_rule_that_logs_few_packets_is_no_fault(tmp_path: Path, rules: str) -> None:
    text = FIREWALL.replace(FIRST_RULE, rules)
    assert text != FIREWALL
    assert check_outputs(tmp_path, OUTPUTS | {"iptables": text}, "gw2").faults == ()


@pytest.mark.parametrize("statement", ["", "limit rate 5/minute log", "ct state new log", "log group 2"])
def test_statement_that_logs_few_packets_is_no_fault(tmp_path: Path, statement: str) -> None:
    accept = f'iifname "hsn0" oifname "eth0" {statement}\n\t\tiifname "hsn0" oifname "eth0" accept'
    text = NFT.replace('iifname "hsn0" oifname "eth0" LOG accept', accept if statement else accept.split("\t\t")[1])
    assert check_outputs(tmp_path, OUTPUTS | {"nft": text}, "gw2").faults == ()


def test_logging_of_dropped_packets_is_no_fault_by_itself(tmp_path: Path) -> None:
    rules = LOG_RULE.format("") + "-A FORWARD -i hsn0 -o eth0 -j DROP\n"
    faults = check_outputs(tmp_path, OUTPUTS | {"iptables": FIREWALL.replace(FIRST_RULE, rules)}, "gw2").faults
    assert {fault.kind for fault in faults} == {"firewall drops"}
