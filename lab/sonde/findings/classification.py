# SPDX-License-Identifier: Apache-2.0
"""The classification of a number: does it describe storage, a cache, memory or a backend without storage?

The most common mistake in storage measurement is to take the speed of memory for the speed of storage. The
classification follows from what was measured (residency, counters of devices, latency, flags, findings, durations),
never from the rate.
"""

from __future__ import annotations

from enum import Enum

from sonde.findings.read_source import describe_device_reads, find_read_source, find_subpage_source
from sonde.model import quantities
from sonde.model.backends import BACKENDS_WITHOUT_STORAGE
from sonde.model.escaping import escape_line
from sonde.model.history_key import classify_cache
from sonde.model.limits import MAX_RESIDENCY_OF_COLD_FILE, MIN_PHASE_S, MIN_SMALL_FILE_PHASE_S, MIN_SUSTAINED_S
from sonde.model.line_members import ByteCounts, FileSystemFacts, LatencySummary, PhaseRates
from sonde.model.lines import ErrorLine
from sonde.model.operations import METADATA_OPS, NAMESPACE_CHANGING_OPS, WRITE_ONLY_OPS, WRITE_OPS
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.model.simulation import find_simulated_system

_FSYNC_AT_END = "fsync at the end"
OBJECT_STORE = "s3"  # type of the tested file system when the target is a bucket
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})


class Classification(Enum):
    """Classification of a number: what it describes. The value is its name in JSON and in tables."""

    STORAGE = "storage"
    BURST = "burst"
    SHORT = "short"
    CACHE = "cache"
    MEMORY = "memory"
    SYNTHETIC = "synthetic"
    SIMULATED = "simulated"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    FAILED = "failed"

    @property
    def group_heading(self) -> str:
        """The heading of the group of such numbers."""
        return _GROUP_HEADINGS[self]

    @property
    def table_label(self) -> str:
        """Label of one or two words for a cell of a table."""
        return _TABLE_LABELS.get(self, self.value)

    @property
    def is_judged(self) -> bool:
        """Whether a claim, a limit or a baseline may be judged on such a number: the storage may have delivered it."""
        return self in (Classification.STORAGE, Classification.BURST, Classification.UNKNOWN)


_TABLE_LABELS = {Classification.CACHE: "cached", Classification.SHORT: "too short", Classification.MEMORY: "in memory"}
_GROUP_HEADINGS = {
    Classification.STORAGE: "Storage",
    Classification.BURST: "Storage, for seconds only: bursts that may have ended in caches of devices or servers",
    Classification.SHORT: "Too short to trust",
    Classification.CACHE: "Page cache: not storage numbers",
    Classification.MEMORY: "Memory: no storage is involved",
    Classification.SYNTHETIC: "Synthetic backend: no storage is involved",
    Classification.SIMULATED: "Simulated: nothing was measured",
    Classification.UNKNOWN: "Not decided: storage or cache",
    Classification.INVALID: "Not valid",
    Classification.FAILED: "Failed or not finished",
}


def label_classification(stored_value: str) -> str:
    """The label of a classification stored under its `stored_value`; empty where nothing is known."""
    return next((member.table_label for member in Classification if member.value == stored_value), stored_value)


def is_judged_classification(stored_value: str) -> bool:
    """`Classification.is_judged` by its stored `stored_value`; numbers of other tools, without one, are judged."""
    return not stored_value or any(member.is_judged for member in Classification if member.value == stored_value)


# Kept by a simulated number: what failed or is wrong is so in the model too.
_KEPT_CLASSIFICATIONS_OF_SIMULATIONS = (Classification.FAILED, Classification.INVALID)


def classify_number(run: RecordedRun, phase: PhaseRecord, rate_interval: str = "total") -> tuple[Classification, str]:
    """The classification of a number and the clause that explains it. Numbers of simulated machines are `SIMULATED`;
    their clause ends with that of `classify_in_model`."""
    classification, clause = classify_in_model(run, phase, rate_interval)
    system = find_simulated_system(run.run_line, run.nodes)
    if system is None or classification in _KEPT_CLASSIFICATIONS_OF_SIMULATIONS:
        return classification, clause
    machine = f" on {escape_line(system, 80)}" if system else ""
    return Classification.SIMULATED, f"simulated{machine}, not measured; in the model: {clause}"


def classify_in_model(run: RecordedRun, phase: PhaseRecord, rate_interval: str = "total") -> tuple[Classification, str]:
    """Classifies a number as if a simulated machine were real; for measured runs equal to `classify_number`.

    `rate_interval` names the rate (a member of PhaseRates). A buffered write goes to the page cache without the fsync
    after it ("transfer"), and to storage with it ("total").
    """
    end = phase.end
    if end is None or is_unfinished(phase):
        return Classification.FAILED, describe_interruption(run, phase)
    invalid = next((finding for finding in phase.findings if finding.severity == "invalid"), None)
    if invalid is not None:
        return Classification.INVALID, escape_line(invalid.text, 300).rstrip(".")
    if end.ops.failed:
        return Classification.FAILED, f"{quantities.display_count_with_noun(end.ops.failed, 'operation')} failed"
    if phase.begin.backend in BACKENDS_WITHOUT_STORAGE:
        return Classification.SYNTHETIC, f"the backend “{phase.begin.backend}” moves no data: not a storage number"
    if is_memory_backed(run):
        kind = escape_line(get_tested_file_system(run).type, 40)
        return Classification.MEMORY, f"files on {kind} live in memory: not a storage number"
    if get_tested_file_system(run).type == OBJECT_STORE:
        clause = "by the object store, whose own caches are not known; this node caches no objects"
        return _classify_storage_number_by_duration(
            phase, is_one_file_per_operation(run, phase), Classification.STORAGE, clause, rate_interval
        )
    if phase.begin.op in METADATA_OPS:
        return _classify_name_operation(run, phase)
    if not end.bytes.transferred and not end.ops.done:
        return Classification.UNKNOWN, "nothing was moved"
    writes = phase.begin.op in WRITE_ONLY_OPS
    classification, clause = _classify_write(run, phase, rate_interval) if writes else _classify_read(run, phase)
    return _classify_storage_number_by_duration(
        phase, is_one_file_per_operation(run, phase), classification, clause, rate_interval
    )


def is_one_file_per_operation(run: RecordedRun, phase: PhaseRecord) -> bool:
    """Whether each operation is one file, so that a number of operations is a number of files."""
    if phase.begin.op in METADATA_OPS or phase.begin.tree is not None:
        return True
    end, files = phase.end, phase.begin.files
    has_many_files = run.find_setting(phase.id, "files", "mapping") == "many"
    return has_many_files and (end is None or files is None or end.ops.done <= files)


def _classify_name_operation(run: RecordedRun, phase: PhaseRecord) -> tuple[Classification, str]:
    """Names of a local file system are in the memory of the node. Those of a network file system come from its servers,
    unless the node's attribute cache may still have held them."""
    if get_tested_file_system(run).network:
        if phase.begin.op in NAMESPACE_CHANGING_OPS:
            return _classify_storage_number_by_duration(
                phase, True, Classification.STORAGE, "at the servers, which changed the names"
            )
        if any(treatment.metadata_cache_dropped for treatment in phase.treatments):
            return _classify_storage_number_by_duration(
                phase, True, Classification.STORAGE, "from the servers: this node had dropped its metadata cache"
            )
        if len(run.nodes) > 1 and run.find_planned_phase(phase.id).get("shift"):
            return _classify_storage_number_by_duration(
                phase, True, Classification.STORAGE, "from the servers: another node had made the names"
            )
        return Classification.UNKNOWN, "how many of the names this node still knew is not known"
    reason = "not made durable" if phase.begin.op in NAMESPACE_CHANGING_OPS else "names in the memory of this node"
    return Classification.CACHE, f"{reason}: not a storage number"


def _classify_storage_number_by_duration(
    phase: PhaseRecord,
    counts_files: bool,
    classification: Classification,
    reason_clause: str,
    interval_name: str = "total",
) -> tuple[Classification, str]:
    """Divides storage numbers by duration: sustained, a burst, or too short. `counts_files`: each operation is
    one file."""
    rates = phase.end.rates if phase.end else PhaseRates()
    rate = getattr(rates, interval_name) or rates.total or rates.transfer
    if classification is not Classification.STORAGE or rate is None:
        return classification, reason_clause
    duration = quantities.display_seconds(rate.seconds)
    if rate.seconds >= MIN_SUSTAINED_S:
        return classification, f"{reason_clause}; sustained for {duration}"
    if rate.seconds < (MIN_SMALL_FILE_PHASE_S if counts_files else MIN_PHASE_S):
        return Classification.SHORT, f"{reason_clause}; over in {duration}: too short to trust"
    return Classification.BURST, f"{reason_clause}; a burst of {duration}"


def _was_data_cached(phase: PhaseRecord) -> bool:
    """Whether the data was at least partly in the page cache, by the rule that also separates histories."""
    return classify_cache(phase.begin.cache, [finding.id for finding in phase.findings]) == "cached"


def _classify_read(run: RecordedRun, phase: PhaseRecord) -> tuple[Classification, str]:
    cache, residency = phase.begin.cache, phase.residency
    if phase.begin.direct or cache == "direct":
        return Classification.STORAGE, "from storage: direct I/O"
    source = find_read_source(run, phase)
    if source is not None and source.is_cached:
        return Classification.CACHE, source.clause
    if residency is not None and residency > MAX_RESIDENCY_OF_COLD_FILE:
        if residency >= 0.95:
            return Classification.CACHE, "served from page cache: not a storage number"
        share = quantities.display_percent(residency)
        return (
            Classification.CACHE,
            f"partly served from page cache ({share} of the data was there): not a storage number",
        )
    if _was_data_read_repeatedly(run, phase):
        return Classification.CACHE, "read more than once, so partly from page cache: not a storage number"
    if _was_data_cached(phase):
        return Classification.CACHE, "may have been served from page cache: not a storage number"
    if cache == "cold" or residency is not None:
        share = quantities.display_percent(residency or 0.0)
        device = describe_device_reads(run, phase)
        return Classification.STORAGE, f"from storage: {share} of the data was in the page cache before{device}"
    if source is not None:
        return Classification.STORAGE, source.clause
    return Classification.UNKNOWN, "how much of it came from the page cache is not known"


def _was_data_read_repeatedly(run: RecordedRun, phase: PhaseRecord) -> bool:
    """Whether the data was read more than once and may have stayed in memory in between."""
    if any(item.id == "cache_suspect" and "first_pass_bytes" in item.evidence for item in phase.findings):
        return True
    volume = phase.end.bytes if phase.end else ByteCounts()
    planned = volume.planned or 0
    memory = sum(node.memory_bytes or 0 for node in run.nodes)
    return bool(planned) and volume.read > 1.05 * planned and planned < (memory or 2**63)


def _classify_write(run: RecordedRun, phase: PhaseRecord, rate_interval: str) -> tuple[Classification, str]:
    flush = describe_flush(run, phase)
    if rate_interval == "transfer" and not phase.begin.direct and flush in ("", _FSYNC_AT_END):
        return Classification.CACHE, "into page cache: not a storage number"
    subpage = None if flush not in ("", _FSYNC_AT_END) else find_subpage_source(run, phase)
    if subpage is not None:
        return Classification.CACHE, subpage.clause
    if flush and not _was_data_cached(phase):
        return Classification.STORAGE, f"to storage: {flush}"
    if phase.begin.direct:
        return Classification.STORAGE, "to storage: direct I/O, not flushed"
    return Classification.CACHE, "into page cache, not made durable: not a storage number"


def is_unfinished(phase: PhaseRecord) -> bool:
    """Whether the phase has no result, or only a partial one because an error or a signal ended it."""
    return phase.end is None or phase.end.stopped_by in ("error", "interrupt")


def describe_interruption(run: RecordedRun, phase: PhaseRecord) -> str:
    """Why a phase has no result, and how much it had transferred."""
    last, end = phase.progress, phase.end
    progress = (
        f" after {quantities.display_transferred_bytes(last.bytes)} in {quantities.display_seconds(last.phase_s)}"
        if last
        else ""
    )
    if end is not None:
        progress = f" after {quantities.display_transferred_bytes(end.bytes.transferred)}"
    if phase.errors:
        return f"stopped by an error{progress}: {format_error_line(phase.errors[0]).rstrip('.')}"
    if run.status == "interrupted":
        return f"interrupted{progress}"
    return f"it did not end; last heard of{progress}" if progress else "it did not end"


def describe_flush(run: RecordedRun, phase: PhaseRecord) -> str:
    """How written data was made durable within the timed interval; empty when it was not."""
    if phase.begin.op not in WRITE_OPS:
        return ""
    sync = {"dsync": "O_DSYNC", "sync": "O_SYNC"}.get(str(run.find_setting(phase.id, "io", "sync")), "")
    fsync = {"per_op": "fsync after every write", "end": _FSYNC_AT_END, "end_timed_separately": _FSYNC_AT_END}
    # A record may lack its plan; a timed fsync was done.
    timed = _FSYNC_AT_END if phase.end and phase.end.latency.get("fsync", LatencySummary()).count else ""
    return sync or fsync.get(str(run.find_setting(phase.id, "io", "fsync")), "") or timed


def format_error_line(error_line: ErrorLine) -> str:
    """The text of the record line, or one composed of its members."""
    if error_line.text:
        return escape_line(error_line.text, 600)
    path = f" of {escape_line(error_line.path, 300)}" if error_line.path else ""
    host = f" on {escape_line(error_line.host, 80)}" if error_line.host else ""
    reason = escape_line(error_line.name, 40) or (
        f"errno {error_line.errno}" if error_line.errno is not None else "no reason recorded"
    )
    return f"{escape_line(error_line.operation, 40) or 'operation'}{path} failed{host}: {reason}"


def get_tested_file_system(run: RecordedRun) -> FileSystemFacts:
    """The file system under test, as reported by the first node."""
    return run.nodes[0].file_system if run.nodes else FileSystemFacts()


def is_memory_backed(run: RecordedRun) -> bool:
    """Whether the files under test were in memory."""
    tested = get_tested_file_system(run)
    return tested.memory_backed is True or tested.type in MEMORY_FILE_SYSTEMS
