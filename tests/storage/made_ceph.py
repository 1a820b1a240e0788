# SPDX-License-Identifier: Apache-2.0
"""CephFS on one machine: a monitor, a manager, a metadata server and four OSDs that keep objects in memory."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from room import ADDRESS, Room

NEEDED = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph", "monmaptool", "getfattr")
_OSDS = 4
_AS_ROOT = ("--setuser", "root", "--setgroup", "root")


class Ceph:
    """`place` and `second` are two mounts of it by ceph-fuse; one copy of each object."""

    name = "ceph"
    waits = True
    stops_ms = 200  # one client does everything: it has a queue of its own, which hides short ones
    # A sync waits for the metadata server too, whose journal lies on all OSDs.
    to_servers: Mapping[str, object] = {"direct": True}

    def __init__(self, room: Room) -> None:
        self.room = room
        for place in ("/etc/ceph", "/var/lib/ceph", "/run/ceph"):
            room.cover(place)
        own = str(uuid.uuid4())
        room.run("/bin/sh", "-c", 'printf "%s" "$0" >/etc/ceph/ceph.conf', _settings(own))
        room.run("mkdir", "-p", *(f"/var/lib/ceph/{one}" for one in ("mon/ceph-a", "mgr/ceph-x", "mds/ceph-m")),
                 *(f"/var/lib/ceph/osd/ceph-{number}" for number in range(_OSDS)))  # fmt: skip
        monitors = "/var/lib/ceph/monmap"
        room.run("monmaptool", "--create", "--fsid", own, "--addv", "a", f"[v1:{ADDRESS}:6789]", monitors)
        room.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors, *_AS_ROOT)
        room.run("ceph-mon", "-i", "a", *_AS_ROOT)
        room.run("ceph-mgr", "-i", "x", *_AS_ROOT)
        for number in range(_OSDS):
            identity = str(uuid.uuid4())
            self.ceph("osd", "new", identity)
            room.run("ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", identity, *_AS_ROOT)
            self._begin(number)
        self.ceph("osd", "pool", "create", "names", "8")
        self.ceph("osd", "pool", "create", "bytes", "16")
        self.ceph("fs", "new", "fs", "names", "bytes")
        room.run("ceph-mds", "-i", "m", *_AS_ROOT)
        room.until(lambda: "up:active" in self.ceph("mds", "stat"), "the metadata server did not become active")
        self.place, self.second = self._mount("first"), self._mount("second")
        # Without a size a mount looks like one that holds no data.
        room.until(lambda: int(room.said("stat", "-f", "-c", "%b", str(self.place))) > 0, "no OSD told its size")

    @property
    def targets(self) -> list[str]:
        return [f"osd.{number}" for number in range(_OSDS)]

    def ceph(self, *words: str) -> str:
        return self.room.said("ceph", *words)

    def _mount(self, name: str) -> Path:
        place = self.room.folder / "mnt" / name
        place.mkdir(parents=True)
        self.room.run("ceph-fuse", str(place))
        return place

    def of_object(self, path: Path, number: int) -> str:
        """The OSD of the object `number` of a file, as `ceph osd map` says."""
        inode = int(self.room.said("stat", "-c", "%i", str(path)))
        said = json.loads(self.ceph("osd", "map", "bytes", f"{inode:x}.{number:08x}", "-f", "json"))
        return f"osd.{said['acting_primary']}"

    def pid(self, number: int) -> int:
        return int(self.room.said("cat", f"/run/ceph/osd.{number}.pid"))

    def kill(self, number: int) -> None:
        """It says nothing any more. Not killed: what is kept in memory only would be gone with it."""
        self.room.run("/bin/sh", "-c", f"kill -STOP {self.pid(number)}")

    def start(self, number: int) -> None:
        self.room.run("/bin/sh", "-c", f"kill -CONT {self.pid(number)}")

    def _begin(self, number: int) -> None:
        """On a machine with much to do one start in some does not reach the monitor in time."""
        words = ("ceph-osd", "-i", str(number), *_AS_ROOT)
        self.room.until(lambda: self.room.run(*words, check=False).returncode == 0, f"osd.{number} did not start")


def _settings(own: str) -> str:
    return f"""[global]
fsid = {own}
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
osd objectstore = memstore
memstore device bytes = 1073741824
mon data avail crit = 1
osd pool default pg autoscale mode = off
ms bind msgr2 = false
mon initial members = a
[mon.a]
mon addr = {ADDRESS}:6789
[osd]
pid file = /run/ceph/osd.$id.pid
"""
