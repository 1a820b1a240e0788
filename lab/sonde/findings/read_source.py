# SPDX-License-Identifier: Apache-2.0
"""Whether a buffered read was served from memory or from storage, by what happened during the phase.

Counters of the device come first, latency second. The residency before the phase only covers its start: read-ahead,
other programs and earlier operations of the phase bring more data into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sonde.model import quantities
from sonde.model.line_members import LatencySummary
from sonde.model.lines import Finding
from sonde.model.operations import METADATA_OPS, WRITE_ONLY_OPS
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun
from sonde.model.simulation import find_simulated_system
from sonde.telemetry.read_counters import ReadCounters, count_phase_reads

# A device that read less than this fraction of the bytes did not serve the rest; below the second fraction it served
# next to nothing. Metadata and other programs only add to its bytes.
_MIN_DEVICE_FRACTION = 0.9
_MAX_DEVICE_FRACTION_OF_CACHED_READS = 0.05
# Above this multiple other programs, or read-ahead for nothing, hide how much of the bytes were those of the run.
_OTHER_TRAFFIC_FACTOR = 1.5
# Operations smaller than a page by this factor find their page in memory, except the first one of each page.
_OPERATIONS_PER_PAGE = 8
_DEFAULT_PAGE_BYTES = 4096
# Nanoseconds. A random read of a drive or of a server takes longer: Yang et al., "When Poll is Better than Interrupt",
# FAST 2012, measure 4.4 us for 4 KiB of a memory-backed NVMe prototype with polling; interrupts add to it.
_FASTEST_STORAGE_NS = 5_000.0
# A median below this fraction of the median of direct reads of the same size in the same run is one of memory.
_MAX_MEMORY_LATENCY_FRACTION = 0.5
_RANDOM_ORDERS = frozenset({"random_permute", "random_replace"})
_GAPLESS_ORDERS = _RANDOM_ORDERS | {"sequential", "reverse"}
NOT_STORAGE = "not a storage number"


@dataclass(frozen=True)
class ReadSource:
    """Source of the bytes that a phase read, with a clause that gives the reason."""

    is_cached: bool
    clause: str


def find_read_source(run: RecordedRun, phase: PhaseRecord) -> ReadSource | None:
    """Determines from counters and latency where buffered reads came from; None when they do not decide."""
    counters = count_phase_reads(run, phase)
    return (
        find_subpage_source(run, phase, counters)
        or _find_source_by_latency(run, phase)
        or (_find_source_by_counters(run, phase, counters) if counters else None)
    )


def describe_device_reads(run: RecordedRun, phase: PhaseRecord) -> str:
    """How much of the data the device read during the phase, to follow the residency; empty for simulated runs."""
    counters = count_phase_reads(run, phase)
    if counters is None:
        is_simulated = find_simulated_system(run.run_line, run.nodes) is not None
        return "" if is_simulated else " (device reads were not counted)"
    if counters.min_fraction >= _MIN_DEVICE_FRACTION:
        return f", and {counters.part} read all of it"
    least, most = (quantities.display_percent(fraction) for fraction in (counters.min_fraction, counters.max_fraction))
    return f", and {counters.part} read between {least} and {most} of the bytes"


def _describe_device_read_share(counters: ReadCounters) -> str:
    """Returns how much of the bytes the device read: nothing, or less than or at most a percentage."""
    most = quantities.display_percent(counters.max_fraction)
    if counters.max_fraction == 0:
        return f"{counters.part} read none of the bytes"
    if most.startswith("<"):
        return f"{counters.part} read less than {most.lstrip('<').lstrip(quantities.NO_BREAK_SPACE)} of the bytes"
    return f"{counters.part} read at most {most} of the bytes"


def find_subpage_source(
    run: RecordedRun, phase: PhaseRecord, counters: ReadCounters | None = None
) -> ReadSource | None:
    """Memory for buffered operations so small that most of them find their page there: one operation of each page is
    served by storage, whatever the device delivers. None for others, and while the device was busy half of the time."""
    begin, end = phase.begin, phase.end
    if (
        end is None
        or begin.direct
        or begin.op in METADATA_OPS
        or begin.tree is not None
        or begin.order not in _GAPLESS_ORDERS
    ):
        return None
    page = next((node.page_bytes for node in run.nodes if node.page_bytes), _DEFAULT_PAGE_BYTES)
    transfer, volume = begin.transfer_bytes or 0, end.bytes.planned or end.bytes.transferred
    per_page = end.ops.done * page / volume if volume else 0.0
    if not transfer or transfer * _OPERATIONS_PER_PAGE > page or per_page < _OPERATIONS_PER_PAGE:
        return None
    latency = end.latency.get("write" if begin.op in WRITE_ONLY_OPS else "read", LatencySummary())
    if (latency.p50_ns or 0.0) >= _FASTEST_STORAGE_NS or (counters and (counters.busy_fraction or 0.0) >= 0.5):
        return None
    size = quantities.display_configured_size(float(transfer))
    return ReadSource(
        True,
        f"{quantities.display_count_with_noun(round(per_page), 'operation')} of {size} for each page in memory: "
        f"{NOT_STORAGE}",
    )


def _find_source_by_latency(run: RecordedRun, phase: PhaseRecord) -> ReadSource | None:
    """Memory, when half of the random reads were faster than storage answers. Sequential reads are served from
    read-ahead, so their latency does not show the source."""
    begin, end = phase.begin, phase.end
    if end is None or begin.order not in _RANDOM_ORDERS or _can_storage_be_mapped(run):
        return None
    median = end.latency.get("read", LatencySummary()).p50_ns
    if median is None:
        return None
    duration = quantities.display_seconds(median / 1e9)
    direct = _find_median_latency_of_direct_reads(run, phase)
    if direct is not None and median < _MAX_MEMORY_LATENCY_FRACTION * direct:
        reference = quantities.display_seconds(direct / 1e9)
        return ReadSource(
            True,
            f"half of the random reads took {duration} or less, direct reads {reference}: served from memory,"
            f" {NOT_STORAGE}",
        )
    if median < _FASTEST_STORAGE_NS:
        return ReadSource(
            True,
            f"half of the random reads took {duration} or less, faster than storage answers: served from memory,"
            f" {NOT_STORAGE}",
        )
    return None


def _can_storage_be_mapped(run: RecordedRun) -> bool:
    """Whether the file system may hand out its storage as memory (DAX): reads of it are as fast as those of memory."""
    return any(
        "dax" in node.file_system.options or node.file_system.source.startswith("/dev/pmem") for node in run.nodes
    )


def _find_median_latency_of_direct_reads(run: RecordedRun, phase: PhaseRecord) -> float | None:
    """Nanoseconds: the median of a direct random read of the same size in the same run."""
    for other in run.phases:
        same = (other.begin.transfer_bytes, other.begin.order) == (phase.begin.transfer_bytes, phase.begin.order)
        if same and other.begin.direct and other.end is not None and other.begin.queue_depth == phase.begin.queue_depth:
            median = other.end.latency.get("read", LatencySummary()).p50_ns
            if median is not None:
                return median
    return None


def _find_source_by_counters(run: RecordedRun, phase: PhaseRecord, counters: ReadCounters) -> ReadSource | None:
    if counters.max_fraction < _MIN_DEVICE_FRACTION:
        served = "served" if counters.max_fraction < _MAX_DEVICE_FRACTION_OF_CACHED_READS else "partly served"
        return ReadSource(True, f"{served} from page cache ({_describe_device_read_share(counters)}): {NOT_STORAGE}")
    if phase.residency is None and _has_device_read_bytes_of_run(counters):
        return ReadSource(False, f"from storage: {counters.part} read all of it during the phase")
    return None


def _has_device_read_bytes_of_run(read_counters: ReadCounters) -> bool:
    """Whether the device read about as many bytes as the run, so that traffic of other programs cannot be mistaken for
    them."""
    return read_counters.min_fraction >= _MIN_DEVICE_FRACTION and read_counters.max_fraction <= _OTHER_TRAFFIC_FACTOR


def find_cache_and_device_contradiction(run: RecordedRun, phase: PhaseRecord) -> Finding | None:
    """The finding that the page cache before the phase and the device during it contradict each other."""
    end, residency = phase.end, phase.residency
    if end is None or residency is None or phase.begin.direct or end.bytes.read > 1.05 * (end.bytes.planned or 0):
        return None
    counters = count_phase_reads(run, phase)
    if counters is None:
        return None
    missing = 1.0 - residency
    before = f"{quantities.display_percent(residency)} of the data was in the page cache before the phase"
    evidence = {
        "residency": residency,
        "requested_bytes": counters.requested_bytes,
        "least_device_bytes": counters.min_bytes,
        "most_device_bytes": counters.most_bytes,
    }
    if counters.max_fraction < 0.5 * missing:
        text = f"{before}, yet {_describe_device_read_share(counters)} during it."
        advice = "Something read the data in between, or the data are not on this device."
    elif residency >= 0.5 and _has_device_read_bytes_of_run(counters):
        text = f"{before}, yet {counters.part} read as many bytes as the phase."
        advice = "Memory was short and lost the data before they were read, or another program read as much."
    else:
        return None
    return Finding(
        end.t, "cache_disagreement", phase.id, "warning", quantities.replace_no_break_spaces(text), advice, evidence
    )


def find_all_cache_and_device_contradictions(run: RecordedRun) -> Iterator[Finding]:
    """`find_cache_and_device_contradiction` of every phase."""
    for phase in run.phases:
        if (finding := find_cache_and_device_contradiction(run, phase)) is not None:
            yield finding
