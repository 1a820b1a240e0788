# SPDX-License-Identifier: Apache-2.0
"""Checks what limits connections and neighbors: buffers and features of TCP, tables of the kernel that are too small
for the fabric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_view import HostView
from sonde.design.routes.port_ranges import find_port_range_faults
from sonde.design.routes.setting_rules import find_setting_rule_faults

_MIB = 1 << 20
_MIN_ENOUGH_RETRIES = 5
_FEW_PAGES = 1 << 12
_FEW_HOPS = 8
# Half of the kernel's default, which is for all networks of a host and for its containers.
_FEW_NEIGHBORS = 512
_PORT_FIELDS = 0x0030  # FIB_MULTIPATH_HASH_FIELD_SRC_PORT and _DST_PORT
_FEW_CONNECTIONS = 1 << 16
# A table of connections that is fuller drops packets at the next burst.
_MAX_TRACKED_FRACTION = 0.9
_FEW_CONNECTIONS_OF_HOST = 1 << 12
# Entries in each chain of the table of connections, by the default of older kernels 4.
_LONG_CHAIN = 32
_USUAL_SIZES = {"net.ipv4.tcp_rmem": "4096 131072 16777216", "net.ipv4.tcp_wmem": "4096 16384 16777216"}
_DEBUG_SETTINGS = ("sunrpc.rpc_debug", "sunrpc.nfs_debug", "sunrpc.nfsd_debug", "sunrpc.nlm_debug")
_LIMIT_BY_FEATURE = {
    "net.ipv4.tcp_window_scaling": "a connection has at most 64 KiB under way: 64 MB/s at 1 ms",
    "net.ipv4.tcp_sack": "without selective acknowledgments one lost packet repeats all that follow it",
}


def _parse_number_or_none(number_text: str | None) -> int | None:
    match = re.match(r"\d+", number_text or "")
    return int(match[0]) if match else None


def find_connection_limits(host_view: HostView, settings: Mapping[str, str]) -> Iterator[RouteFault | CheckedItem]:
    """Settings of TCP that limit connections, and a table of neighbors that is too small for this side."""
    for name, reason in _LIMIT_BY_FEATURE.items():
        if name in settings:
            yield CheckedItem("a setting", name)
        if settings.get(name) == "0":
            yield RouteFault("feature of TCP off", f"{name} = 0", reason, "set it to 1")
    for name, direction in (("net.ipv4.tcp_rmem", "receive"), ("net.ipv4.tcp_wmem", "send")):
        sizes = [int(text) for text in settings.get(name, "").split() if text.isdigit()]
        if len(sizes) != 3:
            continue
        yield CheckedItem("a setting", name)
        if sizes[2] < _MIB:
            yield RouteFault(
                "small TCP buffers", f"{name} = {settings[name]}",
                f"the {direction} buffer of a connection grows to {sizes[2]} B only: it cannot fill a fast path",
                "set the last number to 16 MiB or more",
            )  # fmt: skip
        elif sizes != sorted(sizes):
            yield RouteFault(
                "wrong order of sizes", f"{name} = {settings[name]}",
                f"the {direction} buffer begins with {sizes[1]} B, and grows from {sizes[0]} B to {sizes[2]} B: the"
                " three numbers are the least, the first and the largest size",
                f"give them in rising order, as {_USUAL_SIZES[name]}",
            )  # fmt: skip
    retries = _parse_number_or_none(settings.get("net.ipv4.tcp_retries2"))
    if retries is not None and retries < _MIN_ENOUGH_RETRIES:
        yield RouteFault(
            "connections give up early", f"net.ipv4.tcp_retries2 = {retries}",
            f"a connection ends after {retries} retries: the failover of a router takes longer", "leave it at 15",
        )  # fmt: skip
    if settings.get("net.ipv4.tcp_moderate_rcvbuf") == "0":
        yield RouteFault(
            "small TCP buffers", "net.ipv4.tcp_moderate_rcvbuf = 0",
            "the receive buffer of a connection does not grow with its path", "set it to 1",
        )  # fmt: skip
    pages = [int(text) for text in settings.get("net.ipv4.tcp_mem", "").split() if text.isdigit()]
    if len(pages) == 3 and pages[2] < _FEW_PAGES:
        yield RouteFault(
            "little memory for TCP", f"net.ipv4.tcp_mem = {settings['net.ipv4.tcp_mem']}",
            f"all connections together get {pages[2] * 4} KiB (it counts pages of 4 KiB)",
            "leave it to the kernel, which derives it from memory",
        )  # fmt: skip
    daemons = {(service.name, service.port) for service in host_view.fabric.services if service.name == "GPFS"}
    yield from find_port_range_faults(settings, daemons)
    yield from find_setting_rule_faults(settings, "host", host_view.fabric.version, [host_view.host_class.device])
    yield from _check_tracked_connections(settings, _FEW_CONNECTIONS_OF_HOST)
    yield from _check_debug_messages(settings)
    yield from _check_hops_and_times(host_view, settings)
    own_side = host_view.own_side
    hosts = sum(len(each.addresses) for each in own_side.classes) + len(host_view.routers_by_gateway)
    yield from _check_neighbor_table(settings, host_view.fabric.version, hosts)
    yield from _check_seed_and_advertisements(host_view, settings)


def _check_hops_and_times(host_view: HostView, settings: Mapping[str, str]) -> Iterator[RouteFault]:
    """How far packets go, and what a custom hash uses."""
    device, version = host_view.host_class.device, host_view.fabric.version
    names = ["net.ipv4.ip_default_ttl"] if version == 4 else [
        f"net.ipv6.conf.{each}.hop_limit" for each in ("all", device)
    ]  # fmt: skip
    for name in names:
        hops = _parse_number_or_none(settings.get(name))
        if hops is not None and hops < _FEW_HOPS:
            yield RouteFault(
                "packets end early", f"{name} = {hops}",
                f"packets of this host pass {max(0, hops - 1)} routers at most, then they are dropped", "set it to 64",
            )  # fmt: skip
    fields = f"net.ipv{version}.fib_multipath_hash_fields"
    bits = settings.get(fields, "")
    is_custom = settings.get(f"net.ipv{version}.fib_multipath_hash_policy") == "3"
    if is_custom and re.fullmatch(r"(0x)?[0-9a-fA-F]+", bits) and not int(bits, 0) & _PORT_FIELDS:
        yield RouteFault(
            "hash by address only", f"{fields} = {bits}",
            "the fields of the hash include no port: all connections between two hosts take one router",
            "add 0x0030, the ports",
        )  # fmt: skip


def _check_seed_and_advertisements(host_view: HostView, settings: Mapping[str, str]) -> Iterator[RouteFault]:
    seed = "net.ipv4.fib_multipath_hash_seed"
    if settings.get(seed) == "0" and len(host_view.fabric.routers) > 1:
        yield RouteFault(
            "random hash seed", f"{seed} = 0",
            "this host hashes flows by a random seed: replies of the other side come by other routers than requests",
            "set the seed of the plan on both sides",
        )  # fmt: skip
    name = f"net.ipv6.conf.{host_view.host_class.device}.accept_ra_rt_info_max_plen"
    if host_view.fabric.version == 6 and _parse_number_or_none(settings.get(name)):
        yield RouteFault(
            "routes of advertisements", f"{name} = {settings[name]}",
            "any machine on this network can add routes by router advertisements", "set it to 0, and accept_ra too",
        )  # fmt: skip


def find_router_limits(fabric: Fabric, settings: Mapping[str, str]) -> Iterator[RouteFault | CheckedItem]:
    """Tables and queues of a router that are too small for both networks."""
    devices = list(dict.fromkeys(device for router in fabric.routers
                                 for device in (router.near_device, router.far_device) if device))  # fmt: skip
    yield from find_setting_rule_faults(settings, "router", fabric.version, devices)
    for side in (fabric.near, fabric.far):
        hosts = sum(len(each.addresses) for each in side.classes) + len(fabric.routers)
        yield from _check_neighbor_table(settings, fabric.version, hosts)
    yield from _check_tracked_connections(settings, _FEW_CONNECTIONS)


def _check_tracked_connections(settings: Mapping[str, str], min_connections: int) -> Iterator[RouteFault | CheckedItem]:
    """The size of the table of conntrack, and how much of it is used; 0 is without a limit."""
    name, used_name = "net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_count"
    count, used = (_parse_number_or_none(settings.get(each)) for each in (name, used_name))
    is_full = bool(count) and used is not None and used > _MAX_TRACKED_FRACTION * (count or 0)
    if count and used is not None:
        yield CheckedItem("a setting", used_name)
        if is_full:
            yield RouteFault(
                "few tracked connections", f"{used_name} = {used}",
                f"conntrack holds {used} of at most {count} connections: packets of further ones are dropped",
                f"raise {name}, or let storage traffic pass untracked (raw table, NOTRACK)",
            )  # fmt: skip
    buckets_name = "net.netfilter.nf_conntrack_buckets"
    buckets = _parse_number_or_none(settings.get(buckets_name))
    if count and buckets:
        yield CheckedItem("a setting", buckets_name)
        if count > _LONG_CHAIN * buckets:
            yield RouteFault(
                "slow table of connections", f"{buckets_name} = {buckets}",
                f"conntrack searches {count} connections in {buckets} lists, up to {count // buckets} entries for each"
                " packet",
                f"set it to {count // 4} or more (module option hashsize of nf_conntrack)",
            )  # fmt: skip
    if count is not None:
        yield CheckedItem("a setting", name)
        if 0 < count < min_connections and not is_full:
            yield RouteFault(
                "few tracked connections", f"{name} = {count}",
                f"conntrack holds {count} connections: packets of further ones are dropped",
                "set it to 1048576, or let storage traffic pass untracked (raw table, NOTRACK)",
            )  # fmt: skip


def _check_debug_messages(settings: Mapping[str, str]) -> Iterator[RouteFault | CheckedItem]:
    """Debugging of RPC and NFS that was left on."""
    for name in _DEBUG_SETTINGS:
        value = settings.get(name, "")
        if not re.fullmatch(r"0x[0-9a-fA-F]+|\d+", value):
            continue
        yield CheckedItem("a setting", name)
        if value.strip("0x"):
            yield RouteFault(
                "debug messages on", f"{name} = {value}",
                "the kernel logs single requests of NFS, which slows a busy client or server down",
                "set it to 0 (rpcdebug -m MODULE -c all)",
            )  # fmt: skip


def _check_neighbor_table(
    settings: Mapping[str, str], ip_version: int, host_count: int
) -> Iterator[RouteFault | CheckedItem]:
    name = f"net.ipv{ip_version}.neigh.default.gc_thresh3"
    most = _parse_number_or_none(settings.get(name))
    if most is None:
        return
    yield CheckedItem("a setting", name)
    if most < max(host_count, _FEW_NEIGHBORS):
        reason = f"this network has {host_count} hosts and routers: some are not reached" if most < host_count else (
            "those of all networks and containers of this host count: further ones are not reached")  # fmt: skip
        yield RouteFault(
            "neighbor table too small", f"{name} = {most}", f"the kernel keeps {most} neighbors, and {reason}",
            f"set it to {max(1024, 4 * host_count)}, and gc_thresh2 to half of it",
        )  # fmt: skip


def find_proxy_faults(settings: Mapping[str, str], devices: tuple[str, ...]) -> Iterator[RouteFault | CheckedItem]:
    """Devices that answer ARP requests for addresses of others."""
    for device in ("all", *devices):
        name = f"net.ipv4.conf.{device}.proxy_arp"
        if name in settings:
            yield CheckedItem("a setting", name)
        if settings.get(name) == "1":
            yield RouteFault(
                "ARP answered for others", f"{name} = 1",
                "this machine answers ARP requests for addresses that it has routes to (proxy ARP): hosts send to it"
                " past the multipath route",
                "set it to 0",
            )  # fmt: skip
