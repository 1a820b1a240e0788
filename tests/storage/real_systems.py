# SPDX-License-Identifier: Apache-2.0
"""The file systems of these tests, and the queries and commands that each supports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ceph_cluster import NEEDED as CEPH
from ceph_cluster import Ceph
from daemon_namespace import Room
from gluster_cluster import NEEDED as GLUSTER
from gluster_cluster import Gluster
from moosefs_cluster import NEEDED as MOOSEFS
from moosefs_cluster import MooseFS


class Storage(Protocol):
    """A file system of four servers of data in a room."""

    name: str
    room: Room
    mount_path: Path  # a mount
    second: Path  # another one, with a client of its own
    bounded: Path  # a mount whose client gives up a server that does not answer
    tells: str  # the operation whose time tells how fast a server is: rewrite or read
    stops_ms: int  # how long a server has to be stopped each time to be slow
    to_servers: Mapping[str, object]  # data.io with which writes wait for the servers

    @property
    def targets(self) -> list[str]:
        """The servers as Sonde calls them."""
        ...

    def targets_of(self, path: Path) -> set[str]:
        """Names of the targets that store the first bytes of a file, as the system's tools report them."""
        ...

    def pid(self, number: int) -> int:
        """The process of a server, as it is called in the room."""
        ...

    def disk(self, number: int) -> Path:
        """The file system that a server keeps its bytes on."""
        ...

    def kill(self, number: int) -> None: ...

    def settled(self) -> None:
        """Waits until all clients use a server that is back."""
        ...

    def to_fill(self, mebibytes: int) -> str:
        """A command after which at most so many MiB more can be written to the directory $SONDE_DIRECTORY."""
        ...

    def emptied(self) -> None:
        """Undoes that."""
        ...

    def hang(self, number: int) -> None:
        """Stops a server that keeps its connections and no longer answers."""
        ...

    def wake(self, number: int) -> None:
        """Resumes it."""
        ...

    def start(self, number: int) -> None:
        """Again."""
        ...


SYSTEMS: dict[str, tuple[type[Gluster] | type[MooseFS] | type[Ceph], tuple[str, ...]]] = {
    "gluster": (Gluster, GLUSTER), "moosefs": (MooseFS, MOOSEFS), "ceph": (Ceph, CEPH),
}  # fmt: skip
