# SPDX-License-Identifier: Apache-2.0
"""Every section and key of IO500's ini file, with its default, in the order of the program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_DEBUG = "Makes the run INVALID; for debugging."


class Kind(Enum):
    """What a value may be."""

    TEXT = "text"
    INTEGER = "an integer"
    COUNT = "an integer from 0 on"
    FLAG = "TRUE or FALSE"
    NUMBER = "a number"


@dataclass(frozen=True)
class Key:
    """One key. Without a default it has no value until one is given."""

    name: str
    about: str
    kind: Kind = Kind.TEXT
    default: str | None = None


@dataclass(frozen=True)
class Section:
    """One section; those of phases have the name of the phase. `extra`: of phases that extended mode adds."""

    name: str
    keys: tuple[Key, ...] = ()
    extra: bool = False


_API = Key("API", "API of this part; options of its own may follow, separated by blanks")
_RUN = Key("run", "FALSE leaves this part out, and its results with it", Kind.FLAG, "TRUE")
_COLLECTIVE = Key("collective", "Collective calls, for APIs that have them", Kind.FLAG)
_VERBOSITY = Key("verbosity", "How many -v are given to the tool", Kind.INTEGER)
_FIND = (
    Key("external-script", "A program that searches instead of Sonde"),
    Key("external-mpi-args", "Words before that program, such as a launcher", default=""),
    Key("external-extra-args", "Words after that program", default=""),
    Key("nproc", "Tasks that search (default: all)", Kind.COUNT),
    _RUN,
    Key("pfind-queue-length", "Length of pfind's queue", Kind.INTEGER, "10000"),
    Key("pfind-steal-next", "pfind: whether work is taken from the next process first", Kind.FLAG, "FALSE"),
    Key(
        "pfind-parallelize-single-dir-access-using-hashing",
        "pfind: whether one directory is listed by several processes",
        Kind.FLAG,
        "FALSE",
    ),
)

SECTIONS: tuple[Section, ...] = (
    Section(
        "global",
        (
            Key("datadir", "The directory on the storage to measure", default="./datafiles"),
            Key("timestamp-datadir", "Whether the time of the run becomes a folder of datadir", Kind.FLAG, "TRUE"),
            Key("resultdir", "The directory for results", default="./results"),
            Key("timestamp-resultdir", "Whether the time of the run becomes a folder of resultdir", Kind.FLAG, "TRUE"),
            Key("api", "API of all parts; options for IOR and mdtest may follow, separated by blanks", default="POSIX"),
            Key(
                "drop-caches",
                "Whether caches are dropped before each phase; needed on a single node",
                Kind.FLAG,
                "FALSE",
            ),
            Key(
                "drop-caches-cmd", "How they are dropped", default='sudo -n bash -c "echo 3 > /proc/sys/vm/drop_caches"'
            ),
            Key("io-buffers-on-gpu", "Whether buffers are on a GPU", Kind.FLAG, "FALSE"),
            Key("verbosity", "How much is written to result.txt, 1 to 10", Kind.COUNT, "1"),
            Key("scc", "Rules of the Student Cluster Competition: 30 s instead of 300 s", Kind.FLAG, "FALSE"),
            Key(
                "dataPacketType",
                "Content of the data: timestamp, offset, incompressible or random",
                default="timestamp",
            ),
        ),
    ),
    Section(
        "debug",
        (
            Key(
                "stonewall-time",
                f"Seconds of the phases that write; 300 by the rules. Less: {_DEBUG}",
                Kind.INTEGER,
                "300",
            ),
            Key("pause-dir", f"A phase waits while a file of its name lies in this directory. {_DEBUG}"),
        ),
    ),
    Section(
        "ior-easy",
        (
            _API,
            Key("transferSize", "Bytes a call", default="2m"),
            Key("blockSize", "Most bytes of a task; a multiple of transferSize", default="9920000m"),
            Key("filePerProc", "A file for each task", Kind.FLAG, "TRUE"),
            Key("uniqueDir", "A directory for each of these files", Kind.FLAG, "FALSE"),
            _RUN,
            _VERBOSITY,
        ),
    ),
    Section("ior-easy-write", (_API, _RUN)),
    Section("mdtest-easy", (_API, Key("n", "Most files of a task", Kind.COUNT, "1000000"), _RUN)),
    Section("mdtest-easy-write", (_API, _RUN)),
    Section(
        "mdworkbench",
        (
            _API,
            Key("waitingTime", "Pause after an operation, relative to its duration", Kind.NUMBER, "0.0"),
            Key("precreatePerSet", "Files made before, of each of 10 sets; default: from mdtest's rate", Kind.COUNT),
            Key("filesPerProc", "Files of an iteration, of each of 10 sets; default: from mdtest's rate", Kind.COUNT),
            _RUN,
            _VERBOSITY,
        ),
        extra=True,
    ),
    Section("mdworkbench-create", (_RUN,), extra=True),
    Section("timestamp"),
    Section("find-easy", _FIND, extra=True),
    Section(
        "ior-hard",
        (_API, Key("segmentCount", "Most segments", Kind.INTEGER, "10000000"), _COLLECTIVE, _RUN, _VERBOSITY),
    ),
    Section("ior-hard-write", (_API, _COLLECTIVE, _RUN)),
    Section(
        "mdtest-hard",
        (
            _API,
            Key("n", "Most files of a task", Kind.COUNT, "1000000"),
            Key("files-per-dir", f"Most files of a directory, for file systems with a limit. {_DEBUG}", Kind.COUNT),
            _RUN,
        ),
    ),
    Section("mdtest-hard-write", (_API, _RUN)),
    Section("find", _FIND),
    Section("find-hard", _FIND, extra=True),
    Section("mdworkbench-bench", (_RUN,), extra=True),
    Section("ior-easy-read", (_API, _RUN)),
    Section("mdtest-easy-stat", (_API, _RUN)),
    Section("ior-hard-read", (_API, _COLLECTIVE, _RUN)),
    Section("mdtest-hard-stat", (_API, _RUN)),
    Section("mdworkbench-delete", (_RUN,), extra=True),
    Section("mdtest-easy-delete", (_API, _RUN)),
    Section("mdtest-hard-read", (_API, _RUN)),
    Section("mdtest-hard-delete", (_API, _RUN)),
    Section("ior-rnd4K-easy-read", (_API, _RUN)),
)
