# SPDX-License-Identifier: Apache-2.0
"""Checks the targets of Lustre together: how each is written on its disk, how full it is, and settings that differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_failover_nodes import check_mount_protection, compare_failover_nodes
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.live.observations import ObservedFileSystem

_MIN_FULL_PERCENT = 90
_CLIENT_PATTERN = re.compile(r"-[0-9a-f]{8,16}$")
_PAGE = 4 * KIB
# Points of percent above the median of all targets.
_MIN_UNEVEN_PERCENT = 25
# Parameters that all targets of a kind have alike, unless somebody forgot one.
_EQUAL_PARAMETERS = ("brw_size", "max_pages_per_rpc", "max_rpcs_in_flight", "max_dirty_mb", "checksums")
_MIN_PEERS = 3
# Flags of a label that name a fault: its kind, problem, cost and remedy.
_FLAGS = {
    "first_time": (
        "target never registered", "it was made, but never registered with the management server (first_time)",
        "clients do not know it, and no object is on it", "mount it while the management server is up",
    ),
    "writeconf": (
        "configuration is written anew", "its label has the flag writeconf",
        "at its next start the management server makes its configuration anew: pools and settings are lost",
        "start it while all targets are stopped, as writeconf asks, or tunefs.lustre without it",
    ),
}  # fmt: skip
# Flags of lfs df that name a fault of a target.
_STATFS_FLAGS = {
    "D": ("degraded", "its server reports it as degraded", "new files avoid it", "look at its array on its server"),
    "R": (
        "mounted read-only", "its server has it read-only", "files with objects on it cannot be written",
        "look for errors of its file system in the log of its server, then e2fsck while it is unmounted",
    ),
    "N": ("no new objects", "it makes no new objects", "its space and bandwidth are left out by all new files",
          "look for no_precreate and max_create_count on the servers"),
}  # fmt: skip
# Parameters of clients: the least sound value, and problem, cost and remedy of a smaller one.
_LEAST_PARAMETERS = {
    "max_cached_mb": (
        64, "clients keep almost nothing of what they read", "data that is read again comes from the servers",
        "set it to three quarters of the memory, the default",
    ),
    "max_read_ahead_mb": (  # one request of 4 MiB
        4, "clients do not read ahead", "one task that reads waits for every request",
        "lctl set_param -P llite.*.max_read_ahead_mb=256 on the management server",
    ),
}  # fmt: skip


def select_clients(file_systems: Sequence[ObservedFileSystem]) -> list[ObservedFileSystem]:
    """Returns what clients show of targets. Their names hold an address of the kernel, which two hosts may share."""
    return [each for each in file_systems if each.kind == "lustre" and _CLIENT_PATTERN.search(each.location)]


def find_target_faults(file_systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    """All faults of the targets and clients of Lustre that are observed."""
    lustre = [each for each in file_systems if each.kind == "lustre"]
    written = [each for each in lustre if each.facts.get("label_origin")]
    backends = {each.location: each for each in file_systems if each.kind == "ldiskfs"}
    for target in written:
        yield from _check_written_target(target)
        if target.location in backends:
            yield from check_mount_protection(target, backends[target.location])
    yield from _compare_written_targets(written)
    yield from compare_failover_nodes(written)
    for target in lustre:
        yield from _check_fill_level(target)
        yield from _check_client_parameters(target)
    yield from _compare_use(lustre)
    for name in _EQUAL_PARAMETERS:
        yield from _compare_parameter(name, lustre)


def _check_written_target(target: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    facts, flags = target.facts, target.facts.get("flags", "").split()
    yield CheckedItem("the label of a target", target.location)
    yield from _check_label_count(target)
    if not facts.get("management", "") and "MGS" not in flags:
        yield LayoutFault(
            "no management server", target.location, "its label names no management server (mgsnode)",
            "it cannot register, and does not start", "tunefs.lustre --mgsnode=NID, for each management server",
        )  # fmt: skip
    for flag, (kind, problem, cost, remedy) in _FLAGS.items():
        if flag in flags:
            yield LayoutFault(kind, target.location, problem, cost, remedy)
    index = re.fullmatch(r".*-(?:OST|MDT)([0-9a-f]{4})", target.location)
    if index is not None and facts.get("index", "").isdigit() and int(facts["index"]) != int(index[1], 16):
        yield LayoutFault(
            "another index", target.location, f"its index is {facts['index']}; its name says {int(index[1], 16)}",
            "it is refused, or stands for another target", "restore its label; never make it again while it holds data",
        )  # fmt: skip
    if "errors=continue" in facts.get("mount_options", "").split(","):
        yield LayoutFault(
            "mount option", target.location, "it goes on after errors of its file system (errors=continue)",
            "damage spreads while clients write", "tunefs.lustre --mountfsoptions with errors=remount-ro",
        )  # fmt: skip


def count_labeled_devices(target: ObservedFileSystem) -> int:
    """The number of devices with the label of a target, by their identities; 0 where one of these is not known."""
    identities = target.facts.get("label_identity", "?").split("\n")
    return 0 if any(identity.startswith("?") for identity in identities) else len(identities)


def _check_label_count(target: ObservedFileSystem) -> Iterator[LayoutFault]:
    """Labels that several devices have. Two servers, or two paths, may show the label of one LUN."""
    labels, devices = target.facts["label_origin"].split("\n"), count_labeled_devices(target)
    if len(labels) < 2 or devices == 1:
        return
    identities = target.facts.get("label_identity", "").replace("\n", " and ")
    identity_text = f"; they are {identities}" if devices else ""
    yield LayoutFault(
        "index used twice", target.location,
        f"{devices or len(labels)} devices are labeled {target.location}, with one index ({', '.join(labels)})"
        f"{identity_text}",
        "the second one is refused, or stands for the first",
        "find out which of them holds the data of the target, and make the other one again with another index only when"
        " it holds nothing that is needed" if devices else
        "compare the WWIDs: where both are one LUN, nothing is wrong with the label. Otherwise find out which of"
        " both holds data before you make one again with another index",
    )  # fmt: skip


def _find_unusual_facts(
    targets: Sequence[ObservedFileSystem], fact_name: str
) -> Iterator[tuple[ObservedFileSystem, str, str]]:
    """Targets whose value of a fact fewer targets have than the most frequent one, with both values."""
    counts = Counter(target.facts.get(fact_name, "") for target in targets)
    usual = max(counts, key=lambda value: counts[value], default="")
    for target in targets:
        value = target.facts.get(fact_name, "")
        if counts[value] < counts[usual]:
            yield target, value, usual


def _compare_written_targets(targets: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault | CheckedItem]:
    if len(targets) < 2:
        return
    yield CheckedItem("labels of all targets", f"{len(targets)} targets")
    with_management = [target for target in targets if target.facts.get("management", "")]
    for target, management, usual in _find_unusual_facts(with_management, "management"):
        options = " ".join(f"--mgsnode={address}" for address in usual.split())
        yield LayoutFault(
            "another management server", target.location,
            f"its management server is {management}; the other targets have {usual}",
            "it asks another server, or finds none after a failover",
            f"unmount it, then tunefs.lustre --erase-params {options} with its other parameters",
            ("management",),
        )  # fmt: skip
    for member, kind in (("file_system", "file system name"), ("backend", "backend")):
        # the label of a management target may name no file system
        for target, value, usual in _find_unusual_facts([each for each in targets if each.facts.get(member)], member):
            yield LayoutFault(
                "targets differ", target.location, f"its {kind} is {value}; that of the other targets is {usual}",
                "it belongs to another file system, or behaves in another way than its peers",
                "look for a wrong label; empty it (lfs migrate) before it is made again like the others", (member,),
            )  # fmt: skip
    yield from _compare_two_targets(targets)
    for role in ("OST", "MDT"):
        peers = [target for target in targets if role in target.location]
        for member, kind in (("parameters", "parameters"), ("mount_options", "mount options")):
            for target, value, usual in _find_unusual_facts(peers, member):
                if "errors=continue" in value:
                    continue  # that is another fault
                yield LayoutFault(
                    "targets differ", target.location,
                    f"the {kind} of its label are {value or 'none'}; those of the other targets are {usual or 'none'}",
                    "it behaves in another way than its peers, or is out of reach for some clients",
                    "tunefs.lustre with the same for all, if it is not meant so",
                )  # fmt: skip
    without = [target for target in targets if not target.facts.get("failover", "")]
    if 2 * len(without) < len(targets):
        for target in without:
            yield LayoutFault(
                "no failover server", target.location, "its label names no failover node, those of the others do",
                "its data is out of reach while its server is down",
                "tunefs.lustre --servicenode=NID, for both servers",
            )  # fmt: skip


def _compare_two_targets(targets: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault]:
    """Labels of the only two targets of a role and file system: neither is unusual, but they should be equal."""
    groups: dict[str, list[ObservedFileSystem]] = {}
    for target in targets:
        groups.setdefault(re.sub(r"[0-9a-f]{4}$", "", target.location), []).append(target)
    for pair in (group for group in groups.values() if len(group) == 2 and len(targets) < 2 * _MIN_PEERS):
        for member, kind in (("parameters", "parameters"), ("mount_options", "mount options")):
            first, second = (each.facts.get(member, "") for each in pair)
            if first != second and "errors=continue" not in first + second:
                yield LayoutFault(
                    "targets differ", pair[1].location,
                    f"the {kind} of its label are {second or 'none'}; those of {pair[0].location} are"
                    f" {first or 'none'}",
                    "one of them behaves in another way than the other, or is out of reach for some clients",
                    "tunefs.lustre with the same for both, if it is not meant so",
                )  # fmt: skip


def _check_fill_level(target: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    if state := target.facts.get("unreachable", ""):
        yield LayoutFault(
            "target inactive", target.location, f"clients do not reach it: {state}",
            "files with objects on it cannot be read or written", "look at its server, then lctl set_param active=1",
        )  # fmt: skip
    inodes = target.facts.get("used_inodes_percent", "")
    if inodes.isdigit() and int(inodes) > _MIN_FULL_PERCENT:
        yield LayoutFault(
            "too full", target.location, f"{inodes} % of its inodes are used",
            "creates fail although there is space", "remove files, or add a metadata target", ("inodes",),
        )  # fmt: skip
    for flag in target.facts.get("statfs_flags", ""):
        if flag in _STATFS_FLAGS:
            kind, problem, cost, remedy = _STATFS_FLAGS[flag]
            yield LayoutFault(kind, target.location, f"{problem} (flag {flag} of lfs df)", cost, remedy)
    if target.facts.get("degraded") == "1":
        yield LayoutFault(
            "degraded", target.location, "it is marked as degraded (degraded=1)",
            "new files avoid it; the mark stays after the repair until somebody takes it away",
            f"lctl set_param obdfilter.{target.location}.degraded=0, when its array is whole",
        )  # fmt: skip
    if target.facts.get("max_create_count") == "0":
        yield LayoutFault(
            "no new objects", target.location, "it gets no new objects (max_create_count is 0)",
            "its space and bandwidth are left out by all new files",
            "set max_create_count to 20000 again, when it was emptied or repaired",
        )  # fmt: skip
    used = target.facts.get("used_percent", "")
    if not used.isdigit():
        return
    yield CheckedItem("free space", target.location)
    if int(used) > _MIN_FULL_PERCENT:
        yield LayoutFault(
            "too full", target.location, f"{used} % of it are used: it is almost full",
            "files that are striped over it get no space, and writing to it is slow",
            "lfs_migrate files from it, and look for files with a fixed stripe offset",
        )  # fmt: skip


def _compare_use(systems: Sequence[ObservedFileSystem]) -> Iterator[LayoutFault]:
    """Object targets that are much fuller than the median."""
    used = {each.location: int(each.facts["used_percent"]) for each in systems
            if "-OST" in each.location and each.facts.get("used_percent", "").isdigit()}  # fmt: skip
    if len(used) < _MIN_PEERS:
        return
    middle = median(used.values())
    for name, percent in used.items():
        if percent < middle - _MIN_UNEVEN_PERCENT and middle <= _MIN_FULL_PERCENT:
            yield LayoutFault(
                "uneven use", name, f"{percent} % of it are used, it is emptier than the others ({middle:.0f} %)",
                "the others are full before it, and it has less of the traffic",
                "if it was added lately, lfs migrate some files to it; else look whether it gets new objects"
                " (max_create_count, degraded, pools)",
            )  # fmt: skip
        if percent > middle + _MIN_UNEVEN_PERCENT and percent <= _MIN_FULL_PERCENT:
            yield LayoutFault(
                "uneven use", name, f"{percent} % of it are used, it is fuller than the others ({middle:.0f} %)",
                "it is full before the others, and has more of the traffic",
                "look for large files of few stripes and for layouts with a fixed offset, then lfs migrate",
            )  # fmt: skip


def _read_number_fact(facts: Mapping[str, str], fact_name: str) -> int | None:
    match = re.match(r"\d+", facts.get(fact_name, ""))
    return int(match[0]) if match else None


def _check_client_parameters(target: ObservedFileSystem) -> Iterator[LayoutFault | CheckedItem]:
    facts = target.facts
    dirty, flying, pages = (_read_number_fact(facts, name) for name in
                            ("max_dirty_mb", "max_rpcs_in_flight", "max_pages_per_rpc"))  # fmt: skip
    if dirty is not None:
        yield CheckedItem("max_dirty_mb", target.location)
        flight = (flying or 1) * (pages or 1) * _PAGE
        if dirty * MIB < flight:
            yield LayoutFault(
                "parameter too small", f"{target.location} max_dirty_mb",
                f"max_dirty_mb is {dirty}, but {flying or 1} requests in flight hold {flight // MIB or 1} MiB",
                "writes wait for each other although requests could be sent",
                f"lctl set_param -P …max_dirty_mb={max(32, 4 * flight // MIB)} on the management server",
                ("max_dirty_mb",), (target.location,),
            )  # fmt: skip
    for name, (least, problem, cost, remedy) in _LEAST_PARAMETERS.items():
        value = _read_number_fact(facts, name)
        if value is None:
            continue
        yield CheckedItem(name, target.location)
        if value < least:
            yield LayoutFault(
                "parameter too small", f"{target.location} {name}", f"{name} is {value}: {problem}", cost, remedy
            )


def _compare_parameter(
    parameter_name: str, file_systems: Sequence[ObservedFileSystem]
) -> Iterator[LayoutFault | CheckedItem]:
    """Object targets and their clients whose parameter differs from that of most others of their file system."""
    groups: dict[str, list[ObservedFileSystem]] = {}
    for each in file_systems:
        if each.facts.get(parameter_name) and (match := re.match(r"(\S+?)-OST[0-9a-f]{4}", each.location)):
            groups.setdefault(match[1], []).append(each)
    for file_system, peers in groups.items():
        if len(peers) < _MIN_PEERS:
            continue
        yield CheckedItem("the same parameter on all targets", f"{file_system} {parameter_name}")
        (common, count), *_ = Counter(peer.facts[parameter_name] for peer in peers).most_common(1)
        others = [peer for peer in peers if peer.facts[parameter_name] != common]
        if others and 2 * count > len(peers):
            values = ", ".join(f"{peer.location} {peer.facts[parameter_name]}" for peer in others[:3])
            yield LayoutFault(
                "targets differ", f"{file_system} {parameter_name}",
                f"{parameter_name} is {common} on {count} of {len(peers)} targets, but {values}",
                "files on these targets have another rate than on the others",
                f"lctl set_param -P with the same {parameter_name} for all, on the management server",
                (parameter_name,), tuple(peer.location for peer in others),
            )  # fmt: skip
