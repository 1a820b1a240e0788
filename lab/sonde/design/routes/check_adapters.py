# SPDX-License-Identifier: Apache-2.0
"""Checks the adapters of a host: rings, queues, offloads, interrupts and speed of its interfaces (ethtool), and the
state of InfiniBand ports (ibstat).

Source: ethtool(8); Linux Documentation/networking/segmentation-offloads.rst; InfiniBand Architecture Specification,
volume 1, port states.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.interface_details import LinkDetails

# Drivers of fast interfaces begin with rings of 512 and more.
_SMALL_RING = 512
_MANY_CHANNELS = 4
_LATE_INTERRUPT_US = 500
# From this rate on an interrupt for each packet occupies the processors.
_FAST_LINK_MB = 25_000
# A link at a quarter of the fastest mode of its interface, as 25 of 100 Gbit/s, uses one lane of four.
_LANES = 4
_LEAST_SPEED_MB = 1000
# The slowest link of four lanes since 2008, QDR, in Gbit/s.
LEAST_INFINIBAND_RATE = 40
_OFFLOADS = {
    "tcp-segmentation-offload": ("tso", "the processor splits what it sends into single packets"),
    "generic-receive-offload": ("gro", "the processor handles each received packet by itself"),
    "scatter-gather": ("sg", "each packet is copied before it is sent"),
    "rx-checksumming": ("rx", "the processor computes the checksum of each received packet"),
    "tx-checksumming": ("tx", "the processor computes the checksum of each packet that it sends"),
}
# Faults of one port that explain a difference from the other.
_EXPLAINING_KINDS = {"speeds": ("slow link",), "rings": ("packets dropped early",), "queues": ("single queue",),
                     "interrupt delays": ("late interrupts", "interrupt for each packet")}  # fmt: skip
# Settings that the ports of a bond share, with their noun and the option of ethtool that changes them.
_PORT_SETTINGS = {
    "link Speed": ("speeds", ""), "pause RX": ("pause frames", "-A"), "pause TX": ("pause frames", "-A"),
    "ring RX": ("rings", "-G"), "ring TX": ("rings", "-G"), "channels Combined": ("queues", "-L"),
    "coalesce Adaptive RX": ("interrupt delays", "-C"), "coalesce rx-usecs": ("interrupt delays", "-C"),
    "feature rx-gro-hw": ("offloads", "-K"),
}  # fmt: skip


def find_adapter_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Faults of one interface in outputs of ethtool; nothing where none was given."""
    values = host_tables.adapters.get(device_name)
    if not values:
        return
    yield CheckedItem("the adapter of an interface", device_name)
    ring, largest_ring = _read_number(values, "ring RX"), _read_number(values, "maximum ring RX")
    if ring is not None and largest_ring is not None and ring < min(_SMALL_RING, largest_ring / 2):
        yield RouteFault(
            "packets dropped early", device_name,
            f"the ring of {device_name} holds {ring} received packets of at most {largest_ring}: bursts are dropped",
            f"ethtool -G {device_name} rx {largest_ring}",
            versions="joined",  # with the packets that were missed
        )  # fmt: skip
    channels, most_channels = (_read_number(values, f"{prefix}channels Combined") for prefix in ("", "maximum "))
    if channels == 1 and most_channels is not None and most_channels >= _MANY_CHANNELS:
        yield RouteFault(
            "single queue", device_name,
            f"{device_name} has one queue of at most {most_channels}: one processor handles all its packets",
            f"ethtool -L {device_name} combined {most_channels}",
        )  # fmt: skip
    is_connected = host_tables.transport_modes.get(device_name) == "connected"  # IPoIB without offloads then
    for name, (option, effect) in _OFFLOADS.items() if not is_connected else ():
        if values.get(f"feature {name}", "").startswith("off"):
            yield RouteFault(
                "offload off", f"{device_name}: {name}", f"{name} of {device_name} is off: {effect}",
                f"ethtool -K {device_name} {option} on",
            )  # fmt: skip
    delay = _read_number(values, "coalesce rx-usecs")
    if delay is not None and delay > _LATE_INTERRUPT_US:
        yield RouteFault(
            "late interrupts", device_name,
            f"{device_name} reports received packets up to {delay} µs late (rx-usecs), which each small request waits",
            f"ethtool -C {device_name} adaptive-rx on, or rx-usecs 8",
        )  # fmt: skip
    yield from _check_moderation(device_name, values)
    yield from _check_speed(device_name, values)


def _check_moderation(device_name: str, values: Mapping[str, str]) -> Iterator[RouteFault]:
    """Interrupts for each received packet of a fast interface. Drivers that count no packets print n/a."""
    is_adaptive = values.get("coalesce Adaptive RX", "").startswith("on")
    delay, packets = (_read_number(values, f"coalesce {name}") for name in ("rx-usecs", "rx-frames"))
    speed = _read_number(values, "link Speed")
    if speed is None or speed < _FAST_LINK_MB or "coalesce Adaptive RX" not in values:
        return
    if not is_adaptive and delay == 0 and (packets is None or packets <= 1):
        count = "" if packets is None else f", rx-frames {packets}"
        yield RouteFault(
            "interrupt for each packet", device_name,
            f"{device_name} interrupts a processor for each received packet (adaptive-rx off, rx-usecs 0{count}), at"
            f" {speed // 1000} Gbit/s: processors are busy with interrupts, and the rate falls",
            f"ethtool -C {device_name} adaptive-rx on, or rx-usecs 8 rx-frames 128",
        )  # fmt: skip


def find_forwarding_offload_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault]:
    """An offload of a router that forwarded packets do not survive. GRO in hardware (rx-gro-hw) restores packets."""
    if host_tables.adapters.get(device_name, {}).get("feature large-receive-offload", "").startswith("on"):
        yield RouteFault(
            "packets merged before forwarding", f"{device_name}: large-receive-offload",
            f"large-receive-offload of {device_name} is on: it merges received packets into larger ones, which this"
            " router cannot forward as they were, so they are dropped or split anew",
            f"ethtool -K {device_name} lro off",
        )  # fmt: skip


def _check_speed(device_name: str, values: Mapping[str, str]) -> Iterator[RouteFault]:
    """A link in half duplex, or at a fraction of what its interface offers."""
    if values.get("link Duplex") == "Half":
        yield RouteFault(
            "half duplex", device_name, f"{device_name} sends and receives in turn (half duplex)",
            f"let both ends negotiate: ethtool -s {device_name} autoneg on, and the same on the switch",
        )  # fmt: skip
    speed = _read_number(values, "link Speed")
    offered = [int(number) for number in re.findall(r"(\d+)base", values.get("link Supported link modes", ""))]
    best = max(offered, default=0)
    if speed is not None and (speed < _LEAST_SPEED_MB or speed * _LANES <= best):
        yield RouteFault(
            "slow link", device_name,
            f"{device_name} runs at {speed} Mbit/s" + (f", and offers {best} Mbit/s" if best > speed else ""),
            "look at the cable, the transceiver and the speed of the port of the switch",
        )  # fmt: skip


def find_differences_of_ports(
    bond: str, ports: Sequence[str], host_tables: HostTables, port_faults: Collection[str]
) -> Iterator[RouteFault]:
    """Settings that the ports of one bond do not share, as after one adapter was replaced: one fault for all. Those
    that the faults of a port explain (`port_faults`: their kinds) are left out."""
    members = {port: host_tables.adapters[port] for port in ports
               if port in host_tables.adapters and host_tables.links.get(port) != "down"}  # fmt: skip
    differences: dict[str, str] = {}
    commands: list[str] = []
    for name, (noun, command) in _PORT_SETTINGS.items():
        values = {port: each[name] for port, each in members.items() if name in each}
        if noun in differences or len(set(values.values())) < 2 or not _is_difference(name, values, members):
            continue
        if {*port_faults}.intersection(_EXPLAINING_KINDS.get(noun, ())):
            continue
        label = name.partition(" ")[2]
        differences[noun] = f"the {noun} of the ports of {bond} differ: " + ", ".join(
            f"{port} has {label} {value.partition('  ')[0]}" for port, value in values.items()
        )
        commands += [command] if command else []
    if differences:
        look = f" (ethtool {', '.join(dict.fromkeys(commands))})" if commands else ""
        yield RouteFault(
            "bond ports differ", ", ".join(members), "; ".join(differences.values()),
            f"give both ports the same settings{look}, and their switch ports too",
        )  # fmt: skip


def _is_difference(name: str, value_by_port: Mapping[str, str], members: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether unlike values of ports are a fault: not where an adapter cannot do more, or adapts its delays itself."""
    if name.startswith(("ring ", "channels ")):
        numbers = {port: int(value) for port, value in value_by_port.items() if value.isdigit()}
        limits = {port: _read_number(members[port], f"maximum {name}") for port in numbers}
        least = min(numbers, key=lambda port: numbers[port], default="")
        limit = limits.get(least)
        return len(numbers) == len(value_by_port) and (limit is None or numbers[least] < limit)
    if name == "coalesce rx-usecs":
        return not any(members[port].get("coalesce Adaptive RX", "").startswith("on") for port in value_by_port)
    if name == "coalesce Adaptive RX" or name.startswith("feature "):
        return len({value.split()[0] for value in value_by_port.values()}) > 1
    return True


def find_infiniband_faults(host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Ports of InfiniBand that are slow or without a subnet manager; a port without a cable is none."""
    for port in host_tables.infiniband_ports:
        name = f"{port.adapter} port {port.number}"
        if port.state not in ("Active", "Initializing", "Armed"):
            continue
        yield CheckedItem("an InfiniBand port", name)
        if port.state != "Active" or port.manager == 0:
            yield RouteFault(
                "no subnet manager", name,
                f"{name} is in the state {port.state} with SM lid {max(0, port.manager)}: no subnet manager has"
                " configured it, so IPoIB and RDMA do not work",
                "start the subnet manager of this fabric (opensm, or that of the switch), and look at its log",
            )  # fmt: skip
        elif port.rate < LEAST_INFINIBAND_RATE:
            yield RouteFault(
                "slow link", name,
                f"{name} runs at {port.rate:g} Gbit/s: its link has lost lanes or speed",
                "look at the cable and the port of the switch (iblinkinfo, ibdiagnet)",
            )  # fmt: skip


def list_adapter_settings_not_examined(host_tables: HostTables) -> Iterator[str]:
    """Programs and pause frames of interfaces that may be right or wrong."""
    planned = {*host_tables.planned_devices}
    for device, details in host_tables.link_details.items():
        if details.packet_program:
            yield f"what the program {details.packet_program} (XDP) of {device} does with received packets"
    silent = [
        device
        for device, values in host_tables.adapters.items()
        if planned & {device, host_tables.link_details.get(device, LinkDetails()).master}
        and all(values.get(f"pause {direction}", "").startswith("off") for direction in ("RX", "TX"))
    ]
    if silent:
        yield f"pause frames, which are off on {', '.join(silent)} (right where the switch uses priorities or none)"


def _read_number(values: Mapping[str, str], name: str) -> int | None:
    match = re.match(r"\d+", values.get(name, ""))
    return int(match[0]) if match else None
