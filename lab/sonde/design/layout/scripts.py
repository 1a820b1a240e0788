# SPDX-License-Identifier: Apache-2.0
"""The plan as scripts for an administrator.

Each says first what it would destroy, and refuses disks that hold anything, so that it cannot run twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.layout.devices import Devices
from sonde.design.layout.laid import Laid
from sonde.design.layout.making import (
    array,
    lustre_target,
    made_by_host,
    make_file_system,
    mount_options,
    partitions,
    queue_settings,
    volume,
)
from sonde.design.layout.plan import LayoutPlan
from sonde.design.layout.planner import LOCAL
from sonde.design.layout.stores import Store
from sonde.model.system import System
from sonde.model.units import format_bytes

_HEAD = r"""#!/bin/sh
# Makes the layout of {what}. Where every number comes from: sonde layout plan --explain.
# "sh {name}" says what it would destroy; "sh {name} go", as root, does it.
# Disks that hold anything are refused, so it does not run a second time; empty them with wipefs --all if that is meant.
set -eu
{variables}
disks="{disks}"
queue() {{ # queue SETTING VALUE DISK...
    setting=$1 value=$2
    shift 2
    for disk; do
        file=/sys/class/block/$(basename "$(readlink -f "$disk")")/$setting
        echo "$value" > "$file" || echo "{name}: $setting of $disk was not set to $value." >&2
    done
}}
refuse() {{ echo "{name}: $1 Nothing was changed." >&2; exit 3; }}
slice() {{ # the device of a partition: sdb1, nvme0n1p1, mpatha-part1
    case $1 in
    */by-*/* | */mapper/*) echo "$1-part$2" ;;
    *[0-9]) echo "$1p$2" ;;
    *) echo "$1$2" ;;
    esac
}}
if [ "${{1:-}}" != go ]; then
    echo "{name} would destroy everything on these disks:"
    for disk in $disks; do
        echo "  $disk: $(lsblk --nodeps --noheadings --output SIZE,MODEL "$disk" 2>/dev/null || echo 'not there')"
    done
    echo "To do it: sh {name} go"
    exit 2
fi
[ "$(id -u)" = 0 ] || refuse "It needs root."
for disk in $disks; do
    [ -b "$disk" ] || refuse "$disk is no block device."
    found=$(wipefs --noheadings --output TYPE "$disk" | tr '\n' ' ')
    [ -z "$found" ] || refuse "$disk already holds: $found."
    [ "$(lsblk --noheadings --list --output NAME "$disk" | wc -l)" = 1 ] || refuse "$disk is in use."
done
"""
_ASKED = ': "${{{variable}:?set it to {what}}}"'


def scripts_of(plan: LayoutPlan) -> dict[str, str]:
    """Name of a file and its text: one script for the local file systems, one for each server of targets."""
    local = [one for one in plan.file_systems if one.table.kind in LOCAL and one.stores and _wanted(plan, one)]
    files = {}
    if local:
        files["layout.sh"] = _local(plan.system, local)
    for one in plan.file_systems:
        if one.table.kind not in LOCAL and one.stores and one.targets:
            files |= _servers(plan.system, one)
    return files


def _wanted(plan: LayoutPlan, one: Laid) -> bool:
    """Where wishes were placed, only what is new is made; else everything that is described."""
    return not plan.made or one.store.id in plan.made or (one.table.wanted is not None)


def _local(system: System, laid: Sequence[Laid]) -> str:
    devices = Devices(system)
    body = []
    groups, disks, volumes = _parts(system, laid)
    given: set[str] = set()
    for group in groups:
        body += ["", f"# {group.id}: {group.geometry}, segment {format_bytes(group.unit or 0)}"]
        spares = system.references(group.id, "spares")
        body.append(array(group, devices, tuple(one for one in spares if one not in given)))
        if given & set(spares):
            body.append(f"# it shares a spare: give both arrays one spare-group in mdadm.conf ({', '.join(spares)})")
        given.update(spares)
    for disk in disks:
        body += ["", f"# slices of {disk}", *partitions(system, disk, devices)]
    for store in volumes:
        each = format_bytes(store.unit or 0)
        body += ["", f"# {store.id}: {len(store.members)} members, {each} on each before the next"]
        body += volume(store, devices)
    for one in laid:
        body += ["", f"# {one.id}: {one.table.purpose or 'file system'}", make_file_system(one, devices)]
        body += _mounting(system, one, devices)
    body += ["", "# queues; for good, put these into a udev rule", *_queues(laid, devices)]
    whole = _destroyed(system, laid, groups, devices)
    return _script("layout.sh", f"{system.id}: {', '.join(one.id for one in laid)}", whole, devices, body)


def _parts(system: System, laid: Sequence[Laid]) -> tuple[list[Store], list[str], list[Store]]:
    """Arrays, disks with slices, and volumes, each once, in the order in which they are made."""
    groups: dict[str, Store] = {}
    disks: dict[str, None] = {}
    volumes: dict[str, Store] = {}
    for one in laid:
        for store in (*one.stores, *([one.log] if one.log is not None else [])):
            if one.table.kind != "zfs":
                groups |= {group.id: group for group in made_by_host(store)}
            for inner in store.walk():
                if inner.kind == "slices":
                    disks |= dict.fromkeys(system.references(inner.id, "on"))
                if inner.kind == "volumes" and one.table.kind != "zfs":
                    volumes.setdefault(inner.id, inner)
    return list(groups.values()), list(disks), list(volumes.values())


def _destroyed(system: System, laid: Sequence[Laid], groups: Sequence[Store], devices: Devices) -> list[str]:
    """Disks that the script writes to from their beginning: drives of arrays, LUNs, or what there is at the bottom."""
    found: dict[str, None] = {}
    for group in groups:
        found |= dict.fromkeys(devices.of(one) for one in system.references(group.id, "spares"))
    for one in laid:
        for store in (*one.stores, *([one.log] if one.log is not None else [])):
            luns = [inner for inner in store.walk() if inner.kind == "luns"]
            bottom = luns or [inner for inner in store.walk() if not inner.members]
            found |= dict.fromkeys(devices.of(inner.id) for inner in bottom)
    return list(found)


def _mounting(system: System, laid: Laid, devices: Devices) -> Iterator[str]:
    path = next(
        (getattr(one.table, "path", "") for one in system.items("mounts")
         if laid.id in system.references(one.id, "file_system")), f"/{laid.id}",
    )  # fmt: skip
    if laid.table.kind == "zfs":
        yield f"zfs set mountpoint={path} {laid.id}"
        return
    options = mount_options(laid, devices)
    label = laid.id[: 12 if laid.table.kind == "xfs" else 16]
    yield f'echo "for /etc/fstab: LABEL={label} {path} {laid.table.kind} {_inside(options)} 0 0"'
    yield f"mkdir -p {path} && mount -o {options} {devices.of(laid.store.id)} {path}"


def _inside(text: str) -> str:
    """Words with quoted parts, as they stand inside one quoted text."""
    return text.replace('"', "")


def _queues(laid: Sequence[Laid], devices: Devices) -> Iterator[str]:
    by_setting: dict[tuple[str, str], dict[str, None]] = {}
    seen: set[tuple[str, str]] = set()
    for one in laid:
        for device, settings in queue_settings(one, devices):
            for name, value in settings.items():
                if (device, name) not in seen:
                    seen.add((device, name))
                    by_setting.setdefault((name, value), {})[device] = None
    for (name, value), disks in by_setting.items():
        yield f"queue {name} {value} {' '.join(disks)}"


def _servers(system: System, laid: Laid) -> dict[str, str]:
    """A script for each server, with the targets that it serves when all is well."""
    by_server: dict[str, list[tuple[str, Store]]] = {}
    for target, store in zip(laid.targets, laid.stores, strict=False):
        by_server.setdefault(system.reference(target, "server") or "server", []).append((target, store))
    files = {}
    for server, own in by_server.items():
        devices = Devices(system)
        nids = '"$MGS_NID"'
        body = []
        for target, store in own:
            body += ["", f"# {target}"]
            body += [array(group, devices, ()) for group in made_by_host(store)]
            if laid.table.kind == "lustre":
                body.append(lustre_target(system, laid, target, store, devices, nids))
            else:
                body.append(f"# {laid.table.kind}: give {devices.of(store.id)} to it as {target}")
        disks = [devices.of(inner.id) for _, store in own for inner in store.walk() if not inner.members]
        if laid.table.kind == "lustre":
            devices.asked["MGS_NID"] = "the LNet id of the management server, like 10.0.0.1@o2ib"
            request = max([1, *(store.stripe // (1 << 20) for _, store in own if store.stripe)])
            body += ["", "# requests of one full stripe", f"lctl set_param -P obdfilter.*.brw_size={min(16, request)}"]
        name = f"{laid.id}-{server}.sh"
        files[name] = _script(name, f"{laid.id} on {server}", disks, devices, body)
    return files


def _script(name: str, what: str, disks: Sequence[str], devices: Devices, body: Sequence[str]) -> str:
    asked = [_ASKED.format(variable=variable, what=words) for variable, words in devices.asked.items()]
    bare = " ".join(disk.strip('"') for disk in disks)
    head = _HEAD.format(what=what, name=name, variables="\n".join(asked), disks=bare)
    return head + "\n".join(body) + "\n"
