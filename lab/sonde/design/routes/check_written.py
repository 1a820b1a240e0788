# SPDX-License-Identifier: Apache-2.0
"""Lists the options in the files of a plan that a check did not compare, with the reasons.

`COMPARISONS` and `REASONS` together have a row for every option of every format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.check_planned import MARKED_RULE, SITE_SETTING
from sonde.design.routes.plan import RoutePlan
from sonde.design.routes.plan_files import FORMATS, make_plan_files
from sonde.design.routes.written_options import WrittenOption, list_written_options, normalize_setting_name

Key = tuple[str, str]
_ROUTE, _WAY, _TABLE, _MTU = "a route", "the way to the other side", "the table of a router", "the MTU of both networks"
_SETTING_SUBJECTS = ("a setting", "the same value on both sides", SITE_SETTING)

# The format that has all options, and the group of its settings.
_SCRIPT, _SETTING_GROUP = "iproute2", "sysctl"
_NO_OUTPUT = "no output shows it"
_ON_LINK_REASON = "a route without a next hop is on the link anyway"
_PROFILE_REASON = "it names the profile, and no packet depends on it"
_PLAY_REASON = "the play copies and starts the script, whose commands are compared"
_SEED_REASON = "any seed is good that both sides have (--other-side)"
# The reasons for which options are not compared.
REASONS: Mapping[Key, str] = {
    ("ip route", "proto"): "it marks the routes that the script may remove, and no packet depends on it",
    ("ip route", "scope"): _ON_LINK_REASON, ("[Route]", "Scope"): _ON_LINK_REASON,
    ("[ip]", "route_options scope"): _ON_LINK_REASON,
    ("[connection]", "id"): _PROFILE_REASON, ("[connection]", "type"): _PROFILE_REASON,
    ("sysctl", "net.ipv4.fib_multipath_hash_seed"): _SEED_REASON,
    **{("play", name): _PLAY_REASON for name in (
        "name", "hosts", "become", "src", "dest", "mode", "register", "content", "enabled", "daemon_reload", "state")},
}  # fmt: skip

# The subject of the comparisons that each option is part of. Settings are compared one by one.
COMPARISONS: Mapping[Key, str] = {
    **{("ip route", name): _ROUTE for name in (
        "destination", "via", "dev", "nexthop via", "nexthop dev", "nexthop weight")},
    ("ip route", "table"): _TABLE, ("ip route", "metric"): _WAY, ("ip route", "mtu"): _MTU,
    **{("ip rule", name): MARKED_RULE for name in ("pref", "fwmark", "table")},
    **{("[Route]", name): _ROUTE for name in (
        "Destination", "Gateway", "MultiPathRoute via", "MultiPathRoute dev", "MultiPathRoute weight")},
    ("[Route]", "Table"): _TABLE, ("[Route]", "Metric"): _WAY, ("[Route]", "MTUBytes"): _MTU,
    **{("[RoutingPolicyRule]", name): MARKED_RULE for name in ("Family", "Priority", "FirewallMark", "Table")},
    **{("[ip]", name): _ROUTE for name in ("route destination", "route gateway", "route_options weight")},
    ("[connection]", "interface-name"): _ROUTE,
    ("[ip]", "route_options table"): _TABLE, ("[ip]", "route metric"): _WAY, ("[ip]", "route_options mtu"): _MTU,
    **{("[ip]", f"routing-rule {name}"): MARKED_RULE for name in ("priority", "fwmark", "table")},
    **{("routes", name): _ROUTE for name in (
        "destination", "next-hop-interface", "next-hop-address", "weight")},
    ("routes", "table-id"): _TABLE, ("routes", "metric"): _WAY, ("routes", "mtu"): _MTU,
    **{("route-rules", name): MARKED_RULE for name in ("family", "priority", "fwmark", "route-table")},
    **{("route", name): "an LNet route" for name in ("net", "gateway", "hop", "priority")},
}  # fmt: skip


def list_options_not_compared(
    plans: Sequence[RoutePlan],
    class_name: str | None,
    formats: Sequence[str],
    comparisons: Iterable[CheckedItem],
    missing_interfaces: Sequence[str] = (),
) -> tuple[str, ...]:
    """Options that the plan writes for a class of hosts in some formats and that no comparison was made of, with the
    reason, which may be that interfaces are missing. Without a class, those of the routers. Settings are those of the
    script where no file has some."""

    def list_options(file_format: str) -> list[WrittenOption]:
        files = make_plan_files(plans, file_format, class_name)
        if class_name is None:
            files = {name: text for name, text in files.items() if name.startswith("routes-routers")}
        return list(list_written_options(files))

    planned_formats = [each for each in formats if each in FORMATS] or [_SCRIPT]
    written = [option for file_format in planned_formats for option in list_options(file_format)]
    if not any(option.group == _SETTING_GROUP for option in written):
        written += [option for option in list_options(_SCRIPT) if option.group == _SETTING_GROUP]
    return describe_options_not_compared(written, comparisons, missing_interfaces)


def describe_options_not_compared(
    written: Iterable[WrittenOption], comparisons: Iterable[CheckedItem], missing_interfaces: Sequence[str] = ()
) -> tuple[str, ...]:
    """Options that were not compared; those of one reason in one text."""
    no_output = f"{', '.join(missing_interfaces)} is missing or {_NO_OUTPUT}" if missing_interfaces else _NO_OUTPUT
    items = list(comparisons)
    subjects = {item.subject for item in items}
    settings = {normalize_setting_name(item.location) for item in items if item.subject in _SETTING_SUBJECTS}
    names_by_reason: dict[str, dict[str, None]] = {}
    for key in dict.fromkeys(option.key for option in written):
        group, name = key
        if normalize_setting_name(name) in settings if group == "sysctl" else COMPARISONS.get(key) in subjects:
            continue
        if key in REASONS:
            reason = REASONS[key]
        else:
            is_known = group == "sysctl" or key in COMPARISONS
            reason = no_output if is_known else "no rule reads it"
        names_by_reason.setdefault(reason, {})[name if group == "sysctl" else f"{group} {name}"] = None
    return tuple(f"{', '.join(names)}, because {reason}" for reason, names in names_by_reason.items())
