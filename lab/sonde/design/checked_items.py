# SPDX-License-Identifier: Apache-2.0
"""What checks of layouts and routes have in common: the comparisons that they made, because "nothing wrong" may only be
stated of those, and lists of names in their sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sonde.model.errors import EXIT_FAILED, EXIT_NOTHING_COMPARED, EXIT_OK
from sonde.model.units import format_count_with_noun

Fault = TypeVar("Fault")


@dataclass(frozen=True)
class CheckedItem:
    """One comparison that a check made, whatever its result: what was compared and where."""

    subject: str
    location: str


def join_first_names(names: Sequence[str], max_count: int = 4) -> str:
    """The first names of a list for a sentence, with the number of further names: "sda, sdb and 3 more"."""
    more = len(names) - max_count
    return ", ".join(names[:max_count]) + f" and {more} more" * (more > 0)


def split_faults_and_comparisons(
    rule_results: Iterable[Fault | CheckedItem],
) -> tuple[tuple[Fault, ...], tuple[CheckedItem, ...]]:
    """The faults and the comparisons among the results of rules, each once, in order."""
    faults: dict[Fault, None] = {}
    comparisons: dict[CheckedItem, None] = {}
    for result in rule_results:
        if isinstance(result, CheckedItem):
            comparisons[result] = None
        else:
            faults[result] = None
    return tuple(faults), tuple(comparisons)


def summarize_comparisons(fault_count: int, comparisons: Sequence[CheckedItem]) -> str:
    """The headline of a check, without a period: faults, nothing wrong in so many comparisons, or nothing compared."""
    if fault_count:
        return (
            f"{format_count_with_noun(fault_count, 'fault')} in "
            f"{format_count_with_noun(len(comparisons), 'comparison')}"
        )
    if not comparisons:
        return "Nothing could be compared, so nothing is known"
    return f"Nothing wrong in {format_count_with_noun(len(comparisons), 'comparison')}"


def choose_exit_code(fault_count: int, comparisons: Collection[CheckedItem]) -> int:
    """The exit code of a check: 1 for faults, 6 when nothing could be compared, otherwise 0."""
    if fault_count:
        return EXIT_FAILED
    return EXIT_OK if comparisons else EXIT_NOTHING_COMPARED
