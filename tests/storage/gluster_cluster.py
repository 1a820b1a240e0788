# SPDX-License-Identifier: Apache-2.0
"""GlusterFS of four bricks on one machine: a volume that distributes files, one with shards, one that disperses."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path

from daemon_namespace import ADDRESS, Room

NEEDED = ("glusterd", "gluster", "glusterfs", "mkfs.xfs", "getfattr")
_BRICKS = 4


class Gluster:
    """`places` of volumes: distribute, shard, disperse; `second` is another mount of distribute."""

    name = "gluster"
    tells = "rewrite"
    shard_bytes = 4 << 20
    stops_ms = 100
    to_servers: Mapping[str, object] = {"fsync": "per_op"}

    def __init__(self, room: Room) -> None:
        self.room = room
        # A file lies on one brick, and a check on a fast machine makes some of a gibibyte.
        self.bricks = [room.disk(f"b{number}", 2048) for number in range(1, _BRICKS + 1)]
        for folder in ("/var/lib/glusterd", "/var/log/glusterfs", "/run/gluster"):
            room.cover(folder)
        volfile = room.folder / "glusterd.vol"
        volfile.write_text(_DAEMON)
        room.run("glusterd", "-f", str(volfile), "-p", "/run/glusterd.pid", "-l", "/var/log/glusterd.log")
        room.until(
            lambda: room.run("gluster", "volume", "list", check=False).returncode == 0, "glusterd did not answer"
        )
        # A silent brick is given up after 5 s (42 s by itself); full is when nothing is left, not a hundredth.
        self._volume("distribute", (), {"network.ping-timeout": "5", "storage.reserve": "0"})
        self._volume("shard", (), {"features.shard": "on", "features.shard-block-size": f"{self.shard_bytes >> 20}MB"})
        self._volume("disperse", ("disperse", str(_BRICKS), "redundancy", "1"))
        self.places = {name: self._mount(name, name) for name in ("distribute", "shard", "disperse")}
        self.mount_path, self.second = self.places["distribute"], self._mount("distribute", "second")
        self.bounded = self.mount_path
        self._whole = room.blocks(self.mount_path)

    @property
    def targets(self) -> list[str]:
        """Bricks of the volume that distributes, as Gluster names them: by the host, however they were made."""
        return [f"{socket.gethostname()}:{brick}/distribute" for brick in self.bricks]

    def _volume(self, name: str, form: tuple[str, ...], options: Mapping[str, str] | None = None) -> None:
        bricks = [f"{ADDRESS}:{brick}/{name}" for brick in self.bricks]
        self.gluster("volume", "create", name, *form, "transport", "tcp", *bricks, "force")
        for option, value in (options or {}).items():
            self.gluster("volume", "set", name, option, value)
        self.gluster("volume", "start", name)

    def _mount(self, volume: str, name: str) -> Path:
        mount_point = self.room.folder / "mnt" / name
        mount_point.mkdir(parents=True)
        self.room.run("mount", "-t", "glusterfs", f"{ADDRESS}:/{volume}", str(mount_point))
        return mount_point

    def gluster(self, *arguments: str) -> str:
        return self.room.output_of("gluster", "--mode=script", *arguments)

    def targets_of(self, path: Path) -> set[str]:
        """The bricks of a file, as Gluster's attribute names them."""
        attribute = self.room.output_of("getfattr", "--only-values", "-n", "trusted.glusterfs.pathinfo", str(path))
        return {f"{host}:{brick}" for brick, host in re.findall(r"<POSIX\(([^)]*)\):([^:>]*):", attribute)}

    def held(self, volume: str, name: str) -> dict[str, int]:
        """Bytes of the files named `name` on the disk of each brick, independent of Gluster's reports."""
        bytes_by_brick = {}
        for brick in self.bricks:
            sizes = self.room.output_of(
                "find", f"{brick}/{volume}", "-path", "*/.glusterfs", "-prune", "-o", "-type", "f", "-name", name,
                "-not", "-perm", "/1000", "-printf", "%s\n",
            ).split()  # fmt: skip
            if sizes:
                bytes_by_brick[f"{brick}/{volume}"] = sum(map(int, sizes))
        return bytes_by_brick

    def pid(self, number: int) -> int:
        """Process id, inside the namespace, of the server of brick `number` of the distributed volume."""
        (file,) = self.room.output_of("sh", "-c", f"ls /run/gluster/vols/distribute/*-b{number + 1}-*.pid").split()
        return int(self.room.output_of("cat", file))

    def disk(self, number: int) -> Path:
        return self.bricks[number]

    def kill(self, number: int) -> None:
        self.room.run("/bin/sh", "-c", f"kill -KILL {self.pid(number)}")

    def to_fill(self, mebibytes: int) -> str:
        """Command that fills the bricks until `mebibytes` remain in total."""
        each = (mebibytes << 20) // _BRICKS
        room = "$(($(stat -f -c '%a * %S' $brick) - " + f"{each}))"
        return f"for brick in {' '.join(map(str, self.bricks))}; do fallocate -l {room} $brick/filler || exit 1; done"

    def emptied(self) -> None:
        self.room.run("rm", "-f", *(f"{brick}/filler" for brick in self.bricks))

    def hang(self, number: int) -> None:
        self.room.hang(self.pid(number))

    def wake(self, number: int) -> None:
        self.room.wake(self.pid(number))

    def start(self, number: int) -> None:
        self.gluster("volume", "start", "distribute", "force")
        connected = f"{ADDRESS}:{self.bricks[number]}/distribute"
        self.room.until(
            lambda: _online(self.gluster("volume", "status", "distribute", "detail"), connected), "no brick"
        )

    def settled(self) -> None:
        """Clients look for a lost brick every three seconds; without it the volume is smaller."""
        both = (self.mount_path, self.second)
        self.room.until(
            lambda: all(self.room.blocks(mount_point) > 0.9 * self._whole for mount_point in both), "a brick is away"
        )


def _online(status: str, brick: str) -> bool:
    part = status.partition(brick)[2].partition("Brick  ")[0]
    return re.search(r"Online\s*:\s*Y", part) is not None


_DAEMON = f"""volume management
    type mgmt/glusterd
    option working-directory /var/lib/glusterd
    option transport-type socket
    option transport.socket.bind-address {ADDRESS}
    option ping-timeout 0
    option event-threads 1
    option max-port 60999
end-volume
"""
