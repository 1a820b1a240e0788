# SPDX-License-Identifier: Apache-2.0
"""A number of a system file: its value in base units, its text, and its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.errors import UnitError
from sonde.model.units import parse_bytes, parse_duration, parse_link_rate, parse_op_rate, parse_share

SOURCE_STATUSES = ("published", "measured", "fitted", "inferred", "assumed")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number. `value` is in bytes, seconds, bytes per second, operations per second, or plain (shares, counts)."""

    value: float
    text: str
    source: str = ""  # source of the number, otherwise of its table, otherwise of its file
    status: str = ""  # one of SOURCE_STATUSES, or empty
    note: str = ""

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True)
class ReadWriteRates:
    """Bytes per second in each direction; None is unknown, which is not zero."""

    read: Quantity | None = None
    write: Quantity | None = None


def _parse_size(toml_value: object) -> float:
    if not isinstance(toml_value, str):
        raise UnitError(f'{toml_value} has no unit; write a size like "{toml_value} B", "64 GB" or "4 KiB".')
    return parse_bytes(toml_value)


def _parse_duration(toml_value: object) -> float:
    if not isinstance(toml_value, str):
        raise UnitError(f'{toml_value} has no unit; write a duration like "{toml_value} s" or "2 us".')
    return parse_duration(toml_value)


def _parse_count(toml_value: object) -> float:
    if isinstance(toml_value, bool) or not isinstance(toml_value, int) or toml_value < 0:
        raise UnitError(f"{_format_toml_value(toml_value)} is not a count; write a whole number from 0.")
    return toml_value


def _parse_number(toml_value: object) -> float:
    if isinstance(toml_value, bool) or not isinstance(toml_value, int | float) or not abs(toml_value) < float("inf"):
        raise UnitError(
            f"{_format_toml_value(toml_value)} is not a number; write it without quotation marks and without a unit."
        )
    return toml_value


def _format_toml_value(toml_value: object) -> str:
    return f'"{toml_value}"' if isinstance(toml_value, str) else str(toml_value)


# Parser by kind of number. Each raises UnitError with a remedy.
NUMBER_PARSERS: Mapping[str, Callable[[Any], float]] = {
    "size": _parse_size,
    "duration": _parse_duration,
    "rate": parse_link_rate,
    "op_rate": parse_op_rate,
    "share": parse_share,
    "count": _parse_count,
    "number": _parse_number,
}
BASE_UNITS: Mapping[str, str] = {
    "size": "bytes",
    "duration": "seconds",
    "rate": "bytes per second",
    "op_rate": "operations per second",
    "share": "from 0 to 1",
    "count": "a count",
    "number": "a number",
}
