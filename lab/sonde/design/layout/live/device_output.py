# SPDX-License-Identifier: Apache-2.0
"""Parses output about devices and their file systems: symbolic links in /dev, smartctl -l scterc, and df -i."""

from __future__ import annotations

import re

from sonde.design.layout.live.observations import FstabEntry, ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.model.errors import UserError

# The forms that identify these outputs.
LINKS_FORM = r"^l\S+ .* -> (?:\.\./)+|^/dev/\S+ (?:-> )?(?:\.\./)+"
SCTERC_FORM = r"^SCT Error Recovery Control( command not supported)?|^[ \t]*Read: +(\d+ \(|Disabled)"
HEALTH_FORM = (
    r"^SMART (?:overall-health self-assessment test result|Health Status):"
    r"|^(?:Smartctl open device: \S+|Read .*SMART.*|A mandatory SMART command) failed:"
)
# What smartctl prints of a drive that does not answer; without permission it prints another reason.
_SILENT_PATTERN = re.compile(
    r"^(?:Smartctl open device: \S+|Read .*SMART.*) failed: *"
    r"(No such device.*|Input/output error.*|Connection timed out.*|.*TIMEOUT.*)$", re.MULTILINE,
)  # fmt: skip
FSTAB_FORM = (
    r"^(?:UUID|LABEL|PARTUUID|PARTLABEL)=\S+[ \t]+(?:/|none|swap)"
    r"|^/dev/\S+[ \t]+(?:/\S*|none|swap)[ \t]+(?:xfs|ext[234]|swap|vfat|btrfs|lustre|zfs)\b"
)
DF_FORM = r"^Filesystem +(?:Type +)?Inodes +IUsed\b"
SYSFS_LINKS_FORM = r"^/sys/block/\S+ (?:-> )?(?:\.\./)+devices/"
_SYSFS_LINK_PATTERN = re.compile(r"^/sys/block/(\S+) (?:-> )?(?:\.\./)+(devices/\S+)$", re.MULTILINE)
_LINK_PATTERN = re.compile(r"(\S+) (?:-> )?(?:\.\./)+([\w!-]+)$", re.MULTILINE)
_DIRECTORY_PATTERN = re.compile(r"^(/dev/\S+):$", re.MULTILINE)
_DF_ROW_PATTERN = re.compile(r"^(\S+) +(?:([a-z]\w*) +)?(\d+) +(\d+) +(\d+) +(?:\d+%|-) +(/.*)$", re.MULTILINE)


def read_device_from_origin(output_origin: str) -> str:
    """The device at the end of a command line that the collector printed before an output; empty for other origins."""
    match = re.search(r" (/dev/\S+)$", output_origin)
    return match[1] if match else ""


def read_device_links(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses symbolic links in /dev, as `find /dev -type l -printf '%p %l\\n'` or ls -l prints them."""
    links: dict[str, list[str]] = {}
    folder_match = re.search(r"(/dev/\S+?)/?$", output_origin)
    folder = folder_match[1] if folder_match else ""
    for line in output_text.splitlines():
        if head := _DIRECTORY_PATTERN.match(line):
            folder = head[1].rstrip("/")
        elif match := _LINK_PATTERN.search(line):
            path = match[1] if match[1].startswith("/") else f"{folder}/{match[1]}"
            links.setdefault(match[2], []).append(path)
    if not links:
        raise UserError(f"{output_origin} names no link; it should be what ls -l /dev/disk/by-id prints.")
    return ObservedStorage(disks={
        name: ObservedDisk(name, settings={"links": " ".join(sorted(paths))}, origin=output_origin)
        for name, paths in links.items()
    })  # fmt: skip


def read_sysfs_links(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses links in /sys/block, as find prints them: the SCSI address and the port of ATA of each drive, by which the
    kernel log names it."""
    disks = {}
    for name, path in _SYSFS_LINK_PATTERN.findall(output_text):
        address, port = re.search(r"/(\d+:\d+:\d+:\d+)/", path), re.search(r"/(ata\d+)/", path)
        settings = {"hctl": address[1]} if address else {}
        settings |= {"ata_port": port[1]} if port else {}
        if settings:
            disks[name] = ObservedDisk(name, settings=settings, origin=output_origin)
    return ObservedStorage(disks=disks)


def read_smartctl_scterc(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses smartctl -l scterc: how long a drive repeats a read or write before it reports an error, in tenths of a
    second. The name of the drive is in the command line that the collector prints."""
    device = read_device_from_origin(output_origin)
    if not device:
        raise UserError(f"{output_origin} does not name its drive; save it with the script of sonde layout collect.")
    times = re.findall(r"^\s*(?:Read|Write): +(\d+|Disabled)", output_text, re.MULTILINE)
    if times:
        recovery = "disabled" if "Disabled" in times else str(max(int(time) for time in times))
    elif "not supported" in output_text:
        recovery = "not supported"
    else:
        return ObservedStorage(unknown=(f"the error recovery of {device}",))
    name = device.rsplit("/", 1)[-1]
    return ObservedStorage(
        disks={name: ObservedDisk(name, settings={"error_recovery": recovery}, origin=output_origin)}
    )


def read_smartctl_health(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses smartctl -H: what the drive says of itself. Its name is in the command line that the collector prints."""
    device = read_device_from_origin(output_origin)
    if not device:
        raise UserError(f"{output_origin} does not name its drive; save it with the script of sonde layout collect.")
    verdict = re.search(r"^SMART (?:overall-health self-assessment test result|Health Status): *(\S.*)$", output_text,
                        re.MULTILINE)  # fmt: skip
    silence = _SILENT_PATTERN.search(output_text)
    if verdict is None and silence is None:
        return ObservedStorage(unknown=(f"the health of {device}",))
    name = device.rsplit("/", 1)[-1]
    settings = {"health": f"no answer ({silence[1].strip()})"} if silence else {}
    if verdict is not None:
        reasons = "; ".join(re.findall(r"^- (\S.*)$", output_text[verdict.end() :], re.MULTILINE))
        settings["health"] = verdict[1].strip() + f" ({reasons})" * bool(reasons)
    return ObservedStorage(disks={name: ObservedDisk(name, settings=settings, origin=output_origin)})


def read_fstab(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses /etc/fstab: what is mounted where at a start of the machine."""
    rows = [line.split() for line in output_text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    entries = tuple(FstabEntry(row[0], row[1], row[2], tuple((row[3] if len(row) > 3 else "defaults").split(",")))
                    for row in rows if len(row) > 2)  # fmt: skip
    if not entries:
        raise UserError(f"{output_origin} names no mount; it should be /etc/fstab.")
    return ObservedStorage(fstab=entries)


def read_df_inodes(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses df -i, also with -T: inodes of each mounted file system, all of them and those in use."""
    rows = _DF_ROW_PATTERN.findall(output_text)
    errors = re.findall(
        r"^df: '?(/[^':]*)'?: (Input/output error|Structure needs cleaning)$", output_text, re.MULTILINE
    )
    if not rows:
        raise UserError(f"{output_origin} names no mount; it should be what df -i prints.")
    silent = tuple(ObservedFileSystem(path, "", facts={"df_error": text}, origin=output_origin)
                   for path, text in errors)  # fmt: skip
    return ObservedStorage(silent + tuple(
        ObservedFileSystem(
            mount_point, kind, device if device.startswith("/dev/") else "",
            facts={"inodes": total, "inodes_used": used}, origin=output_origin,
        )
        for device, kind, total, used, _, mount_point in rows if kind in ("", "xfs", "ext3", "ext4") and int(total)
    ))  # fmt: skip
