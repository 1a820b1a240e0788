# SPDX-License-Identifier: Apache-2.0
"""Compares lines of fstab of Lustre targets on servers that may both mount them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sonde.design.checked_items import CheckedItem, join_first_names
from sonde.design.layout.check_fstab_mounts import is_target_line
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.observations import FstabEntry, ObservedStorage
from sonde.design.layout.planned_roles import TARGET_NAME_PATTERN, read_target_name

# Options that only say when a line is mounted: another rule is about noauto.
_START_OPTIONS = frozenset({"noauto", "_netdev", "nofail", "defaults"})
_NAMES_OF_ONE_HOST = ("/dev/sd", "/dev/nvme", "/dev/dm-")


def compare_partner_lines(storage_by_host: Mapping[str, ObservedStorage]) -> Iterator[LayoutFault | CheckedItem]:
    """Targets that fstab of one server lacks, mounts elsewhere, or with other options than its partner: two servers are
    partners if each has most of the lines of the other."""
    lines = {host: {entry.source: entry for entry in storage.fstab
                    if is_target_line(entry) and not entry.source.startswith(_NAMES_OF_ONE_HOST)}
             for host, storage in storage_by_host.items()}  # fmt: skip
    hosts = [host for host, entries in lines.items() if entries]
    for number, host in enumerate(hosts):
        for partner in hosts[:number]:
            shared = lines[host].keys() & lines[partner].keys()
            if 2 * len(shared) <= max(len(lines[host]), len(lines[partner])):
                continue
            yield CheckedItem("lines of fstab of both partners", f"{partner}, {host}")
            for lacking, having in ((host, partner), (partner, host)):
                yield from _report_absent_lines(lacking, having, lines)
            yield from _compare_starts({each: [lines[each][source] for source in shared] for each in (partner, host)})
            for source in sorted(shared):
                yield from _compare_lines(source, {each: lines[each][source] for each in (partner, host)})


def find_target_line_faults(storage: ObservedStorage) -> Iterator[LayoutFault | CheckedItem]:
    """Lines of fstab at the mount point of a target that name another target or kind of file system."""
    mounted = {each.location: label for each in storage.file_systems if each.kind == "lustre" and each.options
               if TARGET_NAME_PATTERN.fullmatch(label := read_target_name(storage, each))}  # fmt: skip
    for entry in (each for each in storage.fstab if each.mount_point in mounted):
        label = mounted[entry.mount_point]
        yield CheckedItem("the target of a line of fstab", entry.mount_point)
        if entry.kind != "lustre":
            yield LayoutFault(
                "another kind of file system", entry.mount_point,
                f"fstab mounts {entry.source} as {entry.kind}; it is mounted as the target {label} of Lustre",
                "mounted so it is no target, and writes to it destroy it", "write lustre into the line",
            )  # fmt: skip
        elif entry.source.startswith("LABEL=") and entry.source != f"LABEL={label}":
            yield LayoutFault(
                "fstab names another device", entry.mount_point,
                f"fstab mounts {entry.source} there; mounted now is {label}",
                "after the next start it is another target there, or none",
                f"write LABEL={label} into the line, or look which of both belongs there",
            )  # fmt: skip


def _report_absent_lines(
    lacking: str, having: str, lines: Mapping[str, Mapping[str, FstabEntry]]
) -> Iterator[LayoutFault]:
    absent = [source for source in lines[having] if source not in lines[lacking]]
    if absent:
        yield LayoutFault(
            "fstab lines of partners differ", lacking,
            f"its fstab has no line of {join_first_names(absent)}, which that of {having} has",
            "after a failure of its server a target without a line cannot be mounted there by fstab",
            f"copy the line (with noauto) from {having}",
            parts=tuple(f"{having}: {lines[having][source].mount_point}" for source in absent),
        )  # fmt: skip


def _compare_starts(entries: Mapping[str, Sequence[FstabEntry]]) -> Iterator[LayoutFault]:
    """One partner that mounts all of the shared targets at its start, while the other one has noauto in all lines."""
    automatic = {host: [entry for entry in each if "noauto" not in entry.options] for host, each in entries.items()}
    for host, other in (tuple(entries), tuple(reversed(tuple(entries)))):
        if len(automatic[host]) == len(entries[host]) > 1 and not automatic[other]:
            yield LayoutFault(
                "target mounted at a start", host,
                f"none of its {len(entries[host])} lines of targets has noauto; those of {other} have it",
                "when it starts while its partner serves them it mounts them too: both together destroy them, if no"
                " protection (mmp) prevents it",
                "write noauto into its lines, and let the cluster manager or an administrator mount them", ("noauto",),
                tuple(f"{host}: {entry.mount_point}" for entry in entries[host]),
            )  # fmt: skip


def _compare_lines(source: str, entries: Mapping[str, FstabEntry]) -> Iterator[LayoutFault]:
    (first, first_line), (second, second_line) = entries.items()
    parts = tuple(f"{host}: {entry.mount_point}" for host, entry in entries.items())
    if first_line.mount_point != second_line.mount_point:
        yield LayoutFault(
            "fstab lines of partners differ", "; ".join(parts),
            f"fstab of {first} mounts {source} at {first_line.mount_point}, that of {second} at"
            f" {second_line.mount_point}",
            "after a failover scripts and the cluster manager look for it elsewhere, or it covers another target",
            "write the same mount point into both lines", parts=parts,
        )  # fmt: skip
    options = [sorted(set(entry.options) - _START_OPTIONS) for entry in (first_line, second_line)]
    if options[0] != options[1]:
        texts = [",".join(each) or "none" for each in options]
        yield LayoutFault(
            "fstab lines of partners differ", "; ".join(parts),
            f"options of {source} in fstab are {texts[0]} on {first}, {texts[1]} on {second}",
            "after a failover it behaves in another way than before", "write the same options into both lines",
            parts=parts,
        )  # fmt: skip
