# SPDX-License-Identifier: Apache-2.0
"""Plans, faults and flows as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.flows import FlowResult
from sonde.design.routes.mount_throughput import MountPath, OperationComparison, Throughput
from sonde.design.routes.plan import RoutePlan
from sonde.model.units import format_count_with_noun, format_ops, format_rate


def describe_fabric(fabric: Fabric) -> str:
    """One line: how many hosts on each side, and which routers."""
    near, far = (sum(len(host_class.hosts) for host_class in side.classes) for side in (fabric.near, fabric.far))
    routers = format_count_with_noun(len(fabric.routers), "router")
    return (
        f"{fabric.name}: {format_count_with_noun(near, 'host')} on {fabric.near.network}, {far:,} on "
        f"{fabric.far.network}, {routers}"
    )


def make_plan_rows(plan: RoutePlan) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a table: class of hosts, rules, tables, routes of the main table."""
    for host_plan in plan.host_plans:
        main = [route for route in host_plan.routes if route.table == "main"]
        tables = {route.table for route in host_plan.routes} - {"main"}
        main_routes = "; ".join(
            f"{route.destination} by {format_count_with_noun(len(route.hops), 'router')}" for route in main
        )
        yield (
            f"{host_plan.name} ({host_plan.host_class.device})",
            str(len(host_plan.rules)),
            str(len(tables)),
            main_routes,
        )


def group_faults(faults: Sequence[RouteFault]) -> list[tuple[RouteFault, list[str]]]:
    """Faults of one kind together: the first of them, and the locations of all. Different problems of one location are
    apart: the text of the first would hide them."""
    groups: dict[tuple[str, str, int], list[RouteFault]] = {}
    problems: dict[tuple[str, str, str], list[str]] = {}
    for fault in faults:
        others = problems.setdefault((fault.kind, fault.remedy, fault.location), [])
        if fault.problem not in others:
            others.append(fault.problem)
        groups.setdefault((fault.kind, fault.remedy, others.index(fault.problem)), []).append(fault)
    return [(group[0], list(dict.fromkeys(fault.location for fault in group))) for group in groups.values()]


def describe_flow_result(flow_result: FlowResult) -> str:
    """The total rate and its bottleneck, the rates of clients, and how even the routers are."""
    low, high = 100 * min(flow_result.shares), 100 * max(flow_result.shares)
    shares = f"{low:.1f} to {high:.1f} % of {flow_result.flows:,} flows on a router"
    if flow_result.total is None or flow_result.client is None:
        return f"{shares}; rates unknown: {flow_result.bottleneck}"
    slow, middle, fast = (format_rate(value) for value in flow_result.client)
    return (
        f"{format_rate(flow_result.total)} in all ({flow_result.bottleneck}); a client {slow} to {fast}, median "
        f"{middle};"
        f" {shares}"
    )


def format_throughput(throughput: Throughput, mount_path: MountPath) -> str:
    """A rate in the unit of its operation."""
    return format_rate(throughput.rate) if mount_path.operation.is_stream else format_ops(throughput.rate)


def make_comparison_rows(operation_comparisons: Sequence[OperationComparison]) -> Iterator[list[str]]:
    """Rows of a table: operation, clients, the rate on each mount, how many times the second rate the first is."""
    for comparison in operation_comparisons:
        described = [(path, rates) for path, rates in comparison.mounts if rates]
        if len(described) < len(comparison.mounts):
            continue
        for index in sorted({0, len(described[0][1]) - 1}):
            throughputs = [rates[index] for _, rates in described]
            name = comparison.operation.title if index == 0 else ""
            times = f"{throughputs[0].rate / throughputs[1].rate:.3g}" if len(throughputs) > 1 else ""
            cells = [format_throughput(rates[index], path) for path, rates in described]
            yield [name, f"{throughputs[0].clients:,}", *cells, times]


def describe_leading_mounts(operation_comparisons: Sequence[OperationComparison]) -> Iterator[str]:
    """A sentence for each operation: which mount is ahead, where that changes, and the bottlenecks with all clients."""
    for comparison in operation_comparisons:
        if len(comparison.mounts) != 2 or not all(rates for _, rates in comparison.mounts):
            continue
        (first, first_rates), (second, second_rates) = comparison.mounts
        names = (first.mount, second.mount)
        leaders = [
            0 if first_rate.rate >= second_rate.rate else 1
            for first_rate, second_rate in zip(first_rates, second_rates, strict=True)
        ]
        changes = [index for index in range(1, len(leaders)) if leaders[index] != leaders[index - 1]]
        sentence = f"{comparison.operation.title}: {names[leaders[0]]} is ahead"
        for index in changes:
            sentence += (
                f", {names[leaders[index]]} from {format_count_with_noun(first_rates[index].clients, 'client')} on"
            )
        if not changes:
            sentence += " at any number of clients"
        yield (
            f"{sentence}. With {format_count_with_noun(first_rates[-1].clients, 'client')} {names[0]} is limited by"
            f" {first_rates[-1].bottleneck}, {names[1]} by {second_rates[-1].bottleneck}."
        )


def describe_striping_effect(flow_result: FlowResult) -> str:
    """Why the total of independent connections is not that of streams; "" when the routers are even."""
    if flow_result.total is None or max(flow_result.shares) <= min(flow_result.shares):
        return ""
    return (
        "Files lie on all servers, so a stream is as fast as the fullest router that it uses; independent connections"
        f" carry {format_rate(flow_result.total)}."
    )


def describe_unknown_parameters(operation_comparisons: Sequence[OperationComparison]) -> str:
    """Names in one sentence the parameters of both mounts that the system file lacks; "" if it has all."""
    names = dict.fromkeys(
        name for comparison in operation_comparisons for path, _ in comparison.mounts for name in path.unknown
    )
    return f"Not described, so taken to cost nothing: {', '.join(names)}." if names else ""
