# SPDX-License-Identifier: Apache-2.0
"""Native against forwarded: what two ways to one file system come to, over the number of clients.

A native client talks to the storage servers itself, through IP routers; behind a forwarding mount (DVS, an NFS gateway)
other nodes execute its calls. Both are made of the same stages: the task, what one client moves, the fabric's
interface, routers or forwarders, the servers. How long each takes stands in the system file (`model` of nodes, servers
and mounts); what nobody described takes no time, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.queueing import Stage, solve
from sonde.model.system import System
from sonde.model.system.network import Network, Router
from sonde.model.system.service import Mount
from sonde.model.tables.quantity import Quantity, Rates
from sonde.model.units import format_bytes

Kind = Literal["read", "write", "create", "stat", "remove"]
STREAMS: tuple[Kind, ...] = ("read", "write")
_MEBI, _KIBI = 1 << 20, 1 << 10
# A stage that works this share of its time is what holds the rate back; below it the time of one operation is.
_FULL = 0.85


@dataclass(frozen=True)
class Operation:
    """One kind of operation; `size` is that of a transfer or of the file, in bytes."""

    kind: Kind
    size: int

    @property
    def streams(self) -> bool:
        return self.kind in STREAMS

    @property
    def title(self) -> str:
        return f"{self.kind} of {format_bytes(self.size)}" if self.size else f"{self.kind} of nothing"


# What the slides compare: streaming, and files of 0 B to 32 KiB.
COMPARED = (
    Operation("read", _MEBI), Operation("write", _MEBI),
    *(Operation("create", size) for size in (0, 1 * _KIBI, 4 * _KIBI, 32 * _KIBI)),
    Operation("stat", 0), Operation("remove", 0),
)  # fmt: skip


@dataclass(frozen=True)
class Path:
    """The stages of one operation on one mount, and what was not described (names of members). `task_s` is the time
    that the task itself works, `delay_s` the time during which nobody is kept from working."""

    mount: str
    through: str
    operation: Operation
    task_s: float
    stages: tuple[Stage, ...]
    delay_s: float
    in_flight: int
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Carried:
    """So many clients with so many tasks each: bytes (streams) or operations per second, and what holds them back."""

    clients: int
    tasks: int
    rate: float
    limit: str


def mounts_compared(system: System, fabric: Fabric) -> list[str]:
    """Mounts that hosts of the near side have of a file system of which there is a native and a forwarded one."""
    near = {host for one in fabric.near.classes for host in one.hosts}
    found: dict[str, list[tuple[str, str]]] = {}
    for item in system.items("mounts"):
        table = item.table
        assert isinstance(table, Mount)
        if near & set(system.references(item.id, "on")):
            found.setdefault(system.references(item.id, "file_system")[0], []).append((item.id, table.through))
    return [name for both in found.values() if len({way == "native" for _, way in both}) == 2 for name, _ in both]


def path_of(system: System, fabric: Fabric, mount: str, operation: Operation, shares: Sequence[float]) -> Path:
    """The way of one operation. `shares` is the part of the flows that each active router of the fabric gets."""
    return _Builder(system, fabric, mount, operation).path(tuple(shares))


class _Builder:
    """Gathers stages, and what was not said."""

    def __init__(self, system: System, fabric: Fabric, mount: str, operation: Operation) -> None:
        self.system, self.fabric, self.mount, self.operation = system, fabric, mount, operation
        table = system.item(mount).table
        assert isinstance(table, Mount)
        self.table = table
        self.unknown: list[str] = []
        self.stages: list[Stage] = []
        self.task_s = self.delay_s = 0.0

    def path(self, shares: tuple[float, ...]) -> Path:
        self._client()
        if self.table.through == "native":
            self._routers(shares)
        else:
            self._forwarders()
        self._servers()
        in_flight = 1
        if self.operation.streams:
            name = f"{self.operation.kind}s_in_flight"
            in_flight = max(1, int(self._of_mount(name) or 1))
        self.delay_s += 2 * sum(self._latency(side.network) for side in (self.fabric.near, self.fabric.far))
        stages = tuple(one for one in self.stages if one.seconds > 0)
        unknown = tuple(dict.fromkeys(self.unknown))
        return Path(
            self.mount, self.table.through, self.operation, self.task_s, stages, self.delay_s, in_flight, unknown
        )

    def _client(self) -> None:
        """The task itself, then what all tasks of one client share."""
        hosts = self.fabric.near.classes[0]
        model = self._model(hosts.hosts[0])
        self.task_s = self._said(model, "call_cost", hosts.name) or 0.0
        if self.operation.streams:
            self.task_s += self._moving(self._said(model, "copy_rate", hosts.name))
        if self.operation.streams:
            name = f"client_{self.operation.kind}_rate"
            self.stages.append(Stage("the client's software", self._moving(self._of_mount(name))))
        self.stages.append(Stage("the clients' interfaces", self._moving(self._known(hosts.rate, hosts.name))))

    def _routers(self, shares: tuple[float, ...]) -> None:
        """IP routers cost a packet nothing but its bytes; each has the rate of its own."""
        for way, share in zip(self.fabric.active, shares, strict=True):
            seconds = self._moving(self._known(way.rate, way.router))
            self.stages.append(Stage(f"router {way.router}", seconds, shares=(share,)))

    def _forwarders(self) -> None:
        """Calls are executed by other nodes: a thread of one for the time of the call, and its interfaces."""
        hosts = self.system.references(self.mount, "via")
        if not hosts:
            self.unknown.append(f"who forwards for {self.mount}")
            return
        even = (1 / len(hosts),) * len(hosts)
        threads = self._of_mount("forward_threads")
        cost = self._of_mount("forward_cost") or 0.0
        self.stages.append(Stage("the forwarders' threads", cost, int(threads or 1), even))
        known = [one for one in (self._of_mount("forward_rate"), self._interfaces(hosts[0])) if one]
        self.stages.append(Stage("the forwarders", self._moving(min(known, default=None)), shares=even))

    def _servers(self) -> None:
        file_system = self.system.references(self.mount, "file_system")[0]
        servers = self.system.servers_of(file_system)
        if not servers:
            self.unknown.append(f"servers of {file_system}")
            return
        even = (1 / len(servers),) * len(servers)
        model = self._model(servers[0])
        name = "request_cost" if self.operation.streams else f"{self.operation.kind}_cost"
        seconds = self._said(model, name, "servers") or 0.0
        threads = int(self._said(model, "threads", "servers") or 1)
        self.stages.append(Stage("the servers' threads", seconds, threads, even))
        far = next((one.rate for one in self.fabric.far.classes if servers[0] in one.hosts), None)
        self.stages.append(Stage("the servers", self._moving(self._known(far, "servers")), shares=even))
        if self.operation.kind == "create" and self.operation.size:
            self.delay_s += self._of_mount("data_cost") or 0.0
            self.delay_s += (self._of_mount("size_cost") or 0.0) * self.operation.size / _KIBI

    def _moving(self, rate: float | None) -> float:
        """Seconds of the bytes of one operation; metadata moves none that count."""
        return self.operation.size / rate if rate and self._moves else 0.0

    @property
    def _moves(self) -> bool:
        return self.operation.streams or self.operation.kind == "create"

    def _known(self, rate: float | None, name: str) -> float | None:
        """`rate`; where bytes count and nobody said it, that is noted."""
        if rate is None and self.operation.streams:
            self.unknown.append(f"rate of {name}")
        return rate

    def _latency(self, network: str) -> float:
        table = self.system.item(network).table
        assert isinstance(table, Network)
        if table.latency is None:
            self.unknown.append(f"latency of {network}")
            return 0.0
        return float(table.latency)

    def _interfaces(self, host: str) -> float | None:
        """The slowest interface of a forwarder; a router that forwards calls is not bound by its rate for packets."""
        table = self.system.item(host).table
        rates = []
        for one in self.system.addresses_of(host):
            network = self.system.item(one.network).table
            assert isinstance(network, Network)
            said = network.rate
            rates += [float(value) for value in _directions(said)]
        if isinstance(table, Router) or not rates:
            return min(rates, default=None)
        return min(rates + [float(value) for value in _directions(getattr(table, "rate", None))])

    def _model(self, host: str) -> Mapping[str, Quantity]:
        return getattr(self.system.item(host).table, "model", None) or {}

    def _said(self, model: Mapping[str, Quantity], name: str, whose: str) -> float | None:
        found = model.get(name)
        if found is None:
            self.unknown.append(f"{name} of {whose}")
            return None
        return float(found)

    def _of_mount(self, name: str) -> float | None:
        return self._said(self.table.model or {}, name, self.mount)


def _directions(rates: Rates | None) -> Iterator[Quantity]:
    if rates is not None:
        yield from (one for one in (rates.read, rates.write) if one is not None)


def carried(path: Path, clients: int, tasks: int) -> Carried | None:
    """What so many clients get; None when nothing on the way takes time, because nobody described it."""
    stages = [Stage("the tasks", path.task_s, tasks), *path.stages]
    if path.task_s + path.delay_s + sum(one.seconds for one in path.stages) <= 0:
        return None
    solved = solve(stages, clients, tasks * path.in_flight, path.delay_s)
    limit = solved.fullest if solved.busy >= _FULL else "the time of one operation"
    factor = path.operation.size if path.operation.streams else 1
    return Carried(clients, tasks, solved.rate * factor, limit)


def over_clients(path: Path, most: int, tasks: int) -> list[Carried]:
    """1, 2, 4 … clients up to all of them."""
    counts = [1 << at for at in range(most.bit_length()) if 1 << at < most] + [most]
    return [one for count in counts if (one := carried(path, count, tasks)) is not None]


@dataclass(frozen=True)
class Compared:
    """One kind of operation on every mount that leads there, over the number of clients."""

    operation: Operation
    tasks: int
    mounts: tuple[tuple[Path, tuple[Carried, ...]], ...]


def compare_paths(
    system: System, fabric: Fabric, shares: Sequence[float], *, clients: int, tasks: int
) -> tuple[Compared, ...]:
    """Every operation of `COMPARED` on every mount; empty when the hosts have only one kind of way."""
    names = mounts_compared(system, fabric)
    return tuple(
        Compared(
            operation,
            tasks,
            tuple(
                (path, tuple(over_clients(path, clients, tasks)))
                for path in (path_of(system, fabric, name, operation, shares) for name in names)
            ),
        )
        for operation in (COMPARED if names else ())
    )
