# SPDX-License-Identifier: Apache-2.0
"""Prints plans and checks of ``sonde layout``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sonde.design.checked_items import summarize_comparisons
from sonde.design.layout import layout_tables
from sonde.design.layout.deletion import LunDeletion
from sonde.design.layout.failures import list_failure_effects
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedStorage
from sonde.design.layout.plan import LayoutPlan
from sonde.model.ranges import fold_names_into_ranges
from sonde.model.units import format_bytes
from sonde.terminal.screen import get_results_console, make_plain_table, print_json

# Parts of a fault that a line names; the JSON output has all of them.
_MAX_LISTED_PARTS = 8


def print_layout_plan(plan: LayoutPlan, *, explain: bool, show_failures: bool, failed_parts: tuple[str, ...]) -> None:
    console = get_results_console()
    if failed_parts:
        console.print(f"Bandwidth without {', '.join(failed_parts)}:", style="bold", soft_wrap=True)
    for file_system, row in zip(plan.file_systems, layout_tables.make_plan_rows(plan.file_systems), strict=True):
        name, location, size, stripe, groups, log, read, write, limit = row
        console.print(name, style="bold", soft_wrap=True, highlight=False)
        facts = [f"{size} on {location}", f"unit / width {stripe}; {groups} allocation groups; log {log}"]
        facts.append(f"read {read}, write {write}; limit: {limit}")
        unknown_stages = layout_tables.list_stages_without_rate(file_system)
        if unknown_stages:
            facts.append(f"Not known, so not counted: rates of {', '.join(unknown_stages)}.")
        for fact in facts:
            console.print(f"  {fact}", soft_wrap=True, highlight=False)
        if explain:
            _print_derivations(file_system)
        if show_failures:
            _print_failures(plan, file_system)
    for note in plan.notes:
        console.print(f"! {note}.", soft_wrap=True, highlight=False)
    for short in plan.unmet:
        console.print(f"Not met: {short}.", style="bold red", soft_wrap=True, highlight=False)


def _print_derivations(layout: FileSystemLayout) -> None:
    table = make_plain_table()
    for title in ("part", "number", "", "how"):
        table.add_column(title, overflow="fold")
    for derivation in layout.derivations:
        table.add_row(derivation.part, derivation.quantity, derivation.text, derivation.arithmetic)
    get_results_console().print(table)


def _print_failures(plan: LayoutPlan, layout: FileSystemLayout) -> None:
    table = make_plain_table()
    for title in ("without", "read", "write", ""):
        table.add_column(title, overflow="fold")
    for row in layout_tables.make_failure_rows(
        list(list_failure_effects(plan.system, layout.id, layout.devices)), layout
    ):
        table.add_row(*row)
    get_results_console().print(table)


def print_layout_check(hosts: Mapping[str, ObservedStorage], layout_check: LayoutCheck, as_json: bool) -> None:
    """Prints what was observed on each host, the faults and what was not compared. The name of a single host is
    empty."""
    if as_json:
        observed = {host: asdict(storage) for host, storage in hosts.items()}
        print_json({"seen": observed.get("", observed), "faults": [asdict(item) for item in layout_check.faults],
                    "compared": [asdict(item) for item in layout_check.checked_items],
                    "not_known": list(layout_check.unknown),
                    "not_compared": list(layout_check.not_compared)})  # fmt: skip
    else:
        console = get_results_console()
        for host, storage in hosts.items():
            if host:
                console.print(f"{host}:", style="bold", soft_wrap=True, highlight=False, markup=False)
            for line in layout_tables.describe_observations(storage):
                console.print(line, soft_wrap=True, highlight=False, markup=False)
        for fault in layout_check.faults:
            location = _name_maps(hosts, fault.location)
            console.print(f"{fault.kind}  {location}", style="bold red", soft_wrap=True, highlight=False)
            console.print(f"  {fault.problem}. Cost: {fault.cost}.", soft_wrap=True, highlight=False, markup=False)
            for text in fault.consequences:
                console.print(f"  It explains {text}.", soft_wrap=True, highlight=False, markup=False)
            console.print(f"  Remedy: {fault.remedy}.", soft_wrap=True, highlight=False, markup=False)
        summary = summarize_comparisons(len(layout_check.faults), layout_check.checked_items)
        unchecked = f" Not known, so not checked: {'; '.join(layout_check.unknown)}." if layout_check.unknown else ""
        console.print(f"{summary}.{unchecked}", soft_wrap=True, highlight=False, markup=False)
        for text in layout_check.not_compared:
            console.print(f"Of the plan not compared: {text}.", soft_wrap=True, highlight=False, markup=False)


def _name_maps(hosts: Mapping[str, ObservedStorage], location: str) -> str:
    """Adds to each mapped device (dm-3) of a location the name that an administrator gave it, which tells where a drive
    is. A location with many parts is cut: the first parts, and the number of the others."""
    parts = location.split(", ")
    if len(parts) > _MAX_LISTED_PARTS + 1:
        location = f"{', '.join(parts[:_MAX_LISTED_PARTS])} and {len(parts) - _MAX_LISTED_PARTS} more"
    return "; ".join(_name_maps_of_host(hosts, part) for part in location.split("; "))


def _name_maps_of_host(hosts: Mapping[str, ObservedStorage], location: str) -> str:
    """Adds names to the mapped devices of one host, with which its location begins."""
    storage = hosts.get(location.partition(": ")[0]) or hosts.get("") or ObservedStorage()

    def add_name(match: re.Match[str]) -> str:
        disk = storage.disks.get(match[0])
        name = disk.settings.get("name", "") if disk is not None else ""
        return f"{match[0]} ({name})" if name not in ("", match[0]) else match[0]

    return re.sub(r"\bdm-\d+\b", add_name, location)


def make_layout_plan_document(plan: LayoutPlan, *, show_failures: bool) -> dict[str, Any]:
    entries = []
    for file_system in plan.file_systems:
        entry: dict[str, Any] = {
            "id": file_system.id,
            "kind": file_system.table.kind,
            "purpose": file_system.table.purpose,
            "targets": list(file_system.targets),
            "devices": [store.id for store in file_system.devices],
            "log": file_system.log.id if file_system.log is not None else None,
            "capacity_bytes": file_system.capacity,
            "stripe_unit_bytes": file_system.unit,
            "stripe_width_bytes": file_system.width,
            "alignment_bytes": file_system.alignment,
            "log_bytes": file_system.log_size,
            "allocation_groups": asdict(file_system.groups) if file_system.groups is not None else None,
            "rates": asdict(file_system.rates),
            "derivations": [asdict(entry_part) for entry_part in file_system.derivations],
        }
        if show_failures:
            effects = list_failure_effects(plan.system, file_system.id, file_system.devices)
            entry["failures"] = [asdict(effect) for effect in effects]
        entries.append(entry)
    return {
        "system": plan.system.id,
        "file_systems": entries,
        "new_parts": sorted(plan.new_parts),
        "not_met": list(plan.unmet),
        "notes": list(plan.notes),
    }


def print_lun_deletion(deletion: LunDeletion) -> None:
    """Prints what is lost with the LUNs of an enclosure, and the command that deletes them."""
    console = get_results_console()
    for kind, names in deletion.removed.items():
        console.print(
            f"{kind.replace('_', ' '):13} {fold_names_into_ranges(list(names))}", soft_wrap=True, highlight=False
        )
    if deletion.bytes_freed is not None:
        console.print(f"{'space':13} {format_bytes(deletion.bytes_freed)} of the drives becomes free", soft_wrap=True)
    if "file_systems" in deletion.removed:
        lost = ", ".join(deletion.removed["file_systems"])
        console.print(f"All data of {lost} is lost: copy it first.", style="bold", soft_wrap=True)
    if deletion.command:
        console.print(f"Command       {deletion.command}", soft_wrap=True, highlight=False)


def make_lun_deletion_document(deletion: LunDeletion) -> dict[str, Any]:
    """Returns the JSON document of a deletion."""
    removed = {kind: list(names) for kind, names in deletion.removed.items()}
    return {"removed": removed, "bytes_freed": deletion.bytes_freed, "command": deletion.command or None}
