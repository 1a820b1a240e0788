# SPDX-License-Identifier: Apache-2.0
"""Rates of a closed queueing network, by approximate mean value analysis.

Every client keeps `jobs` operations in flight. An operation visits the stations of its own client and the shared ones,
and waits at each for the jobs that are there when it arrives: its share of the mean queue without itself (Schweitzer's
approximation of mean value analysis; P. Schweitzer, 1979; exact for one job, and right in both limits: one job alone,
and a full bottleneck). A station of several threads counts as one station as fast as all of them, plus a delay (A.
Seidmann and others, 1987). The cost does not depend on the number of clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MAX_ITERATIONS = 200  # of a bisection: more than a floating-point number has bits


@dataclass(frozen=True)
class StationGroup:
    """Stations of one kind that an operation visits. `seconds` is the time on one of the `threads` of a station;
    `shares` says which part of all operations each station gets, and is empty when every client has a station of its
    own."""

    name: str
    seconds: float
    threads: int = 1
    shares: tuple[float, ...] = ()

    @property
    def max_operations_per_s(self) -> float:
        """Operations per second that the fullest station allows; of one client when each client has its own station."""
        if self.seconds <= 0:
            return float("inf")
        return self.threads / self.seconds / max(self.shares, default=1.0)


@dataclass(frozen=True)
class QueueSolution:
    """Operations per second of all clients together, the time of one operation in seconds, and the utilization and name
    of the bottleneck (0 and "" when no station takes time)."""

    rate: float
    seconds: float
    utilization: float
    bottleneck: str


def solve_queueing_network(
    station_groups: Sequence[StationGroup], client_count: int, jobs_per_client: int, delay_s: float = 0.0
) -> QueueSolution:
    """The rate of `client_count` with `jobs_per_client` operations in flight each. `delay_s` is the time of an
    operation at no station. Raises ValueError when an operation takes no time at all, or when there is no client or no
    job."""
    if client_count < 1 or jobs_per_client < 1:
        raise ValueError("there must be at least one client and one job")
    visited = [station for station in station_groups if station.seconds > 0]
    if not visited and delay_s <= 0:
        raise ValueError("an operation that takes no time has no rate")
    # one entry for each station that an operation of one client may visit
    times = np.array([station.seconds / station.threads for station in visited for _ in station.shares or (1.0,)])
    visit_ratios = np.array([share for station in visited for share in station.shares or (1.0,)])
    is_per_client = np.array([not station.shares for station in visited for _ in station.shares or (1.0,)])
    fixed = delay_s + sum(station.seconds * (station.threads - 1) / station.threads for station in visited)
    # How many times one client's mean queue at a station an arriving job finds there.
    queue_factors = np.where(is_per_client, 0.0, client_count - 1.0) + (jobs_per_client - 1) / jobs_per_client
    rate = _solve_client_rate(times * visit_ratios, queue_factors, fixed, jobs_per_client)
    total = rate * client_count
    utilizations = [(total if station.shares else rate) / station.max_operations_per_s for station in visited]
    busiest = int(np.argmax(utilizations)) if utilizations else -1
    return QueueSolution(
        total,
        jobs_per_client / rate,
        min(1.0, utilizations[busiest]) if utilizations else 0.0,
        visited[busiest].name if utilizations else "",
    )


def _solve_client_rate(
    demands: NDArray[np.float64], queue_factors: NDArray[np.float64], fixed_delay_s: float, jobs_per_client: int
) -> float:
    """Operations per second of one client: the rate at which all its jobs are at a station or delayed. At the rate x a
    station with the demand d holds q = x d (1 + f q) of them, so q = x d / (1 - x d f), which only grows with x. f is
    the queue factor of the station."""
    low, high = 0.0, jobs_per_client / (fixed_delay_s + float(demands.sum()))
    for _ in range(_MAX_ITERATIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        free_share = 1.0 - middle * demands * queue_factors
        jobs_placed = (
            np.inf if np.any(free_share <= 0) else fixed_delay_s * middle + float((middle * demands / free_share).sum())
        )
        low, high = (middle, high) if jobs_placed < jobs_per_client else (low, middle)
    return (low + high) / 2
