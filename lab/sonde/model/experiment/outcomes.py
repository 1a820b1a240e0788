# SPDX-License-Identifier: Apache-2.0
"""What comes of an expectation: an interval is compared, never a point. There are four outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Outcome(StrEnum):
    """What comes of a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"  # the interval contains the threshold: more repeats would tell
    NOT_APPLICABLE = "not applicable"  # something that it needs is missing here


# Two numbers that differ by less than this share of the larger one are the same number. Records have times to the
# nanosecond: of a phase of a millisecond that is a millionth, and what is calculated from such times says no more.
ROUNDING = 1e-6


def compared(low: float, high: float, operator: str, threshold: float, scale: float = 0.0) -> Outcome:
    """Outcome of ``value operator threshold``, where the value lies in [low, high] with the stated confidence.

    A bound that differs from the threshold by no more than records are rounded (`ROUNDING` of the threshold, or of
    `scale`, the size of what was subtracted to get the value) lies on it. Raises ValueError for another operator, or an
    interval upside down.
    """
    if not low <= high:
        raise ValueError(f"[{low}, {high}] is not an interval")
    near = ROUNDING * max(abs(threshold), scale)
    low, high = (threshold if abs(end - threshold) <= near else end for end in (low, high))
    return _compared(low, high, operator, threshold)


def _compared(low: float, high: float, operator: str, threshold: float) -> Outcome:
    if operator in ("<=", "<"):
        return _compared(-high, -low, ">=" if operator == "<=" else ">", -threshold)
    if operator == ">=":
        return Outcome.HOLDS if low >= threshold else Outcome.FAILS if high < threshold else Outcome.INCONCLUSIVE
    if operator == ">":
        return Outcome.HOLDS if low > threshold else Outcome.FAILS if high <= threshold else Outcome.INCONCLUSIVE
    raise ValueError(f'"{operator}" compares no interval')


def joined(outcomes: Iterable[Outcome]) -> Outcome:
    """Outcome of claims joined by "and", and of one claim in several cells: one failure is enough."""
    found = set(outcomes)
    for outcome in (Outcome.FAILS, Outcome.NOT_APPLICABLE, Outcome.INCONCLUSIVE):
        if outcome in found:
            return outcome
    return Outcome.HOLDS if found else Outcome.NOT_APPLICABLE
