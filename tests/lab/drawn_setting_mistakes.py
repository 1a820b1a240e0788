# SPDX-License-Identifier: Apache-2.0
"""Mistakes with settings and kernel options of drawn hosts, with the reason that a check must give."""

from __future__ import annotations

from random import Random

from drawn_hosts import DrawnHost
from route_mistake import RouteMistake, add_lines, set_one_sysctl


def _plant_hash_without_ports(host: DrawnHost, random: Random) -> str:
    host.set_sysctl("net.ipv4.fib_multipath_hash_policy", 3)
    host.set_sysctl("net.ipv4.fib_multipath_hash_fields", random.choice(["0x0003", "0x0007", "7"]))
    return "hash"


SETTING_MISTAKES: list[RouteMistake] = [
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
    RouteMistake("IPv6 switched off", "6", "disable_ipv6|IPv6", set_one_sysctl("net.ipv6.conf.eth0.disable_ipv6", 1)),
    RouteMistake(
        "an IPv6 hash by addresses", "6", "hash by address", set_one_sysctl("net.ipv6.fib_multipath_hash_policy", 0, 2)
    ),
    RouteMistake(
        "advertisements are accepted",
        "6",
        "accept_ra|advertisement",
        set_one_sysctl("net.ipv6.conf.eth0.accept_ra_rt_info_max_plen", 64),
    ),
    RouteMistake("few IPv6 neighbors", "6", "neighbor", set_one_sysctl("net.ipv6.neigh.default.gc_thresh3", 2, 4)),
    RouteMistake("a hash of fields without ports", "4", "address|ports", _plant_hash_without_ports),
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
    RouteMistake("a small MTU of IPv6", "6", "mtu", set_one_sysctl("net.ipv6.conf.eth0.mtu", 1280, 1500)),
    RouteMistake(
        "IPv6 packets that end at the router",
        "6",
        "hop_limit|hop limit",
        set_one_sysctl("net.ipv6.conf.eth0.hop_limit", 1),
    ),
    RouteMistake(
        "neighbors that nobody asks for",
        "4",
        "solicit|neighbor",
        set_one_sysctl("net.ipv4.neigh.eth0.mcast_solicit", 0),
    ),
    RouteMistake(
        "a kernel without tables of IPv6",
        "6",
        "kernel option",
        add_lines(
            "kernel",
            "CONFIG_IP_ADVANCED_ROUTER=y",
            "CONFIG_IP_MULTIPLE_TABLES=y",
            "CONFIG_IP_ROUTE_MULTIPATH=y",
            "# CONFIG_IPV6_MULTIPLE_TABLES is not set",
        ),
    ),
    RouteMistake(
        "a kernel without connected mode",
        "site",
        "connected|kernel option",
        add_lines(
            "kernel",
            "CONFIG_IP_ADVANCED_ROUTER=y",
            "CONFIG_IP_MULTIPLE_TABLES=y",
            "CONFIG_IP_ROUTE_MULTIPATH=y",
            "# CONFIG_INFINIBAND_IPOIB_CM is not set",
        ),
    ),
    RouteMistake("a least timeout of a second", "4", "rto_min", set_one_sysctl("net.ipv4.tcp_rto_min_us", 1000000)),
    RouteMistake(
        "no packet waits for a neighbor", "4", "unres_qlen", set_one_sysctl("net.ipv4.neigh.eth0.unres_qlen_bytes", 0)
    ),
    RouteMistake("few routes of IPv6", "6", "max_size", set_one_sysctl("net.ipv6.route.max_size", 16)),
]
