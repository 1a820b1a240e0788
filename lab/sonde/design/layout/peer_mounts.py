# SPDX-License-Identifier: Apache-2.0
"""Groups of local file systems that should be made and mounted alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sonde.design.layout.live.observations import ObservedFileSystem
from sonde.design.layout.peer_groups import PeerGroup

_LOCAL_KINDS = ("xfs", "ext4")
_MADE_WITH = (
    "isize", "sector", "crc", "finobt", "sparse", "inode_bytes", "flex_groups", "log-version", "ftype", "log_sector",
    "log_unit", "rmapbt",
)  # fmt: skip
# What file systems of different purposes on equal stripes have alike. Features that mkfs of other years makes are not.
_MADE_FOR_STRIPES = ("sector", "log_sector", "log_unit", "rmapbt")
# Others have a rule of their own.
_OPTIONS_FOR_STRIPES = ("logbsize", "swalloc", "largeio")


def group_mounts(file_systems: Sequence[ObservedFileSystem]) -> Iterator[PeerGroup]:
    """All groups of local file systems."""
    yield from _group_numbered_mounts(file_systems)
    yield from _group_striped_mounts(file_systems)


def _name_option(option: str) -> str:
    return "of access times" if option in ("noatime", "relatime", "strictatime") else option.partition("=")[0]


def _group_numbered_mounts(file_systems: Sequence[ObservedFileSystem]) -> Iterator[PeerGroup]:
    """Local file systems at mount points that only a number distinguishes, like /data/target01: what they were made
    with, and how they are mounted."""
    groups: dict[tuple[str, str], dict[str, ObservedFileSystem]] = {}
    for each in file_systems:
        role = re.sub(r"\d+", "*", each.location)
        if each.kind in _LOCAL_KINDS and each.options and role != each.location:
            groups.setdefault((each.kind, role), {})[each.location] = each
    for (kind, role), mounts in groups.items():
        options = {_name_option(option) for each in mounts.values() for option in each.options}
        peers = {}
        for location, each in mounts.items():
            numbers = {"block": each.block, "unit": each.unit, "width": each.width, "log": each.log}
            values = {name: str(value) for name, value in numbers.items() if value is not None}
            values |= {name: each.facts[name] for name in _MADE_WITH if each.facts.get(name)}
            written = {_name_option(option): option for option in each.options}
            values |= {f"mount option {name}": written.get(name, "absent") for name in options}
            peers[location] = values
        yield PeerGroup(f"{kind} at {role}", peers, False)


def _group_striped_mounts(file_systems: Sequence[ObservedFileSystem]) -> Iterator[PeerGroup]:
    """Local file systems of one host with equal stripes: the settings that suit the stripes."""
    groups: dict[tuple[object, ...], dict[str, dict[str, str]]] = {}
    for each in file_systems:
        if each.kind in _LOCAL_KINDS and each.options and each.width:
            written = {_name_option(option): option for option in each.options}
            values = {f"mount option {name}": written.get(name, "absent") for name in _OPTIONS_FOR_STRIPES}
            values |= {name: each.facts[name] for name in _MADE_FOR_STRIPES if each.facts.get(name)}
            groups.setdefault((each.kind, each.unit, each.width), {})[each.location] = values
    for (kind, *_), peers in groups.items():
        yield PeerGroup(f"file systems of {kind} on equal stripes", peers, False)
