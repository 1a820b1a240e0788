# SPDX-License-Identifier: Apache-2.0
"""Observed values of attributes that the scripts of a plan write for the targets of Lustre."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sonde.design.layout.check_failover_nodes import is_partner_form
from sonde.design.layout.geometry import MIB
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.design.layout.observe_written import Key, Observation, PlanView
from sonde.design.layout.written_attributes import WrittenAttribute
from sonde.model.units import format_bytes

_PROGRAM = "mkfs.lustre"


@dataclass(frozen=True)
class _WrittenTarget:
    """One target with the values of its options."""

    name: str
    options: dict[str, list[str]]


def list_target_names(written: Sequence[WrittenAttribute]) -> list[str]:
    """The names of the targets that the scripts of a plan make."""
    return [target.name for target in _list_targets(written)]


def _list_written_targets(view: PlanView) -> list[_WrittenTarget]:
    return _list_targets(view.written)


def _list_targets(written: Sequence[WrittenAttribute]) -> list[_WrittenTarget]:
    commands: dict[int, dict[str, list[str]]] = {}
    for attribute in written:
        if attribute.program == _PROGRAM:
            commands.setdefault(attribute.number, {}).setdefault(attribute.option, []).append(attribute.value)
    targets = []
    for options in commands.values():
        role = "OST" if "--ost" in options else "MDT"
        name = f"{options['--fsname'][0]}-{role}{int(options['--index'][0]):04x}" if "--index" in options else "MGS"
        targets.append(_WrittenTarget(name, options))
    return targets


def _list_labeled(view: PlanView) -> list[ObservedFileSystem]:
    return [each for each in view.storage.file_systems if each.kind == "lustre" and each.facts.get("label_origin")]


def _get_target_name(target: ObservedFileSystem) -> str:
    # before its first start a target has a colon in its name, and an equals sign after writeconf
    return re.sub(r"[:=]", "-", target.location)


def _iterate_written_and_observed_targets(view: PlanView) -> Iterator[tuple[_WrittenTarget, ObservedFileSystem]]:
    written = {target.name: target for target in _list_written_targets(view)}
    for target in _list_labeled(view):
        if (planned := written.get(_get_target_name(target))) is not None:
            yield planned, target


def observe_target_file_systems(view: PlanView, key: Key) -> Iterator[Observation]:
    """A server may also hold targets of another file system: one target of the planned name is enough."""
    names = view.list_values(key)
    labeled = [target for target in _list_labeled(view) if target.facts.get("file_system")]
    is_there = any(target.facts["file_system"] in names for target in labeled)
    for target in labeled:
        name = target.facts["file_system"]
        if name in names or not is_there:
            yield Observation(target.location, name, " or ".join(names), name in names)


def observe_target_names(view: PlanView, key: Key) -> Iterator[Observation]:
    names = {target.name for target in _list_written_targets(view)}
    reported_targets = {each.location for each in view.storage.file_systems if each.kind == "lustre" and (
        each.facts.get("used_percent") or each.facts.get("unreachable"))}  # fmt: skip
    # lfs df lists all targets of a file system
    for name in sorted(names - reported_targets - {"MGS"}) if names & reported_targets else ():
        yield Observation(name, "not in lfs df", "a target of the plan", agrees=False,
                          cost="its capacity and bandwidth are missing")  # fmt: skip
    file_systems = view.list_values((_PROGRAM, "--fsname"))
    for target in _list_labeled(view):
        name = _get_target_name(target)
        if target.facts.get("file_system") in file_systems and name != "MGS":
            yield Observation(target.location, name, "a target of the plan", name in names)


def observe_management_targets(view: PlanView, key: Key) -> Iterator[Observation]:
    for planned, target in _iterate_written_and_observed_targets(view):
        if flags := target.facts.get("flags", ""):
            holds, should_hold = "MGS" in flags.split(), "--mgs" in planned.options
            texts = ["with the management target" if each else "without it" for each in (holds, should_hold)]
            yield Observation(target.location, texts[0], texts[1], holds == should_hold)


def _compare_addresses(view: PlanView, option: str, fact_name: str) -> Iterator[Observation]:
    for planned, target in _iterate_written_and_observed_targets(view):
        values = planned.options.get(option, [])
        servers = [set(re.split(r"[ ,:]", value)) for value in values]
        addresses = set[str]().union(*servers)
        if not addresses or any(address.startswith("$") for address in addresses):
            continue  # the administrator gives the address when the script runs
        observed = {address for address in re.split(r"[ ,:]", target.facts.get(fact_name, "")) if address}
        texts = [", ".join(sorted(each)) or "none" for each in (observed, addresses)]
        # a label made with --failnode names the partners of its server only
        has_partners = fact_name == "failover" and is_partner_form(target) and len(servers) > 1
        agrees = observed == addresses or (has_partners and any(observed == addresses - each for each in servers))
        yield Observation(target.location, texts[0], texts[1], agrees)


def observe_management_nodes(view: PlanView, key: Key) -> Iterator[Observation]:
    yield from _compare_addresses(view, key[1], "management")


def observe_failover_nodes(view: PlanView, key: Key) -> Iterator[Observation]:
    yield from _compare_addresses(view, key[1], "failover")


def observe_backends(view: PlanView, key: Key) -> Iterator[Observation]:
    for planned, target in _iterate_written_and_observed_targets(view):
        if backend := target.facts.get("backend", ""):
            (value,) = planned.options[key[1]]
            yield Observation(target.location, backend, value, backend == value)


def observe_request_sizes(view: PlanView, key: Key) -> Iterator[Observation]:
    (planned,) = view.list_values(key)
    names = {target.name for target in _list_written_targets(view)}
    for target in view.storage.file_systems:
        size = target.facts.get("brw_size", "")
        if target.kind == "lustre" and size and _get_target_name(target) in names:
            yield Observation(target.location, f"{size} MiB", f"{planned} MiB", size == planned)


def observe_target_numbers(view: PlanView, key: Key) -> Iterator[Observation]:
    """Blocks, stride, stripe width and journal of the backends of targets, as dumpe2fs prints them with the label."""
    option = key[1].rpartition(" ")[2]
    written = {target.name: target for target in _list_written_targets(view)}
    for each in view.storage.file_systems:
        planned = written.get(each.location) if each.kind == "ldiskfs" else None
        values = planned.options.get(key[1], []) if planned is not None else []
        observed = {"-b": each.block, "stride": each.unit, "stripe_width": each.width, "size": each.log}[option]
        if not values or observed is None or not each.block:
            continue
        step = {"-b": 1, "stride": each.block, "stripe_width": each.block, "size": MIB}[option]
        number = int(values[0]) * step
        yield Observation(each.location, format_bytes(observed), format_bytes(number), observed == number)
