# SPDX-License-Identifier: Apache-2.0
"""Verdicts of claims: the interval of a value is compared with a threshold, never the value alone."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class ClaimVerdict(StrEnum):
    """Whether the measured runs of an experiment confirm a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"  # the interval contains the threshold: more repeats could decide
    NOT_JUDGED = "not judged"  # a precondition of the claim is missing here


# Numbers that differ by less than this fraction of the larger one are equal. Records have times in nanoseconds: for a
# phase of one millisecond the rounding is a millionth.
ROUNDING_TOLERANCE = 1e-6


def compare_interval_with_threshold(
    lower_bound: float, upper_bound: float, operator: str, threshold: float, verdict_scale: float = 0.0
) -> ClaimVerdict:
    """Returns the verdict of ``value operator threshold``, where the value is in [low, high] with the stated
    confidence.

    A bound within `ROUNDING_TOLERANCE` of the threshold counts as equal to it; `verdict_scale` is the size of the
    operands when the value is a difference. Raises ValueError for an unknown operator or when low is above high.
    """
    if not lower_bound <= upper_bound:
        raise ValueError(f"[{lower_bound}, {upper_bound}] is not an interval")
    tolerance = ROUNDING_TOLERANCE * max(abs(threshold), verdict_scale)
    lower_bound, upper_bound = (
        threshold if abs(end - threshold) <= tolerance else end for end in (lower_bound, upper_bound)
    )
    return _compare_bounds_with_threshold(lower_bound, upper_bound, operator, threshold)


def _compare_bounds_with_threshold(
    lower_bound: float, upper_bound: float, operator: str, threshold: float
) -> ClaimVerdict:
    if operator in ("<=", "<"):
        return _compare_bounds_with_threshold(-upper_bound, -lower_bound, ">=" if operator == "<=" else ">", -threshold)
    if operator == ">=":
        return (
            ClaimVerdict.HOLDS
            if lower_bound >= threshold
            else ClaimVerdict.FAILS
            if upper_bound < threshold
            else ClaimVerdict.UNDECIDED
        )
    if operator == ">":
        return (
            ClaimVerdict.HOLDS
            if lower_bound > threshold
            else ClaimVerdict.FAILS
            if upper_bound <= threshold
            else ClaimVerdict.UNDECIDED
        )
    raise ValueError(f'"{operator}" compares no interval')


def combine_verdicts(claim_verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Combines the verdicts of claims joined by "and", or of one claim in several cells: one failure suffices."""
    verdicts = set(claim_verdicts)
    for verdict in (ClaimVerdict.FAILS, ClaimVerdict.NOT_JUDGED, ClaimVerdict.UNDECIDED):
        if verdict in verdicts:
            return verdict
    return ClaimVerdict.HOLDS if verdicts else ClaimVerdict.NOT_JUDGED
