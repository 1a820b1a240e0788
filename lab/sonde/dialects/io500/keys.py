# SPDX-License-Identifier: Apache-2.0
"""Every section and key of IO500's ini file, with its default, in the order of the program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_DEBUG_WARNING = "Makes the run INVALID; for debugging."


class KeyKind(Enum):
    """Type of the value of a key."""

    TEXT = "text"
    INTEGER = "an integer"
    COUNT = "an integer from 0 on"
    FLAG = "TRUE or FALSE"
    NUMBER = "a number"


@dataclass(frozen=True)
class IniKey:
    """One key. Without a default, the value is None until the file sets it."""

    name: str
    about: str
    kind: KeyKind = KeyKind.TEXT
    default: str | None = None


@dataclass(frozen=True)
class IniSection:
    """One section; those of phases have the name of the phase. `extra`: of phases that extended mode adds."""

    name: str
    keys: tuple[IniKey, ...] = ()
    extra: bool = False


_API_KEY = IniKey("API", "API of this part; options of the API may follow, separated by blanks")
_RUN_KEY = IniKey("run", "FALSE leaves this part out, and its results with it", KeyKind.FLAG, "TRUE")
_COLLECTIVE_KEY = IniKey("collective", "Collective calls, for APIs that have them", KeyKind.FLAG)
_VERBOSITY_KEY = IniKey("verbosity", "How many -v are given to the tool", KeyKind.INTEGER)
_FIND_KEYS = (
    IniKey("external-script", "A program that searches instead of Sonde"),
    IniKey("external-mpi-args", "Words before that program, such as a launcher", default=""),
    IniKey("external-extra-args", "Words after that program", default=""),
    IniKey("nproc", "Tasks that search (default: all)", KeyKind.COUNT),
    _RUN_KEY,
    IniKey("pfind-queue-length", "Length of pfind's queue", KeyKind.INTEGER, "10000"),
    IniKey("pfind-steal-next", "pfind: whether work is taken from the next process first", KeyKind.FLAG, "FALSE"),
    IniKey(
        "pfind-parallelize-single-dir-access-using-hashing",
        "pfind: whether one directory is listed by several processes",
        KeyKind.FLAG,
        "FALSE",
    ),
)

SECTIONS: tuple[IniSection, ...] = (
    IniSection(
        "global",
        (
            IniKey("datadir", "The directory on the storage to measure", default="./datafiles"),
            IniKey(
                "timestamp-datadir", "Whether the time of the run becomes a folder of datadir", KeyKind.FLAG, "TRUE"
            ),
            IniKey("resultdir", "The directory for results", default="./results"),
            IniKey(
                "timestamp-resultdir", "Whether the time of the run becomes a folder of resultdir", KeyKind.FLAG, "TRUE"
            ),
            IniKey(
                "api", "API of all parts; options for IOR and mdtest may follow, separated by blanks", default="POSIX"
            ),
            IniKey(
                "drop-caches",
                "Whether caches are dropped before each phase; needed on a single node",
                KeyKind.FLAG,
                "FALSE",
            ),
            IniKey(
                "drop-caches-cmd", "How they are dropped", default='sudo -n bash -c "echo 3 > /proc/sys/vm/drop_caches"'
            ),
            IniKey("io-buffers-on-gpu", "Whether buffers are on a GPU", KeyKind.FLAG, "FALSE"),
            IniKey("verbosity", "How much is written to result.txt, 1 to 10", KeyKind.COUNT, "1"),
            IniKey("scc", "Rules of the Student Cluster Competition: 30 s instead of 300 s", KeyKind.FLAG, "FALSE"),
            IniKey(
                "dataPacketType",
                "Content of the data: timestamp, offset, incompressible or random",
                default="timestamp",
            ),
        ),
    ),
    IniSection(
        "debug",
        (
            IniKey(
                "stonewall-time",
                f"Seconds of the phases that write; 300 by the rules. Less: {_DEBUG_WARNING}",
                KeyKind.INTEGER,
                "300",
            ),
            IniKey("pause-dir", f"A phase waits while a file of its name lies in this directory. {_DEBUG_WARNING}"),
        ),
    ),
    IniSection(
        "ior-easy",
        (
            _API_KEY,
            IniKey("transferSize", "Bytes a call", default="2m"),
            IniKey("blockSize", "Most bytes of a task; a multiple of transferSize", default="9920000m"),
            IniKey("filePerProc", "A file for each task", KeyKind.FLAG, "TRUE"),
            IniKey("uniqueDir", "A directory for each of these files", KeyKind.FLAG, "FALSE"),
            _RUN_KEY,
            _VERBOSITY_KEY,
        ),
    ),
    IniSection("ior-easy-write", (_API_KEY, _RUN_KEY)),
    IniSection("mdtest-easy", (_API_KEY, IniKey("n", "Most files of a task", KeyKind.COUNT, "1000000"), _RUN_KEY)),
    IniSection("mdtest-easy-write", (_API_KEY, _RUN_KEY)),
    IniSection(
        "mdworkbench",
        (
            _API_KEY,
            IniKey("waitingTime", "Pause after an operation, relative to its duration", KeyKind.NUMBER, "0.0"),
            IniKey(
                "precreatePerSet", "Files made before, of each of 10 sets; default: from mdtest's rate", KeyKind.COUNT
            ),
            IniKey(
                "filesPerProc", "Files of an iteration, of each of 10 sets; default: from mdtest's rate", KeyKind.COUNT
            ),
            _RUN_KEY,
            _VERBOSITY_KEY,
        ),
        extra=True,
    ),
    IniSection("mdworkbench-create", (_RUN_KEY,), extra=True),
    IniSection("timestamp"),
    IniSection("find-easy", _FIND_KEYS, extra=True),
    IniSection(
        "ior-hard",
        (
            _API_KEY,
            IniKey("segmentCount", "Most segments", KeyKind.INTEGER, "10000000"),
            _COLLECTIVE_KEY,
            _RUN_KEY,
            _VERBOSITY_KEY,
        ),
    ),
    IniSection("ior-hard-write", (_API_KEY, _COLLECTIVE_KEY, _RUN_KEY)),
    IniSection(
        "mdtest-hard",
        (
            _API_KEY,
            IniKey("n", "Most files of a task", KeyKind.COUNT, "1000000"),
            IniKey(
                "files-per-dir",
                f"Most files of a directory, for file systems with a limit. {_DEBUG_WARNING}",
                KeyKind.COUNT,
            ),
            _RUN_KEY,
        ),
    ),
    IniSection("mdtest-hard-write", (_API_KEY, _RUN_KEY)),
    IniSection("find", _FIND_KEYS),
    IniSection("find-hard", _FIND_KEYS, extra=True),
    IniSection("mdworkbench-bench", (_RUN_KEY,), extra=True),
    IniSection("ior-easy-read", (_API_KEY, _RUN_KEY)),
    IniSection("mdtest-easy-stat", (_API_KEY, _RUN_KEY)),
    IniSection("ior-hard-read", (_API_KEY, _COLLECTIVE_KEY, _RUN_KEY)),
    IniSection("mdtest-hard-stat", (_API_KEY, _RUN_KEY)),
    IniSection("mdworkbench-delete", (_RUN_KEY,), extra=True),
    IniSection("mdtest-easy-delete", (_API_KEY, _RUN_KEY)),
    IniSection("mdtest-hard-read", (_API_KEY, _RUN_KEY)),
    IniSection("mdtest-hard-delete", (_API_KEY, _RUN_KEY)),
    IniSection("ior-rnd4K-easy-read", (_API_KEY, _RUN_KEY)),
)
