# SPDX-License-Identifier: Apache-2.0
"""Checks whether the queueing discipline of an interface delays, drops or limits its packets.

Source: tc-htb(8), tc-hfsc(8), tc-tbf(8), tc-cake(8), tc-netem(8), tc-fq(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_counters import MIN_DROPPED_SENT, MIN_PACKETS
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.link_usability import list_bond_ports, list_devices_below
from sonde.design.routes.queue_outputs import QueueEntry, parse_rate
from sonde.model.units import format_count_with_noun, format_rate

SLOWED_DOWN = "interface slowed down"
_FEW_PACKETS = 32
# Disciplines that limit packets, as far as `ip addr` tells, and those that have classes.
_LIMITING_KINDS = ("netem", "tbf", "htb", "hfsc", "cbq", "blackhole", "noop")
_CLASSFUL_KINDS = ("htb", "hfsc")
_RATE_OPTIONS = {"tbf": "rate", "cake": "bandwidth", "fq": "maxrate", "netem": "rate"}
# Options of netem that delay or drop packets, with the words of a sentence.
_NETEM_EFFECTS = (
    (re.compile(r"\bdelay (\S+)"), "delays each packet by {}"),
    (re.compile(r"\bloss (?:random |state |gemodel )?(?:p )?(\S+)"), "loses {} of them"),
    (re.compile(r"\bcorrupt (\S+)"), "corrupts {} of them"),
    (re.compile(r"\bduplicate (\S+)"), "duplicates {} of them"),
    (re.compile(r"\breorder (\S+)"), "changes the order of {} of them"),
)
# A class that carries this share of the packets is one of planned traffic.
_MOST_PACKETS = 0.5
# A limit of this share of the rate is the rate, less what Ethernet adds to each packet.
_SAME_RATE = 0.9


def find_queue_faults(device_name: str, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """A queue of an interface that slows it down or holds few packets: by the output of tc, else by that of ip."""
    entries = [entry for entry in host_tables.queues if entry.device == device_name]
    details = host_tables.link_details.get(device_name)
    if not entries and details is None:
        return
    yield CheckedItem("the queue of the interface", device_name)
    kinds = {entry.kind for entry in entries} or {details.queue if details is not None else ""}
    if entries:
        yield from _check_entries(device_name, entries, host_tables)
    elif kinds & {*_LIMITING_KINDS}:
        yield _describe_slow_queue(
            device_name, f"the queueing discipline of {device_name} is {kinds.pop()}, which delays, drops or limits"
            " packets",
        )  # fmt: skip
    if "noqueue" in kinds and "ring TX" in host_tables.adapters.get(device_name, {}):
        yield _describe_slow_queue(
            device_name, f"{device_name} has no queue (noqueue), which is for virtual devices: the kernel drops each"
            " packet that the rings of the adapter have no room for",
        )  # fmt: skip
    length = details.queue_length if details is not None else None
    if length is not None and length < _FEW_PACKETS and (length or not kinds <= {"", "noqueue"}):
        yield RouteFault(
            "short queue", device_name,
            f"the queue of {device_name} holds {format_count_with_noun(length, 'packet')} (qlen): bursts "
            "are dropped",
            f"ip link set {device_name} txqueuelen 1000",
        )  # fmt: skip


def _describe_slow_queue(device_name: str, problem: str, remedy: str = "") -> RouteFault:
    return RouteFault(SLOWED_DOWN, device_name, problem, remedy or f"tc qdisc del dev {device_name} root")


def _check_entries(device_name: str, entries: Sequence[QueueEntry], host_tables: HostTables) -> Iterator[RouteFault]:
    """The first effect of the disciplines of a device: packets that it drops follow from a limit."""
    limits = [fault for entry in entries if not entry.is_class
              for fault in _check_discipline(device_name, entry, entries, host_tables)]  # fmt: skip
    yield from limits[:1]
    root = next((entry for entry in entries if entry.parent == "root" and not entry.is_class), None)
    if limits or root is None or root.sent is None or not root.dropped:
        return
    packets = root.sent + root.dropped
    if packets >= MIN_PACKETS and root.dropped >= MIN_DROPPED_SENT * packets:
        yield RouteFault(
            "packets not sent", device_name,
            f"the queueing discipline of {device_name} ({root.kind}) dropped {root.dropped} of {packets} packets: it is"
            " too short for bursts, or the link too slow for what is sent",
            f"look at its limit (tc -s qdisc show dev {device_name}), its rate (ethtool {device_name}) and its pause"
            f" frames (ethtool -S {device_name}); ip link set {device_name} txqueuelen 10000 makes it longer",
        )  # fmt: skip


def _check_discipline(
    device_name: str, entry: QueueEntry, entries: Sequence[QueueEntry], host_tables: HostTables
) -> Iterator[RouteFault]:
    discipline = f"the queueing discipline of {device_name} ({entry.kind})"
    dropped = f", and has dropped {entry.dropped} packets" if entry.dropped else ""
    if entry.kind == "netem":
        effects = [text.format(match[1]) for form, text in _NETEM_EFFECTS
                   if (match := form.search(entry.options))]  # fmt: skip
        if effects:
            yield _describe_slow_queue(device_name, f"{discipline} {', '.join(effects)}{dropped}")
    elif entry.kind in ("blackhole", "noop"):
        yield _describe_slow_queue(device_name, f"{discipline} drops each packet")
    elif entry.kind in _CLASSFUL_KINDS:
        yield from _check_classes(device_name, entry, entries, host_tables)
    elif entry.kind in ("pfifo", "bfifo") and entry.parent == "root":
        yield from _check_length(device_name, entry)
    limit = entry.find_rate(_RATE_OPTIONS.get(entry.kind, ""))
    if limit is not None and (comparison := _compare_rate(device_name, limit, host_tables)) is not None:
        object_noun = "each connection" if entry.kind == "fq" else "it"
        yield _describe_slow_queue(device_name, f"{discipline} limits {object_noun} to {comparison}{dropped}")


def _check_length(device_name: str, entry: QueueEntry) -> Iterator[RouteFault]:
    """A root discipline that holds few packets, or less than two packets' bytes for each of them."""
    number = re.match(r"(\d+)(K?)", entry.find_option("limit"))
    if number is None:
        return
    packets = int(number[1]) * (1024 if number[2] else 1) // (1 if entry.kind == "pfifo" else 1500)
    if packets < _FEW_PACKETS:
        yield RouteFault(
            "short queue", device_name,
            f"the queueing discipline of {device_name} ({entry.kind}) holds {entry.find_option('limit')} (limit):"
            " bursts are dropped",
            f"tc qdisc del dev {device_name} root",
        )  # fmt: skip


def _check_classes(
    device_name: str, root: QueueEntry, entries: Sequence[QueueEntry], host_tables: HostTables
) -> Iterator[RouteFault]:
    """The limit of the class that packets get without a filter, or that most packets have taken."""
    prefix = root.handle
    classes = {entry.handle: entry for entry in entries if entry.is_class and entry.handle.startswith(prefix)}
    default_text = root.find_option("default").removeprefix("0x") or "0"
    if not classes:
        if root.kind == "hfsc" or default_text != "0":
            yield _describe_slow_queue(
                device_name, f"the queueing discipline of {device_name} is {root.kind}, which limits packets by the"
                " rates of its classes, and no output has these",
                f"tc -s class show dev {device_name} prints the rates; tc qdisc del dev {device_name} root",
            )  # fmt: skip
        return
    default = f"{prefix}{default_text}"
    if root.kind == "hfsc" and default not in classes:
        yield _describe_slow_queue(
            device_name, f"the queueing discipline of {device_name} (hfsc) has no class {default} (default): it drops"
            " each packet that no filter gives to a class",
            f"tc qdisc change dev {device_name} root handle {prefix} hfsc default"
            f" {next(iter(classes)).partition(':')[2]}",
        )  # fmt: skip
        return
    total = sum(entry.sent or 0 for entry in _list_leaves(classes))
    used = [entry for entry in _list_leaves(classes)
            if entry.handle == default or (total and (entry.sent or 0) >= _MOST_PACKETS * total)]  # fmt: skip
    for entry in used:
        limit, limiting = _find_limit(entry, classes)
        if limit is None or (comparison := _compare_rate(device_name, limit, host_tables)) is None:
            continue
        dropped = f", and has dropped {entry.dropped} packets" if entry.dropped else ""
        option = "ceil" if root.kind == "htb" else "ul"
        yield _describe_slow_queue(
            device_name,
            f"the class {limiting.handle} of {device_name} ({root.kind}) limits"
            f" {'packets that no filter selects' if entry.handle == default else 'most packets'} to"
            f" {comparison}{dropped}",
            f"raise its {option} to the rate of the interface (tc class change dev {device_name} classid"
            f" {limiting.handle} {root.kind} …), or tc qdisc del dev {device_name} root; also where it is added",
        )  # fmt: skip
        return


def _list_leaves(classes: dict[str, QueueEntry]) -> list[QueueEntry]:
    parents = {entry.parent for entry in classes.values()}
    return [entry for handle, entry in classes.items() if handle not in parents]


def _find_limit(entry: QueueEntry, classes: dict[str, QueueEntry]) -> tuple[float | None, QueueEntry]:
    """The least limit of a class and of those above it, in bytes per second, and the class that has it."""
    limit, limiting, visited = None, entry, set[str]()
    current: QueueEntry | None = entry
    while current is not None and current.handle not in visited:
        visited.add(current.handle)
        class_limit = current.find_rate("ceil")
        if current.kind == "hfsc":
            upper = re.search(r"\bul (?:m1 \S+ d \S+ )?m2 (\S+)", current.options)
            class_limit = parse_rate(upper[1]) if upper is not None else None
        if class_limit is not None and (limit is None or class_limit < limit):
            limit, limiting = class_limit, current
        current = classes.get(current.parent)
    return limit, limiting


def _compare_rate(device_name: str, limit: float, host_tables: HostTables) -> str | None:
    """The limit of an interface in words, None where the interface is not faster."""
    rate = find_interface_rate(device_name, host_tables)
    if rate is None:
        return f"{format_rate(limit)} (the system file states no rate of {device_name}: state it where it is this one)"
    return None if limit >= _SAME_RATE * rate else f"{format_rate(limit)} of {format_rate(rate)}"


def find_interface_rate(device_name: str, host_tables: HostTables) -> float | None:
    """The rate of an interface in bytes per second: what ethtool prints, else what the system file states of it or of
    the VLAN or bond above it, to which each port of a bond adds its part."""
    speed = re.match(r"\d+", host_tables.adapters.get(device_name, {}).get("link Speed", ""))
    if speed is not None:
        return int(speed[0]) * 125_000.0
    for planned, rate in host_tables.planned_rates.items():
        carriers = (planned, *list_devices_below(planned, host_tables))
        if device_name in carriers:
            return rate
        for carrier in carriers:
            ports = list_bond_ports(carrier, host_tables)
            if device_name in ports:
                return rate / len(ports)
    return None
