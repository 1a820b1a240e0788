# SPDX-License-Identifier: Apache-2.0
"""Numbers as the report prints them: three significant digits and always a unit, rounded as everywhere in the lab.

Rates and amounts moved use decimal prefixes (1 MB = 10^6 B), sizes that people choose use binary ones (1 MiB = 2^20 B),
and wherever a rate is defined the exact counts stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sonde.model.units import format_bytes, format_latency, format_ops, format_rate, format_seconds, significant

# A number and its unit stay on one line.
GAP = "\N{NO-BREAK SPACE}"
# Between facts on a line: the dot stays with what stands before it.
DOT = f"{GAP}· "
_DECIMAL = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True)
class Quantity:
    """A number rounded for reading, and its unit apart from it, so that both can be set differently."""

    digits: str
    unit: str

    def __str__(self) -> str:
        return f"{self.digits}{GAP}{self.unit.replace(' ', GAP)}" if self.unit else self.digits


def _split(words: str) -> Quantity:
    digits, _, unit = words.partition(" ")
    return Quantity(digits, unit)


def byte_rate(bytes_per_s: float) -> Quantity:
    """1.9e9 -> 1.90 GB/s (decimal)."""
    return _split(format_rate(bytes_per_s))


def binary_byte_rate(bytes_per_s: float) -> Quantity:
    """2**30 -> 1.00 GiB/s."""
    for factor, unit in ((2.0**40, "TiB/s"), (2.0**30, "GiB/s"), (2.0**20, "MiB/s"), (2.0**10, "KiB/s")):
        if bytes_per_s >= factor * 0.9995:
            return Quantity(significant(bytes_per_s / factor), unit)
    return Quantity(significant(bytes_per_s), "B/s")


def operation_rate(ops_per_s: float) -> Quantity:
    """95432.1 -> 95,400 op/s."""
    return _split(format_ops(ops_per_s))


def volume(count: float) -> Quantity:
    """An amount moved, decimal: 1.07 GB."""
    for factor, unit in _DECIMAL:
        if count >= factor * 0.9995:
            return Quantity(significant(count / factor), unit)
    return Quantity(significant(count), "B")


def size(count: float) -> Quantity:
    """A size somebody chose, binary: 4 KiB."""
    return _split(format_bytes(count))


def seconds(value: float) -> Quantity:
    """1.302 -> 1.30 s; below a second in the unit that fits; from a minute on "1 min 05 s"."""
    if 0 < value < 0.9995:
        return nanoseconds(value * 1e9)
    return _split(format_seconds(value)) if value < 59.95 else Quantity(format_seconds(value).replace(" ", GAP), "")


def nanoseconds(value: float) -> Quantity:
    """85300 -> 85.3 µs."""
    return _split(format_latency(value))


def plain(words: str) -> str:
    """The same words for a terminal or a file, where every blank is an ordinary one."""
    return words.replace(GAP, " ")


def count(value: float) -> str:
    """Whole number with thousands separators."""
    return f"{round(value):,}"


def plural(value: float, noun: str) -> str:
    """1 -> "1 task", 5000 -> "5,000 tasks", 2 -> "2 processes"."""
    ending = "" if round(value) == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{count(value)}{GAP}{noun}{ending}"


def percent(share: float) -> str:
    """0.0123 -> 1.2 %; never 100 % or 0 % for what is only nearly so."""
    value = share * 100
    if 99.95 <= value < 100:
        return f"99.9{GAP}%"
    if 0 < value < 0.05:
        return f"<{GAP}0.1{GAP}%"
    return f"{value:.1f}{GAP}%" if 0 < value < 9.95 or 99 < value < 100 else f"{value:.0f}{GAP}%"


def exact_seconds(value: float) -> str:
    """The denominator of a rate, with the digits needed to divide again by hand."""
    if value < 0.001:
        return f"{value * 1e6:,.3f}{GAP}µs"
    return f"{value:,.6f}{GAP}s" if value < 1 else f"{value:,.4f}{GAP}s" if value < 100 else f"{value:,.2f}{GAP}s"


def moment(iso: str) -> str:
    """ISO 8601 -> "21 November 2026, 21:04 UTC"; text that is no time is returned as it is."""
    try:
        when = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
