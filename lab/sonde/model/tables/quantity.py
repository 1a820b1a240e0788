# SPDX-License-Identifier: Apache-2.0
"""A number of a described system: its value in base units, the text it was written as, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.errors import UnitError
from sonde.model.units import parse_bytes, parse_duration, parse_link_rate, parse_op_rate, parse_share

STATUSES = ("published", "measured", "fitted", "inferred", "assumed")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number. `value` is in bytes, seconds, bytes per second, operations per second, or plain (shares, counts)."""

    value: float
    text: str
    source: str = ""  # who says so; of the number itself, else of its table, else of its file
    status: str = ""  # one of STATUSES, or empty when nobody said
    note: str = ""

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes per second in each direction; None is unknown, which is not zero."""

    read: Quantity | None = None
    write: Quantity | None = None


def _size(value: object) -> float:
    if not isinstance(value, str):
        raise UnitError(f'{value} has no unit; write a size like "{value} B", "64 GB" or "4 KiB".')
    return parse_bytes(value)


def _duration(value: object) -> float:
    if not isinstance(value, str):
        raise UnitError(f'{value} has no unit; write a duration like "{value} s" or "2 us".')
    return parse_duration(value)


def _count(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnitError(f"{_shown(value)} is not a count; write a whole number from 0.")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise UnitError(f"{_shown(value)} is not a number; write it without quotation marks and without a unit.")
    return value


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


# Kind of a number -> what reads it. Each raises UnitError with a sentence that offers a remedy.
PARSERS: Mapping[str, Callable[[Any], float]] = {
    "size": _size,
    "duration": _duration,
    "rate": parse_link_rate,
    "op_rate": parse_op_rate,
    "share": parse_share,
    "count": _count,
    "number": _number,
}
UNIT_OF: Mapping[str, str] = {
    "size": "bytes",
    "duration": "seconds",
    "rate": "bytes per second",
    "op_rate": "operations per second",
    "share": "from 0 to 1",
    "count": "a count",
    "number": "a number",
}
