# SPDX-License-Identifier: Apache-2.0
"""What a number is about: storage, a cache, memory, nothing at all.

The most common mistake in storage measurement is to take the speed of memory for the speed of storage. The standing of
a number is decided from what the engine measured (residency, flags, findings, durations), never from the rate itself.
"""

from __future__ import annotations

from enum import Enum

from sonde.model import quantities
from sonde.model.limits import COLD, SHORTEST_FILES_S, SHORTEST_S, SUSTAINED_S
from sonde.model.lines import ErrorLine, FileSystem, Latency, Moved, Rates
from sonde.model.operations import CHANGING_NAMES, NAMES, ONLY_WRITING, WRITING
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.series import cache_state
from sonde.model.visible import one_line

SYNTHETIC = frozenset({"null", "paced"})
_AT_END = "fsync at the end"
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})


class Standing(Enum):
    """What a number is about. The value is its name in JSON and in tables."""

    STORAGE = "storage"
    BURST = "burst"
    SHORT = "short"
    CACHE = "cache"
    MEMORY = "memory"
    SYNTHETIC = "synthetic"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    FAILED = "failed"

    @property
    def heading(self) -> str:
        """The heading that such numbers are listed under."""
        return _HEADINGS[self]


_HEADINGS = {
    Standing.STORAGE: "Storage",
    Standing.BURST: "Storage, for seconds only: bursts that may have ended in caches of devices or servers",
    Standing.SHORT: "Too short to trust",
    Standing.CACHE: "Page cache: not storage numbers",
    Standing.MEMORY: "Memory: no storage is involved",
    Standing.SYNTHETIC: "Synthetic backend: no storage is involved",
    Standing.UNKNOWN: "Not decided: storage or cache",
    Standing.INVALID: "Not valid",
    Standing.FAILED: "Failed or not finished",
}


def standing_of(run: Run, phase: PhaseRecord, interval: str = "total") -> tuple[Standing, str]:
    """What a number is about, and the clause that says so.

    `interval` names the rate that is shown (a member of Rates): a buffered write is into the page cache when the fsync
    after it is left out ("transfer"), and to storage when it is counted ("total").
    """
    end = phase.end
    if end is None or unfinished(phase):
        return Standing.FAILED, unfinished_words(run, phase)
    invalid = next((one for one in phase.findings if one.severity == "invalid"), None)
    if invalid is not None:
        return Standing.INVALID, one_line(invalid.text, 300).rstrip(".")
    if end.ops.failed:
        return Standing.FAILED, f"{quantities.plural(end.ops.failed, 'operation')} failed"
    if phase.begin.backend in SYNTHETIC:
        return Standing.SYNTHETIC, f"the backend “{phase.begin.backend}” moves no data: not a storage number"
    if memory_backed(run):
        kind = one_line(file_system(run).type, 40)
        return Standing.MEMORY, f"files on {kind} live in memory: not a storage number"
    if phase.begin.op in NAMES:
        return _names_standing(run, phase)
    if not end.bytes.moved and not end.ops.done:
        return Standing.UNKNOWN, "nothing was moved"
    writes = phase.begin.op in ONLY_WRITING
    standing, because = _write_standing(run, phase, interval) if writes else _read_standing(run, phase)
    return _lasted(phase, many_files(run, phase), standing, because, interval)


def many_files(run: Run, phase: PhaseRecord) -> bool:
    """True when every operation is a file of its own, so that operations count files."""
    if phase.begin.op in NAMES or phase.begin.tree is not None:
        return True
    end, files = phase.end, phase.begin.files
    many = run.setting(phase.id, "files", "mapping") == "many"
    return many and (end is None or files is None or end.ops.done <= files)


def _names_standing(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    """Names of a local file system live in the memory of the node; those of a network one are asked of its servers,
    unless the node, which keeps attributes too, may still have known them."""
    if file_system(run).network:
        if phase.begin.op in CHANGING_NAMES:
            return _lasted(phase, True, Standing.STORAGE, "at the servers, which changed the names")
        if any(one.forgot_names for one in phase.treatments):
            return _lasted(phase, True, Standing.STORAGE, "from the servers: this node had forgotten the names")
        if len(run.nodes) > 1 and run.plan_of(phase.id).get("shift"):
            return _lasted(phase, True, Standing.STORAGE, "from the servers: another node had made the names")
        return Standing.UNKNOWN, "how many of the names this node still knew is not known"
    where = "not made durable" if phase.begin.op in CHANGING_NAMES else "names in the memory of this node"
    return Standing.CACHE, f"{where}: not a storage number"


def _lasted(
    phase: PhaseRecord, files: bool, standing: Standing, because: str, interval: str = "total"
) -> tuple[Standing, str]:
    """A storage number that lasted, or too short to be one, or that only shows what storage does for a moment."""
    rates = phase.end.rates if phase.end else Rates()
    rate = getattr(rates, interval) or rates.total or rates.transfer
    if standing is not Standing.STORAGE or rate is None:
        return standing, because
    lasted = quantities.seconds(rate.seconds)
    if rate.seconds >= SUSTAINED_S:
        return standing, f"{because}; sustained for {lasted}"
    if rate.seconds < (SHORTEST_FILES_S if files else SHORTEST_S):
        return Standing.SHORT, f"{because}; over in {lasted}: too short to trust"
    return Standing.BURST, f"{because}; a burst of {lasted}"


def _cached(phase: PhaseRecord) -> bool:
    """What parts the series of histories decides here too: known to have been, at least partly, in the page cache."""
    return cache_state(phase.begin.cache, [one.id for one in phase.findings]) == "cached"


def _read_standing(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    cache, resident = phase.begin.cache, phase.resident
    if phase.begin.direct or cache == "direct":
        return Standing.STORAGE, "from storage: direct I/O"
    if resident is not None and resident > COLD:
        if resident >= 0.95:
            return Standing.CACHE, "served from page cache: not a storage number"
        share = quantities.percent(resident)
        return Standing.CACHE, f"partly served from page cache ({share} of the data was there): not a storage number"
    if _repeated(run, phase):
        return Standing.CACHE, "read more than once, so partly from page cache: not a storage number"
    if _cached(phase):
        return Standing.CACHE, "may have been served from page cache: not a storage number"
    if cache == "cold" or resident is not None:
        share = quantities.percent(resident or 0.0)
        return Standing.STORAGE, f"from storage: {share} of the data was in the page cache"
    return Standing.UNKNOWN, "how much of it came from the page cache is not known"


def _repeated(run: Run, phase: PhaseRecord) -> bool:
    """True when the data was read more than once and may have stayed in memory meanwhile."""
    if any(one.id == "cache_suspect" and "first_pass_bytes" in one.evidence for one in phase.findings):
        return True
    moved = phase.end.bytes if phase.end else Moved()
    memory = sum(node.memory_bytes or 0 for node in run.nodes)
    return bool(moved.planned) and moved.read > 1.05 * (moved.planned or 0) and (moved.planned or 0) < (memory or 2**63)


def _write_standing(run: Run, phase: PhaseRecord, interval: str) -> tuple[Standing, str]:
    flush = flush_words(run, phase)
    if interval == "transfer" and not phase.begin.direct and flush in ("", _AT_END):
        return Standing.CACHE, "into page cache: not a storage number"
    if flush and not _cached(phase):
        return Standing.STORAGE, f"to storage: {flush}"
    if phase.begin.direct:
        return Standing.STORAGE, "to storage: direct I/O, not flushed"
    return Standing.CACHE, "into page cache, not made durable: not a storage number"


def unfinished(phase: PhaseRecord) -> bool:
    """True when the phase has no result, or one of a part that an error or a signal cut off."""
    return phase.end is None or phase.end.stopped_by in ("error", "interrupt")


def unfinished_words(run: Run, phase: PhaseRecord) -> str:
    """Why a phase has no result, and how far it had come."""
    last, end = phase.progress, phase.end
    far = f" after {quantities.volume(last.bytes)} in {quantities.seconds(last.phase_s)}" if last else ""
    if end is not None:
        far = f" after {quantities.volume(end.bytes.moved)}"
    if phase.errors:
        return f"stopped by an error{far}: {error_words(phase.errors[0]).rstrip('.')}"
    if run.status == "interrupted":
        return f"interrupted{far}"
    return f"it did not end; last heard of{far}" if far else "it did not end"


def flush_words(run: Run, phase: PhaseRecord) -> str:
    """How written data was made durable inside the timed interval; empty when it was not."""
    if phase.begin.op not in WRITING:
        return ""
    sync = {"dsync": "O_DSYNC", "sync": "O_SYNC"}.get(str(run.setting(phase.id, "io", "sync")), "")
    fsync = {"per_op": "fsync after every write", "end": _AT_END, "end_timed_separately": _AT_END}
    # A record may have lost its plan; an fsync that was timed was done.
    timed = _AT_END if phase.end and phase.end.latency.get("fsync", Latency()).count else ""
    return sync or fsync.get(str(run.setting(phase.id, "io", "fsync")), "") or timed


def error_words(line: ErrorLine) -> str:
    """The record's own sentence, or one put together from its members."""
    if line.text:
        return one_line(line.text, 600)
    where = f" of {one_line(line.path, 300)}" if line.path else ""
    host = f" on {one_line(line.host, 80)}" if line.host else ""
    reason = one_line(line.name, 40) or (f"errno {line.errno}" if line.errno is not None else "no reason recorded")
    return f"{one_line(line.what, 40) or 'operation'}{where} failed{host}: {reason}"


def file_system(run: Run) -> FileSystem:
    """The file system under test as the first node saw it."""
    return run.nodes[0].file_system if run.nodes else FileSystem()


def memory_backed(run: Run) -> bool:
    """True when the files under test lived in memory."""
    tested = file_system(run)
    return tested.memory_backed is True or tested.type in MEMORY_FILE_SYSTEMS
