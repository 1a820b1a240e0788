# SPDX-License-Identifier: Apache-2.0
"""File systems with storage servers on this machine in which faults are planted: Ceph and Gluster with one client, and
Ceph with four client nodes. Each has a system file and an archive."""

from __future__ import annotations

import json
import math
import os
import random
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ceph_cluster import Ceph
from daemon_namespace import ADDRESS, Room
from gluster_cluster import Gluster
from user import User

from real_nodes import ClientNode, RoomNodes
from real_streams import LINK_MEGABITS, Stream, measure_stream, set_link_rate
from real_trials import RealMachine
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.experiment_plan import ScaledExperiment, scale_experiment_to_machine
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import measure_record
from sonde.launch.engine import find_engine
from sonde.model.record import RECORD_FILE, read_record

Storage = TypeVar("Storage")
_NODE_COUNT = 4
_OBJECTS_PER_TARGET, _MIN_STRIPE_UNIT = 8, 64 << 10
_LOOPBACK = "lo"
_PLACEMENT_GROUPS = 128  # with 16 an OSD may have an eighth of the objects
# Rates and the time of a small request are those of the healthy system. Without the time of a request the model would
# have small requests wait for the network.
_SYSTEM_TEMPLATE = """
schema = "sonde-system/2"
id = "one-host"
title = "Four storage targets, all daemons on one host"
[[networks]]
id = "network"
kind = "ethernet"
rate = "{network} MB/s"
[[nodes]]
id = "{nodes}"
[[nodes.interfaces]]
network = "network"
[[servers]]
id = "{server}"
roles = ["oss"]
[[servers.interfaces]]
network = "network"
[[servers]]
id = "metadata"
roles = ["mds", "mgs"]
[[servers.interfaces]]
network = "network"
[[targets]]
id = "{targets}"
kind = "{kind}"
index = {index}
{label}
file_system = "fs"
server = "{server}"
rate = { read = "{read} MB/s", write = "{write} MB/s" }
model = { queue_depth = {depth}, request_cost = "{request} us" }
[[targets]]
id = "names"
kind = "mdt"
index = 0
file_system = "fs"
server = "metadata"
[[file_systems]]
id = "fs"
kind = "{file_system}"
[[mounts]]
id = "mount"
file_system = "fs"
path = "{path}"
on = "{nodes}"
"""
# What these clients can do: they have no page cache of the kernel to drop or to read from, and do not place files by
# number.
_TRANSFERS, _SMALL_REQUESTS = "every-target", "small-reads"
_EXPERIMENTS = (_TRANSFERS, _SMALL_REQUESTS, "names")


@dataclass(frozen=True)
class StorageServer:
    """A storage server in which a fault is planted."""

    storage: Ceph | Gluster
    number: int

    @property
    def room(self) -> Room:
        return self.storage.room

    @property
    def device_number(self) -> str:
        """Major and minor number of the disk, as control groups name it."""
        device = int(self.room.output_of("stat", "-c", "%d", str(self.storage.disk(self.number))))
        return f"{os.major(device)}:{os.minor(device)}"

    def stop_repeatedly(self, stopped_ms: int, running_ms: int) -> AbstractContextManager[None]:
        return self.room.slowed(self.storage.pid(self.number), stopped_ms, running_ms)


@contextmanager
def limit_network(room: Room, megabits: int) -> Iterator[None]:
    """All traffic of one client goes over the loopback device of the room."""
    set_link_rate(room, _LOOPBACK, megabits)
    try:
        yield
    finally:
        set_link_rate(room, _LOOPBACK)


@contextmanager
def lose_packets(room: Room, per_thousand: int) -> Iterator[None]:
    room.run("nft", "add table ip loss")
    try:
        room.run("nft", "add chain ip loss input { type filter hook input priority 0; }")
        room.run("nft", f"add rule ip loss input iif lo ip protocol tcp numgen random mod 1000 < {per_thousand} drop")
        yield
    finally:
        room.run("nft", "delete table ip loss")


class ClusterMachine(RealMachine[Storage]):
    """A file system in a room, with an archive."""

    def __init__(self, room: Room, mount_path: Path, system_text: str) -> None:
        self._room = room
        self._mount_path = mount_path
        self._user = User(room, find_engine().path, room.folder)
        self._system_file = room.folder / "system.toml"
        self._system_text = system_text.replace("{path}", str(mount_path))
        state = DiagnosisState(system=str(self._system_file))
        self._write_system_file(dict.fromkeys(("read", "write", "network", "depth", "request"), 1.0))
        self._write_system_file(self._measure_rates(DiagnosisSession.read_machine(state)))
        session = DiagnosisSession.open_session(state, room.folder / "predictions")
        possible = {item.id for item in session.model.experiments}
        super().__init__(session, [name for name in _EXPERIMENTS if name in possible])

    def _write_system_file(self, rates: Mapping[str, float]) -> None:
        self._system_file.write_text(fill_rates(self._system_text, rates), encoding="utf-8")

    def _measure_rates(self, machine: DiagnosedMachine) -> dict[str, float]:
        """Returns MB/s of one target when all are accessed, and of the link of a host, and for small requests their
        number in flight and their time in microseconds."""
        rates = {name: rate / 1e6 for name, rate in self._measure_experiment(_TRANSFERS, machine)[1].items()}
        tasks, small = self._measure_experiment(_SMALL_REQUESTS, machine)
        targets = len(machine.targets)
        return {
            **{name: rate / targets for name, rate in rates.items()},
            "network": LINK_MEGABITS / 8,
            "depth": tasks,
            "request": compute_request_us(tasks, small["read"]),
        }

    def _measure_experiment(self, experiment_id: str, machine: DiagnosedMachine) -> tuple[int, dict[str, float]]:
        """Returns the number of tasks and the rates of the phases in bytes or operations per second."""
        scaled = scale_experiment_to_machine(find_diagnosis_experiment(experiment_id), machine)
        record = read_record(self._measure_plan(scaled) / RECORD_FILE)
        rates = measure_record(record, scaled.phase_ids, scaled.operation_phases).rates
        return scaled.tasks, {name: math.exp(rate) for name, rate in rates.items()}

    def measure(self, experiment_id: str) -> Path:
        return self._measure_plan(self.opened.model.find_experiment(experiment_id))

    def _measure_plan(self, scaled: ScaledExperiment) -> Path:
        plan = json.loads(scaled.make_plan(str(self._mount_path)).to_json())
        if scaled.stripe_count > 1:
            # Ceph places objects by a hash: with eight for each target all targets have some.
            unit = max(int(scaled.plan["data"]["access"]["transfer"]), _MIN_STRIPE_UNIT)
            plan["target"]["striping"] = {"count": _OBJECTS_PER_TARGET * scaled.stripe_count, "size": unit}
        file = self._user.folder / f"{scaled.id}.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        done = self._user.sonde("run", file.name, "--no-report", "-q", *self.list_launch_arguments(scaled.tasks))
        if done.code:
            raise RuntimeError(f"{scaled.id}: {done}")
        return sorted(self._user.folder.glob("sonde-archive/2*/*"))[-1]

    def measure_streams(self) -> list[Stream]:
        return [measure_stream(self._room, (), (), ADDRESS)]

    def list_launch_arguments(self, task_count: int) -> list[str]:
        """Further arguments of `sonde run` for so many tasks."""
        return []


class CephMachine(ClusterMachine[StorageServer]):
    """Ceph with one client."""

    def __init__(self, room: Room) -> None:
        self._ceph = Ceph(room, _PLACEMENT_GROUPS)
        set_link_rate(room, _LOOPBACK)
        system = fill_system_text("client", "storage", "osd.[0-3]", "osd", "ceph")
        super().__init__(room, self._ceph.mount_path, system)

    def draw_storage(self, generator: random.Random) -> tuple[StorageServer, str]:
        server = StorageServer(self._ceph, generator.randrange(len(self._ceph.targets)))
        return server, self._ceph.targets[server.number]


class GlusterMachine(ClusterMachine[StorageServer]):
    """Gluster with one client. Bricks have ids in the system file, and records have their names."""

    def __init__(self, room: Room) -> None:
        self._gluster = Gluster(room)
        set_link_rate(room, _LOOPBACK)
        # Requests without client caches reach the device, as volumes for virtual machines have it.
        self._gluster.gluster("volume", "set", "distribute", "performance.strict-o-direct", "on")
        self._gluster.gluster("volume", "set", "distribute", "network.remote-dio", "disable")
        label = f'label = "{{server}}:{room.folder}/b{{index}}/distribute"'
        system = fill_system_text(
            *("client", socket.gethostname(), "brick[1-4]", "brick", "gluster"), first_index=1, label=label
        )
        super().__init__(room, self._gluster.mount_path, system)

    def draw_storage(self, generator: random.Random) -> tuple[StorageServer, str]:
        server = StorageServer(self._gluster, generator.randrange(len(self._gluster.bricks)))
        return server, f"brick{server.number + 1}"


class NodeMachine(ClusterMachine[ClientNode]):
    """Ceph with four client nodes, on which the ssh launcher starts the tasks."""

    def __init__(self, room: Room) -> None:
        ceph = Ceph(room, _PLACEMENT_GROUPS)
        self._nodes = RoomNodes(room, _NODE_COUNT, ceph.mount_path)
        system = fill_system_text(f"n[1-{_NODE_COUNT}]", "storage", "osd.[0-3]", "osd", "ceph")
        super().__init__(room, ceph.mount_path, system)

    def draw_storage(self, generator: random.Random) -> tuple[ClientNode, str]:
        node = self._nodes.get_node(generator.randrange(_NODE_COUNT))
        return node, node.name

    def measure_streams(self) -> list[Stream]:
        return self._nodes.measure_streams()

    def list_launch_arguments(self, task_count: int) -> list[str]:
        return self._nodes.list_launch_arguments(task_count)


def compute_request_us(tasks: int, operations_per_s: float) -> float:
    """Returns the microseconds of one request where each task has one in flight (Little's law)."""
    return 1e6 * tasks / operations_per_s


def fill_rates(system_text: str, rates: Mapping[str, float]) -> str:
    """Returns the text of a system file with rates and times by name, with three digits and without exponents."""
    for name, rate in rates.items():
        system_text = system_text.replace(f"{{{name}}}", f"{float(f'{rate:.3g}'):g}")
    return system_text


def fill_system_text(
    nodes: str, server: str, targets: str, kind: str, file_system: str, first_index: int = 0, label: str = ""
) -> str:
    """Returns the text of a system file whose mount has the path {path}."""
    values = {"nodes": nodes, "server": server, "targets": targets, "kind": kind, "file_system": file_system}
    text = _SYSTEM_TEMPLATE
    for name, value in {**values, "index": str(first_index)}.items():
        text = text.replace(f"{{{name}}}", value)
    return text.replace("{label}", label)
