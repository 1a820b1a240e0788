# SPDX-License-Identifier: Apache-2.0
"""Compares a host with what the plan writes for it where no other check does: marks, own networks of the tables of
routers, settings of the site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_marks import describe_partial_rules, does_rule_lead_all_packets
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.host_tables import DISCARDING_KINDS, HostTables, ObservedRoute, ObservedRule
from sonde.design.routes.host_view import HostView
from sonde.design.routes.kernel_settings import add_kernel_release, select_valid_settings
from sonde.design.routes.plan import HostPlan, plan_routes

MARKED_RULE = "the rule of a mark"
OWN_NETWORK = "the own network in the table of a router"
SITE_SETTING = "a setting of the system file"
# The kind of a fault that a setting differs from the system file.
OTHER_SETTING = "setting not as planned"


def find_planned_host(host_view: HostView) -> HostPlan:
    """The plan of a class of hosts on one side of a fabric."""
    return next(
        host_plan
        for host_plan in plan_routes(host_view.fabric).host_plans
        if host_plan.network == host_view.own_side.network and host_plan.host_class is host_view.host_class
    )


def find_differences_from_plan(host_view: HostView, host_tables: HostTables) -> Iterator[RouteFault | CheckedItem]:
    """Rules, routes and settings that the plan has and this host has not."""
    plan = find_planned_host(host_view)
    rules = host_tables.rules or ()
    marks = {rule.mark for rule in rules}
    if any(rule.mark in marks for rule in plan.rules):  # other hosts do not use the marks and tables of the plan
        yield from _compare_marks(host_view, plan, rules)
        yield from _compare_own_networks(host_view, plan, host_tables.routes or ())
    if host_tables.settings is not None:
        yield from _compare_site_settings(host_view, host_tables.settings)


def _compare_marks(
    host_view: HostView, plan: HostPlan, rules: tuple[ObservedRule, ...]
) -> Iterator[RouteFault | CheckedItem]:
    """Each mark of the plan needs a rule for all packets that have it."""
    for rule, router in zip(plan.rules, host_view.fabric.routers, strict=True):
        yield CheckedItem(MARKED_RULE, f"mark {rule.mark}")
        is_discarded = any(
            observed.mark == rule.mark and observed.action in DISCARDING_KINDS and observed.is_for_all_packets
            for observed in rules
        )  # reported with the packets that it discards
        if not is_discarded and not any(
            does_rule_lead_all_packets(host_view, observed, rule.mark) for observed in rules
        ):  # fmt: skip
            yield RouteFault(
                "mark without a rule", "rules",
                f"no rule of IPv{host_view.fabric.version} leads all packets with mark {rule.mark} into table"
                f" {rule.table}, through {router.name}"
                f"{describe_partial_rules(host_view, rules, rule.mark)}: sonde route watch and latency do not ask that"
                " router",
                f"{host_view.rule_command} add pref {rule.preference} fwmark {rule.mark} table {rule.table}",
            )  # fmt: skip


def _compare_own_networks(
    host_view: HostView, plan: HostPlan, routes: tuple[ObservedRoute, ...]
) -> Iterator[RouteFault | CheckedItem]:
    """The table of a router also has the network of this side, on its device."""
    device = host_view.host_class.device
    for planned in plan.routes:
        in_table = [route for route in routes if route.table == planned.table]
        has_router = any(hop.via in host_view.routers_by_gateway for route in in_table for hop in route.hops)
        if planned.table == "main" or planned.hops or not has_router:
            continue
        location = f"{planned.destination} in table {planned.table}"
        yield CheckedItem(OWN_NETWORK, location)
        own_route = next((route for route in in_table if route.destination == planned.destination), None)
        if own_route is None:
            yield RouteFault(
                "own network missing", location,
                f"table {planned.table} has no route to {planned.destination}: marked packets to this side fall"
                " through to other tables",
                f"ip route add {planned.destination} dev {device} table {planned.table}",
            )  # fmt: skip
        elif any(hop.device == own_route.device != device for route in in_table for hop in route.hops):
            continue  # the whole table is on another device, which is reported with its next hops
        elif own_route.device not in ("", device) or own_route.hops:
            next_hop = own_route.hops[0].via if own_route.hops else own_route.device
            yield RouteFault(
                "wrong device", own_route.origin,
                f"marked packets to {planned.destination} leave by {next_hop}; {host_view.own_side.network} is on"
                f" {device}",
                f"name dev {device}",
            )  # fmt: skip


def _compare_site_settings(host_view: HostView, settings: Mapping[str, str]) -> Iterator[RouteFault | CheckedItem]:
    """Settings that the system file asks for."""
    host_class = host_view.host_class
    for name, value in select_valid_settings(
        add_kernel_release(host_class.settings, host_class.operating_system)
    ).items():
        if name not in host_class.settings or name not in settings:
            continue
        planned = " ".join(str(value).split())
        yield CheckedItem(SITE_SETTING, name)
        if settings[name] != planned:
            yield RouteFault(
                OTHER_SETTING, f"{name} = {settings[name]}", f"the system file asks for {planned}",
                f'sysctl -w {name}="{planned}"',
                is_implied=True,
            )  # fmt: skip
