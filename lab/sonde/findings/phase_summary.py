# SPDX-License-Identifier: Apache-2.0
"""One phase in words: what was done, how fast, and what the number is worth."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.findings.assessment import Assessment, assess_rate_with_timeline, is_reported_in_operations
from sonde.findings.classification import Classification, describe_flush, is_one_file_per_operation
from sonde.findings.phase_timeline import PhaseTimeline, build_timeline
from sonde.model import quantities
from sonde.model.backends import BACKENDS_WITHOUT_STORAGE
from sonde.model.errors import UnitError
from sonde.model.escaping import escape_line
from sonde.model.json_access import convert_to_finite_number
from sonde.model.line_members import Rate
from sonde.model.operations import DIRECTORY_CHANGING_OPS, METADATA_OPS
from sonde.model.quantities import DisplayQuantity
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.model.units import parse_bytes

# Names that differ from the name of the operation.
_OPERATION_NAMES = {
    "read_only": "read",
    "mixed": "mixed read and write",
    "duplex": "simultaneous read and write",
    "train": "training input",
}
_FILE_OPERATION_NAMES = {
    "write": "Create files",
    "rewrite": "Rewrite files",
    "read": "Open and read files",
    "reread": "Reread files",
    "stat": "Stat files",
    "remove": "Remove files",
    "mktree": "Make directories",
    "create": "Create files",
    "open_close": "Open and close files",
    "readdir": "List directories",
    "walk": "Walk trees",
    "rename": "Rename files",
    "cycle": "Stat, read, remove and create files",
    "rmtree": "Remove directories",
}
_ORDER_NAMES = {
    "sequential": "Sequential",
    "reverse": "Backward",
    "stride": "Strided",
    "random_permute": "Random",
    "random_replace": "Random",
}


@dataclass(frozen=True)
class PhaseSummary:
    """One phase in words. `rate` is None when nothing was measured; `rate_terms` has its numerator and interval,
    `secondary_rate` the rate in the other unit."""

    name: str
    access: str
    assessment: Assessment
    rate: DisplayQuantity | None
    secondary_rate: str
    rate_terms: str

    @property
    def classification(self) -> Classification:
        """Classification of the number."""
        return self.assessment.classification

    @property
    def classification_text(self) -> str:
        """The explanation of the classification as a sentence."""
        return self.assessment.classification_text

    @property
    def detail_text(self) -> str:
        """All sentences beyond the classification."""
        return " ".join(self.assessment.detail_sentences)


@dataclass(frozen=True)
class AssessedPhase:
    """A phase with its summary, its timeline, and whether its rate is in operations per second."""

    phase: PhaseRecord
    summary: PhaseSummary
    timeline: PhaseTimeline | None
    operations: bool


def assess_phase(run: RecordedRun, phase: PhaseRecord) -> AssessedPhase:
    """Summarizes and assesses one phase."""
    operations = is_reported_in_operations(phase)
    rate, secondary_rate, rate_terms = _format_rates(run, phase, operations)
    timeline = build_timeline(phase)
    summary = PhaseSummary(
        name=make_phase_heading(run, phase),
        access=describe_access(run, phase),
        assessment=assess_rate_with_timeline(run, phase, timeline),
        rate=rate,
        secondary_rate=secondary_rate,
        rate_terms=rate_terms,
    )
    return AssessedPhase(phase, summary, timeline, operations)


def make_phase_heading(run: RecordedRun, phase: PhaseRecord) -> str:
    """ "Random read, direct, 32 in flight": the phase as a heading."""
    parts = [_describe_operation(run, phase)]
    if phase.begin.direct:
        parts.append("direct")
    depth = _determine_queue_depth(run, phase)
    if depth > 1:
        parts.append(f"{quantities.display_count(depth)} in flight")
    return ", ".join(parts)


def _determine_queue_depth(run: RecordedRun, phase: PhaseRecord) -> float:
    """Operations that each task has in flight."""
    return convert_to_finite_number(run.find_setting(phase.id, "io", "queue_depth")) or 1


def _describe_operation(run: RecordedRun, phase: PhaseRecord) -> str:
    op = phase.begin.op
    name = _OPERATION_NAMES.get(op, escape_line(op, 40) or "unknown operation")
    if is_one_file_per_operation(run, phase) and op in _FILE_OPERATION_NAMES:
        directories = phase.begin.tree is not None and phase.begin.tree.objects == "directories"
        return _FILE_OPERATION_NAMES[op].replace("files", "directories") if directories else _FILE_OPERATION_NAMES[op]
    order = _ORDER_NAMES.get(str(run.find_setting(phase.id, "access", "order") or "sequential"), "")
    return name[:1].upper() + name[1:] if op in ("duplex", "train") or not order else f"{order} {name}"


def get_transfer_size(run: RecordedRun, phase: PhaseRecord) -> float | None:
    """Bytes of one operation by the plan; None where it gives none."""
    transfer = run.find_setting(phase.id, "access", "transfer")
    try:
        return float(parse_bytes(transfer)) if isinstance(transfer, int | str) else None
    except UnitError:
        return None


def describe_access(run: RecordedRun, phase: PhaseRecord) -> str:
    """ "1 MiB transfers · direct · queue depth 32": how each task accesses its data, in one line."""
    if phase.begin.op in METADATA_OPS:
        return "operations on names"
    parts = []
    transfer = get_transfer_size(run, phase)
    if transfer:
        parts.append(f"{quantities.display_configured_size(transfer)} transfers")
    backend = phase.begin.backend
    if backend not in ("", "posix"):
        parts.append(escape_line(backend, 40))
    if backend not in BACKENDS_WITHOUT_STORAGE:
        parts.append("direct" if phase.begin.direct else "buffered")
    depth = _determine_queue_depth(run, phase)
    if depth > 1:
        parts.append(f"queue depth {quantities.display_count(depth)}")
    return quantities.FACT_SEPARATOR.join([*parts, describe_flush(run, phase)] if describe_flush(run, phase) else parts)


def _format_rates(
    run: RecordedRun, phase: PhaseRecord, counts_operations: bool
) -> tuple[DisplayQuantity | None, str, str]:
    """The rate, the rate in the other unit with its duration, and numerator and interval of the rate."""
    total = phase.end.rates.total if phase.end else None
    if total is None:
        return None, "", ""
    terms = f"{format_rate_terms(total, counts_operations)}, first open to last close"
    if counts_operations:
        rate = quantities.display_operation_rate(total.ops_per_s)
        if is_one_file_per_operation(run, phase):
            unit = "dirs/s" if phase.begin.op in DIRECTORY_CHANGING_OPS else "files/s"
            rate = DisplayQuantity(rate.digits, rate.unit.replace("op/s", unit))
        amount = quantities.display_byte_rate(total.bytes_per_s) if total.bytes else quantities.display_count(total.ops)
        return rate, f"{amount} {'for' if total.bytes else 'in'} {quantities.display_seconds(total.seconds)}", terms
    other = f"{quantities.display_binary_byte_rate(total.bytes_per_s)} for {quantities.display_seconds(total.seconds)}"
    return quantities.display_byte_rate(total.bytes_per_s), other, terms


def format_rate_terms(rate: Rate, counts_operations: bool) -> str:
    """ "1,073,741,824 B / 1.302 s": numerator and interval of a rate, unrounded."""
    amount = (
        f"{quantities.display_count(rate.ops)} operations"
        if counts_operations
        else f"{quantities.display_count(rate.bytes)} B"
    )
    return f"{amount.replace(' ', quantities.NO_BREAK_SPACE)} / {quantities.display_exact_seconds(rate.seconds)}"
