# SPDX-License-Identifier: Apache-2.0
"""Finds drop-ins of systemd-networkd whose file has another name, as after it was renamed: they do not apply.

Source: systemd.network(5): drop-ins of foo.network are in foo.network.d.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from sonde.design.routes.host_tables import HostTables
from sonde.design.routes.inactive_profile import InactiveProfile


def mark_orphaned_drop_ins(files: Sequence[tuple[Path, HostTables]]) -> Iterator[tuple[Path, HostTables]]:
    """The files with their tables; those of drop-ins whose file was not given, but one in the same folder that differs
    from it in its number only, with the reason why they do not take effect."""
    given_names = {file.name for file, _ in files}
    for file, tables in files:
        folder = file.absolute().parent
        expected_name = folder.name.removesuffix(".d")
        is_drop_in = folder.name.endswith(".network.d") and file.suffix == ".conf" and "networkd" in tables.formats
        if not is_drop_in or expected_name in given_names:
            bases = (each for other, each in files if other.absolute() == folder.parent / expected_name)
            yield (
                file,
                _mark_other_device(f"{folder.name}/{file.name}", tables, next(bases, HostTables()))
                if is_drop_in
                else tables,
            )
            continue
        renamed = [
            (other.name, device)
            for other, other_tables in files
            if other.absolute().parent == folder.parent and _remove_number(other.name) == _remove_number(expected_name)
            for profile in other_tables.interface_profiles
            for device in profile.device.split()
        ]
        if not renamed:
            yield file, tables
            continue
        actual_name = renamed[0][0]
        profile = InactiveProfile(
            f"{folder.name}/{file.name}", "name of the folder",
            f"there is no {expected_name}, only {actual_name}: systemd-networkd does not read this folder at the next"
            " start, and then there are none of its routes and rules",
            f"rename the folder to {actual_name}.d", tuple(device for _, device in renamed),
        )  # fmt: skip
        yield file, replace(tables, inactive_profiles=(*tables.inactive_profiles, profile))


def _mark_other_device(origin: str, drop_in: HostTables, base: HostTables) -> HostTables:
    """The tables of a drop-in; where they name a device that the file above it is not for, with that reason. A file
    that sets addresses is compared by these."""
    names = [name for profile in base.interface_profiles if not profile.addresses for name in profile.device.split()]
    devices = {hop.device for route in drop_in.routes or () for hop in route.hops if hop.device}
    lacking = sorted(device for device in devices if not any(fnmatchcase(device, name) for name in names))
    if not names or not lacking:
        return drop_in
    profile = InactiveProfile(
        origin, f"[Match] Name={' '.join(names)}",
        f"its routes are for {', '.join(lacking)}, but systemd-networkd applies the folder to {', '.join(names)}: after"
        f" the next start {', '.join(lacking)} has none of its routes and rules",
        f"write Name={lacking[0]} in the file above the folder", tuple(lacking),
    )  # fmt: skip
    return replace(drop_in, inactive_profiles=(*drop_in.inactive_profiles, profile))


def _remove_number(file_name: str) -> str:
    """The name without the number that orders it among others."""
    return re.sub(r"^\d+-", "", file_name)
