# SPDX-License-Identifier: Apache-2.0
"""Explains a system file: its parts, values derived from them, and all members of one part."""

from __future__ import annotations

from collections.abc import Iterator

from sonde.design.checked_items import join_first_names
from sonde.model.ranges import fold_names_into_ranges
from sonde.model.system import System
from sonde.model.system.description import PART_KINDS
from sonde.model.system.network import Host, Network
from sonde.model.system.service import FileSystem, Mount
from sonde.model.tables.members import get_default_of_member, get_members
from sonde.model.tables.quantity import Quantity, ReadWriteRates
from sonde.model.units import format_bytes, format_count_with_noun

_LONGEST_LIST = 8
# Nouns of kinds of parts that are not their plural without its "s".
_PART_NOUNS = {"raid_groups": "RAID group", "luns": "LUN", "telemetry": "telemetry source"}


def count_parts(system: System) -> dict[str, int]:
    """Parts by kind, without kinds that the system has none of."""
    return {kind: len(system.list_parts(kind)) for kind in PART_KINDS if system.list_parts(kind)}


def describe_part_counts(system: System) -> str:
    """The parts by kind, as "1 network, 5,588 nodes"; empty without parts."""
    return ", ".join(
        format_count_with_noun(count, _PART_NOUNS.get(kind, kind.removesuffix("s").replace("_", " ")))
        for kind, count in count_parts(system).items()
    )


def describe_system(system: System) -> Iterator[str]:
    """Lines that explain a system: kinds of parts, networks, file systems, mounts, notes."""
    yield f"{system.title or system.id}: {describe_part_counts(system)}."
    yield f"Read from {', '.join(system.files)}."
    for item in system.list_parts("networks"):
        yield _describe_network(system, item.id, item.table)
    for item in system.list_parts("file_systems"):
        yield from _describe_file_system(system, item.id, item.table)
    for item in system.list_parts("mounts"):
        if isinstance(item.table, Mount):
            file_system = system.find_first_reference(item.id, "file_system")
            through = "" if item.table.through == "native" else f" through {item.table.through}"
            via = system.find_references(item.id, "via")
            by = f" by {_fold_many_names(via)}" if via else ""
            yield f"mount {item.id}: {file_system} at {item.table.path}{through}{by}"
    for note in system.notes:
        yield f"! {note}"


def _fold_many_names(names: tuple[str, ...]) -> str:
    return fold_names_into_ranges(list(names[:10000])) if names else ""


def _describe_network(system: System, network_id: str, part_table: object) -> str:
    assert isinstance(part_table, Network)
    facts = [part_table.kind, *part_table.addresses]
    if part_table.lnet:
        facts.append(f"LNet {part_table.lnet}")
    if part_table.rate is not None and part_table.rate.read is not None:
        facts.append(f"{part_table.rate.read.text} a link")
    if part_table.mtu is not None:
        facts.append(f"MTU {part_table.mtu.text}")
    for kind in ("nodes", "routers", "servers"):
        joined = tuple(
            item.id for item in system.list_parts(kind)
            if any(address.network == network_id for address in system.find_addresses(item.id))
        )  # fmt: skip
        if joined:
            facts.append(f"{len(joined):,} {kind}")
    return f"network {network_id}: {', '.join(facts)}"


def _describe_file_system(system: System, file_system_id: str, part_table: object) -> Iterator[str]:
    assert isinstance(part_table, FileSystem)
    targets = system.find_targets(file_system_id)
    facts = [part_table.kind]
    if part_table.requirement is not None and not part_table.device and not targets:
        facts.append("required, not laid out yet (sonde layout plan)")
    capacities = [system.compute_capacity(target) for target in targets]
    known_capacities = [capacity for capacity in capacities if capacity is not None]
    if part_table.device:
        device = system.find_first_reference(file_system_id, "device")
        capacity = system.compute_capacity(device) if device else None
        size = format_bytes(capacity) if capacity is not None else "an unknown capacity"
        facts.append(f"on {device}, {size}")
    if targets:
        servers = tuple(
            dict.fromkeys(server for target in targets if (server := system.find_first_reference(target, "server")))
        )
        partly = "" if len(known_capacities) == len(capacities) else f" of {len(known_capacities):,} that state one"
        size = f", {format_bytes(sum(known_capacities))}{partly}" if known_capacities else ", capacity unknown"
        facts.append(format_count_with_noun(len(targets), "target") + size)
        if servers:
            failover = sum(system.find_failover_server(target) is not None for target in targets)
            facts.append(
                f"{format_count_with_noun(len(servers), 'server')} ({_fold_many_names(servers)}), {failover:,} "
                "targets with failover"
            )
    yield f"file system {file_system_id}: {'; '.join(facts)}"


def describe_part(system: System, part_id: str) -> Iterator[str]:
    """Lines about one part: its members with their sources, its references, and who refers to it. Raises
    SystemFileError."""
    item = system.get_part(part_id)
    source = system.index.get_source(item.table)
    table_id = f", number {item.position + 1} of {item.table.id}" if item.total > 1 else ""
    yield f"{part_id}: one of {item.kind}{table_id}, from {source.origin}"
    for member_name, member in get_members(type(item.table)).items():
        value = getattr(item.table, member_name)
        if member_name == "id" or value == get_default_of_member(type(item.table), member_name):
            continue
        if member.kind == "ids":
            yield f"  {member_name}: {_fold_many_names(system.find_references(part_id, member_name))}"
        elif member.kind not in ("tables", "table"):
            yield f"  {member_name}: {_format_member_value(value)}"
    if isinstance(item.table, Host):
        for address in system.find_addresses(part_id):
            texts = (address.device, address.address or "", address.nid or "")
            yield f"  on {address.network}: {' '.join(text for text in texts if text) or 'no address'}"
    if item.kind in ("drives", "raid_groups", "luns", "slices", "volumes", "targets"):
        capacity = system.compute_capacity(part_id)
        yield f"  offers: {format_bytes(capacity) if capacity is not None else 'unknown: drives or size are missing'}"
    users = sorted(set(_iterate_referring_parts(system, part_id)))
    if users:
        yield f"  used by: {join_first_names(users, _LONGEST_LIST)}"


def _format_member_value(member_value: object) -> str:
    if isinstance(member_value, Quantity):
        remarks = [text for text in (member_value.status, member_value.source, member_value.note) if text]
        return member_value.text + (f" ({'; '.join(remarks)})" if remarks else "")
    if isinstance(member_value, ReadWriteRates):
        both = {"read": member_value.read, "write": member_value.write}
        texts = {name: _format_member_value(rate) for name, rate in both.items() if rate is not None}
        same = len(set(texts.values())) == 1 and len(texts) == 2
        return texts["read"] if same else ", ".join(f"{name} {text}" for name, text in texts.items())
    if isinstance(member_value, tuple):
        return ", ".join(str(entry) for entry in member_value)
    if isinstance(member_value, dict):
        return ", ".join(f"{name} = {_format_member_value(entry)}" for name, entry in member_value.items())
    return str(member_value)


def _iterate_referring_parts(system: System, part_id: str) -> Iterator[str]:
    """Parts that name this one."""
    for kind in PART_KINDS:
        for item in system.list_parts(kind):
            for member_name, member in get_members(type(item.table)).items():
                is_used = member.kind == "ids" and getattr(item.table, member_name)
                if is_used and part_id in system.find_references(item.id, member_name):
                    yield item.id
