# SPDX-License-Identifier: Apache-2.0
"""What a host has: rules, routes, addresses and settings, from saved output of its tools or from the live kernel.

Read are ``ip -j rule`` and ``ip -j route show table all`` (JSON), the same without -j, scripts of ``ip rule add`` and
``ip route add`` commands, rule- and route- files, ``sysctl -a`` and kernel configurations. What was not given is None:
unknown, which is not empty.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sonde.model.errors import UserError

Seen = TypeVar("Seen")
_RULE_BEGINS = ("rule", "from", "fwmark", "pref", "to")
_KERNEL_TABLES = {"local", "default", "255", "253"}


@dataclass(frozen=True)
class SeenHop:
    via: str
    device: str
    weight: int
    dead: bool = False


@dataclass(frozen=True)
class SeenRoute:
    """One route. `origin` says where it was read: a file and its line."""

    to: str
    table: str
    device: str
    hops: tuple[SeenHop, ...]
    on_link: bool
    mtu: int | None
    origin: str


@dataclass(frozen=True)
class SeenRule:
    """One rule; `source` is its selector ("all", an address or a range), `mark` its firewall mark."""

    preference: int | None
    source: str
    mark: int | None
    table: str
    origin: str


@dataclass(frozen=True)
class HostTables:
    """Everything that is known of one host. None: not given."""

    rules: tuple[SeenRule, ...] | None = None
    routes: tuple[SeenRoute, ...] | None = None
    addresses: tuple[str, ...] | None = None  # with prefix: 10.100.0.1/16
    settings: Mapping[str, str] | None = None
    options: Mapping[str, str] | None = None  # CONFIG_… -> y, m or n
    mtus: Mapping[str, int] = field(default_factory=dict)  # by device, bytes

    def merged(self, other: HostTables) -> HostTables:
        """Both together; lists are joined."""
        return HostTables(
            rules=_joined(self.rules, other.rules),
            routes=_joined(self.routes, other.routes),
            addresses=_joined(self.addresses, other.addresses),
            settings=_united(self.settings, other.settings),
            options=_united(self.options, other.options),
            mtus={**self.mtus, **other.mtus},
        )


def _joined(first: tuple[Seen, ...] | None, second: tuple[Seen, ...] | None) -> tuple[Seen, ...] | None:
    return None if first is None and second is None else (first or ()) + (second or ())


def _united(first: Mapping[str, str] | None, second: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return None if first is None and second is None else {**(first or {}), **(second or {})}


def read_tables(paths: Iterable[Path]) -> HostTables:
    """All files together; each says by its content what it is. Raises UserError for one that is nothing of this."""
    found = HostTables()
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as reason:
            raise UserError(
                f"{path} cannot be read ({reason}); give saved output of ip, sysctl or a kernel .config."
            ) from None
        found = found.merged(read_text(text, path.name))
    return found


def read_text(text: str, name: str) -> HostTables:
    """One text of any of the forms. Raises UserError."""
    stripped = text.strip()
    if stripped.startswith(("[", "{")):
        return _read_json(stripped, name)
    if re.search(r"^(# )?CONFIG_\w+", text, re.MULTILINE):
        return HostTables(options=_options(text))
    if stripped and all(re.match(r"[\w.\-/]+\s*=", line) for line in stripped.splitlines() if _said(line)):
        pairs = (line.partition("=") for line in stripped.splitlines() if _said(line))
        return HostTables(
            settings={name.strip().replace("/", "."): " ".join(value.split()) for name, _, value in pairs}
        )
    rules, routes = [], []
    for number, line in _lines(text):
        words = _command(line.split())
        origin = f"{name}, line {number}"
        if re.match(r"\d+:", line) or (words and words[0] in _RULE_BEGINS):
            rules.append(_rule(words[1:] if words[0] == "rule" else words, line, origin))
        elif words:
            routes.append(_route(words[1:] if words[0] == "route" else words, origin))
    if not rules and not routes:
        raise UserError(
            f"{name} holds no rule, route, sysctl or kernel option; give saved output of ip, sysctl or .config."
        )
    return HostTables(rules=tuple(rules) or None, routes=tuple(routes) or None)


def _said(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(("#", ";"))


def _options(text: str) -> dict[str, str]:
    found = dict(re.findall(r"^(CONFIG_\w+)=(\S+)", text, re.MULTILINE))
    return found | dict.fromkeys(re.findall(r"^# (CONFIG_\w+) is not set", text, re.MULTILINE), "n")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines: continued by a backslash, or by indented next hops, ended by a semicolon."""
    held, begin = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].rstrip()
        if not line.strip() or set(line.strip()) <= {"."}:
            continue
        if held and not held.endswith("\\") and not line.lstrip().startswith("nexthop"):
            yield begin, held.strip().rstrip(";")
            held = ""
        begin = begin if held else number
        held = f"{held.removesuffix(chr(92))} {line.strip()}" if held else line.strip()
    if held:
        yield begin, held.strip().removesuffix("\\").rstrip(";")


def _command(words: list[str]) -> list[str]:
    """Without the program and what it should do: "ip -6 route add X" is "route X"."""
    if words and words[0] in ("ip", "/sbin/ip", "/usr/sbin/ip"):
        words = [word for word in words[1:] if not word.startswith("-")]
        if words and words[0] in ("r", "ro"):
            words[0] = "route"
        if len(words) > 1 and words[1] in ("add", "replace", "append", "a"):
            del words[1]
        elif words and words[0] in ("route", "rule"):
            return []  # show, del, flush: nothing that is there
        else:
            return []
    return words


def _rule(words: Sequence[str], line: str, origin: str) -> SeenRule:
    if numbered := re.match(r"(\d+):\s*(.*)", line):
        words = ["pref", numbered[1], *numbered[2].split()]
    found: dict[str, str] = {}
    names = {"pref": "pref", "priority": "pref", "prio": "pref", "order": "pref", "from": "from", "fwmark": "fwmark",
             "table": "table", "lookup": "table", "to": "to"}  # fmt: skip
    for at, word in enumerate(words[:-1]):
        if word in names:
            found[names[word]] = words[at + 1]
    return SeenRule(
        preference=int(found["pref"]) if "pref" in found else None,
        source=found.get("from", "all"),
        mark=_mark(found.get("fwmark")),
        table=_table(found.get("table", "main")),
        origin=origin,
    )


def _mark(text: str | None) -> int | None:
    return int(text.split("/")[0], 0) if text else None


def _table(text: str) -> str:
    return {"254": "main", "255": "local", "253": "default"}.get(text, text)


def _route(words: Sequence[str], origin: str) -> SeenRoute:
    before, hops = _split_hops(words)
    one = _pairs(before[1:])
    to = _range(before[0], origin)
    device, via = one.get("dev", ""), one.get("via", "")
    if via:
        hops = [SeenHop(via, device, 1, "dead" in before or "linkdown" in before)]
    return SeenRoute(
        to=to,
        table=_table(one.get("table", "main")),
        device=device,
        hops=tuple(hops),
        on_link=not hops,
        mtu=int(one["mtu"]) if one.get("mtu", "").isdigit() else None,
        origin=origin,
    )


def _split_hops(words: Sequence[str]) -> tuple[list[str], list[SeenHop]]:
    places = [at for at, word in enumerate(words) if word == "nexthop"]
    hops = []
    before = list(words[: places[0]]) if places else list(words)
    for begin, end in zip(places, [*places[1:], len(words)], strict=False):
        part = words[begin + 1 : end]
        one = _pairs(part)
        dead = "dead" in part or "linkdown" in part
        hops.append(SeenHop(one.get("via", ""), one.get("dev", ""), int(one.get("weight", "1")), dead))
        if "table" in one:  # the last hop is followed by what belongs to the route
            before += ["table", one["table"]]
    return before, hops


def _pairs(words: Sequence[str]) -> dict[str, str]:
    names = ("dev", "via", "table", "mtu", "weight", "metric", "scope", "proto")
    found = {word: words[at + 1] for at, word in enumerate(words[:-1]) if word in names}
    if found.get("via") in ("inet", "inet6"):
        found["via"] = words[list(words).index("via") + 2]
    return found


def _range(text: str, origin: str) -> str:
    """A range as programs print it; one address is a range too."""
    if text in ("default", "unreachable", "blackhole", "prohibit", "local", "broadcast", "multicast", "anycast"):
        return text
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise UserError(f'{origin}: "{text}" is no address range, and "default" it is not either.') from None


def _read_json(text: str, name: str) -> HostTables:
    try:
        document = json.loads(text)
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
            addresses += [f"{one['local']}/{one['prefixlen']}" for one in row["addr_info"] if "local" in one]
            if isinstance(row.get("mtu"), int):
                mtus[str(row.get("ifname", ""))] = row["mtu"]
        elif "priority" in row and "dst" not in row:
            rules.append(_json_rule(row, origin))
        elif "dst" in row and str(row.get("table", "main")) not in _KERNEL_TABLES:
            routes.append(_json_route(row, origin))
    return HostTables(
        rules=tuple(rules) or None,
        routes=tuple(routes) or None,
        addresses=tuple(addresses) or None,
        mtus=mtus,
    )


def _json_rule(row: Mapping[str, Any], origin: str) -> SeenRule:
    length = row.get("srclen")
    source = str(row.get("src", "all"))
    return SeenRule(
        preference=int(row["priority"]),
        source=f"{source}/{length}" if length else source,
        mark=_mark(str(row["fwmark"])) if "fwmark" in row else None,
        table=_table(str(row.get("table", "main"))),
        origin=origin,
    )


def _json_route(row: Mapping[str, Any], origin: str) -> SeenRoute:
    hops = [
        SeenHop(str(one.get("gateway", "")), str(one.get("dev", "")), int(one.get("weight", 1)), _dead(one))
        for one in row.get("nexthops", ())
    ]
    if "gateway" in row:
        hops = [SeenHop(str(row["gateway"]), str(row.get("dev", "")), 1, _dead(row))]
    metrics = {name: value for one in row.get("metrics", ()) for name, value in one.items()}
    return SeenRoute(
        to=_range(str(row["dst"]), origin),
        table=_table(str(row.get("table", "main"))),
        device=str(row.get("dev", "")),
        hops=tuple(hops),
        on_link=not hops,
        mtu=int(metrics["mtu"]) if "mtu" in metrics else None,
        origin=origin,
    )


def _dead(row: Mapping[str, Any]) -> bool:
    return bool({"dead", "linkdown"} & set(row.get("flags", ())))
