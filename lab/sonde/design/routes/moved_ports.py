# SPDX-License-Identifier: Apache-2.0
"""Hosts and routers that are on a network by another interface than the system file says, as after an exchange of
hardware: one fault, and all else of the machine is compared on the interface that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonde.design.routes.fabric import Fabric, FabricSide, is_address_in_ranges
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.host_view import HostView
from sonde.design.routes.link_usability import find_holding_device

MISSING_INTERFACE = "interface missing"
_LAST_VLAN = 4094
_PORT_PATTERN = re.compile(r"np\d+$")


@dataclass(frozen=True)
class MovedPort:
    """The interface that has a host's addresses of one network instead of the planned one. `is_used`: its known routes
    through the routers use this interface, too."""

    host_view: HostView
    device: str
    addresses: tuple[str, ...]
    is_used: bool


def find_moved_ports(host_views: Sequence[HostView], host_tables: HostTables) -> list[MovedPort]:
    """The moved ports of a host, each once for an IP version."""
    ports = []
    for view in host_views:
        tables = host_tables.select_version(view.fabric.version)
        device = find_holding_device(view, tables)
        if device:
            addresses = tuple(
                address
                for address, devices in tables.address_devices.items()
                if device in devices and is_address_in_ranges(view.own_side.ranges, address)
            )
            hops = [hop for route in tables.routes or () for hop in route.hops if hop.via in view.routers_by_gateway]
            is_used = tables.routes is None or any(hop.device == device for hop in hops)
            ports.append(MovedPort(view, device, addresses, is_used))
    return ports


def name_used_devices(fabrics: Iterable[Fabric], moved_ports: Sequence[MovedPort]) -> list[Fabric]:
    """The fabrics with the interfaces that the host uses in place of the planned ones."""
    return [
        replace(fabric, near=_name_devices_of_side(fabric, fabric.near, moved_ports),
                far=_name_devices_of_side(fabric, fabric.far, moved_ports))
        for fabric in fabrics
    ]  # fmt: skip


def _name_devices_of_side(fabric: Fabric, side: FabricSide, moved_ports: Sequence[MovedPort]) -> FabricSide:
    classes = list(side.classes)
    for port in moved_ports:
        if port.is_used and port.host_view.fabric is fabric and port.host_view.own_side is side:
            number = next(index for index, each in enumerate(side.classes) if each is port.host_view.host_class)
            classes[number] = replace(classes[number], device=port.device)
    return replace(side, classes=tuple(classes))


def describe_moved_ports(moved_ports: Sequence[MovedPort], host_tables: HostTables) -> Iterator[RouteFault]:
    """One fault for each planned interface, with the addresses of both IP versions."""
    by_devices: dict[tuple[str, str], list[MovedPort]] = {}
    for port in moved_ports:
        by_devices.setdefault((port.host_view.host_class.device, port.device), []).append(port)
    for (planned, device), ports in by_devices.items():
        is_missing = planned not in host_tables.links
        is_used = any(port.is_used for port in ports)
        if is_missing and not is_used:
            continue  # reported with the state of the interface
        network = ports[0].host_view.own_side.network
        addresses = ", ".join(dict.fromkeys(address for port in ports for address in port.addresses))
        routes = " and its routes through the routers" if is_used and host_tables.routes is not None else ""
        if is_missing:
            kind, location = MISSING_INTERFACE, planned
            problem = f"this host has no {planned}, which joins it to {network}; {device} has {addresses}{routes}"
        else:
            kind, location = "wrong interface", device
            state = " and is down" if host_tables.links[planned] == "down" else ""
            problem = (
                f"{device} has {addresses}{routes}, and {planned}, which joins this host to {network}, has no address"
                f" of it{state}"
            )
        remedy = _choose_remedy(planned, device, addresses, is_used=is_used)
        command = describe_child_creation(planned, host_tables) if is_missing else ""
        if command:
            remedy = (
                f"where {device} carries {network} as {'partition' if ' pkey ' in command else 'VLAN'}"
                f" {planned.rpartition('.')[2]}, {command}, move {addresses} to {planned}"
                f" and apply the plan; where {device} itself is on the network, correct the device in the system file"
            )
        yield RouteFault(kind, location, problem, remedy, versions="first" if is_missing else "separate")


def describe_child_creation(planned_device: str, host_tables: HostTables) -> str:
    """The command that makes a missing VLAN (bond0.210) or partition of InfiniBand (ib0.8001) on the device in its
    name; "" for other names, and where this host lacks that device."""
    parent, _, number = planned_device.rpartition(".")
    if parent not in host_tables.links:
        return ""
    details = host_tables.link_details.get(parent)
    is_infiniband = parent in host_tables.transport_modes or (details is not None and details.kind == "ipoib")
    if is_infiniband and re.fullmatch("[0-9a-f]{4}", number):
        return f"ip link add link {parent} name {planned_device} type ipoib pkey 0x{number}"
    is_vlan = number.isdigit() and 0 < int(number) <= _LAST_VLAN and not is_infiniband
    return f"ip link add link {parent} name {planned_device} type vlan id {number}" if is_vlan else ""


def find_renamed_port(planned_device: str, host_tables: HostTables) -> str:
    """The interface with the planned name with or without the port (np0) that newer drivers add; "" for none."""
    bare_name = _PORT_PATTERN.sub("", planned_device)
    names = [
        name
        for name in host_tables.links
        if name != planned_device and bare_name in (name, planned_device) and _PORT_PATTERN.sub("", name) == bare_name
    ]
    return names[0] if len(names) == 1 and re.search(r"\d$", bare_name) else ""


def _choose_remedy(planned_device: str, actual_device: str, addresses: str, *, is_used: bool) -> str:
    if not is_used:
        return f"move {addresses} to {planned_device} and apply the plan, or correct the device in the system file"
    return (
        f"where {actual_device} is the port of the network, correct the device in the system file, or give the port"
        f" the name {planned_device} again (a .link file with its link address); else move the addresses to"
        f" {planned_device} and apply the plan"
    )


def find_moved_ports_of_routers(
    fabrics: Iterable[Fabric], router_names: Sequence[str], host_tables: HostTables
) -> dict[str, tuple[str, str]]:
    """The planned and the actual interface of each address of some routers that is on another one."""
    moved = {}
    for router in (router for fabric in fabrics for router in fabric.routers if router.name in router_names):
        for address, planned in ((router.near_address, router.near_device), (router.far_address, router.far_device)):
            devices = host_tables.address_devices.get(address, ())
            details = host_tables.link_details.get(planned)
            is_on_master = details is not None and details.master in devices  # reported with the interface
            if planned and devices and host_tables.links and planned not in devices and not is_on_master:
                moved[address] = (planned, devices[0])
    return moved


def name_used_devices_of_routers(fabrics: Iterable[Fabric], moved: Mapping[str, tuple[str, str]]) -> list[Fabric]:
    """The fabrics with the interfaces that the routers use in place of the planned ones."""
    return [
        replace(fabric, routers=tuple(
            replace(router, near_device=moved.get(router.near_address, ("", router.near_device))[1],
                    far_device=moved.get(router.far_address, ("", router.far_device))[1])
            for router in fabric.routers))
        for fabric in fabrics
    ]  # fmt: skip


def describe_moved_ports_of_routers(
    router_names: Sequence[str], moved: Mapping[str, tuple[str, str]], host_tables: HostTables
) -> Iterator[RouteFault]:
    """One fault for all addresses of a router that are on other interfaces, as after an exchange of two names."""
    if not moved:
        return
    missing = [device for device in dict.fromkeys(planned for planned, _ in moved.values())
               if device not in host_tables.links]  # fmt: skip
    absent = f" (it has no {', '.join(missing)})" if missing else ""
    router = ", ".join(router_names)
    commands = [describe_child_creation(device, host_tables) for device in missing]
    yield RouteFault(
        "wrong interface", router,
        f"{router} has {' and '.join(f'{address} on {device}' for address, (_, device) in moved.items())}; the system"
        f" file says {' and '.join(f'{address} on {planned}' for address, (planned, _) in moved.items())}{absent}",
        f"{''.join(f'{command}; ' for command in commands if command)}move the addresses, or correct the devices in the"
        " system file",
    )  # fmt: skip
