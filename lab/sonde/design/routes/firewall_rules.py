# SPDX-License-Identifier: Apache-2.0
"""Reads the firewall in output of iptables-save or ip6tables-save, and follows a packet through it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.design.routes.output_texts import split_shell_words

_CHAIN_PATTERN = re.compile(r"^:(\S+) (\S+)")
_VALUED_OPTIONS = {"-s": "source", "-d": "destination", "-i": "input_device", "-o": "output_device",
                   "-p": "protocol", "-j": "target", "-g": "target", "--ctstate": "states",
                   "--state": "states", "--dport": "destination_ports", "--dports": "destination_ports",
                   "--destination-port": "destination_ports"}  # fmt: skip
_MARK_OPTIONS = ("--set-mark", "--set-xmark", "--or-mark")
# Matches and their options that select no packets by themselves, or that other options complete.
_MATCH_OPTION = "-m"
_HARMLESS_OPTIONS = {_MATCH_OPTION: 1, "--comment": 1, "--reject-with": 1, "--to-source": 1, "--to-destination": 1,
                     "--random": 0, "--random-fully": 0, "--persistent": 0}  # fmt: skip
_HARMLESS_MATCHES = ("conntrack", "state", "comment", "tcp", "udp", "icmp", "icmp6", "multiport")
_SYN_OPTION = ["--tcp-flags", "FIN,SYN,RST,ACK", "SYN"]
_NEVER_ACCEPTING = ("DROP", "REJECT", "LOG", "NFLOG", "RETURN")
_ENDS = {"ACCEPT": True, "DROP": False, "REJECT": False}
_MAX_DEPTH = 16
# The ports of network file systems by the names that nft and iptables print for them.
_SERVICE_PORTS = {"gpfs": 1191, "nfs": 2049, "shilp": 2049}


@dataclass(frozen=True)
class FirewallRule:
    """One rule of a chain. `is_partial` says that it also selects by what this reader does not evaluate, as ports."""

    table: str
    chain: str
    text: str
    origin: str
    source: str = ""
    destination: str = ""
    input_device: str = ""
    output_device: str = ""
    protocol: str = ""
    states: str = ""
    target: str = ""
    is_partial: bool = False
    flags: str = ""  # of TCP that it selects: "syn", "not syn", or "" for all
    destination_ports: str = ""  # that it selects: "1191,50000-50100", or "" for all
    is_goto: bool = False  # a packet that the target chain returns does not come back to this chain
    mark: int | None = None  # that it gives to a packet without a mark
    segment_bytes: int | None = None  # to which it lowers the maximum segment size (MSS) of TCP


@dataclass(frozen=True)
class Firewall:
    """The rules of all chains in their order, and the policies of the chains of the kernel by table and chain. IP
    version 4 or 6."""

    version: int
    rules: tuple[FirewallRule, ...]
    policies: tuple[tuple[tuple[str, str], str], ...]


@dataclass(frozen=True)
class ForwardedPacket:
    """The first packet that a host or router sees of a connection: its SYN, or a later one where another router has
    carried the connection before (`is_opening`). Without a port (None), it stands for all connections."""

    source: str
    destination: str
    input_device: str
    output_device: str
    protocol: str = "tcp"
    is_opening: bool = True
    port: int | None = None  # its destination port


@dataclass(frozen=True)
class PacketFate:
    """Whether a chain accepts a packet (None: it returns to the calling chain), the rule that decides (None: the policy
    of the chain), and whether a rule that selects by more than the packet shows may accept it before."""

    is_accepted: bool | None
    rule: FirewallRule | None
    may_be_accepted: bool = False


def is_firewall_output(output_text: str) -> bool:
    """Whether a text is output of iptables-save."""
    return re.search(r"^\*(?:filter|nat|mangle|raw|security)\s*$", output_text, re.MULTILINE) is not None


def parse_firewall_output(output_text: str, file_name: str) -> Firewall:
    """The firewall; the addresses of its rules, or the name of the file, show its IP version."""
    table, rules, policies = "", list[FirewallRule](), list[tuple[tuple[str, str], str]]()
    for number, printed_line in enumerate(output_text.splitlines(), start=1):
        line = re.sub(r"^\[\d+:\d+\] ", "", printed_line)  # counters, of iptables-save -c
        if line.startswith("*"):
            table = line[1:].strip()
        elif match := _CHAIN_PATTERN.match(line):
            policies.append(((table, match[1]), match[2]))
        elif line.startswith("-A "):
            rules.append(_parse_rule(table, line, f"{file_name}, line {number}"))
    has_version_6 = any(":" in rule.source + rule.destination for rule in rules) or "6" in file_name
    return Firewall(6 if has_version_6 else 4, tuple(rules), tuple(policies))


def _parse_rule(table: str, line: str, origin: str) -> FirewallRule:
    tokens, values, is_partial = split_shell_words(line), dict[str, Any](), False
    position = 2
    while position < len(tokens):
        option = tokens[position]
        argument = tokens[position + 1] if position + 1 < len(tokens) else ""
        if option in _VALUED_OPTIONS and tokens[position - 1] != "!":
            values[_VALUED_OPTIONS[option]] = argument
            values |= {"is_goto": True} if option == "-g" else {}
            position += 2
        elif option == "--set-mss" and argument.isdigit():
            values["segment_bytes"] = int(argument)
            position += 2
        elif option in _MARK_OPTIONS:
            mark = parse_number(argument.partition("/")[0])
            values |= {"mark": mark} if mark is not None else {}
            position += 2
        elif option == "--syn":
            values["flags"] = "not syn" if tokens[position - 1] == "!" else "syn"
            position += 1
        elif tokens[position : position + 3] == _SYN_OPTION:  # --syn as iptables-save prints it
            values["flags"] = "not syn" if tokens[position - 1] == "!" else "syn"
            position += 3
        elif option == "!" and argument in ("--syn", "--tcp-flags"):
            position += 1
        elif option in _HARMLESS_OPTIONS:
            is_partial |= option == _MATCH_OPTION and argument not in _HARMLESS_MATCHES
            position += 1 + _HARMLESS_OPTIONS[option]
        else:
            # options of a target come last, and select nothing
            is_partial = is_partial or "target" not in values
            position += 1
    return FirewallRule(table, tokens[1], line, origin, is_partial=is_partial, **values)


def parse_number(number_text: str) -> int | None:
    """A decimal or hexadecimal number; None for other texts."""
    try:
        return int(number_text, 0)
    except ValueError:
        return None


def find_packet_fate(
    firewall: Firewall, packet: ForwardedPacket, chain: tuple[str, str] = ("filter", "FORWARD"), depth: int = 0
) -> PacketFate:
    """Follows a packet through a chain, and through those that its rules jump to."""
    policies = dict(firewall.policies)
    may_be_accepted = False
    for rule in firewall.rules:
        if (rule.table, rule.chain) != chain or not _matches(rule, packet):
            continue
        if rule.is_partial or (rule.destination_ports and packet.port is None):
            may_be_accepted = may_be_accepted or rule.target not in _NEVER_ACCEPTING
            continue
        if rule.target == "RETURN":
            break
        fate = PacketFate(_ENDS.get(rule.target), rule)
        if (chain[0], rule.target) in policies and depth < _MAX_DEPTH:
            fate = find_packet_fate(firewall, packet, (chain[0], rule.target), depth + 1)
        may_be_accepted = may_be_accepted or fate.may_be_accepted
        if fate.is_accepted is not None:
            return PacketFate(fate.is_accepted, fate.rule, may_be_accepted)
        if rule.is_goto:
            break
    return PacketFate(_ENDS.get(policies.get(chain, "")), None, may_be_accepted)


def iterate_rules_on_path(
    firewall: Firewall, packet: ForwardedPacket, chain: tuple[str, str], depth: int = 0
) -> Iterator[FirewallRule]:
    """The rules of a chain, and of those that it jumps to, that a packet may match before a rule decides about it.
    Rules that also select by what this reader does not evaluate are among them."""
    chains = {(rule.table, rule.chain) for rule in firewall.rules}
    for rule in firewall.rules:
        if (rule.table, rule.chain) != chain or not _matches(rule, packet):
            continue
        yield rule
        if (chain[0], rule.target) in chains and depth < _MAX_DEPTH:
            yield from iterate_rules_on_path(firewall, packet, (chain[0], rule.target), depth + 1)
        if not rule.is_partial and (rule.target in (*_ENDS, "RETURN") or rule.is_goto):
            return


def find_translation(firewall: Firewall, packet: ForwardedPacket) -> FirewallRule | None:
    """The rule that gives a forwarded packet another source address."""
    chain = [rule for rule in firewall.rules if (rule.table, rule.chain) == ("nat", "POSTROUTING")]
    translating = [rule for rule in chain if rule.target in ("MASQUERADE", "SNAT") and not rule.is_partial]
    return next((rule for rule in translating if _matches(rule, packet)), None)


def _matches(rule: FirewallRule, packet: ForwardedPacket) -> bool:
    """Whether the selectors that this reader evaluates match the first packet of a connection."""
    states = rule.states.split(",") if rule.states else ["NEW"]
    return (
        "NEW" in states
        and rule.flags in ("", "syn" if packet.is_opening else "not syn")
        and (rule.protocol in ("", "all") or packet.protocol in rule.protocol.split(","))
        and (packet.port is None or _is_port(rule.destination_ports, packet.port))
        and _is_device(rule.input_device, packet.input_device)
        and _is_device(rule.output_device, packet.output_device)
        and _is_in_range(rule.source, packet.source)
        and _is_in_range(rule.destination, packet.destination)
    )


def _is_port(port_ranges: str, port: int) -> bool:
    """Whether ranges of ports, as 988,2049,50000:50100 or 988-990, contain a port."""
    for port_range in port_ranges.split(",") if port_ranges else ():
        first, _, last = port_range.strip().replace(":", "-").partition("-")
        numbers = [_SERVICE_PORTS.get(text) or parse_number(text) for text in (first, last or first)]
        if numbers[0] is not None and numbers[1] is not None and numbers[0] <= port <= numbers[1]:
            return True
    return not port_ranges


def _is_device(pattern: str, device: str) -> bool:
    patterns = pattern.split(",")
    return not pattern or any(
        device.startswith(each[:-1]) if each.endswith("+") else each == device for each in patterns
    )


def _is_in_range(address_ranges: str, address: str) -> bool:
    return not address_ranges or any(_contains(text, address) for text in address_ranges.split(","))


def _contains(address_range: str, address: str) -> bool:
    """Whether a range contains an address; ranges as 10.0.0.1-10.0.0.9 and names of sets do not."""
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(address_range, strict=False)
    except ValueError:
        return False


def list_packets(
    sources: Sequence[str], destinations: Sequence[str], input_device: str, output_device: str
) -> list[ForwardedPacket]:
    """The first packets between the first hosts of two networks, in one direction."""
    return [
        ForwardedPacket(source, destination, input_device, output_device)
        for source in sources[:1]
        for destination in destinations[:1]
    ]
