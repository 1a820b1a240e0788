# SPDX-License-Identifier: Apache-2.0
"""What a number is about: storage, a cache, memory, nothing at all.

The most common mistake in storage measurement is to take the speed of memory for the speed of storage. The standing of
a number is decided from what the engine measured (residency, flags, findings, durations), never from the rate itself.
"""

from __future__ import annotations

from enum import Enum

from sonde.model import quantities
from sonde.model.limits import COLD, SHORTEST_FILES_S, SHORTEST_S, SUSTAINED_S
from sonde.model.lines import ErrorLine, FileSystem
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.visible import one_line

SYNTHETIC = frozenset({"null", "paced"})
# Operations on names, which move no data.
NAMES = frozenset({"stat", "remove", "mktree", "create", "open_close", "readdir", "walk", "rename", "rmtree"})
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})


class Standing(Enum):
    """What a number is about. The value is the heading it is listed under."""

    STORAGE = "Storage"
    BURST = "Storage, for seconds only: bursts that may have ended in caches of devices or servers"
    SHORT = "Too short to trust"
    CACHE = "Page cache: not storage numbers"
    MEMORY = "Memory: no storage is involved"
    SYNTHETIC = "Synthetic backend: no storage is involved"
    UNKNOWN = "Not decided: storage or cache"
    INVALID = "Not valid"
    FAILED = "Not finished"


def standing_of(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    """What the number is about, and the sentence that says so."""
    if phase.end is None or unfinished(phase):
        return Standing.FAILED, unfinished_words(run, phase)
    invalid = next((one for one in phase.findings if one.severity == "invalid"), None)
    if invalid is not None:
        return Standing.INVALID, one_line(invalid.text, 300).rstrip(".")
    if phase.begin.backend in SYNTHETIC:
        return Standing.SYNTHETIC, f"the backend “{phase.begin.backend}” moves no data: not a storage number"
    if memory_backed(run):
        kind = one_line(file_system(run).type, 40)
        return Standing.MEMORY, f"files on {kind} live in memory: not a storage number"
    if phase.begin.op in NAMES:
        return _names_standing(run, phase)
    if not phase.end.bytes.moved and not phase.end.ops.done:
        return Standing.UNKNOWN, "nothing was moved"
    files = many_files(run, phase)
    if phase.begin.op in ("write", "rewrite"):
        return _lasted(phase, files, *_write_standing(run, phase))
    return _lasted(phase, files, *_read_standing(phase, phase.resident))


def many_files(run: Run, phase: PhaseRecord) -> bool:
    """True when every operation is a file of its own, so that operations count files."""
    if phase.begin.op in NAMES or phase.begin.tree is not None:
        return True
    end, files = phase.end, phase.begin.files
    many = run.setting(phase.id, "files", "mapping") == "many"
    return many and (end is None or files is None or end.ops.done <= files)


def _names_standing(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    """Names of a local file system live in the memory of the node; those of a network one are asked of its servers."""
    if file_system(run).network:
        return _lasted(phase, True, Standing.STORAGE, "from the servers: names are not kept by this node")
    changes = phase.begin.op in ("remove", "mktree", "create", "rename", "rmtree")
    where = "not made durable" if changes else "names in the memory of this node"
    return Standing.CACHE, f"{where}: not a storage number"


def _lasted(phase: PhaseRecord, files: bool, standing: Standing, because: str) -> tuple[Standing, str]:
    """A storage number that lasted too short to be one, or that only shows what storage does for a moment."""
    total = phase.end.rates.total if phase.end else None
    if standing is not Standing.STORAGE or total is None or total.seconds >= SUSTAINED_S:
        return standing, because
    if total.seconds < (SHORTEST_FILES_S if files else SHORTEST_S):
        return Standing.SHORT, f"{because}, but over in {quantities.seconds(total.seconds)}"
    return Standing.BURST, because


def _suspect(phase: PhaseRecord) -> bool:
    return any(one.id == "cache_suspect" for one in phase.findings)


def _read_standing(phase: PhaseRecord, resident: float | None) -> tuple[Standing, str]:
    cache = phase.begin.cache
    if phase.begin.direct or cache == "direct":
        return Standing.STORAGE, "from storage: direct I/O"
    warm = _suspect(phase) or cache == "warm"
    if resident is not None and (warm or resident > COLD):
        if resident >= 0.95:
            return Standing.CACHE, "served from page cache: not a storage number"
        share = quantities.percent(resident)
        return Standing.CACHE, f"partly served from page cache ({share} of the data was there): not a storage number"
    if warm:
        return Standing.CACHE, "may have been served from page cache: not a storage number"
    if cache == "cold" or resident is not None:
        share = quantities.percent(resident or 0.0)
        return Standing.STORAGE, f"from storage: {share} of the data was in the page cache"
    return Standing.UNKNOWN, "how much of it came from the page cache is not known"


def _write_standing(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    flush = flush_words(run, phase)
    if flush and not _suspect(phase):
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
    if phase.begin.op not in ("write", "rewrite", "mixed", "duplex"):
        return ""
    sync = {"dsync": "O_DSYNC", "sync": "O_SYNC"}.get(str(run.setting(phase.id, "io", "sync")), "")
    fsync = {
        "per_op": "fsync after every write",
        "end": "fsync at the end",
        "end_timed_separately": "fsync at the end",
    }
    return sync or fsync.get(str(run.setting(phase.id, "io", "fsync")), "")


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
    found = file_system(run)
    return found.memory_backed is True or found.type in MEMORY_FILE_SYSTEMS
