# SPDX-License-Identifier: Apache-2.0
"""Mistakes with routes and rules of drawn hosts, with the reason that a check must give."""

from __future__ import annotations

import re
from random import Random

from drawn_hosts import DrawnHost
from route_mistake import Plant, RouteMistake, add_lines


def edit_route(old: str, *new: str) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.edit_main_route(old, random.choice(new))
        return ""

    return plant


def _halves(host: DrawnHost, random: Random) -> str:
    first, second = random.sample(host.active, 2)
    host.remove_lines("routes", "^10.2.0.0/16 .*nexthop")
    host.add("routes", f"10.2.0.0/17 via {first} dev eth0 mtu 9000", f"10.2.128.0/17 via {second} dev eth0 mtu 9000")
    return "10.2."


def _leave_out(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.active)
    host.edit_main_route(rf"nexthop via {gateway} dev \S+ weight 1 ?", "")
    return gateway


def _plant_standby_among_active(host: DrawnHost, random: Random) -> str:
    standby = host.gateways[-1]
    host.edit_main_route("$", f" nexthop via {standby} dev eth0 weight 1")
    return "router"


def _plant_standby_first(host: DrawnHost, random: Random) -> str:
    metric = random.choice([50, 101, 1000])
    host.outputs["routes"] = re.sub(r"metric 11\d\d", f"metric {metric}", host.outputs["routes"])
    assert f"metric {metric} " in host.outputs["routes"]
    return host.gateways[-1]


def _plant_low_table(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.active)
    host.add("rules", "5:\tfrom all lookup 50")
    host.add("routes", f"{host.far_range} via {gateway} dev {host.device} mtu 9000 table 50")
    return gateway


def _management_table(rule: str) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.add("rules", f"{random.randint(50, 900)}:\t{rule}")
        host.add("routes", "default via 192.168.9.1 dev mgmt table 50" if host.version == 4
                 else "default via fd09::1 dev mgmt table 50")  # fmt: skip
        return "50"

    return plant


def _plant_one_network_missing(host: DrawnHost, random: Random) -> str:
    number = random.choice([1, 2])
    host.remove_lines("routes", rf"^10.{number}.0.0/16 .*nexthop")
    return f"10.{number}.0"


def _plant_exchanged_routers(host: DrawnHost, random: Random) -> str:
    text = host.outputs["routes"]
    lines = {number: re.findall(rf"^10.{number}.0.0/16 .*nexthop.*$", text, re.M)[0] for number in (1, 2)}
    number = random.choice([1, 2])
    other = lines[3 - number].replace(f"10.{3 - number}.0.0/16", f"10.{number}.0.0/16")
    host.outputs["routes"] = text.replace(lines[number], other)
    return f"10.{number}.0.0/16"


def _plant_other_fabric_in_table(host: DrawnHost, random: Random) -> str:
    table = re.findall(r"^10.2.0.0/16 .*table (\d+)", host.outputs["routes"], re.M)[0]
    text = host.outputs["routes"]
    host.outputs["routes"] = re.sub(rf"^10.2.0.0/16( .*table {table} .*)$", r"10.1.0.0/16\1", text, flags=re.M)
    return ""


def _plant_one_mark_for_two_routers(host: DrawnHost, random: Random) -> str:
    marks = re.findall(r"fwmark (0x\w+) lookup", host.outputs["rules"])
    host.replace_text("rules", f"fwmark {marks[-1]} lookup", f"fwmark {marks[0]} lookup")
    return ""


def _plant_summary_route(host: DrawnHost, random: Random) -> str:
    host.remove_lines("routes", r"^10.2.0.0/16 .*nexthop")
    host.outputs["routes"] = re.sub(r"^10.1.0.0/16( .*nexthop)", r"10.0.0.0/14\1", host.outputs["routes"], flags=re.M)
    return "10."


def _plant_far_address_of_router(host: DrawnHost, random: Random) -> str:
    number = random.randrange(len(host.active))
    far = f"10.2.0.{number + 1}"
    host.edit_main_route(rf"via {host.active[number]} dev", f"via {far} dev")
    return far


def _plant_route_in_default_table(host: DrawnHost, random: Random) -> str:
    host.edit_main_route("mtu 9000", "table default mtu 9000")
    return "10.2."


def _remove_local_table_rule(host: DrawnHost, random: Random) -> str:
    host.remove_lines("rules", "lookup local")
    return "local"


def _plant_rules_of_one_fabric(host: DrawnHost, random: Random) -> str:
    table: str = re.findall(r"^10.2.0.0/16 .*table (\d+)", host.outputs["routes"], re.M)[0]
    host.remove_lines("rules", rf"lookup {table}$")
    return table


def _plant_wider_destination(host: DrawnHost, random: Random) -> str:
    wider = random.choice(["10.2.0.0/15", "10.0.0.0/14"])
    host.outputs["routes"] = re.sub(r"^10.2.0.0/16( .*nexthop)", rf"{wider}\1", host.outputs["routes"], flags=re.M)
    return wider


def _add_source_port_rule(host: DrawnHost, random: Random) -> str:
    host.add("rules", "900:\tfrom all ipproto tcp sport 988 lookup 50")
    host.add("routes", "default via 192.168.9.1 dev mgmt table 50")
    return ""


ROUTE_MISTAKES: list[RouteMistake] = [
    RouteMistake(
        "a server by the management network",
        "4",
        "unknown router|out of reach|elsewhere",
        add_lines("routes", "FAR via 192.168.9.1 dev mgmt"),
    ),
    RouteMistake("two halves by one router each", "4", "router not used", _halves),
    RouteMistake(
        "a small window of a route",
        "4",
        "window",
        edit_route("mtu 9000", "mtu 9000 window 65535", "mtu 9000 window 16384"),
    ),
    RouteMistake("a locked small MTU", "4", "MTU too small", edit_route("mtu 9000", "mtu lock 1400", "mtu lock 1500")),
    RouteMistake("a first window of one packet", "4", "initcwnd", edit_route("mtu 9000", "mtu 9000 initcwnd 1")),
    RouteMistake(
        "a long least timeout",
        "4",
        "rto_min",
        edit_route("mtu 9000", "mtu 9000 rto_min lock 5s", "mtu 9000 rto_min 3s"),
    ),
    RouteMistake(
        "a rule that skips the main table",
        "4",
        "goto|no route",
        add_lines("rules", "100:\tfrom all goto 32767"),
        ("no route", "default route only"),
    ),
    RouteMistake("a table for one user", "4", "diverted", _management_table("from all uidrange 0-0 lookup 50")),
    RouteMistake(
        "a table for other sources", "4", "diverted|default", _management_table("not from 172.16.0.0/12 lookup 50")
    ),
    RouteMistake("a table for one interface", "4", "diverted", _management_table("from all oif eth0 lookup 50")),
    RouteMistake(
        "an early table with one router",
        "4",
        "diverted",
        _plant_low_table,
        ("router in several tables", "table without a rule"),
    ),
    RouteMistake("a source address of another host", "4", "source", edit_route("mtu 9000", "src 10.1.0.200 mtu 9000")),
    RouteMistake("a standby router among the active", "4", "priority", _plant_standby_among_active, (), True),
    RouteMistake(
        "a route of an advertisement",
        "6",
        "unknown router|advertisement",
        add_lines("routes", "FARNET via fd01::77 dev eth0 proto ra metric 512"),
        ("route never used", "router not used"),
    ),
    RouteMistake(
        "a standby of lower metric", "6", "standby used first", _plant_standby_first, ("route never used",), True
    ),
    RouteMistake("an IPv6 route without a router", "6", "router not used", _leave_out),
    RouteMistake(
        "an IPv6 blackhole",
        "6",
        "discarded",
        add_lines(
            "routes",
            "blackhole FAR dev lo metric 1024",
        ),
    ),
    RouteMistake("the least MTU of IPv6", "6", "MTU too small", edit_route("mtu 9000", "mtu 1280", "mtu 1500")),
    RouteMistake("an IPv6 table by source", "6", "diverted|default", _management_table("from fd01::/64 lookup 50")),
    RouteMistake(
        "an IPv6 route to a server by one router",
        "6",
        "router not used",
        add_lines("routes", "FAR via GATE dev eth0 metric 1024 mtu 9000"),
    ),
    RouteMistake("one compute network missing", "site", "no route|default route", _plant_one_network_missing),
    RouteMistake(
        "routers of the other network",
        "site",
        "unknown router|router not used",
        _plant_exchanged_routers,
        ("router not used",),
    ),
    RouteMistake(
        "a table with the other network",
        "site",
        "table|router",
        _plant_other_fabric_in_table,
        (
            "table without a route",
            "router without a table",
            "router in several tables",
            "unknown router",
            "mark of another router",
        ),
    ),
    RouteMistake("one mark for two routers", "site", "mark", _plant_one_mark_for_two_routers),
    RouteMistake(
        "one route for both networks",
        "site",
        "unknown router|router not used|no route",
        _plant_summary_route,
        ("unknown router", "router not used"),
    ),
    RouteMistake(
        "a next hop without router",
        "4",
        "router not used|without|on the link",
        edit_route(r"nexthop via (\S+) dev eth0", "nexthop dev eth0"),
        ("router not used",),
    ),
    RouteMistake("the far address of a router", "4", "out of reach", _plant_far_address_of_router),
    RouteMistake(
        "the route in the default table",
        "4",
        "default|no route|standby",
        _plant_route_in_default_table,
        ("standby used first", "router not used", "route never used", "no route", "default route only"),
    ),
    RouteMistake("no rule for local addresses", "4", "local", _remove_local_table_rule),
    RouteMistake(
        "a source range that is prohibited", "4", "discarded", add_lines("rules", "300:\tfrom 10.1.0.0/24 prohibit")
    ),
    RouteMistake("a rule missing for one router", "site", "without a rule", _plant_rules_of_one_fabric),
    RouteMistake("the second network unreachable", "site", "discarded", add_lines("routes", "unreachable 10.2.0.0/17")),
    RouteMistake("a route that expires", "6", "expire", edit_route("mtu 9000", "expires 300sec mtu 9000")),
    RouteMistake("a wider destination", "4", "wider", _plant_wider_destination, ("standby used first",)),
    RouteMistake(
        "a first window of the receiver of one packet", "4", "initrwnd", edit_route("mtu 9000", "mtu 9000 initrwnd 1")
    ),
    RouteMistake("a rule for the port of the source", "4", "diverted", _add_source_port_rule),
    RouteMistake(
        "a congestion control of a route",
        "4",
        "congctl",
        edit_route("mtu 9000", "mtu 9000 congctl vegas", "mtu 9000 congctl lp"),
    ),
]
