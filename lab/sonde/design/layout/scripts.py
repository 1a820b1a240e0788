# SPDX-License-Identifier: Apache-2.0
"""Generates scripts that create a planned layout.

Each script first prints what it would destroy. It refuses disks that hold anything, so that it cannot run twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from sonde.design.layout.block_devices import BlockDevice
from sonde.design.layout.commands import (
    list_declustered_pools,
    list_host_raid_groups,
    list_overwritten_devices,
    list_queue_settings,
    make_mdadm_command,
    make_mkfs_command,
    make_mount_options,
    make_sgdisk_command,
    make_volume_commands,
)
from sonde.design.layout.device_names import DeviceNames, list_bitmap_folders
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.lustre import (
    LustreTarget,
    choose_request_size,
    describe_pool_target,
    divide_spares,
    list_lustre_targets,
    make_mkfs_lustre_command,
)
from sonde.design.layout.placement import LOCAL
from sonde.design.layout.plan import LayoutPlan
from sonde.model.shell import Argument, ShellScript, ShellWord, concatenate_into_word
from sonde.model.system import System
from sonde.model.units import format_bytes

# A script ends at the first command that fails.
_STRICT = "set -eu"
# The beginning of every script, before it writes to a disk. The disks are its positional parameters.
_FUNCTIONS = r"""
queue() { # queue SETTING VALUE DISK...
    setting=$1 value=$2
    shift 2
    for disk; do
        block=/sys/class/block/$(basename "$(readlink -f "$disk")")
        case $setting in
        device/*) # a multipath map is no device: its paths, the disks below it, are
            [ -e "$block/device" ] || block=$(echo "$block"/slaves/*) ;;
        esac
        for path in $block; do
            echo "$value" > "$path/$setting" || echo "$script: $setting of $path was not set to $value." >&2
        done
    done
}
refuse() { echo "$script: $1 Nothing was changed." >&2; exit 3; }
require_mount() { # a file system for write-intent bitmaps
    mountpoint -q "$1" || refuse "$1 is no mounted file system: make one on the drives for write-intent bitmaps."
}
settle() { udevadm settle 2>/dev/null || true; }
slice() { # the device of a partition: sdb1, nvme0n1p1, mpatha-part1
    case $1 in
    */by-*/* | */mapper/*) echo "$1-part$2" ;;
    *[0-9]) echo "$1p$2" ;;
    *) echo "$1$2" ;;
    esac
}
mode=${1:-}
"""
_CHECKS = r"""
if [ "$mode" != go ]; then
    echo "$script would destroy everything on these disks:"
    for disk; do
        echo "  $disk: $(lsblk --nodeps --noheadings --output SIZE,MODEL "$disk" 2>/dev/null || echo 'not there')"
    done
    echo "To do it: sh $script go"
    exit 2
fi
[ "$(id -u)" = 0 ] || refuse "It needs root."
for disk; do
    [ -b "$disk" ] || refuse "$disk is no block device."
    found=$(wipefs --noheadings --output TYPE "$disk" | tr '\n' ' ')
    [ -z "$found" ] || refuse "$disk already holds: $found."
    [ "$(lsblk --noheadings --list --output NAME "$disk" | wc -l)" = 1 ] || refuse "$disk is in use."
done
"""


def make_layout_scripts(plan: LayoutPlan) -> dict[str, str]:
    """Texts by file name: one script for the local file systems, one for each server of targets."""
    local = [
        layout
        for layout in plan.file_systems
        if layout.table.kind in LOCAL and layout.devices and _is_wanted(plan, layout)
    ]
    files = {}
    if local:
        files["layout.sh"] = _make_local_script(plan.system, local)
    for layout in plan.file_systems:
        if layout.table.kind not in LOCAL and layout.devices and layout.targets:
            files |= _make_server_scripts(plan.system, layout)
    return files


def make_file_system_scripts(system: System, layout: FileSystemLayout) -> dict[str, str]:
    """The scripts of one file system, by file name."""
    if not layout.devices:
        return {}
    if layout.table.kind in LOCAL:
        return {"layout.sh": _make_local_script(system, [layout])}
    return _make_server_scripts(system, layout) if layout.targets else {}


def list_command_lines(script_text: str) -> Iterator[str]:
    """The lines of a script that create and set something: those after the checks, without comments."""
    _, _, commands = script_text.rpartition(_CHECKS.strip("\n"))
    for line in commands.splitlines():
        if line and not line.startswith("#") and line != _STRICT:
            yield line


def _is_wanted(plan: LayoutPlan, layout: FileSystemLayout) -> bool:
    """Whether a script creates this file system: a new or required one, or all when nothing was placed."""
    return not plan.new_parts or layout.first_device.id in plan.new_parts or (layout.table.requirement is not None)


def _make_local_script(system: System, layout: Sequence[FileSystemLayout]) -> str:
    device_names = DeviceNames(system)
    body = ShellScript()
    groups, disks, volumes = _list_parts(system, layout)
    used_spares: set[str] = set()
    for group in groups:
        spares = system.find_references(group.id, "spares")
        body.add_blank_line()
        body.add_comment(f"{group.id}: {group.raid_geometry}, segment {format_bytes(group.stripe_unit_bytes or 0)}")
        body.add_command(
            *make_mdadm_command(group, device_names, tuple(spare for spare in spares if spare not in used_spares))
        )
        if used_spares & set(spares):
            body.add_comment(f"it shares a spare: give both arrays one spare-group in mdadm.conf ({', '.join(spares)})")
        used_spares.update(spares)
    _add_pool_comments(body, [device for each in layout if each.table.kind != "zfs" for device in each.devices])
    for disk in disks:
        body.add_blank_line()
        body.add_comment(f"slices of {disk}")
        body.add_command(*make_sgdisk_command(system, disk, device_names))
        body.add_command_chain(["partx", "--update", device_names.make_device_argument(disk)], ["settle"])
    for device in volumes:
        body.add_blank_line()
        body.add_comment(
            f"{device.id}: {len(device.members)} members, {format_bytes(device.stripe_unit_bytes or 0)} on each "
            "before the next"
        )
        for arguments in make_volume_commands(device, device_names):
            body.add_command(*arguments)
    for file_system in layout:
        _add_file_system_commands(body, system, file_system, device_names)
    body.add_blank_line()
    body.add_comment("queues; for good, put these into a udev rule")
    for arguments in _make_queue_commands(layout, device_names):
        body.add_command(*arguments)
    disks_lost = _list_destroyed_disks(system, layout, groups, device_names)
    title = f"{system.id}: {', '.join(file_system.id for file_system in layout)}"
    folders = list_bitmap_folders(system, groups)
    return _make_script("layout.sh", title, disks_lost, device_names, body, folders)


def _add_file_system_commands(
    script: ShellScript, system: System, layout: FileSystemLayout, device_names: DeviceNames
) -> None:
    script.add_blank_line()
    script.add_comment(f"{layout.id}: {layout.table.purpose or 'file system'}")
    arguments = make_mkfs_command(layout, device_names)
    if arguments:
        script.add_command(*arguments)
    else:
        script.add_comment(
            f"{layout.id}: make a file system of kind {layout.table.kind} on {layout.first_device.id} with its own tool"
        )
    _add_mount_commands(script, system, layout, device_names)


def _list_parts(
    system: System, layouts: Sequence[FileSystemLayout]
) -> tuple[list[BlockDevice], list[str], list[BlockDevice]]:
    """Arrays, disks with slices, and volumes, each once, in the order of their creation."""
    groups: dict[str, BlockDevice] = {}
    disks: dict[str, None] = {}
    volumes: dict[str, BlockDevice] = {}
    for layout in layouts:
        for device in (*layout.devices, *([layout.log] if layout.log is not None else [])):
            if layout.table.kind != "zfs":
                groups |= {group.id: group for group in list_host_raid_groups(device)}
            for inner in device.iterate_top_down():
                if inner.kind == "slices":
                    disks |= dict.fromkeys(system.find_references(inner.id, "on"))
                if inner.kind == "volumes" and layout.table.kind != "zfs":
                    volumes.setdefault(inner.id, inner)
    return list(groups.values()), list(disks), list(volumes.values())


def _list_destroyed_disks(
    system: System, layout: Sequence[FileSystemLayout], raid_groups: Sequence[BlockDevice], device_names: DeviceNames
) -> list[Argument]:
    """Disks that the script overwrites from their beginning: drives of arrays, LUNs, or the lowest devices."""
    disks: dict[Argument, None] = {}
    for group in raid_groups:
        disks |= dict.fromkeys(
            device_names.make_device_argument(spare) for spare in system.find_references(group.id, "spares")
        )
    for file_system in layout:
        for device in (*file_system.devices, *([file_system.log] if file_system.log is not None else [])):
            is_pool = file_system.table.kind == "zfs"
            for group in device.list_raid_groups() if is_pool else ():
                spares = system.find_references(group.id, "spares")
                disks |= dict.fromkeys(device_names.make_device_argument(spare) for spare in spares)
            bottom = list_overwritten_devices(device, opens_drives=is_pool)
            disks |= dict.fromkeys(device_names.make_device_argument(part_id) for part_id in bottom)
    return list(disks)


def _add_mount_commands(
    script: ShellScript, system: System, layout: FileSystemLayout, device_names: DeviceNames
) -> None:
    path = next(
        (getattr(mount.table, "path", "") for mount in system.list_parts("mounts")
         if layout.id in system.find_references(mount.id, "file_system")), f"/{layout.id}",
    )  # fmt: skip
    if layout.table.kind == "zfs":
        script.add_command("zfs", "set", f"mountpoint={path}", layout.id)
        return
    if layout.table.kind == "swap":
        script.add_command("printf", "%s\\n", f"for /etc/fstab: LABEL={layout.id[:15]} none swap sw 0 0")
        script.add_command("swapon", device_names.make_device_argument(layout.first_device.id))
        return
    options = make_mount_options(layout, device_names)
    label = layout.id[: 12 if layout.table.kind == "xfs" else 16]
    fstab = concatenate_into_word(f"for /etc/fstab: LABEL={label} {path} {layout.table.kind} ", options, " 0 0")
    script.add_command("printf", "%s\\n", fstab)
    script.add_command_chain(
        ["mkdir", "-p", path], ["mount", "-o", options, device_names.make_device_argument(layout.first_device.id), path]
    )
    if layout.table.purpose == "checkpoint":
        script.add_comment("PBS requires mode 0700 of the checkpoint directory")
        script.add_command("chmod", "0700", path)


def _make_queue_commands(
    layout: Sequence[FileSystemLayout], device_names: DeviceNames, bases: Sequence[BlockDevice] | None = None
) -> Iterator[list[Argument]]:
    """Commands that set queues: of the devices of the layouts, or of `bases`."""
    by_setting: dict[tuple[str, str], dict[Argument, None]] = {}
    done: set[tuple[Argument, str]] = set()
    for file_system in layout:
        for base in file_system.devices if bases is None else bases:
            for device, settings in list_queue_settings(file_system, base, device_names):
                for name, value in settings.items():
                    if (device, name) not in done:
                        done.add((device, name))
                        by_setting.setdefault((name, value), {})[device] = None
    for (name, value), disks in by_setting.items():
        yield ["queue", name, value, *disks]


def _make_server_scripts(system: System, layout: FileSystemLayout) -> dict[str, str]:
    """One script per server, with the targets that it serves in normal operation; for Lustre also its parameters."""
    by_server: dict[str, list[LustreTarget]] = {}
    is_lustre = layout.table.kind == "lustre"
    targets = list(list_lustre_targets(system, layout)) if is_lustre else [
        LustreTarget(name, "", device, system.find_first_reference(name, "server") or "")
        for name, device in zip(layout.targets, layout.devices, strict=False)
    ]  # fmt: skip
    for target in targets:
        by_server.setdefault(target.server or "server", []).append(target)
    files = {}
    spares = divide_spares(system, by_server)
    for server, server_targets in by_server.items():
        name = f"{layout.id}-{server}.sh"
        files[name] = _make_server_script(system, layout, server_targets, name, server, spares[server])
    request = choose_request_size(layout) if is_lustre else None
    if request is not None:
        files[f"{layout.id}-parameters.sh"] = _make_parameter_script(layout, request)
    return files


def _make_server_script(
    system: System,
    layout: FileSystemLayout,
    targets: Sequence[LustreTarget],
    script_name: str,
    server: str,
    server_spares: Collection[str],
) -> str:
    device_names, body = DeviceNames(system), ShellScript()
    used_spares: dict[str, None] = {}
    on_pools = {target.id: text for target in targets if (text := describe_pool_target(system, layout, target))}
    devices = [target.device for target in targets if target.id not in on_pools]
    groups = {group.id: group for device in devices for group in list_host_raid_groups(device)}
    for group in groups.values():
        spares = tuple(spare for spare in system.find_references(group.id, "spares")
                       if spare in server_spares and spare not in used_spares)  # fmt: skip
        used_spares |= dict.fromkeys(spares)
        body.add_blank_line()
        body.add_comment(
            f"{group.id}: {group.raid_geometry}" + ("" if group.stripe_unit_bytes else "; mdadm chooses the chunk")
        )
        body.add_command(*make_mdadm_command(group, device_names, spares))
    _add_pool_comments(body, devices)
    divided = {disk: None for target in targets for inner in target.device.iterate_top_down() if inner.kind == "slices"
               for disk in system.find_references(inner.id, "on")}  # fmt: skip
    for disk in divided:
        body.add_blank_line()
        body.add_comment(f"slices of {disk}")
        body.add_command(*make_sgdisk_command(system, disk, device_names))
        body.add_command_chain(["partx", "--update", device_names.make_device_argument(disk)], ["settle"])
    for target in targets:
        body.add_blank_line()
        body.add_comment(target.id)
        if target.id in on_pools:
            body.add_comment(on_pools[target.id])
        elif layout.table.kind == "lustre":
            body.add_command(*make_mkfs_lustre_command(system, layout, target, device_names))
        else:
            device_text = _format_device(device_names.make_device_argument(target.device.id))
            body.add_comment(f"{layout.table.kind}: give {device_text} to it as {target.id}")
    body.add_blank_line()
    body.add_comment("queues; for good, put these into a udev rule")
    for arguments in _make_queue_commands([layout], device_names, [target.device for target in targets]):
        body.add_command(*arguments)
    bottom = [part_id for device in devices for part_id in list_overwritten_devices(device)]
    disks = [device_names.make_device_argument(disk) for disk in dict.fromkeys((*bottom, *used_spares))]
    folders = list_bitmap_folders(system, list(groups.values()))
    return _make_script(script_name, f"{layout.id} on {server}", disks, device_names, body, folders)


def _add_pool_comments(script: ShellScript, devices: Iterable[BlockDevice]) -> None:
    """Says what makes the declustered pools below."""
    pools = {pool.id: pool for device in devices for pool in list_declustered_pools(device)}
    for pool in pools.values():
        script.add_blank_line()
        script.add_comment(
            f"{pool.id}: make this declustered pool ({pool.raid_geometry} on {len(pool.members)} drives) with the tool"
            " of its controller; mdadm cannot"
        )


def _make_parameter_script(layout: FileSystemLayout, request_kib: int) -> str:
    """Parameters that the management server keeps for all servers: lctl set_param -P works there only."""
    script = ShellScript()
    script.add_comment(
        f"Parameters of {layout.id}. Run it as root on the management server, when its target is mounted."
    )
    script.add_literal_lines(_STRICT)
    script.add_comment("requests of one full stripe to the disks of the OSTs")
    script.add_command("lctl", "set_param", "-P", f"obdfilter.{layout.id[:8]}-*.brw_size={request_kib}")
    return str(script)


def _format_device(device: Argument) -> str:
    return device.script_text if isinstance(device, ShellWord) else str(device)


def _make_script(
    script_name: str,
    script_title: str,
    disks: Sequence[Argument],
    device_names: DeviceNames,
    command_script: ShellScript,
    bitmap_folders: Sequence[str] = (),
) -> str:
    script = ShellScript()
    script.add_comment(
        f"Makes the layout of {script_title}. Where every number comes from: sonde layout plan --explain."
    )
    script.add_comment(f'"sh {script_name}" says what it would destroy; "sh {script_name} go", as root, does it.')
    script.add_comment(
        "Disks that hold anything are refused, so it does not run a second time; empty them with wipefs --all if that"
        " is meant."
    )
    script.add_literal_lines(_STRICT)
    script.assign_variable("script", script_name)
    for unset, meaning in device_names.required_variables.items():
        script.require_variable(unset, meaning)
    script.add_literal_lines(_FUNCTIONS)
    script.add_command("set", "--", *disks)
    script.add_literal_lines(_CHECKS)
    for folder in bitmap_folders:
        script.add_command("require_mount", folder)
    script.append_script(command_script)
    return str(script)
