# SPDX-License-Identifier: Apache-2.0
"""Compares the LNet routes of a host with those that its network needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.configurations import make_lnet_files
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import LnetRoute
from sonde.model.errors import UserError, suggest_close_name
from sonde.model.system import System


def check_lnet_routes(
    system: System, network_or_host: str, routes: Sequence[LnetRoute]
) -> Iterator[RouteFault | CheckedItem]:
    """Faults of the LNet routes of a network, a host or a class of hosts. Raises UserError for a name without LNet."""
    planned = {
        (_normalize_lnet_name(entry["net"]), _normalize_nid(entry["gateway"])): entry
        for entry in _list_planned_lnet_entries(system, network_or_host)
    }
    networks = {network for network, _ in planned}
    observed = {(_normalize_lnet_name(route.network), _normalize_nid(route.gateway)): route for route in routes}
    for (network, gateway), entry in planned.items():
        yield CheckedItem("an LNet route", f"{network} by {gateway}")
        route = observed.get((network, gateway))
        if route is None:
            yield RouteFault(
                "LNet route missing", f"{network} by {gateway}", f"no route leads to {network} by {gateway}",
                f"lnetctl route add --net {network} --gateway {gateway}",
            )  # fmt: skip
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
    for (network, gateway), route in observed.items():
        if (network, gateway) not in planned:
            reason = "no router of this network" if network in networks else "a network that nothing leads to from here"
            yield RouteFault(
                "unknown LNet route", route.origin,
                f"the route to {network} by {gateway} names {reason}",
                f"remove it: lnetctl route del --net {network} --gateway {gateway}",
            )  # fmt: skip


def _list_planned_lnet_entries(system: System, network_or_host: str) -> list[dict[str, Any]]:
    """The planned entries of the networks that a network, host or class of hosts is on."""
    files = make_lnet_files(system)
    by_network = {file.removeprefix("lnet-").removesuffix(".yaml"): text for file, text in files.items()}
    if network_or_host in by_network:
        networks = {network_or_host}
    else:
        hosts = (
            system.resolve_names(network_or_host)
            if network_or_host in system.index or network_or_host in system.index.groups
            else ()
        )
        networks = {
            address.network for host in hosts for address in system.find_addresses(host) if system.get_part(host).kind
            in ("nodes", "servers", "routers")
        }  # fmt: skip
    chosen = [network for network in by_network if network in networks]
    if not chosen:
        names = [*by_network, *system.index.groups]
        raise UserError(
            f'"{network_or_host}" is on no network with LNet routes; those are '
            f"{', '.join(by_network)}.{suggest_close_name(network_or_host, names)}"
        )
    return [entry for network in chosen for entry in yaml.safe_load(by_network[network])["route"]]


def _normalize_lnet_name(net_name: str) -> str:
    """The name of an LNet network with its number: o2ib is o2ib0."""
    return net_name if re.fullmatch(r".*[a-z][0-9]+", net_name) else f"{net_name}0"


def _normalize_nid(nid: str) -> str:
    address, _, network = nid.partition("@")
    return f"{address}@{_normalize_lnet_name(network)}"
