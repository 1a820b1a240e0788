# SPDX-License-Identifier: Apache-2.0
"""Native against forwarded mounts: the predicted rates of two mounts of one file system, over the number of clients.

A native client talks to the storage servers itself, through IP routers. Behind a forwarding mount (DVS, an NFS gateway)
other nodes execute its calls. Both consist of the same stages: the task, the client, the interface of the fabric,
routers or forwarders, the servers. The system file says how long each takes (`model` of nodes, servers and mounts); a
stage that is not described takes no time, and is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.queueing import StationGroup, solve_queueing_network
from sonde.model.system import System
from sonde.model.system.network import Network, Router
from sonde.model.system.service import Mount
from sonde.model.tables.quantity import Quantity, ReadWriteRates
from sonde.model.units import format_bytes

OperationKind = Literal["read", "write", "create", "stat", "remove"]
STREAM_KINDS: tuple[OperationKind, ...] = ("read", "write")
_MEBI, _KIBI = 1 << 20, 1 << 10
# A stage with this utilization is the bottleneck; below it the time of one operation limits the rate.
_BUSY_THRESHOLD = 0.85


@dataclass(frozen=True)
class SizedOperation:
    """One kind of operation; `size` is that of the transfer or of the file, in bytes."""

    kind: OperationKind
    size: int

    @property
    def is_stream(self) -> bool:
        return self.kind in STREAM_KINDS

    @property
    def title(self) -> str:
        return f"{self.kind} of {format_bytes(self.size)}" if self.size else f"{self.kind} of an empty file"


# Operations of the published comparison: streaming, and files of 0 B to 32 KiB.
COMPARED_OPERATIONS = (
    SizedOperation("read", _MEBI), SizedOperation("write", _MEBI),
    *(SizedOperation("create", size) for size in (0, 1 * _KIBI, 4 * _KIBI, 32 * _KIBI)),
    SizedOperation("stat", 0), SizedOperation("remove", 0),
)  # fmt: skip


@dataclass(frozen=True)
class MountPath:
    """The stages of one operation on one mount, and the names of members that are not described. `task_s` is the time
    that the task itself computes, `delay_s` the time that an operation waits without occupying any station."""

    mount: str
    through: str
    operation: SizedOperation
    task_s: float
    stages: tuple[StationGroup, ...]
    delay_s: float
    in_flight: int
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Throughput:
    """The rate of so many clients with so many tasks each, in bytes (streams) or operations per second, and its
    bottleneck."""

    clients: int
    tasks: int
    rate: float
    bottleneck: str


def list_compared_mounts(system: System, fabric: Fabric) -> list[str]:
    """Mounts of hosts of the near side, where one file system has a native and a forwarded mount."""
    near = {host for host_class in fabric.near.classes for host in host_class.hosts}
    mounts_by_file_system: dict[str, list[tuple[str, str]]] = {}
    for item in system.list_parts("mounts"):
        table = item.table
        assert isinstance(table, Mount)
        if near & set(system.find_references(item.id, "on")):
            mounts_by_file_system.setdefault(system.find_references(item.id, "file_system")[0], []).append(
                (item.id, table.through)
            )
    return [
        name
        for mounts in mounts_by_file_system.values()
        if len({through == "native" for _, through in mounts}) == 2
        for name, _ in mounts
    ]


def build_mount_path(
    system: System, fabric: Fabric, mount_id: str, operation: SizedOperation, router_shares: Sequence[float]
) -> MountPath:
    """The stages of one operation. `router_shares` is the part of the flows that each active router of the fabric
    gets."""
    return _MountPathBuilder(system, fabric, mount_id, operation).build_mount_path(tuple(router_shares))


class _MountPathBuilder:
    """Collects stages, and the names of what is not described."""

    def __init__(self, system: System, fabric: Fabric, mount_id: str, operation: SizedOperation) -> None:
        self.system, self.fabric, self.mount, self.operation = system, fabric, mount_id, operation
        table = system.get_part(mount_id).table
        assert isinstance(table, Mount)
        self.table = table
        self.unknown: list[str] = []
        self.stages: list[StationGroup] = []
        self.task_s = self.delay_s = 0.0

    def build_mount_path(self, router_shares: tuple[float, ...]) -> MountPath:
        self._add_client_stages()
        if self.table.through == "native":
            self._add_router_stages(router_shares)
        else:
            self._add_forwarder_stages()
        self._add_server_stages()
        in_flight = 1
        if self.operation.is_stream:
            name = f"{self.operation.kind}s_in_flight"
            in_flight = max(1, int(self._find_mount_parameter(name) or 1))
        self.delay_s += 2 * sum(self._find_latency(side.network) for side in (self.fabric.near, self.fabric.far))
        stages = tuple(stage for stage in self.stages if stage.seconds > 0)
        unknown = tuple(dict.fromkeys(self.unknown))
        return MountPath(
            self.mount, self.table.through, self.operation, self.task_s, stages, self.delay_s, in_flight, unknown
        )

    def _add_client_stages(self) -> None:
        """The task itself, then what all tasks of one client share."""
        clients = self.fabric.near.classes[0]
        model = self._find_model(clients.hosts[0])
        self.task_s = self._find_parameter(model, "call_cost", clients.name) or 0.0
        if self.operation.is_stream:
            self.task_s += self._compute_transfer_time(self._find_parameter(model, "copy_rate", clients.name))
        if self.operation.is_stream:
            name = f"client_{self.operation.kind}_rate"
            self.stages.append(
                StationGroup("the client's software", self._compute_transfer_time(self._find_mount_parameter(name)))
            )
        self.stages.append(
            StationGroup(
                "the clients' interfaces",
                self._compute_transfer_time(self._record_missing_rate(clients.rate, clients.name)),
            )
        )

    def _add_router_stages(self, router_shares: tuple[float, ...]) -> None:
        """IP routers take time for bytes only, each at its own rate."""
        for router, share in zip(self.fabric.active_routers, router_shares, strict=True):
            seconds = self._compute_transfer_time(self._record_missing_rate(router.rate, router.name))
            self.stages.append(StationGroup(f"router {router.name}", seconds, shares=(share,)))

    def _add_forwarder_stages(self) -> None:
        """Other nodes execute the calls: each call occupies a thread of one of them, and their interfaces."""
        hosts = self.system.find_references(self.mount, "via")
        if not hosts:
            self.unknown.append(f"forwarders of {self.mount}")
            return
        shares = (1 / len(hosts),) * len(hosts)
        threads = self._find_mount_parameter("forward_threads")
        cost = self._find_mount_parameter("forward_cost") or 0.0
        self.stages.append(StationGroup("the forwarders' threads", cost, int(threads or 1), shares))
        known_rates = [
            rate for rate in (self._find_mount_parameter("forward_rate"), self._find_interface_rate(hosts[0])) if rate
        ]
        self.stages.append(
            StationGroup("the forwarders", self._compute_transfer_time(min(known_rates, default=None)), shares=shares)
        )

    def _add_server_stages(self) -> None:
        file_system = self.system.find_references(self.mount, "file_system")[0]
        servers = self.system.find_servers(file_system)
        if not servers:
            self.unknown.append(f"servers of {file_system}")
            return
        shares = (1 / len(servers),) * len(servers)
        model = self._find_model(servers[0])
        name = "request_cost" if self.operation.is_stream else f"{self.operation.kind}_cost"
        seconds = self._find_parameter(model, name, "servers") or 0.0
        threads = int(self._find_parameter(model, "threads", "servers") or 1)
        self.stages.append(StationGroup("the servers' threads", seconds, threads, shares))
        server_rate = next(
            (host_class.rate for host_class in self.fabric.far.classes if servers[0] in host_class.hosts), None
        )
        self.stages.append(
            StationGroup(
                "the servers",
                self._compute_transfer_time(self._record_missing_rate(server_rate, "servers")),
                shares=shares,
            )
        )
        if self.operation.kind == "create" and self.operation.size:
            self.delay_s += self._find_mount_parameter("data_cost") or 0.0
            self.delay_s += (self._find_mount_parameter("size_cost") or 0.0) * self.operation.size / _KIBI

    def _compute_transfer_time(self, bytes_per_s: float | None) -> float:
        """Seconds that the bytes of one operation take; metadata operations transfer none that count."""
        return self.operation.size / bytes_per_s if bytes_per_s and self._transfers_data else 0.0

    @property
    def _transfers_data(self) -> bool:
        return self.operation.is_stream or self.operation.kind == "create"

    def _record_missing_rate(self, bytes_per_s: float | None, rate_name: str) -> float | None:
        """Returns `bytes_per_s`, and notes it as unknown when it is None and bytes count."""
        if bytes_per_s is None and self.operation.is_stream:
            self.unknown.append(f"rate of {rate_name}")
        return bytes_per_s

    def _find_latency(self, network: str) -> float:
        table = self.system.get_part(network).table
        assert isinstance(table, Network)
        if table.latency is None:
            self.unknown.append(f"latency of {network}")
            return 0.0
        return float(table.latency)

    def _find_interface_rate(self, host_id: str) -> float | None:
        """The slowest interface of a forwarder. The rate of a router is for packets, so it does not limit forwarded
        calls."""
        table = self.system.get_part(host_id).table
        rates = []
        for address in self.system.find_addresses(host_id):
            network = self.system.get_part(address.network).table
            assert isinstance(network, Network)
            rates += [float(rate) for rate in _list_rates(network.rate)]
        if isinstance(table, Router) or not rates:
            return min(rates, default=None)
        return min(rates + [float(rate) for rate in _list_rates(getattr(table, "rate", None))])

    def _find_model(self, host_id: str) -> Mapping[str, Quantity]:
        return getattr(self.system.get_part(host_id).table, "model", None) or {}

    def _find_parameter(
        self, model_parameters: Mapping[str, Quantity], parameter_name: str, owner_id: str
    ) -> float | None:
        value = model_parameters.get(parameter_name)
        if value is None:
            self.unknown.append(f"{parameter_name} of {owner_id}")
            return None
        return float(value)

    def _find_mount_parameter(self, parameter_name: str) -> float | None:
        return self._find_parameter(self.table.model or {}, parameter_name, self.mount)


def _list_rates(rates: ReadWriteRates | None) -> Iterator[Quantity]:
    if rates is not None:
        yield from (rate for rate in (rates.read, rates.write) if rate is not None)


def compute_throughput(mount_path: MountPath, client_count: int, tasks_per_client: int) -> Throughput | None:
    """The rate of so many clients; None when no stage has a described time."""
    stages = [StationGroup("the tasks", mount_path.task_s, tasks_per_client), *mount_path.stages]
    if mount_path.task_s + mount_path.delay_s + sum(stage.seconds for stage in mount_path.stages) <= 0:
        return None
    solution = solve_queueing_network(stages, client_count, tasks_per_client * mount_path.in_flight, mount_path.delay_s)
    bottleneck = solution.bottleneck if solution.utilization >= _BUSY_THRESHOLD else "the time of one operation"
    factor = mount_path.operation.size if mount_path.operation.is_stream else 1
    return Throughput(client_count, tasks_per_client, solution.rate * factor, bottleneck)


def compute_throughput_by_clients(mount_path: MountPath, max_clients: int, tasks_per_client: int) -> list[Throughput]:
    """The throughput of 1, 2, 4 … clients up to `max_clients`."""
    counts = [1 << exponent for exponent in range(max_clients.bit_length()) if 1 << exponent < max_clients] + [
        max_clients
    ]
    return [
        throughput
        for count in counts
        if (throughput := compute_throughput(mount_path, count, tasks_per_client)) is not None
    ]


@dataclass(frozen=True)
class OperationComparison:
    """One kind of operation on every compared mount, over the number of clients."""

    operation: SizedOperation
    tasks: int
    mounts: tuple[tuple[MountPath, tuple[Throughput, ...]], ...]


def compare_mounts(
    system: System, fabric: Fabric, router_shares: Sequence[float], *, client_count: int, task_count: int
) -> tuple[OperationComparison, ...]:
    """Every operation of `COMPARED_OPERATIONS` on every mount; empty unless hosts have both a native and a forwarded
    mount."""
    names = list_compared_mounts(system, fabric)
    return tuple(
        OperationComparison(
            operation,
            task_count,
            tuple(
                (path, tuple(compute_throughput_by_clients(path, client_count, task_count)))
                for path in (build_mount_path(system, fabric, name, operation, router_shares) for name in names)
            ),
        )
        for operation in (COMPARED_OPERATIONS if names else ())
    )
