# SPDX-License-Identifier: Apache-2.0
"""Prints faults, comparisons of mounts and tried plans of ``sonde route``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sonde.design.checked_items import summarize_comparisons
from sonde.design.routes.fabric import Fabric
from sonde.design.routes.faults import RouteCheck
from sonde.design.routes.mount_throughput import OperationComparison
from sonde.design.routes.route_text import (
    describe_fabric,
    describe_leading_mounts,
    describe_unknown_parameters,
    group_faults,
    make_comparison_rows,
)
from sonde.design.routes.verify import VerificationResult
from sonde.model.units import format_count_with_noun
from sonde.terminal.screen import get_results_console, make_plain_table, print_json

_FAULT_MEMBERS = ("kind", "location", "problem", "remedy")


def print_route_check(route_check: RouteCheck, as_json: bool) -> None:
    """Prints a check, as JSON or for people."""
    if as_json:
        print_json(
            {
                "host": route_check.host,
                "faults": [{name: getattr(fault, name) for name in _FAULT_MEMBERS} for fault in route_check.faults],
                "compared": [asdict(item) for item in route_check.comparisons],
                "not_given": list(route_check.unknown),
                "not_compared": list(route_check.not_compared),
                "not_examined": list(route_check.not_examined),
                "not_understood": list(route_check.not_understood),
            }
        )
    else:
        _print_route_faults(route_check)


def _print_route_faults(route_check: RouteCheck) -> None:
    console = get_results_console()
    for fault, locations in group_faults(route_check.faults):
        location = locations[0] if len(locations) == 1 else f"{locations[0]}, and {len(locations) - 1} more like it"
        console.print(f"{fault.kind}  {location}", style="bold red", soft_wrap=True)
        console.print(f"  {fault.problem}: {fault.remedy}.", soft_wrap=True, highlight=False)
    for text in route_check.not_understood:
        console.print(f"Not understood, so not compared: {text}", soft_wrap=True, highlight=False, markup=False)
    for text in route_check.not_compared if route_check.comparisons else ():
        console.print(f"Of the plan not compared: {text}.", soft_wrap=True, highlight=False, markup=False)
    if route_check.not_examined:
        console.print(
            f"Not examined: {'; '.join(route_check.not_examined)}.", soft_wrap=True, highlight=False, markup=False
        )
    unchecked = f" Not given, so not checked: {', '.join(route_check.unknown)}." if route_check.unknown else ""
    summary = summarize_comparisons(len(route_check.faults), route_check.comparisons)
    console.print(f"{route_check.host}: {summary}.{unchecked}", soft_wrap=True, highlight=False)


def print_mount_comparison(operation_comparisons: Sequence[OperationComparison], striping_text: str) -> None:
    console = get_results_console()
    console.print(
        f"\nNative against forwarded, {format_count_with_noun(operation_comparisons[0].tasks, 'task')} a client",
        style="bold",
    )
    table = make_plain_table()
    for title in ("operation", "clients", *(path.mount for path, _ in operation_comparisons[0].mounts), "times"):
        table.add_column(title, justify="left" if title == "operation" else "right")
    for row in make_comparison_rows(operation_comparisons):
        table.add_row(*row)
    console.print(table)
    for sentence in (
        *describe_leading_mounts(operation_comparisons[:2]),
        striping_text,
        describe_unknown_parameters(operation_comparisons),
    ):
        if sentence:
            console.print(sentence, soft_wrap=True, highlight=False)


def print_verification_result(fabric: Fabric, result: VerificationResult) -> None:
    console = get_results_console()
    console.print(describe_fabric(fabric), style="bold", soft_wrap=True)
    table = make_plain_table()
    for title in ("router", "predicted", "counted"):
        table.add_column(title, justify="left" if title == "router" else "right")
    for name, predicted, counted_share in zip(
        result.spread.routers, result.spread.predicted, result.spread.counted, strict=True
    ):
        table.add_row(name, f"{100 * predicted:.1f} %", f"{100 * counted_share:.1f} %")
    console.print(table)
    holds = "as predicted" if result.spread.is_as_predicted else "not as predicted"
    console.print(f"{format_count_with_noun(result.flows, 'flow')}: spread {holds}.", soft_wrap=True)
    for loss in result.losses:
        limit_text = "" if loss.stall_s <= result.limit_s else f", longer than {result.limit_s:.2g} s"
        broken_text = f"; {format_count_with_noun(loss.broken, 'flow')} broke ({loss.reason})" if loss.broken else ""
        console.print(
            f"{loss.router} died: the longest pause was {loss.stall_s:.2f} s{limit_text}{broken_text}.", soft_wrap=True
        )
    console.print("Removed without a trace." if result.clean else "Removing left something behind.", soft_wrap=True)
