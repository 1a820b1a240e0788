# SPDX-License-Identifier: Apache-2.0
"""Commands that create the targets of a Lustre file system: management and metadata targets, OSTs, service nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sonde.design.layout.block_devices import BlockDevice, resolve_block_device
from sonde.design.layout.commands import is_zfs_volume, list_host_raid_groups
from sonde.design.layout.device_names import DeviceNames
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.geometry import MIB
from sonde.model.shell import Argument, ShellWord, concatenate_into_word, make_variable_reference
from sonde.model.system import System

# obdfilter.*.brw_size in MiB: the default since Lustre 2.10, and the largest.
_DEFAULT_REQUEST, _LARGEST_REQUEST = 4, 16


@dataclass(frozen=True)
class LustreTarget:
    """One target with its device and its server ("" when the file names none)."""

    id: str
    kind: str  # mgt, mdt, ost
    device: BlockDevice
    server: str


def list_lustre_targets(system: System, layout: FileSystemLayout) -> Iterator[LustreTarget]:
    """The targets whose device is described, in the order in which they must be created: MGT, MDTs, OSTs."""
    for kind in ("mgt", "mdt"):
        for name in system.find_targets(layout.id, kind):
            below = system.find_references(name, "on")
            if below:
                server = system.find_first_reference(name, "server") or ""
                yield LustreTarget(name, kind, resolve_block_device(system, below[0]), server)
    for name, device in zip(layout.targets, layout.devices, strict=False):
        yield LustreTarget(name, "ost", device, system.find_first_reference(name, "server") or "")


def describe_pool_target(system: System, layout: FileSystemLayout, target: LustreTarget) -> str:
    """What makes a target on a pool of ZFS, which no script does; empty for another target."""
    if not is_zfs_volume(target.device):
        return ""
    vdevs = ", ".join(f"{group.id} {group.raid_geometry}" for group in target.device.list_raid_groups())
    text = f"it is on the ZFS pool {target.device.id} ({vdevs}), which this script does not make: use zpool create"
    if layout.table.kind != "lustre":
        return text
    role = " ".join(str(option) for option in _make_role_options(system, layout, target))
    return f"{text}, then mkfs.lustre {role} --backfstype=zfs {target.device.id}/{target.id}"


def divide_spares(system: System, targets_by_server: Mapping[str, Sequence[LustreTarget]]) -> dict[str, set[str]]:
    """The spares of each server. md of two servers must not use one drive: spares of arrays on several servers are
    divided among these in turn."""
    servers_by_spare: dict[str, list[str]] = {}
    for server, targets in targets_by_server.items():
        groups = [group.id for target in targets for group in list_host_raid_groups(target.device)]
        for spare in dict.fromkeys(spare for group in groups for spare in system.find_references(group, "spares")):
            servers_by_spare.setdefault(spare, []).append(server)
    divided: dict[str, set[str]] = {server: set() for server in targets_by_server}
    turns: dict[tuple[str, ...], int] = {}
    for spare, names in servers_by_spare.items():
        servers = tuple(names)
        turn = turns[servers] = turns.get(servers, -1) + 1
        divided[servers[turn % len(servers)]].add(spare)
    return divided


def find_management_servers(system: System, layout: FileSystemLayout) -> tuple[str, ...]:
    """The server of the management target and its failover server; without such a target, those of the first MDT."""
    for kind in ("mgt", "mdt"):
        for name in system.find_targets(layout.id, kind)[:1]:
            servers = (system.find_first_reference(name, "server"), system.find_failover_server(name))
            if servers[0]:
                return tuple(server for server in servers if server)
    return ()


def make_lnet_ids(system: System, servers: tuple[str, ...], device_names: DeviceNames) -> list[Argument]:
    """The LNet ids of servers; a variable for a server whose id is not described."""
    nids: list[Argument] = []
    for server in servers:
        described = [address.nid for address in system.find_addresses(server) if address.nid]
        if described:
            nids.append(",".join(described))
            continue
        name = "NID_" + re.sub(r"[^A-Z0-9]", "_", server.upper())
        device_names.required_variables[name] = f"the LNet id of {server}, like 10.0.0.1@o2ib"
        nids.append(make_variable_reference(name))
    return nids


def make_mkfs_lustre_command(
    system: System, layout: FileSystemLayout, target: LustreTarget, device_names: DeviceNames
) -> list[Argument]:
    """mkfs.lustre for one target on ldiskfs."""
    arguments: list[Argument] = ["mkfs.lustre", *_make_role_options(system, layout, target)]
    if "--mgs" not in arguments:
        arguments += _make_mgsnode_options(system, layout, device_names)
    if target.server:
        failover = system.find_failover_server(target.id)
        if failover:
            # both servers by the same option: either of them may mount the target first
            servers = (target.server, failover)
            arguments += [
                concatenate_into_word("--servicenode=", nid) for nid in make_lnet_ids(system, servers, device_names)
            ]
    arguments.append("--backfstype=ldiskfs")
    if target.kind != "mgt":
        arguments.append(_make_mkfs_options(system, target, device_names))
    return [*arguments, device_names.make_device_argument(target.device.id)]


def _make_role_options(system: System, layout: FileSystemLayout, target: LustreTarget) -> list[Argument]:
    if target.kind == "mgt":
        return ["--mgs"]
    item = system.get_part(target.id)
    index = int(getattr(item.table, "index", None) or 0) + item.position
    role: list[Argument] = [f"--{target.kind}"]
    if target.kind == "mdt" and index == 0 and not system.find_targets(layout.id, "mgt"):
        role.append("--mgs")  # no management target is described: the first MDT holds it
    return [*role, f"--fsname={layout.id[:8]}", f"--index={index}"]


def _make_mgsnode_options(system: System, layout: FileSystemLayout, device_names: DeviceNames) -> list[Argument]:
    servers = find_management_servers(system, layout)
    if not servers:
        device_names.required_variables["MGS_NID"] = "the LNet id of the management server, like 10.0.0.1@o2ib"
        return [concatenate_into_word("--mgsnode=", make_variable_reference("MGS_NID"))]
    return [concatenate_into_word("--mgsnode=", nid) for nid in make_lnet_ids(system, servers, device_names)]


def _make_mkfs_options(system: System, target: LustreTarget, device_names: DeviceNames) -> ShellWord:
    options = "-b 4096"
    device = target.device
    if device.stripe_unit_bytes and device.full_stripe_bytes:
        options += f" -E stride={device.stripe_unit_bytes // 4096},stripe_width={device.full_stripe_bytes // 4096}"
    journal = system.find_first_reference(target.id, "journal")
    shared = (
        sum(journal == system.find_first_reference(item.id, "journal") for item in system.list_parts("targets")) > 1
    )
    # a device holds one journal: a shared one must be divided into slices first
    if journal is None or shared:
        return concatenate_into_word("--mkfsoptions=", f"{options} -J size=4096")
    return concatenate_into_word("--mkfsoptions=", f"{options} -J device=", device_names.make_device_argument(journal))


def choose_request_size(layout: FileSystemLayout) -> int | None:
    """The size of requests to the disks of OSTs in MiB: one full stripe, but never below the default of Lustre; None
    when no stripe is known or the default is right."""
    stripes = [device.full_stripe_bytes for device in layout.devices if device.full_stripe_bytes]
    if not stripes:
        return None
    wanted = -(-max(stripes) // MIB)
    power = next((size for size in (4, 8, 16) if size >= wanted), _LARGEST_REQUEST)
    return power if power > _DEFAULT_REQUEST else None
