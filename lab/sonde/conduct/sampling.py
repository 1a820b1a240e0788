# SPDX-License-Identifier: Apache-2.0
"""Samples the node's counters while the engine works: at intervals, and when a phase begins or ends."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sonde.launch.session import LineObserver
from sonde.model.lines import PhaseBeginLine, PhaseEndLine, RecordLine
from sonde.telemetry.file_format import SAMPLED_FILE
from sonde.telemetry.sampler import TelemetrySampler


def start_telemetry_sampling(run_folder: Path, is_simulated: bool) -> AbstractContextManager[TelemetrySampler | None]:
    """A sampler that writes to the folder of a run; none for a simulated run, whose storage is not this machine's."""
    return nullcontext() if is_simulated else TelemetrySampler(run_folder / SAMPLED_FILE)


def describe_lost_sources(sampler: TelemetrySampler | None) -> list[dict[str, Any]]:
    """One finding for each source of counters that disappeared during the run."""
    return [
        {
            "id": "telemetry_lost",
            "severity": "info",
            "text": f"The counters of {name} on {platform.node()} disappeared during the run: {reason}",
            "advice": "Phases after that have none of them.",
            "evidence": {"source": name},
        }
        for name, reason in (sampler.lost_sources if sampler else {}).items()
    ]


def sample_at_phase_borders(sampler: TelemetrySampler | None, observer: LineObserver) -> LineObserver:
    """The observer, preceded by a sample at the borders of phases, so that short phases have samples too."""
    if sampler is None:
        return observer

    def sample_and_observe(line_kind: str, line: RecordLine) -> None:
        if isinstance(line, PhaseBeginLine | PhaseEndLine):
            sampler.take_sample()
        observer(line_kind, line)

    return sample_and_observe
