# SPDX-License-Identifier: Apache-2.0
"""Faults of tables: those of the published listings, and twenty and more put into a good plan one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_fabric import made

from sonde.design.routes.check import check_both, check_host
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.plan import plan_routes
from sonde.design.routes.scripts import route_words, rule_words
from sonde.design.routes.tables import HostTables, read_tables, read_text
from sonde.design.routes.tuning import audit, kept
from sonde.model.errors import UserError

LISTINGS = Path(__file__).resolve().parents[3] / "data" / "routes"


def kinds(fabric: Fabric, name: str, *files: str) -> dict[str, int]:
    """Kinds of fault that files of the listings have, with their number."""
    faults = check_host(fabric, name, read_tables([LISTINGS / file for file in files])).faults
    return {kind: sum(one.kind == kind for one in faults) for kind in dict.fromkeys(one.kind for one in faults)}


def test_each_mistake_of_the_published_listings_is_found(cumulus: Fabric) -> None:
    assert kinds(cumulus, "compute", "create_routes_incoming.sh") == {
        "no route": 1,  # it is only half of the set-up
        "far network on link": 6,
        "table without a rule": 5,
        "rule that cannot match": 6,
        "all rules in one table": 1,
    }
    assert kinds(cumulus, "compute", "create_routes_outgoing.sh") == {
        "no route": 1,
        "next hop out of reach": 6,
        "unknown destination": 1,
    }
    assert kinds(cumulus, "compute", "compute-route-show") == {"far network on link": 6}
    assert kinds(cumulus, "wolf-servers", "storage-rule-interface", "storage-route-interface") == {
        "far network on link": 6,
        "next hop out of reach": 6,
        "rule for a stranger": 6,
    }


def test_of_the_eighteen_published_sysctls_the_obsolete_and_the_wrong_are_refused() -> None:
    given = read_tables([LISTINGS / "wolf-sysctl.conf"]).settings
    assert given is not None
    assert len(given) == 18
    worth = {one.name.rpartition(".")[2]: one.worth for one in audit(given)}
    assert worth == {
        "tcp_timestamps": "risky",
        "tcp_low_latency": "without effect",
        "tcp_adv_win_scale": "without effect",
        "optmem_max": "risky",
        "tcp_mem": "wrong",
        "tcp_congestion_control": "risky",
        "tcp_tw_recycle": "gone",
        "tcp_tw_reuse": "without effect",
    }
    assert len(kept(given)) == 13
    (pages,) = [one for one in audit(given) if one.worth == "wrong"]
    assert "341 MiB in all" in pages.reason, "87380 pages of 4 KiB"
    assert "1 TiB" in pages.reason, "268435456 pages of 4 KiB"


Edit = Callable[[list[str]], list[str]]


def without(text: str) -> Edit:
    return lambda lines: [line for line in lines if text not in line]


def changed(old: str, new: str) -> Edit:
    return lambda lines: [line.replace(old, new) for line in lines]


def added(*more: str) -> Edit:
    return lambda lines: [*lines, *more]


MAIN = "nexthop via 10.1.0.1 dev eth0 weight 1 "
FAULTS: list[tuple[str, Edit]] = [
    ("no route", without("nexthop")),
    ("router not used", changed(MAIN, "")),
    ("router named twice", changed(MAIN, MAIN * 2)),
    ("weights differ", changed(MAIN, MAIN.replace("weight 1", "weight 5"))),
    ("next hop out of reach", changed("via 10.1.0.2 dev eth0 weight", "via 192.168.7.2 dev eth0 weight")),
    ("unknown router", changed("via 10.1.0.2 dev eth0 weight", "via 10.1.0.77 dev eth0 weight")),
    ("next hop dead", changed(MAIN, MAIN + "dead linkdown ")),
    ("wrong device", changed("via 10.1.0.2 dev eth0 weight", "via 10.1.0.2 dev eth7 weight")),
    ("far network on link", changed("10.1.0.0/16 proto 77 table 2", "10.2.0.0/16 proto 77 table 2")),
    ("MTU too large", changed("mtu 9000 nexthop", "mtu 65520 nexthop")),
    (
        "unknown destination",
        added("ip route add 10.9.0.0/16 nexthop via 10.1.0.1 dev eth0 nexthop via 10.1.0.2 dev eth0"),
    ),
    ("table without a way", without("10.2.0.0/16 proto 77 table 2")),
    ("table without a rule", without("table 3")),
    ("router in several tables", changed("table 2 mtu 9000 via 10.1.0.2", "table 2 mtu 9000 via 10.1.0.1")),
    ("router without a table", without("table 2")),
    ("rule without a table", added("ip rule add pref 2000 fwmark 9 table 9")),
    ("rule that cannot match", added("ip rule add from 10.1.0.2 table 2")),
    ("rule for a stranger", added("ip rule add from 172.16.0.1 table 2")),
    ("rule for a stranger", added("ip rule add from 10.1.0.250 table 2")),
    ("rule too late", changed("pref 1001", "pref 32800")),
    (
        "all rules in one table",
        changed("ip rule add pref 1001 fwmark 2 table 2", "ip rule add pref 1001 fwmark 2 table 1"),
    ),
]


@pytest.mark.parametrize(("kind", "edit"), FAULTS, ids=[f"{at} {kind}" for at, (kind, _) in enumerate(FAULTS)])
def test_a_fault_put_into_a_good_plan_is_named(kind: str, edit: Edit) -> None:
    fabric = made(3)
    host = plan_routes(fabric).of("clients")
    lines = [f"ip route add {route_words(route, host.mtu)}" for route in host.routes]
    lines += [f"ip rule add {rule_words(rule)}" for rule in host.rules]
    if kind == "table without a rule":
        edited = [line for line in lines if not (line.startswith("ip rule") and "table 3" in line)]
    elif kind == "all rules in one table":
        edited = [line.split(" table")[0] + " table 1" if line.startswith("ip rule") else line for line in lines]
    else:
        edited = edit(lines)
    assert edited != lines
    assert check_host(fabric, "clients", read_text("\n".join(lines), "good")).faults == ()
    found = check_host(fabric, "clients", read_text("\n".join(edited), "bad")).faults
    assert kind in {one.kind for one in found}
    assert all(one.where and one.what and one.remedy for one in found)


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("kernel option missing", HostTables(options={"CONFIG_IP_ADVANCED_ROUTER": "y"})),
        ("MTU mismatch", HostTables(mtus={"eth0": 1500})),
        ("hash by address only", HostTables(settings={"net.ipv4.fib_multipath_hash_policy": "0"})),
        ("strict reverse path", HostTables(settings={"net.ipv4.conf.eth0.rp_filter": "1"})),
        ("setting gone", HostTables(settings={"net.ipv4.tcp_tw_recycle": "1"})),
        ("not on the network", HostTables(addresses=("192.0.2.7/24",))),
    ],
)
def test_a_fault_of_a_setting_is_named(kind: str, seen: HostTables) -> None:
    assert kind in {one.kind for one in check_host(made(3), "clients", seen).faults}


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("forwarding off", HostTables(settings={"net.ipv4.ip_forward": "0"})),
        ("strict reverse path", HostTables(settings={"net.ipv4.ip_forward": "1", "net.ipv4.conf.eth0.rp_filter": "1"})),
        ("address missing", HostTables(addresses=("10.1.0.2/16",))),
        ("not a router", HostTables(addresses=("192.0.2.7/24",))),
    ],
)
def test_a_fault_of_a_router_is_named(kind: str, seen: HostTables) -> None:
    assert [one.kind for one in check_host(made(3), "routers", seen).faults] == [kind]


def test_directions_that_do_not_fit_are_named() -> None:
    fabric = made(3)
    plan = plan_routes(fabric)

    def main(name: str, edit: Edit) -> HostTables:
        host = plan.of(name)
        routes = [f"ip route add {route_words(one, host.mtu)}" for one in host.routes if one.table == "main"]
        return read_text("\n".join(edit(routes)), name)

    same: Edit = changed("", "")
    there = main("clients", same)
    assert check_both(fabric, there, main("stores", same)) == []
    lost = check_both(fabric, there, main("stores", changed("nexthop via 10.2.0.3 dev eth1 weight 1", "")))
    assert [(one.kind, one.where) for one in lost] == [("one direction only", "router3")]
    turned = main("stores", lambda lines: [_swapped(lines[0])])
    assert [one.kind for one in check_both(fabric, there, turned)] == ["order differs"]


def _swapped(line: str) -> str:
    return line.replace("10.2.0.1 ", "X ").replace("10.2.0.2 ", "10.2.0.1 ").replace("X ", "10.2.0.2 ")


def test_what_was_not_given_is_told_as_unknown() -> None:
    verdict = check_host(made(2), "clients", HostTables())
    assert verdict.faults == ()
    assert verdict.unknown == ("routes", "rules", "addresses", "settings (sysctl)", "kernel options")


def test_json_of_ip_means_the_same_as_its_text() -> None:
    rows: list[dict[str, Any]] = [
        {"dst": "10.2.0.0/16", "protocol": "77", "metrics": [{"mtu": 9000}], "flags": [],
         "nexthops": [{"gateway": f"10.1.0.{k}", "dev": "eth0", "weight": 1, "flags": []} for k in (1, 2, 3)]},
        {"dst": "10.2.0.0/16", "gateway": "10.1.0.2", "dev": "eth0", "table": "2", "flags": ["linkdown"]},
        {"dst": "10.1.0.7", "table": "local", "type": "local", "flags": []},
    ]  # fmt: skip
    routes = read_text(json.dumps(rows), "routes.json").routes
    assert routes is not None
    assert [(one.to, one.table, len(one.hops), one.mtu) for one in routes] == [
        ("10.2.0.0/16", "main", 3, 9000),
        ("10.2.0.0/16", "2", 1, None),
    ]
    assert routes[1].hops[0].dead
    rules = read_text(json.dumps([{"priority": 1000, "src": "all", "fwmark": "0x2", "table": "2"}]), "rules.json").rules
    text = read_text("1000:\tfrom all fwmark 0x2 lookup 2\n", "rules.txt").rules
    assert rules is not None
    assert text is not None
    assert (rules[0].mark, rules[0].table, rules[0].preference) == (text[0].mark, text[0].table, text[0].preference)


@pytest.mark.parametrize(
    ("text", "said"),
    [("hello world\n", "is no address range"), ("", "holds no rule"), ("[1, 2]", "not a list of objects"),
     ("{broken", "is not JSON"), ("ip route add 10.0.0.0/99 dev x\n", "is no address range")],
)  # fmt: skip
def test_a_file_that_is_nothing_of_this_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_text(text, "some-file")


def test_a_name_that_is_no_class_of_hosts_gets_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean"):
        check_host(made(2), "client", HostTables())


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", ["net.ipv{}.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed"])
def test_sides_that_hash_otherwise_are_named(version: int, name: str) -> None:
    fabric, key = made(3, version=version), name.format(version)
    planned = {host.name: dict(host.settings) for host in plan_routes(fabric).hosts}
    near, far = HostTables(settings=planned["clients"]), HostTables(settings=planned["stores"])
    assert check_both(fabric, near, far) == [], "the plan gives both sides the same, of both IP versions"
    other = HostTables(settings=planned["stores"] | {key: "0"})
    assert [(one.kind, one.where) for one in check_both(fabric, near, other)] == [("hash differs", key)]
    assert check_both(made(1, version=version), near, other) == [], "one router is no choice"
