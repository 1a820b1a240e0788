# SPDX-License-Identifier: Apache-2.0
"""Which routers live, seen from one host, and the multipath route that names the living ones only.

Every `interval` each router is asked twice, by packets that its own table leads through it: for an answer of its own,
and for one of a host behind it. A router is taken out when `down` rounds in a row failed, and put back after `up` good
ones, so that one lost packet or a router that comes and goes does not move the traffic. A host behind that does not
answer through any router says nothing about one of them. The last router is never taken out.
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

from sonde.design.routes.plan import HostPlan, Route
from sonde.design.routes.scripts import PROTOCOL
from sonde.model.errors import MachineError

# What a round trip may take, as a share of the interval: an answer that is later counts as none.
_WAIT = 0.8


@dataclass(frozen=True)
class Timing:
    """Seconds between rounds, and how many rounds in a row change the mind."""

    interval_s: float = 0.3
    down: int = 3
    up: int = 10

    @property
    def failover_s(self) -> float:
        """The longest time from the death of a router until no packet is sent to it any more."""
        return self.interval_s * (self.down + 1)

    @property
    def stall_s(self) -> float:
        """The longest that a flow may stand still when a router dies: TCP tries again after twice the time that it has
        waited already, and not before 0.2 s."""
        return 2 * self.failover_s + 0.2


@dataclass
class Health:
    """What is known of each router by its place; `living` is what the route should name."""

    routers: int
    timing: Timing
    living: list[bool] = field(init=False)
    _streak: list[int] = field(init=False)  # rounds in a row that say otherwise than `living`

    def __post_init__(self) -> None:
        self.living = [True] * self.routers
        self._streak = [0] * self.routers

    def round(self, answers: Sequence[bool]) -> bool:
        """Takes in one round; whether the living routers changed."""
        before = list(self.living)
        for at, good in enumerate(answers):
            self._streak[at] = 0 if good == self.living[at] else self._streak[at] + 1
            if self._streak[at] < (self.timing.up if good else self.timing.down):
                continue
            if good or sum(self.living) > 1:
                self.living[at] = good
                self._streak[at] = 0
        return self.living != before


def judged(own: Sequence[bool], behind: Sequence[Sequence[bool]]) -> list[bool]:
    """Of one round: which routers are good. `own` are answers of the routers themselves, `behind` those of hosts behind
    (one list a host, an entry a router). A host that answered through nobody does not count."""
    telling = [host for host in behind if any(host)]
    return [alive and (not telling or any(host[at] for host in telling)) for at, alive in enumerate(own)]


def living_route(route: Route, gateways: Sequence[str], living: Sequence[bool]) -> Route:
    """The multipath route without the dead routers; unchanged when it would have none left."""
    dead = {gateway for gateway, alive in zip(gateways, living, strict=True) if not alive}
    hops = tuple(hop for hop in route.hops if hop.via not in dead)
    return Route(route.to, route.table, route.device, hops or route.hops, route.metric)


class Pinger:
    """Echo requests that carry the mark of a router. Raises MachineError when they may not be sent (CAP_NET_ADMIN and
    CAP_NET_RAW are needed)."""

    def __init__(self, version: int) -> None:
        self._family = socket.AF_INET6 if version == 6 else socket.AF_INET
        self._protocol = socket.IPPROTO_ICMPV6 if version == 6 else socket.IPPROTO_ICMP
        self._request, self._reply = (128, 129) if version == 6 else (8, 0)
        self._id = os.getpid() & 0xFFFF
        self._sequence = 0

    def ask(self, targets: Sequence[tuple[str, int]], wait_s: float) -> list[bool]:
        """Which of (address, mark) answered in time."""
        opened: list[socket.socket] = []
        try:
            waiting: dict[int, int] = {}
            for at, (address, mark) in enumerate(targets):
                one = self._socket(mark)
                opened.append(one)
                self._sequence = (self._sequence + 1) & 0xFFFF
                waiting[self._sequence] = at
                try:
                    one.sendto(self._packet(self._sequence), (address, 0))
                except OSError:
                    continue  # no way there: no answer
            return self._collect(opened, waiting, len(targets), time.monotonic() + wait_s)
        finally:
            for one in opened:
                one.close()

    def _socket(self, mark: int) -> socket.socket:
        try:
            made = socket.socket(self._family, socket.SOCK_RAW, self._protocol)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        except PermissionError:
            raise MachineError(
                "Watching routers needs root, or CAP_NET_ADMIN and CAP_NET_RAW: packets are sent with a mark."
            ) from None
        made.setblocking(False)
        return made

    def _packet(self, sequence: int) -> bytes:
        """An echo request; the kernel fills in the checksum of ICMPv6."""
        body = struct.pack("!BBHHH", self._request, 0, 0, self._id, sequence)
        if self._family == socket.AF_INET6:
            return body
        total = sum(struct.unpack("!4H", body))
        total = (total >> 16) + (total & 0xFFFF)
        return struct.pack("!BBHHH", self._request, 0, ~total & 0xFFFF, self._id, sequence)

    def _collect(
        self, opened: Sequence[socket.socket], waiting: dict[int, int], count: int, until: float
    ) -> list[bool]:
        answered = [False] * count
        while waiting and (left := until - time.monotonic()) > 0:
            for one in select.select(opened, [], [], left)[0]:
                try:
                    data = one.recv(2048)
                except BlockingIOError:
                    continue
                if self._family == socket.AF_INET:
                    data = data[(data[0] & 15) * 4 :]  # a raw socket of IPv4 shows the header
                if len(data) < 8:
                    continue
                kind, _, _, identity, sequence = struct.unpack("!BBHHH", data[:8])
                if kind == self._reply and identity == self._id and sequence in waiting:
                    answered[waiting.pop(sequence)] = True
        return answered


@dataclass(frozen=True)
class Watched:
    """What a host watches: its plan, the addresses of the routers on the far network, and hosts there that answer."""

    plan: HostPlan
    far_addresses: tuple[str, ...]
    behind: tuple[str, ...]

    @property
    def main_routes(self) -> list[Route]:
        return [route for route in self.plan.routes if route.table == "main" and route.metric is None]

    @property
    def gateways(self) -> list[str]:
        """Each router as this host names it, from its own table."""
        return [
            next(route.hops[0].via for route in self.plan.routes if route.table == rule.table and route.hops)
            for rule in self.plan.rules
        ]


def watch(
    watched: Watched,
    timing: Timing,
    change: Callable[[Route], None],
    told: Callable[[str], None],
    rounds: int | None = None,
) -> None:
    """Rounds without end (or so many): asks, and calls `change` with each route that must now be another."""
    pinger = Pinger(watched.plan.version)
    health = Health(len(watched.gateways), timing)
    marks = [rule.mark for rule in watched.plan.rules]
    places = [*zip(watched.far_addresses, marks, strict=True)]
    places += [(host, mark) for host in watched.behind for mark in marks]
    done = 0
    while rounds is None or done < rounds:
        begin = time.monotonic()
        answers = pinger.ask(places, timing.interval_s * _WAIT)
        count = len(marks)
        behind = [answers[at : at + count] for at in range(count, len(answers), count)]
        before = list(health.living)
        if health.round(judged(answers[:count], behind)):
            for route in watched.main_routes:
                change(living_route(route, watched.gateways, health.living))
            for gateway, was, now in zip(watched.gateways, before, health.living, strict=True):
                if was != now:
                    told(f"{gateway} {'is back' if now else 'does not answer: it gets no traffic'}")
        done += 1
        time.sleep(max(0.0, begin + timing.interval_s - time.monotonic()))


def change_route(version: int, mtu: int | None) -> Callable[[Route], None]:
    """Puts a route into the main table of this host by netlink, in place of the one that is there."""
    from pyroute2 import IPRoute

    netlink = IPRoute()

    def change(route: Route) -> None:
        devices = {hop.device: netlink.link_lookup(ifname=hop.device)[0] for hop in route.hops}
        hops = [{"gateway": hop.via, "oif": devices[hop.device], "hops": hop.weight - 1} for hop in route.hops]
        more: dict[str, Any] = {"metrics": {"mtu": mtu}} if mtu is not None else {}
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        if len(hops) == 1:
            more |= {"gateway": hops[0]["gateway"], "oif": hops[0]["oif"]}
        else:
            more |= {"multipath": hops}
        netlink.route("replace", dst=route.to, proto=int(PROTOCOL), family=family, **more)

    return change
