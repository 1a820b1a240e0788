# SPDX-License-Identifier: Apache-2.0
"""Faults of tables: those of the published listings, and more than twenty that are put into a good plan one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fabric_builders import build_fabric, find_direction_faults

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.fabric import Fabric, find_fabrics
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.json_tables import parse_json_tables
from sonde.design.routes.kernel_settings import audit_settings, select_valid_settings
from sonde.design.routes.plan import plan_routes
from sonde.design.routes.scripts import make_route_arguments, make_rule_arguments
from sonde.design.routes.table_reader import parse_host_tables, read_host_tables
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.shell import quote_command
from sonde.model.system import read_system

LISTINGS = Path(__file__).resolve().parents[3] / "data" / "routes"


def count_faults(fabric: Fabric, name: str, *files: str) -> dict[str, int]:
    """Number of faults by kind in files of the published listings."""
    faults = check_host_routes([fabric], name, read_host_tables([LISTINGS / file for file in files])).faults
    return {kind: sum(fault.kind == kind for fault in faults) for kind in dict.fromkeys(fault.kind for fault in faults)}


def test_published_listings_contain_the_documented_mistakes(cumulus: Fabric) -> None:
    assert count_faults(cumulus, "compute", "create_routes_incoming.sh") == {
        "no route": 1,  # it is only half of the set-up
        "far network on link": 6,
        "table without a rule": 1,  # five tables
        "rule that cannot match": 6,
        "all rules in one table": 1,
    }
    assert count_faults(cumulus, "compute", "create_routes_outgoing.sh") == {
        "no route": 1,
        "next hop out of reach": 6,
        "unknown destination": 1,
    }
    assert count_faults(cumulus, "compute", "compute-route-show") == {"far network on link": 6}
    assert count_faults(cumulus, "wolf-servers", "storage-rule-interface", "storage-route-interface") == {
        "far network on link": 6,
        "next hop out of reach": 6,
        "rule for an unknown address": 6,
    }


def test_published_sysctls_are_audited() -> None:
    sysctls = read_host_tables([LISTINGS / "wolf-sysctl.conf"]).settings
    assert sysctls is not None
    assert len(sysctls) == 18
    states = {finding.name.rpartition(".")[2]: finding.state for finding in audit_settings(sysctls)}
    assert states == {
        "tcp_timestamps": "risky",
        "tcp_low_latency": "without effect",
        "optmem_max": "risky",
        "tcp_mem": "wrong",
        "tcp_congestion_control": "risky",
        "tcp_tw_recycle": "gone",
        "tcp_tw_reuse": "without effect",
    }
    assert len(select_valid_settings(sysctls)) == 14
    (page_finding,) = [finding for finding in audit_settings(sysctls) if finding.state == "wrong"]
    assert "341 MiB in all" in page_finding.reason, "87380 pages of 4 KiB"
    assert "1 TiB" in page_finding.reason, "268435456 pages of 4 KiB"


@pytest.mark.parametrize(("value", "is_set"), [("0", False), ("1", True), ("2", False)])
def test_default_of_time_wait_reuse_is_no_fault(value: str, is_set: bool) -> None:
    settings = {"net.ipv4.tcp_tw_reuse": value, "net.ipv4.tcp_timestamps": "0"}
    names = [finding.name for finding in audit_settings(settings)]
    assert ("net.ipv4.tcp_tw_reuse" in names) == is_set


def test_all_published_sysctls_are_compared() -> None:
    tables = read_host_tables([LISTINGS / "wolf-sysctl.conf"])
    fabrics = find_fabrics(read_system(find_system_file("cumulus")))
    verdict = check_host_routes(fabrics, "wolf-servers", tables)
    compared = {item.location for item in verdict.comparisons}
    assert tables.settings is not None
    assert tables.settings.keys() - compared == set()


@pytest.mark.parametrize(
    ("setting", "sound", "wrong", "fault_kind"),
    [
        ("net.ipv4.tcp_mtu_probing", "1", "2", "small packets first"),
        ("net.ipv4.tcp_fin_timeout", "60", "600", "closed connections stay"),
        ("net.ipv4.tcp_no_metrics_save", "0", "7", "unknown value"),
        ("net.core.default_qdisc", "fq_codel", "noqueue", "setting risky"),
        ("net.ipv4.tcp_pacing_ca_ratio", "120", "10", "connections limited"),
        ("net.ipv4.tcp_pacing_ss_ratio", "200", "10", "connections limited"),
        ("net.ipv4.neigh.ib1.delay_first_probe_time", "5", "900", "dead routers are noticed late"),
        ("net.ipv4.neigh.ib1.ucast_solicit", "3", "100", "dead routers are noticed late"),
        ("net.ipv4.ip_no_pmtu_disc", "0", "1", "path MTU not discovered"),
        ("net.ipv4.tcp_limit_output_bytes", "1048576", "4096", "connections limited"),
        ("net.ipv4.tcp_notsent_lowat", "4294967295", "1024", "connections limited"),
        ("net.ipv4.tcp_app_win", "31", "1", "connections limited"),
        ("net.ipv4.tcp_reordering", "3", "1", "connections limited"),
        ("net.ipv4.tcp_synack_retries", "5", "0", "connections give up early"),
        ("net.ipv4.tcp_max_syn_backlog", "1024", "8", "new connections dropped"),
        ("net.core.somaxconn", "4096", "4", "new connections dropped"),
        ("net.ipv4.tcp_abort_on_overflow", "0", "1", "new connections dropped"),
        ("net.ipv4.tcp_max_tw_buckets", "16384", "16", "closed connections lost"),
        ("net.core.netdev_budget", "300", "4", "packets dropped early"),
        ("net.core.netdev_budget_usecs", "2000", "10", "packets dropped early"),
        ("net.core.dev_weight", "64", "1", "packets dropped early"),
        ("net.ipv4.ipfrag_high_thresh", "4194304", "65536", "fragments dropped"),
        ("net.ipv4.neigh.ib1.retrans_time_ms", "1000", "60000", "neighbors asked rarely"),
        ("net.netfilter.nf_conntrack_max", "262144", "256", "few tracked connections"),
        ("net.netfilter.nf_conntrack_max", "0", "1000", "few tracked connections"),
        ("net.netfilter.nf_conntrack_tcp_timeout_established", "432000", "60", "idle connections forgotten"),
        ("sunrpc.tcp_max_slot_table_entries", "65536", "2", "connections limited"),
    ],
)
def test_setting_is_judged_by_its_value(setting: str, sound: str, wrong: str, fault_kind: str) -> None:
    fabrics = find_fabrics(read_system(find_system_file("cumulus")))
    kinds = [
        {
            fault.kind
            for fault in check_host_routes(fabrics, "wolf-servers", HostTables(settings={setting: value})).faults
        }
        for value in (sound, wrong)
    ]
    # the system file asks for other values
    assert [each - {"setting not as planned"} for each in kinds] == [set(), {fault_kind}]


@pytest.mark.parametrize(("release", "queue", "is_wrong"), [
    ("4.12.0", "fq_codel", True), ("4.12.0", "fq", False), ("4.13.0", "fq_codel", False),
    ("6.8.0", "pfifo_fast", False),
])  # fmt: skip
def test_bbr_needs_pacing_queue_on_old_kernels(release: str, queue: str, is_wrong: bool) -> None:
    settings = {"kernel.osrelease": release, "net.ipv4.tcp_congestion_control": "bbr", "net.core.default_qdisc": queue}
    assert [finding.state for finding in audit_settings(settings)] == ["wrong"] * is_wrong


Edit = Callable[[list[str]], list[str]]


def drop_lines(text: str) -> Edit:
    return lambda lines: [line for line in lines if text not in line]


def replace_text(old: str, new: str) -> Edit:
    return lambda lines: [line.replace(old, new) for line in lines]


def add_lines(*more: str) -> Edit:
    return lambda lines: [*lines, *more]


MAIN = "nexthop via 10.1.0.1 dev eth0 weight 1 "
FAULTS: list[tuple[str, Edit]] = [
    ("no route", drop_lines("nexthop")),
    ("router not used", replace_text(MAIN, "")),
    ("router named twice", replace_text(MAIN, MAIN * 2)),
    ("weights differ", replace_text(MAIN, MAIN.replace("weight 1", "weight 5"))),
    ("next hop out of reach", replace_text("via 10.1.0.2 dev eth0 weight", "via 192.168.7.2 dev eth0 weight")),
    ("unknown router", replace_text("via 10.1.0.2 dev eth0 weight", "via 10.1.0.77 dev eth0 weight")),
    ("next hop dead", replace_text(MAIN, MAIN + "dead linkdown ")),
    ("wrong device", replace_text("via 10.1.0.2 dev eth0 weight", "via 10.1.0.2 dev eth7 weight")),
    ("far network on link", replace_text("10.1.0.0/16 proto 77 table 2", "10.2.0.0/16 proto 77 table 2")),
    ("MTU too large", replace_text("mtu 9000 nexthop", "mtu 65520 nexthop")),
    (
        "unknown destination",
        add_lines("ip route add 10.9.0.0/16 nexthop via 10.1.0.1 dev eth0 nexthop via 10.1.0.2 dev eth0"),
    ),
    ("table without a route", drop_lines("10.2.0.0/16 proto 77 table 2")),
    ("mark without a rule", lambda lines: [line for line in lines if "rule" not in line or "table 3" not in line]),
    ("table without a rule", add_lines("ip route add 10.2.0.0/16 table 99 via 10.1.0.3 dev eth0 mtu 9000")),
    ("router in several tables", replace_text("table 2 mtu 9000 via 10.1.0.2", "table 2 mtu 9000 via 10.1.0.1")),
    ("router without a table", drop_lines("table 2")),
    ("rule without a table", add_lines("ip rule add pref 2000 fwmark 9 table 9")),
    ("rule that cannot match", add_lines("ip rule add from 10.1.0.2 table 2")),
    ("rule for an unknown address", add_lines("ip rule add from 172.16.0.1 table 2")),
    ("rule for an unknown address", add_lines("ip rule add from 10.1.0.250 table 2")),
    ("rule too late", replace_text("pref 1001", "pref 32800")),
    (
        "all rules in one table",
        replace_text("ip rule add pref 1001 fwmark 2 table 2", "ip rule add pref 1001 fwmark 2 table 1"),
    ),
]


@pytest.mark.parametrize(
    ("fault_kind", "edit"), FAULTS, ids=[f"{number} {kind}" for number, (kind, _) in enumerate(FAULTS)]
)
def test_fault_in_a_good_plan_is_detected(fault_kind: str, edit: Edit) -> None:
    fabric = build_fabric(3)
    host = plan_routes(fabric).find_host_plan("clients")
    lines = [f"ip route add {quote_command(make_route_arguments(route, host.mtu))}" for route in host.routes]
    lines += [f"ip rule add {quote_command(make_rule_arguments(rule))}" for rule in host.rules]
    if fault_kind == "all rules in one table":
        edited = [line.split(" table")[0] + " table 1" if line.startswith("ip rule") else line for line in lines]
    else:
        edited = edit(lines)
    assert edited != lines
    assert check_host_routes([fabric], "clients", parse_host_tables("\n".join(lines), "good")).faults == ()
    faults = check_host_routes([fabric], "clients", parse_host_tables("\n".join(edited), "bad")).faults
    assert fault_kind in {fault.kind for fault in faults}
    assert all(fault.location and fault.problem and fault.remedy for fault in faults)


@pytest.mark.parametrize(
    ("fault_kind", "host_tables"),
    [
        ("kernel option missing", HostTables(options={"CONFIG_IP_MULTIPLE_TABLES": "n"})),
        ("MTU mismatch", HostTables(mtus={"eth0": 1500})),
        ("hash by address only", HostTables(settings={"net.ipv4.fib_multipath_hash_policy": "0"})),
        ("strict reverse path", HostTables(settings={"net.ipv4.conf.eth0.rp_filter": "1"})),
        ("setting gone", HostTables(settings={"net.ipv4.tcp_tw_recycle": "1"})),
        ("not on the network", HostTables(addresses=("192.0.2.7/24",))),
    ],
)
def test_wrong_host_setting_is_detected(fault_kind: str, host_tables: HostTables) -> None:
    assert fault_kind in {fault.kind for fault in check_host_routes([build_fabric(3)], "clients", host_tables).faults}


@pytest.mark.parametrize(
    ("fault_kind", "host_tables"),
    [
        ("forwarding off", HostTables(settings={"net.ipv4.ip_forward": "0"})),
        ("strict reverse path", HostTables(settings={"net.ipv4.ip_forward": "1", "net.ipv4.conf.eth0.rp_filter": "1"})),
        ("address missing", HostTables(addresses=("10.1.0.2/16",))),
        ("not a router", HostTables(addresses=("192.0.2.7/24",))),
    ],
)
def test_wrong_router_setting_is_detected(fault_kind: str, host_tables: HostTables) -> None:
    assert [fault.kind for fault in check_host_routes([build_fabric(3)], "routers", host_tables).faults] == [fault_kind]


def test_different_routers_per_direction_are_detected() -> None:
    fabric = build_fabric(3)
    plan = plan_routes(fabric)

    def main(name: str, edit: Edit) -> HostTables:
        host = plan.find_host_plan(name)
        routes = [
            f"ip route add {quote_command(make_route_arguments(route, host.mtu))}"
            for route in host.routes
            if route.table == "main"
        ]
        return parse_host_tables("\n".join(edit(routes)), name)

    unchanged: Edit = replace_text("", "")
    client_tables = main("clients", unchanged)
    assert find_direction_faults(fabric, client_tables, main("stores", unchanged)) == []
    faults = find_direction_faults(
        fabric, client_tables, main("stores", replace_text("nexthop via 10.2.0.3 dev eth1 weight 1", ""))
    )
    assert [(fault.kind, fault.location) for fault in faults] == [("one direction only", "router3")]
    reordered = main("stores", lambda lines: [swap_first_hops(lines[0])])
    assert [fault.kind for fault in find_direction_faults(fabric, client_tables, reordered)] == ["order differs"]


def swap_first_hops(line: str) -> str:
    return line.replace("10.2.0.1 ", "X ").replace("10.2.0.2 ", "10.2.0.1 ").replace("X ", "10.2.0.2 ")


def test_empty_tables_are_reported_as_unknown() -> None:
    verdict = check_host_routes([build_fabric(2)], "clients", HostTables())
    assert verdict.faults == ()
    assert verdict.comparisons == ()
    assert verdict.unknown == (
        "routes", "rules", "addresses", "neighbors", "settings (sysctl)", "kernel options",
        "the other side, so whether replies return the same way",
    )  # fmt: skip


def test_json_of_ip_equals_its_text() -> None:
    rows: list[dict[str, Any]] = [
        {"dst": "10.2.0.0/16", "protocol": "77", "metrics": [{"mtu": 9000}], "flags": [],
         "nexthops": [{"gateway": f"10.1.0.{k}", "dev": "eth0", "weight": 1, "flags": []} for k in (1, 2, 3)]},
        {"dst": "10.2.0.0/16", "gateway": "10.1.0.2", "dev": "eth0", "table": "2", "flags": ["linkdown"]},
        {"dst": "10.1.0.7", "table": "local", "type": "local", "flags": []},
    ]  # fmt: skip
    routes = parse_host_tables(json.dumps(rows), "routes.json").routes
    assert routes is not None
    assert [(route.destination, route.table, len(route.hops), route.mtu) for route in routes] == [
        ("10.2.0.0/16", "main", 3, 9000),
        ("10.2.0.0/16", "2", 1, None),
        ("10.1.0.7/32", "local", 0, None),
    ]
    assert routes[1].hops[0].dead
    rules = parse_host_tables(
        json.dumps([{"priority": 1000, "src": "all", "fwmark": "0x2", "table": "2"}]), "rules.json"
    ).rules
    text = parse_host_tables("1000:\tfrom all fwmark 0x2 lookup 2\n", "rules.txt").rules
    assert rules is not None
    assert text is not None
    assert (rules[0].mark, rules[0].table, rules[0].preference) == (text[0].mark, text[0].table, text[0].preference)


@pytest.mark.parametrize(
    ("text", "message"),
    [("hello world\n", "is no address range"), ("", "holds no rule"), ("[1, 2]", "not a list of objects"),
     ("{broken", "is not JSON"), ("ip route add 10.0.0.0/99 dev x\n", "is no address range")],
)  # fmt: skip
def test_unknown_file_kind_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_host_tables(text, "some-file")


def test_unknown_class_name_gets_suggestion() -> None:
    with pytest.raises(UserError, match="Did you mean"):
        check_host_routes([build_fabric(2)], "client", HostTables())


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", ["net.ipv{}.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed"])
def test_different_hash_settings_are_detected(version: int, name: str) -> None:
    fabric, key = build_fabric(3, ip_version=version), name.format(version)
    planned = {host.name: dict(host.settings) for host in plan_routes(fabric).host_plans}
    near, far = HostTables(settings=planned["clients"]), HostTables(settings=planned["stores"])
    assert find_direction_faults(fabric, near, far) == [], "the plan gives both sides the same, of both IP versions"
    other = HostTables(settings=planned["stores"] | {key: "0"})
    assert [(fault.kind, fault.location) for fault in find_direction_faults(fabric, near, other)] == [
        ("hash differs", key)
    ]
    assert find_direction_faults(build_fabric(1, ip_version=version), near, other) == [], "one router is no choice"


IPOIB_TEXT = """2: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP group default qlen 256
    link/infiniband 80:00 brd 00:ff promiscuity 0
    ipoib pkey 0xffff mode datagram umcast 0
    inet 10.1.0.5/16 scope global ib0
"""


@pytest.mark.parametrize(("mode", "mtu", "is_found"), [("datagram", 65520, True), ("connected", 65520, False),
                                                        ("datagram", 2044, False)])  # fmt: skip
def test_ipoib_mode_is_checked_against_the_planned_mtu(mode: str, mtu: int, is_found: bool) -> None:
    fabric = build_fabric(3)
    fabric = replace(fabric, near=replace(fabric.near, mtu=mtu))
    checked = check_host_routes(
        [fabric], "clients", HostTables(addresses=("10.1.0.200/16",), transport_modes={"eth0": mode})
    )
    assert ("datagram mode" in {fault.kind for fault in checked.faults}) is is_found


def test_ipoib_mode_is_read_from_text_and_json() -> None:
    link = {
        "ifname": "ib0",
        "flags": [],
        "addr_info": [],
        "linkinfo": {"info_kind": "ipoib", "info_data": {"mode": "connected"}},
    }
    other = {"ifname": "eth0", "flags": [], "addr_info": [], "linkinfo": {"info_kind": "vlan"}}
    assert parse_host_tables(IPOIB_TEXT, "text").transport_modes == {"ib0": "datagram"}
    assert parse_json_tables(json.dumps([link, other]), "json").transport_modes == {"ib0": "connected"}
