# SPDX-License-Identifier: Apache-2.0
"""What a firewall drops of planned connections: always, above a limit, or by a match that no check evaluates."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.firewall_rules import Decision, Firewall, FirewallRule, list_drops
from sonde.design.routes.packet_selectors import Match, Packet, Selector, evaluate_selector, parse_address_ranges

OPENING, DATA, REPLY = "new connections", "packets of connections", "replies to connections"
DROPS_SOME = "firewall drops some"
_DEFAULT_MTU = 1500
# Ports that clients connect from: programs use ip_local_port_range, the kernel's LNet and NFS ports below 1024.
_CLIENT_PORTS = {"LNet": (512, 1023), "NFS": (665, 1023)}
_PORTS_OF_PROGRAMS = (32768, 60999)
# New connections per second, and connections at a time, that no planned traffic reaches.
_AMPLE_RATE = 1000.0
_AMPLE_COUNT = 1024
_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_MAX_HOSTS = 12


@dataclass(frozen=True)
class PlannedPacket:
    """A packet of connections of one service: of new ones, of accepted ones, or of their replies (`stage`)."""

    service: str
    port: int
    stage: str
    packet: Packet


@dataclass(frozen=True)
class PacketDrop:
    """A planned packet that a firewall may drop, and the decision about it."""

    planned: PlannedPacket
    decision: Decision

    @property
    def is_certain(self) -> bool:
        """Whether all such packets are dropped."""
        return self.decision.is_certain_drop

    @property
    def verb(self) -> str:
        """What happens to the packet: "dropped" or "rejected"."""
        return "rejected" if self.decision.verdict == "REJECT" else "dropped"

    @property
    def fault_kind(self) -> str:
        """The kind of fault that this is."""
        if not self.is_certain:
            return DROPS_SOME
        return "firewall rejects" if self.decision.verdict == "REJECT" else "firewall drops"


@dataclass(frozen=True)
class UnjudgedRule:
    """What a rule may do to planned packets that no check evaluates, for the list of what was not examined."""

    text: str


def make_planned_packets(opening: Packet, service: str, port: int, mtu: int | None) -> list[PlannedPacket]:
    """The packets of a connection in the direction of its first one."""
    client_ports = _CLIENT_PORTS.get(service, _PORTS_OF_PROGRAMS)
    first = replace(opening, destination_ports=(port, port), source_ports=client_ports)
    data = replace(first, states=frozenset({"ESTABLISHED"}), flags=frozenset({"ACK"}), length=(52, mtu or _DEFAULT_MTU))
    return [PlannedPacket(service, port, OPENING, first), PlannedPacket(service, port, DATA, data)]


def make_planned_reply(opening: Packet, service: str, port: int, mtu: int | None) -> PlannedPacket:
    """The packets of a connection against the direction of its first one, `opening`. Its devices are those of the
    reply."""
    reply = replace(
        opening,
        source=opening.destination, destination=opening.source,
        source_ports=(port, port), destination_ports=_CLIENT_PORTS.get(service, _PORTS_OF_PROGRAMS),
        states=frozenset({"ESTABLISHED"}), flags=frozenset({"ACK"}), length=(52, mtu or _DEFAULT_MTU), is_reply=True,
    )  # fmt: skip
    return PlannedPacket(service, port, REPLY, reply)


def find_drops(firewall: Firewall, planned_packets: Iterable[PlannedPacket]) -> Iterator[PacketDrop]:
    """What the firewall drops of packets. Later packets and replies of connections that never open are left out, and
    those by a rule that drops the first packets too."""
    closed = set[tuple[str, frozenset[str]]]()
    reported = set[tuple[str, str, frozenset[str]]]()
    for planned in planned_packets:
        connection = (planned.service, frozenset((planned.packet.source, planned.packet.destination)))
        if connection in closed:
            continue
        for decision in list_drops(firewall, planned.packet):
            drop = PacketDrop(planned, decision)
            if drop.is_certain and planned.stage == OPENING:
                closed.add(connection)
            key = (decision.origin, *connection)
            if key in reported:
                continue
            reported.add(key)
            yield drop


def is_fault(drop: PacketDrop) -> bool:
    """Whether planned packets are dropped for certain, or above a limit that they may reach."""
    if drop.decision.match is Match.UNKNOWN or drop.decision.verdict == "QUEUE":
        return False
    limits = _list_selectors(drop, Match.SOMETIMES)
    return drop.is_certain or not (drop.planned.stage == OPENING and limits and all(map(_is_ample, limits)))


def describe_limits(drop: PacketDrop) -> str:
    """The limits and other selectors that match some packets, in parentheses; "" for a certain drop."""
    texts = dict.fromkeys(selector.description for selector in _list_selectors(drop, Match.SOMETIMES))
    return f" in part ({', '.join(texts)})" if texts and not drop.is_certain else ""


def find_unjudged_rules(drops: Iterable[PacketDrop]) -> list[UnjudgedRule]:
    """Each rule that may drop planned packets by a match that is not evaluated, or above an ample limit."""
    texts = dict[str, None]()
    for drop in drops:
        if is_fault(drop):
            continue
        decision, rule = drop.decision, drop.decision.rule
        unknown = [each for each in decision.conditions if _list_unknown_selectors(each, drop.planned.packet)]
        if decision.verdict == "QUEUE" and rule is not None:
            texts[f"what a program does with packets that the rule {rule.text} ({rule.origin}) hands to it"] = None
        elif rule is not None and (rule in unknown or not unknown):
            match_texts = ", ".join(_list_unknown_selectors(rule, drop.planned.packet))
            reason = f"by a match that no check evaluates: {match_texts}" if match_texts else "above an ample limit"
            texts[f"what the rule {rule.text} ({rule.origin}) drops {reason}"] = None
        elif unknown:
            match_texts = ", ".join(_list_unknown_selectors(unknown[-1], drop.planned.packet))
            texts[
                f"whether the rule {unknown[-1].text} ({unknown[-1].origin}) matches all planned connections"
                f" ({match_texts}), which {decision.description} drops otherwise"
            ] = None
    return [UnjudgedRule(text) for text in texts]


def split_unjudged_rules(
    results: Iterable[RouteFault | CheckedItem | UnjudgedRule],
) -> tuple[list[RouteFault | CheckedItem], list[str]]:
    """The faults and comparisons among results, and the texts of the rules that no check evaluates."""
    others: list[RouteFault | CheckedItem] = []
    texts: list[str] = []
    for result in results:
        if isinstance(result, UnjudgedRule):
            texts.append(result.text)
        else:
            others.append(result)
    return others, texts


def _list_selectors(drop: PacketDrop, match: Match) -> list[Selector]:
    packet = drop.planned.packet
    return [
        selector
        for rule in drop.decision.conditions
        for selector in rule.selectors
        if evaluate_selector(selector, packet) is match
    ]


def _list_unknown_selectors(rule: FirewallRule, packet: Packet) -> list[str]:
    return [each.description for each in rule.selectors if evaluate_selector(each, packet) is Match.UNKNOWN]


def _is_ample(selector: Selector) -> bool:
    """Whether a limit is one of so many new connections that planned traffic does not reach it."""
    if match := re.search(r"(\d+)/(?:\d*)(s|m|h|d|w)", selector.text):
        return int(match[1]) / _SECONDS_BY_UNIT[match[2]] >= _AMPLE_RATE
    match = re.search(r"(?:--connlimit-above|ct count over) (\d+)", selector.text)
    return match is not None and int(match[1]) >= _AMPLE_COUNT


def choose_representatives(addresses: Sequence[str], firewalls: Sequence[Firewall]) -> list[str]:
    """One address of each group that no rule tells apart, in order. The first groups stand for all."""
    values = list(dict.fromkeys(_iterate_address_values(firewalls)))
    if not values:
        return list(addresses[:1])
    parsed = [parse_address_ranges(value) for value in values]
    representatives: dict[tuple[bool, ...], str] = {}
    for address in addresses:
        number = int(ipaddress.ip_address(address))
        signature = tuple(
            number in single or any(first <= number <= last for first, last in ranges) for single, ranges, _ in parsed
        )
        representatives.setdefault(signature, address)
        if len(representatives) >= _MAX_HOSTS:
            break
    return list(representatives.values())


def _iterate_address_values(firewalls: Iterable[Firewall]) -> Iterator[str]:
    for firewall in firewalls:
        for rule in firewall.rules:
            for selector in rule.selectors:
                for part in (selector, *(each for parts in selector.alternatives for each in parts)):
                    if part.member in ("source", "destination"):
                        yield part.value
