# SPDX-License-Identifier: Apache-2.0
"""Reads rules, routes, addresses and neighbors as `ip -j` prints them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from sonde.design.routes.host_tables import (
    DISCARDING_KINDS,
    LIMIT_NAMES,
    HostTables,
    LinkDetails,
    ObservedHop,
    ObservedNeighbor,
    ObservedRoute,
    ObservedRule,
    describe_link_state,
    find_version,
    name_table,
)
from sonde.model.documents import parse_json
from sonde.model.errors import UserError

_KERNEL_TABLES = {"default", "253"}


def parse_json_tables(text: str, name: str) -> HostTables:
    """Rules, routes, addresses or neighbors as `ip -j` prints them. Raises UserError."""
    try:
        document = parse_json(text)
    except ValueError as reason:
        raise UserError(f"{name} is not JSON ({reason}); save the output of `ip -j` as it is.") from None
    rows = document if isinstance(document, list) else [document]
    if not all(isinstance(row, Mapping) for row in rows):
        raise UserError(f"{name} is JSON, but not a list of objects as `ip -j` writes.")
    try:
        return _read_rows([row for row in rows if row], name)
    except (KeyError, TypeError, ValueError) as reason:
        raise UserError(f"{name} has an entry that `ip -j` does not write ({reason}); save its output again.") from None


def _read_rows(rows: Sequence[Mapping[str, Any]], name: str) -> HostTables:
    rules, routes, addresses, neighbors = [], [], [], []
    mtus: dict[str, int] = {}
    links: dict[str, str] = {}
    transport_modes: dict[str, str] = {}
    address_devices: dict[str, str] = {}
    details: dict[str, LinkDetails] = {}
    address_flags: dict[str, tuple[str, ...]] = {}
    for number, row in enumerate(rows, start=1):
        origin = f"{name}, entry {number}"
        if "addr_info" in row:
            device_addresses = [address for address in row["addr_info"] if "local" in address]
            addresses += [f"{address['local']}/{address['prefixlen']}" for address in device_addresses]
            address_devices |= {str(address["local"]): str(row.get("ifname", "")) for address in device_addresses}
            if isinstance(row.get("mtu"), int):
                mtus[str(row.get("ifname", ""))] = row["mtu"]
            if mode := _find_transport_mode(row):
                transport_modes[str(row.get("ifname", ""))] = mode
            details[str(row.get("ifname", ""))] = LinkDetails(
                str(row.get("master", "")), str(row.get("qdisc", "")), str(row.get("address", "")),
                "NOARP" not in row.get("flags", ()),
                row["txqlen"] if isinstance(row.get("txqlen"), int) else None, bool(row.get("protodown")),
            )  # fmt: skip
            address_flags |= {
                str(address["local"]): (
                    *(name for name in ("tentative", "dadfailed", "deprecated") if address.get(name)),
                    f"scope-{address.get('scope', '')}",
                )
                for address in device_addresses
            }
            if "flags" in row:
                state = str(row.get("operstate", ""))
                links[str(row.get("ifname", ""))] = describe_link_state(row["flags"], state)
        elif "state" in row and "dst" in row:
            neighbors.append(_parse_neighbor(row))
        elif "priority" in row and "flags" not in row:
            rules.append(_parse_rule(row, origin))
        elif "dst" in row and (route := _parse_route(row, origin)) is not None:
            routes.append(route)
    has_routes = any("dst" in row and "state" not in row and "priority" not in row for row in rows)
    has_links = any("addr_info" in row for row in rows)
    return HostTables(
        rules=tuple(rules) or None,
        routes=tuple(routes) if routes or has_routes else None,
        addresses=tuple(addresses) if has_links else None,
        mtus=mtus,
        links=links,
        transport_modes=transport_modes,
        address_devices=address_devices,
        link_details=details,
        address_flags=address_flags,
        neighbors=tuple(neighbors) or None,
    )


def _find_transport_mode(row: Mapping[str, Any]) -> str:
    """The mode of an IPoIB device, which only `ip -d` prints; empty for other devices."""
    link = row.get("linkinfo")
    if not isinstance(link, Mapping) or link.get("info_kind") != "ipoib":
        return ""
    data = link.get("info_data")
    return str(data.get("mode", "")) if isinstance(data, Mapping) else ""


def _parse_rule(row: Mapping[str, Any], origin: str) -> ObservedRule:
    def join(address: str, length: str) -> str:
        selector = str(row.get(address, "all"))
        return f"{selector}/{row[length]}" if row.get(length) else selector

    mark, _, mask = str(row.get("fwmark", "")).partition("/")
    mask = str(row.get("fwmask", mask))
    selectors = [f"{name} {row[name]}" for name in ("oif", "ipproto", "sport", "dport") if name in row]
    if "uid_start" in row:
        selectors.append(f"uidrange {row['uid_start']}-{row.get('uid_end', '')}")
    return ObservedRule(
        preference=int(row["priority"]),
        source=join("src", "srclen"),
        mark=int(mark, 0) if mark else None,
        table=name_table(str(row.get("table", "main"))),
        origin=origin,
        destination=join("dst", "dstlen"),
        action=str(row["action"]) if row.get("action") in DISCARDING_KINDS else "lookup",
        mask=int(mask, 0) if mask else 0xFFFFFFFF,
        interface=str(row.get("iif", "")),
        inverted="not" in row,
        suppressed_prefix=int(row["suppress_prefixlen"]) if "suppress_prefixlen" in row else None,
        jump=int(row["goto"]) if str(row.get("goto", "")).isdigit() else None,
        selectors=" ".join(selectors),
    )


def _parse_neighbor(row: Mapping[str, Any]) -> ObservedNeighbor:
    states = row["state"]
    state = str(states[0] if isinstance(states, list) and states else states).lower()
    return ObservedNeighbor(str(row["dst"]), str(row.get("dev", "")), str(row.get("lladdr", "")), state)


def _parse_route(row: Mapping[str, Any], origin: str) -> ObservedRoute | None:
    """None for routes of the kernel's own tables and kinds."""
    kind = str(row.get("type", "unicast"))
    if str(row.get("table", "main")) in _KERNEL_TABLES or kind not in (
        "unicast", "local", "throw", *DISCARDING_KINDS,
    ):  # fmt: skip
        return None
    hops = [_parse_hop(hop) for hop in row.get("nexthops", ())]
    if "gateway" in row or "via" in row:
        hops = [_parse_hop(row)]
    metrics = {name: value for hop in row.get("metrics", ()) for name, value in hop.items()}
    metrics |= {"expires": row["expires"]} if "expires" in row else {}
    destination = str(row["dst"])
    if destination != "default":
        try:
            destination = str(ipaddress.ip_network(destination, strict=False))
        except ValueError:
            raise UserError(f'{origin}: "{destination}" is no address range, and "default" it is not either.') from None
    default_version = find_version(hops[0].via) if hops else 6 if "pref" in row else None
    return ObservedRoute(
        destination=destination,
        table=name_table(str(row.get("table", "local" if kind == "local" else "main"))),
        device=str(row.get("dev", "")),
        hops=tuple(hops),
        on_link=not hops and kind == "unicast",
        mtu=int(metrics["mtu"]) if "mtu" in metrics else None,
        origin=origin,
        kind=kind,
        metric=int(row["metric"]) if "metric" in row else None,
        version=default_version if destination == "default" else find_version(destination),
        source=str(row.get("prefsrc", "")),
        service=str(row.get("tos", "")),
        largest_segment=int(metrics["advmss"]) if "advmss" in metrics else None,
        limits=tuple((name, str(metrics[name])) for name in LIMIT_NAMES if name in metrics),
    )


def _parse_hop(row: Mapping[str, Any]) -> ObservedHop:
    gateway = row.get("gateway") or row.get("via", {}).get("host", "")
    dead = bool({"dead", "linkdown"} & set(row.get("flags", ())))
    return ObservedHop(str(gateway), str(row.get("dev", "")), int(row.get("weight", 1)), dead)
