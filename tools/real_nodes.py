# SPDX-License-Identifier: Apache-2.0
"""Compute nodes on this machine: network namespaces on a bridge of a room with servers, each with its own mount at the
same path. The ssh launcher reaches them by a script in place of ssh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daemon_namespace import Room

from real_streams import LINK_MEGABITS, Stream, measure_stream, set_link_rate

_CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
_NODE_NETWORK = "10.94.0"
_BRIDGE, _HEAD_ADDRESS = "br0", f"{_NODE_NETWORK}.100"
_NODE_DEVICE = "e0"
_PERIOD_US = 100_000
# What the engine calls instead of ssh: `<script> [OPTION…] HOST COMMAND…`.
_REMOTE_SHELL = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1; shift
[[ -e {group}-$host ]] && echo $$ >{group}-$host/cgroup.procs
exec nsenter --net=/run/netns/$host unshare --uts --mount --propagation private bash -c \\
    'hostname "$0"; mount --bind {mounts}/$0 {mount}; eval "$@"' "$host" "$@"
"""


@dataclass(frozen=True)
class ClientNode:
    """A compute node in which a fault is planted."""

    room: Room
    name: str
    number: int
    group: Path  # of the scheduler, when its processors are limited

    @contextmanager
    def limit_network(self, megabits: int) -> Iterator[None]:
        """Limits what the node sends and what it receives."""
        self.set_link_rate(megabits)
        try:
            yield
        finally:
            self.set_link_rate(LINK_MEGABITS)

    def set_link_rate(self, megabits: int) -> None:
        """Sets the rate at which the node sends and receives."""
        set_link_rate(self.room, _NODE_DEVICE, megabits, self.name)
        set_link_rate(self.room, f"v{self.number}", megabits)

    def measure_streams(self) -> list[Stream]:
        """Measures a stream from the node to the servers, and one back."""
        node, servers = ("nsenter", f"--net=/run/netns/{self.name}"), ()
        return [
            measure_stream(self.room, node, servers, _HEAD_ADDRESS),
            measure_stream(self.room, servers, node, f"{_NODE_NETWORK}.{self.number}"),
        ]

    @contextmanager
    def limit_processors(self, percent: int) -> Iterator[None]:
        """Limits the tasks and the file-system client of the node to a share of one processor."""
        clients = self.room.output_of("pgrep", "-f", f"ceph-fuse.*/nodes/{self.name}$").split()
        self.group.mkdir()
        try:
            (self.group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (self.group / "cpu.cfs_quota_us").write_text(str(percent * _PERIOD_US // 100))
            self._move_processes(clients, self.group)
            yield
        finally:
            self._move_processes((self.group / "cgroup.procs").read_text().split(), _CPU_GROUPS, is_inside=False)
            self.group.rmdir()

    def _move_processes(self, process_ids: list[str], group: Path, is_inside: bool = True) -> None:
        """Process ids are those of the room, or of this machine."""
        for process_id in process_ids:
            if is_inside:
                self.room.run("/bin/sh", "-c", f"echo {process_id} >{group}/cgroup.procs")
            else:
                (group / "cgroup.procs").write_text(process_id)


class RoomNodes:
    """Nodes n1 to n`count` in a room; they see at `mount_path` a mount of their own by ceph-fuse."""

    def __init__(self, room: Room, count: int, mount_path: Path) -> None:
        self._room = room
        self._group = _CPU_GROUPS / f"sonde-{room.folder.name}"
        self.names = [f"n{number}" for number in range(1, count + 1)]
        room.run("ip", "link", "add", _BRIDGE, "type", "bridge")
        room.run("ip", "link", "set", _BRIDGE, "up")
        room.run("ip", "address", "add", f"{_HEAD_ADDRESS}/24", "dev", _BRIDGE)
        mounts = room.folder / "nodes"
        for number, name in enumerate(self.names, 1):
            self._add_node(number, name)
            (mounts / name).mkdir(parents=True)
            room.run("nsenter", f"--net=/run/netns/{name}", "ceph-fuse", str(mounts / name))
        hosts = room.folder / "hosts"
        lines = [f"{_NODE_NETWORK}.{number} {name}" for number, name in enumerate(self.names, 1)]
        hosts.write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n", encoding="utf-8")
        room.run("mount", "--bind", str(hosts), "/etc/hosts")
        self._shell = room.folder / "remote-shell"
        self._shell.write_text(
            _REMOTE_SHELL.format(group=self._group, mounts=mounts, mount=mount_path), encoding="utf-8"
        )
        self._shell.chmod(0o755)

    def _add_node(self, number: int, name: str) -> None:
        run = self._room.run
        run("ip", "netns", "add", name)
        run("ip", "link", "add", _NODE_DEVICE, "netns", name, "type", "veth", "peer", "name", f"v{number}")
        run("ip", "link", "set", f"v{number}", "master", _BRIDGE, "up")
        for device in ("lo", _NODE_DEVICE):
            run("ip", "-n", name, "link", "set", device, "up")
        run("ip", "-n", name, "address", "add", f"{_NODE_NETWORK}.{number}/24", "dev", _NODE_DEVICE)
        run("ip", "-n", name, "route", "add", "default", "via", _HEAD_ADDRESS)
        self.get_node(number - 1).set_link_rate(LINK_MEGABITS)

    def get_node(self, position: int) -> ClientNode:
        name = self.names[position]
        return ClientNode(self._room, name, position + 1, Path(f"{self._group}-{name}"))

    def measure_streams(self) -> list[Stream]:
        """Measures streams between each node and the servers, one at a time."""
        nodes = [self.get_node(position) for position in range(len(self.names))]
        return [stream for node in nodes for stream in node.measure_streams()]

    def list_launch_arguments(self, task_count: int) -> list[str]:
        """Arguments of `sonde run` for so many tasks on all nodes."""
        hosts = f"--hosts {','.join(self.names)} --shell {self._shell}"
        return ["--launcher", "ssh", "--tasks", str(task_count), "--launcher-args", hosts]
