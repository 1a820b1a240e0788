# SPDX-License-Identifier: Apache-2.0
"""Mistakes of drawn routers, with the reason that a check must give."""

from __future__ import annotations

import re
from random import Random

from drawn_hosts import DrawnHost
from route_mistake import RouteMistake, add_lines, edit_addresses, edit_device_line, set_one_sysctl


def _plant_loop(host: DrawnHost, random: Random) -> str:
    far_address = re.findall(r"inet (10.2.0.\d+)/", host.outputs["addresses"])[0]
    other = next(f"10.1.0.{number}" for number in (1, 2, 3) if not far_address.endswith(f".{number}"))
    host.add("routes", f"10.2.{random.randint(0, 1) * 128}.0/17 via {other} dev eth0")
    return "10.2."


def _plant_router_port(host: DrawnHost, random: Random) -> str:
    device = random.choice(["eth0", "eth1"])
    host.outputs["addresses"] = re.sub(
        rf"({device}: .*qdisc mq) state", r"\1 master br0 state", host.outputs["addresses"]
    )
    return device


ROUTER_MISTAKES: list[RouteMistake] = [
    RouteMistake(
        "a router with forwarding off for all",
        "router4",
        "forwarding",
        set_one_sysctl("net.ipv4.conf.all.forwarding", 0),
    ),
    RouteMistake("a router that sends back", "router4", "loop|by another|router", _plant_loop),
    RouteMistake(
        "a rule of a router that discards",
        "router4",
        "discarded",
        add_lines("rules", "100:\tfrom all to 10.2.0.0/16 blackhole"),
    ),
    RouteMistake(
        "a router that answers ARP for others", "router4", "proxy", set_one_sysctl("net.ipv4.conf.eth1.proxy_arp", 1)
    ),
    RouteMistake(
        "few tracked connections of a router",
        "router4",
        "conntrack",
        set_one_sysctl("net.netfilter.nf_conntrack_max", 1000, 4096),
    ),
    RouteMistake(
        "few neighbors of a router", "router4", "neighbor", set_one_sysctl("net.ipv4.neigh.default.gc_thresh3", 2)
    ),
    RouteMistake(
        "an IPv6 router that does not forward",
        "router6",
        "forwarding",
        set_one_sysctl("net.ipv6.conf.all.forwarding", 0),
    ),
    RouteMistake(
        "IPv6 off on one side of a router",
        "router6",
        "disable_ipv6|IPv6",
        set_one_sysctl("net.ipv6.conf.eth1.disable_ipv6", 1),
    ),
    RouteMistake(
        "an IPv6 router with single addresses",
        "router6",
        "out of reach|prefix",
        edit_addresses(r"(fd02::\w+)/64", r"\1/128"),
    ),
    RouteMistake(
        "a doubled address of an IPv6 router",
        "router6",
        "duplicate|doubled|dadfailed",
        edit_addresses("scope global eth1", "scope global dadfailed tentative eth1"),
    ),
    RouteMistake("a port of a bridge in a router", "router4", "port|bridge|br0", _plant_router_port),
    RouteMistake("an IPv6 router in a bridge", "router6", "port|bridge|br0", _plant_router_port),
    RouteMistake(
        "a router of slow interfaces", "router4", "slow", edit_addresses("mtu 9000 qdisc mq", "mtu 9000 qdisc netem")
    ),
    RouteMistake("a router that answers no ARP", "router4", "arp", set_one_sysctl("net.ipv4.conf.eth0.arp_ignore", 8)),
    RouteMistake(
        "a router with a dead link",
        "router4",
        "interface down",
        edit_device_line(
            "DEVICE: <BROADCAST,MULTICAST,UP,LOWER_UP>( .*)state UP",
            r"DEVICE: <NO-CARRIER,BROADCAST,MULTICAST,UP>\1state DOWN",
            "eth0",
            "eth1",
        ),
    ),
    RouteMistake(
        "a router that forwards from one side",
        "router4",
        "forwarding",
        set_one_sysctl("net.ipv4.conf.eth1.forwarding", 0),
    ),
    RouteMistake("a short queue of a router", "router4", "backlog", set_one_sysctl("net.core.netdev_max_backlog", 10)),
]
