# SPDX-License-Identifier: Apache-2.0
"""What a sound host prints about its routes, and single faults that are put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fabric_builders import build_fabric

from sonde.design.routes.check import check_host_routes
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.plan import plan_routes
from sonde.design.routes.scripts import make_route_arguments
from sonde.design.routes.table_reader import parse_host_tables
from sonde.model.shell import quote_command

Outputs = dict[str, str]
Edit = Callable[[Outputs], None]

HOST_ADDRESSES = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP
    link/ether 52:54:00:00:00:64 brd ff:ff:ff:ff:ff:ff
    inet 10.1.0.100/16 brd 10.1.255.255 scope global eth0
3: mgmt: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP
    inet 192.168.9.7/24 scope global mgmt
"""
ROUTER_ADDRESSES = """2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP
    inet 10.1.0.2/16 scope global eth0
3: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP
    inet 10.2.0.2/16 scope global eth1
"""
# What every kernel prints, whether set or not.
DEFAULT_SYSCTLS = """kernel.osrelease = 6.8.0-45-generic
net.ipv4.tcp_adv_win_scale = 1
net.ipv4.tcp_congestion_control = cubic
net.ipv4.tcp_low_latency = 0
net.ipv4.tcp_mem = 190131 253510 380262
net.ipv4.tcp_timestamps = 1
net.ipv4.tcp_tw_reuse = 2
net.core.optmem_max = 131072
net.ipv4.conf.lo.rp_filter = 1
net.ipv4.conf.default.rp_filter = 1
"""
CONFS = {"rp_filter": 2, "arp_ignore": 0, "arp_filter": 0, "send_redirects": 0, "accept_redirects": 0}


def build_planted_fabric(version: int = 4) -> Fabric:
    """Four routers: three carry the traffic, the fourth is their standby."""
    fabric = build_fabric(4, ip_version=version)
    return replace(fabric, routers=(*fabric.routers[:3], replace(fabric.routers[3], priority=1)))


def make_host_outputs() -> Outputs:
    """The outputs of a host that has its plan: rules, routes, addresses, neighbors, settings."""
    host = plan_routes(build_planted_fabric()).find_host_plan("clients")
    rules = "".join(
        f"{rule.preference}:\tfrom all fwmark {hex(rule.mark)} lookup {rule.table}\n" for rule in host.rules
    )
    routes = "".join(f"{quote_command(make_route_arguments(route, host.mtu))}\n" for route in host.routes)
    settings = dict(host.settings)
    for device in ("all", "eth0"):
        for name, value in CONFS.items():
            settings.setdefault(f"net.ipv4.conf.{device}.{name}", str(value))
    return {
        "rules": f"0:\tfrom all lookup local\n{rules}32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n",
        "routes": f"{routes}10.1.0.0/16 dev eth0 proto kernel scope link src 10.1.0.100\n"
        "default via 192.168.9.1 dev mgmt\n192.168.9.0/24 dev mgmt proto kernel scope link src 192.168.9.7\n"
        "local 10.1.0.100 dev eth0 table local proto kernel scope host src 10.1.0.100\n",
        "addresses": HOST_ADDRESSES,
        "neighbors": "".join(
            f"10.1.0.{number} dev eth0 lladdr 52:54:00:00:00:0{number} {state}\n"
            for number, state in ((1, "REACHABLE"), (2, "STALE"), (3, "REACHABLE"), (4, "STALE"))
        ),
        "settings": DEFAULT_SYSCTLS + "".join(f"{name} = {value}\n" for name, value in settings.items()),
    }


def make_router_outputs() -> Outputs:
    """The outputs of router 2."""
    settings = {"net.ipv4.ip_forward": "1"}
    settings |= {f"net.ipv4.conf.{device}.{name}": str(value) for device in ("all", "eth0", "eth1")
                 for name, value in CONFS.items()}  # fmt: skip
    return {
        "routes": "10.1.0.0/16 dev eth0 proto kernel scope link src 10.1.0.2\n"
        "10.2.0.0/16 dev eth1 proto kernel scope link src 10.2.0.2\n"
        "local 10.1.0.2 dev eth0 table local proto kernel scope host src 10.1.0.2\n"
        "local 10.2.0.2 dev eth1 table local proto kernel scope host src 10.2.0.2\n"
        "default via 192.168.9.1 dev mgmt\n",
        "addresses": ROUTER_ADDRESSES,
        "settings": DEFAULT_SYSCTLS + "".join(f"{name} = {value}\n" for name, value in settings.items()),
    }


def check_outputs(outputs: Mapping[str, str], name: str = "clients") -> RouteCheck:
    """Checks the outputs of a host of the planted fabric."""
    tables = HostTables()
    for origin, text in outputs.items():
        if text:
            tables = tables.merge_tables(parse_host_tables(text, origin))
    return check_host_routes([build_planted_fabric()], name, tables)


def change(output: str, old: str, new: str) -> Edit:
    """Replaces a text of one output."""

    def edit(outputs: Outputs) -> None:
        assert old in outputs[output], old
        outputs[output] = outputs[output].replace(old, new)

    return edit


def add(output: str, *lines: str) -> Edit:
    """Adds lines to one output."""

    def edit(outputs: Outputs) -> None:
        outputs[output] = outputs.get(output, "") + "".join(f"{line}\n" for line in lines)

    return edit


def remove_lines(output: str, text: str) -> Edit:
    """Removes the lines with a text from one output."""

    def edit(outputs: Outputs) -> None:
        remaining = [line for line in outputs[output].splitlines() if text not in line]
        assert len(remaining) < len(outputs[output].splitlines())
        outputs[output] = "\n".join(remaining) + "\n"

    return edit


def combine(*edits: Edit) -> Edit:
    """Applies several edits."""

    def edit(outputs: Outputs) -> None:
        for each in edits:
            each(outputs)

    return edit


def set_output(output: str, text: str) -> Edit:
    """Replaces one output."""
    return lambda outputs: outputs.update({output: text})


def set_sysctl(name: str, value: object) -> Edit:
    """Sets one setting."""
    return add("settings", f"{name} = {value}")


MAIN_HOP = "nexthop via 10.1.0.1 dev eth0 weight 1 "
DEVICE_CONF = "net.ipv4.conf.eth0"
# What is wrong, the kind of fault that names it, and how it gets into the outputs of a host.
HOST_FAULTS: list[tuple[str, str, Edit]] = [
    ("no route to the far network", "default route only", combine(
        remove_lines("routes", "nexthop"), remove_lines("routes", "metric 101"))),
    ("only a route elsewhere", "no route", set_output(
        "routes", "10.1.0.0/16 dev eth0 proto kernel scope link src 10.1.0.100\n")),
    ("interface down", "interface down", change(
        "addresses", "eth0: <BROADCAST,MULTICAST,UP,LOWER_UP>", "eth0: <NO-CARRIER,BROADCAST,MULTICAST,UP>")),
    ("interface missing", "interface missing", change("addresses", "2: eth0:", "2: ens9:")),
    ("address of another network", "not on the network", change("addresses", "10.1.0.100/16", "10.7.0.100/16")),
    ("a router left out", "router not used", change("routes", MAIN_HOP, "")),
    ("a router named twice", "router named twice", change("routes", MAIN_HOP, MAIN_HOP * 2)),
    ("unequal weights", "weights differ", change("routes", MAIN_HOP, MAIN_HOP.replace("weight 1", "weight 3"))),
    ("a next hop that is no router", "unknown router", change("routes", "10.1.0.2 dev eth0 w", "10.1.0.9 dev eth0 w")),
    ("a next hop out of reach", "next hop out of reach", change(
        "routes", "10.1.0.2 dev eth0 w", "10.9.0.2 dev eth0 w")),
    ("a dead next hop", "next hop dead", change("routes", MAIN_HOP, f"{MAIN_HOP}dead linkdown ")),
    ("the wrong device", "wrong device", change("routes", "10.1.0.2 dev eth0 w", "10.1.0.2 dev mgmt w")),
    ("a more specific route to a stranger", "unknown router", add("routes", "10.2.8.0/24 via 10.1.0.77 dev eth0")),
    ("a more specific route to one router", "router not used", add("routes", "10.2.8.0/24 via 10.1.0.1 dev eth0")),
    ("a blackhole", "traffic discarded", add("routes", "blackhole 10.2.0.100")),
    ("a rule by destination", "traffic diverted", add(
        "rules", "500:\tfrom all to 10.2.0.0/16 lookup 1")),
    ("a rule that discards", "traffic discarded", add("rules", "400:\tfrom all to 10.2.0.0/24 unreachable")),
    ("the standby route is first", "standby used first", change(
        "routes", "mtu 9000 nexthop", "metric 200 mtu 9000 nexthop")),
    ("the far network on the link", "far network on link", change(
        "routes", "10.2.0.0/16 proto 77 table 2 mtu 9000 via 10.1.0.2 dev eth0",
        "10.2.0.0/16 table 2 dev eth0 scope link")),
    ("a route with a larger MTU", "MTU too large", change("routes", "mtu 9000 nexthop", "mtu 65520 nexthop")),
    ("another MTU on the device", "MTU mismatch", change("addresses", "eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu"
                                                      " 9000", "eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500")),
    ("a rule without its table", "rule without a table", remove_lines("routes", "table 3")),
    ("a rule behind the main table", "rule too late", change("rules", "1001:", "32800:")),
    ("all rules in one table", "all rules in one table", set_output(
        "rules", "".join(f"{1000 + number}:\tfrom all fwmark {number} lookup 1\n" for number in (1, 2, 3, 4)))),
    ("a rule on a router's address", "rule that cannot match", add("rules", "999:\tfrom 10.1.0.2 lookup 2")),
    ("hash by addresses", "hash by address only", set_sysctl("net.ipv4.fib_multipath_hash_policy", 0)),
    ("a strict reverse path", "strict reverse path", combine(
        set_sysctl(f"{DEVICE_CONF}.rp_filter", 1), set_sysctl("net.ipv4.conf.all.rp_filter", 0),
    )),
    ("ARP that is never answered", "ARP not answered", set_sysctl(f"{DEVICE_CONF}.arp_ignore", 8)),
    ("ARP filtered by a route elsewhere", "ARP not answered", combine(set_sysctl(f"{DEVICE_CONF}.arp_filter", 1),
        add("routes", "10.1.0.0/17 dev mgmt scope link"))),
    ("a stale neighbor of a replaced router", "two routers, one link address", change(
        "neighbors", "52:54:00:00:00:02 STALE", "52:54:00:00:00:03 STALE")),
    ("a router that does not answer", "router does not answer", change(
        "neighbors", "10.1.0.2 dev eth0 lladdr 52:54:00:00:00:02 STALE", "10.1.0.2 dev eth0 FAILED")),
    ("a fixed neighbor", "fixed neighbor", change("neighbors", "02 STALE", "02 PERMANENT")),
    ("redirects are accepted", "redirects accepted", set_sysctl(f"{DEVICE_CONF}.accept_redirects", 1)),
    ("memory in bytes", "setting wrong", set_sysctl("net.ipv4.tcp_mem", "4096 87380 268435456")),
    # drawn after the rules were written
    ("half of the far network", "route for a part", change(
        "routes", "10.2.0.0/16 proto 77 mtu 9000 nexthop", "10.2.0.0/17 proto 77 mtu 9000 nexthop")),
    ("a prohibited part", "traffic discarded", add("routes", "prohibit 10.2.77.0/24")),
    ("a rule on the own address", "traffic discarded", add("rules", "300:\tfrom 10.1.0.100 unreachable")),
    ("a main table without short prefixes", "no route", change(
        "rules", "32766:\tfrom all lookup main", "32766:\tfrom all lookup main suppress_prefixlength 16")),
    ("no rule for the main table", "no route", remove_lines("rules", "lookup main")),
    ("a foreign route of lower metric", "router not used", combine(
        change("routes", "10.2.0.0/16 proto 77 mtu 9000 nexthop", "10.2.0.0/16 proto 77 metric 90 mtu 9000 nexthop"),
        add("routes", "10.2.0.0/16 metric 50 nexthop via 10.1.0.1 dev eth0 nexthop via 10.1.0.2 dev eth0"))),
    ("no standby route", "standby missing", remove_lines("routes", "metric 101")),
    ("a table through another router", "router in several tables", change(
        "routes", "table 2 mtu 9000 via 10.1.0.2", "table 2 mtu 9000 via 10.1.0.3")),
    ("exchanged marks", "mark of another router", combine(
        change("rules", "fwmark 0x1 lookup 1", "fwmark 0x1 lookup 22"),
        change("rules", "fwmark 0x2 lookup 2\n", "fwmark 0x2 lookup 1\n"),
        change("rules", "lookup 22", "lookup 2"))),
    ("the address of a router", "address of a router", change(
        "addresses", "    link/ether", "    inet 10.1.0.2/16 scope global secondary eth0\n    link/ether")),
    ("an address without its network", "next hop out of reach", combine(
        change("addresses", "10.1.0.100/16 brd", "10.1.0.100/32 brd"),
        remove_lines("routes", "proto kernel scope link src 10.1.0.100"))),
    ("redirects accepted for all devices", "redirects accepted", set_sysctl("net.ipv4.conf.all.accept_redirects", 1)),
    ("strict for all devices", "strict reverse path", combine(
        set_sysctl("net.ipv4.conf.all.rp_filter", 1), set_sysctl(f"{DEVICE_CONF}.rp_filter", 0))),
    # drawn a second time
    ("the source address of another network", "wrong source address", change(
        "routes", "10.2.0.0/16 proto 77 mtu 9000 nexthop", "10.2.0.0/16 proto 77 src 192.168.9.7 mtu 9000 nexthop")),
    ("a mask that takes other marks", "mark of another router", change(
        "rules", "fwmark 0x1 lookup 1\n", "fwmark 0x1/0x1 lookup 1\n")),
    ("two rules for a mark", "mark of another router", add("rules", "900:\tfrom all fwmark 0x2 lookup 3")),
    ("a link that is not operational", "interface down", change(
        "addresses", "mtu 9000 qdisc mq state UP", "mtu 9000 qdisc mq state DOWN")),
    ("a route with a smaller MTU", "MTU too small", change("routes", "mtu 9000 nexthop", "mtu 1500 nexthop")),
    ("segments of Ethernet", "segments too small", change(
        "routes", "mtu 9000 nexthop", "mtu 9000 advmss 1460 nexthop")),
    ("dead routers are not left out", "dead routers are used", set_sysctl("net.ipv4.fib_multipath_use_neigh", 0)),
    ("hash of tunnels", "hash by address only", set_sysctl("net.ipv4.fib_multipath_hash_policy", 2)),
    ("two interfaces on one network", "second interface on the network", add(
        "addresses", "4: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP",
        "    inet 10.1.0.101/16 scope global eth1")),
    ("an unresolved router", "router does not answer", change(
        "neighbors", "10.1.0.3 dev eth0 lladdr 52:54:00:00:00:03 REACHABLE", "10.1.0.3 dev eth0 INCOMPLETE")),
    ("a router that answers elsewhere", "wrong device", change(
        "neighbors", "10.1.0.1 dev eth0", "10.1.0.1 dev mgmt")),
    ("a prefix over both networks", "prefix too short", combine(
        change("addresses", "10.1.0.100/16", "10.1.0.100/8"),
        change("routes", "10.1.0.0/16 dev eth0 proto kernel", "10.0.0.0/8 dev eth0 proto kernel"))),
    ("a throw route", "no route", add("routes", "throw 10.2.0.0/24")),
    ("an address of a server", "address of the other side", add(
        "routes", "local 10.2.0.100 dev lo table local proto kernel scope host")),
    ("a rule for the port of Lustre", "traffic diverted", add(
        "rules", "900:\tfrom all ipproto tcp dport 988 lookup 1")),
    ("a route for a type of service", "traffic diverted", add("routes", "10.2.0.0/16 tos 0x10 via 10.1.0.1 dev eth0")),
]  # fmt: skip
ROUTER_FAULTS: list[tuple[str, str, Edit]] = [
    ("a missing route of a network of the router", "own network missing", remove_lines(
        "routes", "10.2.0.0/16 dev eth1 proto kernel")),
    ("a part of a network by another interface", "wrong device", add("routes", "10.2.9.0/24 dev mgmt scope link")),
    ("a throw route of a router", "own network missing", combine(
        add("routes", "throw 10.2.9.0/24"), remove_lines("routes", "default via"))),
    ("a host's address on the router", "traffic discarded", add("routes", "local 10.2.0.100 dev lo table local")),
    ("a rule for one side that leads elsewhere", "sent to another router", combine(
        add("rules", "60:\tfrom 10.1.0.0/16 lookup 9"), add("routes", "default via 192.168.9.1 dev mgmt table 9"))),
    ("a rule of the router for a port", "traffic discarded", add(
        "rules", "60:\tfrom all iif eth0 ipproto tcp dport 988 prohibit")),
    ("a router that does not forward", "forwarding off", set_sysctl("net.ipv4.ip_forward", 0)),
    ("a small MTU of a route of the router", "MTU too small", change(
        "routes", "10.2.0.0/16 dev eth1 proto kernel", "10.2.0.0/16 dev eth1 mtu 1400 proto kernel")),
    ("a locked MTU of a route of the router", "attribute not planned", change(
        "routes", "10.1.0.0/16 dev eth0 proto kernel", "10.1.0.0/16 dev eth0 mtu lock 9000 proto kernel")),
    ("an MTU of the router", "MTU mismatch", change("addresses", "eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000",
                                                 "eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500")),
    ("redirects are sent", "redirects sent", set_sysctl("net.ipv4.conf.eth0.send_redirects", 1)),
    ("a router without its far address", "address missing", change("addresses", "10.2.0.2/16", "10.2.0.77/16")),
    ("a router with strict filtering", "strict reverse path", combine(set_sysctl("net.ipv4.conf.eth1.rp_filter", 1),
        set_sysctl("net.ipv4.conf.all.rp_filter", 1))),
    ("a router whose interface is down", "interface down", change(
        "addresses", "eth1: <BROADCAST,MULTICAST,UP,LOWER_UP>", "eth1: <BROADCAST,MULTICAST>")),
    ("a router that discards", "traffic discarded", add("routes", "blackhole 10.2.0.0/24")),
    ("a router that answers no ARP", "ARP not answered", set_sysctl("net.ipv4.conf.all.arp_ignore", 8)),
    # drawn a second time
    ("one side that is not forwarded", "forwarding off", set_sysctl("net.ipv4.conf.eth1.forwarding", 0)),
    ("a prefix of a part of the network", "hosts out of reach", combine(
        change("addresses", "10.2.0.2/16", "10.2.0.2/24"), change("routes", "10.2.0.0/16 dev eth1", "10.2.0.0/24 dev"
                                                                  " eth1"))),
    ("the address of another router", "address of a router", change(
        "addresses", "    inet 10.1.0.2/16 scope global eth0",
        "    inet 10.1.0.2/16 scope global eth0\n    inet 10.1.0.3/16 scope global secondary eth0")),
]  # fmt: skip
