# SPDX-License-Identifier: Apache-2.0
"""Who made the others wait: how uneven tasks and nodes were, and what the run would have been without the slowest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sonde.stats.ranks import Floats
from sonde.stats.spread import robust_sd

# A straggler is this much slower than the middle one, and this many robust standard deviations away from it. The first
# keeps silent where all are so alike that the least difference is significant.
SLOWER, DEVIATIONS = 1.15, 4.5
# No more than this share of all can be stragglers: more are another kind of run.
MOST_STRAGGLERS = 0.1
_WORTH = 0.05


def slow_factor(values: ArrayLike) -> float:
    """How many times longer than the middle one (or how many times slower, for rates) a member is that counts as slow.

    The one rule of who is slow, for tasks, nodes and streams. `values` are times or rates above 0: on the logarithmic
    scale both scatter alike, on their own scale the longer side would look slow.
    """
    return max(SLOWER, float(np.exp(DEVIATIONS * robust_sd(np.log(np.asarray(values, dtype=float))))))


@dataclass(frozen=True)
class Unevenness:
    """Of times for equal work: `wasted` = longest by mean, less 1 (the share that perfect balance would save);
    `spread` = 95th percentile by median; `gini` 0 for all alike; `tail` = share of the whole time in which fewer than
    5 % of the members still worked."""

    wasted: float
    spread: float
    variation: float
    gini: float
    tail: float


def unevenness(seconds: ArrayLike) -> Unevenness:
    """Raises ValueError unless all times are above 0."""
    times = np.sort(_times(seconds))
    n, mean, longest = times.size, float(times.mean()), float(times[-1])
    gini = float(2 * np.sum(np.arange(1, n + 1) * times) / (n * times.sum()) - (n + 1) / n)
    return Unevenness(
        wasted=longest / mean - 1,
        spread=float(np.quantile(times, 0.95) / np.median(times)),
        variation=float(times.std(ddof=1) / mean) if n > 1 else 0.0,
        gini=max(0.0, gini),
        tail=1 - float(np.quantile(times, 0.95)) / longest,
    )


@dataclass(frozen=True)
class Blame:
    """Without `members` (positions) the run would have been `faster` times faster, less 1: 0.38 is 38 %.

    `slower` says how many times longer the slowest of them took than the middle member.
    """

    members: tuple[int, ...]
    faster: float
    slower: float


def stragglers(seconds: ArrayLike) -> Blame | None:
    """The few members that made a run of equal work as long as it was: the run ends with the slowest.

    Each is set to the time of the middle one, the slowest first, for as long as that shortens the run by another 5 %.
    None when nobody stands out.
    """
    times = _times(seconds)
    middle = float(np.median(times))
    least = middle * slow_factor(times)
    most = max(1, int(MOST_STRAGGLERS * times.size))
    order = np.argsort(-times, kind="stable")
    slow = [int(at) for at in order if times[at] > least]
    if not slow or len(slow) > most:  # of two, neither is slow: how far they are apart is their scatter
        return None
    longest = float(times[order[0]])
    # those that are left end the run; taking out one of two equally slow ones alone changes nothing
    without = [float(times[order[count]]) for count in range(1, len(slow) + 1)]
    count = len(slow)
    while count > 1 and without[count - 2] / without[count - 1] - 1 < _WORTH:
        count -= 1
    faster = longest / without[count - 1] - 1
    return Blame(tuple(slow[:count]), faster, longest / middle) if faster >= _WORTH else None


@dataclass(frozen=True)
class Attribution:
    """`blame` counts nodes when `of_nodes`, else tasks. A node is to blame when all it did was slow, not one task."""

    of_nodes: bool
    blame: Blame


def attribute(seconds: ArrayLike, nodes: Sequence[int]) -> Attribution | None:
    """Whether slow nodes or slow single tasks made the run long. `nodes` are the node of each task, counted from 0."""
    times = _times(seconds)
    of = np.asarray(nodes)
    if of.size != times.size:
        raise ValueError("each task needs its node")
    known = np.unique(of)
    by_task = stragglers(times)
    slow = stragglers([np.median(times[of == node]) for node in known])
    if slow is not None:
        chosen = {int(known[at]) for at in slow.members}
        rest = float(np.max(times[~np.isin(of, list(chosen))]))
        faster = float(times.max()) / max(rest, float(np.median(times))) - 1
        # a single slow task elsewhere would keep the run as long as it is
        if faster >= _WORTH and (by_task is None or faster >= by_task.faster / 2):
            return Attribution(True, Blame(tuple(sorted(chosen)), faster, slow.slower))
    return Attribution(False, by_task) if by_task else None


def blame_words(blamed: Attribution, names: Sequence[str]) -> str:
    """Without node nid0123 the run would have been 38 % faster. `names` are those of the members, in their order."""
    kind = "node" if blamed.of_nodes else "task"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    plural = "s" if len(names) > 1 else ""
    faster = f"{100 * blamed.blame.faster:.0f} %"
    return f"Without {kind}{plural} {', '.join(names[:5])}{more} the run would have been {faster} faster."


def _times(seconds: ArrayLike) -> Floats:
    times = np.asarray(seconds, dtype=float).ravel()
    if times.size == 0 or not np.all(np.isfinite(times)) or np.any(times <= 0):
        raise ValueError("imbalance needs times above 0")
    return times
