# SPDX-License-Identifier: Apache-2.0
"""The state of a watch as metrics for the textfile collector of the Prometheus node exporter."""

from __future__ import annotations

from collections.abc import Mapping

from sonde.watch.history_gate import find_limit
from sonde.watch.watch_state import WatchState

_HISTORY_LABELS = ("system", "directory", "probe", "phase", "operation")


def render_metrics(state: WatchState, probes: tuple[str, ...]) -> str:
    """Metrics in the Prometheus text format. Rates are in the base unit that `unit` names."""
    lines: list[str] = []

    def add_family(name: str, meaning: str, samples: list[tuple[Mapping[str, str], float]]) -> None:
        if samples:
            lines.extend((f"# HELP {name} {meaning}", f"# TYPE {name} gauge"))
            lines.extend(f"{name}{_format_labels(labels)} {value!r}" for labels, value in samples)

    histories = [
        (
            {**{label: history.labels.get(label, "") for label in _HISTORY_LABELS}, "unit": history.unit, "id": name},
            history,
        )
        for name, history in sorted(state.histories.items())
    ]
    limits = [(labels, limit) for labels, history in histories if (limit := find_limit(history)) is not None]
    add_family(
        "sonde_watch_rate",
        "Latest rate of a probe.",
        [(labels, history.values[-1]) for labels, history in histories if history.values],
    )
    add_family(
        "sonde_watch_usual_rate", "Median of the accepted rates.", [(labels, limit[0]) for labels, limit in limits]
    )
    add_family(
        "sonde_watch_limit_rate", "Rate below which the gate fails.", [(labels, limit[1]) for labels, limit in limits]
    )
    add_family(
        "sonde_watch_slower",
        "1 while the history belongs to an open incident.",
        [(labels, float(bool(history.incident))) for labels, history in histories],
    )
    add_family(
        "sonde_watch_last_run_timestamp_seconds",
        "Start of the latest run of a probe.",
        [({"probe": probe}, state.durations[probe][-1][0]) for probe in probes if state.durations.get(probe)],
    )
    add_family(
        "sonde_watch_skipped",
        "1 if the probe was skipped when it was due last.",
        [({"probe": probe}, float(probe in state.skips)) for probe in probes],
    )
    add_family(
        "sonde_watch_open_incidents", "Incidents that are not fixed.", [({}, float(len(state.open_incidents())))]
    )
    add_family("sonde_watch_waiting_notices", "Notices that a channel lacks.", [({}, float(len(state.notices)))])
    return "\n".join(lines) + "\n"


def _format_labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (
        '{}="{}"'.format(name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in labels.items()
    )
    return "{" + ",".join(pairs) + "}"
