# SPDX-License-Identifier: Apache-2.0
"""Reads rules, routes and neighbors from lines that `ip` prints or accepts: every attribute of them is read."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from sonde.design.routes.host_tables import (
    DISCARDING_KINDS,
    ObservedHop,
    ObservedNeighbor,
    ObservedRoute,
    ObservedRule,
    find_ip_version,
    get_routing_table_name,
)
from sonde.model.errors import UserError

_ROUTE_KINDS = ("unicast", *DISCARDING_KINDS, "throw", "local", "broadcast", "multicast", "anycast", "nat")
# Attributes of rules with the names under which they are stored; those without a name do not matter to any packet.
_RULE_ATTRIBUTES = {"pref": "pref", "priority": "pref", "prio": "pref", "preference": "pref", "order": "pref",
                    "from": "from", "fwmark": "fwmark", "table": "table", "lookup": "table", "to": "to", "iif": "iif",
                    "dev": "iif", "suppress_prefixlength": "suppress", "goto": "goto", "proto": "", "protocol": "",
                    "realms": "", "type": ""}  # fmt: skip
_RULE_FLAGS = ("not", "nop", "unicast", "[detached]", "[unresolved]", *DISCARDING_KINDS)
# Other names of attributes.
_ALIASES = {"dsfield": "tos", "dscp": "tos", "protocol": "proto", "preference": "metric", "priority": "metric",
            "realms": "realm"}  # fmt: skip
_ROUTE_FLAGS = ("onlink", "pervasive", "dead", "linkdown", "offload", "trap", "offload_failed", "rt_offload", "rt_trap",
                "notify", "unresolved", "cache", "tcp_usec_ts")  # fmt: skip
# Attributes of routes that other members of `ObservedRoute` hold, or on which no packet depends.
_STORED_ATTRIBUTES = ("dev", "via", "table", "metric", "weight", "src", "tos", "advmss", "mtu", "scope", "proto",
                      "pref", "nhid", "error", "type")  # fmt: skip
# A next-hop object in `ip nexthop` or `ip -d route`: its id, what it is of, and its other attributes.
_NEXT_HOP_OBJECT_PATTERN = re.compile(
    r"^(?:[ \t]+nh_info )?id (\d+) (via|dev|group|blackhole|encap)\b(.*)$", re.MULTILINE
)
_AFTER_ENCAPSULATION = ("via", "dev", "proto", "scope", "nexthop", "metric", "table")


def parse_rule_line(tokens: Sequence[str], rule_line: str, output_origin: str) -> ObservedRule:
    """A rule as `ip rule show` prints it ("1000: from all …"), or as `ip rule add` accepts it."""
    if numbered := re.match(r"(\d+):\s*(.*)", rule_line):
        tokens = ["pref", numbered[1], *numbered[2].split()]
    attributes: dict[str, str] = {}
    selectors, flags = list[str](), set[str]()
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token in _RULE_FLAGS or index + 1 == len(tokens):
            flags.add(token)
            index += 1
            continue
        if token in _RULE_ATTRIBUTES:
            attributes[_RULE_ATTRIBUTES[token]] = tokens[index + 1]
        else:
            selectors.append(f"{_ALIASES.get(token, token)} {tokens[index + 1]}")
        index += 2
    mark, _, mask = attributes.get("fwmark", "").partition("/")
    return ObservedRule(
        preference=int(attributes["pref"]) if "pref" in attributes else None,
        source=attributes.get("from", "all"),
        mark=int(mark, 0) if mark else None,
        table=get_routing_table_name(attributes.get("table", "main")),
        origin=output_origin,
        destination=attributes.get("to", "all"),
        action=next((flag for flag in (*DISCARDING_KINDS, "nop") if flag in flags), "lookup"),
        mask=int(mask, 0) if mask else 0xFFFFFFFF,
        interface=attributes.get("iif", ""),
        inverted="not" in flags,
        suppressed_prefix=int(attributes["suppress"]) if "suppress" in attributes else None,
        jump=int(attributes["goto"]) if attributes.get("goto", "").isdigit() else None,
        selectors=" ".join(selectors),
        is_detached="[detached]" in flags,
    )


def find_next_hop_types(output_text: str) -> dict[str, str]:
    """The types of next-hop objects by their ids, as `ip nexthop` and `ip -d route` print them: "single", "mpath" or
    "resilient"."""
    types: dict[str, str] = {}
    for match in _NEXT_HOP_OBJECT_PATTERN.finditer(output_text):
        group_type = re.search(r"\btype (\w+)", match[3])
        types[match[1]] = "single" if match[2] != "group" else group_type[1] if group_type else "mpath"
    return types


def parse_neighbor_line(tokens: Sequence[str]) -> ObservedNeighbor:
    """A line of `ip neigh`: 10.1.0.1 dev eth0 lladdr 52:54:00:12:34:56 STALE."""
    link_address = tokens[tokens.index("lladdr") + 1] if "lladdr" in tokens[:-1] else ""
    address = tokens[1] if tokens[0] in ("neigh", "neighbor") else tokens[0]
    return ObservedNeighbor(
        address, tokens[tokens.index("dev") + 1], link_address, tokens[-1].lower(), "router" in tokens
    )


def parse_route_line(tokens: Sequence[str], output_origin: str, ip_version: int | None) -> ObservedRoute | None:
    """A route as `ip route` prints or accepts it; None for kinds that no route of a fabric has (broadcast)."""
    kind = "unicast"
    if len(tokens) > 1 and tokens[0] in _ROUTE_KINDS:
        kind, tokens = tokens[0], tokens[1:]
    if kind not in ("unicast", "local", "throw", *DISCARDING_KINDS):
        return None
    attributes, flags, hops = _split_route_and_next_hops(tokens)
    destination = parse_destination(tokens[0], output_origin)
    if "via" in flags:
        raise UserError(f"{output_origin}: there is no address after via.")
    device, via = attributes.get("dev", ""), attributes.get("via", "")
    if via:
        hops = [ObservedHop(via, device, 1, bool(flags & {"dead", "linkdown"}))]
    default_version = ip_version or (find_ip_version(hops[0].via) if hops else 6 if "pref" in tokens else None)
    mtu = attributes.get("mtu", "").removeprefix("lock ")
    return ObservedRoute(
        destination=destination,
        table=get_routing_table_name(attributes.get("table", "local" if kind == "local" else "main")),
        device=device,
        hops=tuple(hops),
        on_link=not hops and kind == "unicast",
        mtu=int(mtu) if mtu.isdigit() else None,
        origin=output_origin,
        kind=kind,
        metric=int(attributes["metric"]) if attributes.get("metric", "").isdigit() else None,
        version=default_version if destination == "default" else find_ip_version(destination),
        source=attributes.get("src", ""),
        service=attributes.get("tos", ""),
        largest_segment=int(attributes["advmss"]) if attributes.get("advmss", "").isdigit() else None,
        attributes=tuple(
            (name, value)
            for name, value in attributes.items()
            if name not in _STORED_ATTRIBUTES or (name == "mtu" and value.startswith("lock "))
        ),
        next_hop_id=attributes.get("nhid", ""),
    )


def _split_route_and_next_hops(tokens: Sequence[str]) -> tuple[dict[str, str], set[str], list[ObservedHop]]:
    """The attributes and flags of the route itself, and its next hops. Words after the last hop, and words that no
    member of a hop holds, belong to the route."""
    hop_starts = [index for index, token in enumerate(tokens) if token == "nexthop"]  # nosec B105 # no password
    hops = []
    attributes, flags = _parse_route_attributes(tokens[1 : hop_starts[0]] if hop_starts else tokens[1:])
    for begin, end in zip(hop_starts, [*hop_starts[1:], len(tokens)], strict=False):
        of_hop, hop_flags = _parse_route_attributes(tokens[begin + 1 : end])
        is_dead = bool(hop_flags & {"dead", "linkdown"})
        hops.append(ObservedHop(of_hop.pop("via", ""), of_hop.pop("dev", ""), int(of_hop.pop("weight", "1")), is_dead))
        for name, value in of_hop.items():
            attributes.setdefault(name, value)
    return attributes, flags, hops


def _parse_route_attributes(tokens: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    """Attributes by name and flags. A locked one, which the kernel does not change, has "lock " before its value."""
    attributes: dict[str, str] = {}
    flags: set[str] = set()
    index = 0
    while index < len(tokens):
        name = _ALIASES.get(tokens[index], tokens[index])
        if name in _ROUTE_FLAGS or index + 1 == len(tokens):
            flags.add(name)
            index += 1
            continue
        end = index + 2
        if name == "encap":
            end = next((number for number in range(end, len(tokens)) if tokens[number] in _AFTER_ENCAPSULATION), end)
        elif tokens[index + 1] in ("lock", "inet", "inet6", "to"):
            end += 1
        values = [token for token in tokens[index + 1 : end] if token not in ("inet", "inet6", "to")]
        attributes[name] = " ".join(values)
        index = end
    return attributes, flags


def parse_destination(range_text: str, output_origin: str) -> str:
    """An address range as programs print it; one address is a range too."""
    if range_text == "default":
        return range_text
    try:
        return str(ipaddress.ip_network(range_text, strict=False))
    except ValueError:
        raise UserError(
            f'{output_origin}: "{range_text}" is no address range, and "default" it is not either.'
        ) from None
