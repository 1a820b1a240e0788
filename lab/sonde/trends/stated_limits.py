# SPDX-License-Identifier: Apache-2.0
"""Limits that somebody wrote down: at least so many bytes or operations a second, less a tolerance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sonde.findings.classification import Classification, is_judged_classification, label_classification
from sonde.model.errors import UnitError, UserError, suggest_close_name
from sonde.model.units import format_ops, format_rate, parse_op_rate, parse_rate
from sonde.store.rows import read_classification
from sonde.store.summary import Summary

_LIMIT_TEXT_PATTERN = re.compile(r"\s*([^=]+?)\s*=\s*([^%]+?)(?:\s*-\s*(\d+(?:\.\d+)?)\s*%)?\s*")


@dataclass(frozen=True)
class StatedLimit:
    """A phase must reach `least` (bytes/s, or operations/s), the tolerance taken off."""

    phase: str
    least: float
    operations: bool

    def format_rate(self, rate: float) -> str:
        """A rate of this kind."""
        return format_ops(rate) if self.operations else format_rate(rate)


@dataclass(frozen=True)
class LimitCheck(StatedLimit):
    """A stated limit with the measured values of runs, in the order of the runs."""

    measured: tuple[float, ...] = ()
    not_judged: str = ""  # why no run can be judged; empty for a verdict
    runs: tuple[str, ...] = ()  # ids of the runs that measured the number, in the order of `measured`

    @property
    def is_too_slow(self) -> bool:
        """Whether no run reached it. False if it is not judged."""
        return not self.not_judged and max(self.measured) < self.least


def parse_limit(limit_text: str) -> StatedLimit:
    """``write=10GB/s-10%``. Raises UserError."""
    rates = _LIMIT_TEXT_PATTERN.fullmatch(limit_text)
    if rates is None:
        raise UserError(f'--at-least "{limit_text}" is not PHASE=RATE; write it like write=10GB/s or write=10GB/s-10%.')
    operations = rates[2].endswith("op/s")
    try:
        rate = parse_op_rate(rates[2]) if operations else parse_rate(rates[2])
    except UnitError as reason:
        raise UserError(f"--at-least {rates[1]}: {reason}") from None
    share = float(rates[3] or 0) / 100
    if share >= 1:
        raise UserError(f'--at-least "{limit_text}" takes {rates[3]} % off, which leaves nothing.')
    return StatedLimit(rates[1], rate * (1 - share), operations)


def check_limit_against_runs(limit: StatedLimit, run_summaries: Sequence[Summary]) -> LimitCheck:
    """The limit against the runs that have this phase. Raises UserError when none has."""
    name = "ops_per_s" if limit.operations else "bytes_per_s"
    rates, others, names = list[tuple[float, str]](), dict[str, list[tuple[float, str]]](), dict[str, None]()
    for run in run_summaries:
        for phase in run.phases:
            if phase.get(name):
                names[str(phase["phase"])] = None
            if phase["phase"] == limit.phase and phase.get("done") and isinstance(phase.get(name), int | float):
                kind = read_classification(phase) or ""
                is_judged = is_judged_classification(kind) or kind == Classification.SIMULATED.value
                (rates if is_judged else others.setdefault(kind, [])).append((float(phase[name]), run.id))
    if others and not rates:
        labels = ", ".join(label_classification(kind) for kind in others)
        values, run_ids = zip(*(rate for kind in others.values() for rate in kind), strict=True)
        reason = f"not a storage number ({labels})"
        return LimitCheck(limit.phase, limit.least, limit.operations, values, reason, run_ids)
    if not rates:
        names_text = ", ".join(names) or "none"
        raise UserError(
            f"--at-least {limit.phase}: there is no finished phase of that name; there are {names_text}."
            f"{suggest_close_name(limit.phase, names)}"
        )
    values, run_ids = zip(*rates, strict=True)
    return LimitCheck(limit.phase, limit.least, limit.operations, values, runs=run_ids)
