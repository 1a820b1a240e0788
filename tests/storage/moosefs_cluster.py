# SPDX-License-Identifier: Apache-2.0
"""MooseFS on one machine: a master and four chunk servers, one copy of each chunk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from daemon_namespace import ADDRESS, Room

NEEDED = ("mfsmaster", "mfschunkserver", "mfsmount", "mfsfileinfo", "mkfs.xfs")
_SERVERS = 4
_DISK_MIB = 8192
_PORT = 9520


class MooseFS:
    """`place` and `second` are two mounts of it."""

    name = "moosefs"
    tells = "read"  # writes go into the memory of its servers, however often one syncs
    stops_ms = 100
    to_servers: Mapping[str, object] = {"fsync": "per_op"}

    def __init__(self, room: Room) -> None:
        self.room = room
        for folder in ("/var/lib/mfs", "/etc/mfs"):
            room.cover(folder)
        self._file("/var/lib/mfs/metadata.mfs", "MFSM NEW")
        self._file("/etc/mfs/mfsmaster.cfg", _MASTER)
        self._file("/etc/mfs/mfsexports.cfg", "* / rw,alldirs,admin,maproot=0\n")
        room.run("cp", "/usr/share/doc/moosefs-master/examples/mfstopology.cfg", "/etc/mfs", check=False)
        room.run("mfsmaster", "-c", "/etc/mfs/mfsmaster.cfg", "start")
        self.disks: list[Path] = []
        for number in range(_SERVERS):
            disk = room.disk(f"m{number}", _DISK_MIB)  # each chunk that is begun counts as 64 MiB
            self.disks.append(disk)
            room.run("mkdir", f"/var/lib/mfs/{number}")
            self._file(f"/etc/mfs/hdd{number}.cfg", f"{disk}\n")
            self._file(f"/etc/mfs/server{number}.cfg", _server(number))
            self.start(number)
        self.mount_path, self.second = self._mount("first"), self._mount("second")
        self.bounded = self.mount_path
        room.until(lambda: self._servers() == _SERVERS, "not all chunk servers came")
        room.run("mfssetgoal", "-r", "1", str(self.mount_path))
        room.run("mfssettrashtime", "-r", "0", str(self.mount_path))  # what is removed is gone, not kept for a day
        # A new server reports its space a little later.
        probe = ("dd", "if=/dev/zero", f"of={self.mount_path}/probe", "bs=4k", "count=1", "conv=fsync", "status=none")
        room.until(lambda: room.run(*probe, check=False).returncode == 0, "nothing could be written")
        room.run("rm", f"{self.mount_path}/probe")

    @property
    def targets(self) -> list[str]:
        return [f"{ADDRESS}:{_PORT + number}" for number in range(_SERVERS)]

    def _file(self, path: str, text: str) -> None:
        self.room.run("/bin/sh", "-c", 'printf "%s" "$0" >"$1"', text, path)

    def _mount(self, name: str) -> Path:
        mount_point = self.room.folder / "mnt" / name
        mount_point.mkdir(parents=True)
        # Without this a client waits for minutes for a server that is gone.
        self.room.run("mfsmount", str(mount_point), "-H", ADDRESS, "-o", "mfsioretries=3")
        return mount_point

    def _servers(self) -> int:
        listing = self.room.run("mfscli", "-H", ADDRESS, "-SCS", "-p", check=False).stdout
        return len(re.findall(rf"{re.escape(ADDRESS)}", listing))

    def targets_of(self, path: Path) -> set[str]:
        """Chunk servers of a file."""
        return set(re.findall(r"copy \d+: (\S+)", self.room.output_of("mfsfileinfo", str(path))))

    def pid(self, number: int) -> int:
        return int(self.room.output_of("cat", f"/var/lib/mfs/{number}/.mfschunkserver.lock").strip())

    def disk(self, number: int) -> Path:
        return self.disks[number]

    def forget(self) -> None:
        """Reads come from the disks."""
        for disk in self.disks:
            self.room.forget(disk, "chunk_*")

    def kill(self, number: int) -> None:
        self.room.run("/bin/sh", "-c", f"kill -KILL {self.pid(number)}")

    def to_fill(self, mebibytes: int) -> str:
        """A quota, which goes with the directory."""
        return f"mfssetquota -L {mebibytes}Mi $SONDE_DIRECTORY"

    def emptied(self) -> None:
        """There is nothing to undo."""

    def hang(self, number: int) -> None:
        self.room.hang(self.pid(number))

    def wake(self, number: int) -> None:
        self.room.wake(self.pid(number))

    def start(self, number: int) -> None:
        self.room.run("mfschunkserver", "-c", f"/etc/mfs/server{number}.cfg", "start")

    def settled(self) -> None:
        """Waits until the free space (in blocks of 64 KiB) shows that all servers are present."""
        self.room.until(
            lambda: self.room.blocks(self.mount_path) > 0.9 * _SERVERS * _DISK_MIB * 16, "a chunk server is away"
        )


_MASTER = f"""WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = /var/lib/mfs
MATOCS_LISTEN_HOST = {ADDRESS}
MATOCL_LISTEN_HOST = {ADDRESS}
MATOML_LISTEN_HOST = {ADDRESS}
CHUNKS_LOOP_MIN_TIME = 60
CHUNKS_SOFT_DEL_LIMIT = 1000
CHUNKS_HARD_DEL_LIMIT = 10000
REPLICATIONS_DELAY_INIT = 0
"""


def _server(number: int) -> str:
    return f"""WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = /var/lib/mfs/{number}
HDD_CONF_FILENAME = /etc/mfs/hdd{number}.cfg
MASTER_HOST = {ADDRESS}
CSSERV_LISTEN_HOST = {ADDRESS}
CSSERV_LISTEN_PORT = {_PORT + number}
HDD_LEAVE_SPACE_DEFAULT = 16MiB
"""
