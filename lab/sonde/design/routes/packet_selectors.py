# SPDX-License-Identifier: Apache-2.0
"""Decides whether a selector of a firewall rule matches a packet of planned traffic: always, sometimes, never, or not
known.

A selector that this file does not evaluate is "unknown", never skipped: a rule that drops by it is reported as one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

NETFILTER_PROTOCOLS = {"icmp": "1", "tcp": "6", "udp": "17", "icmpv6": "58", "ipv6-icmp": "58", "ipv6icmp": "58",
                       "sctp": "132", "esp": "50", "ah": "51", "gre": "47", "ipip": "4", "ipv4": "4", "ipencap": "4",
                       "ipv6": "41", "igmp": "2", "dccp": "33", "udplite": "136", "vrrp": "112",
                       "ospf": "89"}  # fmt: skip
# The ports of network file systems by the names that nft and iptables print for them.
_SERVICE_PORTS = {"gpfs": 1191, "nfs": 2049, "shilp": 2049}
_LAST_PORT = 65535
_ALL_PORTS = (0, _LAST_PORT)
# Hops that a packet has left: Linux sends with 64, and at most two routers of a plan forward it.
_HOPS = (62, 64)
# Types of the errors about the size of packets, by protocol.
_SIZE_ERROR_TYPES = {
    "icmp": frozenset({"3", "3/4", "destination-unreachable", "fragmentation-needed", "frag-needed", "any", "255"}),
    "icmpv6": frozenset({"2", "2/0", "packet-too-big", "any"}),
}
# States of connections that no planned connection has.
_ABSENT_STATUS = {"EXPECTED", "SNAT", "DNAT", "DYING"}


class Match(IntEnum):
    """Whether a rule matches a packet; of several selectors, the smallest value counts."""

    NEVER = 0
    UNKNOWN = 1
    SOMETIMES = 2  # by the rate or number of packets, or for some ports or sizes
    ALWAYS = 3


@dataclass(frozen=True)
class Packet:
    """A packet of planned traffic: by default the first one of a TCP connection, to any port.

    `path` is "forward", "input" or "output". Ports and `length` (bytes of the IP packet) are ranges: one number, or all
    that such packets have.
    """

    source: str
    destination: str
    input_device: str
    output_device: str
    path: str = "forward"
    protocol: str = "tcp"
    states: frozenset[str] = frozenset({"NEW"})
    flags: frozenset[str] = frozenset({"SYN"})
    source_ports: tuple[int, int] = _ALL_PORTS
    destination_ports: tuple[int, int] = _ALL_PORTS
    length: tuple[int, int] = (40, 80)
    is_reply: bool = False
    mark: int = 0
    unknown_mark_bits: int = 0  # that rules set for some of these packets only


@dataclass(frozen=True)
class Selector:
    """A condition of a rule: the member of a packet, the accepted values as the rule names them, separated by commas,
    and the text of the rule."""

    member: str
    value: str
    is_inverted: bool = False
    text: str = ""
    alternatives: tuple[tuple[Selector, ...], ...] = ()  # of which one must match with all its selectors

    @property
    def description(self) -> str:
        """The condition as the rule writes it."""
        return self.text or f"{self.member} {self.value}"


def evaluate_selector(selector: Selector, packet: Packet) -> Match:
    """Whether a selector matches a packet."""
    evaluate = _EVALUATIONS.get(selector.member)
    match = evaluate(selector.value, packet) if evaluate is not None else Match.UNKNOWN
    if selector.member == "alternatives":
        matches = [min(evaluate_selector(part, packet) for part in parts) for parts in selector.alternatives]
        match = max(matches, default=Match.NEVER)
    if selector.is_inverted and match in (Match.ALWAYS, Match.NEVER):
        return Match.NEVER if match is Match.ALWAYS else Match.ALWAYS
    return match


def parse_number(number_text: str) -> int | None:
    """A decimal or hexadecimal number; None for other texts."""
    try:
        return int(number_text, 0)
    except ValueError:
        return None


def _decide(is_match: bool) -> Match:
    return Match.ALWAYS if is_match else Match.NEVER


@lru_cache(maxsize=4096)
def parse_address_ranges(value: str) -> tuple[frozenset[int], tuple[tuple[int, int], ...], bool]:
    """Single addresses, ranges of addresses, and whether all texts of the value are addresses."""
    single, ranges, is_complete = set[int](), list[tuple[int, int]](), True
    for text in value.split(","):
        first, separator, last = text.strip().partition("-")
        try:
            if separator:
                ranges.append((int(ipaddress.ip_address(first)), int(ipaddress.ip_address(last))))
            elif "/" in first:
                network = ipaddress.ip_network(first, strict=False)
                ranges.append((int(network.network_address), int(network.broadcast_address)))
            else:
                single.add(int(ipaddress.ip_address(first)))
        except ValueError:
            is_complete = False
    return frozenset(single), tuple(ranges), is_complete


def _match_address(value: str, address: str) -> Match:
    single, ranges, is_complete = parse_address_ranges(value)
    number = int(ipaddress.ip_address(address))
    if number in single or any(first <= number <= last for first, last in ranges):
        return Match.ALWAYS
    return Match.NEVER if is_complete else Match.UNKNOWN


def _match_device(value: str, device: str, is_absent: bool) -> Match:
    if is_absent:
        return Match.NEVER
    patterns = [pattern.strip() for pattern in value.split(",")]
    if any(pattern.startswith("@") for pattern in patterns):
        return Match.UNKNOWN
    return _decide(any(
        device.startswith(each[:-1]) if each.endswith(("+", "*")) else each == device for each in patterns
    ))  # fmt: skip


def _match_range(value: str, numbers: tuple[int, int]) -> Match:
    """Whether ranges as 988,2049,50000:50100 contain all numbers of a range, some or none."""
    covered = 0
    for text in value.split(","):
        first_text, separator, last_text = text.strip().replace(":", "-").partition("-")
        first = _SERVICE_PORTS.get(first_text) or parse_number(first_text or "0")
        last = first if not separator else _SERVICE_PORTS.get(last_text) or parse_number(last_text or str(1 << 32))
        if first is not None and last is not None:  # other names are those of services that nobody plans
            covered += max(0, min(last, numbers[1]) - max(first, numbers[0]) + 1)
    if covered >= numbers[1] - numbers[0] + 1:
        return Match.ALWAYS
    return Match.SOMETIMES if covered else Match.NEVER


def _match_ports(value: str, packet: Packet, is_destination: bool) -> Match:
    if packet.protocol not in ("tcp", "udp"):
        return Match.NEVER
    if value.startswith("@"):
        return Match.UNKNOWN
    return _match_range(value, packet.destination_ports if is_destination else packet.source_ports)


def _match_any_port(value: str, packet: Packet) -> Match:
    return max(_match_ports(value, packet, is_destination=True), _match_ports(value, packet, is_destination=False))


def _match_protocol(value: str, packet: Packet) -> Match:
    number = NETFILTER_PROTOCOLS[packet.protocol]
    names = [text.strip().lower() for text in value.split(",")]
    return _decide(any(name in ("all", "0") or NETFILTER_PROTOCOLS.get(name, name) == number for name in names))


def _match_states(value: str, packet: Packet) -> Match:
    return _decide(bool(packet.states & {text.strip().upper() for text in value.split(",")}))


def _match_status(value: str, packet: Packet) -> Match:
    names = {text.strip().upper().replace("-", "_") for text in value.split(",")}
    if names <= _ABSENT_STATUS:
        return Match.NEVER
    return Match.UNKNOWN if packet.states == {"NEW"} else _decide(bool(names & {"SEEN_REPLY", "CONFIRMED", "ASSURED"}))


def _match_flags(value: str, packet: Packet) -> Match:
    """A value "MASK/FLAGS" for packets that have exactly these flags of the mask, or "MASK/any" for any of them."""
    if packet.protocol != "tcp":
        return Match.NEVER
    mask_text, _, flag_text = value.partition("/")
    names = {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECN", "CWR"}
    mask = names if mask_text == "ALL" else {text for text in mask_text.split(",") if text}
    if not mask <= names:
        return Match.UNKNOWN
    if flag_text == "any":
        return _decide(bool(packet.flags & mask))
    flags = names if flag_text == "ALL" else {text for text in flag_text.split(",") if text not in ("", "NONE")}
    return _decide(packet.flags & mask == flags & mask if flags <= mask else False)


def _match_mark(value: str, packet: Packet) -> Match:
    is_unknown = False
    for text in value.split(","):
        number_text, _, mask_text = text.strip().partition("/")
        number, mask = parse_number(number_text), parse_number(mask_text or "0xffffffff")
        if number is None or mask is None:
            return Match.UNKNOWN
        if (packet.mark ^ number) & mask & ~packet.unknown_mark_bits == 0:
            is_unknown |= bool(mask & packet.unknown_mark_bits)
            if not mask & packet.unknown_mark_bits:
                return Match.ALWAYS
    return Match.UNKNOWN if is_unknown else Match.NEVER


def _match_address_type(value: str, packet: Packet) -> Match:
    """A value "dst TYPES" or "src TYPES"."""
    side, _, types = value.partition(" ")
    is_local = packet.path == ("input" if side == "dst" else "output")
    return _decide(("LOCAL" if is_local else "UNICAST") in types.upper().split(","))


def _match_icmp_type(value: str, packet: Packet) -> Match:
    """Only types of errors about the size of packets are evaluated."""
    if packet.protocol not in _SIZE_ERROR_TYPES:
        return Match.NEVER
    names = {text.strip() for text in value.split(",")}
    return Match.ALWAYS if names & _SIZE_ERROR_TYPES[packet.protocol] else Match.UNKNOWN


_EVALUATIONS: dict[str, Callable[[str, Packet], Match]] = {
    "source": lambda value, packet: _match_address(value, packet.source),
    "destination": lambda value, packet: _match_address(value, packet.destination),
    "input_device": lambda value, packet: _match_device(value, packet.input_device, packet.path == "output"),
    "output_device": lambda value, packet: _match_device(value, packet.output_device, packet.path == "input"),
    "source_ports": lambda value, packet: _match_ports(value, packet, is_destination=False),
    "destination_ports": lambda value, packet: _match_ports(value, packet, is_destination=True),
    "ports": _match_any_port,
    "protocol": _match_protocol,
    "states": _match_states,
    "status": _match_status,
    "flags": _match_flags,
    "mark": _match_mark,
    "address_type": _match_address_type,
    "icmp_type": _match_icmp_type,
    "length": lambda value, packet: _match_range(value, packet.length),
    "hops": lambda value, packet: _match_range(value, _HOPS),
    "direction": lambda value, packet: _decide(value.lower() == ("reply" if packet.is_reply else "original")),
    "arp_operation": lambda value, packet: _decide((value.lower() in ("2", "reply")) == packet.is_reply),
    "family": lambda value, packet: _decide(int(value) == ipaddress.ip_address(packet.source).version),
    "packet_type": lambda value, packet: _decide(bool({"unicast", "host"} & set(value.split(",")))),
    "always": lambda value, packet: Match.ALWAYS,
    "never": lambda value, packet: Match.NEVER,
    "rate": lambda value, packet: Match.SOMETIMES,
}
