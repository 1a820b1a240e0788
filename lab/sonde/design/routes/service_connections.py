# SPDX-License-Identifier: Apache-2.0
"""Lists the TCP connections that the file systems of a system need between a host and its peers.

Source: IBM Storage Scale, "Firewall recommendations" (daemon: 1191, both ways between all nodes); Lustre Operations
Manual, "LNet" (accept_port 988 of socklnd); RFC 7530 (NFS 4: 2049).
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.model.system import System
from sonde.model.system.addressing import InterfaceAddress

PeerChoice = Callable[[Sequence[str]], Sequence[str]]
GPFS_PORT, LNET_PORT, NFS_PORT = 1191, 988, 2049
USUAL_SERVICES = (("GPFS", GPFS_PORT), ("LNet", LNET_PORT), ("NFS", NFS_PORT))


@dataclass(frozen=True)
class ServiceConnection:
    """New connections of one service between a host and one address of a group of peers. `is_incoming` says that the
    peer opens them."""

    service: str
    port: int
    is_incoming: bool
    peer_group: str
    own_address: str
    own_device: str
    peer_address: str


@dataclass(frozen=True)
class RoutedService:
    """A service whose connections routers forward between two networks, opened by hosts of one of them."""

    name: str
    port: int
    opening_network: str


def list_routed_services(
    system: System, networks_by_address: Mapping[str, str], hosts: Sequence[str]
) -> tuple[RoutedService, ...]:
    """The services between the networks that have these addresses, by hosts that stand for all."""
    services: dict[RoutedService, None] = {}
    for host in hosts:
        for each in _list_file_system_connections(system, host):
            own_network = networks_by_address.get(each.own_address)
            peer_network = networks_by_address.get(each.peer_address)
            if own_network is not None and peer_network is not None and own_network != peer_network:
                opening_network = peer_network if each.is_incoming else own_network
                services[RoutedService(each.service, each.port, opening_network)] = None
    return tuple(services)


def choose_first_and_last(hosts: Sequence[str]) -> Sequence[str]:
    """The first and the last host of a group."""
    return tuple(dict.fromkeys((hosts[0], hosts[-1])))


def list_service_connections(
    system: System, host_id: str, uses_lnet: bool, choose_peers: PeerChoice = choose_first_and_last
) -> list[ServiceConnection]:
    """The connections of a host: those of GPFS and NFS by the file systems and mounts, those of LNet over TCP by the
    NIDs of the host where it uses LNet. Of each group of peers, `choose_peers` selects those that stand for all."""
    connections = [*_list_file_system_connections(system, host_id, choose_peers)]
    if uses_lnet:
        connections += _list_lnet_connections(system, host_id, choose_peers)
    return list(dict.fromkeys(connections))


def _list_file_system_connections(
    system: System, host_id: str, choose_peers: PeerChoice = choose_first_and_last
) -> Iterator[ServiceConnection]:
    joined = {frozenset(pair) for pair in _list_joined_networks(system)}
    for file_system in system.list_parts("file_systems"):
        kind = getattr(file_system.table, "kind", "")
        servers = system.find_servers(file_system.id)
        mounts = [mount.id for mount in system.list_parts("mounts")
                  if file_system.id in system.find_references(mount.id, "file_system")]  # fmt: skip
        native = [mount for mount in mounts if getattr(system.get_part(mount).table, "through", "") == "native"]
        clients = [client for mount in native for client in system.find_references(mount, "on")]
        clients += system.list_part_ids("nodes") if not mounts else ()
        if kind == "gpfs" and host_id in (*servers, *clients):
            peers = (*servers, *clients) if host_id in servers else servers
            for is_incoming in (True, False):
                yield from _connect(system, host_id, peers, ("GPFS", GPFS_PORT, is_incoming), joined, choose_peers)
        for mount in mounts:
            if getattr(system.get_part(mount).table, "through", "") == "nfs":
                exporters = system.find_references(mount, "via") or servers
                users = system.find_references(mount, "on")
                if host_id in exporters:
                    yield from _connect(system, host_id, users, ("NFS", NFS_PORT, True), joined, choose_peers)
                if host_id in users:
                    yield from _connect(system, host_id, exporters, ("NFS", NFS_PORT, False), joined, choose_peers)


def _list_lnet_connections(system: System, host_id: str, choose_peers: PeerChoice) -> Iterator[ServiceConnection]:
    """Connections on the LNet networks of TCP that the host is on. Routers and servers accept them, clients open
    them."""
    networks = {address.network for address in system.find_addresses(host_id) if _is_tcp_nid(address.nid)}
    accepting = [
        host for kind in ("routers", "servers") for host in system.list_part_ids(kind)
        if getattr(system.get_part(host).table, "protocol", "lnet") == "lnet"
        and any(address.network in networks and _is_tcp_nid(address.nid) for address in system.find_addresses(host))
    ]  # fmt: skip
    clients = system.list_part_ids("nodes")
    if host_id in accepting:
        yield from _connect(system, host_id, (*accepting, *clients), ("LNet", LNET_PORT, True), set(), choose_peers)
    yield from _connect(system, host_id, accepting, ("LNet", LNET_PORT, False), set(), choose_peers)


def _is_tcp_nid(nid: str | None) -> bool:
    return (nid or "").partition("@")[2].rstrip("0123456789") == "tcp"


def _list_joined_networks(system: System) -> Iterator[tuple[str, ...]]:
    """Pairs of networks between which routers of IP forward packets."""
    for router in system.list_parts("routers"):
        if getattr(router.table, "protocol", "") == "ip":
            yield system.find_references(router.id, "between") or tuple(
                dict.fromkeys(address.network for address in system.find_addresses(router.id))
            )


def _connect(
    system: System,
    host_id: str,
    peer_ids: Sequence[str],
    service: tuple[str, int, bool],
    joined_networks: set[frozenset[str]],
    choose_peers: PeerChoice,
) -> Iterator[ServiceConnection]:
    """Connections of a service (its name, port and direction) on a network of both, or between two joined networks."""
    groups: dict[str, list[str]] = {}
    for peer in dict.fromkeys(peer_ids):
        if peer != host_id:
            table = system.get_part(peer).table
            groups.setdefault(getattr(table, "group", "") or getattr(table, "id", peer), []).append(peer)
    own_addresses = system.find_addresses(host_id)
    for group, members in groups.items():
        for peer in choose_peers(members):
            peer_addresses = system.find_addresses(peer)
            shared = {each.network for each in own_addresses} & {each.network for each in peer_addresses}
            for near, far in itertools.product(own_addresses, peer_addresses):
                is_refused = service[0] == "LNet" and not _is_tcp_nid(far.nid)
                if is_refused or not _is_same_version(near, far):
                    continue
                is_joined = not shared and frozenset((near.network, far.network)) in joined_networks
                if near.network == far.network or is_joined:
                    yield ServiceConnection(*service, group, near.address or "", near.device, far.address or "")


def _is_same_version(first: InterfaceAddress, second: InterfaceAddress) -> bool:
    if not first.address or not second.address:
        return False
    return ipaddress.ip_address(first.address).version == ipaddress.ip_address(second.address).version
