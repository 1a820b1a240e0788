# SPDX-License-Identifier: Apache-2.0
"""Scales and their ticks: where a value lies along an axis (0..1), and which round values to write there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.model import quantities


@dataclass(frozen=True)
class Tick:
    """A labeled place on an axis. On narrow screens `minor` ticks are omitted. `lower` ticks are on a second line: they
    are names, none of which may be omitted."""

    position: float
    label: str
    minor: bool = False
    lower: bool = False


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic scale from `low` to `high`; `unit` is written once, beside the axis."""

    low: float
    high: float
    ticks: tuple[Tick, ...] = ()
    unit: str = ""
    log: bool = False

    def scale_to_share(self, value: float) -> float:
        """Position of a value as a fraction of the axis, limited to 0..1."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))


def _choose_tick_step(axis_span: float, max_parts: int) -> float:
    """The round number 1, 2 or 5 times a power of ten that cuts `axis_span` into at most `max_parts` parts."""
    rough = axis_span / max_parts
    power = 10.0 ** math.floor(math.log10(rough))
    for factor in (1, 2, 5, 10):
        if factor * power >= rough * 0.999999:
            return factor * power
    return 10 * power


def build_amount_axis(highest_amount: float, base_unit: str, max_ticks: int = 4) -> Axis:
    """From zero to a little above `highest_amount`; `base_unit` is "B/s" or "ops/s" and gets the prefix that fits."""
    highest_amount = highest_amount if highest_amount > 0 else 1.0
    factor, prefix = next(
        (f, p) for f, p in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")) if highest_amount >= f
    )
    factor = factor or 1.0
    top = highest_amount * 1.04 / factor
    step = _choose_tick_step(top, max_ticks)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    marks = [step * i for i in range(int(top / step + 1e-9) + 1)]
    ticks = tuple(Tick(mark / top, f"{mark:.{places}f}" if mark else "0") for mark in marks)
    joined = prefix + base_unit if base_unit.startswith("B") else f"{prefix} {base_unit}".strip()
    return Axis(0.0, top * factor, ticks, joined)


def build_time_axis(end_s: float, max_ticks: int = 8) -> Axis:
    """Seconds from 0 to `end_s`, labeled in the unit that fits; every second tick is minor."""
    end_s = end_s if end_s > 0 else 1.0
    units = (("h", 3600.0, 7200.0), ("min", 60.0, 120.0), ("s", 1.0, 1.0), ("ms", 1e-3, 1e-3), ("µs", 1e-6, 0.0))
    unit, size = next((unit, size) for unit, size, from_s in units if end_s >= from_s)
    span = end_s / size
    step = _choose_tick_step(span, max_ticks)
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple(
        Tick(step * i / span, f"{step * i:.{places}f}", minor=i % 2 == 1) for i in range(int(span / step + 1e-9) + 1)
    )
    return Axis(0.0, end_s, ticks, unit)


def build_latency_axis(low_ns: float, high_ns: float) -> Axis:
    """Logarithmic, at least one decade, with ticks at powers of ten and, when there are few, between them."""
    low = max(low_ns, 1.0)
    high = max(high_ns, low * 1.01)
    if high / low < 10:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    decades = math.log10(high / low)
    factors: Sequence[int] = (1, 2, 5) if decades <= 1.3 else (1, 3) if decades <= 2.6 else (1,)
    ticks: list[Tick] = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for factor in factors:
            value = factor * 10.0**power
            if low <= value <= high:
                position = math.log(value / low) / math.log(high / low)
                is_dense = decades > 5 and power % 2 == 1
                ticks.append(Tick(position, _format_short_ns(value), minor=is_dense or factor in (3, 5)))
    return Axis(low, high, tuple(ticks), "", log=True)


def _format_short_ns(nanoseconds: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")):
        if nanoseconds >= size * 0.999:
            return f"{nanoseconds / size:.0f}{quantities.NO_BREAK_SPACE}{unit}"
    return f"{nanoseconds:.1g}{quantities.NO_BREAK_SPACE}ns"


def build_log_count_axis(highest_count: float) -> Axis:
    """Logarithmic counts from just below one operation, so that a single one stays visible."""
    top = max(highest_count, 2.0) * 1.5
    low = 0.6
    powers = range(0, math.floor(math.log10(top)) + 1)
    step = 1 if len(powers) <= 4 else 2 if len(powers) <= 8 else 3
    ticks = tuple(
        Tick(math.log(10.0**p / low) / math.log(top / low), _format_short_count(10**p)) for p in powers if p % step == 0
    )
    return Axis(low, top, ticks, "operations", log=True)


def build_member_count_axis(member_count: float) -> Axis:
    """How many of something: zero and all of them."""
    return Axis(0.0, member_count * 1.08, (Tick(0.0, "0"), Tick(1 / 1.08, f"{round(member_count):,}")))


def _format_short_count(count: int) -> str:
    for size, suffix in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count // size}{suffix}"
    return str(count)


def format_rate_with_unit(rate: float, base_unit: str) -> str:
    """A rate with its unit, "B/s" or "op/s"."""
    return str(quantities.display_operation_rate(rate) if base_unit == "op/s" else quantities.display_byte_rate(rate))
