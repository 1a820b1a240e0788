# SPDX-License-Identifier: Apache-2.0
"""Counters of storage servers during one phase: the share of the run in the traffic, and slow targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonde.model.quantities import display_count_with_noun, display_percent, display_transferred_bytes
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.telemetry.data import TelemetryData
from sonde.telemetry.phase_telemetry import find_run_start_time

_OTHER_TRAFFIC_FACTOR = 1.5
_MAX_CACHED_SERVER_FRACTION = 0.5
# A target whose requests take this much longer than those of the median target is named.
_MIN_SLOW_TARGET_RATIO = 2.0
_MIN_TARGETS = 3
_MIN_REQUESTS = 10


@dataclass(frozen=True)
class ServerTelemetry:
    """The storage targets during a phase. `latency_s` is the mean time of a request by target, where it is counted."""

    targets: int
    read_bytes: float
    written_bytes: float
    run_bytes: float  # that all tasks of the run transferred
    latency_s: dict[str, float]

    @property
    def run_share_of_server_bytes(self) -> float | None:
        """Bytes of the run over bytes of the servers: how much of the traffic was the run's."""
        total = self.read_bytes + self.written_bytes
        return self.run_bytes / total if total else None

    @property
    def slow_targets(self) -> dict[str, float]:
        """Targets with slow requests, and how many times slower than the median target."""
        if len(self.latency_s) < _MIN_TARGETS:
            return {}
        median = float(np.median(list(self.latency_s.values())))
        return {
            target: latency / median
            for target, latency in self.latency_s.items()
            if median > 0 and latency >= _MIN_SLOW_TARGET_RATIO * median
        }

    def describe_in_sentences(self) -> list[str]:
        """Sentences on traffic of others, cached data and slow targets; the first is always there."""
        total = self.read_bytes + self.written_bytes
        sentences = [
            f"{display_count_with_noun(self.targets, 'storage target')} moved {display_transferred_bytes(total)} "
            "during this phase."
        ]
        if (
            self.run_share_of_server_bytes is not None
            and self.run_bytes
            and self.run_share_of_server_bytes <= 1 / _OTHER_TRAFFIC_FACTOR
        ):
            sentences.append(
                f"That is {total / self.run_bytes:.1f} times what this phase asked for: others used the storage, or it"
                f" moved data twice; {display_percent(self.run_share_of_server_bytes)} of the traffic was this run's."
            )
        elif (
            self.run_share_of_server_bytes is not None
            and self.run_share_of_server_bytes >= 1 / _MAX_CACHED_SERVER_FRACTION
        ):
            sentences.append(
                f"This phase asked for {display_transferred_bytes(self.run_bytes)}: the rest stayed in, or came "
                "from, memory of"
                " clients."
            )
        for target, ratio in sorted(self.slow_targets.items(), key=lambda entry: -entry[1]):
            sentences.append(f"Requests on {target} took {ratio:.1f} times as long as on the median target.")
        return sentences


def summarize_server_telemetry(
    run: RecordedRun, phase: PhaseRecord, telemetry: TelemetryData
) -> ServerTelemetry | None:
    """The counters of storage targets during a phase; None when none covers it."""
    epoch = find_run_start_time(run)
    if epoch is None or phase.end is None:
        return None
    start, stop = epoch + phase.begin.t, epoch + phase.end.t
    read, written = (
        [
            grown
            for key in telemetry.list_series_keys(metric)
            if (grown := telemetry.compute_increase(metric, key.part, start, stop, key.host)) is not None
        ]
        for metric in ("target_read_bytes", "target_written_bytes")
    )
    if not read and not written:
        return None
    latency_s = {}
    for key in telemetry.list_series_keys("target_write_s"):
        values = [
            telemetry.compute_increase(metric, key.part, start, stop, key.host)
            for metric in ("target_read_s", "target_write_s", "target_reads", "target_writes")
        ]
        read_s, write_s, reads, writes = (value or 0.0 for value in values)
        if reads + writes >= _MIN_REQUESTS:
            latency_s[key.part] = (read_s + write_s) / (reads + writes)
    transferred = float(phase.end.bytes.transferred or 0)
    return ServerTelemetry(max(len(read), len(written)), sum(read), sum(written), transferred, latency_s)
