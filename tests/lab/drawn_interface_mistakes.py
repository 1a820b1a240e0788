# SPDX-License-Identifier: Apache-2.0
"""Mistakes with interfaces, addresses and neighbors of drawn hosts, with the reason that a check must give."""

from __future__ import annotations

import ipaddress
import re
from random import Random

from drawn_hosts import DrawnHost
from route_mistake import RouteMistake, edit_addresses, edit_device_line


def _plant_own_link_address(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.gateways)
    host.outputs["neighbors"] = re.sub(
        rf"({gateway} dev \S+ lladdr) \S+", r"\1 52:54:00:00:00:64", host.outputs["neighbors"]
    )
    return gateway


def _plant_failed_neighbor(host: DrawnHost, random: Random) -> str:
    gateway = random.choice(host.gateways)
    host.outputs["neighbors"] = re.sub(rf"({gateway} dev \S+) lladdr.*", r"\1 FAILED", host.outputs["neighbors"])
    return gateway


def _plant_bond_member(host: DrawnHost, random: Random) -> str:
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


def _plant_long_prefix(host: DrawnHost, random: Random) -> str:
    length = random.choice([22, 24, 26])
    host.replace_text("addresses", "10.1.0.100/16", f"10.1.0.100/{length}")
    network = ipaddress.ip_interface(f"10.1.0.100/{length}").network
    host.replace_text("routes", "10.1.0.0/16 dev eth0 proto kernel", f"{network} dev eth0 proto kernel")
    return ""


def _plant_far_network_on_management(host: DrawnHost, random: Random) -> str:
    host.add("routes", "10.2.0.0/16 dev mgmt proto kernel scope link src 10.2.77.7")
    host.replace_text(
        "addresses", "scope global mgmt\n", "scope global mgmt\n    inet 10.2.77.7/16 scope global mgmt\n"
    )
    return "mgmt"


def _plant_datagram_mode(host: DrawnHost, random: Random) -> str:
    mode = r"\1    ipoib pkey 0xffff mode datagram umcast 0\n"
    host.outputs["addresses"] = re.sub(r"(ib0: .*\n    link/ether .*\n)", mode, host.outputs["addresses"])
    return "ib0"


def _plant_address_of_another_host(host: DrawnHost, random: Random) -> str:
    host.name = "client1"
    host.outputs["addresses"] = host.outputs["addresses"].replace("10.1.0.100/16", "10.1.0.101/16")
    host.outputs["routes"] = host.outputs["routes"].replace("10.1.0.100", "10.1.0.101")
    return "10.1.0.101"


def _plant_single_address(host: DrawnHost, random: Random) -> str:
    host.replace_text("addresses", "fd01::64/64", "fd01::64/128")
    host.remove_lines("routes", "fd01::/64 dev eth0 proto kernel")
    return ""


def _plant_without_address(host: DrawnHost, random: Random) -> str:
    host.outputs["addresses"] = re.sub(r"    inet6 fd01\S+ .*eth0\n", "", host.outputs["addresses"])
    return "fd01::/64"


def _plant_not_local(host: DrawnHost, random: Random) -> str:
    host.remove_lines("routes", "^local 10.1")
    host.add("routes", "local 127.0.0.1 dev lo table local proto kernel")
    return "10.1.0.100"


INTERFACE_MISTAKES: list[RouteMistake] = [
    RouteMistake(
        "an interface in a VRF",
        "4",
        "vrf",
        edit_addresses("qdisc mq state UP\n    link", "qdisc mq master vrf-blue state UP\n    link"),
    ),
    RouteMistake("an interface in a bond", "4", "interface|device|bond", _plant_bond_member, ("wrong device",)),
    RouteMistake("a long prefix of the host", "4", "prefix|out of reach", _plant_long_prefix),
    RouteMistake(
        "an interface that is slowed down",
        "4",
        "netem|tbf|shap|slow",
        edit_addresses("mtu 9000 qdisc mq", "mtu 9000 qdisc netem", "mtu 9000 qdisc tbf"),
    ),
    RouteMistake(
        "an interface without ARP", "4", "ARP", edit_addresses("2: eth0: <BROADCAST,", "2: eth0: <BROADCAST,NOARP,")
    ),
    RouteMistake("a neighbor with the own link address", "4", "link address", _plant_own_link_address),
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
    RouteMistake("an IPv6 router that does not answer", "6", "does not answer", _plant_failed_neighbor),
    RouteMistake(
        "the far network by management",
        "4",
        "address of the other side",
        _plant_far_network_on_management,
    ),
    RouteMistake("the address of another host", "4", "another host|address", _plant_address_of_another_host),
    RouteMistake(
        "a single IPv6 address", "6", "out of reach|prefix", _plant_single_address, ("next hop out of reach",)
    ),
    RouteMistake("datagram mode", "site", "datagram", _plant_datagram_mode),
    RouteMistake(
        "a queue of one packet", "4", "qlen|queue", edit_device_line("(DEVICE: .*state UP)", r"\1 qlen 1", "eth0")
    ),
    RouteMistake(
        "an address of the host only", "4", "scope|address", edit_addresses("scope global eth0", "scope host eth0")
    ),
    RouteMistake("an address that is not local", "4", "local", _plant_not_local),
    RouteMistake(
        "an interface that a protocol switched off",
        "4",
        "protodown|interface down",
        edit_device_line("(DEVICE: .*state UP)", r"\1 protodown on", "eth0"),
    ),
    RouteMistake(
        "no address of IPv6", "6", "not on the network|address", _plant_without_address, ("next hop out of reach",)
    ),
    RouteMistake(
        "an interface that waits",
        "4",
        "interface down|dormant",
        edit_device_line("(DEVICE: .*)state UP", r"\1state DORMANT", "eth0"),
    ),
]
