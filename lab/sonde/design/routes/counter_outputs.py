# SPDX-License-Identifier: Apache-2.0
"""Reads the counters of adapters that `ethtool -S DEVICE` and `perfquery` print, and their drivers (`ethtool -i`).

Source: Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; perfquery(8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sonde.model.errors import UserError

_STATISTICS_HEAD = "NIC statistics:"
_STATISTICS_PATTERN = re.compile(r"^\s+([\w.\-]+): (\d+)\s*$", re.MULTILINE)
_DRIVER_PATTERN = re.compile(r"^(driver|bus-info): (\S+)\s*$", re.MULTILINE)
_COMMAND_PATTERN = re.compile(r"^#.*\bethtool (?:-S|--statistics|-i|--driver) (\S+)", re.MULTILINE)
# The device in the name of a file: ethtool-S-eth2, ethtool_S_bond0.210.txt, ethtool-i-eth2.
_FILE_PATTERN = re.compile(r"ethtool[-_]+[Si][-_](.+?)(?:\.(?:txt|log|out))?$")
_PORT_HEAD_PATTERN = re.compile(r"^# Port (?:extended )?counters: (.*?)(?: \(CapMask.*\))?\s*$", re.MULTILINE)
_PORT_COUNTER_PATTERN = re.compile(r"^(\w+):\.*(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class InfiniBandCounters:
    """The counters of one InfiniBand port: "Lid 12 port 1", and its numbers by the names of perfquery."""

    port: str
    counts: tuple[tuple[str, int], ...]


def is_statistics_output(output_text: str) -> bool:
    """Whether a text is output of `ethtool -S` or `ethtool -i`."""
    lines = (line.strip() for line in output_text.splitlines() if line.strip() and not line.startswith("#"))
    first_line = next(lines, "")
    return first_line == _STATISTICS_HEAD or first_line.startswith("driver: ")


def parse_statistics_output(output_text: str, file_name: str) -> Mapping[str, Mapping[str, str]]:
    """The counters by device, as "counter rx_packets", or its "driver" and "bus-info". Raises UserError where neither a
    line of the command above nor the name of the file has the device, which ethtool does not print."""
    match = _COMMAND_PATTERN.search(output_text) or _FILE_PATTERN.search(file_name.rpartition("/")[2])
    if match is None:
        raise UserError(
            f"{file_name} is about an unknown interface; name the file ethtool-S-DEVICE (counters) or ethtool-i-DEVICE."
        )
    counters = {f"counter {name}": number for name, number in _STATISTICS_PATTERN.findall(output_text)}
    return {match[1]: counters or dict(_DRIVER_PATTERN.findall(output_text))}


def is_port_counter_output(output_text: str) -> bool:
    """Whether a text is output of perfquery."""
    return _PORT_HEAD_PATTERN.search(output_text) is not None


def parse_port_counters(output_text: str) -> tuple[InfiniBandCounters, ...]:
    """The counters of each port."""
    heads = list(_PORT_HEAD_PATTERN.finditer(output_text))
    ends = [head.start() for head in heads[1:]] + [len(output_text)]
    return tuple(
        InfiniBandCounters(
            head[1],
            tuple((name, int(number)) for name, number in _PORT_COUNTER_PATTERN.findall(output_text[head.end() : end])),
        )
        for head, end in zip(heads, ends, strict=True)
    )
