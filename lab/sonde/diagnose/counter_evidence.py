# SPDX-License-Identifier: Apache-2.0
"""Evidence from counters that were sampled with two runs: a slow one, and one from when the machine was fast.

Each observation has a name, which causes and faults list when they would show it. Observations that the counters of
the runs cannot tell say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Any

from sonde.diagnose.description import COUNTER_OBSERVATIONS
from sonde.diagnose.hypotheses import Hypothesis
from sonde.diagnose.limit_evidence import compare_recorded_limits_and_load
from sonde.model.json_access import get_finite_number, get_object
from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.telemetry.data import load_telemetry
from sonde.telemetry.phase_telemetry import PhaseTelemetry, summarize_phase_telemetry

# Assumptions: a cause shows its observation this often; there are other reasons for one this often.
_SHOWN_BY_CAUSE, _SHOWN_BY_CHANCE = 0.8, 0.1
_SHOWN_BY_POSSIBLE_CAUSE = 0.4
# The same of limits: their causes have other forms too, and a limit is rarely there for another reason.
_LIMIT_OBSERVATIONS = ("processor-limit", "memory-limit", "byte-limit", "request-limit")
_LIMIT_BY_CAUSE, _LIMIT_BY_CHANCE = 0.5, 0.02
# Limits of the observations: bytes of the device over those of the run; fractions of all processor time and of TCP
# segments; the share of reads that reached the device; free space over all space.
_OTHER_TRAFFIC, _MORE_PROCESSORS, _MAX_RETRANSMITTED_FRACTION, _FROM_DEVICE, _FROM_MEMORY, _LITTLE_SPACE = (
    1.5,
    0.25,
    1e-3,
    0.7,
    0.3,
    0.1,
)


@dataclass(frozen=True)
class CounterEvidence:
    """Observations by name, and whether the slow runs show them; omits observations without a counter.

    `runs` says of each observation how many runs show it, and how many could tell; one run each where it has no entry.
    """

    observed: Mapping[str, bool] = field(default_factory=dict)
    runs: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def merge_observations(self, other: CounterEvidence) -> CounterEvidence:
        """Returns the observations of both. A cause is there all the time, so half of the runs that can tell must show
        an observation; a single one of many would show it by chance."""
        runs: dict[str, tuple[int, int]] = {}
        for evidence in (self, other):
            for name, is_observed in evidence.observed.items():
                showing, telling = evidence.runs.get(name, (int(is_observed), 1))
                earlier = runs.get(name, (0, 0))
                runs[name] = earlier[0] + showing, earlier[1] + telling
        return CounterEvidence({name: 2 * showing >= telling for name, (showing, telling) in runs.items()}, runs)

    def to_json(self) -> dict[str, Any]:
        """Returns the form that files store."""
        return {"observed": dict(self.observed), "runs": {name: list(counts) for name, counts in self.runs.items()}}

    @classmethod
    def from_json(cls, evidence_document: Mapping[str, Any]) -> CounterEvidence:
        """Reads it again. Observations that are not known any more are left out."""
        return cls(
            {
                name: bool(value)
                for name, value in evidence_document.get("observed", {}).items()
                if name in COUNTER_OBSERVATIONS
            },
            {
                name: (int(showing), int(telling))
                for name, (showing, telling) in evidence_document.get("runs", {}).items()
                if name in COUNTER_OBSERVATIONS
            },
        )

    def compute_log_factor(self, hypothesis: Hypothesis) -> float:
        """Logarithm of the probability of all observations under a hypothesis."""
        total = 0.0
        for name, is_observed in self.observed.items():
            share = _compute_observed_share(name, hypothesis)
            total += log(share if is_observed else 1 - share)
        return total

    def describe(self, hypotheses: Sequence[Hypothesis]) -> list[str]:
        """Returns what the counters show, and which hypotheses they say nothing about, in sentences."""
        if not self.observed:
            return []
        messages = [COUNTER_OBSERVATIONS[name] for name, is_observed in self.observed.items() if is_observed]
        silent = [item.id for item in hypotheses if item.counters and not set(item.counters) & self.observed.keys()]
        sentences = [f"Counters of the slow run show: {'; '.join(messages) or 'nothing that a cause would change'}."]
        if silent:
            sentences.append(f"The runs have no counters that would show: {', '.join(silent)}.")
        return sentences


def _compute_observed_share(observation_name: str, hypothesis: Hypothesis) -> float:
    """Probability that runs show an observation under a hypothesis."""
    if observation_name in _LIMIT_OBSERVATIONS:
        return _LIMIT_BY_CAUSE if observation_name in hypothesis.counters else _LIMIT_BY_CHANCE
    if observation_name in hypothesis.counters:
        return _SHOWN_BY_CAUSE
    return _SHOWN_BY_POSSIBLE_CAUSE if observation_name in hypothesis.possible_counters else _SHOWN_BY_CHANCE


def compare_counters_of_runs(run_folder: Path, reference_folder: Path) -> CounterEvidence:
    """Compares the counters of two runs of the same or of other plans. Raises UserError for a run without a record."""
    slow, usual = read_recorded_run_folder(run_folder), read_recorded_run_folder(reference_folder)
    slow_phases, usual_phases = _summarize_phases(slow), _summarize_phases(usual)
    observed = {
        "other-traffic": _has_other_traffic(slow_phases),
        "busy-processors": _do_others_use_more_processors(slow_phases, usual_phases),
        "retransmissions": _loses_tcp_segments(slow_phases),
        "reads-from-device": _reads_from_device_instead_of_cache(slow_phases, usual_phases),
        "little-space": _has_little_space(slow),
    }
    observations = {name: value for name, value in observed.items() if value is not None}
    return CounterEvidence(observations | compare_recorded_limits_and_load(slow, usual))


@dataclass(frozen=True)
class _SampledPhase:
    id: str
    is_direct: bool
    is_read: bool
    counters: PhaseTelemetry


def _summarize_phases(run: RecordedRun) -> list[_SampledPhase]:
    data = load_telemetry(run.folder)
    summaries = [(phase, summarize_phase_telemetry(run, phase, data)) for phase in run.phases] if data else []
    return [
        _SampledPhase(phase.begin.phase, bool(phase.begin.direct), phase.begin.op == "read", counters)
        for phase, counters in summaries
        if counters is not None
    ]


def _has_other_traffic(phases: Sequence[_SampledPhase]) -> bool | None:
    """Only direct phases transfer at the device what the run asks for."""
    shares = [
        moved / phase.counters.transferred_bytes
        for phase in phases
        if phase.is_direct and phase.counters.transferred_bytes and (moved := phase.counters.device_bytes) is not None
    ]
    return max(shares) >= _OTHER_TRAFFIC if shares else None


def _do_others_use_more_processors(
    phases: Sequence[_SampledPhase], usual_phases: Sequence[_SampledPhase]
) -> bool | None:
    """The tasks of a run are left out: tests that use all processors anyway show others only so. Phases in which others
    used nearly all processors before cannot show that they use more now."""
    before = {phase.id: phase.counters.other_processor_fraction for phase in usual_phases}
    stolen = [phase.counters.stolen_fraction or 0.0 for phase in phases]
    increases = [
        after - earlier
        for phase in phases
        if (after := phase.counters.other_processor_fraction) is not None
        and (earlier := before.get(phase.id)) is not None
        and 1 - earlier >= _MORE_PROCESSORS
    ]
    return max([*increases, *stolen]) >= _MORE_PROCESSORS if increases else None


def _loses_tcp_segments(phases: Sequence[_SampledPhase]) -> bool | None:
    fractions = [phase.counters.retransmitted_fraction for phase in phases]
    known_fractions = [fraction for fraction in fractions if fraction is not None]
    return max(known_fractions) >= _MAX_RETRANSMITTED_FRACTION if known_fractions else None


def _reads_from_device_instead_of_cache(
    phases: Sequence[_SampledPhase], usual_phases: Sequence[_SampledPhase]
) -> bool | None:
    """Whether the same buffered read came from memory before and comes from the device now."""

    def compute_shares(sampled_phases: Sequence[_SampledPhase]) -> dict[str, float]:
        return {
            phase.id: phase.counters.device.read_bytes / phase.counters.transferred_bytes
            for phase in sampled_phases
            if phase.is_read and not phase.is_direct and phase.counters.device and phase.counters.transferred_bytes
        }

    before, after = compute_shares(usual_phases), compute_shares(phases)
    cached = [name for name, share in before.items() if share <= _FROM_MEMORY and name in after]
    return any(after[name] >= _FROM_DEVICE for name in cached) if cached else None


def _has_little_space(run: RecordedRun) -> bool | None:
    for node in run.raw_nodes:
        facts = get_object(node, "file_system")
        available, total = get_finite_number(facts, "available_bytes"), get_finite_number(facts, "total_bytes")
        if available is not None and total:
            return available / total < _LITTLE_SPACE
    return None
