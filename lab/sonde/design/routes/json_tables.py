# SPDX-License-Identifier: Apache-2.0
"""Reads rules, routes, addresses, neighbors and next-hop objects as `ip -j` prints them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonde.design.routes.host_tables import (
    DISCARDING_KINDS,
    HostTables,
    ObservedHop,
    ObservedNeighbor,
    ObservedRoute,
    ObservedRule,
    find_ip_version,
    get_routing_table_name,
)
from sonde.design.routes.interface_details import (
    AddressDetails,
    LinkDetails,
    describe_link_state,
    make_adapter_path,
    map_address_devices,
)
from sonde.design.routes.queue_json import is_queue_row, parse_queue_row
from sonde.model.documents import parse_json
from sonde.model.errors import UserError

_KERNEL_TABLES = {"default", "253"}
# Members of rules that `_parse_rule` reads, or on which no packet depends; all others select some packets.
_RULE_MEMBERS = ("priority", "src", "srclen", "dst", "dstlen", "fwmark", "fwmask", "table", "action", "iif", "not",
                 "goto", "suppress_prefixlen", "protocol", "flow_from", "flow_to", "nop", "unresolved", "l3mdev",
                 "iif_detached", "oif_detached")  # fmt: skip
_RANGED_SELECTORS = ("uid", "sport", "dport")
_SELECTOR_NAMES = {"uid": "uidrange"}
# Members of routes that `_parse_route` reads, or on which no packet depends.
_ROUTE_MEMBERS = ("type", "dst", "tos", "gateway", "via", "dev", "protocol", "scope", "flags", "table", "prefsrc",
                  "metric", "metrics", "nexthops", "pref", "nhid", "nh_info", "error", "weight", "from", "src",
                  "id", "ttl")  # fmt: skip
_METRIC_NAMES = {"congestion": "congctl", "flow": "realm"}
_METRICS_IN_MS = ("rtt", "rttvar", "rto_min")


def parse_json_tables(json_text: str, file_name: str) -> HostTables:
    """Rules, routes, addresses or neighbors as `ip -j` prints them. Raises UserError."""
    try:
        document = parse_json(json_text, object_pairs_hook=_select_first_members)
    except ValueError as reason:
        if json_text.strip() == "[":
            raise UserError(
                f"{file_name} has an opening bracket only: ip stopped there with an error, as where the kernel does not"
                " have these tables; run it again and read its message."
            ) from None
        raise UserError(f"{file_name} is not JSON ({reason}); save the output of `ip -j` as it is.") from None
    rows = document if isinstance(document, list) else [document]
    if not all(isinstance(row, Mapping) for row in rows):
        raise UserError(f"{file_name} is JSON, but not a list of objects as `ip -j` writes.")
    try:
        return _read_json_rows([row for row in rows if row], file_name)
    except (KeyError, TypeError, ValueError) as reason:
        raise UserError(
            f"{file_name} has an entry that `ip -j` does not write ({reason}); save its output again."
        ) from None


def _select_first_members(member_pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of members of one name the first: `ip` prints the destination of an encapsulation as a second dst."""
    return dict(reversed(member_pairs))


def _read_json_rows(json_rows: Sequence[Mapping[str, Any]], file_name: str) -> HostTables:
    rules, routes, neighbors = [], [], []
    next_hop_types: dict[str, str] = {}
    for number, row in enumerate(json_rows, start=1):
        origin = f"{file_name}, entry {number}"
        if "addr_info" in row or is_queue_row(row):
            continue
        if "state" in row and "dst" in row:
            neighbors.append(_parse_neighbor(row))
        elif "priority" in row and "flags" not in row:
            rules.append(_parse_rule(row, origin))
        elif "id" in row and "dst" not in row:
            next_hop_types |= _read_next_hop_type(row)
        elif "dst" in row:
            if "nh_info" in row:  # printed by `ip -d route`
                next_hop_types |= _read_next_hop_type(row["nh_info"])
            if (route := _parse_route(row, origin)) is not None:
                routes.append(route)
    has_routes = any("dst" in row and "state" not in row and "priority" not in row for row in json_rows)
    return replace(
        _read_links([row for row in json_rows if "addr_info" in row]),
        queues=tuple(parse_queue_row(row, file_name) for row in json_rows if is_queue_row(row)),
        rules=tuple(rules) or None,
        routes=tuple(routes) if routes or has_routes else None,
        neighbors=tuple(neighbors) or None,
        next_hop_types=next_hop_types,
    )


def _read_next_hop_type(json_object: Mapping[str, Any]) -> dict[str, str]:
    """The type of a next-hop object by its id."""
    return {str(json_object["id"]): str(json_object.get("type", "mpath")) if "group" in json_object else "single"}


def _read_links(json_rows: Sequence[Mapping[str, Any]]) -> HostTables:
    """The tables in the rows of `ip -j addr`, one for each link."""
    addresses: list[str] = []
    address_devices: list[tuple[str, str]] = []
    address_details: dict[str, AddressDetails] = {}
    mtus: dict[str, int] = {}
    links: dict[str, str] = {}
    transport_modes: dict[str, str] = {}
    for row in json_rows:
        device = str(row.get("ifname", ""))
        device_addresses = [address for address in row["addr_info"] if "local" in address]
        addresses += [f"{address['local']}/{address['prefixlen']}" for address in device_addresses]
        address_devices += [(str(address["local"]), device) for address in device_addresses]
        address_details |= {str(address["local"]): _make_address_details(address) for address in device_addresses}
        if isinstance(row.get("mtu"), int):
            mtus[device] = row["mtu"]
        if mode := _find_transport_mode(row):
            transport_modes[device] = mode
        if "flags" in row:
            links[device] = describe_link_state(row["flags"], str(row.get("operstate", "")))
    return HostTables(
        addresses=tuple(addresses) if json_rows else None,
        mtus=mtus,
        links=links,
        transport_modes=transport_modes,
        address_devices=map_address_devices(address_devices),
        address_details=address_details,
        link_details={str(row.get("ifname", "")): _make_link_details(row) for row in json_rows},
    )


def _make_link_details(json_row: Mapping[str, Any]) -> LinkDetails:
    return LinkDetails(
        str(json_row.get("master", "")),
        str(json_row.get("qdisc", "")),
        str(json_row.get("address", "")),
        "NOARP" not in json_row.get("flags", ()),
        _find_number(json_row, "txqlen"),
        bool(json_row.get("protodown")),
        "SLAVE" in json_row.get("flags", ()),
        "MULTICAST" in json_row.get("flags", ("MULTICAST",)),
        lacks_carrier={"UP", "NO-CARRIER"} <= {*json_row.get("flags", ())},
        permanent_address=_find_permanent_address(json_row),
        packet_program=_find_packet_program(json_row),
        path=make_adapter_path(str(json_row.get("parentbus", "")), str(json_row.get("parentdev", ""))),
        gso_bytes=_find_number(json_row, "gso_max_size"),
        gso_segments=_find_number(json_row, "gso_max_segs"),
        parent=str(json_row.get("link") or ""),
        vlan=_find_vlan(json_row),
        vlan_protocol=str(_read_vlan_data(json_row).get("protocol", "")),
        kind=str((json_row.get("linkinfo") or {}).get("info_kind", "")),
        partition_key=_find_partition_key(json_row),
        counters=_read_counters(json_row.get("stats64") or json_row.get("stats") or {}),
        **_read_bond_state(json_row),
    )


def _find_packet_program(json_row: Mapping[str, Any]) -> str:
    """The name of the XDP program of an interface, or its number."""
    program = (json_row.get("xdp") or {}).get("prog") or {}
    return str(program.get("name") or program.get("id") or "")


def _find_permanent_address(json_row: Mapping[str, Any]) -> str:
    """The link address of the maker of an adapter; ports of a bond have that of the bond in use. Virtual devices have
    none, or zeros."""
    port_data = (json_row.get("linkinfo") or {}).get("info_slave_data") or {}
    address = str(json_row.get("permaddr") or port_data.get("perm_hwaddr") or "")
    return address if address.strip("0:") else ""


def _read_counters(json_object: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Packets and errors of both directions, which only `ip -s` prints."""
    return {
        f"{direction}_{name}": int(value) for direction, counts in json_object.items() for name, value in counts.items()
    }


def _make_address_details(json_address: Mapping[str, Any]) -> AddressDetails:
    return AddressDetails(
        is_duplicate=bool(json_address.get("dadfailed")),
        is_tentative=bool(json_address.get("tentative")),
        is_deprecated=bool(json_address.get("deprecated")),
        is_leased=bool(json_address.get("dynamic")),
        is_temporary=bool(json_address.get("temporary")),
        remaining_s=_find_number(json_address, "valid_life_time") if json_address.get("dynamic") else None,
        scope=str(json_address.get("scope", "")),
        broadcast=str(json_address.get("broadcast", "")),
    )


def _find_number(json_row: Mapping[str, Any], member: str) -> int | None:
    return json_row[member] if isinstance(json_row.get(member), int) else None


def _find_vlan(json_row: Mapping[str, Any]) -> int | None:
    """The number of a VLAN, which only `ip -d` prints."""
    number = _read_vlan_data(json_row).get("id")
    return number if isinstance(number, int) else None


def _find_partition_key(json_row: Mapping[str, Any]) -> int | None:
    """The partition key of an IPoIB device, which only `ip -d` prints."""
    link = json_row.get("linkinfo") or {}
    key = (link.get("info_data") or {}).get("key") if link.get("info_kind") == "ipoib" else None
    return int(str(key), 0) if key else None


def _read_vlan_data(json_row: Mapping[str, Any]) -> Mapping[str, Any]:
    link = json_row.get("linkinfo") or {}
    return (link.get("info_data") or {}) if link.get("info_kind") == "vlan" else {}


def _read_bond_state(json_row: Mapping[str, Any]) -> dict[str, Any]:
    """State of LACP on a bond or on a port of a bond, by the members of `LinkDetails`; only `ip -d` prints it."""
    link = json_row.get("linkinfo") or {}
    if link.get("info_kind") == "bond":
        data = link.get("info_data") or {}
        state = data.get("ad_info") or {}
        intervals = [_find_number(data, name) for name in ("miimon", "arp_interval")]
        return {
            "bond_options": {
                name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
                for name, value in data.items()
                if not isinstance(value, Mapping)
            },
            "aggregator": _find_number(state, "aggregator"),
            "lacp_partner": str(state.get("partner_mac", "")),
            "bond_mode": str(data.get("mode", "")),
            "watches_ports": any(intervals) if "miimon" in data else None,
        }
    if link.get("info_slave_kind") == "bond":
        state = link.get("info_slave_data") or {}
        return {
            "aggregator": _find_number(state, "ad_aggregator_id"),
            "has_port_failed": state.get("mii_status") == "DOWN",
            "link_failures": _find_number(state, "link_failure_count"),
            "lacp_state": _find_number(state, "ad_actor_oper_port_state"),
        }
    return {}


def _find_transport_mode(json_row: Mapping[str, Any]) -> str:
    """The mode of an IPoIB device, which only `ip -d` prints; empty for other devices."""
    link = json_row.get("linkinfo")
    if not isinstance(link, Mapping) or link.get("info_kind") != "ipoib":
        return ""
    data = link.get("info_data")
    return str(data.get("mode", "")) if isinstance(data, Mapping) else ""


def _parse_rule(json_row: Mapping[str, Any], output_origin: str) -> ObservedRule:
    def join_prefix(address: str, prefix_length: str) -> str:
        selector = str(json_row.get(address, "all"))
        return f"{selector}/{json_row[prefix_length]}" if json_row.get(prefix_length) else selector

    mark, _, mask = str(json_row.get("fwmark", "")).partition("/")
    mask = str(json_row.get("fwmask", mask))
    ranges = {name: f"{json_row[f'{name}_start']}-{json_row.get(f'{name}_end', '')}" for name in _RANGED_SELECTORS
              if f"{name}_start" in json_row}  # fmt: skip
    others = {name: value for name, value in json_row.items()
              if name not in _RULE_MEMBERS and not name.endswith(("_start", "_end"))}  # fmt: skip
    selectors = [f"{_SELECTOR_NAMES.get(name, name)} {value}" for name, value in (others | ranges).items()]
    actions = [action for action in (json_row.get("action"), "nop" if "nop" in json_row else None) if action]
    return ObservedRule(
        preference=int(json_row["priority"]),
        source=join_prefix("src", "srclen"),
        mark=int(mark, 0) if mark else None,
        table=get_routing_table_name(str(json_row.get("table", "[l3mdev-table]" if "l3mdev" in json_row else "main"))),
        origin=output_origin,
        destination=join_prefix("dst", "dstlen"),
        action=next((action for action in actions if action in (*DISCARDING_KINDS, "nop")), "lookup"),
        mask=int(mask, 0) if mask else 0xFFFFFFFF,
        interface=str(json_row.get("iif", "")),
        inverted="not" in json_row,
        suppressed_prefix=int(json_row["suppress_prefixlen"]) if "suppress_prefixlen" in json_row else None,
        jump=int(json_row["goto"]) if str(json_row.get("goto", "")).isdigit() else None,
        selectors=" ".join(selectors),
        is_detached=bool({"iif_detached", "oif_detached"} & json_row.keys()),
    )


def _parse_neighbor(json_row: Mapping[str, Any]) -> ObservedNeighbor:
    states = json_row["state"]
    state = str(states[0] if isinstance(states, list) and states else states).lower()
    return ObservedNeighbor(
        str(json_row["dst"]), str(json_row.get("dev", "")), str(json_row.get("lladdr", "")), state, "router" in json_row
    )


def _parse_route(json_row: Mapping[str, Any], output_origin: str) -> ObservedRoute | None:
    """None for routes of the kernel's own tables and kinds."""
    kind = str(json_row.get("type", "unicast"))
    if str(json_row.get("table", "main")) in _KERNEL_TABLES or kind not in (
        "unicast", "local", "throw", *DISCARDING_KINDS,
    ):  # fmt: skip
        return None
    hops = [_parse_next_hop(hop) for hop in json_row.get("nexthops", ())]
    if "gateway" in json_row or "via" in json_row:
        hops = [_parse_next_hop(json_row)]
    metrics = {name: value for hop in json_row.get("metrics", ()) for name, value in hop.items()}
    destination = str(json_row["dst"])
    if destination != "default":
        try:
            destination = str(ipaddress.ip_network(destination, strict=False))
        except ValueError:
            raise UserError(
                f'{output_origin}: "{destination}" is no address range, and "default" it is not either.'
            ) from None
    default_version = find_ip_version(hops[0].via) if hops else 6 if "pref" in json_row else None
    return ObservedRoute(
        destination=destination,
        table=get_routing_table_name(str(json_row.get("table", "local" if kind == "local" else "main"))),
        device=str(json_row.get("dev", "")),
        hops=tuple(hops),
        on_link=not hops and kind == "unicast",
        mtu=int(metrics["mtu"]) if "mtu" in metrics else None,
        origin=output_origin,
        kind=kind,
        metric=int(json_row["metric"]) if "metric" in json_row else None,
        version=default_version if destination == "default" else find_ip_version(destination),
        source=str(json_row.get("prefsrc", "")),
        service="" if "encap" in json_row else str(json_row.get("tos", "")),  # that of the encapsulation
        largest_segment=int(metrics["advmss"]) if "advmss" in metrics else None,
        attributes=tuple(_list_attributes(json_row, metrics)),
        next_hop_id=str(json_row.get("nhid", "")),
    )


def _list_attributes(json_row: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The attributes of a route and of its next hops that no other member holds, by their names in `ip route`."""
    rows = [json_row, *json_row.get("nexthops", ())]
    for name, value in [*metrics.items(), *(item for row in rows for item in row.items())]:
        if name in _ROUTE_MEMBERS or name in ("mtu", "advmss"):
            continue
        if value is None:  # a feature, as "ecn": null
            yield "features", name
        else:
            yield _METRIC_NAMES.get(name, name), f"{value}ms" if name in _METRICS_IN_MS else str(value)


def _parse_next_hop(json_row: Mapping[str, Any]) -> ObservedHop:
    gateway = json_row.get("gateway") or json_row.get("via", {}).get("host", "")
    dead = bool({"dead", "linkdown"} & set(json_row.get("flags", ())))
    return ObservedHop(str(gateway), str(json_row.get("dev", "")), int(json_row.get("weight", 1)), dead)
