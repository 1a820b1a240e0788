# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the settings of a host: kernel options, MTU, sysctls; and everything that a router needs."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.routes.fabric import Fabric, HostClass
from sonde.design.routes.faults import RouteCheck, RouteFault, list_unknown
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.kernel_settings import audit_settings, list_missing_options


def find_setting_faults(fabric: Fabric, host_class: HostClass, host_tables: HostTables) -> Iterator[RouteFault]:
    """Faults of the settings of a host of one class."""
    if host_tables.options is not None:
        for name, feature in list_missing_options(host_tables.options):
            yield RouteFault(
                "kernel option missing", name, f"the kernel lacks it: {feature} will not work", f"build with {name}=y"
            )
    for device, mtu in host_tables.mtus.items():
        network_mtu = (fabric.near if host_class in fabric.near.classes else fabric.far).mtu
        if device == host_class.device and network_mtu is not None and mtu != network_mtu:
            yield RouteFault(
                "MTU mismatch",
                device,
                f"{device} takes packets of {mtu} B, the network {network_mtu} B",
                f"set mtu {network_mtu}",
            )
    if host_tables.settings is None:
        return
    for finding in audit_settings(host_tables.settings):
        yield RouteFault(
            f"setting {finding.state}", f"{finding.name} = {finding.value}", finding.reason, finding.remedy
        )
    family = "ipv4" if fabric.version == 4 else "ipv6"
    policy = host_tables.settings.get(f"net.{family}.fib_multipath_hash_policy")
    if policy == "0" and len(fabric.routers) > 1:
        yield RouteFault(
            "hash by address only",
            f"net.{family}.fib_multipath_hash_policy = 0",
            "all connections between two hosts take one router",
            "set it to 1: ports count too",
        )
    for name in ("all", host_class.device):
        if host_tables.settings.get(f"net.ipv4.conf.{name}.rp_filter") == "1" and len(fabric.routers) > 1:
            yield RouteFault(
                "strict reverse path",
                f"net.ipv4.conf.{name}.rp_filter = 1",
                "a packet is dropped when its reply would leave by another interface",
                "set it to 2 (loose) where a host has several networks",
            )


def check_router(fabric: Fabric, host_tables: HostTables) -> RouteCheck:
    """Faults of a router: its forwarding, its settings, its addresses."""
    faults: list[RouteFault] = []
    settings = host_tables.settings
    if settings is not None:
        name = "net.ipv4.ip_forward" if fabric.version == 4 else "net.ipv6.conf.all.forwarding"
        if settings.get(name, "0") != "1":
            faults.append(
                RouteFault(
                    "forwarding off",
                    f"{name} = {settings.get(name, 'not set')}",
                    "nothing passes this router",
                    "set it to 1",
                )
            )
        faults += [
            RouteFault(
                "strict reverse path", f"{key} = 1", "packets whose reply takes another way are dropped", "set it to 2"
            )
            for key, value in settings.items()
            if key.endswith(".rp_filter") and value == "1"
        ]
        faults += [
            RouteFault(f"setting {finding.state}", f"{finding.name} = {finding.value}", finding.reason, finding.remedy)
            for finding in audit_settings(settings)
        ]
    if host_tables.addresses is not None:
        own_addresses = {finding.split("/")[0] for finding in host_tables.addresses}
        router_addresses = {router.name: (router.near_address, router.far_address) for router in fabric.routers}
        matching_routers = [name for name, addresses in router_addresses.items() if own_addresses & set(addresses)]
        faults += [
            RouteFault(
                "address missing",
                name,
                f"{name} has {', '.join(sorted(own_addresses & set(router_addresses[name])))}"
                f" but not {', '.join(sorted(set(router_addresses[name]) - own_addresses))}",
                "give it its address on both networks",
            )
            for name in matching_routers
            if not set(router_addresses[name]) <= own_addresses
        ]
        if not matching_routers:
            faults.append(
                RouteFault("not a router", "addresses", f"no router of {fabric.name} has one of these", "ask a router")
            )
    not_given = tuple(finding for finding in list_unknown(host_tables) if finding in ("addresses", "settings (sysctl)"))
    return RouteCheck("routers", tuple(faults), not_given)
