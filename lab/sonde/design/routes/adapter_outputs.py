# SPDX-License-Identifier: Apache-2.0
"""Reads what ethtool prints of interfaces (rings, channels, offloads, interrupts, pause frames, speed), and what ibstat
prints of InfiniBand ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# The first lines of outputs of ethtool, by the group of their values.
_HEADS = {
    "Ring parameters": "ring", "Channel parameters": "channels", "Features": "feature",
    "Coalesce parameters": "coalesce", "Pause parameters": "pause", "Settings": "link",
}  # fmt: skip
_HEAD_PATTERN = re.compile(rf"^({'|'.join(_HEADS)}) for (\S+):\s*$", re.MULTILINE)
_PORT_HEAD_PATTERN = re.compile(r"^CA '(\S+)'\s*$", re.MULTILINE)
_MODES = "link Supported link modes"
# Empty lines and comments of users above an output.
_COMMENT_PATTERN = re.compile(r"\A(?:[ \t]*(?:#.*)?\n)+")
_VALUE_PATTERN = re.compile(r"\s*([^:]+):\s*(\S.*?)?\s*")


@dataclass(frozen=True)
class InfiniBandPort:
    """One port of an InfiniBand adapter: its adapter and number, its state, its rate in Gbit/s, the address of the
    subnet manager (0: none answers) and its GUID with colons ("": not printed)."""

    adapter: str
    number: str
    state: str
    rate: float
    manager: int
    guid: str = ""


def is_ethtool_output(output_text: str) -> bool:
    """Whether a text begins with an output of ethtool."""
    return _HEAD_PATTERN.match(_COMMENT_PATTERN.sub("", output_text)) is not None


def parse_ethtool_outputs(output_text: str) -> dict[str, dict[str, str]]:
    """Values by device and name: "ring RX", "maximum ring RX", "feature tcp-segmentation-offload", "link Speed".
    Features that cannot be changed ([fixed]) are left out."""
    values: dict[str, dict[str, str]] = {}
    heads = list(_HEAD_PATTERN.finditer(output_text))
    ends = [head.start() for head in heads[1:]] + [len(output_text)]
    for head, end in zip(heads, ends, strict=True):
        group, prefix = _HEADS[head[1]], ""
        device_values = values.setdefault(head[2], {})
        for line in output_text[head.end() : end].splitlines():
            if line.startswith(("Pre-set maximums", "Current hardware settings")):
                prefix = "maximum " if line.startswith("Pre-set") else ""
            elif (match := _VALUE_PATTERN.fullmatch(line)) and match[2] and "[fixed]" not in match[2]:
                device_values[f"{prefix}{group} {match[1].strip()}"] = match[2]
            elif line.strip() and next(reversed(device_values), "") == _MODES:  # one or two modes in each line
                device_values[_MODES] += f" {line.strip()}"
    return values


def is_ibstat_output(output_text: str) -> bool:
    """Whether a text begins with an output of ibstat."""
    return _PORT_HEAD_PATTERN.match(_COMMENT_PATTERN.sub("", output_text)) is not None


def parse_ibstat_output(output_text: str) -> Iterator[InfiniBandPort]:
    """The InfiniBand ports in an output of ibstat; ports of Ethernet adapters are left out."""
    for adapter_text in re.split(r"(?m)^(?=CA ')", output_text):
        adapter = _PORT_HEAD_PATTERN.match(adapter_text)
        for port_text in re.split(r"(?m)^(?=\s+Port \d+:)", adapter_text)[1:] if adapter else ():
            pairs = (match.groups() for line in port_text.splitlines() if (match := _VALUE_PATTERN.fullmatch(line)))
            values = {name.strip(): value or "" for name, value in pairs}
            rate = re.match(r"[\d.]+", values.get("Rate", ""))
            if adapter and rate and values.get("Link layer", "InfiniBand") == "InfiniBand":
                number = next(iter(values)).removeprefix("Port ")
                manager = values.get("SM lid", "")
                guid = values.get("Port GUID", "").lower().removeprefix("0x")
                yield InfiniBandPort(
                    adapter[1],
                    number,
                    values.get("State", ""),
                    float(rate[0]),
                    int(manager) if manager.isdigit() else -1,
                    ":".join(re.findall("..", guid)),
                )
