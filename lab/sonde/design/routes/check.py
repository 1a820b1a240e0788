# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the rules, routes and settings of a host, held against the fabric it is part of.

Nothing here asks the network: `check_host` judges what it is given. What was not given is told as unknown.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sonde.design.routes.check_settings import router_verdict, setting_faults
from sonde.design.routes.fabric import Class, Fabric, Side, covers
from sonde.design.routes.faults import Fault, Verdict, unknown
from sonde.design.routes.plan import smallest_mtu
from sonde.design.routes.tables import HostTables, SeenRoute, SeenRule

_MAIN = "main"
# The rule that leads into the main table; what has a larger number is never asked when main has a route.
_MAIN_PREFERENCE = 32766


def check_host(fabric: Fabric, name: str, seen: HostTables) -> Verdict:
    """Judges a host of the class `name` ("routers" for a router)."""
    if name == "routers":
        return router_verdict(fabric, seen)
    group, own, other = _place(fabric, name)
    return Verdict(
        name,
        (*_routes(fabric, group, own, other, seen), *_rules(fabric, own, seen), *setting_faults(fabric, group, seen)),
        unknown(seen),
    )


def _place(fabric: Fabric, name: str) -> tuple[Class, Side, Side]:
    for own, other in ((fabric.near, fabric.far), (fabric.far, fabric.near)):
        if group := own.class_of(name):
            return group, own, other
    from sonde.model.errors import UserError, suggestion

    names = [*(group.name for side in (fabric.near, fabric.far) for group in side.classes), "routers"]
    raise UserError(f'There is no class of hosts "{name}"; there are {", ".join(names)}.{suggestion(name, names)}')


def _gateways(fabric: Fabric, own: Side) -> dict[str, int]:
    """Address of each router on this side -> its place among the routers."""
    near = own is fabric.near
    return {(way.near if near else way.far): at for at, way in enumerate(fabric.ways)}


def _routes(fabric: Fabric, group: Class, own: Side, other: Side, seen: HostTables) -> Iterator[Fault]:
    if seen.addresses is not None and not any(covers(own.ranges, one.split("/")[0]) for one in seen.addresses):
        yield Fault(
            "not on the network",
            "addresses",
            f"this host has no address on {own.network} ({', '.join(own.ranges)})",
            "ask another host, or give it its address",
        )
    if seen.routes is None:
        return
    main = [route for route in seen.routes if route.table == _MAIN]
    for wanted in other.ranges:
        fitting = [route for route in main if _holds(route.to, wanted)]
        if not fitting:
            yield Fault(
                "no route",
                "main table",
                f"nothing leads to {wanted} ({other.network}): this host cannot reach the other side",
                "add the multipath route of the plan",
            )
        for route in fitting:
            yield from _multipath(fabric, own, other, route)
    for route in seen.routes:
        yield from _one_route(fabric, group, own, other, route)
    yield from _strangers(fabric, own, other, main)
    yield from _tables(fabric, own, other, seen)


def _holds(to: str, wanted: str) -> bool:
    """Whether a route to `to` covers the range `wanted`."""
    if to == "default":
        return True
    try:
        outer, inner = ipaddress.ip_network(to), ipaddress.ip_network(wanted)
    except ValueError:
        return False
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _multipath(fabric: Fabric, own: Side, other: Side, route: SeenRoute) -> Iterator[Fault]:
    gateways = _gateways(fabric, own)
    used = [hop.via for hop in route.hops]
    active = {way.near if own is fabric.near else way.far: way for way in fabric.active}
    if route.hops and not set(used) & set(gateways):
        return  # told as unknown next hops
    missing = [gateway for gateway in active if gateway not in used]
    if missing and route.hops:
        names = ", ".join(active[one].router for one in missing)
        yield Fault(
            "router not used",
            route.origin,
            f"the route to {route.to} leaves out {names} ({', '.join(missing)}): its share goes to the others",
            "name every router once",
        )
    for gateway in {one for one in used if used.count(one) > 1}:
        yield Fault(
            "router named twice",
            route.origin,
            f"the route to {route.to} names {gateway} {used.count(gateway)} times: it gets that many shares",
            "name it once, and give it a weight where it should carry more",
        )
    wanted = {gateway: way.weight for gateway, way in active.items()}
    shares = {hop.via: hop.weight for hop in route.hops if hop.via in wanted}
    if len(shares) > 1 and _proportions(shares) != _proportions({one: wanted[one] for one in shares}):
        yield Fault(
            "weights differ",
            route.origin,
            f"the weights of the route to {route.to} are {_listed(shares)}; the system file says"
            f" {_listed({one: wanted[one] for one in shares})}",
            "set the weights of the plan",
        )


def _proportions(weights: dict[str, int]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: round(weight / total, 9) for name, weight in weights.items()}


def _listed(values: dict[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _one_route(fabric: Fabric, group: Class, own: Side, other: Side, route: SeenRoute) -> Iterator[Fault]:
    gateways = _gateways(fabric, own)
    ours = route.table != _MAIN or any(_overlap(route.to, one) for one in other.ranges)
    for hop in route.hops:
        if not hop.via or not (ours or (hop.device == group.device and len(route.hops) > 1)):
            continue  # where else a host sends is no matter of this fabric
        if not covers(own.ranges, hop.via):
            yield Fault(
                "next hop out of reach",
                route.origin,
                f"next hop {hop.via} of the route to {route.to} is not on {own.network} ({', '.join(own.ranges)})",
                "name the router's address on this side",
            )
        elif hop.via not in gateways and any(_holds(route.to, one) or route.table != _MAIN for one in other.ranges):
            yield Fault(
                "unknown router",
                route.origin,
                f"next hop {hop.via} of the route to {route.to} is no router of {fabric.name}",
                f"the routers are {', '.join(gateways)}",
            )
        if hop.dead:
            yield Fault(
                "next hop dead", route.origin, f"the kernel marks next hop {hop.via} as dead", "look at its link"
            )
        if hop.device and hop.device != group.device and hop.via in gateways:
            yield Fault(
                "wrong device",
                route.origin,
                f"next hop {hop.via} is looked for on {hop.device}; {own.network} is on {group.device}",
                f"name dev {group.device}",
            )
    if route.on_link and any(_overlap(route.to, one) for one in other.ranges):
        yield Fault(
            "far network on link",
            route.origin,
            f"{route.to} is said to be on the link of {route.device or 'this host'}, but it is behind the routers:"
            " its hosts would be asked for by ARP, and nobody answers",
            f"put the network of this side there ({', '.join(own.ranges)})",
        )
    least = smallest_mtu(fabric)
    if route.mtu is not None and least is not None and route.mtu > least and route.hops:
        yield Fault(
            "MTU too large",
            route.origin,
            f"the route to {route.to} allows packets of {route.mtu} B; the smaller network takes {least} B",
            f"set mtu {least}",
        )


def _overlap(to: str, other: str) -> bool:
    """Whether a route to `to` says something about the range `other`; a default route does not."""
    try:
        one, two = ipaddress.ip_network(to), ipaddress.ip_network(other)
    except ValueError:
        return False
    return one.version == two.version and one.overlaps(two)


def _strangers(fabric: Fabric, own: Side, other: Side, main: Sequence[SeenRoute]) -> Iterator[Fault]:
    """Multipath routes to where nobody of this fabric is."""
    for route in main:
        if len(route.hops) > 1 and route.to != "default" and not any(_overlap(route.to, one) for one in other.ranges):
            yield Fault(
                "unknown destination",
                route.origin,
                f"{route.to} is neither {other.network} ({', '.join(other.ranges)}) nor part of it",
                f"name {', '.join(other.ranges)}",
            )


def _tables(fabric: Fabric, own: Side, other: Side, seen: HostTables) -> Iterator[Fault]:
    """Tables of single routers: each needs a way to the other side, and a rule that leads there."""
    gateways = _gateways(fabric, own)
    by_table: dict[str, list[SeenRoute]] = {}
    for route in seen.routes or ():
        if route.table not in (_MAIN, "local", "default"):
            by_table.setdefault(route.table, []).append(route)
    owners: dict[str, list[str]] = {}
    for table, routes in by_table.items():
        onward = [route for route in routes if route.hops and any(_holds(route.to, one) for one in other.ranges)]
        if not onward:
            yield Fault(
                "table without a way",
                f"table {table}",
                f"no route of table {table} leads to {other.network}: who is sent there falls through",
                "add the route through one router",
            )
        for gateway in {hop.via for route in onward for hop in route.hops} & set(gateways):
            owners.setdefault(gateway, []).append(table)
        if seen.rules is not None and not any(rule.table == table for rule in seen.rules):
            yield Fault(
                "table without a rule",
                f"table {table}",
                f"no rule leads into table {table}: it is never used",
                "add a rule for it, or remove it",
            )
    for gateway, tables in owners.items():
        if len(tables) > 1:
            yield Fault(
                "router in several tables",
                f"tables {', '.join(tables)}",
                f"{gateway} is the way of {len(tables)} tables; the router that one of them is for has none",
                "one table for each router",
            )
    if by_table and owners and (forgotten := [one for one in gateways if one not in owners]):
        yield Fault(
            "router without a table",
            "tables",
            f"{', '.join(forgotten)} has no table of its own, the other routers have",
            "one table for each router",
        )


def _rules(fabric: Fabric, own: Side, seen: HostTables) -> Iterator[Fault]:
    if seen.rules is None:
        return
    gateways = _gateways(fabric, own)
    other_end = _gateways(fabric, fabric.far if own is fabric.near else fabric.near)
    filled = {route.table for route in seen.routes} if seen.routes is not None else None
    for rule in seen.rules:
        if rule.table in (_MAIN, "local", "default"):
            continue
        if filled is not None and rule.table not in filled:
            yield Fault(
                "rule without a table",
                rule.origin,
                f"the rule leads into table {rule.table}, which is empty",
                "fill the table, or remove the rule",
            )
        source = rule.source.split("/")[0]
        if source in gateways or source in other_end:
            yield Fault(
                "rule that cannot match",
                rule.origin,
                f"the rule waits for packets from the router {source}, but what a router forwards keeps the address of"
                " its sender: the rule matches nothing on a host, and the multipath route does all the work",
                "select by firewall mark, as the plan does",
            )
        elif source != "all" and not covers([*fabric.near.ranges, *fabric.far.ranges], source):
            yield Fault(
                "rule for a stranger",
                rule.origin,
                f"{rule.source} is in neither network, nor is it a router of {fabric.name}",
                f"the routers are {', '.join(gateways)} here",
            )
        elif source != "all":
            yield from _not_a_router(rule, source, gateways)
        if rule.preference is not None and rule.preference > _MAIN_PREFERENCE:
            yield Fault(
                "rule too late",
                rule.origin,
                f"the rule has preference {rule.preference}: the main table (32766) answers before it",
                "give it a smaller number",
            )
    yield from _one_table(seen.rules, seen.routes)


def _not_a_router(rule: SeenRule, source: str, gateways: dict[str, int]) -> Iterator[Fault]:
    if rule.mark is None and source not in gateways:
        yield Fault(
            "rule for a stranger",
            rule.origin,
            f"{source} is an address of this fabric, but of no router",
            f"the routers are {', '.join(gateways)} here",
        )


def _one_table(rules: Sequence[SeenRule], routes: Iterable[SeenRoute] | None) -> Iterator[Fault]:
    own = [rule for rule in rules if rule.table not in (_MAIN, "local", "default")]
    led_to = {rule.table for rule in own}
    tables = {route.table for route in routes or () if route.table not in (_MAIN, "local", "default")}
    if len(own) > 1 and len(led_to) == 1 and len(tables) > 1:
        (table,) = led_to
        yield Fault(
            "all rules in one table",
            ", ".join(dict.fromkeys(rule.origin for rule in own[:2])) + (", …" if len(own) > 2 else ""),
            f"all {len(own)} rules lead into table {table}, although there are tables {', '.join(sorted(tables))}",
            "lead each rule into the table of its own router",
        )


def check_both(fabric: Fabric, near: HostTables, far: HostTables) -> list[Fault]:
    """Whether what leaves by a router can come back by it: the next hops of both directions, router by router, and what
    both hash with."""
    return [*_hashed_apart(fabric, near.settings or {}, far.settings or {}), *_gone_apart(fabric, near, far)]


def _hashed_apart(fabric: Fabric, near: Mapping[str, str], far: Mapping[str, str]) -> Iterator[Fault]:
    version = "ipv4" if fabric.version == 4 else "ipv6"
    # the seed of IPv4 is used for both
    for name in (f"net.{version}.fib_multipath_hash_policy", "net.ipv4.fib_multipath_hash_seed"):
        if len(fabric.ways) > 1 and name in near and name in far and near[name] != far[name]:
            yield Fault(
                "hash differs",
                name,
                f"{near[name]} on {fabric.near.network} and {far[name]} on {fabric.far.network}: a flow and its replies"
                " take different routers",
                "give both sides the same value",
            )


def _gone_apart(fabric: Fabric, near: HostTables, far: HostTables) -> list[Fault]:
    if near.routes is None or far.routes is None:
        return []
    out = _used(fabric, fabric.near, fabric.far, near.routes)
    back = _used(fabric, fabric.far, fabric.near, far.routes)
    faults = []
    for way in fabric.ways:
        if (way.router in out) != (way.router in back):
            has, lacks = (fabric.near, fabric.far) if way.router in out else (fabric.far, fabric.near)
            faults.append(
                Fault(
                    "one direction only",
                    way.router,
                    f"hosts of {has.network} send through {way.router}, those of {lacks.network} never answer"
                    " through it",
                    "name the same routers on both sides",
                )
            )
    if out and back and out != back and set(out) == set(back):
        faults.append(
            Fault(
                "order differs",
                "multipath routes",
                f"the routers stand in another order on {fabric.near.network} ({', '.join(out)}) than on"
                f" {fabric.far.network} ({', '.join(back)}): a flow and its replies take different ones",
                "name them in the same order, with the same hash seed and policy",
            )
        )
    return faults


def _used(fabric: Fabric, own: Side, other: Side, routes: Iterable[SeenRoute]) -> list[str]:
    """Routers that the main table of a host names, in its order."""
    gateways = _gateways(fabric, own)
    hops = [
        hop.via
        for route in routes
        if route.table == _MAIN and any(_holds(route.to, one) for one in other.ranges)
        for hop in route.hops
    ]
    return [fabric.ways[gateways[one]].router for one in dict.fromkeys(hops) if one in gateways]
