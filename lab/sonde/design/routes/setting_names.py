# SPDX-License-Identifier: Apache-2.0
"""Names of sysctls. The name of a device may have dots (bond0.210): sysctl writes them as slashes, Sonde as dots."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

# Parts of the name of a setting of one device: net.ipv4.conf.eth0.rp_filter.
_DEVICE_SETTING_PARTS = 5


def parse_setting_name(written_name: str) -> str:
    """Converts the name of a sysctl to one with dots only. sysctl takes dots or slashes between levels; the first of
    either shows which one the name uses."""
    name = written_name.strip()
    first = next((character for character in name if character in "./"), ".")
    levels = name.split(first)
    return ".".join(level.replace("/" if first == "." else ".", ".") for level in levels)


def is_device_split(written_name: str) -> bool:
    """Whether the name of a setting has a device name with unescaped dots: sysctl would read these as separators and
    find no such setting."""
    levels = written_name.strip().split(".")
    return (
        "/" not in written_name
        and levels[0] == "net"
        and levels[2:3] in (["conf"], ["neigh"])
        and len(levels) > _DEVICE_SETTING_PARTS
    )


def find_setting_file(setting_name: str, devices: Collection[str]) -> Path:
    """The file below /proc/sys of a setting with dots only, on a machine that has these devices."""
    for device in sorted(devices, key=len, reverse=True):  # bond0.210 before bond0
        before, separator, after = setting_name.partition(f".{device}.")
        if separator:
            return Path("/proc/sys", before.replace(".", "/"), device, after)
    return Path("/proc/sys", setting_name.replace(".", "/"))


def escape_dots_in_device_names(setting_text: str, devices: Collection[str]) -> str:
    """A text with names of settings as sysctl takes them, on a machine that has these devices."""
    for device in devices:
        if "." in device:
            setting_text = setting_text.replace(f".{device}.", f".{device.replace('.', '/')}.")
    return setting_text


def expand_setting_globs(settings: Mapping[str, str], devices: Collection[str]) -> dict[str, str]:
    """Settings without `*` on a machine that has these devices: a name that is written out comes before one with `*`,
    and `-NAME` without a value is left out by those with `*`."""
    excluded = {name[1:] for name in settings if name.startswith("-")}
    expanded = {name: value for name, value in settings.items() if "*" not in name and not name.startswith("-")}
    from_globs: dict[str, str] = {}
    for pattern, value in settings.items():
        prefix, separator, setting = pattern.partition(".*.")
        for device in ("all", "default", *devices) if separator else ():
            name = f"{prefix}.{device}.{setting}"
            if fnmatchcase(name, pattern) and name not in excluded:
                from_globs[name] = value
    return from_globs | expanded
