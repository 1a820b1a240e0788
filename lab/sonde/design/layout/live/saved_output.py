# SPDX-License-Identifier: Apache-2.0
"""Identifies saved output of tools by its content and parses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from sonde.design.layout.live import (
    component_output,
    cray_x1_output,
    device_output,
    linux_tool_output,
    lustre_output,
    lvm_output,
    md_output,
    partition_output,
    raid_adapter_output,
    smart_output,
    storcli_output,
    sysfs_lines,
    text_output,
    zpool_output,
)
from sonde.design.layout.live.joining import join_observations
from sonde.design.layout.live.observations import ObservedStorage, merge_observations
from sonde.model.errors import UserError
from sonde.model.file_text import MAX_OUTPUT_BYTES, read_limited_text

_OUTPUTS_OF_ALL_HOSTS = ("lfs df", "lfs getstripe", "lfs pool_list")

Reader = Callable[[str, str], ObservedStorage]

# Name of the output -> pattern that identifies it, and its parser. The first match counts.
FORMS: Mapping[str, tuple[str, Reader]] = {
    "date +%Y-%m-%dT%H:%M:%S%z": (text_output.DATE_FORM, text_output.read_date),
    "lsblk --json --bytes --output-all": (r'^[ \t]*\{\s*"blockdevices"', linux_tool_output.read_lsblk_json),
    "multipathd show maps json": (r'"path_groups"|"maps"\s*:', linux_tool_output.read_multipathd_json),
    "sfdisk --json": (r'"partitiontable"\s*:', partition_output.read_sfdisk_json),
    "findmnt": (r'^[ \t]*\{\s*"filesystems"|^TARGET\s+SOURCE\s+FSTYPE', text_output.read_findmnt),
    "pvs --reportformat json": (r'"pv"\s*:\s*\[', lvm_output.read_pvs_json),
    "lvs --segments --reportformat json": (r'^[ \t]*\{\s*"report"', lvm_output.read_lvs_json),
    "xfs_info, mkfs.xfs or xfs_growfs -n": (r"meta-data=", cray_x1_output.read_xfs_info),
    "mdadm --examine": (md_output.EXAMINE_FORM, md_output.read_mdadm_examine),
    "mdadm --detail": (r"^MD_LEVEL=|^[ \t]*Raid Level :", md_output.read_mdadm_detail),
    "dumpe2fs -h": (r"^Filesystem magic number:|^Block count:", linux_tool_output.read_dumpe2fs),
    "tunefs.lustre --dryrun": (lustre_output.TUNEFS_FORM, lustre_output.read_tunefs_lustre),
    "lfs df": (lustre_output.DF_FORM, lustre_output.read_lfs_df),
    "lfs pool_list": (lustre_output.POOL_FORM, lustre_output.read_lfs_pool_list),
    "lctl list_nids": (lustre_output.NIDS_FORM, lustre_output.read_lctl_nids),
    "lfs getstripe": (r"^[ \t]*(- )?lmm_stripe_count:|^[ \t]*stripe_count:", linux_tool_output.read_lfs_getstripe),
    "zpool status": (r"^[ \t]*pool: ", zpool_output.read_zpool_status),
    "zpool get, zfs get": (zpool_output.PROPERTIES_FORM, zpool_output.read_zfs_properties),
    'grep -H "" /sys/module/zfs/parameters/*': (zpool_output.MODULE_FORM, zpool_output.read_zfs_module),
    "zpool list": (r"^NAME\s+SIZE\s+ALLOC\s+FREE", zpool_output.read_zpool_list),
    "mdadm.conf": (r"^(?:ARRAY|MAILADDR|MAILFROM|DEVICE|CREATE|HOMEHOST)[ \t]+\S+", md_output.read_mdadm_configuration),
    "systemctl show": (component_output.UNITS_FORM, component_output.read_systemd_units),
    "/proc/swaps": (component_output.SWAPS_FORM, component_output.read_swaps),
    "dmesg": (component_output.LOG_FORM, component_output.read_kernel_log),
    "storcli /call show all J": (storcli_output.STORCLI_JSON_FORM, storcli_output.read_storcli_json),
    "storcli /call show all": (storcli_output.STORCLI_FORM, storcli_output.read_storcli),
    "ssacli controller all show config detail": (raid_adapter_output.SSACLI_FORM, raid_adapter_output.read_ssacli),
    "sg_ses --page=es": (raid_adapter_output.SES_FORM, raid_adapter_output.read_sg_ses),
    'grep -H "" /sys/class/scsi_host/*/*': (component_output.SYSFS_FORM, component_output.read_sysfs_components),
    "/proc/mdstat": (r"^Personalities :|^md\S* : (in)?active", md_output.read_mdstat),
    "df -i": (device_output.DF_FORM, device_output.read_df_inodes),
    "smartctl -A": (smart_output.ATTRIBUTES_FORM, smart_output.read_smartctl_attributes),
    "smartctl -H": (device_output.HEALTH_FORM, device_output.read_smartctl_health),
    "smartctl -l scterc": (device_output.SCTERC_FORM, device_output.read_smartctl_scterc),
    "find /sys/block -type l": (device_output.SYSFS_LINKS_FORM, device_output.read_sysfs_links),
    "ls -l /dev/disk/by-id": (device_output.LINKS_FORM, device_output.read_device_links),
    "/etc/lvm/devices/system.devices": (lvm_output.DEVICES_FILE_FORM, lvm_output.read_lvm_devices_file),
    "lvmconfig devices/filter": (lvm_output.FILTER_FORM, lvm_output.read_lvm_filters),
    "dmsetup table": (lvm_output.DMSETUP_FORM, lvm_output.read_dmsetup_table),
    "/etc/fstab": (device_output.FSTAB_FORM, device_output.read_fstab),
    "multipathd show maps status": (text_output.MAPS_STATUS_FORM, text_output.read_multipath_status),
    "multipath -ll": (r"^(?:\w+: )?\S+ (\(\S+\) )?dm-\d+ ", text_output.read_multipath_list),
    "parted": (r"^Number\s+Start\s+End\s+Size", partition_output.read_parted_print),
    "sgdisk --print": (r"^Number\s+Start \(sector\)", partition_output.read_sgdisk_print),
    "lsblk": (r"^NAME\s+MAJ:MIN", text_output.read_lsblk_tree),
    "lvs": (r"^[ \t]*LV\s+VG\s+Attr", lvm_output.read_lvs_table),
    "blkid": (r'^/dev/\S+: .*\b(UUID|TYPE)="', text_output.read_blkid),
    'grep -H "" /sys/block/*/queue/*': (r"^/sys/(class/)?block/", sysfs_lines.read_sysfs_lines),
    "lctl get_param, lctl dl": (text_output.LCTL_FORM, text_output.read_lctl_parameters),
    "csmreport": (r"RAID-\d+/|^RS200 ", cray_x1_output.read_csmreport),
    "xlv_mgr show -long": (r"^[ \t]*VE \S+ \[", cray_x1_output.read_xlv_output),
    "pm": (r"^pm\d\w*L\d+|^fc\w+\s+(pri|alt)", cray_x1_output.read_path_manager_output),
    "parts": (r"^[ \t]*part\s+\d+\s", cray_x1_output.read_parts_file),
}


def read_saved_output(output_text: str, output_origin: str) -> ObservedStorage:
    """The observations in saved output. Raises UserError for unknown output."""
    for name, (pattern, reader) in FORMS.items():
        if re.search(pattern, output_text, re.MULTILINE):
            try:
                return reader(output_text, output_origin)
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as reason:
                raise UserError(
                    f"{output_origin} looks like output of {name}, but holds a value that cannot be read"
                    f" ({type(reason).__name__}: {reason}); save that output as it is."
                ) from None
    raise UserError(f"{output_origin} is no output that is known; it may be of {', '.join(FORMS)}.")


# smartctl prints this header alone for drives without the command, as those of SAS.
_SMARTCTL_HEADER_TEXT = r"smartctl .*\nCopyright .*"
# Outputs of tools that have nothing to report, by the beginning of the command.
_EMPTY_REPORT = (
    r'\{\s*"report"\s*:\s*\[[\s{}\[\]]*(?:"(?:seg|lv|pv)"\s*:\s*\[[\s{}\[\]]*)?(?:,\s*"log"[\s:]*[\s\[\]]*)?\}'
)
_EMPTY_FORMS: Mapping[str, str] = {
    "cat /proc/mdstat": r"Personalities :.*\s*(?:unused devices: <none>)?", "dmsetup": "No devices found",
    # Each line ends in one way only: patterns that can divide a text in many ways take forever on one without a match.
    "cat /etc/mdadm": r"(?:(?!ARRAY).*\n)*(?!ARRAY).*",
    "lctl dl": r"(?:[ \t]*\d+ \w+ (?:mgc|mgs|mds|ost) .*(?:\n|$))*",  # a server without targets
    "lctl get_param": r"(?:error: get_param: .*(?:\n|$))*",
    "lvmconfig": r"(?:WARNING: )?.* not (?:found|set).*", "cat /etc/lvm/devices": r"(?:#.*(?:\n|$))*",
    "lvs": _EMPTY_REPORT, "pvs": _EMPTY_REPORT, "": "",
    "cat /etc/fstab": r"(?:#.*(?:\n|$)|\n)*", "smartctl -H": _SMARTCTL_HEADER_TEXT,
    "smartctl -A": _SMARTCTL_HEADER_TEXT, "smartctl -a": _SMARTCTL_HEADER_TEXT,
    "multipathd": r"name .*", "cat /proc/swaps": r"Filename.*",
    "storcli": r"(?:.*\n)*Description = No Controller found.*",
    "perccli": r"(?:.*\n)*Description = No Controller found.*",
    "systemctl": r"(?:System has not been booted|Failed to connect)(?:.*(?:\n|$))*",
    "dmesg": r"dmesg: read kernel buffer failed.*",
    "zpool": "no pools available", "zfs": "no datasets available",
}  # fmt: skip
# Commands that print nothing where all is well.
_SILENT_COMMANDS = ("dmesg", "systemctl list-units")
# Tables of the kernel: one without an entry, or with the head alone, is an answer.
_COMPLETE_TABLES = ("cat /proc/swaps", "cat /proc/mdstat", "dmsetup table", "lctl dl", "multipathd")
# Drives of SAS have no such limit: smartctl prints no more than that it could open them.
_NO_SCTERC_PATTERN = re.compile(
    _SMARTCTL_HEADER_TEXT + r"(?:\s+SCSI device successfully opened)?(?:\s+Use 'smartctl -a' .* information)?"
)


def _is_empty_output(tool_command: str, output_text: str) -> bool:
    """Whether the output of a tool is empty or states that there is nothing to report."""
    return any(tool_command.startswith(tool) and re.fullmatch(form, output_text.strip()) is not None
               for tool, form in _EMPTY_FORMS.items())  # fmt: skip


def _cut_json(output_text: str) -> str:
    """The JSON in an output: the collector also saves what a tool says on standard error, before or after it."""
    begin = re.search(r"^[ \t]*[{\[]", output_text, re.MULTILINE)
    end = max(output_text.rfind("}"), output_text.rfind("]"))
    return output_text[begin.start() : end + 1] if begin and end > begin.start() else output_text


# The line before each part of the output of the collector, with the command that printed it. Outputs of former
# collectors have that of find in two lines where sh is dash.
_PART_PATTERN = re.compile(r"^=== sonde layout collect: (.*)\n? ===$", re.MULTILINE)


def read_collector_output(output_text: str, output_origin: str) -> ObservedStorage:
    """The observations in the output of the collector: each part by its own form. A part of no known form is named."""
    storage = ObservedStorage()
    marks = list(_PART_PATTERN.finditer(output_text))
    empty = list[str]()
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = output_text[mark.end() : following.start() if following else len(output_text)].strip("\n")
        if mark[1].startswith(("lvs ", "pvs ")):
            storage = merge_observations(storage, lvm_output.read_lvm_warnings(part, f"{output_origin}, {mark[1]}"))
        if "json" in mark[1]:
            part = _cut_json(part)
        if not part.strip() and mark[1].startswith(_SILENT_COMMANDS):
            continue
        if _is_empty_output(mark[1], part):
            if not (part.strip() and mark[1].startswith(_COMPLETE_TABLES)):
                empty.append(mark[1])
            continue
        if mark[1].startswith("smartctl -l scterc") and _NO_SCTERC_PATTERN.fullmatch(part.strip()):
            continue
        try:
            storage = merge_observations(storage, read_saved_output(part, f"{output_origin}, {mark[1]}"))
        except UserError:
            storage = merge_observations(
                storage, ObservedStorage(unknown=(f"what {mark[1]} says; it has no known form",))
            )
    texts = [f"{', '.join(empty)}: the output is empty or has no entry"] if empty else []
    return merge_observations(storage, ObservedStorage(unknown=tuple(texts)))


def read_files(paths: Iterable[Path]) -> ObservedStorage:
    """The observations in several files of one host. Raises UserError."""
    storage = ObservedStorage()
    for path in paths:
        text = _read_text(path)
        reader = read_collector_output if _PART_PATTERN.search(text) else read_saved_output
        storage = merge_observations(storage, reader(text, str(path)))
    return join_observations(storage)


def read_hosts(paths: Sequence[Path]) -> dict[str, ObservedStorage]:
    """The observations in several files by host: several outputs of the collector are of several hosts, whose devices
    have equal names; other files are of one host. Raises UserError."""
    collected = [path for path in paths if _PART_PATTERN.search(_read_text(path))]
    if len(collected) < 2:
        return {"": read_files(paths)}
    others = [path for path in paths if path not in collected and not _is_of_all_hosts(path)]
    if others:
        raise UserError(
            f"{others[0]} may be of any of the {len(collected)} hosts whose collected outputs are given; give it with"
            " the output of its host alone."
        )
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    return {name: read_files([path]) for name, path in zip(names, paths, strict=True)}


def _is_of_all_hosts(path: Path) -> bool:
    """Whether a file holds an output about a file system of several hosts, which each of its clients prints."""
    text = _read_text(path)
    return any(re.search(FORMS[name][0], text, re.MULTILINE) for name in _OUTPUTS_OF_ALL_HOSTS)


def _read_text(path: Path) -> str:
    try:
        return read_limited_text(path, MAX_OUTPUT_BYTES)
    except UnicodeDecodeError as reason:
        raise UserError(f"{path} is not a text file: byte {reason.start} is not UTF-8.") from None
    except OSError as reason:
        raise UserError(f"{path} cannot be read: {reason.strerror}.") from None
