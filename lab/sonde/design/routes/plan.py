# SPDX-License-Identifier: Apache-2.0
"""The plan: which rules, tables and routes every kind of host gets, and which settings the routers.

Traffic between the two networks is spread over the routers by a multipath route in the main table of each host, in both
directions. A table for each router holds the way through that router alone; a rule leads marked packets there, so that
a health check or a measurement can take one router on purpose. A rule on the *source* address of a router, as it is
often seen, can never match on a host: packets that a router forwards carry the address of the sender, not its own.

Both ends put the same flow on the same router when both hash addresses and ports (policy 1), have the same seed and
name the routers in the same order: the kernel sorts addresses and ports before it hashes. The seed can be set since
Linux 6.11; on older kernels a reply may come back through another router, which only strict reverse-path filtering on a
third network would mind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sonde.design.routes.fabric import Class, Fabric, Side, Way
from sonde.design.routes.tuning import OPTIONS, audit, kept, missing_options
from sonde.model.errors import UserError

# Tables and marks of the routers are numbered from here: far from 253 to 255, which are the kernel's.
FIRST_TABLE = 1
# Rules of ours lie before the main table (32766), with room for those of the site.
FIRST_PREFERENCE = 1000
# Any value will do as long as both sides have it.
HASH_SEED = 20240601
MOST_WAYS = 200


@dataclass(frozen=True)
class Hop:
    """One next hop of a route."""

    via: str
    device: str
    weight: int = 1


@dataclass(frozen=True)
class Route:
    """A route of one table ("main" or a number): to a range through `hops`, on the link itself when there are none."""

    to: str  # a range, or "default"
    table: str
    device: str = ""  # for a route without next hops
    hops: tuple[Hop, ...] = ()
    metric: int | None = None


@dataclass(frozen=True)
class Rule:
    """Packets with this firewall mark look into that table."""

    preference: int
    mark: int
    table: str


@dataclass(frozen=True)
class HostPlan:
    """What each host of a class gets."""

    name: str
    side: str  # the network it is on
    hosts: Class
    version: int
    rules: tuple[Rule, ...]
    routes: tuple[Route, ...]
    settings: Mapping[str, str]
    mtu: int | None


@dataclass(frozen=True)
class RouterPlan:
    """What each router gets: both networks are on its links, so it needs no route, but it must forward."""

    routers: tuple[str, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class RoutePlan:
    """The plan of one fabric."""

    fabric: Fabric
    hosts: tuple[HostPlan, ...]
    routers: RouterPlan
    notes: tuple[str, ...] = field(default=())

    def of(self, name: str) -> HostPlan:
        """The plan of a class of hosts. Raises UserError when there is none of that name."""
        for one in self.hosts:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.hosts)
        raise UserError(f'There is no class of hosts "{name}"; there are {known}.')


def plan_routes(fabric: Fabric, seed: int = HASH_SEED) -> RoutePlan:
    """The plan of a fabric. Raises UserError when it has more routers than tables."""
    if len(fabric.ways) > MOST_WAYS:
        raise UserError(
            f"{fabric.name} has {len(fabric.ways)} routers; more than {MOST_WAYS} do not fit into the tables before"
            " 253, which are the kernel's."
        )
    hosts = [
        _host_plan(fabric, group, own, other, seed)
        for own, other in ((fabric.near, fabric.far), (fabric.far, fabric.near))
        for group in own.classes
    ]
    routers = RouterPlan(tuple(way.router for way in fabric.ways), _router_settings(fabric))
    return RoutePlan(fabric, tuple(hosts), routers, (*_notes(fabric), *_notes_on_settings(fabric)))


def table_of(position: int) -> str:
    """The table of the router at a position, counted from 0."""
    return str(FIRST_TABLE + position)


def _host_plan(fabric: Fabric, group: Class, own: Side, other: Side, seed: int) -> HostPlan:
    near = own is fabric.near

    def gateway(way: Way) -> str:
        return way.near if near else way.far

    rules, routes = [], []
    for position, way in enumerate(fabric.ways):
        table = table_of(position)
        rules.append(Rule(FIRST_PREFERENCE + position, int(table), table))
        routes += [Route(one, table, group.device) for one in own.ranges]
        routes += [Route(one, table, hops=(Hop(gateway(way), group.device),)) for one in other.ranges]
    for priority in sorted({way.priority for way in fabric.ways}):
        # a standby router takes over when the route with the lower metric has no living next hop
        hops = tuple(Hop(gateway(way), group.device, way.weight) for way in fabric.ways if way.priority == priority)
        metric = None if priority == 0 else 100 + priority
        routes += [Route(one, "main", hops=hops, metric=metric) for one in other.ranges]
    return HostPlan(
        name=group.name,
        side=own.network,
        hosts=group,
        version=fabric.version,
        rules=tuple(rules),
        routes=tuple(routes),
        settings=_host_settings(fabric, group, seed),
        mtu=smallest_mtu(fabric),
    )


def smallest_mtu(fabric: Fabric) -> int | None:
    """The largest packet that fits both networks, bytes; None when one of them is unknown."""
    both = [side.mtu for side in (fabric.near, fabric.far)]
    return min(one for one in both if one is not None) if None not in both else None


def _host_settings(fabric: Fabric, group: Class, seed: int) -> dict[str, str]:
    ip = "ipv4" if fabric.version == 4 else "ipv6"
    # what the site wants, without what is gone, wrong or without effect (told in the notes), and what routing needs
    settings = kept(group.settings) | {
        f"net.{ip}.fib_multipath_hash_policy": "1",
        "net.ipv4.fib_multipath_hash_seed": str(seed),  # IPv6 hashes with it too
    }
    if fabric.version == 4:
        settings |= {
            "net.ipv4.fib_multipath_use_neigh": "1",
            # loose: a reply may come through another router than the one a request left by
            f"net.ipv4.conf.{group.device}.rp_filter": "2",
            "net.ipv4.conf.all.rp_filter": "2",
        }
    return settings


def _router_settings(fabric: Fabric) -> dict[str, str]:
    devices = sorted({one for way in fabric.ways for one in (way.near_device, way.far_device) if one})
    if fabric.version == 6:
        return {"net.ipv6.conf.all.forwarding": "1"}
    settings = {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "2"}
    settings |= {f"net.ipv4.conf.{one}.rp_filter": "2" for one in devices}
    # both networks are on links of the router: it must never tell a host of a shorter way
    return settings | {f"net.ipv4.conf.{one}.send_redirects": "0" for one in ["all", *devices]}


def _notes_on_settings(fabric: Fabric) -> Iterator[str]:
    """Settings of the site that are refused or doubtful, and kernel options that a class is said to lack."""
    for side in (fabric.near, fabric.far):
        for group in side.classes:
            for remark in audit(group.settings):
                fate = "kept, but" if remark.worth == "risky" else "left out:"
                yield f"{group.name}: {remark.name} = {remark.value} is {fate} {remark.reason}; {remark.remedy}."
            for name, part in missing_options(group.options) if group.options else ():
                if group.options.get(name) == "n":
                    yield f"{group.name}: the kernel lacks {name}: {part} will not work."
    needed = ", ".join(OPTIONS)
    yield f"Kernels of all hosts need {needed}."


def _notes(fabric: Fabric) -> Sequence[str]:
    notes = []
    weights = {way.weight for way in fabric.active}
    if len(fabric.ways) == 1:
        notes.append(
            f"There is one router ({fabric.ways[0].router}): when it fails, nothing reaches the other network."
        )
    if len(weights) > 1:
        notes.append("Routers have different weights: the shares hold for many flows, not for few.")
    if smallest_mtu(fabric) is None:
        notes.append("The MTU of one of the networks is not described: whether packets must be cut is unknown.")
    elif fabric.near.mtu != fabric.far.mtu:
        notes.append(
            f"The networks have different MTUs ({fabric.near.mtu} and {fabric.far.mtu} B): the routes say"
            f" {smallest_mtu(fabric)} B, so that no packet must be cut or refused at a router."
        )
    if any(way.rate is None for way in fabric.ways):
        notes.append("The rate of a router or of a network is not described: the predicted rates leave it out.")
    return notes
