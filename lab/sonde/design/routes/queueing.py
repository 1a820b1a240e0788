# SPDX-License-Identifier: Apache-2.0
"""Throughput of many equal clients that share stations: a closed queueing network, solved by mean values.

Every client keeps `jobs` operations under way. An operation visits its client's own stations and the shared ones; at a
station it waits for those that it finds there. The queue that it finds is the one of all others, and of its own
client's other jobs (Schweitzer's approximation of mean value analysis; P. Schweitzer, 1979; exact for one job, and
right in both limits: one job alone, and a full bottleneck). A station of several threads is one as fast as all of them,
and a delay (A. Seidmann and others, 1987). The cost does not depend on the number of clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TURNS = 200  # of a bisection: more than a floating-point number has bits


@dataclass(frozen=True)
class Stage:
    """A kind of station on the way of an operation. `seconds` is the time on one of its `threads`; `shares` says which
    part of all operations each of its stations gets, and is empty when every client has a station of its own."""

    name: str
    seconds: float
    threads: int = 1
    shares: tuple[float, ...] = ()

    @property
    def cap(self) -> float:
        """Operations per second that the fullest station allows, of one client when each has its own."""
        if self.seconds <= 0:
            return float("inf")
        return self.threads / self.seconds / max(self.shares, default=1.0)


@dataclass(frozen=True)
class Solved:
    """Operations per second of all clients together, the time of one in seconds, and what the fullest stage does:
    the share of its time that it works, and its name; empty when no stage exists."""

    rate: float
    seconds: float
    busy: float
    fullest: str


def solve(stages: Sequence[Stage], clients: int, jobs: int, delay_s: float = 0.0) -> Solved:
    """`clients` with `jobs` operations each under way, and `delay_s` seconds of an operation at no station. Raises
    ValueError when an operation takes no time at all, or there is nobody."""
    if clients < 1 or jobs < 1:
        raise ValueError("somebody must do something")
    busy = [one for one in stages if one.seconds > 0]
    if not busy and delay_s <= 0:
        raise ValueError("an operation that takes no time has no rate")
    # a row for each station that an operation of one client may visit
    times = np.array([one.seconds / one.threads for one in busy for _ in one.shares or (1.0,)])
    visits = np.array([share for one in busy for share in one.shares or (1.0,)])
    own = np.array([not one.shares for one in busy for _ in one.shares or (1.0,)])
    fixed = delay_s + sum(one.seconds * (one.threads - 1) / one.threads for one in busy)
    # How many jobs of a station's mean queue of one client an arriving one finds there.
    found = np.where(own, 0.0, clients - 1.0) + (jobs - 1) / jobs
    rate = _rate(times * visits, found, fixed, jobs)
    total = rate * clients
    used = [(total if one.shares else rate) / one.cap for one in busy]
    at = int(np.argmax(used)) if used else -1
    return Solved(total, jobs / rate, min(1.0, used[at]) if used else 0.0, busy[at].name if used else "")


def _rate(demands: NDArray[np.float64], found: NDArray[np.float64], fixed: float, jobs: int) -> float:
    """Operations per second of one client: the rate at which its jobs are all somewhere. At the rate x a station with
    the demand d holds q = x d (1 + found q) of them, so q = x d / (1 - x d found), which only grows with x."""
    low, high = 0.0, jobs / (fixed + float(demands.sum()))
    for _ in range(_TURNS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        left = 1.0 - middle * demands * found
        somewhere = np.inf if np.any(left <= 0) else fixed * middle + float((middle * demands / left).sum())
        low, high = (middle, high) if somewhere < jobs else (low, middle)
    return (low + high) / 2
