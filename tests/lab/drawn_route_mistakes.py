# SPDX-License-Identifier: Apache-2.0
"""Mistakes at random places of drawn hosts and routers, with the reason that a check must give.

They were written down before the rules that name some of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from drawn_hosts import DrawnHost

Plant = Callable[[DrawnHost, Random], str]


@dataclass(frozen=True)
class RouteMistake:
    """A mistake on a host of a kind. `reason` must match the kind and the text of a fault that names the location which
    `plant` returns; `consequences` are kinds of faults that also follow from it."""

    name: str
    host: str
    reason: str
    plant: Plant
    consequences: tuple[str, ...] = ()
    needs_standby: bool = False


def add_lines(output: str, *lines: str) -> Plant:
    """Adds lines; GATE is a random active router, FAR the first address of the far network."""

    def plant(host: DrawnHost, random: Random) -> str:
        first = host.far_range.partition("/")[0].rstrip("0") or host.far_range
        gate = random.choice(host.active or [""])
        far = f"{first}{random.randint(100, 101)}" if host.version == 4 else f"{first}{random.randint(100, 101):x}"
        host.add(output, *(line.replace("GATE", gate).replace("FARNET", host.far_range).replace("FAR", far)
                           for line in lines))  # fmt: skip
        return ""

    return plant


def set_one_sysctl(setting: str, *values: object) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.set_sysctl(setting, random.choice(values))
        return setting

    return plant


def edit_route(old: str, *new: str) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.edit_main_route(old, random.choice(new))
        return ""

    return plant


def edit_addresses(old: str, *new: str) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.outputs["addresses"], count = re.subn(old, random.choice(new), host.outputs["addresses"], count=1)
        assert count == 1, old
        return ""

    return plant


# ---- routes


def _halves(host: DrawnHost, random: Random) -> str:
    first, second = random.sample(host.active, 2)
    host.remove_lines("routes", "^10.2.0.0/16 .*nexthop")
    host.add("routes", f"10.2.0.0/17 via {first} dev eth0 mtu 9000", f"10.2.128.0/17 via {second} dev eth0 mtu 9000")
    return "10.2."


def _leave_out(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.active)
    host.edit_main_route(rf"nexthop via {gateway} dev \S+ weight 1 ?", "")
    return gateway


def _standby_among_active(host: DrawnHost, random: Random) -> str:
    standby = host.gateways[-1]
    host.edit_main_route("$", f" nexthop via {standby} dev eth0 weight 1")
    return "router"


def _standby_first(host: DrawnHost, random: Random) -> str:
    metric = random.choice([50, 101, 1000])
    host.outputs["routes"] = re.sub(r"metric 11\d\d", f"metric {metric}", host.outputs["routes"])
    assert f"metric {metric} " in host.outputs["routes"]
    return host.gateways[-1]


def _own_link_address(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.gateways)
    host.outputs["neighbors"] = re.sub(
        rf"({gateway} dev \S+ lladdr) \S+", r"\1 52:54:00:00:00:64", host.outputs["neighbors"]
    )
    return gateway


def _failed_neighbor(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.gateways)
    host.outputs["neighbors"] = re.sub(rf"({gateway} dev \S+) lladdr.*", r"\1 FAILED", host.outputs["neighbors"])
    return gateway


def _bond_member(host: DrawnHost, random: Random) -> str:
    text = host.outputs["addresses"]
    text = text.replace(
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP>", "2: eth0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP>"
    )
    text = text.replace("qdisc mq state UP\n    link", "qdisc mq master bond0 state UP\n    link", 1)
    address = re.findall(r"    inet 10\S+ scope global eth0\n", text)[0]
    host.outputs["addresses"] = text.replace(address, "") + (
        "5: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP\n"
        + address.replace("eth0", "bond0")
    )
    return "eth0"


def _low_table(host: DrawnHost, random: Random) -> str:
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


def _long_prefix(host: DrawnHost, random: Random) -> str:
    length = random.choice([22, 24, 26])
    host.replace_text("addresses", "10.1.0.100/16", f"10.1.0.100/{length}")
    network = ipaddress.ip_interface(f"10.1.0.100/{length}").network
    host.replace_text("routes", "10.1.0.0/16 dev eth0 proto kernel", f"{network} dev eth0 proto kernel")
    return ""


# ---- a server of two fabrics


def _one_network_missing(host: DrawnHost, random: Random) -> str:
    number = random.choice([1, 2])
    host.remove_lines("routes", rf"^10.{number}.0.0/16 .*nexthop")
    return f"10.{number}.0"


def _exchanged_routers(host: DrawnHost, random: Random) -> str:
    text = host.outputs["routes"]
    lines = {number: re.findall(rf"^10.{number}.0.0/16 .*nexthop.*$", text, re.M)[0] for number in (1, 2)}
    number = random.choice([1, 2])
    other = lines[3 - number].replace(f"10.{3 - number}.0.0/16", f"10.{number}.0.0/16")
    host.outputs["routes"] = text.replace(lines[number], other)
    return f"10.{number}.0.0/16"


def _other_fabric_in_table(host: DrawnHost, random: Random) -> str:
    table = re.findall(r"^10.2.0.0/16 .*table (\d+)", host.outputs["routes"], re.M)[0]
    text = host.outputs["routes"]
    host.outputs["routes"] = re.sub(rf"^10.2.0.0/16( .*table {table} .*)$", r"10.1.0.0/16\1", text, flags=re.M)
    return ""


def _one_mark_for_two_routers(host: DrawnHost, random: Random) -> str:
    marks = re.findall(r"fwmark (0x\w+) lookup", host.outputs["rules"])
    host.replace_text("rules", f"fwmark {marks[-1]} lookup", f"fwmark {marks[0]} lookup")
    return ""


def _summary_route(host: DrawnHost, random: Random) -> str:
    host.remove_lines("routes", r"^10.2.0.0/16 .*nexthop")
    host.outputs["routes"] = re.sub(r"^10.1.0.0/16( .*nexthop)", r"10.0.0.0/14\1", host.outputs["routes"], flags=re.M)
    return "10."


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
        _low_table,
        ("router in several tables", "table without a rule"),
    ),
    RouteMistake(
        "an interface in a VRF",
        "4",
        "vrf",
        edit_addresses("qdisc mq state UP\n    link", "qdisc mq master vrf-blue state UP\n    link"),
    ),
    RouteMistake("an interface in a bond", "4", "interface|device|bond", _bond_member, ("wrong device",)),
    RouteMistake("a long prefix of the host", "4", "prefix|out of reach", _long_prefix),
    RouteMistake("a source address of another host", "4", "source", edit_route("mtu 9000", "src 10.1.0.200 mtu 9000")),
    RouteMistake(
        "an interface that is slowed down",
        "4",
        "netem|tbf|shap|slow",
        edit_addresses("mtu 9000 qdisc mq", "mtu 9000 qdisc netem", "mtu 9000 qdisc tbf"),
    ),
    RouteMistake(
        "an interface without ARP", "4", "ARP", edit_addresses("2: eth0: <BROADCAST,", "2: eth0: <BROADCAST,NOARP,")
    ),
    RouteMistake("a neighbor with the own link address", "4", "link address", _own_link_address),
    RouteMistake("a standby router among the active", "4", "priority", _standby_among_active, (), True),
    RouteMistake("no window scaling", "4", "window", set_one_sysctl("net.ipv4.tcp_window_scaling", 0)),
    RouteMistake("no selective acknowledgments", "4", "sack|acknowledg", set_one_sysctl("net.ipv4.tcp_sack", 0)),
    RouteMistake(
        "small receive buffers",
        "4",
        "buffer|window|tcp_rmem",
        set_one_sysctl("net.ipv4.tcp_rmem", "4096 65536 131072", "4096 16384 65536"),
    ),
    RouteMistake("small send buffers", "4", "buffer|tcp_wmem", set_one_sysctl("net.ipv4.tcp_wmem", "4096 16384 65536")),
    RouteMistake("few neighbors", "4", "neighbor", set_one_sysctl("net.ipv4.neigh.default.gc_thresh3", 2, 4)),
    RouteMistake("a host that answers ARP for others", "4", "proxy", set_one_sysctl("net.ipv4.conf.eth0.proxy_arp", 1)),
    RouteMistake("another seed of the hash", "4", "seed", set_one_sysctl("net.ipv4.fib_multipath_hash_seed", 0)),
    RouteMistake("connections that give up", "4", "retries", set_one_sysctl("net.ipv4.tcp_retries2", 1, 3)),
    RouteMistake(
        "a congestion control for slow lines",
        "4",
        "congestion",
        set_one_sysctl("net.ipv4.tcp_congestion_control", "lp", "vegas"),
    ),
    RouteMistake(
        "an address that is doubled",
        "6",
        "duplicate|doubled|dadfailed",
        edit_addresses(
            "scope global eth0", "scope global dadfailed tentative eth0", "scope global tentative dadfailed eth0"
        ),
    ),
    RouteMistake(
        "a deprecated address", "6", "deprecated", edit_addresses("scope global eth0", "scope global deprecated eth0")
    ),
    RouteMistake("IPv6 switched off", "6", "disable_ipv6|IPv6", set_one_sysctl("net.ipv6.conf.eth0.disable_ipv6", 1)),
    RouteMistake(
        "a route of an advertisement",
        "6",
        "unknown router|advertisement",
        add_lines("routes", "FARNET via fd01::77 dev eth0 proto ra metric 512"),
        ("route never used", "router not used"),
    ),
    RouteMistake("a standby of lower metric", "6", "standby used first", _standby_first, ("route never used",), True),
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
    RouteMistake("an IPv6 router that does not answer", "6", "does not answer", _failed_neighbor),
    RouteMistake(
        "an IPv6 hash by addresses", "6", "hash by address", set_one_sysctl("net.ipv6.fib_multipath_hash_policy", 0, 2)
    ),
    RouteMistake("the least MTU of IPv6", "6", "MTU too small", edit_route("mtu 9000", "mtu 1280", "mtu 1500")),
    RouteMistake("an IPv6 table by source", "6", "diverted|default", _management_table("from fd01::/64 lookup 50")),
    RouteMistake(
        "an IPv6 route to a server by one router",
        "6",
        "router not used",
        add_lines("routes", "FAR via GATE dev eth0 metric 1024 mtu 9000"),
    ),
    RouteMistake(
        "advertisements are accepted",
        "6",
        "accept_ra|advertisement",
        set_one_sysctl("net.ipv6.conf.eth0.accept_ra_rt_info_max_plen", 64),
    ),
    RouteMistake("few IPv6 neighbors", "6", "neighbor", set_one_sysctl("net.ipv6.neigh.default.gc_thresh3", 2, 4)),
    RouteMistake("one compute network missing", "site", "no route|default route", _one_network_missing),
    RouteMistake(
        "routers of the other network",
        "site",
        "unknown router|router not used",
        _exchanged_routers,
        ("router not used",),
    ),
    RouteMistake(
        "a table with the other network",
        "site",
        "table|router",
        _other_fabric_in_table,
        (
            "table without a route",
            "router without a table",
            "router in several tables",
            "unknown router",
            "mark of another router",
        ),
    ),
    RouteMistake("one mark for two routers", "site", "mark", _one_mark_for_two_routers),
    RouteMistake(
        "one route for both networks",
        "site",
        "unknown router|router not used|no route",
        _summary_route,
        ("unknown router", "router not used"),
    ),
]
