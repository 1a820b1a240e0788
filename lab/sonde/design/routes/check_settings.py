# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the settings of a host: kernel options, MTU, sysctls, and all that a router must be."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.routes.fabric import Class, Fabric
from sonde.design.routes.faults import Fault, Verdict, unknown
from sonde.design.routes.tables import HostTables
from sonde.design.routes.tuning import audit, missing_options


def setting_faults(fabric: Fabric, group: Class, seen: HostTables) -> Iterator[Fault]:
    if seen.options is not None:
        for name, part in missing_options(seen.options):
            yield Fault(
                "kernel option missing", name, f"the kernel lacks it: {part} will not work", f"build with {name}=y"
            )
    for device, mtu in seen.mtus.items():
        wanted = (fabric.near if group in fabric.near.classes else fabric.far).mtu
        if device == group.device and wanted is not None and mtu != wanted:
            yield Fault(
                "MTU mismatch",
                device,
                f"{device} takes packets of {mtu} B, the network {wanted} B",
                f"set mtu {wanted}",
            )
    if seen.settings is None:
        return
    for remark in audit(seen.settings):
        yield Fault(f"setting {remark.worth}", f"{remark.name} = {remark.value}", remark.reason, remark.remedy)
    ip = "ipv4" if fabric.version == 4 else "ipv6"
    policy = seen.settings.get(f"net.{ip}.fib_multipath_hash_policy")
    if policy == "0" and len(fabric.ways) > 1:
        yield Fault(
            "hash by address only",
            f"net.{ip}.fib_multipath_hash_policy = 0",
            "all connections between two hosts take one router",
            "set it to 1: ports count too",
        )
    for name in ("all", group.device):
        if seen.settings.get(f"net.ipv4.conf.{name}.rp_filter") == "1" and len(fabric.ways) > 1:
            yield Fault(
                "strict reverse path",
                f"net.ipv4.conf.{name}.rp_filter = 1",
                "a packet is dropped when its reply would leave by another interface",
                "set it to 2 (loose) where a host has several networks",
            )


def router_verdict(fabric: Fabric, seen: HostTables) -> Verdict:
    faults: list[Fault] = []
    settings = seen.settings
    if settings is not None:
        name = "net.ipv4.ip_forward" if fabric.version == 4 else "net.ipv6.conf.all.forwarding"
        if settings.get(name, "0") != "1":
            faults.append(
                Fault(
                    "forwarding off",
                    f"{name} = {settings.get(name, 'not set')}",
                    "nothing passes this router",
                    "set it to 1",
                )
            )
        faults += [
            Fault(
                "strict reverse path", f"{key} = 1", "packets whose reply takes another way are dropped", "set it to 2"
            )
            for key, value in settings.items()
            if key.endswith(".rp_filter") and value == "1"
        ]
        faults += [
            Fault(f"setting {one.worth}", f"{one.name} = {one.value}", one.reason, one.remedy)
            for one in audit(settings)
        ]
    if seen.addresses is not None:
        own = {one.split("/")[0] for one in seen.addresses}
        ends = {way.router: (way.near, way.far) for way in fabric.ways}
        here = [name for name, pair in ends.items() if own & set(pair)]
        faults += [
            Fault(
                "address missing",
                name,
                f"{name} has {', '.join(sorted(own & set(ends[name])))}"
                f" but not {', '.join(sorted(set(ends[name]) - own))}",
                "give it its address on both networks",
            )
            for name in here
            if not set(ends[name]) <= own
        ]
        if not here:
            faults.append(
                Fault("not a router", "addresses", f"no router of {fabric.name} has one of these", "ask a router")
            )
    not_given = tuple(one for one in unknown(seen) if one in ("addresses", "settings (sysctl)"))
    return Verdict("routers", tuple(faults), not_given)
