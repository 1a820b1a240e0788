# SPDX-License-Identifier: Apache-2.0
"""Firewalls of hosts: connections of file systems that do not pass, and rules that change the path of packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from dual_stack_host import ADDRESSES

from sonde.design.routes.check_host import check_host
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.table_reader import read_host_sources
from sonde.model.system import read_system

ROOT = Path(__file__).resolve().parents[4]

FIREWALLD = """table inet firewalld {
	chain filter_INPUT {
		type filter hook input priority filter + 10; policy accept;
		ct state { established, related } accept
		ct status dnat accept
		iifname "lo" accept
		jump filter_INPUT_ZONES
		ct state invalid drop
		reject with icmpx admin-prohibited
	}

	chain filter_INPUT_ZONES {
		iifname "bond0" goto filter_IN_public
		iifname "eno1" goto filter_IN_trusted
		goto filter_IN_trusted
	}

	chain filter_IN_public {
		tcp dport 22 accept
		meta l4proto { icmp, ipv6-icmp } accept
		ip6 daddr fe80::/64 udp dport 546 accept
	}

	chain filter_IN_trusted {
		accept
	}
}
"""
IPTABLES = """*mangle
:OUTPUT ACCEPT [0:0]
COMMIT
*filter
:INPUT DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -i lo -j ACCEPT
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -p tcp -m multiport --dports 1191,50000:50100 -j ACCEPT
-A INPUT -p tcp -m tcp --dport 988 -j ACCEPT
COMMIT
"""
MARK = "-A OUTPUT -p tcp -m tcp --dport 1191 -j MARK --set-xmark 0x2/0xffffffff\n"


NFS_MOUNT = """
[[mounts]]
id = "exported"
file_system = "project"
path = "/project"
on = "compute"
through = "nfs"
via = "stores"
"""


def check_server(folder: Path, outputs: dict[str, str], mount: str = "", name: str = "nsd01") -> RouteCheck:
    """Checks outputs of a GPFS server, with its addresses, of the shipped example."""
    folder.mkdir(exist_ok=True)
    (folder / "site.toml").write_text((ROOT / "systems" / "slingshot-routed.toml").read_text() + mount)
    for file, text in ({"addr": ADDRESSES} | outputs).items():
        (folder / file).write_text(text)
    sources = read_host_sources([folder / file for file in {"addr": "", **outputs}])
    return check_host(read_system(folder / "site.toml"), name, sources.live, configured_tables=sources.configured)


def test_rejected_gpfs_connections_are_one_fault(tmp_path: Path) -> None:
    (fault,) = check_server(tmp_path, {"nft": FIREWALLD}).faults
    assert (fault.kind, fault.location) == ("firewall rejects", "nft, line 9")
    assert "new connections of GPFS (TCP port 1191) from stores, compute are rejected by the rule" in fault.problem


@pytest.mark.parametrize(("old", "new"), [
    ("tcp dport 22 accept", "tcp dport { 22, 1191 } accept"), ("tcp dport 22 accept", "tcp dport 1000-1300 accept"),
    ("tcp dport 22 accept", "tcp dport gpfs accept"), ("tcp dport 22 accept", "ip saddr @clients accept"),
    ('"bond0" goto filter_IN_public', '"bond0" goto filter_IN_trusted'), ("reject with", "limit rate 1/minute log #"),
    ("tcp dport 22 accept", "ip saddr { 10.150.0.0/16, 10.160.0.0/20 } accept\n\t\tmeta nfproto ipv6 accept"),
])  # fmt: skip
def test_firewall_that_accepts_gpfs_is_no_fault(tmp_path: Path, old: str, new: str) -> None:
    assert old in FIREWALLD
    verdict = check_server(tmp_path, {"nft": FIREWALLD.replace(old, new)})
    assert verdict.faults == ()
    items = [item.location for item in verdict.comparisons if item.subject == "the firewall of a host"]
    assert {"GPFS from compute", "GPFS to compute", "GPFS from stores"} <= {*items}


def test_rule_after_goto_of_another_zone_is_not_reached(tmp_path: Path) -> None:
    text = FIREWALLD.replace("tcp dport 22 accept", "iifname bond1 accept").replace('"eno1"', '"bond0"')
    (fault,) = check_server(tmp_path, {"nft": text}).faults
    assert fault.kind == "firewall rejects"


@pytest.mark.parametrize(("old", "new", "expected_sentence"), [
    ("1191,50000:50100", "50000:50100", "of GPFS (TCP port 1191) from stores, compute are dropped by the policy"),
    ("-A INPUT -p tcp -m multiport", "-A INPUT -s 10.160.0.0/20 -p tcp -m multiport",
     "of GPFS (TCP port 1191) from compute are dropped by the policy of the chain INPUT, as from 10.150.0.1"),
    (":OUTPUT ACCEPT [0:0]\n-A", ":OUTPUT ACCEPT [0:0]\n-A OUTPUT -d 10.150.0.0/16 -j REJECT\n-A",
     "of GPFS (TCP port 1191) to compute are rejected by the rule -A OUTPUT -d 10.150.0.0/16 -j REJECT"),
    ("--dport 988", "--dport 989", "of LNet (TCP port 988) from lnet-routers, stores are dropped by the policy"),
])  # fmt: skip
def test_iptables_of_a_host_is_judged(tmp_path: Path, old: str, new: str, expected_sentence: str) -> None:
    assert old in IPTABLES
    lnet = {"lnetctl.yaml": "routing:\n    - enable: 0\n"}
    assert check_server(tmp_path, {"iptables": IPTABLES} | lnet).faults == ()
    (fault,) = check_server(tmp_path, {"iptables": IPTABLES.replace(old, new)} | lnet).faults
    assert expected_sentence in fault.problem


def test_nfs_port_counts_where_the_mount_is_by_nfs(tmp_path: Path) -> None:
    assert check_server(tmp_path, {"iptables": IPTABLES}).faults == ()
    (fault,) = check_server(tmp_path, {"iptables": IPTABLES}, NFS_MOUNT).faults
    assert "of NFS (TCP port 2049) from compute are dropped" in fault.problem
    opened = IPTABLES.replace("-p tcp -m tcp --dport 22 ", "-p tcp -m tcp --dport 2049 ")
    assert check_server(tmp_path, {"iptables": opened}, NFS_MOUNT).faults == ()


def test_both_listings_of_one_firewall_are_one_fault(tmp_path: Path) -> None:
    closed = IPTABLES.replace("1191,", "")
    nft = FIREWALLD.replace("reject with icmpx admin-prohibited", "drop").replace("firewalld", "filter")
    faults = check_server(tmp_path, {"iptables": closed, "nft": nft.replace("table inet", "table ip")}).faults
    assert len(faults) == 1


def test_foreign_mark_of_a_router_is_reported(tmp_path: Path) -> None:
    text = IPTABLES.replace("COMMIT\n*filter", f"{MARK}COMMIT\n*filter")
    (fault,) = check_server(tmp_path, {"iptables": text}).faults
    assert (fault.kind, fault.location) == ("mark set by firewall", "iptables, line 3")
    assert "gives packets to port 1191 of this host mark 2, which in the plan is that of gw02" in fault.problem


@pytest.mark.parametrize("rules", [
    MARK.replace("0x2/0xffffffff", "0x4000/0x4000"), MARK.replace("-A OUTPUT", "-A OUTPUT -d 192.168.0.0/16"),
    MARK + MARK.replace("0x2/", "0x3/"),
])  # fmt: skip
def test_other_marks_are_no_fault(tmp_path: Path, rules: str) -> None:
    text = IPTABLES.replace("COMMIT\n*filter", f"{rules}COMMIT\n*filter")
    assert check_server(tmp_path, {"iptables": text}).faults == ()


NFT_MARK = """table ip mangle {
	chain OUTPUT {
		type route hook output priority mangle; policy accept;
		tcp dport 1191 counter packets 81234 bytes 912345678 meta mark set 0x0000000f
	}
}
"""


def test_mark_of_nft_leads_packets_where_its_chain_routes(tmp_path: Path) -> None:
    (fault,) = check_server(tmp_path, {"nft": NFT_MARK}).faults
    assert fault.problem.endswith("through gw15 alone")
    assert check_server(tmp_path, {"nft": NFT_MARK.replace("type route", "type filter")}).faults == ()


ROUTER = """2: hsn0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.150.255.2/16 scope global hsn0
    inet6 fd00:150::f002/64 scope global
3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP qlen 1000
    inet 10.160.15.2/20 scope global eth0
    inet6 fd00:160::f002/64 scope global
"""
CLAMP = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS {}\nCOMMIT\n"
NFT_CLAMP = """table inet site {{
	chain clamp {{
		type filter hook {} priority mangle; policy accept;
		tcp flags syn / syn,rst counter packets 51234 bytes 3074040 tcp option maxseg size set {}
	}}
}}
"""


@pytest.mark.parametrize("outputs", [
    {"iptables": CLAMP.format("--set-mss 536")}, {"nft": NFT_CLAMP.format("forward", "536")},
    {"nft": NFT_CLAMP.format("postrouting", "536")},
])  # fmt: skip
def test_small_segments_of_a_router_are_reported(tmp_path: Path, outputs: dict[str, str]) -> None:
    (fault,) = check_server(tmp_path, {"addr": ROUTER} | outputs, name="gw02").faults
    assert fault.kind == "small segments"
    assert "to 536 B, where 8960 B fit into the MTU of 9000 B: the hosts and routers handle 16.7 times" in fault.problem


@pytest.mark.parametrize("outputs", [
    {"iptables": CLAMP.format("--clamp-mss-to-pmtu")}, {"nft": NFT_CLAMP.format("forward", "rt mtu")},
    {"iptables": CLAMP.format("--set-mss 8960")}, {"nft": NFT_CLAMP.format("forward", "8940")},
    {"iptables": CLAMP.replace("-p tcp ", "-o tun0 -p tcp ").format("--set-mss 1360")}, {"nft": ""},
])  # fmt: skip
def test_fitting_segments_of_a_router_are_no_fault(tmp_path: Path, outputs: dict[str, str]) -> None:
    assert check_server(tmp_path, {"addr": ROUTER} | outputs, name="gw02").faults == ()


def test_small_segments_of_a_host_are_reported(tmp_path: Path) -> None:
    (fault,) = check_server(tmp_path, {"nft": NFT_CLAMP.format("output", "1360")}).faults
    assert fault.kind == "small segments"


def test_empty_ruleset_is_an_accepting_firewall(tmp_path: Path) -> None:
    verdict = check_server(tmp_path, {"nft-list-ruleset.txt": ""})
    assert (verdict.faults, verdict.not_understood) == ((), ())
    assert any(item.subject == "the firewall of a host" for item in verdict.comparisons)
