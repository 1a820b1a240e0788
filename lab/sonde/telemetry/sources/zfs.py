# SPDX-License-Identifier: Apache-2.0
"""ZFS on Linux: the kstats below /proc/spl/kstat/zfs, of the cache (`arcstats`) and of each data set (`POOL/objset-*`).

A kstat has two lines of headings and lines ``name type value``. Reads and writes of a data set are those of programs,
before the cache. Form of OpenZFS 0.8 to 2.2; up to 2.0 a pool also has a file `io` of the pool as a whole.
"""

from __future__ import annotations

from pathlib import Path

from sonde.telemetry.source import (
    ColumnValues,
    LocalSource,
    ReadingsByPart,
    ReopenedKernelFile,
    SourceReader,
    UnavailableSourceError,
)

_KSTAT_FOLDER = "proc/spl/kstat/zfs"
_CACHE_MEMBERS = ("hits", "misses", "l2_hits", "l2_misses", "size", "c")
_POOL_MEMBERS = ("nread", "nwritten", "reads", "writes")
_LOAD_REMEDY = "load the module zfs (package zfs-dkms or zfsutils-linux), or sample it on a server with ZFS."


def parse_named_kstat(kstat_text: str) -> dict[str, str]:
    """Name -> value of a kstat of named members; names and values may contain blanks only at the end of the line."""
    members = {}
    for line in kstat_text.splitlines()[2:]:
        fields = line.split(maxsplit=2)
        if len(fields) == 3:
            members[fields[0]] = fields[2].strip()
    return members


def parse_pool_io(io_text: str) -> ColumnValues:
    """The values of a file `io`: two lines of headings, and one of numbers. Raises KeyError without the members."""
    _, titles, numbers = (line.split() for line in io_text.splitlines()[:3])
    row = dict(zip(titles, numbers, strict=False))
    return tuple(float(row[name]) for name in _POOL_MEMBERS)


def _select_members(kstat_members: dict[str, str], member_names: tuple[str, ...]) -> ColumnValues:
    return tuple(float(kstat_members[name]) if kstat_members.get(name, "").isdigit() else None for name in member_names)


def _open_arcstats_reader(file_system_root: Path) -> SourceReader:
    try:
        file = ReopenedKernelFile(file_system_root / _KSTAT_FOLDER / "arcstats")
    except OSError as error:
        raise UnavailableSourceError(f"/{_KSTAT_FOLDER}/arcstats: {error.strerror}; {_LOAD_REMEDY}") from None
    return SourceReader(lambda: {"": _select_members(parse_named_kstat(file.read_text()), _CACHE_MEMBERS)}, file.close)


def _open_data_sets_reader(file_system_root: Path) -> SourceReader:
    paths = sorted((file_system_root / _KSTAT_FOLDER).glob("*/objset-*")) or sorted(
        (file_system_root / _KSTAT_FOLDER).glob("*/io")
    )
    if not paths:
        raise UnavailableSourceError(f"/{_KSTAT_FOLDER} has no pool; {_LOAD_REMEDY}")
    files = {path: ReopenedKernelFile(path) for path in paths}

    def read_data_sets() -> ReadingsByPart:
        readings: ReadingsByPart = {}
        for path, file in files.items():
            text = file.read_text()
            if path.name == "io":
                readings[path.parent.name] = parse_pool_io(text)
            else:
                members = parse_named_kstat(text)
                readings[members.get("dataset_name", path.name)] = _select_members(members, _POOL_MEMBERS)
        return readings

    def close_data_sets() -> None:
        for file in files.values():
            file.close()

    return SourceReader(read_data_sets, close_data_sets)


CACHE_SOURCE = LocalSource(
    "zfs-cache",
    "hits, misses and size of the cache of ZFS",
    "server",
    (
        "zfs_cache_hits", "zfs_cache_misses", "zfs_second_cache_hits", "zfs_second_cache_misses", "zfs_cache_bytes",
        "zfs_cache_limit_bytes",
    ),
    _open_arcstats_reader,
)  # fmt: skip
DATA_SETS_SOURCE = LocalSource(
    "zfs-data-sets",
    "bytes and calls of programs on every ZFS data set",
    "server",
    ("zfs_read_bytes", "zfs_written_bytes", "zfs_reads", "zfs_writes"),
    _open_data_sets_reader,
)
