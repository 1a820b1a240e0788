# SPDX-License-Identifier: Apache-2.0
"""More mistakes at random places of drawn hosts and routers, invented after those of `drawn_route_mistakes` were all
named."""

from __future__ import annotations

import re
from random import Random

from drawn_hosts import DrawnHost
from drawn_route_mistakes import RouteMistake, add_lines, edit_addresses, edit_route, set_one_sysctl


def _hash_without_ports(host: DrawnHost, random: Random) -> str:
    host.set_sysctl("net.ipv4.fib_multipath_hash_policy", 3)
    host.set_sysctl("net.ipv4.fib_multipath_hash_fields", random.choice(["0x0003", "0x0007", "7"]))
    return "hash"


def _far_network_on_management(host: DrawnHost, random: Random) -> str:
    host.add("routes", "10.2.0.0/16 dev mgmt proto kernel scope link src 10.2.77.7")
    host.replace_text(
        "addresses", "scope global mgmt\n", "scope global mgmt\n    inet 10.2.77.7/16 scope global mgmt\n"
    )
    return "mgmt"


def _far_address_of_router(host: DrawnHost, random: Random) -> str:
    number = random.randrange(len(host.active))
    far = f"10.2.0.{number + 1}"
    host.edit_main_route(rf"via {host.active[number]} dev", f"via {far} dev")
    return far


def _route_in_default_table(host: DrawnHost, random: Random) -> str:
    host.edit_main_route("mtu 9000", "table default mtu 9000")
    return "10.2."


def _no_local_rule(host: DrawnHost, random: Random) -> str:
    host.remove_lines("rules", "lookup local")
    return "local"


def _router_port(host: DrawnHost, random: Random) -> str:
    device = random.choice(["eth0", "eth1"])
    host.outputs["addresses"] = re.sub(
        rf"({device}: .*qdisc mq) state", r"\1 master br0 state", host.outputs["addresses"]
    )
    return device


def _rules_of_one_fabric(host: DrawnHost, random: Random) -> str:
    table: str = re.findall(r"^10.2.0.0/16 .*table (\d+)", host.outputs["routes"], re.M)[0]
    host.remove_lines("rules", rf"lookup {table}$")
    return table


def _datagram_mode(host: DrawnHost, random: Random) -> str:
    mode = r"\1    ipoib pkey 0xffff mode datagram umcast 0\n"
    host.outputs["addresses"] = re.sub(r"(ib0: .*\n    link/ether .*\n)", mode, host.outputs["addresses"])
    return "ib0"


def _address_of_another_host(host: DrawnHost, random: Random) -> str:
    host.name = "client1"
    host.outputs["addresses"] = host.outputs["addresses"].replace("10.1.0.100/16", "10.1.0.101/16")
    host.outputs["routes"] = host.outputs["routes"].replace("10.1.0.100", "10.1.0.101")
    return "10.1.0.101"


def _single_address(host: DrawnHost, random: Random) -> str:
    host.replace_text("addresses", "fd01::64/64", "fd01::64/128")
    host.remove_lines("routes", "fd01::/64 dev eth0 proto kernel")
    return ""


LATER_ROUTE_MISTAKES: list[RouteMistake] = [
    RouteMistake("a hash of fields without ports", "4", "address|ports", _hash_without_ports),
    RouteMistake("buffers that do not grow", "4", "buffer|moderate", set_one_sysctl("net.ipv4.tcp_moderate_rcvbuf", 0)),
    RouteMistake(
        "few local ports", "4", "port", set_one_sysctl("net.ipv4.ip_local_port_range", "61000 61010", "50000 50100")
    ),
    RouteMistake(
        "neighbors that are believed for an hour",
        "4",
        "reachable|neighbor",
        set_one_sysctl("net.ipv4.neigh.eth0.base_reachable_time_ms", 3600000, 1800000),
    ),
    RouteMistake(
        "the far network by management",
        "4",
        "on link|on the link",
        _far_network_on_management,
        ("route never used", "second interface on the network", "address of the other side", "wrong source address"),
    ),
    RouteMistake(
        "a next hop without router",
        "4",
        "router not used|without|on the link",
        edit_route(r"nexthop via (\S+) dev eth0", "nexthop dev eth0"),
        ("router not used",),
    ),
    RouteMistake("the far address of a router", "4", "out of reach", _far_address_of_router, ("router not used",)),
    RouteMistake(
        "the route in the default table",
        "4",
        "default|no route|standby",
        _route_in_default_table,
        ("standby used first", "router not used", "route never used", "no route", "default route only"),
    ),
    RouteMistake("no rule for local addresses", "4", "local", _no_local_rule),
    RouteMistake(
        "a kernel without tables",
        "4",
        "kernel option",
        add_lines(
            "kernel",
            "CONFIG_IP_ADVANCED_ROUTER=y",
            "# CONFIG_IP_MULTIPLE_TABLES is not set",
            "CONFIG_IP_ROUTE_MULTIPATH=y",
        ),
    ),
    RouteMistake("packets that end at the router", "4", "ttl", set_one_sysctl("net.ipv4.ip_default_ttl", 1, 2)),
    RouteMistake(
        "little memory for TCP", "4", "tcp_mem", set_one_sysctl("net.ipv4.tcp_mem", "256 512 1024", "64 96 128")
    ),
    RouteMistake("the address of another host", "4", "another host|address", _address_of_another_host),
    RouteMistake(
        "a source range that is prohibited", "4", "discarded", add_lines("rules", "300:\tfrom 10.1.0.0/24 prohibit")
    ),
    RouteMistake("a single IPv6 address", "6", "out of reach|prefix", _single_address, ("next hop out of reach",)),
    RouteMistake("a small MTU of IPv6", "6", "mtu", set_one_sysctl("net.ipv6.conf.eth0.mtu", 1280, 1500)),
    RouteMistake(
        "IPv6 packets that end at the router",
        "6",
        "hop_limit|hop limit",
        set_one_sysctl("net.ipv6.conf.eth0.hop_limit", 1),
    ),
    RouteMistake("a rule missing for one router", "site", "without a rule", _rules_of_one_fabric),
    RouteMistake("datagram mode", "site", "datagram", _datagram_mode),
    RouteMistake("the second network unreachable", "site", "discarded", add_lines("routes", "unreachable 10.2.0.0/17")),
    RouteMistake("a port of a bridge in a router", "router4", "port|bridge|br0", _router_port),
    RouteMistake("an IPv6 router in a bridge", "router6", "port|bridge|br0", _router_port),
    RouteMistake(
        "a router of slow interfaces", "router4", "slow", edit_addresses("mtu 9000 qdisc mq", "mtu 9000 qdisc netem")
    ),
]
