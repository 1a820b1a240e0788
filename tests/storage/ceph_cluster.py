# SPDX-License-Identifier: Apache-2.0
"""CephFS on one machine: a monitor, a manager, a metadata server, four OSDs for data and one for names, which keep
objects on disks of their own (bluestore in files on loop devices)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from daemon_namespace import ADDRESS, Room

NEEDED = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph", "monmaptool", "mkfs.xfs", "getfattr")
_OSDS = 4
_OF_NAMES = _OSDS  # the last one: what happens to those of data does not stop the metadata server
_AS_ROOT = ("--setuser", "root", "--setgroup", "root")
_GIVES_UP_S = 12
_BUSY_MONITOR, _BUSY_TRIES = "problem getting command descriptions", 5


class Ceph:
    """`place` and `second` are two mounts by ceph-fuse; one copy of each object. They wait for an OSD however long;
    `bounded` is a mount that gives up."""

    name = "ceph"
    tells = "rewrite"
    stops_ms = 200  # one client does everything: it has a queue of its own, which hides short ones
    to_servers: Mapping[str, object] = {"direct": True}

    def __init__(self, room: Room, placement_groups: int = 16) -> None:
        self.room = room
        self._placement_groups = placement_groups  # of the pool of bytes
        for folder in ("/etc/ceph", "/var/lib/ceph", "/run/ceph"):
            room.cover(folder)
        fsid = str(uuid.uuid4())
        room.run("/bin/sh", "-c", 'printf "%s" "$0" >/etc/ceph/ceph.conf', _settings(fsid))
        room.run("mkdir", "-p", *(f"/var/lib/ceph/{daemon}" for daemon in ("mon/ceph-a", "mgr/ceph-x", "mds/ceph-m")))
        monitors = "/var/lib/ceph/monmap"
        room.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v1:{ADDRESS}:6789]", monitors)
        room.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors, *_AS_ROOT)
        room.run("ceph-mon", "-i", "a", *_AS_ROOT)
        room.run("ceph-mgr", "-i", "x", *_AS_ROOT)
        self.disks = [self._osd(number) for number in range(_OSDS + 1)]
        self._pools()
        room.run("ceph-mds", "-i", "m", *_AS_ROOT)
        room.until(lambda: "up:active" in self.ceph("mds", "stat"), "the metadata server did not become active")
        self.mount_path, self.second = self._mount("first"), self._mount("second")
        self.bounded = self._mount("bounded", f"--rados_osd_op_timeout={_GIVES_UP_S}")
        # Until then a mount has a size of 0, and Sonde says that it is too early.
        room.until(lambda: room.blocks(self.mount_path) > 0, "no OSD told its size")

    @property
    def targets(self) -> list[str]:
        return [f"osd.{number}" for number in range(_OSDS)]

    def ceph(self, *arguments: str) -> str:
        """Repeats a command that a monitor with much to do did not describe in time, before it was executed."""
        for _ in range(_BUSY_TRIES):
            done = self.room.run("ceph", *arguments, check=False)
            if done.returncode == 0 or _BUSY_MONITOR not in done.stderr:
                break
        return done.stdout if done.returncode == 0 else self.room.output_of("ceph", *arguments)

    def _osd(self, number: int) -> Path:
        identity = str(uuid.uuid4())
        self.ceph("osd", "new", identity)
        disk = self.room.disk(f"o{number}", 2048)
        self.room.run("mkdir", "-p", "/var/lib/ceph/osd")
        self.room.run("ln", "-s", str(disk), f"/var/lib/ceph/osd/ceph-{number}")
        self.room.run("ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", identity, *_AS_ROOT)
        self._begin(number)
        return disk

    def _pools(self) -> None:
        """Names and bytes on OSDs of two classes, as sites keep names on flash."""
        for kind, numbers in (("hdd", range(_OSDS)), ("ssd", (_OF_NAMES,))):
            every = [f"osd.{number}" for number in numbers]
            self.ceph("osd", "crush", "rm-device-class", *every)
            self.ceph("osd", "crush", "set-device-class", kind, *every)
            self.ceph("osd", "crush", "rule", "create-replicated", f"on-{kind}", "default", "osd", kind)
        groups = str(self._placement_groups)
        self.ceph("osd", "pool", "create", "names", "8", "8", "replicated", "on-ssd")
        self.ceph("osd", "pool", "create", "bytes", groups, groups, "replicated", "on-hdd")
        self.ceph("fs", "new", "fs", "names", "bytes")

    def _mount(self, name: str, *options: str) -> Path:
        mount_point = self.room.folder / "mnt" / name
        mount_point.mkdir(parents=True)
        self.room.run("ceph-fuse", *options, str(mount_point))
        return mount_point

    def targets_of(self, path: Path) -> set[str]:
        """The OSD of the first object of a file, as `ceph osd map` says."""
        inode = int(self.room.output_of("stat", "-c", "%i", str(path)))
        document = json.loads(self.ceph("osd", "map", "bytes", f"{inode:x}.{0:08x}", "-f", "json"))
        return {f"osd.{document['acting_primary']}"}

    def disk(self, number: int) -> Path:
        return self.disks[number]

    def pid(self, number: int) -> int:
        return int(self.room.output_of("cat", f"/run/ceph/osd.{number}.pid"))

    def kill(self, number: int) -> None:
        self.room.run("/bin/sh", "-c", f"kill -KILL {self.pid(number)}")

    def to_fill(self, mebibytes: int) -> str:
        """A quota, which goes with the directory."""
        return f"setfattr -n ceph.quota.max_bytes -v {mebibytes << 20} $SONDE_DIRECTORY"

    def emptied(self) -> None:
        """There is nothing to undo."""

    def hang(self, number: int) -> None:
        self.room.hang(self.pid(number))

    def wake(self, number: int) -> None:
        self.room.wake(self.pid(number))
        # A group whose only OSD was silent stays "laggy", and answers nobody, until it has been down once.
        self.ceph("osd", "down", str(number))

    def start(self, number: int) -> None:
        self._begin(number)

    def settled(self) -> None:
        """All OSDs are up and have taken their groups back."""
        self.room.until(lambda: f"{_OSDS + 1} up" in self.ceph("osd", "stat"), "not all OSDs came up again")
        self.room.until(lambda: _all_active(self.ceph("pg", "stat")), "placement groups did not become active")

    def _begin(self, number: int) -> None:
        """On a busy machine some starts do not reach the monitor in time."""
        command = ("ceph-osd", "-i", str(number), *_AS_ROOT)
        self.room.until(lambda: self.room.run(*command, check=False).returncode == 0, f"osd.{number} did not start")


def _all_active(status: str) -> bool:
    """Parses "24 pgs: 24 active+clean; 3 MiB data, …"."""
    every, _, states = status.partition(";")[0].partition(" pgs: ")
    return states == f"{every} active+clean"


def _settings(fsid: str) -> str:
    return f"""[global]
fsid = {fsid}
mon host = v1:{ADDRESS}:6789
public addr = {ADDRESS}
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
mon warn on pool no redundancy = false
osd crush chooseleaf type = 0
mon data avail crit = 1
osd pool default pg autoscale mode = off
ms bind msgr2 = false
mon initial members = a
[mon.a]
mon addr = {ADDRESS}:6789
[osd]
pid file = /run/ceph/osd.$id.pid
osd objectstore = bluestore
bluestore block size = 1610612736
bluestore cache autotune = false
bluestore cache size = 67108864
osd memory target = 939524096
"""
