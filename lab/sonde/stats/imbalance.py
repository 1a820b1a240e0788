# SPDX-License-Identifier: Apache-2.0
"""Finds stragglers among tasks and nodes, and estimates the run time without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats
from sonde.stats.spread import compute_robust_sd

# A straggler is slower than the median by both this factor and this many robust standard deviations. The factor
# suppresses results when all members are nearly equal.
MIN_SLOWDOWN, MIN_DEVIATIONS = 1.15, 4.5
# A larger fraction of slow members is a property of the run, not of stragglers.
MAX_STRAGGLER_SHARE = 0.1
_MIN_EXPLAINED_GAIN = 0.05
# A node is slow when at least this fraction of its tasks is.
_SLOW_TASK_SHARE = 0.75


def compute_straggler_threshold(times_or_rates: ArrayLike) -> float:
    """Returns the factor relative to the median above which a member is a straggler.

    It applies to tasks, nodes and streams. `times_or_rates` are times or rates above 0; they are compared as
    logarithms, on which both scatter symmetrically."""
    return max(
        MIN_SLOWDOWN, float(np.exp(MIN_DEVIATIONS * compute_robust_sd(np.log(np.asarray(times_or_rates, dtype=float)))))
    )


@dataclass(frozen=True)
class Stragglers:
    """Stragglers by position: without `members` the run would be faster by `speedup` (0.38 is 38 %).

    `slowdown` is the time of the slowest member relative to the median.
    """

    members: tuple[int, ...]
    speedup: float
    slowdown: float


def find_stragglers(seconds: ArrayLike) -> Stragglers | None:
    """Returns the few members that determined the duration of a run of equal work, or None.

    The slowest member is replaced by the median, then the next, as long as each step shortens the run by 5 %.
    """
    times = _convert_to_positive_times(seconds)
    middle = float(np.median(times))
    slow_limit = middle * compute_straggler_threshold(times)
    max_count = max(1, int(MAX_STRAGGLER_SHARE * times.size))
    order = np.argsort(-times, kind="stable")
    slow_positions = [int(position) for position in order if times[position] > slow_limit]
    if not slow_positions or len(slow_positions) > max_count:  # with two members, their difference is scatter
        return None
    longest = float(times[order[0]])
    # removing one of two equally slow members changes nothing
    end_without = [float(times[order[count]]) for count in range(1, len(slow_positions) + 1)]
    count = len(slow_positions)
    while count > 1 and end_without[count - 2] / end_without[count - 1] - 1 < _MIN_EXPLAINED_GAIN:
        count -= 1
    faster = longest / end_without[count - 1] - 1
    return (
        Stragglers(tuple(slow_positions[:count]), faster, longest / middle) if faster >= _MIN_EXPLAINED_GAIN else None
    )


@dataclass(frozen=True)
class StragglerAttribution:
    """`stragglers` are nodes when `is_of_nodes`, otherwise tasks.

    A node is a straggler when three quarters of its tasks are slow.
    """

    is_of_nodes: bool
    stragglers: Stragglers


def attribute_slowness_to_nodes_or_tasks(
    task_seconds: ArrayLike, node_of_tasks: Sequence[int]
) -> StragglerAttribution | None:
    """Attributes a long run to slow nodes or to single slow tasks. `node_of_tasks` has the node of each task, from
    0."""
    times = _convert_to_positive_times(task_seconds)
    node_of_task = np.asarray(node_of_tasks)
    if node_of_task.size != times.size:
        raise ValueError("each task needs its node")
    node_ids = np.unique(node_of_task)
    by_task = find_stragglers(times)
    slow_node_group = find_stragglers([np.median(times[node_of_task == node]) for node in node_ids])
    slow_nodes = {int(node_ids[position]) for position in slow_node_group.members} if slow_node_group else set()
    # the median of few tasks is also large when only some of them are slow
    limit = MIN_SLOWDOWN * float(np.median(times))
    slow_nodes = {node for node in slow_nodes if np.mean(times[node_of_task == node] > limit) >= _SLOW_TASK_SHARE}
    if slow_node_group is not None and slow_nodes:
        longest_remaining = float(np.max(times[~np.isin(node_of_task, list(slow_nodes))]))
        faster = float(times.max()) / max(longest_remaining, float(np.median(times))) - 1
        # a single slow task elsewhere would keep the run as long as it is
        if faster >= _MIN_EXPLAINED_GAIN and (by_task is None or faster >= by_task.speedup / 2):
            return StragglerAttribution(True, Stragglers(tuple(sorted(slow_nodes)), faster, slow_node_group.slowdown))
    return StragglerAttribution(False, by_task) if by_task else None


def describe_stragglers(attribution: StragglerAttribution, node_names: Sequence[str]) -> str:
    """Returns a sentence like "Without node nid0123 the run would have been 38 % faster."."""
    kind = "node" if attribution.is_of_nodes else "task"
    more_text = f" and {len(node_names) - 5} more" if len(node_names) > 5 else ""
    plural_ending = "s" if len(node_names) > 1 else ""
    faster = f"{100 * attribution.stragglers.speedup:.0f} %"
    return (
        f"Without {kind}{plural_ending} {', '.join(node_names[:5])}{more_text} the run would have been {faster} faster."
    )


def _convert_to_positive_times(task_seconds: ArrayLike) -> Floats:
    times = np.asarray(task_seconds, dtype=float).ravel()
    if times.size == 0 or not np.all(np.isfinite(times)) or np.any(times <= 0):
        raise ValueError("imbalance needs times above 0")
    return times
