# SPDX-License-Identifier: Apache-2.0
"""Reads the queueing disciplines and classes that `tc -j -s qdisc show` and `tc -j -s class show dev DEVICE` print.

Source: tc(8), "-j"; iproute2 tc/q_*.c, "print_opt": rates are bytes per second, probabilities fractions, times seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sonde.design.routes.queue_outputs import QueueEntry

_RATES = ("rate", "ceil", "bandwidth", "maxrate", "peakrate")
# Members that are objects, with the name of the text and of the member with its value.
_NETEM_TIMES = {"delay": "delay"}
_NETEM_SHARES = {"loss-random": ("loss", "loss"), "corrupt": ("corrupt", "corrupt"),
                 "duplicate": ("duplicate", "duplicate"), "reorder": ("reorder", "reorder")}  # fmt: skip
_COUNTS_AND_KEYS = ("kind", "class", "handle", "parent", "root", "dev", "refcnt", "options", "stats")


def is_queue_row(json_row: Mapping[str, Any]) -> bool:
    """Whether an object is one of tc."""
    return "handle" in json_row and ("kind" in json_row or "class" in json_row)


def parse_queue_row(json_row: Mapping[str, Any], file_name: str) -> QueueEntry:
    """The entry of an object, with its options as the output without -j has them."""
    is_class = "class" in json_row
    options = dict(json_row.get("options") or {})
    if is_class:  # its options stand beside its name
        options |= {name: value for name, value in json_row.items() if name not in _COUNTS_AND_KEYS}
    counts = json_row.get("stats", json_row)
    return QueueEntry(
        str(json_row.get("dev", "")), file_name, is_class, str(json_row.get("kind", json_row.get("class"))),
        str(json_row["handle"]), "root" if json_row.get("root") else str(json_row.get("parent", "")),
        " ".join(_format_options(options)), counts.get("packets"), counts.get("drops"),
    )  # fmt: skip


def _format_options(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if name in _NETEM_TIMES and isinstance(value, Mapping):
            yield f"{name} {float(value[_NETEM_TIMES[name]]) * 1000:g}ms"
        elif name in _NETEM_SHARES and isinstance(value, Mapping):
            text, member = _NETEM_SHARES[name]
            yield f"{text} {float(value[member]) * 100:g}%"
        elif name in _RATES:
            number = value.get("rate") if isinstance(value, Mapping) else value
            yield f"{name} {int(number) * 8}bit" if isinstance(number, int) else f"{name} {number}"
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
            yield f"{name} {value}"
