# SPDX-License-Identifier: Apache-2.0
"""Measurements that a diagnosis reads from a record: rates of phases, and rates of storage targets and nodes relative
to peers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any

from sonde.model.lines import TableLine, TargetsLine
from sonde.model.parents import strip_host_suffix
from sonde.model.record import PhaseRecord, RecordReader

# Kinds of vectors: the mean and the median latency of operations at each target, and the rate of each node.
TARGETS, TARGET_MEDIANS, NODES = "targets", "target_medians", "nodes"
VECTOR_KINDS = (TARGETS, TARGET_MEDIANS, NODES)
_MIN_OPERATION_S = 1e-12
# Student's t of three runs has no standard deviation; this gives twice that of the runs.
_MIN_DEGREES_OF_FREEDOM = 0.5


@dataclass(frozen=True)
class RunMeasurement:
    """One run: log rates by phase, and by (phase, kind) the log rate of each part by its id.

    The values of a vector are not yet relative to the median. `messages` says of messages, by the names of
    server_messages.py, whether servers logged one.
    """

    rates: Mapping[str, float]
    vectors: Mapping[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    messages: Mapping[str, bool] = field(default_factory=dict)

    def rename_targets(self, target_ids: Mapping[str, str]) -> RunMeasurement:
        """Returns the measurement with the ids of targets whose names in records are keys of `target_ids`."""

        def find_id(target_name: str) -> str:
            return target_ids.get(target_name) or target_ids.get(strip_host_suffix(target_name), target_name)

        vectors = {
            key: values if key[1] == NODES else {find_id(name): value for name, value in values.items()}
            for key, values in self.vectors.items()
        }
        return replace(self, vectors=vectors)

    def to_json(self) -> dict[str, Any]:
        """Returns the form that files store."""
        return {
            "rates": dict(self.rates),
            "vectors": [[phase, kind, dict(values)] for (phase, kind), values in self.vectors.items()],
            "messages": dict(self.messages),
        }

    @classmethod
    def from_json(cls, measurement_document: Mapping[str, Any]) -> RunMeasurement:
        return cls(
            {str(phase): float(value) for phase, value in measurement_document["rates"].items()},
            {
                (str(phase), str(kind)): {str(name): float(value) for name, value in values.items()}
                for phase, kind, values in measurement_document.get("vectors", ())
            },
            {str(kind): bool(value) for kind, value in measurement_document.get("messages", {}).items()},
        )


def measure_record(
    record: RecordReader,
    phase_ids: Iterable[str],
    operation_phases: Iterable[str] = (),
    vector_kinds: Iterable[str] = VECTOR_KINDS,
) -> RunMeasurement:
    """Measures the phases of a record; `operation_phases` are phases whose rate counts operations."""
    rates: dict[str, float] = {}
    vectors: dict[tuple[str, str], Mapping[str, float]] = {}
    counted = set(operation_phases)
    hosts = {line.node: line.host for line in record.nodes}
    for name in phase_ids:
        phase = record.phases.get(name)
        if phase is None or phase.end is None or phase.end.rates.total is None:
            continue
        total = phase.end.rates.total
        rate = total.ops_per_s if name in counted else total.bytes_per_s
        if rate > 0:
            rates[name] = log(rate)
        if phase.targets is not None:
            vectors.update(_compute_target_vectors(name, phase.targets))
        if nodes := _measure_nodes(phase, hosts, name in counted):
            vectors[name, NODES] = nodes
    return RunMeasurement(rates, {key: values for key, values in vectors.items() if key[1] in set(vector_kinds)})


def _compute_target_vectors(phase_id: str, targets_line: TargetsLine) -> dict[tuple[str, str], dict[str, float]]:
    needed = ("target", "ops", "single_ops", "single_ns", "p50_ns")
    if any(name not in targets_line.columns for name in needed):
        return {}
    positions = [targets_line.columns.index(name) for name in needed]
    means: dict[str, float] = {}
    medians: dict[str, float] = {}
    for row in targets_line.rows:
        target, ops, single, nanoseconds, median = (row[position] for position in positions)
        if single and single == ops and nanoseconds:
            means[str(target)] = -log(max(nanoseconds / single * 1e-9, _MIN_OPERATION_S))
            if median:
                medians[str(target)] = -log(max(median * 1e-9, _MIN_OPERATION_S))
    vectors = {(phase_id, TARGETS): means, (phase_id, TARGET_MEDIANS): medians}
    return {key: values for key, values in vectors.items() if len(values) > 1}


def _measure_nodes(phase: PhaseRecord, host_by_node: Mapping[int, str], counts_operations: bool) -> dict[str, float]:
    """The median over the tasks of each node, so that one slow target does not make a node slow."""
    rates: dict[int, list[float]] = {}
    for table in phase.tasks:
        for node, rate in _list_task_rates(table, counts_operations):
            rates.setdefault(node, []).append(rate)
    values = {host_by_node.get(node, str(node)): log(statistics.median(items)) for node, items in rates.items()}
    return values if len(values) > 1 else {}


def _list_task_rates(tasks_table: TableLine, counts_operations: bool) -> Sequence[tuple[int, float]]:
    amount = "ops" if counts_operations else "bytes"
    needed = ("node", amount, "start_s", "end_s")
    if any(name not in tasks_table.columns for name in needed):
        return []
    positions = [tasks_table.columns.index(name) for name in needed]
    rows = [[row[position] for position in positions] for row in tasks_table.rows]
    return [
        (int(node), float(done) / (float(end) - float(start)))
        for node, done, start, end in rows
        if done and start is not None and end is not None and end > start
    ]


def subtract_reference(measurement: RunMeasurement, reference: RunMeasurement) -> RunMeasurement:
    """Returns log ratios to a reference; parts and phases that either lacks are left out.

    Values of vectors are relative to their median.
    """
    rates = {phase: value - reference.rates[phase] for phase, value in measurement.rates.items()
             if phase in reference.rates}  # fmt: skip
    vectors: dict[tuple[str, str], Mapping[str, float]] = {}
    for key, values in measurement.vectors.items():
        known_values = reference.vectors.get(key, {})
        ratios = {name: value - known_values[name] for name, value in values.items() if name in known_values}
        if len(ratios) > 1:
            middle = statistics.median(ratios.values())
            vectors[key] = {name: value - middle for name, value in ratios.items()}
    return RunMeasurement(rates, vectors)


def compute_median_measurement(measurements: Sequence[RunMeasurement]) -> RunMeasurement:
    """Returns the medians of several runs: a reference."""
    phases = dict.fromkeys(phase for item in measurements for phase in item.rates)
    keys = dict.fromkeys(key for item in measurements for key in item.vectors)
    rates = {
        phase: statistics.median(item.rates[phase] for item in measurements if phase in item.rates) for phase in phases
    }
    vectors: dict[tuple[str, str], Mapping[str, float]] = {}
    for key in keys:
        samples: dict[str, list[float]] = {}
        for item in measurements:
            for name, value in item.vectors.get(key, {}).items():
                samples.setdefault(name, []).append(value)
        vectors[key] = {name: statistics.median(values) for name, values in samples.items()}
    return RunMeasurement(rates, vectors)


def compute_healthy_spread(
    healthy_runs: Sequence[RunMeasurement],
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """Standard deviations over seeds of a healthy machine: of each phase, and of single parts relative to their peers.

    A fault and a healthy machine are simulated with the same seeds, so their difference lacks this spread.
    """
    reference = compute_median_measurement(healthy_runs)
    # Each run is one of those that the reference is made of.
    factor = sqrt((len(healthy_runs) + 1) / max(1, len(healthy_runs) - 1))
    differences = [subtract_reference(item, reference) for item in healthy_runs]
    rates = {
        phase: factor * sqrt(statistics.fmean(item.rates[phase] ** 2 for item in differences))
        for phase in reference.rates
    }
    vectors: dict[tuple[str, str], float] = {}
    for key in dict.fromkeys(key for item in differences for key in item.vectors):
        values = [value for item in differences for value in item.vectors.get(key, {}).values()]
        vectors[key] = factor * sqrt(statistics.fmean(value**2 for value in values))
    return rates, vectors


def measure_scatter(measurements: Sequence[RunMeasurement], run_noise_sd: float) -> dict[str, float]:
    """Standard deviation of the log rate of each phase between runs, beyond `run_noise_sd`; empty for fewer than
    three runs. Few runs tell the spread badly, so it is that of Student's t with their degrees of freedom."""
    scatter: dict[str, float] = {}
    for phase in measurements[0].rates if len(measurements) > 2 else ():
        values = [item.rates[phase] for item in measurements if phase in item.rates]
        if len(values) > 2 and (excess := statistics.variance(values) - run_noise_sd**2) > 0:
            scatter[phase] = sqrt(excess * (len(values) - 1) / max(len(values) - 3, _MIN_DEGREES_OF_FREEDOM))
    return scatter


def measure_part_scatter(measurements: Sequence[RunMeasurement], part_noise_sd: float) -> dict[tuple[str, str], float]:
    """Standard deviation of parts relative to their peers between runs, by (phase, kind) of vectors, beyond
    `part_noise_sd`; empty for fewer than three runs. All parts of a vector count together."""
    scatter: dict[tuple[str, str], float] = {}
    for key in dict.fromkeys(key for item in measurements for key in item.vectors):
        vectors = [item.vectors[key] for item in measurements if key in item.vectors]
        names = [name for name in vectors[0] if all(name in vector for vector in vectors)]
        freedom = (len(vectors) - 1) * (len(names) - 1)
        if len(vectors) < 3 or freedom < 1:
            continue
        rows = [[vector[name] for name in names] for vector in vectors]
        relative = [[value - statistics.fmean(row) for value in row] for row in rows]
        means = [statistics.fmean(column) for column in zip(*relative, strict=True)]
        squares = sum((value - mean) ** 2 for row in relative for value, mean in zip(row, means, strict=True))
        if (excess := squares / freedom - part_noise_sd**2) > 0:
            scatter[key] = sqrt(excess * freedom / max(freedom - 2, _MIN_DEGREES_OF_FREEDOM))
    return scatter
