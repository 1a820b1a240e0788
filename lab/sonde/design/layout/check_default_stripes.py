# SPDX-License-Identifier: Apache-2.0
"""Checks the stripes that new files of Lustre get: those of the root, and those that the metadata servers give where
no directory has any."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from sonde.design.checked_items import CheckedItem, split_faults_and_comparisons
from sonde.design.layout.check_objects import ALL_TARGETS
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.design.layout.planned_roles import LUSTRE_NAME_LENGTH
from sonde.model.units import format_bytes

COUNT, SIZE = "stripecount", "stripesize"
_SERVER_SUFFIX = "-mdtlov"
_SERVER_PATTERN = re.compile(rf"(\w+)-MDT[0-9a-f]{{4}}{_SERVER_SUFFIX}")
_SOURCE_PATTERN = re.compile(r"\S+:/(\w+)")
_OTHER_SIZE_COST = "requests and locks of programs that were set for the planned size touch several targets, or fewer"
_REMEDY_END = "; files that exist keep theirs until lfs migrate"


@dataclass(frozen=True)
class _DefaultStripes:
    """The default of a file system by its name, which may be unknown. Values that are not shown, or that the plan does
    not have, are empty."""

    file_system: str
    location: str
    is_root: bool
    count: str
    size: str
    component_count: int
    planned_count: str = ""
    planned_size: str = ""
    planned_components: str | None = None

    def describe_remedy(self, attribute: str, value: str) -> str:
        """The command that sets one of the values. That of a root replaces its whole layout, so it has both."""
        if not self.is_root:
            return f"lctl set_param -P lod.{self.file_system}-MDT*-mdtlov.{attribute}={value} on the management server"
        values = {"-c": self.planned_count or self.count, "-S": self.planned_size or self.size}
        options = " ".join(f"{option} {text}" for option, text in values.items() if text not in ("", "0"))
        return f"lfs setstripe {options} {self.location}{_REMEDY_END}"

    def list_decided_attributes(self) -> Iterator[str]:
        """The attributes that a root decides, whatever the metadata servers give."""
        if self.is_root:
            yield from (COUNT,) if self.count not in ("", "0") or self.component_count > 1 else ()
            yield from (SIZE,) if self.size not in ("", "0") or self.component_count > 1 else ()


def find_default_stripe_faults(
    file_systems: Sequence[ObservedFileSystem],
    planned_layout: FileSystemLayout | None,
    mount_points: Collection[str],
) -> Iterator[LayoutFault | CheckedItem]:
    """Defaults by which each file has objects on all targets, and those that differ from the planned ones."""
    results: list[LayoutFault | CheckedItem] = []
    for default in _list_defaults_with_plan(file_systems, planned_layout, mount_points):
        has_plan = default.planned_components is not None
        results.append(CheckedItem("the planned default stripes" if has_plan else "default stripes", default.location))
        if (fault := _compare_components(default)) is not None:
            results.append(fault)
        else:
            results += [*_check_count(default), *_check_size(default)]
    faults, items = split_faults_and_comparisons(results)
    yield from items
    yield from drop_overridden_stripe_faults(faults, file_systems, planned_layout, mount_points)


def drop_overridden_stripe_faults(
    faults: Sequence[LayoutFault],
    file_systems: Sequence[ObservedFileSystem],
    planned_layout: FileSystemLayout | None,
    mount_points: Collection[str],
) -> list[LayoutFault]:
    """The faults without those of values of metadata servers in whose place files get those of the root."""
    decided = {(f":/{default.file_system}", attribute)
               for default in _list_defaults_with_plan(file_systems, planned_layout, mount_points)
               for attribute in default.list_decided_attributes()}  # fmt: skip
    return [
        fault for fault in faults if _SERVER_SUFFIX not in fault.location
        or not decided & {(device, attribute) for device in fault.devices for attribute in fault.attributes}
    ]  # fmt: skip


def join_default_stripe_faults(faults: Sequence[LayoutFault]) -> list[LayoutFault]:
    """The faults, with one for each default of a file system, which several metadata servers show."""
    groups: dict[tuple[str, Sequence[str]], list[LayoutFault]] = {}
    for fault in faults:
        if {COUNT, SIZE} & set(fault.attributes) and fault.devices:
            groups.setdefault((fault.devices[0], fault.attributes), []).append(fault)
    remaining = list(faults)
    for group in groups.values():
        cause, *effects = sorted(group, key=lambda fault: _SERVER_SUFFIX in fault.location)
        if effects:
            texts = [f"{each.location}: {each.problem}" for each in effects]
            joined = replace(cause, consequences=(*cause.consequences, *texts))
            remaining = [joined if each is cause else each for each in remaining
                         if not any(each is effect for effect in effects)]  # fmt: skip
    return remaining


def _list_defaults(file_systems: Sequence[ObservedFileSystem]) -> Iterator[_DefaultStripes]:
    for each in file_systems:
        facts = each.facts
        server = _SERVER_PATTERN.fullmatch(each.location)
        source = _SOURCE_PATTERN.fullmatch(each.device)
        # a directory below the root may be for large files alone
        is_root = source is not None or each.location.count("/") == 1
        if each.kind == "lustre" and server is not None and (facts.get(COUNT) or facts.get(SIZE)):
            yield _DefaultStripes(server[1], each.location, False, facts.get(COUNT, ""), facts.get(SIZE, ""), 1)
        elif each.kind == "lustre" and is_root and facts.get("default_offset"):
            components = facts.get("layout", "").split()
            yield _DefaultStripes(
                source[1] if source is not None else "", each.location, True,
                facts.get("stripe_count", ""), facts.get("stripe_size", "") if len(components) < 2 else "",
                max(1, len(components)),
            )  # fmt: skip


def _list_defaults_with_plan(
    file_systems: Sequence[ObservedFileSystem], planned_layout: FileSystemLayout | None, mount_points: Collection[str]
) -> Iterator[_DefaultStripes]:
    for default in _list_defaults(file_systems):
        if (
            planned_layout is not None
            and planned_layout.table.kind == "lustre"
            and _is_of_plan(default, planned_layout, mount_points)
        ):
            name, stripe = planned_layout.id[:LUSTRE_NAME_LENGTH], planned_layout.table.stripe
            if stripe is None:
                yield replace(default, file_system=name)
            else:
                yield replace(
                    default, file_system=name, planned_components=stripe.layout,
                    planned_count=str(int(stripe.count)) if stripe.count is not None else "",
                    planned_size=str(int(stripe.size)) if stripe.size is not None else "",
                )  # fmt: skip
        else:
            yield default


def _is_of_plan(default: _DefaultStripes, planned_layout: FileSystemLayout, mount_points: Collection[str]) -> bool:
    """Whether it is the default of the planned file system: by its name, else by where the plan mounts it."""
    if default.file_system:
        return default.file_system == planned_layout.id[:LUSTRE_NAME_LENGTH]
    return not mount_points or default.location in mount_points


def _compare_components(default: _DefaultStripes) -> LayoutFault | None:
    """A fault where one of both has several components and the other one has not."""
    has_components = default.component_count > 1
    planned_components, planned_count = default.planned_components, default.planned_count
    if has_components == bool(planned_components) or not default.is_root or not (planned_components or planned_count):
        return None
    observed = f"{default.component_count} components" if has_components else f"the stripe count {default.count} alone"
    planned = planned_components or f"the stripe count {planned_count}"
    return _make_fault(
        default, COUNT, f"its default layout has {observed}", planned,
        "files get other numbers of targets than planned as they grow",
        f"lfs setstripe {default.location} with the planned layout{_REMEDY_END}",
    )  # fmt: skip


def _check_count(default: _DefaultStripes) -> Iterator[LayoutFault]:
    planned_count = default.planned_count
    count = "1" if default.count == "0" else default.count
    if re.fullmatch(r"-1|\d+", count) is None or count == planned_count:
        return
    if count == "-1":
        planned_text = f"; planned is {planned_count}" if planned_count else ""
        cost, remedy = ALL_TARGETS
        remedy = default.describe_remedy(COUNT, planned_count) if planned_count else remedy
        fault = _make_fault(default, COUNT, "the default stripe count is -1", planned_count, cost, remedy)
        yield replace(fault, kind="all files on all targets", problem=f"the default stripe count is -1{planned_text}")
    elif planned_count:
        is_fewer = planned_count == "-1" or int(count) < int(planned_count)
        yield _make_fault(
            default, COUNT, f"the default stripe count is {count}", planned_count,
            "a file has the bandwidth and the space of fewer targets than planned" if is_fewer else
            "each file, also a small one, has objects on more targets than planned: creates, stat and removal ask them",
            default.describe_remedy(COUNT, planned_count),
        )  # fmt: skip


def _check_size(default: _DefaultStripes) -> Iterator[LayoutFault]:
    planned_size = default.planned_size
    if planned_size and default.size.isdigit() and default.size not in ("0", planned_size):
        yield _make_fault(
            default, SIZE, f"the default stripe size is {format_bytes(int(default.size))}",
            format_bytes(int(planned_size)), _OTHER_SIZE_COST, default.describe_remedy(SIZE, planned_size),
        )  # fmt: skip


def _make_fault(
    default: _DefaultStripes, attribute: str, problem: str, planned: str, cost: str, remedy: str
) -> LayoutFault:
    return LayoutFault(
        "not as planned", default.location, f"{problem}; planned is {planned}", cost, remedy,
        (attribute,), planned=planned, devices=(f":/{default.file_system}",),
    )  # fmt: skip
