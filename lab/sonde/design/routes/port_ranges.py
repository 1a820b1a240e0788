# SPDX-License-Identifier: Apache-2.0
"""Checks the local ports of a host: enough of them for connections, and none that storage services need.

Source: Linux Documentation/networking/ip-sysctl.rst; port 988 of LNet: Lustre lnet/lnet/acceptor.c; ports of NFS
clients: Linux include/linux/sunrpc/xprtsock.h (RPC_DEF_MIN_RESVPORT, RPC_DEF_MAX_RESVPORT).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.model.units import format_count_with_noun

_PORT_RANGE_SETTING = "net.ipv4.ip_local_port_range"
_RESERVED_PORTS_SETTING = "net.ipv4.ip_local_reserved_ports"
_FIRST_USER_PORT_SETTING = "net.ipv4.ip_unprivileged_port_start"
_NFS_PORT_SETTINGS = ("sunrpc.min_resvport", "sunrpc.max_resvport")
# Names of the settings that `find_port_range_faults` reads.
PORT_SETTINGS = (_PORT_RANGE_SETTING, _RESERVED_PORTS_SETTING, _FIRST_USER_PORT_SETTING,
                 *_NFS_PORT_SETTINGS)  # fmt: skip
_MIN_ENOUGH_PORTS = 1000
_LAST_PORT = 65535
# Ports of NFS clients by default, and the fewest for the mounts of several servers and their reconnections.
_NFS_PORTS = (665, 1023)
_MIN_ENOUGH_NFS_PORTS = 64
# The first port that every user may open on a host as the kernel starts it.
_FIRST_USER_PORT = 1024
# Ports that services of storage need, by the service.
_STORAGE_PORTS = (("LNet", 988, 988), ("NFS clients", *_NFS_PORTS))


def find_port_range_faults(
    settings: Mapping[str, str], service_ports: Collection[tuple[str, int]] = ()
) -> Iterator[RouteFault | CheckedItem]:
    """Too few ports for the connections of a host, and ranges that take or open ports of storage services.
    `service_ports` are those that daemons of this host open, by the service."""
    ports = [int(text) for text in settings.get(_PORT_RANGE_SETTING, "").split() if text.isdigit()]
    reserved = list(_parse_port_ranges(settings.get(_RESERVED_PORTS_SETTING, "")))
    if len(ports) == 2 and ports[1] <= _LAST_PORT:
        yield CheckedItem("a setting", _PORT_RANGE_SETTING)
        first, last = ports
        excluded = len({port for begin, end in reserved for port in range(max(first, begin), min(last, end) + 1)})
        available = last - first + 1 - excluded
        if available <= _MIN_ENOUGH_PORTS:
            setting = _RESERVED_PORTS_SETTING if last - first >= _MIN_ENOUGH_PORTS else _PORT_RANGE_SETTING
            yield RouteFault(
                "few local ports", f"{setting} = {settings[setting]}",
                f"this host has {available} ports for its connections: few connections are possible, and"
                " their hashes use few routers",
                "set it to 32768 60999" if setting == _PORT_RANGE_SETTING else "reserve only the ports of services",
            )  # fmt: skip
        storage_ports = (*_STORAGE_PORTS, *((name, port, port) for name, port in service_ports if port > _NFS_PORTS[1]))
        services = [service for service, begin, end in storage_ports
                 if not _covers_ports(reserved, max(first, begin), min(last, end))]  # fmt: skip
        if services:
            yield RouteFault(
                "ports of storage taken", f"{_PORT_RANGE_SETTING} = {settings[_PORT_RANGE_SETTING]}",
                f"connections of any program may take ports from {first} on, also those of {' and '.join(services)}"
                f" ({', '.join(_format_ports(begin, end) for name, begin, end in storage_ports if name in services)}):"
                " then the service cannot start or connect",
                f"set it to 32768 60999, or name those ports in {_RESERVED_PORTS_SETTING}",
            )  # fmt: skip
    start = settings.get(_FIRST_USER_PORT_SETTING, "")
    if start.isdigit():
        yield CheckedItem("a setting", _FIRST_USER_PORT_SETTING)
        opened = [service for service, _, end in _STORAGE_PORTS if int(start) <= end]
        if opened:
            yield RouteFault(
                "privileged ports open", f"{_FIRST_USER_PORT_SETTING} = {start}",
                f"every user of this host may open ports from {start} on: servers take a port below {_FIRST_USER_PORT}"
                f" as a proof that the system itself connects ({' and '.join(opened)})",
                f"set it to {_FIRST_USER_PORT}",
            )  # fmt: skip
    yield from _check_ports_of_nfs_clients(settings)


def _check_ports_of_nfs_clients(settings: Mapping[str, str]) -> Iterator[RouteFault | CheckedItem]:
    """Too few ports for the connections of NFS mounts, or ports that NFS servers refuse."""
    written = [settings.get(name, "") for name in _NFS_PORT_SETTINGS]
    if not any(text.isdigit() for text in written):
        return
    first, last = (int(text) if text.isdigit() else usual for text, usual in zip(written, _NFS_PORTS, strict=True))
    for name, text in zip(_NFS_PORT_SETTINGS, written, strict=True):
        if text.isdigit():
            yield CheckedItem("a setting", name)
    remedy = f"set {_NFS_PORT_SETTINGS[0]} to {_NFS_PORTS[0]} and {_NFS_PORT_SETTINGS[1]} to {_NFS_PORTS[1]}"
    changed = 0 if written[0].isdigit() and first != _NFS_PORTS[0] else 1
    location = f"{_NFS_PORT_SETTINGS[changed]} = {written[changed]}"
    if last - first + 1 < _MIN_ENOUGH_NFS_PORTS:
        yield RouteFault(
            "few local ports", location,
            f"all NFS connections of this host share {format_count_with_noun(max(0, last - first + 1), 'port')}"
            f" ({first} to {last}): further mounts, and connections after a failure, wait or fail",
            remedy,
        )  # fmt: skip
    elif last >= _FIRST_USER_PORT:
        yield RouteFault(
            "ports refused", location,
            f"NFS connections of this host take ports up to {last}: servers refuse those from {_FIRST_USER_PORT} on"
            " (export option secure)",
            remedy,
        )  # fmt: skip


def _parse_port_ranges(ranges_text: str) -> Iterator[tuple[int, int]]:
    """The ranges of a list such as 988,2049-2051."""
    for match in re.finditer(r"(\d+)(?:-(\d+))?", ranges_text):
        yield int(match[1]), int(match[2] or match[1])


def _covers_ports(port_ranges: list[tuple[int, int]], first_port: int, last_port: int) -> bool:
    """Whether ranges contain all ports from `first_port` to `last_port`; an empty range is covered."""
    return all(any(begin <= port <= end for begin, end in port_ranges) for port in range(first_port, last_port + 1))


def _format_ports(first_port: int, last_port: int) -> str:
    return str(first_port) if first_port == last_port else f"{first_port} to {last_port}"
