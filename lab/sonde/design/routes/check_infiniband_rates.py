# SPDX-License-Identifier: Apache-2.0
"""Checks whether the InfiniBand ports of a host run at the rate that the system file states of their network.

Source: InfiniBand Architecture Specification, volume 1, link widths and speeds; ibstat(8) prints the signaling rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.adapter_outputs import InfiniBandPort
from sonde.design.routes.check_adapters import LEAST_INFINIBAND_RATE
from sonde.design.routes.check_host_firewall import find_device
from sonde.design.routes.fabric import find_link_rates
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.permanent_addresses import (
    get_permanent_address,
    is_infiniband_address,
    shorten_link_address,
)
from sonde.model.system import System
from sonde.model.system.network import Network

_GIGABIT_BYTES = 1e9 / 8
# ibstat prints rates without error correction, 200 of 212.5 Gbit/s; system files may state either, or net of coding.
_CODING_SHARE = 1.1
# Statuses of numbers that nobody has read or measured.
_UNCERTAIN = ("assumed", "fitted")


def find_infiniband_rate_faults(
    system: System, host: str, host_tables: HostTables
) -> Iterator[RouteFault | CheckedItem]:
    """Active ports that are slower than the rate of their network. The GUID of a port is in the link address of its
    interface; ports without an interface may share the rate of the network and count as part of it."""
    devices_by_guid = {
        shorten_link_address(address): device
        for device in host_tables.link_details
        if is_infiniband_address(address := get_permanent_address(device, host_tables))
    }
    active = [port for port in host_tables.infiniband_ports if port.state == "Active"]
    unassigned = [port for port in active if port.guid not in devices_by_guid]
    interfaces = system.find_addresses(host) if host and active else ()
    for network, device in dict.fromkeys(
        (each.network, find_device(each.address or "", each.device, host_tables)) for each in interfaces
    ):
        stated_rate = _find_stated_rate(system, host, network)
        ports = [port for port in active if port.guid and devices_by_guid.get(port.guid) == device]
        if stated_rate is None or len(ports) != 1:
            continue
        yield CheckedItem("the rate of an InfiniBand port", device)
        yield from _compare_rates(ports[0], sum(port.rate for port in unassigned), stated_rate, network, device)


def _compare_rates(
    port: InfiniBandPort, further_rate: float, stated_rate: float, network: str, device: str
) -> Iterator[RouteFault]:
    """A port that is too slow for the stated rate, without further ports that may add to it."""
    rate = port.rate + further_rate
    if port.rate < LEAST_INFINIBAND_RATE or rate * _CODING_SHARE >= stated_rate:
        return
    name = f"{port.adapter} port {port.number}"
    yield RouteFault(
        "slow link", name,
        f"{name} ({device}) runs at {port.rate:g} Gbit/s, and the system file states {stated_rate:g} Gbit/s for"
        f" {network}: its link came up at a lower speed or with fewer lanes",
        "look at the cable and the port of the switch (iblinkinfo, ibdiagnet), or correct the rate of the network in"
        " the system file",
    )  # fmt: skip


def _find_stated_rate(system: System, host: str, network: str) -> float | None:
    """The rate of the interface of a host on an InfiniBand network in Gbit/s; None where it is not certain."""
    table = system.get_part(network).table
    if not isinstance(table, Network) or table.kind != "infiniband":
        return None
    rates = find_link_rates(system, host, network, table)
    quantities = (rates.read, rates.write) if rates is not None else ()
    values = [quantity.value for quantity in quantities if quantity is not None and quantity.status not in _UNCERTAIN]
    return min(values) / _GIGABIT_BYTES if values else None
