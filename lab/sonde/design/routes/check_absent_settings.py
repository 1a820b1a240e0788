# SPDX-License-Identifier: Apache-2.0
"""Compares the names of settings in configuration files with those that the kernel of the host has: `sysctl` skips a
name that it does not find, so a typing error leaves the old value."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping

from sonde.design.checked_items import CheckedItem
from sonde.design.routes.faults import RouteFault
from sonde.design.routes.kernel_settings import list_audited_settings
from sonde.design.routes.setting_names import escape_dots_in_device_names

# Parts of the kernel that are not loaded on demand; those of modules appear later.
_PREFIXES = ("net.ipv4.", "net.ipv6.", "net.core.")
# A complete `sysctl -a` has more settings of these parts than this.
_FEWEST_OF_ALL = 150


def find_absent_settings(
    live_settings: Mapping[str, str],
    configured_settings: Mapping[str, str],
    planned_names: Collection[str],
    devices: Collection[str],
) -> Iterator[RouteFault | CheckedItem]:
    """Settings of configuration files that this host does not have. Nothing is compared where the live settings are a
    selection, nor for settings of the plan, which older kernels may lack, and for those that kernels have removed."""
    present = {name for name in live_settings if name.startswith(_PREFIXES)}
    if len(present) < _FEWEST_OF_ALL:
        return
    audited = list_audited_settings(configured_settings)
    for name in configured_settings:
        if not name.startswith(_PREFIXES) or "*" in name or name in planned_names or name in audited:
            continue
        written_name = escape_dots_in_device_names(name, devices)
        yield CheckedItem("the name of a setting", written_name)
        if name not in present:
            close = difflib.get_close_matches(name, present, n=1, cutoff=0.8)
            hint = (
                f"write {escape_dots_in_device_names(close[0], devices)}" if close else "correct its name, or remove it"
            )
            yield RouteFault(
                "setting not applied", f"{written_name} = {configured_settings[name]}",
                "this host has no such setting, so sysctl skips the line and the old value stays", hint,
            )  # fmt: skip
