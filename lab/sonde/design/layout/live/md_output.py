# SPDX-License-Identifier: Apache-2.0
"""Parses output about arrays of md: mdadm --detail, mdadm --examine and /proc/mdstat."""

from __future__ import annotations

import re
from dataclasses import replace

from sonde.design.layout.live.observations import ObservedDisk, ObservedStorage
from sonde.model.errors import UserError

_KIB = 1024
_SECTOR = 512
PARITY_DRIVES = {"raid4": 1, "raid5": 1, "raid6": 2}
# Levels of arrays that survive the loss of a drive.
REDUNDANT_LEVELS = ("raid1", *PARITY_DRIVES, "raid10")
# The numbers of the kernel for the order of parity and data (drivers/md/raid5.h), with the names of mdadm.
_PARITY_LAYOUTS = {
    "0": "left-asymmetric", "1": "right-asymmetric", "2": "left-symmetric", "3": "right-symmetric",
    "4": "parity-first", "5": "parity-last", "8": "ddf-zero-restart", "9": "ddf-N-restart", "10": "ddf-N-continue",
    "16": "left-asymmetric-6", "17": "right-asymmetric-6", "18": "left-symmetric-6", "19": "right-symmetric-6",
    "20": "parity-first-6",
}  # fmt: skip
_BITMAP_PATTERN = re.compile(
    r"^[ \t]+bitmap: \d+/\d+ pages \[\d+KB\], \d+(?:KB|B) chunk(?:, file: (\S+))?", re.MULTILINE
)
_ALERTS = ("mailaddr", "program")
# Devices of an array that hold none of its data, by the names of their settings.
OUTSIDE_OF_DATA = ("spare_devices", "failed_devices", "journal_devices")
# The form that identifies output of mdadm --examine: the magic number of a superblock of md.
EXAMINE_FORM = r"^[ \t]+Magic : a92b4efc"
_DETAIL_ROW_PATTERN = re.compile(r"^[ \t]+\d+\s+\d+\s+\d+\s+(\d+|-)\s+(\S.*?)\s+/dev/(?:\S+/)?(\S+)$", re.MULTILINE)

_JOURNAL_ROW_PATTERN = re.compile(
    r"^[ \t]+(?:\d+|-)\s+\d+\s+(\d+)\s+-\s+(faulty +|)journal\s+(/dev/\S+)$", re.MULTILINE
)


def get_array_layout_name(raid_level: str, layout_number: str) -> str:
    """The name that mdadm has for a layout number of the kernel; empty for levels without a layout."""
    if raid_level in PARITY_DRIVES:
        return _PARITY_LAYOUTS.get(layout_number, "")
    if raid_level == "raid10" and layout_number.isdigit():
        near, far = int(layout_number) & 255, int(layout_number) >> 8 & 255
        is_offset = bool(int(layout_number) & 0x10000)
        return f"near={near}" if far <= 1 else f"{'offset' if is_offset else 'far'}={far}"
    return ""


def _count_data_drives(raid_level: str, drive_count: int, layout_text: str) -> int | None:
    if raid_level == "raid10":
        copies = re.match(r"(?:near|far|offset)=(\d+)", layout_text)
        return drive_count // (int(copies[1]) if copies else 2)
    return (
        drive_count - PARITY_DRIVES[raid_level]
        if raid_level in PARITY_DRIVES
        else drive_count
        if raid_level == "raid0"
        else None
    )


def _format_geometry(raid_level: str, data_drives: int | None) -> str:
    if not data_drives:
        return ""
    return f"{data_drives}x2" if raid_level == "raid10" else f"{data_drives}+{PARITY_DRIVES.get(raid_level, 0)}"


def read_mdadm_detail(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses mdadm --detail, also with --export."""
    exported = dict(re.findall(r"^(MD_\w+)=(.*)$", output_text, re.MULTILINE))
    printed = {
        name.strip(): value.strip()
        for name, value in re.findall(r"^[ \t]*([A-Z][\w ]+) : (.*)$", output_text, re.MULTILINE)
    }
    level = exported.get("MD_LEVEL") or printed.get("Raid Level", "")
    if printed.get("State") == "inactive":
        return _read_inactive_detail(output_text, printed, output_origin)
    drives = int(exported.get("MD_DEVICES") or printed.get("Raid Devices", "0") or 0)
    if not level or not drives:
        raise UserError(
            f"{output_origin} names no RAID level and devices; it should be what mdadm --detail --export prints."
        )
    chunk = re.match(r"(\d+)K", printed.get("Chunk Size", "") or exported.get("MD_CHUNK_SIZE", ""))
    data = _count_data_drives(level, drives, printed.get("Layout", ""))
    head = re.match(r"(/dev/\S+):", output_text)
    name = (exported.get("MD_DEVNAME") or exported.get("MD_NAME") or (head[1] if head else output_origin)).rsplit(
        "/", 1
    )[-1]
    devices = re.findall(r"^MD_DEVICE_\w+_DEV=(\S+)", output_text, re.MULTILINE)
    devices = devices or re.findall(r"^[ \t]+\d+\s+\d+\s+\d+\s+\d+\s+.*?(/dev/\S+)$", output_text, re.MULTILINE)
    outside = {*_list_failed_members(output_text), *_list_journals(output_text)}
    devices = [device for device in devices if device.rsplit("/", 1)[-1] not in outside]
    settings = {"level": level, "devices": str(drives)} | _read_array_fields(output_text, printed, level)
    settings["degraded"] = str(_count_missing_disks(printed, drives) or int("degraded" in printed.get("State", "")))
    if uuid := exported.get("MD_UUID") or printed.get("UUID", ""):
        settings["array_uuid"] = uuid.lower()
    if array_name := exported.get("MD_NAME") or printed.get("Name", "").split(" ")[0]:
        settings |= {"array_name": array_name.rpartition(":")[2], "full_array_name": array_name}
    return ObservedStorage(disks={name: ObservedDisk(
        name, "md", members=tuple(device.rsplit("/", 1)[-1] for device in sorted(devices)), level=level,
        geometry=_format_geometry(level, data), data=data, unit=int(chunk[1]) * _KIB if chunk else None,
        settings=settings, state=printed.get("State", ""), origin=output_origin,
    )})  # fmt: skip


def _read_inactive_detail(output_text: str, printed: dict[str, str], output_origin: str) -> ObservedStorage:
    """An array that holds drives, and does not run: mdadm prints no number of devices and no slots."""
    head = re.match(r"/dev/(?:\S+/)?(\S+):", output_text)
    members = re.findall(r"^[ \t]+-\s+\d+\s+\d+\s+-\s+/dev/(?:\S+/)?(\S+)$", output_text, re.MULTILINE)
    if head is None or not members:
        raise UserError(f"{output_origin} names no drive; it should be what mdadm --detail prints.")
    settings = {"inactive_members": " ".join(sorted(members))}
    settings |= {"array_uuid": printed["UUID"].lower()} if printed.get("UUID") else {}
    settings |= {"full_array_name": printed["Name"].split(" ")[0]} if printed.get("Name") else {}
    return ObservedStorage(disks={head[1]: ObservedDisk(head[1], settings=settings, origin=output_origin)})


def _read_array_fields(detail_text: str, detail_fields: dict[str, str], raid_level: str) -> dict[str, str]:
    """Settings of an array from the lines of mdadm --detail and from its table of devices."""
    titles = {"spares": "Spare Devices", "failed": "Failed Devices"}
    settings = {
        member: detail_fields[title] for member, title in titles.items() if detail_fields.get(title, "").isdigit()
    }
    used = re.match(r"\d+", detail_fields.get("Used Dev Size", ""))
    settings |= {"layout": detail_fields["Layout"]} if detail_fields.get("Layout") else {}
    settings |= {"metadata": detail_fields["Version"]} if "Version" in detail_fields else {}
    settings |= {"used_bytes": str(int(used[0]) * _KIB)} if used else {}
    rows = _DETAIL_ROW_PATTERN.findall(detail_text)
    lists = {
        "failed_devices": _list_failed_members(detail_text),
        "journal_devices": _list_journals(detail_text),
        "spare_devices": [device for slot, state, device in rows if slot == "-" and not _is_special(state)],
        "slots": [f"{slot}={device}" for slot, state, device in rows if slot != "-" and not _is_special(state)],
        "write_mostly": [device for _, state, device in rows if "writemostly" in state],
        "failfast": [device for _, state, device in rows if "failfast" in state],
    }
    settings |= {member: " ".join(names) for member, names in lists.items() if names}
    if detail_fields and raid_level not in ("raid0", "linear"):
        policy = detail_fields.get("Consistency Policy", "bitmap" if "Intent Bitmap" in detail_fields else "resync")
        settings["bitmap"] = {"resync": "none", "bitmap": "internal"}.get(policy, policy)
        settings |= {"consistency_policy": policy} if "Consistency Policy" in detail_fields else {}
        position = detail_fields.get("Intent Bitmap", "")
        settings |= {"clustered": "1"} if "Clustered" in position or "Cluster Name" in detail_fields else {}
        position = "internal" if position.startswith("Internal") else position
        settings |= {"bitmap_position": position} if position else {}
    state = detail_fields.get("State", "")
    settings |= {"array_state": state.split(",")[0].strip()} if state else {}
    if action := next((action for text, action in _ACTIONS.items() if text in state), ""):
        settings["sync_action"] = WAITING_RESYNC if re.search(_WAITS, state) else action
    return settings


# What mdadm --detail prints in the state of an array that md works on, with the action in the terms of sysfs.
_ACTIONS = {"recover": "recover", "resync": "resync", "check": "check"}
# An array that is read-only until the first write is PENDING; one whose drives another array uses is DELAYED.
WAITING_RESYNC, _WAITS = "waiting", r"PENDING|DELAYED"


def _list_failed_members(detail_text: str) -> list[str]:
    """The members and journals that mdadm --detail marks as faulty; they belong to no slot of the array."""
    members = [device for _, state, device in _DETAIL_ROW_PATTERN.findall(detail_text)
               if "faulty" in state and "journal" not in state]  # fmt: skip
    return [*members, *(name for name, state in _read_journal_rows(detail_text) if state)]


def _list_journals(detail_text: str) -> list[str]:
    """The devices that keep the write journal of an array, also a failed one ("faulty journal")."""
    return [name for name, _ in _read_journal_rows(detail_text)]


def _read_journal_rows(detail_text: str) -> list[tuple[str, str]]:
    """The write journals, each with "faulty" or nothing. The path of an array that is a journal ends in its name; its
    minor number is that of the kernel's name."""
    return [(f"md{minor}" if path.startswith("/dev/md/") else path.rpartition("/")[2], state.strip())
            for minor, state, path in _JOURNAL_ROW_PATTERN.findall(detail_text)]  # fmt: skip


def _is_special(state: str) -> bool:
    return "faulty" in state or "journal" in state


def _count_missing_disks(detail_fields: dict[str, str], listed_count: int) -> int:
    active = detail_fields.get("Active Devices", "")
    return max(0, listed_count - int(active)) if active.isdigit() else 0


def read_mdadm_examine(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses mdadm --examine of one or several members: where their data begins, and their list of bad blocks."""
    disks = {}
    for part in re.split(r"^(?=/dev/\S+:$)", output_text, flags=re.MULTILINE):
        head = re.match(r"/dev/(?:\S+/)?(\S+):\n", part)
        if head is None or "Magic" not in part:
            continue
        offset = re.search(r"^[ \t]+Data Offset : (\d+) sectors", part, re.MULTILINE)
        bad_blocks = re.search(r"^[ \t]+Bad Block Log : .*bad blocks present", part, re.MULTILINE)
        version = re.search(r"^[ \t]+Version : (\S+)", part, re.MULTILINE)
        settings = _read_superblock_fields(part)
        settings |= {"data_offset": str(int(offset[1]) * _SECTOR)} if offset else {}
        settings |= {"superblock_version": version[1]} if version else {}
        settings |= {"bad_blocks": "present"} if bad_blocks else {}
        disks[head[1]] = ObservedDisk(head[1], settings=settings, origin=output_origin)
    if not disks:
        raise UserError(f"{output_origin} names no member; it should be what mdadm --examine prints.")
    return ObservedStorage(disks=disks)


def _read_superblock_fields(examined_text: str) -> dict[str, str]:
    """Reads the fields of a member's superblock, and whether its checksum is right."""
    patterns = {
        "superblock_array": r"Array UUID : (\S+)", "superblock_events": r"Events : (\d+)$",
        "superblock_time": r"Update Time : (\S.*)$", "superblock_role": r"Device Role : (\S.*)$",
        "superblock_members": r"Array State : ([A.R]+)",
        "superblock_expected": r"Checksum : \w+ - expected (\w+)",
    }  # fmt: skip
    matches = {name: re.search(rf"^[ \t]+{pattern}", examined_text, re.MULTILINE) for name, pattern in patterns.items()}
    return {name: match[1].strip() for name, match in matches.items() if match is not None}


def read_mdadm_configuration(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses the ARRAY lines of mdadm.conf: the UUID of each array, and the group whose arrays share their spares."""
    disks: dict[str, ObservedDisk] = {}
    text = re.sub(r"\n[ \t]+", " ", output_text)  # a line that begins with a blank continues the one before it
    for device, options_text in re.findall(r"^ARRAY[ \t]+(\S+)(.*)$", text, re.MULTILINE | re.IGNORECASE):
        pairs = (option.split("=", 1) for option in options_text.split() if "=" in option)
        fields = {name.lower(): value for name, value in pairs}
        name = (fields.get("name", "").rpartition(":")[2] or device).rpartition("/")[2]
        settings = {"configured_name": name, "configured_device": device}
        settings |= {"spare_group": fields.get("spare-group", "none")}
        settings |= {"configured_uuid": fields["uuid"].lower()} if "uuid" in fields else {}
        disk_name = f"{name} of line {len(disks) + 1} of mdadm.conf"
        disks[disk_name] = ObservedDisk(disk_name, "md", settings=settings, origin=output_origin)
    if "cat /etc/mdadm" in output_origin and not _names_alert(text):  # mdadm --detail --scan prints such lines too
        disks = {
            name: replace(disk, settings={**disk.settings, "configured_alert": "none"}) for name, disk in disks.items()
        }
    if devices := _list_configured_devices(text):
        disks = {
            name: replace(disk, settings={**disk.settings, "configured_devices": devices})
            for name, disk in disks.items()
        }
    if not disks:
        raise UserError(f"{output_origin} names no array; it should be mdadm.conf with its ARRAY lines.")
    return ObservedStorage(disks=disks)


def _list_configured_devices(configuration_text: str) -> str:
    """The patterns of the DEVICE lines, or an empty text where mdadm looks at all partitions."""
    rows = [line.split() for line in configuration_text.splitlines()]
    patterns = [pattern for row in rows if row and re.fullmatch(r"dev(?:i(?:ce?)?)?", row[0], re.IGNORECASE)
                for pattern in row[1:]]  # fmt: skip
    return "" if "partitions" in patterns else " ".join(pattern for pattern in patterns if pattern != "containers")


def _names_alert(configuration_text: str) -> bool:
    """Whether mdadm.conf names an address or a program for alerts; mdadm accepts short forms of its keywords."""
    keywords = [line.split()[0].lower() for line in configuration_text.splitlines() if len(line.split()) > 1]
    return any(len(keyword) > 2 and alert.startswith(keyword) for keyword in keywords for alert in _ALERTS)


def read_mdstat(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses /proc/mdstat: level, chunk, layout, members, spares, failed members, bitmap, rebuilds."""
    disks = {}
    for part in re.split(r"^(?=md\S* : )", output_text, flags=re.MULTILINE)[1:]:
        head = re.match(r"(md\S*) : (active|inactive)(?: \(([\w-]+)\))? ?(raid\d+|linear)? ?(.*)", part)
        if head is not None and head[2] == "inactive":
            members = re.findall(r"(\S+)\[\d+\]", f"{head[4] or ''} {head[5]}")
            settings = {"inactive_members": " ".join(sorted(members))} if members else {}
            disks[head[1]] = ObservedDisk(head[1], settings=settings, origin=output_origin)
        elif head is not None and head[4]:
            array = _read_mdstat_array(head[1], head[4], head[5], part, output_origin)
            state = {"array_state": "readonly"} if head[3] == "read-only" else {}
            disks[head[1]] = replace(array, settings={**array.settings, **state})
    if not disks:
        raise UserError(f"{output_origin} names no array; it should be /proc/mdstat of a machine with md.")
    return ObservedStorage(disks=disks)


def _read_mdstat_array(
    array_name: str, raid_level: str, members_text: str, array_lines: str, output_origin: str
) -> ObservedDisk:
    members = re.findall(r"(\S+)\[\d+\]((?:\(\w\))*)", members_text)
    count = re.search(r"\[(\d+)/(\d+)\]", array_lines)
    total = int(count[1]) if count else len(members)
    chunk = re.search(r"(\d+)k chunks?", array_lines, re.IGNORECASE)
    layout = _read_mdstat_layout(raid_level, array_lines)
    data = _count_data_drives(raid_level, total, layout)
    missing = total - int(count[2]) if count else 0
    busy = re.search(r"(recovery|resync|reshape|check) *=", array_lines)
    blocks = re.search(r"^[ \t]+(\d+) blocks", array_lines, re.MULTILINE)
    version = re.search(r"^[ \t]+\d+ blocks super (\S+)", array_lines, re.MULTILINE)
    write_mostly = [member for member, flags in members if "(W)" in flags]
    failed = [member for member, flags in members if "(F)" in flags]
    journals = [member for member, flags in members if "(J)" in flags]
    spares = [member for member, flags in members if "(S)" in flags and "(J)" not in flags]
    bitmap = "internal" if "bitmap:" in array_lines else "journal" if journals else "none"
    settings = {
        "degraded": str(missing),
        "spares": str(len(spares)),
        "failed": str(len(failed)),
        **({"failed_devices": " ".join(failed)} if failed else {}),
        **({"spare_devices": " ".join(spares)} if spares else {}),
        **({"journal_devices": " ".join(journals)} if journals else {}),
        "devices": str(total),
        **({"sync_action": WAITING_RESYNC if re.search(_WAITS, array_lines) else busy[1]} if busy else {}),
        **({} if raid_level in ("raid0", "linear") else {"bitmap": bitmap}),
        # the line ends in the name of a file when the bitmap is one
        **({"bitmap_position": position[1] or "internal"} if (position := _BITMAP_PATTERN.search(array_lines)) else {}),
        **({"layout": layout} if layout else {}),
        **({"metadata": version[1]} if version else {}),
        **({"write_mostly": " ".join(write_mostly)} if write_mostly else {}),
    }
    return ObservedDisk(
        array_name, "md", int(blocks[1]) * _KIB if blocks else None,
        members=tuple(sorted(member for member, flags in members if not re.search(r"\([SFJ]\)", flags))),
        level=raid_level, geometry=_format_geometry(raid_level, data), data=data,
        unit=int(chunk[1]) * _KIB if chunk else None, settings=settings,
        state="degraded" if missing else "active", origin=output_origin,
    )  # fmt: skip


def _read_mdstat_layout(raid_level: str, array_lines: str) -> str:
    if copies := re.search(r"(\d+) (near|far|offset)-copies", array_lines):
        return f"{copies[2]}={copies[1]}"
    number = re.search(r"algorithm (\d+)", array_lines)
    return get_array_layout_name(raid_level, number[1]) if number else ""
