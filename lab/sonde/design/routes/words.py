# SPDX-License-Identifier: Apache-2.0
"""Plans, faults and flows in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import Fault
from sonde.design.routes.flows import Outcome
from sonde.design.routes.paths import Carried, Compared, Path
from sonde.design.routes.plan import RoutePlan
from sonde.model.units import counted, format_ops, format_rate


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


def carried_words(one: Carried, path: Path) -> str:
    """A rate in the unit of its operation."""
    return format_rate(one.rate) if path.operation.streams else format_ops(one.rate)


def path_rows(compared: Sequence[Compared]) -> Iterator[list[str]]:
    """Rows of a table: operation, clients, the rate on each mount, how many times the second the first is."""
    for one in compared:
        known = [(path, rates) for path, rates in one.mounts if rates]
        if len(known) < len(one.mounts):
            continue
        for at in sorted({0, len(known[0][1]) - 1}):
            first = [rates[at] for _, rates in known]
            name = one.operation.title if at == 0 else ""
            times = f"{first[0].rate / first[1].rate:.3g}" if len(first) > 1 else ""
            rates = [carried_words(rates[at], path) for path, rates in known]
            yield [name, f"{first[0].clients:,}", *rates, times]


def ahead_words(compared: Sequence[Compared]) -> Iterator[str]:
    """A sentence for each operation: who is ahead, where that turns, and what holds both back in the end."""
    for one in compared:
        if len(one.mounts) != 2 or not all(rates for _, rates in one.mounts):
            continue
        (first, left), (second, right) = one.mounts
        names = (first.mount, second.mount)
        lead = [0 if a.rate >= b.rate else 1 for a, b in zip(left, right, strict=True)]
        turns = [at for at in range(1, len(lead)) if lead[at] != lead[at - 1]]
        said = f"{one.operation.title}: {names[lead[0]]} is ahead"
        said += " at any number of clients" if not turns else "".join(
            f", {names[lead[at]]} from {counted(left[at].clients, 'client')} on" for at in turns)  # fmt: skip
        yield (
            f"{said}. With {counted(left[-1].clients, 'client')} {names[0]} is held back by {left[-1].limit},"
            f" {names[1]} by {right[-1].limit}."
        )


def striped_words(outcome: Outcome) -> str:
    """Why the total of connections on their own is not what streams come to."""
    if outcome.total is None or max(outcome.shares) <= min(outcome.shares):
        return ""
    return (
        "Files lie on all servers, so a stream moves at the pace of the fullest router of its way; connections that do"
        f" not wait for each other carry {format_rate(outcome.total)}."
    )


def unknown_words(compared: Sequence[Compared]) -> str:
    """What the system file does not say of either way, in one sentence, or ""."""
    names = dict.fromkeys(name for one in compared for path, _ in one.mounts for name in path.unknown)
    return f"Not described, so taken to cost nothing: {', '.join(names)}." if names else ""
