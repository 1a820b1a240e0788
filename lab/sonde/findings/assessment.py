# SPDX-License-Identifier: Apache-2.0
"""The assessment of one number: classification, validity, caveats, and sentences on variation, stragglers and targets.

Every surface (terminal, page, JSON, tables) prints the texts of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sonde.findings.caveats import (
    GOOD_VALIDITY,
    convert_caveat_to_json,
    determine_phase_validity,
    find_caveats,
    format_caveat,
)
from sonde.findings.classification import Classification, classify_in_model, classify_number, is_one_file_per_operation
from sonde.findings.phase_timeline import PhaseTimeline, build_timeline
from sonde.findings.slow_intervals import describe_slow_intervals
from sonde.findings.storage_units import describe_slow_units
from sonde.findings.stragglers import collect_task_rates, find_slowest_straggler, map_nodes_to_hosts
from sonde.findings.target_operations import describe_slow_operations
from sonde.findings.targets import describe_slow_targets, describe_unknown_layout
from sonde.findings.variation import MAX_STALLED_RATE_SHARE, RateVariation
from sonde.model import quantities
from sonde.model.errors import format_as_sentence
from sonde.model.limits import MIN_PHASE_S
from sonde.model.line_members import PhaseRates
from sonde.model.lines import Finding
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun

# Phases with smaller operations (bytes) are reported in operations per second.
SMALL_OPERATION_BYTES = 64 * 1024


@dataclass(frozen=True)
class Assessment:
    """Assessment of one number.

    `classification_clause` explains the classification; `modeled` is the classification of a simulated number within
    its model; None for measured numbers. The members below `caveats` are sentences or empty: `variation` says how the
    rate changed, `stragglers` which tasks were slow, `cache_rate` how fast the page cache accepted data that fsync
    wrote later, `slow_nodes` which nodes were slower than the median node and when, `slow_targets` which storage
    targets were slow (or why that is unknown), `slow_units` which servers or units were. Quantities contain no-break
    spaces; `quantities.plain` replaces them.
    """

    classification: Classification
    classification_clause: str
    validity: str = GOOD_VALIDITY  # good, doubtful, invalid
    caveats: tuple[Finding, ...] = ()
    variation: str = ""
    stragglers: str = ""
    cache_rate: str = ""
    slow_nodes: str = ""
    slow_targets: str = ""
    slow_units: str = ""
    modeled: Classification | None = None

    @property
    def classification_text(self) -> str:
        """The explanation of the classification as a sentence."""
        return format_as_sentence(self.classification_clause)

    @property
    def caveat_sentence(self) -> str:
        """Why the number is doubtful; empty without caveats."""
        texts = list(dict.fromkeys(format_caveat(caveat) for caveat in self.caveats))
        return f"Doubtful: {'; '.join(texts)}." if texts else ""

    @property
    def detail_sentences(self) -> tuple[str, ...]:
        """All sentences beyond the classification, caveats first."""
        texts = (
            self.caveat_sentence,
            self.variation,
            self.cache_rate,
            self.stragglers,
            self.slow_nodes,
            self.slow_targets,
            self.slow_units,
        )
        return tuple(text for text in texts if text)

    def to_json(self) -> dict[str, Any]:
        """The JSON form, without empty members."""
        names = ("variation", "stragglers", "slow_nodes", "slow_targets", "slow_units", "cache_rate")
        return {
            "classification": self.classification.value,
            "validity": self.validity,
            **({"modeled_classification": self.modeled.value} if self.modeled else {}),
            "classification_text": quantities.replace_no_break_spaces(self.classification_text),
            **({"caveats": [convert_caveat_to_json(caveat) for caveat in self.caveats]} if self.caveats else {}),
            **{name: quantities.replace_no_break_spaces(getattr(self, name)) for name in names if getattr(self, name)},
        }


def assess_phase_rate(run: RecordedRun, phase: PhaseRecord, rate_interval: str = "total") -> Assessment:
    """Assesses the rate of a phase over `rate_interval` (a member of PhaseRates)."""
    return assess_rate_with_timeline(run, phase, build_timeline(phase), rate_interval)


def assess_rate_with_timeline(
    run: RecordedRun, phase: PhaseRecord, timeline: PhaseTimeline | None, rate_interval: str = "total"
) -> Assessment:
    """Does the same with a timeline that the caller has built already."""
    classification, clause = classify_number(run, phase, rate_interval)
    modeled = classify_in_model(run, phase, rate_interval)[0] if classification is Classification.SIMULATED else None
    operations = is_reported_in_operations(phase)
    clauses = (
        _describe_phase_variation(phase, timeline, operations, rate_interval),
        _describe_stragglers(run, phase, operations),
        _describe_cache_rate(phase),
    )
    variation, stragglers, cache_rate = (
        _replace_operations_by_files(run, phase, format_as_sentence(text)) for text in clauses
    )
    return Assessment(
        classification,
        clause,
        determine_phase_validity(run, phase),
        find_caveats(run, phase, modeled or classification),
        variation,
        stragglers,
        cache_rate if rate_interval == "total" else "",
        describe_slow_intervals(run, phase, operations),
        _describe_slow_targets(run, phase, operations) or describe_unknown_layout(phase),
        describe_slow_units(run, phase),
        modeled,
    )


def _describe_slow_targets(run: RecordedRun, phase: PhaseRecord, counts_operations: bool) -> str:
    """The slow targets as sentences. Where a node was slow too, a sentence says that it may explain them: how long an
    operation took is known by target or by node, not by both."""
    text = describe_slow_operations(phase) or describe_slow_targets(phase, counts_operations)
    node = next((item.evidence.get("node") for item in phase.findings if item.id == "slow_node"), None)
    if not text or node is None:
        return text
    name = map_nodes_to_hosts(run).get(node, f"node {node}")
    return f"{text} All tasks on {name} were slow: if they alone used these targets, that node explains their times."


def is_reported_in_operations(phase: PhaseRecord) -> bool:
    """Whether the phase is reported in operations per second: its operations are small or transfer no bytes."""
    end = phase.end
    return end is not None and end.ops.done > 0 and end.bytes.transferred / end.ops.done < SMALL_OPERATION_BYTES


def format_phase_rate(rate: float, is_operation_rate: bool) -> str:
    """A rate in operations per second or bytes per second."""
    return str(quantities.display_operation_rate(rate) if is_operation_rate else quantities.display_byte_rate(rate))


def _replace_operations_by_files(run: RecordedRun, phase: PhaseRecord, rate_text: str) -> str:
    return rate_text.replace("op/s", "files/s") if is_one_file_per_operation(run, phase) else rate_text


def _describe_phase_variation(
    phase: PhaseRecord, timeline: PhaseTimeline | None, counts_operations: bool, rate_interval: str
) -> str:
    rates = phase.end.rates if phase.end else PhaseRates()
    rate = getattr(rates, rate_interval) or rates.total
    if timeline is None or rate is None or timeline.edges[-1] < MIN_PHASE_S:
        return ""
    if phase.end and phase.end.training and any(finding.id == "rate_limited" for finding in phase.findings):
        return ""  # first the queues of samples fill, then accelerators take what they need
    variation = timeline.get_variation(counts_operations)
    if not variation.has_levels_matching_rate(rate.ops_per_s if counts_operations else rate.bytes_per_s):
        return ""
    fsync_s = (phase.end.seconds.fsync or 0.0) if phase.end else 0.0
    return describe_variation(variation, counts_operations, timeline.edges[-1], fsync_s)


def describe_variation(variation: RateVariation, counts_operations: bool, seconds: float, fsync_s: float = 0.0) -> str:
    """How the rate varied during `seconds`, as one clause; empty when the phase was too short for a statement.

    `fsync_s`: from the first fsync to the end of the last. Nothing is transferred then, which is no fall of the rate.
    """

    def format_rate(rate: float) -> str:
        return format_phase_rate(rate, counts_operations)

    if variation.kind == "steps":
        times = [str(quantities.display_seconds(start)) for start, _ in variation.parts]
        rates = [rate for _, rate in variation.parts]
        verb = _choose_direction_verb(rates[0], rates[1])
        first = f"{verb} from {format_rate(rates[0])} to {format_rate(rates[1])} after {times[1]}"
        if fsync_s > 0 and rates[-1] <= MAX_STALLED_RATE_SHARE * rates[-2]:
            fsync = f"after {times[-1]} only the fsync was left, for {quantities.display_seconds(fsync_s)}"
            if len(rates) == 2:
                return f"transferred at {format_rate(rates[0])}; {fsync}"
            return f"{first}; {fsync}"
        if len(rates) == 2:
            return first
        return f"{first}, then {_choose_direction_verb(rates[1], rates[2])} to {format_rate(rates[2])} after {times[2]}"
    if variation.kind == "drift":
        verb = _choose_direction_verb(variation.before, variation.after)
        return f"{verb} gradually from {format_rate(variation.before)} to {format_rate(variation.after)}"
    if variation.kind == "stalls":
        duration, stalled = quantities.display_seconds(seconds), quantities.display_seconds(variation.stalled_s)
        return f"stood still for {stalled} of {duration}; otherwise {format_rate(variation.rate_without_stalls)}"
    if variation.kind == "steady":
        percent = max(1, round(variation.relative_spread * 100))
        return f"steady, ±{percent}{quantities.NO_BREAK_SPACE}% around {format_rate(variation.mean)}"
    if variation.kind == "uneven":
        return (
            f"uneven, between {format_rate(variation.low)} and {format_rate(variation.high)} for nine tenths of the "
            "time"
        )
    return ""


def _choose_direction_verb(rate_before: float, rate_after: float) -> str:
    return "rose" if rate_after > rate_before else "fell"


def _describe_stragglers(run: RecordedRun, phase: PhaseRecord, counts_operations: bool) -> str:
    stragglers = find_slowest_straggler(collect_task_rates(run, phase, counts_operations))
    if stragglers is None:
        return ""
    slowest, median, count = stragglers
    host = f" on {slowest.host}" if slowest.host else ""
    others = f"{quantities.display_count_with_noun(count - 1, 'other task')} {'was' if count == 2 else 'were'} slow too"
    suffix = f"; {others}" if count > 1 else ""
    return (
        f"{slowest.name}{host} reached {format_phase_rate(slowest.value, counts_operations)},"
        f" the median task {format_phase_rate(median, counts_operations)}{suffix}"
    )


def _describe_cache_rate(phase: PhaseRecord) -> str:
    """How fast the page cache accepted data that fsync wrote afterwards, where both were timed separately."""
    end = phase.end
    if end is None or phase.begin.direct or not end.rates.total or not end.rates.transfer or not end.bytes.written:
        return ""
    total, transfer = end.rates.total, end.rates.transfer
    if not end.seconds.fsync or 1.25 * transfer.seconds > total.seconds:
        return ""
    return (
        f"the page cache took it at {quantities.display_byte_rate(transfer.bytes_per_s)}, which is not a storage number"
    )
