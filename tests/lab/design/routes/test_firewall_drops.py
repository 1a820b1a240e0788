# SPDX-License-Identifier: Apache-2.0
"""Rules of firewalls that drop planned packets by TCP flags, ports, rates, marks, sets, or by what no check reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dual_stack_host import ADDRESSES, build_site, check_outputs

from sonde.design.routes.check_firewall import find_firewall_faults
from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.service_connections import NFS_PORT, RoutedService
from sonde.design.routes.table_reader import parse_host_tables

ROOT = Path(__file__).resolve().parents[4]
ROUTER = {
    "addr": """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.150.255.2/16 scope global hsn0
    inet6 fd00:150::f002/64 scope global
3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.160.15.2/20 scope global eth0
    inet6 fd00:160::f002/64 scope global
""",
    "sysctl": "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\n",
}
HOST = {"addr": ADDRESSES}


def print_iptables(rules: str, table: str = "filter", policies: str = "") -> str:
    chains = {"raw": ("PREROUTING", "OUTPUT"), "filter": ("INPUT", "FORWARD", "OUTPUT"),
              "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")}[table]  # fmt: skip
    lines = "".join(f":{chain} {'DROP' if chain in policies.split(',') else 'ACCEPT'} [0:0]\n" for chain in chains)
    user_chains = "".join(
        f":{chain} - [0:0]\n"
        for chain in dict.fromkeys(line.split()[1] for line in rules.splitlines()) if chain not in chains
    )  # fmt: skip
    return f"*{table}\n{lines}{user_chains}{rules}\nCOMMIT\n"


def print_nft(rules: str, policy: str = "accept", hook: str = "forward", sets: str = "") -> str:
    return (
        f"table inet site {{\n{sets}\tchain first {{\n\t\ttype filter hook {hook} priority filter; policy {policy};\n"
        f"\t\t{rules}\n\t}}\n}}\n"
    )


@pytest.mark.parametrize(("rules", "table", "expected_sentence"), [
    ("-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j DROP", "filter", "no new connection of 10.150.0.1 passes"),
    ("-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j DROP", "mangle", "connections between hsn and storage-net"),
    ("-A FORWARD -p tcp -m tcp --dport 1191 -j DROP", "mangle",
     "new connections of GPFS (TCP port 1191) between hsn and storage-net are dropped by the rule -A FORWARD -p tcp"),
    ("-A PREROUTING -p tcp -m multiport --dports 22,1191 -j DROP", "raw", "of GPFS (TCP port 1191) between"),
    ("-A FORWARD -p tcp -m tcp --sport 1191 -j DROP", "filter",
     "replies to connections of GPFS (TCP port 1191) between"),
    ("-A FORWARD -m conntrack --ctstate NEW -j DROP", "filter", "no new connection of 10.150.0.1 passes"),
    ("-A FORWARD -j SITE\n-A SITE -p tcp -j TCP\n-A TCP -i hsn0 -p tcp --dport 1000:2000 -j DROP", "filter",
     "new connections of GPFS (TCP port 1191) from hsn to storage-net"),
    ("-A FORWARD ! -s 10.160.0.0/20 -j DROP", "filter", "connections from hsn to storage-net are dropped by the rule"),
    ("-A FORWARD -m mark --mark 0x0/0xff -j DROP", "filter", "connections between hsn and storage-net are dropped"),
    ("-A FORWARD -m iprange --src-range 10.150.0.1-10.150.0.9 -j DROP", "filter", "connections from hsn to storage"),
    ("-A FORWARD -s 10.150.0.7/32 -j DROP", "filter", "from hsn to storage-net are dropped by the rule -A FORWARD -s"
     " 10.150.0.7/32 -j DROP, as from 10.150.0.7 to 10.160.0.1"),
    ("-A PREROUTING -j CT --notrack", "raw", ""),
])  # fmt: skip
def test_iptables_that_drops_planned_packets_is_reported(
    tmp_path: Path, rules: str, table: str, expected_sentence: str
) -> None:
    outputs = ROUTER | {"iptables": print_iptables(rules, table)}
    faults = check_outputs(tmp_path, outputs, "gw2", has_gpfs=True).faults
    if not expected_sentence:
        assert faults == ()
        return
    assert [fault.kind for fault in faults] == ["firewall drops"]
    assert expected_sentence in faults[0].problem


def test_untracked_packets_are_not_established(tmp_path: Path) -> None:
    accepting = (
        "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A FORWARD -p tcp --dport 1191 -j ACCEPT"
    )
    text = print_iptables(accepting + "\n-A FORWARD -p icmp -j ACCEPT", policies="FORWARD")
    assert check_outputs(tmp_path, ROUTER | {"iptables": text}, "gw2", has_gpfs=True).faults == ()
    text = print_iptables("-A PREROUTING -p tcp -j CT --notrack", "raw") + text
    (fault,) = check_outputs(tmp_path, ROUTER | {"iptables": text}, "gw2", has_gpfs=True).faults
    assert "replies to connections between hsn and storage-net are dropped by the policy" in fault.problem


@pytest.mark.parametrize(("rules", "policy", "limit"), [
    ("-A FORWARD -p tcp --syn -m hashlimit --hashlimit-above 50/sec --hashlimit-mode srcip --hashlimit-name a -j DROP",
     "", "--hashlimit-above 50/sec"),
    ("-A FORWARD -p tcp -m connlimit --connlimit-above 10 --connlimit-mask 32 --connlimit-saddr -j REJECT", "",
     "--connlimit-above 10"),
    ("-A FORWARD -m conntrack --ctstate NEW -m recent --set --name x --mask 255.255.255.255 --rsource\n-A FORWARD -m"
     " conntrack --ctstate NEW -m recent --update --seconds 60 --hitcount 4 --name x --rsource -j DROP", "",
     "--update, --seconds 60, --hitcount 4"),
    ("-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n-A FORWARD -p icmp -j ACCEPT\n"
     "-A FORWARD -p tcp -m limit --limit 25/min --limit-burst 100 -j ACCEPT", "FORWARD", "--limit 25/min"),
    ("-A FORWARD -m statistic --mode random --probability 0.01000000000 -j DROP", "", "--probability 0.01000000000"),
    ("-A FORWARD -m length --length 1501:65535 -j DROP", "", "--length 1501:65535"),
])  # fmt: skip
def test_limit_of_planned_packets_is_reported(tmp_path: Path, rules: str, policy: str, limit: str) -> None:
    outputs = ROUTER | {"iptables": print_iptables(rules, policies=policy)}
    faults = check_outputs(tmp_path, outputs, "gw2", has_gpfs=True).faults
    assert [fault.kind for fault in faults] == ["firewall drops some"]
    assert f"in part ({limit})" in faults[0].problem


NAMED_MAP = (
    "\tmap ports {\n\t\ttype inet_service : verdict\n\t\telements = { 22 : accept,\n\t\t\t     1191 : drop }\n\t}\n\n"
)
NAMED_SET = "\tset closed {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\telements = { 10.150.0.0/16 }\n\t}\n\n"


@pytest.mark.parametrize(("rules", "sets", "fault_kind"), [
    ("tcp flags syn limit rate over 50/second burst 5 packets drop", "", "firewall drops some"),
    ("ct state new add @seen { ip saddr limit rate over 10/second } drop", "", "firewall drops some"),
    ("tcp flags syn / syn,rst drop", "", "firewall drops"),
    ("tcp dport vmap @ports", NAMED_MAP, "firewall drops"),
    ("tcp dport vmap { 80 : accept, 1191 : drop }", "", "firewall drops"),
    ("ip saddr @closed counter packets 5 bytes 300 drop", NAMED_SET, "firewall drops"),
    ("ip saddr . tcp dport { 10.150.0.1 . 1191 } reject with icmp port-unreachable", "", "firewall rejects"),
    ("iifname . oifname { \"hsn0\" . \"eth0\" } ct state new drop", "", "firewall drops"),
    ("meta l4proto tcp ct state new drop", "", "firewall drops"),
    ("meta length > 1500 drop", "", "firewall drops some"),
    ("ct count over 20 reject with tcp reset", "", "firewall drops some"),
    ("numgen random mod 100 0 drop", "", "firewall drops some"),
])  # fmt: skip
def test_nft_that_drops_planned_packets_is_reported(tmp_path: Path, rules: str, sets: str, fault_kind: str) -> None:
    outputs = ROUTER | {"nft": print_nft(rules, sets=sets)}
    faults = check_outputs(tmp_path, outputs, "gw2", has_gpfs=True).faults
    assert {fault.kind for fault in faults} == {fault_kind}
    assert len({fault.location for fault in faults}) == 1


@pytest.mark.parametrize("hook", ["prerouting", "postrouting", 'ingress device "hsn0"'])
def test_nft_chains_of_every_hook_are_evaluated(tmp_path: Path, hook: str) -> None:
    text = print_nft("tcp dport 1191 drop", hook=hook)
    outputs = ROUTER | {"nft": text.replace("inet site", "netdev site") if "ingress" in hook else text}
    faults = check_outputs(tmp_path, outputs, "gw2", has_gpfs=True).faults
    assert {fault.kind for fault in faults} == {"firewall drops"}
    dormant = outputs["nft"].replace("{\n", "{\n\tflags dormant\n\n", 1)
    assert check_outputs(tmp_path, ROUTER | {"nft": dormant}, "gw2", has_gpfs=True).faults == ()


@pytest.mark.parametrize(("outputs", "expected_text"), [
    ({"iptables": print_iptables("-A FORWARD -m set --match-set bad src -j DROP")},
     "what the rule -A FORWARD -m set --match-set bad src -j DROP (iptables, line 5) drops by a match that no check"
     " evaluates: --match-set bad src"),
    ({"iptables": print_iptables("-A FORWARD -m set --match-set clients src -j ACCEPT", policies="FORWARD")},
     "whether the rule -A FORWARD -m set --match-set clients src -j ACCEPT (iptables, line 5) matches all planned"
     " connections (--match-set clients src), which the policy of the chain FORWARD drops otherwise"),
    ({"nft": print_nft("ether saddr 00:11:22:33:44:55 drop")}, "no check evaluates: ether saddr 00:11:22:33:44:55"),
    ({"nft": print_nft("jump inner", sets="\tchain inner {\n\t\tip dscp cs1 drop\n\t}\n\n")}, "evaluates: ip dscp cs1"),
    ({"iptables": print_iptables("-A FORWARD -p tcp --syn -m limit --limit 90000/sec -j ACCEPT\n-A FORWARD -p tcp --syn"
                                 " -j DROP")}, "above an ample limit"),
    ({"nft": print_nft("queue flags bypass to 0")}, "hands to it"),
])  # fmt: skip
def test_drop_by_an_unknown_match_is_stated(tmp_path: Path, outputs: dict[str, str], expected_text: str) -> None:
    verdict = check_outputs(tmp_path, ROUTER | outputs, "gw2", has_gpfs=True)
    assert verdict.faults == ()
    assert any(expected_text in text for text in verdict.not_examined), verdict.not_examined


@pytest.mark.parametrize(("outputs", "expected_sentence"), [
    ({"iptables": print_iptables("-A INPUT -p tcp --dport 1191 -m connlimit --connlimit-above 20 -j REJECT")},
     "new connections of GPFS (TCP port 1191) from stores, compute are rejected in part (--connlimit-above 20)"),
    ({"iptables": print_iptables("-A PREROUTING -s 10.0.0.0/8 -i bond0 -j DROP", "mangle")},
     "new connections of GPFS (TCP port 1191) from stores, compute are dropped by the rule -A PREROUTING"),
    ({"nft": print_nft("tcp dport 1191 ct state new limit rate over 10/minute drop", hook="input")},
     "are dropped in part (limit rate over 10/minute)"),
    ({"iptables": print_iptables("-A OUTPUT -p tcp -m tcp --sport 1191 -j DROP")}, "replies to connections of GPFS"),
    ({"iptables": print_iptables("-A INPUT -s 10.150.0.5/32 -j DROP")}, "from compute are dropped by the rule -A INPUT"
     " -s 10.150.0.5/32 -j DROP, as from 10.150.0.5"),
])  # fmt: skip
def test_drop_on_a_host_is_reported(tmp_path: Path, outputs: dict[str, str], expected_sentence: str) -> None:
    (fault,) = check_outputs(tmp_path, HOST | outputs, has_gpfs=True).faults
    assert expected_sentence in fault.problem


def test_unknown_match_of_a_host_is_stated(tmp_path: Path) -> None:
    text = print_iptables('-A INPUT -p tcp -m u32 --u32 "0x0=0x1" -j DROP')
    verdict = check_outputs(tmp_path, HOST | {"iptables": text}, has_gpfs=True)
    assert verdict.faults == ()
    assert any("--u32 0x0=0x1" in text for text in verdict.not_examined)


@pytest.mark.parametrize("path", sorted((ROOT / "tests/data/firewalls").iterdir()), ids=lambda path: path.name)
@pytest.mark.parametrize(("host", "outputs"), [("nsd1", HOST), ("gw2", ROUTER)])
def test_usual_firewall_is_no_fault(tmp_path: Path, path: Path, host: str, outputs: dict[str, str]) -> None:
    verdict = check_outputs(tmp_path, outputs | {path.name: path.read_text()}, host, has_gpfs=True)
    assert verdict.faults == ()
    assert verdict.not_understood == ()
    unjudged = [text for text in verdict.not_examined if "the rule" in text]
    assert [text for text in unjudged if "whether both directions" not in text] == []


@pytest.mark.parametrize(("rules", "kinds"), [
    ("ct state established,related accept\n\t\tip protocol icmp accept\n\t\tiifname hsn0 oifname eth0 accept", []),
    ("ip protocol icmp accept\n\t\tiifname hsn0 oifname eth0 accept", ["firewall drops"]),
])  # fmt: skip
def test_side_that_opens_no_connections_needs_replies_only(rules: str, kinds: list[str]) -> None:
    fabric = replace(find_fabrics(build_site())[0], services=(RoutedService("NFS", NFS_PORT, "hsn"),))
    tables = parse_host_tables(print_nft(rules, policy="drop"), "nft")
    results = list(find_firewall_faults(fabric, fabric.routers[1:2], tables))
    faults = [result for result in results if isinstance(result, RouteFault)]
    assert [fault.kind for fault in faults] == kinds
    assert all("replies to connections from storage-net to hsn" in fault.problem for fault in faults)
