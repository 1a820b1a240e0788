# SPDX-License-Identifier: Apache-2.0
"""Compares the LNet routes of a host with those that its network needs, its NIs with their planned NIDs and devices,
and whether it forwards messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_lnet_tunables import find_tunable_faults
from sonde.design.routes.configurations import make_lnet_files
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.lnet_records import LnetInterface, LnetPeer, LnetRoute
from sonde.model.errors import UserError, suggest_close_name
from sonde.model.system import System
from sonde.model.system.addressing import InterfaceAddress
from sonde.model.system.network import Router

# How many gateways of a network a fault writes out.
_MAX_LISTED_GATEWAYS = 3
LNET_ROUTE_MISSING = "LNet route missing"
UNKNOWN_LNET_ROUTE = "unknown LNet route"


def check_lnet_tables(
    system: System,
    network_or_host: str,
    host_tables: HostTables,
    other_tables: HostTables | None = None,
    moved_devices: Mapping[str, str] | None = None,
) -> Iterator[RouteFault | CheckedItem]:
    """Checks all known tables of the LNet of a network, a host or a class of hosts. `moved_devices` are the interfaces
    that a host uses in place of the planned ones. Raises UserError for a name without LNet."""
    if host_tables.lnet_routes is not None:
        local_networks = {get_lnet_network(interface.nid) for interface in host_tables.lnet_interfaces or ()}
        yield from check_lnet_routes(system, network_or_host, host_tables.lnet_routes, local_networks)
    hosts = find_lnet_hosts(system, network_or_host)
    if hosts and host_tables.lnet_interfaces is not None:
        routed_networks = _list_routed_networks(system, network_or_host)
        yield from _check_interfaces(system, hosts, host_tables.lnet_interfaces, moved_devices or {}, routed_networks)
    if hosts and host_tables.is_lnet_routing is not None:
        yield from _check_routing(system, network_or_host, hosts, host_tables.is_lnet_routing)
    gateways = {_normalize_nid(route.gateway) for route in host_tables.lnet_routes or ()}
    down = {_normalize_nid(route.gateway) for route in host_tables.lnet_routes or () if route.is_up is False}
    if hosts and not any(_is_lnet_router(system, host) for host in hosts):
        host_tables = replace(host_tables, is_lnet_routing=False)  # that it forwards is reported; it needs no buffers
    yield from find_tunable_faults(host_tables, other_tables, gateways - down, _normalize_nid)
    if host_tables.lnet_peers:
        yield from _check_peer_owners(system, host_tables.lnet_peers)


def list_unknown_lnet(system: System, network_or_host: str, host_tables: HostTables) -> tuple[str, ...]:
    """Lists the LNet tables of a host that are unknown, if the system has LNet routers."""
    if not any(_is_lnet_router(system, router) for router in system.list_part_ids("routers")):
        return ()
    if not find_lnet_hosts(system, network_or_host):
        return ("LNet NIs and LNet routing (--as names no host)",) if host_tables.has_lnet else ()
    parts = {
        "LNet routes": host_tables.lnet_routes,
        "LNet NIs": host_tables.lnet_interfaces,
        "LNet routing": host_tables.is_lnet_routing,
    }
    return tuple(name for name, content in parts.items() if content is None)


def check_lnet_routes(
    system: System, network_or_host: str, routes: Sequence[LnetRoute], local_networks: Collection[str] = ()
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the LNet routes of a network, a host or a class of hosts. LNet takes no route to `local_networks`, on
    which the host has an NI: that NI is the fault. Raises UserError for a name without LNet."""
    planned = {
        (normalize_lnet_name(entry["net"]), _normalize_nid(entry["gateway"])): entry
        for entry in _list_planned_lnet_entries(system, network_or_host)
    }
    networks = {network for network, _ in planned}
    missing: dict[str, list[str]] = {}
    observed = {(normalize_lnet_name(route.network), _normalize_nid(route.gateway)): route for route in routes}
    for key, entry in planned.items():
        network, gateway = str(entry["net"]), str(entry["gateway"])
        yield CheckedItem("an LNet route", f"{network} by {gateway}")
        route = observed.get(key)
        if route is None:
            if key[0] not in local_networks:
                missing.setdefault(network, []).append(gateway)
            continue
        if route.is_up is False:
            yield RouteFault(
                "LNet router down", route.origin, f"LNet says that {gateway} on the way to {network} is down",
                f"lnetctl ping {gateway}, and look at the router",
            )  # fmt: skip
        for member, value, default in (("hop", route.hops, 1), ("priority", route.priority, 0)):
            wanted = int(entry.get(member, default))
            if value is not None and value != wanted:
                yield RouteFault(
                    f"LNet {member} differs", route.origin,
                    f"the route to {network} by {gateway} has {member} {value}; the system file says {wanted}",
                    f"remove it and add it with {member} {wanted}",
                )  # fmt: skip
    unplanned_routes: dict[str, list[LnetRoute]] = {}
    for key, route in observed.items():
        if key not in planned:
            unplanned_routes.setdefault(route.network, []).append(route)
    yield from _describe_lnet_route_differences(missing, unplanned_routes, networks)


def _describe_lnet_route_differences(
    missing_gateways: Mapping[str, Sequence[str]],
    unplanned_routes: Mapping[str, Sequence[LnetRoute]],
    planned_networks: Collection[str],
) -> Iterator[RouteFault]:
    """One fault for the gateways that a network lacks, one for those that it should not have. Routes to another network
    by the gateways that are missing have its wrong name."""
    renamed: dict[str, str] = {}
    for network, routes in unplanned_routes.items():
        nids = {_normalize_nid(route.gateway) for route in routes}
        planned = next(
            (name for name, gateways in missing_gateways.items() if {*map(_normalize_nid, gateways)} == nids), None
        )
        if planned is not None and normalize_lnet_name(network) not in planned_networks:
            renamed[planned] = network
            yield RouteFault(
                "LNet network differs", routes[0].origin,
                f"the routes by {_format_first_names([route.gateway for route in routes])} lead to {network}; the"
                " system file"
                f" says {planned}",
                f"lnetctl route del --net {network} for each gateway, then lnetctl route add --net {planned}",
            )  # fmt: skip
    replaced = {
        network: missing_gateways[planned]
        for network, routes in unplanned_routes.items()
        for planned in missing_gateways
        if normalize_lnet_name(network) == normalize_lnet_name(planned)
        and len(routes) == len(missing_gateways[planned])
    }
    for network, gateways in missing_gateways.items():
        if network not in renamed and gateways not in replaced.values():
            text = _format_first_names(gateways)
            yield RouteFault(
                LNET_ROUTE_MISSING, f"{network} by {text}", f"no route leads to {network} by {text}",
                "; ".join(f"lnetctl route add --net {network} --gateway {nid}"
                          for nid in gateways[:_MAX_LISTED_GATEWAYS]),
            )  # fmt: skip
    for network, routes in unplanned_routes.items():
        if network in renamed.values():
            continue
        is_planned = normalize_lnet_name(network) in planned_networks
        reason = "no router of this network" if is_planned else "a network that nothing leads to from here"
        is_single = len(routes) == 1
        yield RouteFault(
            UNKNOWN_LNET_ROUTE, ", ".join(route.origin for route in routes[:_MAX_LISTED_GATEWAYS]),
            f"the route{'' if is_single else 's'} to {network} by"
            f" {_format_first_names([route.gateway for route in routes])}"
            f" name{'s' if is_single else ''} {reason}"
            f"{f', instead of {_format_first_names(replaced[network])}' if network in replaced else ''}",
            f"{'exchange' if network in replaced else 'remove'} {'it' if is_single else 'them'}: " + "; ".join([
                *(f"lnetctl route del --net {network} --gateway {route.gateway}"
                  for route in routes[:_MAX_LISTED_GATEWAYS]),
                *(f"lnetctl route add --net {network} --gateway {nid}"
                  for nid in replaced.get(network, ())[:_MAX_LISTED_GATEWAYS])]),
        )  # fmt: skip


def _format_first_names(names: Sequence[str]) -> str:
    """Joins the first names, with the total number if there are more."""
    return ", ".join(names[:_MAX_LISTED_GATEWAYS]) + (
        f", … ({len(names)})" if len(names) > _MAX_LISTED_GATEWAYS else ""
    )


def find_lnet_hosts(system: System, network_or_host: str) -> tuple[str, ...]:
    """The hosts of a name that have a NID; none for a network."""
    if network_or_host not in system.index and network_or_host not in system.index.groups:
        return ()
    return tuple(
        host
        for host in system.resolve_names(network_or_host)
        if (system.get_part(host).kind in ("nodes", "servers") or _is_lnet_router(system, host))
        and list_lnet_addresses(system, [host])
    )


def list_lnet_addresses(system: System, host_ids: Sequence[str]) -> list[InterfaceAddress]:
    """The planned interfaces with a NID, those of IPv6 only on networks where the host has no other one."""
    addresses = [address for host in host_ids for address in system.find_addresses(host) if address.nid]
    networks = {(address.host, address.network) for address in addresses if ":" not in (address.nid or "")}
    return [
        address for address in addresses
        if ":" not in (address.nid or "") or (address.host, address.network) not in networks
    ]  # fmt: skip


def _is_lnet_router(system: System, host_id: str) -> bool:
    table = system.get_part(host_id).table
    return isinstance(table, Router) and table.protocol == "lnet"


def _list_planned_lnet_entries(system: System, network_or_host: str) -> list[dict[str, Any]]:
    """The planned routes from the networks that a network, host or class of hosts is on. A host needs no route to a
    network that it is on, so an LNet router needs none to its own networks."""
    files = make_lnet_files(system)
    by_network = {file.removeprefix("lnet-").removesuffix(".yaml"): text for file, text in files.items()}
    own_networks: set[str] = set()
    if network_or_host in by_network:
        networks = {network_or_host}
    else:
        addresses = list_lnet_addresses(system, find_lnet_hosts(system, network_or_host))
        networks = {address.network for address in addresses}
        own_networks = {get_lnet_network(address.nid) for address in addresses}
    chosen = [network for network in by_network if network in networks]
    if not chosen:
        names = [*by_network, *system.index.groups]
        raise UserError(
            f'"{network_or_host}" is on no network with LNet routes; those are '
            f"{', '.join(by_network)}.{suggest_close_name(network_or_host, names)}"
        )
    entries = [entry for network in chosen for entry in yaml.safe_load(by_network[network])["route"]]
    return [entry for entry in entries if normalize_lnet_name(entry["net"]) not in own_networks]


def _list_routed_networks(system: System, network_or_host: str) -> tuple[str, ...]:
    """The networks that a host reaches by gateways; none where the system has no LNet routes for it."""
    try:
        entries = _list_planned_lnet_entries(system, network_or_host)
    except UserError:
        return ()
    return tuple(dict.fromkeys(str(entry["net"]) for entry in entries))


def _check_interfaces(
    system: System,
    host_ids: Sequence[str],
    interfaces: Sequence[LnetInterface],
    moved_devices: Mapping[str, str],
    routed_networks: Collection[str],
) -> Iterator[RouteFault | CheckedItem]:
    """Each planned NID of a host needs an NI on its device; of several hosts, one NID of each network. No other NI,
    above all none on `routed_networks`, which the host reaches by gateways."""
    planned_by_network: dict[str, dict[str, str]] = {}
    for address in list_lnet_addresses(system, host_ids):
        device = moved_devices.get(address.device, address.device)
        planned_by_network.setdefault(get_lnet_network(address.nid), {})[address.nid or ""] = device
    foreign = [interface for interface in interfaces if get_lnet_network(interface.nid) not in planned_by_network]
    networks = {name: next(iter(nids)).partition("@")[2] for name, nids in planned_by_network.items()}
    for name, device_by_nid in planned_by_network.items():
        written_nids = {_normalize_nid(nid): nid for nid in device_by_nid}
        observed = {_normalize_nid(interface.nid): interface for interface in interfaces
                    if get_lnet_network(interface.nid) == name}  # fmt: skip
        present = [nid for normal, nid in written_nids.items() if normal in observed]
        missing = [nid for nid in device_by_nid if nid not in present] if len(host_ids) == 1 or not present else []
        yield CheckedItem("the NIDs of an LNet network", networks[name])
        if missing:
            yield _describe_missing_nids(networks[name], missing, device_by_nid, list(observed.values()), foreign)
            foreign = foreign if observed else []
        for normal, interface in observed.items():
            yield from _check_interface(interface, device_by_nid.get(written_nids.get(normal, ""), ""))
            if present and normal not in written_nids:
                yield _describe_unplanned_interface(interface, f"has {', '.join(present)} only on {networks[name]}")
    for interface in foreign:
        network = next((name for name in routed_networks
                        if normalize_lnet_name(name) == get_lnet_network(interface.nid)), "")  # fmt: skip
        planned = f"has NIs on {', '.join(networks.values())} only"
        yield _describe_unplanned_interface(interface, planned, network)


def _describe_unplanned_interface(
    interface: LnetInterface, planned_device: str, routed_network: str = ""
) -> RouteFault:
    network, devices = interface.nid.partition("@")[2], ", ".join(interface.devices)
    effect = (
        f"LNet then takes {routed_network} for a local network and accepts no route to it: messages to its hosts leave"
        f" by {devices or 'this NI'}, not by the gateways"
        if routed_network
        else "other hosts may send to it past the planned way"
    )
    return RouteFault(
        "LNet NI not planned", interface.origin,
        f"{interface.nid} on {devices or 'an unknown device'} is an NI of this host, which {planned_device} in the"
        " system"
        f" file: {effect}",
        f"lnetctl net del --net {network}{f' --if {devices}' if devices else ''}"
        + (", then add the routes of the plan" if routed_network else "")
        + ", or describe it in the system file",
    )  # fmt: skip


def _describe_missing_nids(
    network: str,
    missing_nids: Sequence[str],
    device_by_nid: Mapping[str, str],
    observed_interfaces: Sequence[LnetInterface],
    foreign_interfaces: Sequence[LnetInterface],
) -> RouteFault:
    devices = list(dict.fromkeys(device_by_nid[nid] for nid in missing_nids if device_by_nid[nid]))
    planned = f"{', '.join(missing_nids[:2])}{', …' if len(missing_nids) > 2 else ''}"
    planned += f" on {', '.join(devices)}" if devices else ""
    remedy = f"lnetctl net add --net {network} --if {devices[0] if devices else 'DEVICE'}"
    if not observed_interfaces:
        others = ", ".join(interface.nid for interface in foreign_interfaces)
        same_device = [each.nid.partition("@")[2] for each in foreign_interfaces if {*each.devices} & {*devices}]
        removal = "".join(f"lnetctl net del --net {name}; " for name in same_device)
        return RouteFault(
            "LNet NI missing", network,
            f"no NI is on {network}; the system file says {planned}{f', and this host has {others}' if others else ''}",
            removal + remedy,
        )  # fmt: skip
    present = ", ".join(
        f"{interface.nid} on {', '.join(interface.devices) or 'no device'}" for interface in observed_interfaces
    )
    return RouteFault(
        "LNet NID differs", observed_interfaces[0].origin,
        f"the NI on {network} is {present}; the system file says {planned}",
        f"lnetctl net del --net {network}, then {remedy}",
    )  # fmt: skip


def _check_interface(interface: LnetInterface, planned_device: str) -> Iterator[RouteFault | CheckedItem]:
    if planned_device and interface.devices:
        yield CheckedItem("the device of an NI", interface.nid)
        if not any(is_same_device(device, planned_device) for device in interface.devices):
            yield RouteFault(
                "LNet interface differs", interface.origin,
                f"{interface.nid} is on {', '.join(interface.devices)}; the system file says {planned_device}",
                f"lnetctl net del, then lnetctl net add with --if {planned_device}",
            )  # fmt: skip
    if interface.is_up is not None:
        yield CheckedItem("the state of an NI", interface.nid)
        if not interface.is_up:
            yield RouteFault(
                "LNet NI down", interface.origin, f"LNet says that {interface.nid} is down",
                f"look at {', '.join(interface.devices) or 'its device'} and its link",
            )  # fmt: skip


def is_same_device(lnet_device: str, planned_device: str) -> bool:
    """Whether LNet names a planned device; kfilnd names the CXI device below a Slingshot interface (cxi0 of hsn0)."""
    number = re.fullmatch(r"cxi([0-9]+)", lnet_device)
    return lnet_device == planned_device or (
        number is not None and re.fullmatch(rf".*[^0-9]{number[1]}", planned_device) is not None
    )


def _check_routing(
    system: System, network_or_host: str, host_ids: Collection[str], is_routing: bool
) -> Iterator[RouteFault | CheckedItem]:
    router_count = sum(_is_lnet_router(system, host) for host in host_ids)
    if router_count not in (0, len(host_ids)):
        return  # a class of both kinds
    yield CheckedItem("LNet routing", network_or_host)
    if router_count and not is_routing:
        yield RouteFault(
            "LNet routing off", "routing, enable: 0", f"{network_or_host} is an LNet router, but forwards no message",
            "lnetctl set routing 1, and forwarding=enabled for the module lnet",
        )  # fmt: skip
    if not router_count and is_routing:
        yield RouteFault(
            "LNet routing on", "routing, enable: 1", f"{network_or_host} forwards messages, but is no LNet router",
            "lnetctl set routing 0, or describe it as a router in the system file",
        )  # fmt: skip


def _check_peer_owners(system: System, peers: Sequence[LnetPeer]) -> Iterator[RouteFault | CheckedItem]:
    """Peers whose NIDs the system file gives to different hosts: LNet takes them for one host."""
    hosts = [host for kind in ("nodes", "servers", "routers") for host in system.list_part_ids(kind)]
    owners = {_normalize_nid(address.nid or ""): address.host for address in list_lnet_addresses(system, hosts)}
    crossed = []
    for peer in peers:
        owner, primary_owner = (owners.get(_normalize_nid(nid)) for nid in (peer.nid, peer.primary_nid))
        if owner is None or primary_owner is None:
            continue
        yield CheckedItem("the host of a peer", peer.nid)
        if owner != primary_owner:
            crossed.append((f"{peer.nid} of {owner} is under {peer.primary_nid} of {primary_owner}", peer))
    if crossed:
        yield RouteFault(
            "LNet peer of two hosts", ", ".join(peer.origin for _, peer in crossed),
            f"{', '.join(text for text, _ in crossed)}: LNet takes both for one host and sends messages to the wrong"
            " host",
            "; ".join(f"lnetctl peer del --prim_nid {peer.primary_nid} --nid {peer.nid}" for _, peer in crossed)
            + ", then lnetctl discover",
        )  # fmt: skip


def get_lnet_network(nid: str | None) -> str:
    return normalize_lnet_name((nid or "").partition("@")[2])


def normalize_lnet_name(net_name: str) -> str:
    """The name of an LNet network with its number: o2ib is o2ib0."""
    return net_name if re.fullmatch(r".*[a-z][0-9]+", net_name) else f"{net_name}0"


def _normalize_nid(nid: str) -> str:
    address, _, network = nid.partition("@")
    return f"{address}@{normalize_lnet_name(network)}"
