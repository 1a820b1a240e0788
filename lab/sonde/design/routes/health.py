# SPDX-License-Identifier: Apache-2.0
"""Determines from one host which routers work, and restricts the multipath route to those.

Every `usual_interval_s` the host probes each router twice, by packets that the router's own table leads through it:
once for an answer of the router itself, once for an answer of a host on the other network. A router leaves the route
when `down` rounds in a row failed, and returns after `up` good rounds in a row, so that one lost packet or an unstable
router does not move the traffic. A host of the other network that answers through no router proves nothing about a
router. The last router never leaves the route.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sonde.design.routes.plan import HostPlan, PlannedIpRoute
from sonde.design.routes.scripts import PROTOCOL
from sonde.model.errors import MachineError

# What a round trip may take, as a share of the interval; a later answer counts as none.
_WAIT_SHARE = 0.8
# The socket option that adds the kernel's time of arrival to each packet (socket(7)); Python has no name for it.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")


@dataclass(frozen=True)
class HealthCheckTiming:
    """Seconds between rounds, and after how many rounds in a row a router leaves the route or returns to it."""

    interval_s: float = 0.3
    down: int = 3
    up: int = 10

    @property
    def failover_s(self) -> float:
        """The longest time from the failure of a router until no packet is sent to it any more."""
        return self.interval_s * (self.down + 1)

    @property
    def stall_s(self) -> float:
        """The longest that a flow may stall when a router fails: TCP sends again after twice the time that it has
        waited already, and not before 0.2 s."""
        return 2 * self.failover_s + 0.2


@dataclass
class RouterHealth:
    """Determines which routers (by index) the route should name, from the rounds so far."""

    routers: int
    timing: HealthCheckTiming
    alive: list[bool] = field(init=False)
    _streak: list[int] = field(init=False)  # rounds in a row that contradict `alive`

    def __post_init__(self) -> None:
        self.alive = [True] * self.routers
        self._streak = [0] * self.routers

    def add_round(self, router_answers: Sequence[bool]) -> bool:
        """Counts one round; whether `alive` changed."""
        before = list(self.alive)
        for index, answered in enumerate(router_answers):
            self._streak[index] = 0 if answered == self.alive[index] else self._streak[index] + 1
            if self._streak[index] < (self.timing.up if answered else self.timing.down):
                continue
            if answered or sum(self.alive) > 1:
                self.alive[index] = answered
                self._streak[index] = 0
        return self.alive != before


def evaluate_answers(router_answers: Sequence[bool], host_answers: Sequence[Sequence[bool]]) -> list[bool]:
    """Determines which routers are good in one round. `router_answers` are those of the routers themselves,
    `host_answers` those of hosts of the other network: a list for each host, an entry for each router. A host without
    any answer is ignored."""
    reachable_hosts = [answers for answers in host_answers if any(answers)]
    return [
        router_answered and (not reachable_hosts or any(answers[index] for answers in reachable_hosts))
        for index, router_answered in enumerate(router_answers)
    ]


def drop_dead_hops(route: PlannedIpRoute, gateways: Sequence[str], alive_routers: Sequence[bool]) -> PlannedIpRoute:
    """The multipath route without dead routers; unchanged when none would remain."""
    dead = {gateway for gateway, is_alive in zip(gateways, alive_routers, strict=True) if not is_alive}
    hops = tuple(hop for hop in route.hops if hop.via not in dead)
    return PlannedIpRoute(route.destination, route.table, route.device, hops or route.hops, route.metric)


class Pinger:
    """Sends echo requests that carry the firewall mark of a router. Raises MachineError when this process may not send
    them (CAP_NET_ADMIN and CAP_NET_RAW are needed)."""

    def __init__(self, version: int) -> None:
        self._family = socket.AF_INET6 if version == 6 else socket.AF_INET
        self._protocol = socket.IPPROTO_ICMPV6 if version == 6 else socket.IPPROTO_ICMP
        self._request, self._reply = (128, 129) if version == 6 else (8, 0)
        self._id = os.getpid() & 0xFFFF
        self._sequence = 0

    def find_answering_targets(self, addresses_and_marks: Sequence[tuple[str, int]], wait_s: float) -> list[bool]:
        """Which of the targets (address and mark) answered within `wait_s` seconds."""
        sockets: list[socket.socket] = []
        try:
            index_by_sequence: dict[int, int] = {}
            for index, (address, mark) in enumerate(addresses_and_marks):
                probe_socket = self._open_socket(mark)
                sockets.append(probe_socket)
                self._sequence = (self._sequence + 1) & 0xFFFF
                index_by_sequence[self._sequence] = index
                try:
                    probe_socket.sendto(self._make_packet(self._sequence), (address, 0))
                except OSError:
                    continue  # no route to the target: no answer
            arrivals = self._collect_replies(
                sockets, index_by_sequence, len(addresses_and_marks), time.monotonic() + wait_s
            )
            return [arrival is not None for arrival in arrivals]
        finally:
            for probe_socket in sockets:
                probe_socket.close()

    def measure_round_trip(self, address: str, mark: int, wait_s: float) -> float | None:
        """Seconds from one request to its answer, which the kernel stamps when it arrives. None without an answer
        within `wait_s` seconds."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        with self._open_socket(mark) as probe_socket:
            start, start_realtime = time.monotonic(), time.time()
            try:
                probe_socket.sendto(self._make_packet(self._sequence), (address, 0))
            except OSError:
                return None  # no route to the target
            (arrival,) = self._collect_replies([probe_socket], {self._sequence: 0}, 1, start + wait_s)
        elapsed_s = time.monotonic() - start
        if arrival is None:
            return None
        # A real-time clock that was set between request and answer shows as a time outside of the elapsed one.
        return arrival - start_realtime if 0 < arrival - start_realtime <= elapsed_s else elapsed_s

    def _open_socket(self, mark: int) -> socket.socket:
        try:
            probe_socket = socket.socket(self._family, socket.SOCK_RAW, self._protocol)
            probe_socket.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
            probe_socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        except PermissionError:
            raise MachineError(
                "Probing routers needs root, or CAP_NET_ADMIN and CAP_NET_RAW: packets are sent with a mark."
            ) from None
        probe_socket.setblocking(False)
        return probe_socket

    def _make_packet(self, sequence: int) -> bytes:
        """An echo request; the kernel fills in the checksum of ICMPv6."""
        body = struct.pack("!BBHHH", self._request, 0, 0, self._id, sequence)
        if self._family == socket.AF_INET6:
            return body
        total = sum(struct.unpack("!4H", body))
        total = (total >> 16) + (total & 0xFFFF)
        return struct.pack("!BBHHH", self._request, 0, ~total & 0xFFFF, self._id, sequence)

    def _collect_replies(
        self, sockets: Sequence[socket.socket], index_by_sequence: dict[int, int], target_count: int, deadline: float
    ) -> list[float | None]:
        """When each answer arrived, by the real-time clock of the kernel; None without an answer until the deadline."""
        arrivals: list[float | None] = [None] * target_count
        while index_by_sequence and (remaining_s := deadline - time.monotonic()) > 0:
            for probe_socket in select.select(sockets, [], [], remaining_s)[0]:
                try:
                    data, ancillary, _, _ = probe_socket.recvmsg(2048, socket.CMSG_SPACE(_TIMESPEC.size))
                except BlockingIOError:
                    continue
                if self._family == socket.AF_INET:
                    data = data[(data[0] & 15) * 4 :]  # a raw socket of IPv4 delivers the header too
                if len(data) < 8:
                    continue
                kind, _, _, identity, sequence = struct.unpack("!BBHHH", data[:8])
                if kind == self._reply and identity == self._id and sequence in index_by_sequence:
                    arrivals[index_by_sequence.pop(sequence)] = _read_arrival(ancillary)
        return arrivals


def _read_arrival(ancillary: Sequence[tuple[int, int, bytes]]) -> float:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return float(seconds) + float(nanoseconds) * 1e-9
    return time.time()


@dataclass(frozen=True)
class WatchedRoutes:
    """Targets that a host probes: addresses of the routers on the other network, and hosts there that answer. `plan` is
    the plan of the probing host."""

    plan: HostPlan
    router_addresses: tuple[str, ...]
    other_hosts: tuple[str, ...]

    @property
    def main_routes(self) -> list[PlannedIpRoute]:
        return self.plan.active_routes

    @property
    def marks(self) -> list[int]:
        """The firewall mark that leads packets through each router."""
        return [rule.mark for rule in self.plan.rules]

    @property
    def gateways(self) -> list[str]:
        """The address of each router on the network of this host, from the table of the router."""
        return [
            next(route.hops[0].via for route in self.plan.routes if route.table == rule.table and route.hops)
            for rule in self.plan.rules
        ]


def watch_routers(
    watched_routes: WatchedRoutes,
    timing: HealthCheckTiming,
    replace_route: Callable[[PlannedIpRoute], None],
    report_change: Callable[[str], None],
    max_rounds: int | None = None,
) -> None:
    """Probes the routers in rounds, without end or `max_rounds` times, and calls `replace_route` with each route that
    has changed, again in later rounds when it cannot be changed now. `report_change` gets a sentence for each router
    that leaves the route or returns to it, and for each reason that a route cannot be changed."""
    pinger = Pinger(watched_routes.plan.version)
    health = RouterHealth(len(watched_routes.gateways), timing)
    marks = watched_routes.marks
    targets = [*zip(watched_routes.router_addresses, marks, strict=True)]
    targets += [(host, mark) for host in watched_routes.other_hosts for mark in marks]
    finished_rounds = 0
    is_pending, problem = False, ""
    while max_rounds is None or finished_rounds < max_rounds:
        start = time.monotonic()
        answers = pinger.find_answering_targets(targets, timing.interval_s * _WAIT_SHARE)
        router_count = len(marks)
        host_answers = [
            answers[index : index + router_count] for index in range(router_count, len(answers), router_count)
        ]
        alive_before = list(health.alive)
        if health.add_round(evaluate_answers(answers[:router_count], host_answers)):
            is_pending = True
            for gateway, was_alive, is_alive in zip(watched_routes.gateways, alive_before, health.alive, strict=True):
                if was_alive != is_alive:
                    report_change(f"{gateway} {'is back' if is_alive else 'does not answer: it gets no traffic'}")
        if is_pending:
            new_problem = _replace_routes(watched_routes, health.alive, replace_route)
            is_pending = bool(new_problem)
            if new_problem and new_problem != problem:
                report_change(new_problem)
            problem = new_problem
        finished_rounds += 1
        time.sleep(max(0.0, start + timing.interval_s - time.monotonic()))


def _replace_routes(
    watched_routes: WatchedRoutes, alive_routers: Sequence[bool], replace_route: Callable[[PlannedIpRoute], None]
) -> str:
    """Names only routers that are alive in the routes; the reason why that failed, or ""."""
    try:
        for route in watched_routes.main_routes:
            replace_route(drop_dead_hops(route, watched_routes.gateways, alive_routers))
    except MachineError as reason:
        return f"{reason} The routes stay as they are, and are tried again."
    return ""


def make_route_replacer(version: int, mtu: int | None) -> Callable[[PlannedIpRoute], None]:
    """A function that puts a route into the main table of this host by netlink, in place of the present one. It raises
    MachineError when the kernel refuses the route or a device is not there."""
    from pyroute2 import IPRoute, NetlinkError

    netlink = IPRoute()

    def replace_route(route: PlannedIpRoute) -> None:
        devices = {}
        for name in dict.fromkeys(hop.device for hop in route.hops):
            matching = netlink.link_lookup(ifname=name)
            if not matching:
                raise MachineError(f"There is no interface {name} on this host.")
            devices[name] = matching[0]
        hops = [{"gateway": hop.via, "oif": devices[hop.device], "hops": hop.weight - 1} for hop in route.hops]
        attributes: dict[str, Any] = {"metrics": {"mtu": mtu}} if mtu is not None else {}
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        if len(hops) == 1:
            attributes |= {"gateway": hops[0]["gateway"], "oif": hops[0]["oif"]}
        else:
            attributes |= {"multipath": hops}
        if route.metric is not None:
            attributes["priority"] = route.metric
        try:
            netlink.route("replace", dst=route.destination, proto=int(PROTOCOL), family=family, **attributes)
        except (NetlinkError, OSError) as reason:
            raise MachineError(f"The kernel refuses the route to {route.destination}: {reason}.") from None

    return replace_route
