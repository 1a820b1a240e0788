# SPDX-License-Identifier: Apache-2.0
"""Plans, faults and flows in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import Fault
from sonde.design.routes.flows import Outcome
from sonde.design.routes.plan import RoutePlan
from sonde.model.units import counted, format_rate


def fabric_words(fabric: Fabric) -> str:
    """One line: how many hosts on each side, and which routers."""
    near, far = (sum(len(one.hosts) for one in side.classes) for side in (fabric.near, fabric.far))
    routers = counted(len(fabric.ways), "router")
    return (
        f"{fabric.name}: {counted(near, 'host')} on {fabric.near.network}, {far:,} on {fabric.far.network}, {routers}"
    )


def plan_words(plan: RoutePlan) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: class of hosts, rules, tables, what the main table gets."""
    for host in plan.hosts:
        main = [route for route in host.routes if route.table == "main"]
        tables = {route.table for route in host.routes} - {"main"}
        ways = "; ".join(f"{route.to} by {counted(len(route.hops), 'router')}" for route in main)
        yield (f"{host.name} ({host.hosts.device})", str(len(host.rules)), str(len(tables)), ways)


def gathered(faults: Sequence[Fault]) -> list[tuple[Fault, list[str]]]:
    """Faults of one kind together: the first, and where all of them are."""
    groups: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.kind, fault.remedy), []).append(fault)
    return [(group[0], list(dict.fromkeys(one.where for one in group))) for group in groups.values()]


def outcome_words(outcome: Outcome) -> str:
    """The total, who holds it back, and how even the routers are."""
    low, high = (100 * one for one in (min(outcome.shares), max(outcome.shares)))
    shares = f"{low:.1f} to {high:.1f} % of {outcome.flows:,} flows on a router"
    if outcome.total is None or outcome.client is None:
        return f"{shares}; rates unknown: {outcome.limit}"
    slow, middle, fast = (format_rate(one) for one in outcome.client)
    return (
        f"{format_rate(outcome.total)} in all ({outcome.limit}); a client {slow} to {fast}, median {middle}; {shares}"
    )
