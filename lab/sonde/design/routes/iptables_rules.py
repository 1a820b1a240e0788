# SPDX-License-Identifier: Apache-2.0
"""Reads the firewall in output of iptables-save or ip6tables-save."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sonde.design.routes.firewall_rules import ARP, BaseChain, Firewall, FirewallRule
from sonde.design.routes.output_texts import split_shell_words
from sonde.design.routes.packet_selectors import Selector, parse_number

_CHAIN_PATTERN = re.compile(r"^:(\S+) (\S+)")
_ARP_OPTION_PATTERN = re.compile(r"^-A .* --(?:h-length|h-type|opcode|proto-type)\b", re.MULTILINE)
_BRIDGE_OPTION_PATTERN = re.compile(r"^-A .*(?: -p IPv[46]| -p ARP| --logical-(?:in|out))\b", re.MULTILINE)
_TABLE_PRIORITIES = {"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}
# Options with one argument that select packets, by the members of a packet.
_SELECTING_OPTIONS = {
    **dict.fromkeys(("-s", "--source", "--src", "--src-range"), "source"),
    **dict.fromkeys(("-d", "--destination", "--dst", "--dst-range"), "destination"),
    **dict.fromkeys(("-i", "--in-interface"), "input_device"),
    **dict.fromkeys(("-o", "--out-interface"), "output_device"),
    **dict.fromkeys(("-p", "--protocol", "--proto"), "protocol"),
    **dict.fromkeys(("--ctstate", "--state"), "states"),
    **dict.fromkeys(("--dport", "--dports", "--destination-port", "--destination-ports"), "destination_ports"),
    **dict.fromkeys(("--sport", "--sports", "--source-port", "--source-ports"), "source_ports"),
    **dict.fromkeys(("--icmp-type", "--icmpv6-type"), "icmp_type"),
    "--ports": "ports", "--port": "ports", "--ctstatus": "status", "--ctdir": "direction", "--mark": "mark",
    "--opcode": "arp_operation",
    "--length": "length", "--ttl-eq": "hops", "--hl-eq": "hops", "--pkt-type": "packet_type",
}  # fmt: skip
# Options that select by the number of packets or the time.
_RATE_OPTIONS = ("--limit", "--hashlimit-above", "--hashlimit-upto", "--hashlimit", "--connlimit-above",
                 "--connlimit-upto", "--probability", "--every", "--quota", "--hitcount", "--seconds", "--timestart",
                 "--timestop", "--datestart", "--datestop", "--weekdays", "--monthdays", "--connbytes")  # fmt: skip
# Options that complete others: their numbers of arguments.
_COMPLETING_OPTIONS = {
    **dict.fromkeys(("--limit-burst", "--hashlimit-burst", "--hashlimit-mode", "--hashlimit-name",
                     "--hashlimit-htable-size", "--hashlimit-htable-max", "--hashlimit-htable-expire",
                     "--hashlimit-htable-gcinterval", "--hashlimit-srcmask", "--hashlimit-dstmask",
                     "--hashlimit-rate-interval", "--connlimit-mask", "--name", "--mask", "--mode", "--packet",
                     "--comment", "--connbytes-dir", "--connbytes-mode", "--dir", "--reqid",
                     "--h-length", "--h-type", "--proto-type"), 1),
    **dict.fromkeys(("--connlimit-saddr", "--connlimit-daddr", "--rsource", "--rdest", "--set", "--remove", "--reap",
                     "--rttl", "--hashlimit-rate-match", "--kerneltz", "--contiguous", "--strict", "--loose",
                     "--validmark", "--accept-local", "--limit-iface-in", "--limit-iface-out"), 0),
}  # fmt: skip
# Matches whose options select packets, or that the options above complete.
_READ_MATCHES = ("conntrack", "state", "comment", "tcp", "udp", "icmp", "icmp6", "icmpv6", "multiport", "mark",
                 "connmark", "iprange", "addrtype", "limit", "hashlimit", "connlimit", "recent", "statistic", "quota",
                 "time", "connbytes", "length", "ttl", "hl", "pkttype", "physdev", "policy", "set", "owner", "mac",
                 "tos", "dscp", "string", "tcpmss", "u32", "bpf", "helper", "rpfilter", "sctp", "dccp", "esp",
                 "ah", "standard")  # fmt: skip
# Options without an argument whose result is known of planned traffic: nothing of it is a fragment, bridged or without
# a route back on its interface.
_CONSTANT_OPTIONS = {"-f": "never", "--fragment": "never", "--physdev-is-bridged": "never", "--physdev-is-in": "never",
                     "--physdev-is-out": "never", "--rcheck": "rate", "--update": "rate"}  # fmt: skip


def is_bridge_output(output_text: str, file_name: str) -> bool:
    """Whether a text is output of ebtables-save."""
    return is_firewall_output(output_text) and (
        "ebtables" in file_name or _BRIDGE_OPTION_PATTERN.search(output_text) is not None
    )


def is_firewall_output(output_text: str) -> bool:
    """Whether a text is output of iptables-save."""
    return re.search(r"^\*(?:filter|nat|mangle|raw|security)\s*$", output_text, re.MULTILINE) is not None


def parse_firewall_output(output_text: str, file_name: str) -> Firewall:
    """The firewall; the addresses of its rules, or the name of the file, show its IP version."""
    is_arp = "arptables" in file_name or _ARP_OPTION_PATTERN.search(output_text) is not None
    table, rules, chains, addresses = "", list[FirewallRule](), list[BaseChain](), ""
    for number, printed_line in enumerate(output_text.splitlines(), start=1):
        line = re.sub(r"^\[\d+:\d+\] ", "", printed_line)  # counters, of iptables-save -c
        if line.startswith("*"):
            table = line[1:].strip()
        elif (match := _CHAIN_PATTERN.match(line)) and match[2] != "-":
            kind = "nat" if table == "nat" else "route" if (table, match[1]) == ("mangle", "OUTPUT") else "filter"
            priority = _TABLE_PRIORITIES.get(table, 0)
            chains.append(BaseChain(match[1].lower(), kind, table, match[1], match[2], priority))
        elif line.startswith("-A "):
            rule = _parse_rule(table, line, f"{file_name}, line {number}")
            rules.append(rule)
            addresses += "".join(each.value for each in rule.selectors if each.member in ("source", "destination"))
    if is_arp:
        return Firewall(ARP, tuple(rules), tuple(chains))
    return Firewall(6 if ":" in addresses or "6" in file_name else 4, tuple(rules), tuple(chains))


def _parse_rule(table: str, line: str, origin: str) -> FirewallRule:
    tokens, values, selectors = split_shell_words(line), dict[str, Any](), list[Selector]()
    position, match_name = 2, ""
    while position < len(tokens):
        is_inverted = tokens[position] == "!"
        position += is_inverted
        option = tokens[position] if position < len(tokens) else ""
        arguments = _list_arguments(tokens, position)
        text = f"{'! ' if is_inverted else ''}{option}"
        if option in ("-j", "-g", "--jump", "--goto"):
            values |= {"target": "".join(arguments[:1]), "is_goto": option in ("-g", "--goto")}
            position += 2
        elif option in ("-m", "--match"):
            match_name = "".join(arguments[:1])
            if match_name == "rpfilter":
                selectors.append(Selector("never" if "--invert" in tokens else "always", "", text="-m rpfilter"))
            elif match_name not in _READ_MATCHES:
                selectors.append(Selector("unknown", "", text=f"-m {match_name}"))
            position += 2
        elif "target" in values and (count := _read_target_option(option, arguments, values)):
            position += count
        elif option == "--tcp-flags" or option == "--syn":
            mask, flags = (
                arguments[:2] if option == "--tcp-flags" and len(arguments) > 1 else ("FIN,SYN,RST,ACK", "SYN")
            )
            selectors.append(Selector("flags", f"{mask}/{flags}", is_inverted, text))
            position += 3 if option == "--tcp-flags" else 1
        else:
            selector, count = _read_selector(option, arguments, is_inverted, match_name)
            selectors += [selector] if selector is not None else []
            position += 1 + count
    return FirewallRule(table, tokens[1], line, origin, tuple(selectors), **_translate_target(values))


def _list_arguments(tokens: Sequence[str], position: int) -> list[str]:
    """The arguments of an option: the tokens up to the next option."""
    arguments = []
    for lexeme in tokens[position + 1 :]:
        if lexeme == "!" or (lexeme.startswith("-") and len(lexeme) > 1 and not lexeme[1].isdigit()):
            break
        arguments.append(lexeme)
    return arguments


def _read_selector(
    option: str, arguments: Sequence[str], is_inverted: bool, match_name: str
) -> tuple[Selector | None, int]:
    """The selector of an option, None for one that completes others, and the number of its arguments."""
    value = arguments[0] if arguments else ""
    text = " ".join(("! " * is_inverted + option, *arguments))
    if option == "--invert" and match_name == "rpfilter":
        return None, 0
    if option in _COMPLETING_OPTIONS:
        return None, len(arguments) if option == "--comment" else _COMPLETING_OPTIONS[option]
    if option in _SELECTING_OPTIONS:
        return Selector(_SELECTING_OPTIONS[option], value, is_inverted, text), 1
    if option in _CONSTANT_OPTIONS:
        return Selector(_CONSTANT_OPTIONS[option], "", is_inverted, text), 0
    if option in _RATE_OPTIONS:
        return Selector("rate", value, is_inverted, text), len(arguments)
    if option in ("--ttl-lt", "--hl-lt", "--ttl-gt", "--hl-gt") and (number := parse_number(value)) is not None:
        range_text = f"0-{number - 1}" if option.endswith("lt") else f"{number + 1}-255"
        return Selector("hops", range_text, is_inverted, text), 1
    if option in ("--dst-type", "--src-type"):
        return Selector("address_type", f"{option[2:5]} {value}", is_inverted, text), 1
    if option == "--pol":
        return Selector("never" if value == "ipsec" else "always", "", is_inverted, text), 1
    if option in ("--physdev-in", "--physdev-out", "--helper"):
        return Selector("never", "", is_inverted, text), 1
    return Selector("unknown", "", is_inverted, text), len(arguments)


def _read_target_option(option: str, arguments: Sequence[str], values: dict[str, Any]) -> int:
    """Reads an option of a target, and returns the number of its tokens; 0 for an option of a match."""
    value = arguments[0] if arguments else ""
    if option == "--set-mss" and value.isdigit():
        values["segment_bytes"] = int(value)
    elif option in ("--set-mark", "--set-xmark", "--or-mark", "--and-mark") and values["target"] == "MARK":
        number_text, _, mask_text = value.partition("/")
        number, mask = parse_number(number_text), parse_number(mask_text or "0xffffffff")
        if number is None or mask is None:
            return 1 + len(arguments)
        if option == "--or-mark":
            mask = number
        elif option == "--and-mark":
            number, mask = 0, ~number & 0xFFFFFFFF
        values |= {"mark": number, "mark_mask": mask}
    elif option == "--notrack":
        values["target"] = "NOTRACK"
    elif option in _SELECTING_OPTIONS or option in _RATE_OPTIONS or option in ("--tcp-flags", "--syn"):
        return 0
    return 1 + len(arguments)


def _translate_target(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a rule with the name of its target as this package uses it."""
    names = {"NFQUEUE": "QUEUE", "STEAL": "DROP"}
    return (
        values
        | {"is_logging": values.get("target") == "LOG"}
        | {"target": names.get(values.get("target", ""), values.get("target", ""))}
    )
