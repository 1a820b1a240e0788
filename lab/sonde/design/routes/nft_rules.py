# SPDX-License-Identifier: Apache-2.0
"""Reads the firewall in output of `nft list ruleset`: each chain of forwarded packets as one firewall."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sonde.design.routes.firewall_rules import Firewall, FirewallRule

_TABLE_PATTERN = re.compile(r"^table (ip|ip6|inet) (\S+) \{", re.MULTILINE)
_HOOK_PATTERN = re.compile(r"\s*type (filter|nat) hook (\w+) priority [^;]*;(?:\s*policy (\w+);)?")
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
_COUNTER_PATTERN = re.compile(r"^counter(?: packets \d+ bytes \d+)?\s*")
_TARGET_PATTERN = re.compile(r"^(?:(accept|drop|reject|return|masquerade|snat)\b|(?:jump|goto) (\S+))")
_FAMILIES = {"ip": (4,), "ip6": (6,), "inet": (4, 6)}


def is_nft_output(output_text: str) -> bool:
    """Whether a text is output of `nft list ruleset`."""
    return _TABLE_PATTERN.search(output_text) is not None and " chain " in output_text.replace("\t", " ")


def parse_nft_output(output_text: str, file_name: str) -> Iterator[Firewall]:
    """The firewalls that a forwarded packet passes: one for each chain of the hook forward, and one for each chain that
    translates addresses, for each IP version of its table."""
    table, chain, family = "", "", ""
    rules, hooks = list[FirewallRule](), list[tuple[str, str, str, str, str]]()
    for number, line in enumerate(output_text.splitlines(), start=1):
        text = line.strip()
        if match := _TABLE_PATTERN.match(line):
            family, table, chain = match[1], f"{match[1]} {match[2]}", ""
        elif text.startswith("chain "):
            chain = text.split()[1]
        elif match := _HOOK_PATTERN.match(line):
            hooks.append((family, table, chain, match[2] if match[1] == "filter" else f"nat {match[2]}",
                          (match[3] or "accept").upper()))  # fmt: skip
        elif text == "}":
            chain = ""
        elif chain and text and not text.startswith(("#", "comment ")):
            rules.append(_parse_rule(table, chain, text, f"{file_name}, line {number}"))
    for family, table, chain, hook, policy in hooks:
        if hook in ("forward", "nat postrouting"):
            yield from _make_firewalls(_FAMILIES[family], rules, table, chain, hook, policy)


def _make_firewalls(
    versions: tuple[int, ...], rules: list[FirewallRule], table: str, base_chain: str, hook: str, policy: str
) -> Iterator[Firewall]:
    """The chains of one table, with the names that iptables gives to the first chain of a hook."""
    table_name, first_chain = ("filter", "FORWARD") if hook == "forward" else ("nat", "POSTROUTING")
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
    values, text = dict[str, str](), rule_text
    while match := _SELECTOR_PATTERN.match(text) or _FLAGS_PATTERN.match(text) or _COUNTER_PATTERN.match(text):
        if match.re is _FLAGS_PATTERN:
            values |= {"flags": "not syn" if match[1] == "!=" else "syn", "protocol": "tcp"}
        if match.re is _SELECTOR_PATTERN:
            items = re.split(r"\s*,\s*", (match[2] if match[2] is not None else match[3]).strip())
            values[_SELECTORS[match[1]]] = ",".join(item.strip('"').replace("*", "+") for item in items)
        text = text[match.end() :]
    target = _TARGET_PATTERN.match(text)
    if "states" in values:
        values["states"] = values["states"].upper()
    name = (target[2] or target[1].upper()) if target else ""
    # a rule without a decision counts as one that selects by more, and may accept
    has_other_selectors = target is None and re.search(r"\b(accept|drop|reject|jump|goto|masquerade|snat)\b", text)
    decision = re.search(r"\b(accept|drop|reject)\b", text) if has_other_selectors else None
    return FirewallRule(
        table, chain, rule_text, origin,
        target=name or (decision[1].upper() if decision else "OTHER" if has_other_selectors else "LOG"),
        is_partial=bool(has_other_selectors), **values,
    )  # fmt: skip
