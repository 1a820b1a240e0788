# SPDX-License-Identifier: Apache-2.0
"""Numbers as reports print them: three significant digits and a unit, joined by no-break spaces.

Rates and transferred amounts have decimal prefixes (1 MB = 10^6 B); configured sizes have binary ones
(1 MiB = 2^20 B).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sonde.model.units import (
    format_bytes,
    format_latency,
    format_ops,
    format_rate,
    format_seconds,
    format_significant_digits,
)

# A number and its unit stay on one line.
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
# Between facts on a line; the dot stays on the line of the fact before it.
FACT_SEPARATOR = f"{NO_BREAK_SPACE}· "
_DECIMAL_UNITS = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True)
class DisplayQuantity:
    """A rounded number and its unit, separate so that a page can style them differently."""

    digits: str
    unit: str

    def __str__(self) -> str:
        return f"{self.digits}{NO_BREAK_SPACE}{self.unit.replace(' ', NO_BREAK_SPACE)}" if self.unit else self.digits


def _split_unit(quantity_text: str) -> DisplayQuantity:
    digits, _, unit = quantity_text.partition(" ")
    return DisplayQuantity(digits, unit)


def display_byte_rate(bytes_per_s: float) -> DisplayQuantity:
    """1.9e9 -> 1.90 GB/s (decimal)."""
    return _split_unit(format_rate(bytes_per_s))


def display_binary_byte_rate(bytes_per_s: float) -> DisplayQuantity:
    """2**30 -> 1.00 GiB/s."""
    for factor, unit in ((2.0**40, "TiB/s"), (2.0**30, "GiB/s"), (2.0**20, "MiB/s"), (2.0**10, "KiB/s")):
        if bytes_per_s >= factor * 0.9995:
            return DisplayQuantity(format_significant_digits(bytes_per_s / factor), unit)
    return DisplayQuantity(format_significant_digits(bytes_per_s), "B/s")


def display_operation_rate(ops_per_s: float) -> DisplayQuantity:
    """95432.1 -> 95,400 op/s."""
    return _split_unit(format_ops(ops_per_s))


def display_transferred_bytes(byte_count: float) -> DisplayQuantity:
    """Transferred bytes, decimal: 1.07 GB."""
    for factor, unit in _DECIMAL_UNITS:
        if byte_count >= factor * 0.9995:
            return DisplayQuantity(format_significant_digits(byte_count / factor), unit)
    return DisplayQuantity(format_significant_digits(byte_count), "B")


def display_configured_size(byte_count: float) -> DisplayQuantity:
    """A configured size, binary: 4 KiB."""
    return _split_unit(format_bytes(byte_count))


def display_seconds(seconds: float) -> DisplayQuantity:
    """1.302 -> 1.30 s; below a second in ms, µs or ns; from a minute on "1 min 05 s"."""
    if 0 < seconds < 0.9995:
        return display_nanoseconds(seconds * 1e9)
    return (
        _split_unit(format_seconds(seconds))
        if seconds < 59.95
        else DisplayQuantity(format_seconds(seconds).replace(" ", NO_BREAK_SPACE), "")
    )


def display_nanoseconds(nanoseconds: float) -> DisplayQuantity:
    """85300 -> 85.3 µs."""
    return _split_unit(format_latency(nanoseconds))


def replace_no_break_spaces(text: str) -> str:
    """Replaces no-break spaces by ordinary ones, for terminals and files."""
    return text.replace(NO_BREAK_SPACE, " ")


def display_count(count: float) -> str:
    """Formats a whole number with thousands separators."""
    return f"{round(count):,}"


def display_count_with_noun(count: float, noun: str) -> str:
    """1 -> "1 task", 5000 -> "5,000 tasks", 2 -> "2 processes"."""
    plural_ending = "" if round(count) == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{display_count(count)}{NO_BREAK_SPACE}{noun}{plural_ending}"


def display_percent(fraction: float) -> str:
    """0.0123 -> 1.2 %; values close to 0 or 1 are not rounded to 0 % or 100 %."""
    value = fraction * 100
    if 99.95 <= value < 100:
        return f"99.9{NO_BREAK_SPACE}%"
    if 0 < value < 0.05:
        return f"<{NO_BREAK_SPACE}0.1{NO_BREAK_SPACE}%"
    return f"{value:.1f}{NO_BREAK_SPACE}%" if 0 < value < 9.95 or 99 < value < 100 else f"{value:.0f}{NO_BREAK_SPACE}%"


def display_exact_seconds(seconds: float) -> str:
    """The denominator of a rate, with enough digits to recompute the rate."""
    if seconds < 0.001:
        return f"{seconds * 1e6:,.3f}{NO_BREAK_SPACE}µs"
    return (
        f"{seconds:,.6f}{NO_BREAK_SPACE}s"
        if seconds < 1
        else f"{seconds:,.4f}{NO_BREAK_SPACE}s"
        if seconds < 100
        else f"{seconds:,.2f}{NO_BREAK_SPACE}s"
    )


def format_utc_time(iso_time_text: str) -> str:
    """ISO 8601 -> "21 November 2026, 21:04 UTC"; other text is returned unchanged."""
    try:
        time = datetime.fromisoformat(iso_time_text)
    except ValueError:
        return iso_time_text
    time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    return f"{time.day} {time:%B %Y, %H:%M} UTC"
