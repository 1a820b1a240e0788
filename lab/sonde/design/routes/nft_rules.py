# SPDX-License-Identifier: Apache-2.0
"""Reads the firewall in output of `nft list ruleset`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from sonde.design.routes.firewall_rules import ARP, BaseChain, Firewall, FirewallRule
from sonde.design.routes.nft_expressions import parse_nft_rule, split_set_elements

_TABLE_PATTERN = re.compile(r"^table (ip|ip6|inet|netdev|arp) (\S+) \{", re.MULTILINE)
_BRIDGE_PATTERN = re.compile(r"^table bridge \S+ \{", re.MULTILINE)
_BLOCK_PATTERN = re.compile(r"^(table|chain|set|map|flowtable|counter|quota|limit|ct \S+|secmark|synproxy)\b.*\{$")
_HOOK_PATTERN = re.compile(
    r"^type (filter|nat|route) hook (\w+)(?: devices? (?:= )?(\{[^}]*\}|\S+))? priority ([^;]*);(?:\s*policy (\w+);)?"
)
_PRIORITIES = {"raw": -300, "mangle": -150, "dstnat": -100, "filter": 0, "security": 50, "srcnat": 100}
_FAMILIES = {"ip": (4,), "ip6": (6,), "inet": (4, 6), "netdev": (4, 6), "arp": (ARP,)}


@dataclass
class _RuleTable:
    """One table: its IP versions, its chains that the kernel calls, its rules and sets as they are printed."""

    name: str
    versions: tuple[int, ...]
    is_dormant: bool = False
    base_chains: list[BaseChain] = field(default_factory=list)
    rule_texts: list[tuple[str, str, int]] = field(default_factory=list)  # chain, text, number of the line
    sets: dict[str, list[str]] = field(default_factory=dict)


def is_nft_output(output_text: str) -> bool:
    """Whether a text is output of `nft list ruleset`."""
    is_table = _TABLE_PATTERN.search(output_text) is not None or has_bridge_tables(output_text)
    return is_table and " chain " in output_text.replace("\t", " ")


def has_bridge_tables(output_text: str) -> bool:
    """Whether output of `nft list ruleset` has tables for bridged packets, which `parse_nft_output` leaves out."""
    return _BRIDGE_PATTERN.search(output_text) is not None


def parse_nft_output(output_text: str, file_name: str) -> Iterator[Firewall]:
    """One firewall for each IP version that the tables are for. Tables that are switched off (dormant) are skipped."""
    tables = _read_tables(output_text)
    for version in sorted({version for table in tables for version in table.versions}):
        rules, chains = list[FirewallRule](), list[BaseChain]()
        for table in tables:
            if version not in table.versions or table.is_dormant:
                continue
            chains += table.base_chains
            for chain, text, number in table.rule_texts:
                origin = f"{file_name}, line {number}"
                rules += [
                    FirewallRule(
                        table.name, chain, text, origin, part.selectors, part.target, part.is_goto,
                        part.mark, part.mark_mask, part.segment_bytes, part.is_logging,
                    )
                    for part in parse_nft_rule(text, table.sets)
                ]  # fmt: skip
        yield Firewall(version, tuple(rules), tuple(chains))


def _read_tables(output_text: str) -> list[_RuleTable]:
    tables, blocks = list[_RuleTable](), list[str]()
    for number, text in _join_open_lines(output_text):
        is_block = _BLOCK_PATTERN.match(text) is not None
        if match := _TABLE_PATTERN.match(text):
            tables.append(_RuleTable(f"{match[1]} {match[2]}", _FAMILIES[match[1]]))
            blocks = [text]
        elif is_block and text.startswith("table "):
            blocks = ["other"]  # a family that no packet of IP passes
        elif is_block:
            blocks.append(text)
        elif text == "}":
            blocks = blocks[:-1]
        elif blocks and blocks[0] != "other":
            _read_content(tables[-1], blocks[-1], text, number)
    return tables


def _read_content(table: _RuleTable, block: str, text: str, number: int) -> None:
    """Reads one line of a table, a chain or a set."""
    kind, name = block.split()[0], block.split()[1]
    if kind == "table":
        table.is_dormant |= text.startswith("flags") and "dormant" in text
    elif kind == "chain" and (match := _HOOK_PATTERN.match(text)):
        devices = tuple(re.findall(r"[\w.+*-]+", match[3] or ""))
        policy = (match[5] or "accept").upper()
        table.base_chains.append(
            BaseChain(match[2], match[1], table.name, name, policy, _parse_priority(match[4]), devices)
        )
    elif kind == "chain" and not text.startswith(("#", "comment ", "policy ")):
        table.rule_texts.append((name, text, number))
    elif kind in ("set", "map"):
        elements = table.sets.setdefault(f"@{name}", [])
        if match := re.match(r"^elements = \{(.*)\}$", text):
            elements += split_set_elements(match[1])


def _join_open_lines(output_text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; elements of a set on several lines are one line."""
    pending, first = "", 0
    for number, line in enumerate(output_text.splitlines(), start=1):
        text = re.sub(r"\s*# handle \d+$", "", line).strip()
        if not text or (text.startswith("#") and not pending):
            continue
        joined = f"{pending} {text}" if pending else text
        first = first if pending else number
        if joined.count("{") > joined.count("}") and not _BLOCK_PATTERN.match(joined):
            pending = joined
            continue
        pending = ""
        yield first, joined


def _parse_priority(priority_text: str) -> int:
    """The number of a priority as -150, mangle, or filter + 10."""
    total, sign = 0, 1
    for text in priority_text.split():
        if text in ("+", "-"):
            sign = -1 if text == "-" else 1
        else:
            number = _PRIORITIES.get(text)
            total += sign * (number if number is not None else int(text) if re.fullmatch(r"-?\d+", text) else 0)
    return total
