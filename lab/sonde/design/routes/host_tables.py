# SPDX-License-Identifier: Apache-2.0
"""Rules, routes, addresses and settings of a host, from saved output of its tools.

Accepted are ``ip -j rule`` and ``ip -j route show table all`` (JSON), the same without -j, scripts of ``ip rule add``
and ``ip route add`` commands, rule- and route- files, ``sysctl -a`` and kernel configurations. None means that no file
says anything about a part: unknown, which is not empty.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sonde.model.documents import parse_json
from sonde.model.errors import UserError

Item = TypeVar("Item")
_RULE_BEGINS = ("rule", "from", "fwmark", "pref", "to")
_KERNEL_TABLES = {"local", "default", "255", "253"}


@dataclass(frozen=True)
class ObservedHop:
    """One next hop of a route. `dead` says that the kernel marks it as dead or its link as down."""

    via: str
    device: str
    weight: int
    dead: bool = False


@dataclass(frozen=True)
class ObservedRoute:
    """One route. `origin` is the file and line that it was read from."""

    destination: str
    table: str
    device: str
    hops: tuple[ObservedHop, ...]
    on_link: bool
    mtu: int | None
    origin: str


@dataclass(frozen=True)
class ObservedRule:
    """One rule. `source` is its selector ("all", an address or a range), `mark` its firewall mark."""

    preference: int | None
    source: str
    mark: int | None
    table: str
    origin: str


@dataclass(frozen=True)
class HostTables:
    """Everything that is known of one host. None: unknown."""

    rules: tuple[ObservedRule, ...] | None = None
    routes: tuple[ObservedRoute, ...] | None = None
    addresses: tuple[str, ...] | None = None  # with prefix: 10.100.0.1/16
    settings: Mapping[str, str] | None = None
    options: Mapping[str, str] | None = None  # CONFIG_… -> y, m or n
    mtus: Mapping[str, int] = field(default_factory=dict)  # by device, bytes

    def merge(self, other: HostTables) -> HostTables:
        """Both together; sequences are concatenated, and the other value wins in mappings."""
        return HostTables(
            rules=_concatenate(self.rules, other.rules),
            routes=_concatenate(self.routes, other.routes),
            addresses=_concatenate(self.addresses, other.addresses),
            settings=_merge_mappings(self.settings, other.settings),
            options=_merge_mappings(self.options, other.options),
            mtus={**self.mtus, **other.mtus},
        )


def _concatenate(first: tuple[Item, ...] | None, second: tuple[Item, ...] | None) -> tuple[Item, ...] | None:
    return None if first is None and second is None else (first or ()) + (second or ())


def _merge_mappings(first: Mapping[str, str] | None, second: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return None if first is None and second is None else {**(first or {}), **(second or {})}


def read_host_tables(files: Iterable[Path]) -> HostTables:
    """All files together; the content of each file shows which kind it is. Raises UserError for a file of no known
    kind."""
    host_tables = HostTables()
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as reason:
            raise UserError(
                f"{file} cannot be read ({reason}); give saved output of ip, sysctl or a kernel .config."
            ) from None
        host_tables = host_tables.merge(parse_host_tables(text, file.name))
    return host_tables


def parse_host_tables(text: str, name: str) -> HostTables:
    """One text of any kind; `name` is for messages. Raises UserError."""
    stripped = text.strip()
    if stripped.startswith(("[", "{")):
        return _parse_json_tables(stripped, name)
    if re.search(r"^(# )?CONFIG_\w+", text, re.MULTILINE):
        return HostTables(options=_parse_kernel_options(text))
    if stripped and all(re.match(r"[\w.\-/]+\s*=", line) for line in stripped.splitlines() if _has_content(line)):
        pairs = (line.partition("=") for line in stripped.splitlines() if _has_content(line))
        return HostTables(
            settings={name.strip().replace("/", "."): " ".join(value.split()) for name, _, value in pairs}
        )
    rules, routes = [], []
    for number, line in _join_continued_lines(text):
        tokens = _strip_command(line.split())
        origin = f"{name}, line {number}"
        if re.match(r"\d+:", line) or (tokens and tokens[0] in _RULE_BEGINS):
            rules.append(_parse_rule(tokens[1:] if tokens[0] == "rule" else tokens, line, origin))
        elif tokens:
            routes.append(_parse_route(tokens[1:] if tokens[0] == "route" else tokens, origin))
    if not rules and not routes:
        raise UserError(
            f"{name} holds no rule, route, sysctl or kernel option; give saved output of ip, sysctl or .config."
        )
    return HostTables(rules=tuple(rules) or None, routes=tuple(routes) or None)


def _has_content(line: str) -> bool:
    """Whether a line is neither empty nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith(("#", ";"))


def _parse_kernel_options(text: str) -> dict[str, str]:
    """CONFIG_ lines of a kernel configuration; an option that is not set is n."""
    options = dict(re.findall(r"^(CONFIG_\w+)=(\S+)", text, re.MULTILINE))
    return options | dict.fromkeys(re.findall(r"^# (CONFIG_\w+) is not set", text, re.MULTILINE), "n")


def _join_continued_lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first line. A backslash or an indented next hop continues a line, a
    semicolon ends it."""
    pending, begin = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].rstrip()
        if not line.strip() or set(line.strip()) <= {"."}:
            continue
        if pending and not pending.endswith("\\") and not line.lstrip().startswith("nexthop"):
            yield begin, pending.strip().rstrip(";")
            pending = ""
        begin = begin if pending else number
        pending = f"{pending.removesuffix(chr(92))} {line.strip()}" if pending else line.strip()
    if pending:
        yield begin, pending.strip().removesuffix("\\").rstrip(";")


def _strip_command(tokens: list[str]) -> list[str]:
    """The tokens without the program and its verb: "ip -6 route add X" is "route X". Empty for commands that add
    nothing."""
    if tokens and tokens[0] in ("ip", "/sbin/ip", "/usr/sbin/ip"):
        tokens = [token for token in tokens[1:] if not token.startswith("-")]
        if tokens and tokens[0] in ("r", "ro"):
            tokens[0] = "route"
        if len(tokens) > 1 and tokens[1] in ("add", "replace", "append", "a"):
            del tokens[1]
        else:
            return []  # show, del, flush: nothing that is added
    return tokens


def _parse_rule(tokens: Sequence[str], line: str, origin: str) -> ObservedRule:
    """A rule as `ip rule show` prints it ("1000: from all …"), or as `ip rule add` accepts it."""
    if numbered := re.match(r"(\d+):\s*(.*)", line):
        tokens = ["pref", numbered[1], *numbered[2].split()]
    attributes: dict[str, str] = {}
    attribute_names = {"pref": "pref", "priority": "pref", "prio": "pref", "order": "pref", "from": "from",
                       "fwmark": "fwmark", "table": "table", "lookup": "table", "to": "to"}  # fmt: skip
    for index, token in enumerate(tokens[:-1]):
        if token in attribute_names:
            attributes[attribute_names[token]] = tokens[index + 1]
    return ObservedRule(
        preference=int(attributes["pref"]) if "pref" in attributes else None,
        source=attributes.get("from", "all"),
        mark=_parse_mark(attributes.get("fwmark")),
        table=_name_table(attributes.get("table", "main")),
        origin=origin,
    )


def _parse_mark(text: str | None) -> int | None:
    return int(text.split("/")[0], 0) if text else None


def _name_table(text: str) -> str:
    return {"254": "main", "255": "local", "253": "default"}.get(text, text)


def _parse_route(tokens: Sequence[str], origin: str) -> ObservedRoute:
    """A route as `ip route` prints or accepts it."""
    before, hops = _split_hops(tokens)
    attributes = _parse_attributes(before[1:])
    destination = _parse_destination(before[0], origin)
    device, via = attributes.get("dev", ""), attributes.get("via", "")
    if via:
        hops = [ObservedHop(via, device, 1, "dead" in before or "linkdown" in before)]
    return ObservedRoute(
        destination=destination,
        table=_name_table(attributes.get("table", "main")),
        device=device,
        hops=tuple(hops),
        on_link=not hops,
        mtu=int(attributes["mtu"]) if attributes.get("mtu", "").isdigit() else None,
        origin=origin,
    )


def _split_hops(tokens: Sequence[str]) -> tuple[list[str], list[ObservedHop]]:
    """The tokens of the route itself, and its next hops."""
    hop_starts = [index for index, token in enumerate(tokens) if token == "nexthop"]
    hops = []
    before = list(tokens[: hop_starts[0]]) if hop_starts else list(tokens)
    for begin, end in zip(hop_starts, [*hop_starts[1:], len(tokens)], strict=False):
        hop_tokens = tokens[begin + 1 : end]
        attributes = _parse_attributes(hop_tokens)
        dead = "dead" in hop_tokens or "linkdown" in hop_tokens
        hops.append(
            ObservedHop(attributes.get("via", ""), attributes.get("dev", ""), int(attributes.get("weight", "1")), dead)
        )
        if "table" in attributes:  # attributes of the route follow its last hop
            before += ["table", attributes["table"]]
    return before, hops


def _parse_attributes(tokens: Sequence[str]) -> dict[str, str]:
    """The values that follow known attribute names."""
    names = ("dev", "via", "table", "mtu", "weight", "metric", "scope", "proto")
    attributes = {token: tokens[index + 1] for index, token in enumerate(tokens[:-1]) if token in names}
    if attributes.get("via") in ("inet", "inet6"):
        attributes["via"] = tokens[list(tokens).index("via") + 2]
    return attributes


def _parse_destination(text: str, origin: str) -> str:
    """An address range as programs print it; one address is a range too."""
    if text in ("default", "unreachable", "blackhole", "prohibit", "local", "broadcast", "multicast", "anycast"):
        return text
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise UserError(f'{origin}: "{text}" is no address range, and "default" it is not either.') from None


def _parse_json_tables(text: str, name: str) -> HostTables:
    """Rules, routes or addresses as `ip -j` prints them."""
    try:
        document = parse_json(text)
    except ValueError as reason:
        raise UserError(f"{name} is not JSON ({reason}); save the output of `ip -j` as it is.") from None
    rows = document if isinstance(document, list) else [document]
    if not all(isinstance(row, Mapping) for row in rows):
        raise UserError(f"{name} is JSON, but not a list of objects as `ip -j` writes.")
    rules, routes, addresses = [], [], []
    mtus: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        origin = f"{name}, entry {number}"
        if "addr_info" in row:
            addresses += [
                f"{address['local']}/{address['prefixlen']}" for address in row["addr_info"] if "local" in address
            ]
            if isinstance(row.get("mtu"), int):
                mtus[str(row.get("ifname", ""))] = row["mtu"]
        elif "priority" in row and "dst" not in row:
            rules.append(_parse_json_rule(row, origin))
        elif "dst" in row and str(row.get("table", "main")) not in _KERNEL_TABLES:
            routes.append(_parse_json_route(row, origin))
    return HostTables(
        rules=tuple(rules) or None,
        routes=tuple(routes) or None,
        addresses=tuple(addresses) or None,
        mtus=mtus,
    )


def _parse_json_rule(row: Mapping[str, Any], origin: str) -> ObservedRule:
    length = row.get("srclen")
    source = str(row.get("src", "all"))
    return ObservedRule(
        preference=int(row["priority"]),
        source=f"{source}/{length}" if length else source,
        mark=_parse_mark(str(row["fwmark"])) if "fwmark" in row else None,
        table=_name_table(str(row.get("table", "main"))),
        origin=origin,
    )


def _parse_json_route(row: Mapping[str, Any], origin: str) -> ObservedRoute:
    hops = [
        ObservedHop(str(hop.get("gateway", "")), str(hop.get("dev", "")), int(hop.get("weight", 1)), _is_dead(hop))
        for hop in row.get("nexthops", ())
    ]
    if "gateway" in row:
        hops = [ObservedHop(str(row["gateway"]), str(row.get("dev", "")), 1, _is_dead(row))]
    metrics = {name: value for hop in row.get("metrics", ()) for name, value in hop.items()}
    return ObservedRoute(
        destination=_parse_destination(str(row["dst"]), origin),
        table=_name_table(str(row.get("table", "main"))),
        device=str(row.get("dev", "")),
        hops=tuple(hops),
        on_link=not hops,
        mtu=int(metrics["mtu"]) if "mtu" in metrics else None,
        origin=origin,
    )


def _is_dead(row: Mapping[str, Any]) -> bool:
    return bool({"dead", "linkdown"} & set(row.get("flags", ())))
