# SPDX-License-Identifier: Apache-2.0
"""Parses zpool status and zpool list: every vdev with its redundancy, its state and its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonde.design.layout.live.observations import ObservedFileSystem, ObservedStorage, ObservedVdev
from sonde.model.errors import UserError

_GROUP_PATTERN = re.compile(r"(mirror|raidz\d?|draid\d?\S*|spare|replacing)-\d+$")
_INNER_GROUP_PATTERN = re.compile(r"(spare|replacing)-\d+$")
_CLASSES = ("logs", "cache", "spares", "special", "dedup")
# The form that identifies output of zpool get and zfs get.
PROPERTIES_FORM = r"^NAME +PROPERTY +VALUE"
_LIST_HEAD_PATTERN = re.compile(r"^NAME\s+SIZE\s+ALLOC\s+FREE\b.*$", re.MULTILINE)


def read_zpool_status(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses zpool status, optionally followed by zpool get or zfs get of ashift, recordsize and capacity."""
    starts = [match.start() for match in re.finditer(r"^[ \t]*pool:", output_text, re.MULTILINE)]
    if not starts:
        raise UserError(f"{output_origin} names no pool; it should be what zpool status prints.")
    pools = [
        _read_pool(output_text[begin:end], output_text, output_origin)
        for begin, end in zip(starts, [*starts[1:], len(output_text)], strict=True)
    ]
    return ObservedStorage(tuple(pools))


def _read_pool(pool_text: str, all_text: str, output_origin: str) -> ObservedFileSystem:
    pool, state = (re.search(rf"^[ \t]*{member}:[ \t]+(\S+)", pool_text, re.MULTILINE) for member in ("pool", "state"))
    if pool is None:
        raise UserError(f"{output_origin} names no pool; it should be what zpool status prints.")
    name = pool[1]
    vdevs = tuple(_iterate_vdevs(pool_text, name))
    facts = _read_properties(all_text, name)
    data = [vdev for vdev in vdevs if not vdev.use and not vdev.parent]
    if lost := re.search(r"^[ \t]*errors: (\d+) data errors", pool_text, re.MULTILINE):
        facts["data_errors"] = lost[1]
    elif "errors: Permanent errors have been detected" in pool_text:
        names = pool_text.partition("errors: Permanent errors")[2].splitlines()[1:]
        facts["data_errors"] = str(len([line for line in names if line[:1].isspace() and line.strip()]) or 1)
    if busy := re.search(r"^[ \t]*scan: (\w+) in progress", pool_text, re.MULTILINE):
        facts["scan"] = busy[1]
    facts |= _read_open_scrub(pool_text)
    if removal := re.search(r"^[ \t]*remove: Evacuation of (\S+) in progress", pool_text, re.MULTILINE):
        facts["removal"] = removal[1]
    if scrubbed := _read_last_scrub(pool_text):
        facts["scrubbed"] = scrubbed
    if status := re.search(r"^[ \t]*status: (.*(?:\n[ \t]+\S.*)*)", pool_text, re.MULTILINE):
        facts["status"] = " ".join(status[1].split())
    if scrub := re.search(r"^[ \t]*scan: scrub repaired (\S+) .* with (\d+) errors", pool_text, re.MULTILINE):
        facts |= {"scrub_repaired": scrub[1], "scrub_errors": scrub[2]}
    if resilver := re.search(r"^[ \t]*scan: resilvered \S+ .* with (\d+) errors", pool_text, re.MULTILINE):
        facts["resilver_errors"] = resilver[1]
    facts |= {
        "vdevs": " ".join(f"{vdev.name}={sum(child.parent == vdev.name and not child.group for child in vdevs) or 1}"
                          for vdev in data),
        "sick": " ".join(f"{vdev.name}={vdev.state}" for vdev in vdevs
                         if not vdev.parent and vdev.state not in ("ONLINE", "AVAIL", "INUSE")),
        "state": state[1] if state else "",
    }  # fmt: skip
    return ObservedFileSystem(name, "zfs", facts=facts, vdevs=vdevs, origin=output_origin)


def _read_last_scrub(pool_text: str) -> str:
    """When the last scrub ended, "none" or "canceled"; empty where a resilver is in its place. Since OpenZFS 2.0 the
    line is missing for a pool that was never scrubbed."""
    scan = re.search(
        r"^[ \t]*scan: (none requested|scrub repaired .* on (\S.*)|scrub canceled)", pool_text, re.MULTILINE
    )
    if scan is None:
        is_silent = re.search(r"^[ \t]*config:", pool_text, re.MULTILINE) and not re.search(
            r"^[ \t]*(scan|scrub):", pool_text, re.MULTILINE)  # fmt: skip
        return "none" if is_silent else ""
    return scan[2].strip() if scan[2] else scan[1].rpartition(" ")[2].replace("requested", "none")


def _read_open_scrub(pool_text: str) -> dict[str, str]:
    """When a scrub that has not ended was started, and since when it is paused."""
    patterns = {"scrub_paused": r"^[ \t]*scan: scrub paused since (\S.*)$",
                "scrub_started": r"^[ \t]*scan: scrub in progress since (\S.*)$"}  # fmt: skip
    matches = {name: re.search(pattern, pool_text, re.MULTILINE) for name, pattern in patterns.items()}
    return {name: match[1].strip() for name, match in matches.items() if match}


def _read_properties(text: str, pool: str) -> dict[str, str]:
    """Properties of a pool in the output of zpool get and zfs get; the key of a dataset's property is
    property@dataset, that of feature@name of a pool is "feature name"."""
    pattern = rf"^{re.escape(pool)}(/\S*)?[ \t]+([a-z][a-z_]*(?:@\w+)?)[ \t]+(\S+)(?:[ \t]|$)"
    return {
        f"{name}@{pool}{dataset}" if dataset else name.replace("@", " "): value
        for dataset, name, value in re.findall(pattern, text, re.MULTILINE)
    }


def read_zfs_properties(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses zpool get and zfs get: properties of pools and of their datasets."""
    rows = re.findall(r"^([\w.:-]+)(?:/\S*)?[ \t]+[a-z][a-z_]*(?:@\w+)?[ \t]+\S+", output_text, re.MULTILINE)
    pools = dict.fromkeys(pool for pool in rows if pool != "NAME")
    if not pools:
        raise UserError(f"{output_origin} names no pool; it should be what zpool get or zfs get prints.")
    return ObservedStorage(tuple(
        ObservedFileSystem(pool, "zfs", facts=_read_properties(output_text, pool), origin=output_origin)
        for pool in pools
    ))  # fmt: skip


# The form that identifies parameters of the module zfs, as grep -H prints them.
MODULE_FORM = r"^/sys/module/zfs/parameters/"


def read_zfs_module(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses grep -H "" of files below /sys/module/zfs/parameters."""
    facts = dict(re.findall(rf"{MODULE_FORM}(\w+):(\S+)$", output_text, re.MULTILINE))
    if not facts:
        raise UserError(f"{output_origin} names no parameter; it should be lines like {MODULE_FORM[1:]}zfs_arc_max:0.")
    return ObservedStorage((ObservedFileSystem("module zfs", "zfs module", facts=facts, origin=output_origin),))


def _iterate_vdevs(pool_text: str, pool_name: str) -> Iterator[ObservedVdev]:
    """The rows of the table after NAME STATE READ WRITE CKSUM, which ends at an empty line or "errors:"."""
    head = re.search(r"^[ \t]*NAME[ \t]+STATE.*\n", pool_text, re.MULTILINE)
    use, parent, parent_depth, group, group_depth = "", "", 0, "", 0
    for line in pool_text[head.end() :].splitlines() if head else ():
        columns = line.split()
        if not columns or columns[0].startswith("errors:"):
            break
        depth = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        if columns[0] == pool_name:
            continue
        if columns[0] in _CLASSES and len(columns) < 5:
            use, parent, group = columns[0], "", ""
            continue
        counts = [_parse_error_count(column) for column in columns[2:5]]
        is_child = bool(parent) and depth > parent_depth
        if not is_child:
            parent = columns[0] if _GROUP_PATTERN.match(columns[0]) else ""
            parent_depth = depth
        is_in_group = is_child and bool(group) and depth > group_depth
        if not is_in_group:
            group = columns[0] if is_child and _INNER_GROUP_PATTERN.match(columns[0]) else ""
            group_depth = depth
        kind = columns[0].partition("-")[0] if _GROUP_PATTERN.match(columns[0]) else "drive"
        read_errors, write_errors, checksum_errors = counts if len(counts) == 3 else (0, 0, 0)
        yield ObservedVdev(
            columns[0],
            kind,
            use,
            parent if is_child else "",
            columns[1] if len(columns) > 1 else "",
            read_errors,
            write_errors,
            checksum_errors,
            " ".join(columns[5:]) if columns[2:3] and columns[2][0].isdigit() else "",
            group if is_in_group else "",
        )


def _parse_error_count(count_text: str) -> int:
    """A number of errors as zpool shortens it: 12, 1.5K."""
    match = re.fullmatch(r"([\d.]+)([KMG]?)", count_text)
    return int(float(match[1]) * {"": 1, "K": 1000, "M": 10**6, "G": 10**9}[match[2]]) if match else 0


def is_zpool_list(output_text: str) -> bool:
    """Whether a text is the table of zpool list."""
    return bool(_LIST_HEAD_PATTERN.search(output_text))


def read_zpool_list(output_text: str, output_origin: str) -> ObservedStorage:
    """Parses zpool list: how full and how healthy each pool is."""
    head = _LIST_HEAD_PATTERN.search(output_text)
    assert head is not None
    names = head[0].split()
    pools = []
    for line in output_text[head.end() :].splitlines():
        row = dict(zip(names, line.split(), strict=False))
        if not line.strip() or line.startswith((" ", "\t")):
            continue
        columns = {"capacity": "CAP", "state": "HEALTH", "fragmentation": "FRAG", "expandsize": "EXPANDSZ",
                   "checkpoint": "CKPOINT", "altroot": "ALTROOT"}  # fmt: skip
        facts = {name: row.get(column, "") for name, column in columns.items()}
        pools.append(ObservedFileSystem(row["NAME"], "zfs", facts=facts, origin=output_origin))
    if not pools:
        raise UserError(f"{output_origin} names no pool; it should be what zpool list prints.")
    return ObservedStorage(tuple(pools))
