# SPDX-License-Identifier: Apache-2.0
"""How long a packet takes through each router and back, as one host measures it.

Requests carry the firewall mark of a router, so that the planned rules lead them through it. The answer of the router's
own address on the other network comes back by the same router. The answer of a host behind it comes back by the router
that this host chooses: its round trip has the way out through the named router, and any way back.

Every round asks all routers once, one request at a time, so that they wait for nothing but the path, and in random
order, because the first request after a pause takes up to three times as long. A router is compared with the median of
the others in the same round: what changes in time changes all of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sonde.design.routes.health import Pinger, WatchedRoutes
from sonde.model.units import format_seconds
from sonde.stats.bounds import compute_binomial_interval
from sonde.stats.stopping import MIN_RUNS, InterimLook, MedianInterval, compute_median_interval

# All intervals of one measurement together include the truth this often.
_JOINT_CONFIDENCE = 0.99
# Packets lost and time added that are worth a name.
_WORTH_LOSS, _WORTH_RATIO = 0.01, 1.25
# The first rounds ask for link addresses, and fill caches: they do not count.
_WARM_UP_ROUNDS = 2
_ANSWER_TIMEOUT_S = 0.5
# A target without an answer in this many rounds is not asked again: its packets count as lost.
_SILENT_ROUNDS = 5
_ORDER_SEED = 1


class RoundTripProbe(Protocol):
    """A function that measures one round trip."""

    def measure_round_trip(self, address: str, mark: int, wait_s: float) -> float | None: ...


@dataclass(frozen=True)
class PathLatency:
    """Round trips through one router: to its own address on the other network (`target` is "") or to a host behind it.
    `relative` compares them with the other routers: the ratio, and its interval."""

    router: str
    target: str
    sent: int
    lost: int
    median_s: float | None
    p99_s: float | None
    relative: MedianInterval | None
    lost_at_least: float  # the share, as low as the counts allow

    @property
    def is_slow(self) -> bool:
        """Whether all of the interval lies above what the others take."""
        return self.relative is not None and self.relative.low is not None and self.relative.low > _WORTH_RATIO

    @property
    def is_lossy(self) -> bool:
        return self.lost_at_least > _WORTH_LOSS


def measure_paths(
    watched_routes: WatchedRoutes,
    routers: Sequence[str],
    *,
    rounds: int,
    interval_s: float,
    on_step: Callable[[int, int], None] = lambda done, total: None,
    probe: RoundTripProbe | None = None,
) -> list[PathLatency]:
    """Measures every router (`routers` are their names) in rounds, and the hosts behind through each of them. Raises
    MachineError when this process may not send marked packets."""
    pinger = probe or Pinger(watched_routes.plan.version)
    marked_routers = list(zip(routers, watched_routes.marks, strict=True))
    addresses = zip(marked_routers, watched_routes.router_addresses, strict=True)
    targets = [(router, "", address, mark) for (router, mark), address in addresses]
    targets += [(router, host, host, mark) for host in watched_routes.other_hosts for router, mark in marked_routers]
    times = np.full((len(targets), _WARM_UP_ROUNDS + rounds), np.nan)
    generator = random.Random(_ORDER_SEED)
    for number in range(times.shape[1]):
        start = time.monotonic()
        for index in generator.sample(range(len(targets)), len(targets)):
            _, _, address, mark = targets[index]
            if number < _SILENT_ROUNDS or not np.isnan(times[index]).all():
                round_trip_s = pinger.measure_round_trip(address, mark, _ANSWER_TIMEOUT_S)
                times[index, number] = np.nan if round_trip_s is None else round_trip_s
        on_step(number + 1, times.shape[1])
        time.sleep(max(0.0, start + interval_s - time.monotonic()))
    return summarize_paths([(router, host) for router, host, _, _ in targets], times[:, _WARM_UP_ROUNDS:])


def summarize_paths(
    routers_with_hosts: Sequence[tuple[str, str]], round_trip_times: NDArray[np.float64]
) -> list[PathLatency]:
    """Summarizes round trips (seconds; not a number for a lost packet): `round_trip_times` has a row for each path (a
    router, and a host behind it or "") and a column for each round."""
    confidence = 1 - (1 - _JOINT_CONFIDENCE) / (2 * len(routers_with_hosts))
    results = []
    for index, (router, target) in enumerate(routers_with_hosts):
        peers = [other for other, path in enumerate(routers_with_hosts) if path[1] == target and other != index]
        row = round_trip_times[index]
        answered = row[~np.isnan(row)]
        lost = row.size - answered.size
        results.append(
            PathLatency(
                router,
                target,
                row.size,
                lost,
                float(np.median(answered)) if answered.size else None,
                float(np.quantile(answered, 0.99)) if answered.size else None,
                _compare_with_peers(row, round_trip_times[peers], confidence),
                compute_binomial_interval(lost, row.size, confidence).limits[0],
            )
        )
    return results


def _compare_with_peers(
    round_trips: NDArray[np.float64], peer_round_trips: NDArray[np.float64], confidence: float
) -> MedianInterval | None:
    """The ratio of a path to the median of its peers in the rounds in which it and a peer were answered."""
    is_complete = (
        ~np.isnan(round_trips) & ~np.isnan(peer_round_trips).all(axis=0)
        if len(peer_round_trips)
        else np.zeros(round_trips.shape, dtype=bool)
    )
    if is_complete.sum() < MIN_RUNS:
        return None
    ratios = round_trips[is_complete] / np.nanmedian(peer_round_trips[:, is_complete], axis=0)
    return compute_median_interval(ratios, InterimLook.ONLY, confidence)


def describe_latency_fault(path: PathLatency) -> str:
    """Describes the fault of a path in one sentence; "" without a fault."""
    path_name = f"{path.router} to {path.target}" if path.target else path.router
    if path.lost == path.sent:
        return f"{path_name} does not answer: {path.sent} of {path.sent} packets are lost."
    if path.is_lossy:
        return f"{path_name} loses packets: {path.lost} of {path.sent}, at least {100 * path.lost_at_least:.1f} %."
    if path.is_slow and path.relative is not None and path.median_s is not None:
        return (
            f"{path_name} is slow: {format_seconds(path.median_s)} a round trip, {path.relative.value:.2f} times the"
            f" others ({path.relative.low:.2f} to {path.relative.high:.2f})."
        )
    return ""
