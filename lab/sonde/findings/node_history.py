# SPDX-License-Identifier: Apache-2.0
"""Nodes over many runs: who is slow again and again, and who only was once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sonde.model.record import PhaseRecord, RecordReader
from sonde.stats.imbalance import compute_straggler_threshold
from sonde.stats.ranks import Floats

# Runs in which a node must be slow.
MIN_SLOW_RUNS = 3


@dataclass(frozen=True)
class NodeRateHistory:
    """`shares` has one row per node and one column per run: the rate of the node divided by that of the median node of
    the run, which removes causes that affect all nodes; NaN if the node took no part. `slow` are rows that were slow
    again and again, with the number of runs in which they were."""

    hosts: tuple[str, ...]
    runs: tuple[str, ...]
    shares: Floats
    slow: tuple[tuple[int, int], ...]


def collect_node_history(phases: Sequence[tuple[RecordReader, PhaseRecord]]) -> NodeRateHistory | None:
    """The rates of all nodes in these runs; None when no run had three nodes."""
    columns: list[tuple[str, dict[str, float]]] = []
    for reader, phase in phases:
        rates = _read_node_rates(reader, phase)
        if len(rates) >= 3:
            middle = float(np.median(list(rates.values())))
            columns.append((reader.run.id if reader.run else "", {host: rate / middle for host, rate in rates.items()}))
    if not columns:
        return None
    hosts = tuple(sorted({host for _, shares in columns for host in shares}))
    shares = np.array([[item.get(host, np.nan) for _, item in columns] for host in hosts])
    return NodeRateHistory(hosts, tuple(run for run, _ in columns), shares, _find_slow_nodes(shares))


def _read_node_rates(reader: RecordReader, phase: PhaseRecord) -> dict[str, float]:
    """Host (or number) of each node and its rate, where above 0."""
    hosts = {node.node: node.host for node in reader.nodes}
    result: dict[str, float] = {}
    for table in phase.nodes:
        if not {"node", "bytes_per_s"} <= set(table.columns):
            continue
        node, rate = (table.columns.index(name) for name in ("node", "bytes_per_s"))
        for row in table.rows:
            if row[rate] is not None and float(row[rate]) > 0:
                number = int(row[node] or 0)
                result[hosts.get(number) or f"node {number}"] = float(row[rate])
    return result


def _find_slow_nodes(node_shares: Floats) -> tuple[tuple[int, int], ...]:
    low = np.zeros(node_shares.shape, dtype=bool)
    for column in range(node_shares.shape[1]):
        known_values = node_shares[:, column][~np.isnan(node_shares[:, column])]
        low[:, column] = node_shares[:, column] < 1 / compute_straggler_threshold(known_values)
    counts = low.sum(axis=1)
    order = np.argsort(-counts, kind="stable")
    return tuple((int(row), int(counts[row])) for row in order if counts[row] >= MIN_SLOW_RUNS)


def describe_repeated_stragglers(node_rate_history: NodeRateHistory) -> str:
    """Names the nodes that are slow in several runs; empty if there are none."""
    sentences = []
    for row, count in node_rate_history.slow[:5]:
        shares = node_rate_history.shares[row][~np.isnan(node_rate_history.shares[row])]
        sentences.append(
            f"{node_rate_history.hosts[row]} ({100 * (1 - float(np.median(shares))):.0f} %, in {count} of "
            f"{shares.size} runs)"
        )
    more = f" and {len(node_rate_history.slow) - 5} more" if len(node_rate_history.slow) > 5 else ""
    return f"Slower than the middle node again and again: {', '.join(sentences)}{more}." if sentences else ""
