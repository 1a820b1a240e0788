# SPDX-License-Identifier: Apache-2.0
"""The state of a watch as metrics for the textfile collector of the Prometheus node exporter."""

from __future__ import annotations

from sonde.model.metric_text import OpenMetricsText
from sonde.watch.history_gate import compute_lower_limit
from sonde.watch.watch_state import WatchState

_HISTORY_LABELS = ("system", "directory", "probe", "phase", "operation")


def render_metrics(watch_state: WatchState, probe_names: tuple[str, ...]) -> str:
    """Metrics in the Prometheus text format. Rates are in the base unit that `unit` names."""
    text = OpenMetricsText()
    histories = [
        (
            {**{label: history.labels.get(label, "") for label in _HISTORY_LABELS}, "unit": history.unit, "id": name},
            history,
        )
        for name, history in sorted(watch_state.histories.items())
    ]
    limits = [(labels, limit) for labels, history in histories if (limit := compute_lower_limit(history)) is not None]
    text.add_family(
        "sonde_watch_rate",
        "Latest rate of a probe.",
        [(labels, history.values[-1]) for labels, history in histories if history.values],
    )
    text.add_family(
        "sonde_watch_usual_rate", "Median of the accepted rates.", [(labels, limit[0]) for labels, limit in limits]
    )
    text.add_family(
        "sonde_watch_limit_rate", "Rate below which the gate fails.", [(labels, limit[1]) for labels, limit in limits]
    )
    text.add_family(
        "sonde_watch_slower",
        "1 while the history belongs to an open incident.",
        [(labels, float(bool(history.incident))) for labels, history in histories],
    )
    text.add_family(
        "sonde_watch_last_run_timestamp_seconds",
        "Start of the latest run of a probe.",
        [
            ({"probe": probe}, watch_state.durations[probe][-1][0])
            for probe in probe_names
            if watch_state.durations.get(probe)
        ],
    )
    text.add_family(
        "sonde_watch_skipped",
        "1 if the probe was skipped when it was due last.",
        [({"probe": probe}, float(probe in watch_state.skips)) for probe in probe_names],
    )
    text.add_family(
        "sonde_watch_open_incidents",
        "Incidents that are not fixed.",
        [({}, float(len(watch_state.list_open_incidents())))],
    )
    text.add_family(
        "sonde_watch_waiting_notices", "Notices that a channel lacks.", [({}, float(len(watch_state.notices)))]
    )
    return text.render()
