# SPDX-License-Identifier: Apache-2.0
"""Reads one rule of nft: its expressions become selectors, its map of verdicts several rules.

What is not understood becomes a selector "unknown" with the text, so that no rule matches more than it says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sonde.design.routes.packet_selectors import Selector, parse_number

_TOKEN_PATTERN = re.compile(r'"[^"]*"(?:-"[^"]*")?|\{[^{}]*\}|\([^()]*\)|[^\s{}()"]+')
_VERDICTS = {"accept": "ACCEPT", "drop": "DROP", "reject": "REJECT", "return": "RETURN", "queue": "QUEUE",
             "masquerade": "MASQUERADE", "snat": "SNAT", "dnat": "DNAT", "redirect": "REDIRECT", "tproxy": "TPROXY",
             "notrack": "NOTRACK", "continue": ""}  # fmt: skip
_LOG_OPTIONS = ("prefix", "level", "group", "snaplen", "queue-threshold", "flags")
_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=", "!", "in", "eq", "ne", "lt", "gt", "le", "ge")
_WORDS_OF_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "in": "==", "!": "!="}
_BARE_KEYS = ("iifname", "oifname", "iif", "oif", "mark", "pkttype", "length", "protocol", "l4proto", "nfproto",
              "skuid", "skgid", "cpu", "iiftype", "oiftype", "iifgroup", "oifgroup", "cgroup", "hour", "day",
              "time")  # fmt: skip
_TCP_FLAGS = "FIN,SYN,RST,PSH,ACK,URG,ECN,CWR"
_UNIT_OF_LIMIT = re.compile(r"^[\d.]+(?:/\w+|$)")
_ELEMENT_EXTRAS = re.compile(r"\s+(?:timeout|expires|counter|comment|limit|quota|ct count)\s.*?(?= : |$)")


class _Member(NamedTuple):
    """The member of a packet that an expression compares, and the selectors that the expression implies."""

    name: str
    protocol: str = ""
    family: str = ""


_MEMBERS = {
    "arp saddr ip": _Member("source"), "arp daddr ip": _Member("destination"),
    "arp operation": _Member("arp_operation"),
    **{f"arp {name}": _Member("always") for name in ("htype", "hlen", "plen", "ptype")},
    "ip saddr": _Member("source", family="4"), "ip6 saddr": _Member("source", family="6"),
    "ip daddr": _Member("destination", family="4"), "ip6 daddr": _Member("destination", family="6"),
    "ip protocol": _Member("protocol", family="4"), "ip6 nexthdr": _Member("protocol", family="6"),
    "ip length": _Member("length", family="4"), "ip ttl": _Member("hops", family="4"),
    "ip6 hoplimit": _Member("hops", family="6"), "l4proto": _Member("protocol"), "nfproto": _Member("family"),
    "protocol": _Member("family"), "iifname": _Member("input_device"), "iif": _Member("input_device"),
    "oifname": _Member("output_device"), "oif": _Member("output_device"), "mark": _Member("mark"),
    "ct mark": _Member("mark"), "pkttype": _Member("packet_type"), "length": _Member("length"),
    "tcp dport": _Member("destination_ports", "tcp"), "tcp sport": _Member("source_ports", "tcp"),
    "udp dport": _Member("destination_ports", "udp"), "udp sport": _Member("source_ports", "udp"),
    "th dport": _Member("destination_ports"), "th sport": _Member("source_ports"),
    "sctp dport": _Member("destination_ports", "sctp"), "dccp dport": _Member("destination_ports", "dccp"),
    "ct state": _Member("states"), "ct status": _Member("status"), "ct direction": _Member("direction"),
    "icmp type": _Member("icmp_type", "icmp"), "icmpv6 type": _Member("icmp_type", "icmpv6"),
    "icmp code": _Member("unknown", "icmp"), "icmpv6 code": _Member("unknown", "icmpv6"),
    "fib saddr oif": _Member("return_route"), "fib saddr oifname": _Member("return_route"),
    "fib daddr type": _Member("address_type dst"), "fib saddr type": _Member("address_type src"),
    "hour": _Member("rate"), "day": _Member("rate"), "time": _Member("rate"), "numgen": _Member("rate"),
    "ether type": _Member("family"),
}  # fmt: skip


@dataclass(frozen=True)
class NftRulePart:
    """What one rule, or one element of its map of verdicts, selects and does."""

    selectors: tuple[Selector, ...] = ()
    target: str = ""
    is_goto: bool = False
    mark: int | None = None
    mark_mask: int = 0xFFFFFFFF
    segment_bytes: int | None = None
    is_logging: bool = False


@dataclass
class _RuleReader:
    """The tokens of a rule, the position of the next one, and what the rule has selected so far."""

    tokens: Sequence[str]
    sets: Mapping[str, list[str]]
    position: int = 0
    selectors: list[Selector] = field(default_factory=list)
    changes: NftRulePart = NftRulePart()
    maps: list[NftRulePart] = field(default_factory=list)

    def peek(self, offset: int = 0) -> str:
        """A lexeme, "" behind the last one."""
        index = self.position + offset
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self) -> str:
        """The next lexeme, which is read with this."""
        self.position += 1
        return self.peek(-1)


def split_set_elements(elements_text: str) -> list[str]:
    """The elements of a set without their times and counters."""
    return [_ELEMENT_EXTRAS.sub("", f" {text.strip()}").strip() for text in elements_text.split(",") if text.strip()]


def parse_nft_rule(rule_text: str, sets: Mapping[str, list[str]]) -> list[NftRulePart]:
    """The parts of a rule in their order. `sets` holds the elements of named sets and maps, with @ before the name."""
    reader = _RuleReader(_TOKEN_PATTERN.findall(rule_text), sets)
    while reader.peek():
        if not _read_statement(reader) and not _read_expression(reader):
            _skip_unknown(reader)
        if reader.changes.target:
            break  # what follows completes the verdict
    changes = replace(reader.changes, selectors=tuple(reader.selectors))
    maps = [replace(part, selectors=(*reader.selectors, *part.selectors)) for part in reader.maps]
    return [*maps, changes] if changes.target or not maps else maps


def _read_statement(reader: _RuleReader) -> bool:
    """Reads a statement that is no expression; False for an expression."""
    lexeme, following = reader.peek(), reader.peek(1)
    if lexeme == "#":
        return False
    if lexeme in ("jump", "goto"):
        reader.changes = replace(reader.changes, target=following, is_goto=lexeme == "goto")
        reader.position += 2
    elif lexeme in _VERDICTS:
        reader.changes = replace(reader.changes, target=_VERDICTS[lexeme])
        reader.position += 1
    elif lexeme == "counter":
        reader.position += 5 if following == "packets" else 3 if following == "name" else 1
    elif lexeme == "comment":
        reader.position += 2
    elif lexeme == "log":
        reader.position += 1
        options = list[str]()
        while reader.peek() in _LOG_OPTIONS:
            options.append(reader.peek())
            reader.position += 2
        # a group hands packets to a program instead
        reader.changes = replace(reader.changes, is_logging="group" not in options)
    elif lexeme in ("limit", "quota", "last") or (lexeme, following) == ("ct", "count"):
        _read_limit(reader)
    elif lexeme in ("add", "update", "delete", "meter", "set"):
        _read_set_update(reader)
    elif lexeme == "flow":
        reader.position += 3
    elif lexeme == "xt" and following in ("match", "target"):
        name = reader.peek(2).strip('"')
        if following == "match" and name != "comment":
            reader.selectors.append(Selector("unknown", "", text=f"xt match {name}"))
        reader.position += 3
    else:
        return _read_assignment(reader)
    return True


def _read_assignment(reader: _RuleReader) -> bool:
    """Reads a statement that sets a mark, a maximum segment size or another member of a packet."""
    texts = list(reader.tokens[reader.position : reader.position + 7])
    start = 1 if texts[:1] == ["meta"] else 0
    if texts[start : start + 2] == ["mark", "set"]:
        _read_mark(reader, texts[start + 2 :])
    elif texts[:5] == ["tcp", "option", "maxseg", "size", "set"]:
        if texts[5].isdigit():
            reader.changes = replace(reader.changes, segment_bytes=int(texts[5]))
    elif "set" not in texts[1:3]:
        return False
    reader.position += texts.index("set") + 1
    reader.position += 2 if reader.peek() in ("meta", "ct", "rt") else 1
    while reader.peek() in ("|", "&", "^", "or", "and", "xor", "map"):
        reader.position += 2
    return True


def _read_mark(reader: _RuleReader, value: Sequence[str]) -> None:
    """A mark that a rule sets: a number, or the old mark with some bits changed (mark and X, mark or X)."""
    number = parse_number(value[0]) if value else None
    if number is not None:
        reader.changes = replace(reader.changes, mark=number)
    elif len(value) > 2 and (bits := parse_number(value[-1])) is not None:
        is_or = "or" in value or "|" in value
        mask = bits if is_or else ~bits & 0xFFFFFFFF
        reader.changes = replace(reader.changes, mark=bits if is_or else 0, mark_mask=mask)


def _read_limit(reader: _RuleReader) -> None:
    """A limit, quota or number of connections: some packets match."""
    first = reader.position
    reader.position += 1
    while reader.peek() in ("rate", "over", "until", "burst", "name", "count", "used", "never", "packets", "bytes",
                            "kbytes", "mbytes", "gbytes") or _UNIT_OF_LIMIT.match(reader.peek()):  # fmt: skip
        reader.position += 2 if reader.peek() == "name" else 1
    text = " ".join(reader.tokens[first : reader.position])
    if not text.startswith("last"):
        reader.selectors.append(Selector("rate", "", text=text))


def _read_set_update(reader: _RuleReader) -> None:
    """A rule that adds an element to a set; with a limit for each element, only some packets match."""
    first = reader.position
    while reader.peek() and not reader.peek().startswith("{"):
        reader.position += 1
    content = reader.take()
    if re.search(r"\b(limit|ct count|quota)\b", content):
        reader.selectors.append(Selector("rate", "", text=" ".join(reader.tokens[first : reader.position])))


def _read_expression(reader: _RuleReader) -> bool:
    """Reads a comparison or a map of verdicts; False where the text is not understood."""
    first = reader.position
    keys = [_read_key(reader)]
    while reader.peek() == "." and keys[-1]:
        reader.position += 1
        keys.append(_read_key(reader))
    members = [_MEMBERS.get(key, _Member("unknown")) for key in keys if key]
    if not members or len(members) != len(keys):
        reader.position = first
        return False
    if keys == ["tcp flags"]:
        _read_flags(reader)
        return True
    mask = ""
    if reader.peek() in ("&", "and") and reader.peek(2) in ("==", "!=", "vmap"):
        mask = reader.peek(1)
        reader.position += 2
    if reader.peek() == "vmap":
        reader.position += 1
        _read_verdict_map(reader, members)
        return True
    comparison = "=="
    if reader.peek() in _COMPARISONS:
        comparison = reader.take()
        comparison = _WORDS_OF_COMPARISONS.get(comparison, comparison)
    values = _take_values(reader, len(members))
    text = " ".join(reader.tokens[first : reader.position])
    if keys == ["ip frag-off"] and mask:  # no planned packet is a fragment
        members, values, comparison = [_Member("never" if comparison != "==" else "always")], [""], "=="
    elif mask and len(members) == 1 and members[0].name == "mark" and values:
        values = [f"{value}/{mask}" for value in values]
    elif mask or values is None:
        members = [_Member("unknown")]
    reader.selectors += _make_selectors(members, values or [""], comparison, text)
    return True


def _read_key(reader: _RuleReader) -> str:
    """The expression at the position, by the name in `_MEMBERS`; "" for a text that begins none."""
    lexeme = reader.take()
    if lexeme == "meta":
        lexeme = reader.take()
        return lexeme
    if lexeme in _BARE_KEYS:
        return lexeme
    if lexeme == "fib":
        parts = [lexeme, reader.take()]
        while reader.peek() and reader.peek() not in ("oif", "oifname", "type"):
            reader.position += 1
        return " ".join((*parts, reader.take()))
    if lexeme == "numgen":  # random mod N
        reader.position += 5 if reader.peek(3) == "offset" else 3
        return lexeme
    if lexeme in ("ip", "ip6", "tcp", "udp", "th", "ct", "icmp", "icmpv6", "sctp", "dccp", "ether", "socket", "rt",
                 "arp", "vlan", "exthdr", "frag", "ah", "esp", "comp", "udplite", "ipsec", "igmp"):  # fmt: skip
        field_name = reader.take()
        if lexeme == "arp" and field_name in ("saddr", "daddr"):
            field_name = f"{field_name} {reader.take()}"
        if lexeme == "ct" and field_name in ("original", "reply"):
            field_name = " ".join((field_name, reader.take()))
            if field_name.split()[1] in ("ip", "ip6"):
                reader.position += 1
        return f"{lexeme} {field_name}" if field_name else ""
    return ""


def _take_values(reader: _RuleReader, part_count: int) -> list[str] | None:
    """The values of a comparison; None for those that are not known (a set that the output lacks)."""
    lexeme = reader.take()
    if lexeme.startswith("@"):
        return reader.sets.get(lexeme)
    if lexeme.startswith("{"):
        return split_set_elements(lexeme[1:-1])
    for _ in range(part_count - 1):
        reader.position += 1
        lexeme = f"{lexeme} . {reader.take()}"
    return [lexeme] if part_count > 1 else [text.strip() for text in lexeme.split(",")]


def _read_verdict_map(reader: _RuleReader, members: Sequence[_Member]) -> None:
    lexeme = reader.take()
    elements = reader.sets.get(lexeme) if lexeme.startswith("@") else split_set_elements(lexeme[1:-1])
    if elements is None:
        reader.maps.append(NftRulePart((Selector("unknown", "", text=f"vmap {lexeme}"),), "DROP"))
        return
    for element in elements:
        key, _, verdict = element.rpartition(" : ")
        key = _ELEMENT_EXTRAS.sub("", key)
        verdict_name, _, chain = verdict.strip().partition(" ")
        target = chain.strip() if verdict_name in ("jump", "goto") else _VERDICTS.get(verdict_name, "DROP")
        selectors = _make_selectors(members, [key.strip()], "==", f"{key.strip()} : {verdict.strip()}")
        if key.strip() == "*":
            selectors = []
        reader.maps.append(NftRulePart(tuple(selectors), target, verdict_name == "goto"))


def _make_selectors(members: Sequence[_Member], values: Sequence[str], comparison: str, text: str) -> list[Selector]:
    """The selectors of a comparison. Of a concatenation, each element of the set is an alternative."""
    implied = [Selector("protocol", each.protocol) for each in members if each.protocol]
    implied += [Selector("family", each.family) for each in members if each.family]
    is_inverted = comparison == "!="
    if len(members) == 1:
        return [*implied, _make_selector(members[0], _apply_comparison(values, comparison), is_inverted, text)]
    alternatives = []
    for value in values:
        parts = [part.strip() for part in value.split(" . ")]
        if len(parts) != len(members):
            return [Selector("unknown", "", text=text)]
        alternatives.append(
            tuple(_make_selector(member, [part], False, text) for member, part in zip(members, parts, strict=True))
        )
    return [*implied, Selector("alternatives", "", is_inverted, text, tuple(alternatives))]


def _apply_comparison(values: Sequence[str], comparison: str) -> Sequence[str]:
    """The values with those of a comparison by size as a range."""
    number = parse_number(values[0]) if len(values) == 1 else None
    if comparison in ("==", "!=") or number is None:
        return values
    ranges = {"<": f"0-{number - 1}", "<=": f"0-{number}", ">": f"{number + 1}-", ">=": f"{number}-"}
    return [ranges.get(comparison, values[0])]


def _make_selector(member: _Member, values: Sequence[str], is_inverted: bool, text: str) -> Selector:
    value = ",".join(each.strip('"') for each in values)
    if member.name.startswith("address_type"):
        return Selector("address_type", f"{member.name.split()[1]} {value}", is_inverted, text)
    if member.name == "return_route":  # planned packets come in where their replies leave
        is_present = value in ("exists", "1", "true") or (value in ("0", "missing") and is_inverted)
        return Selector("always" if is_present else "never", "", text=text)
    if member.name == "family":
        value = {"ipv4": "4", "ipv6": "6", "ip": "4", "ip6": "6"}.get(value, "0")
    return Selector(member.name, value, is_inverted, text)


def _read_flags(reader: _RuleReader) -> None:
    """The forms of TCP flags: `tcp flags syn`, `!= syn`, `& (fin | syn) == syn`, `syn / fin,syn`."""
    first = reader.position
    end = _find_next_statement(reader, first)
    expression = " ".join(reader.tokens[first:end])
    reader.position = end
    names = r"[a-z|, 0x]+"
    value, is_inverted = "?/?", False
    if match := re.fullmatch(rf"(!= |! )?({names}?) / ({names})", expression):
        value, is_inverted = f"{match[3]}/{match[2]}", match[1] is not None
    elif match := re.fullmatch(rf"& \(?({names}?)\)? (==|!=) \(?({names}?)\)?", expression):
        value, is_inverted = f"{match[1]}/{match[3]}", match[2] == "!="
    elif match := re.fullmatch(rf"(==|!=|!) ({names})", expression):
        mask = match[2] if match[1] == "!" else _TCP_FLAGS
        value, is_inverted = f"{mask}/{'any' if match[1] == '!' else match[2]}", match[1] != "=="
    elif match := re.fullmatch(rf"&?\s?\(?({names}?)\)?", expression):
        value = f"{match[1]}/any"
    mask, _, flags = value.partition("/")
    flags = flags if flags == "any" else "NONE" if flags.strip() in ("0x0", "0") else _normalize_flags(flags)
    reader.selectors += [
        Selector("protocol", "tcp"),
        Selector("flags", f"{_normalize_flags(mask)}/{flags}", is_inverted, f"tcp flags {expression}"),
    ]


def _normalize_flags(flags_text: str) -> str:
    return ",".join(re.findall(r"[A-Z?]+", flags_text.upper()))


def _find_next_statement(reader: _RuleReader, position: int) -> int:
    """The position of the next lexeme that begins a statement or an expression, from a position on."""
    starts = (*_VERDICTS, "jump", "goto", "counter", "log", "limit", "ct", "ip", "ip6", "tcp", "udp", "th", "meta",
              "iifname", "oifname", "iif", "oif", "comment", "add", "update", "meter", "xt", "#", "fib",
              "arp")  # fmt: skip
    while position < len(reader.tokens) and reader.tokens[position] not in starts:
        position += 1
    return position


def _skip_unknown(reader: _RuleReader) -> None:
    end = _find_next_statement(reader, reader.position + 1)
    text = " ".join(reader.tokens[reader.position : end])
    reader.selectors.append(Selector("unknown", "", text=text))
    reader.position = end
