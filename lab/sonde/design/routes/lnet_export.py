# SPDX-License-Identifier: Apache-2.0
"""Reads what ``lnetctl export`` prints: routes, network interfaces (NIs) with their tunables, peers, settings of LNet,
and whether the host forwards messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.lnet_records import LnetInterface, LnetPeer, LnetPolicy, LnetRoute

# What `read_lnet_export` reads of an export, of each NI and of each NID of a peer. Counters depend on the time.
_SECTIONS = ("net", "route", "routing", "peer", "global", "udsp")
_TUNABLE_GROUPS = ("tunables", "lnd tunables")
_HEALTH_SECTION = "health stats"
_INTERFACE_MEMBERS = ("nid", "status", "interfaces", "statistics", "sent_stats", "received_stats", "dropped_stats",
                      "dev cpt", "CPT", _HEALTH_SECTION, *_TUNABLE_GROUPS)  # fmt: skip
_PEER_VALUES = ("max_ni_tx_credits", "peer_credits")
_LOOPBACK = "lo"
# LNet prints the states of peers in these words.
_IS_UP_BY_STATE = {"up": True, "down": False}


def read_lnet_export(export_document: Mapping[str, Any], file_name: str) -> HostTables:
    """The LNet tables of an export; a section that is not printed is unknown. `lnetctl net show` prints the section net
    alone, and an export of a host without routes has no section route."""
    networks = export_document.get("net")
    routing_entries = export_document.get("routing")
    extras = [name for name in export_document if name not in _SECTIONS]
    routes, peers, global_values = (
        export_document.get("route"),
        export_document.get("peer"),
        export_document.get("global"),
    )
    has_routes = isinstance(routes, list) or len(export_document) > 1
    is_routing, buffers = None, None
    if isinstance(routing_entries, list):
        values = [entry["enable"] for entry in routing_entries if isinstance(entry, Mapping) and "enable" in entry]
        is_routing = bool(int(values[0])) if values else None
        buffers = dict(_read_buffers(routing_entries))
    if isinstance(networks, list):
        extras += dict.fromkeys(
            str(member) for entry in networks for interface in entry.get("local NI(s)") or ()
            for member in interface if member not in _INTERFACE_MEMBERS
        )  # fmt: skip
    return HostTables(
        lnet_routes=tuple(_read_routes(routes if isinstance(routes, list) else (), file_name)) if has_routes else None,
        lnet_interfaces=tuple(_read_interfaces(networks, file_name))
        if isinstance(networks, list) and _has_nids(networks)
        else None,
        lnet_module_options=_read_networks(networks, file_name)
        if isinstance(networks, list) and not _has_nids(networks)
        else {},
        lnet_peers=tuple(_read_peers(peers, file_name)) if isinstance(peers, list) else None,
        lnet_globals={str(name): str(value) for name, value in global_values.items()}
        if isinstance(global_values, Mapping)
        else None,
        lnet_buffers=buffers or None,
        is_lnet_routing=is_routing,
        lnet_policies=tuple(_read_policies(export_document.get("udsp"), file_name)),
        lnet_extras=tuple(extras),
    )


def _has_nids(network_entries: Sequence[Any]) -> bool:
    """Whether the NIs have NIDs. A configuration file may name their devices only."""
    return all(
        "nid" in interface for entry in network_entries if isinstance(entry, Mapping)
        for interface in entry.get("local NI(s)") or ()
    )  # fmt: skip


def _read_networks(network_entries: Sequence[Any], file_name: str) -> dict[tuple[str, str, str], str]:
    """The networks and devices of a configuration file without NIDs, as the option networks of the module has them."""
    texts = [
        f"{entry.get('net type')}({','.join(str(device) for device in _list_devices(interface))})"
        for entry in network_entries if isinstance(entry, Mapping)
        for interface in entry.get("local NI(s)") or ()
    ]  # fmt: skip
    return {(file_name, "lnet", "networks"): ",".join(texts)}


def _list_devices(interface_entry: Mapping[str, Any]) -> Iterator[str]:
    devices = interface_entry.get("interfaces") or {}
    yield from (str(device) for device in (devices.values() if isinstance(devices, Mapping) else devices))


def _read_buffers(routing_entries: Sequence[Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """The numbers of each pool of each partition of the processors (CPT): nbuffers, and the fewest free buffers since
    LNet was started, mincredits (negative: so many messages waited)."""
    for entry in routing_entries:
        if not isinstance(entry, Mapping):
            continue
        partition = next((str(name) for name in entry if str(name).startswith("cpt[")), "")
        # the pools are below the name of the partition, or beside it
        nested = entry.get(partition)
        for pool, numbers in {**entry, **(nested if isinstance(nested, Mapping) else {})}.items():
            for member in ("nbuffers", "mincredits"):
                if isinstance(numbers, Mapping) and member in numbers:
                    yield (f"{partition} {pool}", member), int(numbers[member])


def _read_routes(route_entries: Sequence[Mapping[str, Any]], file_name: str) -> Iterator[LnetRoute]:
    for number, entry in enumerate(route_entries, start=1):
        state = str(entry.get("state", "")).lower()
        hops, priority = entry.get("hop"), entry.get("priority")
        yield LnetRoute(
            network=str(entry["net"]),
            gateway=str(entry["gateway"]),
            hops=None if hops is None or int(hops) in (-1, 2**32 - 1) else int(hops),
            priority=None if priority is None else int(priority),
            is_up=_IS_UP_BY_STATE.get(state),
            origin=f"{file_name}, route {number}",
        )


def _read_interfaces(network_entries: Sequence[Mapping[str, Any]], file_name: str) -> Iterator[LnetInterface]:
    for entry in network_entries:
        if str(entry.get("net type", "")) == _LOOPBACK:
            continue
        for interface in entry.get("local NI(s)") or ():
            nid = str(interface["nid"])
            health = interface.get(_HEALTH_SECTION) or {}
            yield LnetInterface(
                nid,
                tuple(_list_devices(interface)),
                _IS_UP_BY_STATE.get(str(interface.get("status", "")).lower()),
                f"{file_name}, {nid}",
                tuple(
                    (str(name), str(value))
                    for group in _TUNABLE_GROUPS
                    for name, value in (interface.get(group) or {}).items()
                ),
                _read_number(health, "health value"),
                _read_number(interface.get("statistics") or {}, "recv_count"),
                _read_number(interface.get("statistics") or {}, "drop_count"),
            )


def _read_peers(peer_entries: Sequence[Mapping[str, Any]], file_name: str) -> Iterator[LnetPeer]:
    for entry in peer_entries:
        shared = [("Multi-Rail", str(entry["Multi-Rail"]))] if "Multi-Rail" in entry else []
        for item in entry.get("peer ni") or ():
            values = [*shared, *((name, str(item[name])) for name in _PEER_VALUES if name in item)]
            nid = str(item["nid"])
            yield LnetPeer(
                nid,
                str(entry.get("primary nid", nid)),
                _IS_UP_BY_STATE.get(str(item.get("state", "")).lower()),
                tuple(values),
                f"{file_name}, peer {nid}",
                _read_number(item.get(_HEALTH_SECTION) or {}, "health value"),
                _read_number(item, "available_tx_credits"),
                _read_number(item, "tx_q_num_of_buf"),
            )


def _read_policies(policy_entries: Any, file_name: str) -> Iterator[LnetPolicy]:
    for entry in policy_entries if isinstance(policy_entries, list) else ():
        source, destination, gateways = (
            "" if str(entry.get(member, "NA")) in ("NA", "None", "") else str(entry[member])
            for member in ("src", "dst", "rte")
        )
        number = int(entry.get("idx", 0))
        yield LnetPolicy(number, source, destination, gateways, f"{file_name}, udsp {number}")


def _read_number(json_object: Mapping[str, Any], member: str) -> int | None:
    return int(json_object[member]) if member in json_object else None
