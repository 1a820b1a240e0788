# SPDX-License-Identifier: Apache-2.0
"""Reads the firewall in output of `nft list ruleset`: each chain that the kernel calls as one firewall."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sonde.design.routes.firewall_rules import Firewall, FirewallRule

_TABLE_PATTERN = re.compile(r"^table (ip|ip6|inet) (\S+) \{", re.MULTILINE)
_HOOK_PATTERN = re.compile(r"\s*type (filter|nat|route) hook (\w+) priority [^;]*;(?:\s*policy (\w+);)?")
# Selectors that are evaluated, by the members of a rule; sets of values are written in braces.
_SELECTORS = {
    "iifname": "input_device", "iif": "input_device", "oifname": "output_device", "oif": "output_device",
    "ip saddr": "source", "ip6 saddr": "source", "ip daddr": "destination", "ip6 daddr": "destination",
    "ct state": "states", "ip protocol": "protocol", "meta l4proto": "protocol",
}  # fmt: skip
# Values are single ones or sets in braces, without ranges, maps and names of sets (@), which are not evaluated.
_SELECTOR_PATTERN = re.compile(rf"^({'|'.join(_SELECTORS)}) (?!vmap)(?:\{{([^}}@-]*)\}}|([^\s@!<>{{-]+))(?=\s|$)\s*")
# TCP flags that only the first packet of a connection has, or that only it lacks.
_FLAGS_PATTERN = re.compile(
    r"^tcp flags (?:& \((?=[^)]*\bsyn\b)(?=[^)]*\back\b)[a-z| ]+\) (==|!=) )?(syn)(?: / [a-z,]+)?(?=\s|$)\s*"
)
# Destination ports: a number, a name, a range or a set of these.
_PORTS_PATTERN = re.compile(r"^(tcp|udp|th) dport (?:\{([^}@]*)\}|([\w-]+))(?=\s|$)\s*")
# Messages of ICMP, of which no type is evaluated.
_ICMP_PATTERN = re.compile(r"^(icmp|icmpv6) (?:type|code) ")
# A decision by the state of a connection, and states of connections that the host has redirected.
_STATE_MAP_PATTERN = re.compile(r"^ct state vmap \{([^}]*)\}$")
_STATUS_PATTERN = re.compile(r"^ct status dnat\s*")
_MARK_PATTERN = re.compile(r"^(?:meta )?mark set (0x[0-9a-f]+|\d+)$")
_SEGMENT_PATTERN = re.compile(r"\btcp option maxseg size set (\d+)\b")
_COUNTER_PATTERN = re.compile(r"^counter(?: packets \d+ bytes \d+)?\s*")
_TARGET_PATTERN = re.compile(r"^(?:(accept|drop|reject|return|masquerade|snat)\b|(jump|goto) (\S+))")
# The chains of iptables that are called where chains of nft are, by the type and the hook of these.
_CHAINS_BY_HOOK = {
    **{("filter", name.lower()): ("filter", name) for name in ("INPUT", "FORWARD", "OUTPUT")},
    **{("filter", name.lower()): ("mangle", name) for name in ("PREROUTING", "POSTROUTING")},
    ("route", "output"): ("mangle", "OUTPUT"), ("nat", "postrouting"): ("nat", "POSTROUTING"),
}  # fmt: skip
_FAMILIES = {"ip": (4,), "ip6": (6,), "inet": (4, 6)}


def is_nft_output(output_text: str) -> bool:
    """Whether a text is output of `nft list ruleset`."""
    return _TABLE_PATTERN.search(output_text) is not None and " chain " in output_text.replace("\t", " ")


def parse_nft_output(output_text: str, file_name: str) -> Iterator[Firewall]:
    """The firewalls that packets of a host or router pass: one for each chain of a hook, and for each IP version of
    its table."""
    table, chain, family = "", "", ""
    rules, hooks = list[FirewallRule](), list[tuple[str, str, str, tuple[str, str], str]]()
    for number, line in enumerate(output_text.splitlines(), start=1):
        text = line.strip()
        if match := _TABLE_PATTERN.match(line):
            family, table, chain = match[1], f"{match[1]} {match[2]}", ""
        elif text.startswith("chain "):
            chain = text.split()[1]
        elif match := _HOOK_PATTERN.match(line):
            hooks.append((family, table, chain, (match[1], match[2]), (match[3] or "accept").upper()))
        elif text == "}":
            chain = ""
        elif chain and text and not text.startswith(("#", "comment ")):
            rules.append(_parse_rule(table, chain, text, f"{file_name}, line {number}"))
    for family, table, chain, hook, policy in hooks:
        if hook in _CHAINS_BY_HOOK:
            yield from _make_firewalls(_FAMILIES[family], rules, table, chain, _CHAINS_BY_HOOK[hook], policy)


def _make_firewalls(
    versions: tuple[int, ...], rules: list[FirewallRule], table: str, base_chain: str,
    first_names: tuple[str, str], policy: str,
) -> Iterator[Firewall]:  # fmt: skip
    """The chains of one table, with the names that iptables gives to the table and to the first chain of a hook."""
    table_name, first_chain = first_names
    names = dict.fromkeys((rule.chain for rule in rules if rule.table == table), "-") | {base_chain: policy}
    renamed = {name: first_chain if name == base_chain else name for name in names}
    chains = tuple(
        replace(rule, table=table_name, chain=renamed[rule.chain], target=renamed.get(rule.target, rule.target))
        for rule in rules
        if rule.table == table
    )
    policies = tuple(((table_name, renamed[name]), each) for name, each in names.items())
    for version in versions:
        yield Firewall(version, chains, policies)


def _parse_rule(table: str, chain: str, rule_text: str, origin: str) -> FirewallRule:
    values, text = _read_selectors(rule_text)
    target = _TARGET_PATTERN.match(text)
    if mark := _MARK_PATTERN.match(text):
        values["mark"] = int(mark[1], 0)
    if segment := _SEGMENT_PATTERN.search(text):
        values["segment_bytes"] = int(segment[1])
    if (state_map := _STATE_MAP_PATTERN.match(text)) and not re.search(r"\bnew\b", state_map[1]):
        return FirewallRule(table, chain, rule_text, origin, target="ACCEPT", states="ESTABLISHED")
    name = (target[3] or target[1].upper()) if target else ""
    # a rule without a decision counts as one that selects by more, and may accept
    has_other_selectors = target is None and re.search(r"\b(accept|drop|reject|jump|goto|masquerade|snat)\b", text)
    decision = re.search(r"\b(accept|drop|reject)\b", text) if has_other_selectors else None
    return FirewallRule(
        table, chain, rule_text, origin,
        target=name or (decision[1].upper() if decision else "OTHER" if has_other_selectors else "LOG"),
        is_partial=bool(has_other_selectors), is_goto=target is not None and target[2] == "goto", **values,
    )  # fmt: skip


def _read_selectors(rule_text: str) -> tuple[dict[str, Any], str]:
    """The selectors at the begin of a rule by the members of `FirewallRule`, and the text after them."""
    values, text = dict[str, Any](), rule_text.replace("ipv6-icmp", "icmpv6")
    patterns = (_SELECTOR_PATTERN, _FLAGS_PATTERN, _COUNTER_PATTERN, _PORTS_PATTERN, _STATUS_PATTERN)
    while match := next((match for pattern in patterns if (match := pattern.match(text))), None):
        if match.re is _FLAGS_PATTERN:
            values |= {"flags": "not syn" if match[1] == "!=" else "syn", "protocol": "tcp"}
        elif match.re is _PORTS_PATTERN:
            ports = re.split(r"\s*,\s*", (match[2] if match[2] is not None else match[3]).strip())
            values |= {"destination_ports": ",".join(ports)}
            values |= {"protocol": match[1]} if match[1] != "th" else {}
        elif match.re is _STATUS_PATTERN:
            values["states"] = "DNAT"
        elif match.re is _SELECTOR_PATTERN:
            items = re.split(r"\s*,\s*", (match[2] if match[2] is not None else match[3]).strip())
            name, value = _SELECTORS[match[1]], ",".join(item.strip('"').replace("*", "+") for item in items)
            values[name] = value.upper() if name == "states" else value
        text = text[match.end() :]
    if icmp := _ICMP_PATTERN.match(text):
        values["protocol"] = icmp[1]
    return values, text
