# SPDX-License-Identifier: Apache-2.0
"""A mistake at a random place of a drawn host or router, and ways to make one.

All mistakes were written down before the rules that name some of them. The last 21 are in attributes that were drawn by
chance from 361 that the tools document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from drawn_hosts import DrawnHost

Plant = Callable[[DrawnHost, Random], str]


@dataclass(frozen=True)
class RouteMistake:
    """A mistake on a host of a kind. `reason` must match the kind and the text of a fault that names the location which
    `plant` returns; `consequences` are kinds of faults that also follow from it."""

    name: str
    host: str
    reason: str
    plant: Plant
    consequences: tuple[str, ...] = ()
    needs_standby: bool = False


def add_lines(output: str, *lines: str) -> Plant:
    """Adds lines; GATE is a random active router, FAR the first address of the far network."""

    def plant(host: DrawnHost, random: Random) -> str:
        first = host.far_range.partition("/")[0].rstrip("0") or host.far_range
        gate = random.choice(host.active or [""])
        far = f"{first}{random.randint(100, 101)}" if host.version == 4 else f"{first}{random.randint(100, 101):x}"
        host.add(output, *(line.replace("GATE", gate).replace("FARNET", host.far_range).replace("FAR", far)
                           for line in lines))  # fmt: skip
        return ""

    return plant


def set_one_sysctl(setting: str, *values: object) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.set_sysctl(setting, random.choice(values))
        return setting

    return plant


def edit_addresses(old: str, *new: str) -> Plant:
    def plant(host: DrawnHost, random: Random) -> str:
        host.outputs["addresses"], count = re.subn(old, random.choice(new), host.outputs["addresses"], count=1)
        assert count == 1, old
        return ""

    return plant


def edit_device_line(pattern: str, replacement: str, *devices: str) -> Plant:
    """Changes the line of a device; DEVICE is its name in the pattern and the replacement."""

    def plant(host: DrawnHost, random: Random) -> str:
        device = random.choice(devices)
        edit_addresses(pattern.replace("DEVICE", device), replacement.replace("DEVICE", device))(host, random)
        return device

    return plant
