# SPDX-License-Identifier: Apache-2.0
"""Reads the queueing disciplines and classes that `tc -s qdisc show` and `tc -s class show dev DEVICE` print.

Source: tc(8), tc-htb(8), tc-hfsc(8), tc-tbf(8), tc-cake(8), tc-netem(8), tc-fq(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_ENTRY_PATTERN = re.compile(r"(qdisc|class) (\w+) ([\da-f]*:[\da-f]*)(?: dev (\S+))?(?: (root)| parent (\S+))?(.*)")
_COMMAND_PATTERN = re.compile(r"#[#\s]*(?:\S*/)?tc\b.*\bdev (\S+)")
_COUNT_PATTERN = re.compile(r"\s+Sent \d+ bytes (\d+) pkts? \(dropped (\d+),")
_RATE_PATTERN = re.compile(r"([\d.]+)([KMGT]?)(i?)bit")
_PREFIXES = ("", "K", "M", "G", "T")


@dataclass(frozen=True)
class QueueEntry:
    """One queueing discipline, or one class of it. `device` is empty where tc did not print it, and then the name of
    the file may have it. `parent` is "root" or a handle; `options` is the rest of the line; the numbers count packets
    (None: tc was run without -s)."""

    device: str
    file_name: str
    is_class: bool
    kind: str
    handle: str
    parent: str
    options: str
    sent: int | None = None
    dropped: int | None = None

    def find_option(self, name: str) -> str:
        """The word after the name of an option; "" without it."""
        option_texts = self.options.split()
        return option_texts[option_texts.index(name) + 1] if name in option_texts[:-1] else ""

    def find_rate(self, name: str) -> float | None:
        """The rate of an option in bytes per second; None where it is not given or unlimited."""
        return parse_rate(self.find_option(name))


def parse_rate(text: str) -> float | None:
    """A rate of tc, like "10Gbit", in bytes per second; None for another text."""
    match = _RATE_PATTERN.fullmatch(text)
    if match is None:
        return None
    thousand = 1024.0 if match[3] else 1000.0
    return float(float(match[1]) * thousand ** _PREFIXES.index(match[2]) / 8)


def is_queue_output(output_text: str) -> bool:
    """Whether a text begins with an output of tc."""
    lines = (line for line in output_text.splitlines() if line.strip() and not line.startswith("#"))
    return _ENTRY_PATTERN.match(next(lines, "")) is not None


def parse_queue_output(output_text: str, file_name: str) -> Iterator[QueueEntry]:
    """The entries in the text. A line of the command above them (`# tc class show dev eth2`) names their device."""
    entry: QueueEntry | None = None
    command_device = ""
    for line in output_text.splitlines():
        if match := _ENTRY_PATTERN.match(line):
            if entry is not None:
                yield entry
            entry = QueueEntry(
                match[4] or command_device, file_name, match[1] == "class", match[2], match[3],
                match[5] or match[6] or "", match[7].strip(),
            )  # fmt: skip
        elif command := _COMMAND_PATTERN.match(line):
            command_device = command[1]
        elif entry is not None and entry.sent is None and (counts := _COUNT_PATTERN.match(line)):
            entry = replace(entry, sent=int(counts[1]), dropped=int(counts[2]))
    if entry is not None:
        yield entry


def assign_devices(entries: tuple[QueueEntry, ...], devices: tuple[str, ...]) -> Iterator[QueueEntry]:
    """The entries with their devices: `tc … show dev DEVICE` does not print its name. It is in the name of the file, or
    one device alone has the discipline of a class; entries of which no device is known are left out."""
    owners: dict[str, set[str]] = {}
    for entry in entries:
        if entry.device and not entry.is_class:
            owners.setdefault(entry.handle, set()).add(entry.device)
    for entry in entries:
        matching = [name for name in devices
                 if re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", entry.file_name)]  # fmt: skip
        sharing = sorted(owners.get(f"{entry.handle.partition(':')[0]}:", ())) if entry.is_class else []
        device = entry.device or max(matching, key=len, default="") or (sharing[0] if len(sharing) == 1 else "")
        if device:
            yield replace(entry, device=device)
