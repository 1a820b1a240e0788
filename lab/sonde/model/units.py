# SPDX-License-Identifier: Apache-2.0
"""Parses and formats sizes, durations and rates.

kB, MB, GB are powers of 1000; KiB, MiB, GiB are powers of 1024. Ambiguous units are rejected: the factor of 1.07
between
GB and GiB exceeds most effects worth measuring. The engine and ``schema/plan`` follow the same rules.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sonde.model.errors import UnitError

BYTE_UNITS: dict[str, int] = {
    "B": 1,
    **{f"{prefix}B": 1000 ** (power + 1) for power, prefix in enumerate("kMGTP")},
    **{f"{prefix}iB": 1024 ** (power + 1) for power, prefix in enumerate("KMGTP")},
}
DURATION_UNITS: dict[str, Decimal] = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
}
BIT_UNITS: dict[str, int] = {"bit": 1, **{f"{prefix}bit": 1000 ** (power + 1) for power, prefix in enumerate("kMGT")}}
OPERATION_UNITS: dict[str, int] = {"op": 1, "kop": 1000, "Mop": 1000**2}
_NUMBER_AND_UNIT_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-zµ/]*)", re.ASCII)
_MAX_BYTES = 2**63 - 1


def _split_number_and_unit(quantity_text: str, quantity_noun: str, example_text: str) -> tuple[Decimal, str]:
    match = _NUMBER_AND_UNIT_PATTERN.fullmatch(quantity_text.strip().replace("µ", "u"))
    if match is None:
        if quantity_text.strip().startswith("-"):
            raise UnitError(f'"{quantity_text}" is negative; a {quantity_noun} is written like {example_text}.')
        raise UnitError(f'"{quantity_text}" is not a {quantity_noun}; write a number and a unit, like {example_text}.')
    return Decimal(match[1]), match[2]


def _describe_ambiguous_unit(
    quantity_text: str, number: Decimal, unit_text: str, per_second_suffix: str = ""
) -> str | None:
    """Returns the error text for a bare letter (4k) or wrong case (4kb), or None for any other unit."""
    bare = unit_text.upper().removesuffix("B").removesuffix("I")
    if bare not in ("K", "M", "G", "T", "P"):
        return None
    decimal_unit = ("k" if bare == "K" else bare) + "B"
    binary_unit = bare + "iB"
    return (
        f'"{quantity_text}" does not say which unit is meant: write {number}{binary_unit}{per_second_suffix}'
        f" ({_format_without_exponent(number * BYTE_UNITS[binary_unit])} bytes)"
        f" or {number}{decimal_unit}{per_second_suffix}"
        f" ({_format_without_exponent(number * BYTE_UNITS[decimal_unit])} bytes)."
    )


def _format_without_exponent(number: Decimal) -> str:
    return f"{number:,.0f}" if number == number.to_integral_value() else f"{number.normalize():,f}"


def parse_bytes(stated_size: int | str) -> int:
    """Returns the bytes of ``4096``, ``"4KiB"`` or ``"10 MB"``. Raises UnitError with a remedy."""
    if isinstance(stated_size, bool):
        raise UnitError(f"{str(stated_size).lower()} is not a size; write a number and a unit, like 4KiB.")
    if isinstance(stated_size, int):
        if not 0 <= stated_size <= _MAX_BYTES:
            raise UnitError(f"{stated_size} is not a size; a size is between 0 and {_MAX_BYTES} bytes.")
        return stated_size
    if not isinstance(stated_size, str):
        raise UnitError(
            f"{stated_size!s} is not a size; write a whole number of bytes, or a number and a unit, like 4KiB."
        )
    number, unit = _split_number_and_unit(stated_size, "size", "4KiB or 10MB")
    if unit not in BYTE_UNITS:
        if unit == "":
            raise UnitError(
                f'"{stated_size}" has no unit; write {stated_size.strip()}B, {stated_size.strip()}KiB'
                f" or {stated_size.strip()}MiB."
            )
        raise UnitError(
            _describe_ambiguous_unit(stated_size, number, unit)
            or f'"{stated_size}" has the unknown unit "{unit}"; sizes end in one of {", ".join(BYTE_UNITS)}.'
        )
    size = number * BYTE_UNITS[unit]
    if size != size.to_integral_value():
        raise UnitError(f'"{stated_size}" is {size.normalize():f} bytes, which is not a whole number.')
    if size > _MAX_BYTES:
        raise UnitError(f'"{stated_size}" is more than a file can hold ({_MAX_BYTES} bytes).')
    return int(size)


def parse_duration(stated_duration: float | str) -> float:
    """Returns the seconds of ``2.5``, ``"10s"`` or ``"500 ms"``. Raises UnitError."""
    if isinstance(stated_duration, bool):
        raise UnitError(f"{str(stated_duration).lower()} is not a duration; write a number and a unit, like 10s.")
    if isinstance(stated_duration, int | float):
        if not 0 <= stated_duration < float("inf"):
            raise UnitError(f"{stated_duration} is not a duration; durations are not negative and not infinite.")
        return float(stated_duration)
    number, unit = _split_number_and_unit(stated_duration, "duration", "10s or 500ms")
    if unit not in DURATION_UNITS:
        units = ", ".join(DURATION_UNITS)
        if unit == "":
            raise UnitError(
                f'"{stated_duration}" has no unit; write {stated_duration.strip()}s for seconds (known: {units}).'
            )
        meant = {"m": "min for minutes or ms for milliseconds", "sec": "s", "hr": "h", "d": "h"}.get(unit.lower())
        remedy = f"write {meant}" if meant else f"durations end in {units}"
        raise UnitError(f'"{stated_duration}" has the unknown unit "{unit}"; {remedy}.')
    return float(number * DURATION_UNITS[unit])


def parse_rate(stated_rate: float | str) -> float:
    """Returns the bytes per second of ``1e6``, ``"100MB/s"`` or ``"1 GiB/s"``. Raises UnitError."""
    if isinstance(stated_rate, bool):
        raise UnitError(f"{str(stated_rate).lower()} is not a rate; write a number and a unit, like 100MB/s.")
    if isinstance(stated_rate, int | float):
        if not 0 < stated_rate < float("inf"):
            raise UnitError(f"{stated_rate} is not a rate; a rate is larger than 0 bytes per second.")
        return float(stated_rate)
    number, unit = _split_number_and_unit(stated_rate, "rate", "100MB/s")
    if not unit.endswith("/s"):
        raise UnitError(f'"{stated_rate}" is not a rate; a rate ends in "/s", like 100MB/s.')
    unit = unit.removesuffix("/s")
    if unit not in BYTE_UNITS:
        raise UnitError(
            _describe_ambiguous_unit(stated_rate, number, unit, "/s")
            or f'"{stated_rate}" has the unknown unit "{unit}/s"; rates are written like 100MB/s or 1GiB/s.'
        )
    if number == 0:
        raise UnitError(f'"{stated_rate}" is zero; a rate is larger than 0 bytes per second.')
    return float(number * BYTE_UNITS[unit])


def parse_link_rate(rate_text: str) -> float:
    """Returns the bytes per second of ``"200 Gbit/s"``, ``"2.4 GB/s"`` or ``"1 GiB/s"``.

    Bits have decimal prefixes. A plain number is rejected because it could mean bits or bytes. Raises UnitError.
    """
    if not isinstance(rate_text, str):
        raise UnitError(f"{rate_text!s} does not say bits or bytes; write a unit, like 200 Gbit/s or 2.4 GB/s.")
    number, unit = _split_number_and_unit(rate_text, "rate", "200 Gbit/s or 2.4 GB/s")
    name = unit.removesuffix("/s")
    if unit.endswith("/s") and name in BIT_UNITS:
        if number == 0:
            raise UnitError(f'"{rate_text}" is zero; a rate is larger than 0 bytes per second.')
        return float(number * BIT_UNITS[name] / 8)
    if re.fullmatch("[kKMGTP]?b(ps)?", name) and name != "B":
        prefix = name[:-3] if name.endswith("bps") else name[:-1]
        bits, octets = f"{prefix.replace('K', 'k')}bit/s", f"{prefix.replace('K', 'k')}B/s"
        raise UnitError(f'"{rate_text}" may be bits or bytes; write {number} {bits} or {number} {octets}.')
    return parse_rate(rate_text)


def parse_op_rate(rate_text: str) -> float:
    """Returns the operations per second of ``"5500 op/s"``, ``"65 kop/s"`` or ``"1.2 Mop/s"``. Raises UnitError."""
    if not isinstance(rate_text, str):
        raise UnitError(f"{rate_text!s} has no unit; write operations per second like 5500 op/s.")
    number, unit = _split_number_and_unit(rate_text, "rate of operations", "5500 op/s")
    if not unit.endswith("/s") or unit.removesuffix("/s") not in OPERATION_UNITS:
        raise UnitError(f'"{rate_text}" is not a rate of operations; write it like 5500 op/s, 65 kop/s or 1.2 Mop/s.')
    if number == 0:
        raise UnitError(f'"{rate_text}" is zero; a rate of operations is larger than 0.')
    return float(number * OPERATION_UNITS[unit.removesuffix("/s")])


def parse_share(stated_share: float | str) -> float:
    """Returns the fraction (0 to 1) of ``0.4`` or ``"40 %"``. Raises UnitError."""
    if isinstance(stated_share, str):
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *%", stated_share.strip(), re.ASCII)
        if match is None:
            raise UnitError(f'"{stated_share}" is not a share; write a number from 0 to 1, or percent like "40 %".')
        share = float(Decimal(match[1]) / 100)
    elif isinstance(stated_share, bool) or not isinstance(stated_share, int | float):
        raise UnitError(f'{stated_share!s} is not a share; write a number from 0 to 1, or percent like "40 %".')
    else:
        share = float(stated_share)
    if not 0 <= share <= 1:
        raise UnitError(f'"{stated_share}" is outside 0 to 1 (0 % to 100 %).')
    return share


def format_exact_bytes(byte_count: int) -> str:
    """Returns the shortest text that `parse_bytes` converts back to `byte_count`: 4096 -> "4KiB", 10**6 -> "1MB"."""
    best = f"{byte_count}B"
    for unit, factor in BYTE_UNITS.items():
        if byte_count and byte_count % factor == 0 and len(f"{byte_count // factor}{unit}") < len(best):
            best = f"{byte_count // factor}{unit}"
    return best


class FormattedNumber(str):
    """A number as printed, with its exact value and base unit, so that tables can be exported as numbers."""

    __slots__ = ("unit", "value")
    value: float
    unit: str

    def __new__(cls, text: str, value: float, unit: str) -> FormattedNumber:
        number = super().__new__(cls, text)
        number.value, number.unit = value, unit
        return number

    def __reduce__(self) -> tuple[type[FormattedNumber], tuple[str, float, str]]:
        return FormattedNumber, (str(self), self.value, self.unit)


def _format_with_largest_unit(value: float, factors_with_unit_names: list[tuple[float, str]]) -> str:
    """Formats three significant digits with the largest unit that keeps the number at 1 or above; units ascend."""
    chosen = 0
    for position, (factor, _) in enumerate(factors_with_unit_names):
        # 999.6 would be printed as 1000: use the next unit
        if value >= factor * 0.9995:
            chosen = position
    factor, name = factors_with_unit_names[chosen]
    return f"{format_significant_digits(value / factor)} {name}"


def format_significant_digits(value: float, significant_digits: int = 3) -> str:
    """Three significant digits, or more, without an exponent: 0.00123, 1.23, 12.3, 123, 1230."""
    if value == 0:
        return "0"
    if significant_digits != 3:
        return f"{Decimal(f'{value:.{significant_digits - 1}e}'):f}"
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    if abs(value) >= 9.995:
        return f"{value:.1f}"
    if abs(value) >= 0.9995:
        return f"{value:.2f}"
    return f"{Decimal(f'{value:.2e}'):f}"


_BINARY_BYTE_UNITS = [(float(BYTE_UNITS[unit]), unit) for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB")]
_DECIMAL_BYTE_UNITS = [(float(BYTE_UNITS[unit]), unit) for unit in ("B", "kB", "MB", "GB", "TB", "PB")]


def format_bytes(byte_count: float) -> FormattedNumber:
    """Formats a size with binary prefixes: "4 KiB", "1.50 GiB"."""
    return FormattedNumber(_format_bytes(byte_count), byte_count, "bytes")


def _format_bytes(byte_count: float) -> str:
    for factor, unit in reversed(_BINARY_BYTE_UNITS):
        if byte_count >= factor and byte_count % factor == 0 and byte_count / factor < 1024:
            return f"{byte_count / factor:.0f} {unit}"
    return f"{byte_count:.0f} B" if byte_count < 1024 else _format_with_largest_unit(byte_count, _BINARY_BYTE_UNITS)


def format_rate(bytes_per_s: float) -> FormattedNumber:
    """Formats a rate with decimal prefixes: "1.23 GB/s"."""
    return FormattedNumber(_format_rate(bytes_per_s), bytes_per_s, "bytes/s")


def _format_rate(bytes_per_s: float) -> str:
    return _format_with_largest_unit(bytes_per_s, _DECIMAL_BYTE_UNITS) + "/s"


def format_ops(ops_per_s: float) -> FormattedNumber:
    """Formats operations per second: "815 op/s", "85,200 op/s", "1.23 million op/s"."""
    return FormattedNumber(_format_ops(ops_per_s), ops_per_s, "op/s")


def _format_ops(ops_per_s: float) -> str:
    if ops_per_s >= 999_500:
        return f"{format_significant_digits(ops_per_s / 1e6)} million op/s"
    if ops_per_s >= 1000:
        digits = 10 ** (len(str(int(ops_per_s))) - 3)
        return f"{round(ops_per_s / digits) * digits:,} op/s"
    return f"{format_significant_digits(ops_per_s)} op/s"


def format_latency(nanoseconds: float) -> FormattedNumber:
    """Formats a latency: "830 ns", "83.1 µs", "1.20 ms", "2.50 s"."""
    return FormattedNumber(_format_latency(nanoseconds), nanoseconds / 1e9, "s")


def _format_latency(nanoseconds: float) -> str:
    return _format_with_largest_unit(nanoseconds, [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")])


def format_seconds(seconds: float) -> FormattedNumber:
    """Formats a duration: "100 µs", "120 ms", "3.42 s", "1 min 05 s", "2 h 03 min"."""
    return FormattedNumber(_format_seconds(seconds), seconds, "s")


def _format_seconds(seconds: float) -> str:
    if seconds < 0.9995:
        return format_latency(seconds * 1e9) if seconds > 0 else "0 s"
    if seconds < 59.95:
        return f"{format_significant_digits(seconds)} s"
    whole_seconds = round(seconds)
    if whole_seconds < 3600:
        return f"{whole_seconds // 60} min {whole_seconds % 60:02d} s"
    return f"{whole_seconds // 3600} h {whole_seconds % 3600 // 60:02d} min"


def format_wait(seconds: float) -> str:
    """Formats an estimated remaining time with few digits: "0.4 s", "12 s", "1 min 30 s", "16 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if 570 <= seconds < 3570:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds < 59.5 else format_seconds(seconds)


def format_count_with_noun(count: int, noun: str) -> str:
    """Formats a number with its noun: 1 run, 2 runs, 1,024 files, 2 histories; "series" has no plural form."""
    if count == 1 or noun.endswith("series"):
        return f"{count:,} {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if ends_in_ies else f"{count:,} {noun}s"
