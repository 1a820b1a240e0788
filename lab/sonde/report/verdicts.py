# SPDX-License-Identifier: Apache-2.0
"""What a phase's number means, in plain words: is it about storage at all, and did it hold while it was measured?

The most common mistake in storage measurement is to take the speed of memory for the speed of storage. So every number
gets one of a few standings, decided from what the engine measured (residency, flags, findings), never from the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sonde.model.errors import UnitError
from sonde.model.lines import ErrorLine, FileSystem, Rate
from sonde.model.record import PhaseRecord
from sonde.model.units import parse_bytes
from sonde.report import quantities
from sonde.report.movement import Movement
from sonde.report.profile import Profile, profile_of
from sonde.report.quantities import Quantity
from sonde.report.reading import Run, number
from sonde.report.visible import one_line

SYNTHETIC = frozenset({"null", "paced"})
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})
# Below this many bytes an operation, people ask for operations per second.
SMALL_OPERATION = 64 * 1024

_OPS = {
    "write": "write",
    "rewrite": "rewrite",
    "read": "read",
    "reread": "reread",
    "read_only": "read",
    "mixed": "mixed read and write",
    "duplex": "simultaneous read and write",
}
_ORDERS = {
    "sequential": "Sequential",
    "reverse": "Backward",
    "stride": "Strided",
    "random_permute": "Random",
    "random_replace": "Random",
}


class Standing(Enum):
    """What a number is about. The value is the heading it is listed under."""

    STORAGE = "Storage"
    CACHE = "Page cache: not storage numbers"
    MEMORY = "Memory: no storage is involved"
    SYNTHETIC = "Synthetic backend: no storage is involved"
    UNKNOWN = "Not decided: storage or cache"
    INVALID = "Not valid"
    FAILED = "Not finished"


@dataclass(frozen=True)
class Verdict:
    """One phase in words. `rate` is None when nothing was measured; `exact` spells out its numerator and interval."""

    name: str
    detail: str
    standing: Standing
    because: str
    rate: Quantity | None
    second: str
    exact: str
    movement: str


@dataclass(frozen=True)
class Judged:
    """A phase with what was made of it: its verdict, its curve, and whether operations are its natural unit."""

    phase: PhaseRecord
    verdict: Verdict
    profile: Profile | None
    operations: bool


def operations_first(phase: PhaseRecord) -> bool:
    """True when the phase is better told in operations per second: small operations, or none that move bytes."""
    end = phase.end
    return end is not None and end.ops.done > 0 and end.bytes.moved / end.ops.done < SMALL_OPERATION


def judge(run: Run, phase: PhaseRecord) -> Judged:
    """The verdict on one phase, and what it was drawn from."""
    standing, because = standing_of(run, phase)
    operations = operations_first(phase)
    rate, second, exact = _rates(phase, operations)
    profile = profile_of(phase)
    found = Verdict(
        name=phase_name(run, phase),
        detail=phase_detail(run, phase),
        standing=standing,
        because=because,
        rate=rate,
        second=second,
        exact=exact,
        movement=movement_words(profile.moved(operations), operations, profile) if profile else "",
    )
    return Judged(phase, found, profile, operations)


def phase_name(run: Run, phase: PhaseRecord) -> str:
    """ "Random read": what was done, for a heading."""
    op = phase.begin.op
    words = _OPS.get(op, one_line(op, 40) or "unknown operation")
    order = _ORDERS.get(str(run.setting(phase.id, "access", "order") or "sequential"), "")
    return words[:1].upper() + words[1:] if op == "duplex" or not order else f"{order} {words}"


def transfer_bytes(run: Run, phase: PhaseRecord) -> float | None:
    """Bytes asked for in one operation."""
    asked = run.setting(phase.id, "access", "transfer")
    try:
        return float(parse_bytes(asked)) if isinstance(asked, int | str) else None
    except UnitError:
        return None


def phase_detail(run: Run, phase: PhaseRecord) -> str:
    """ "4 tasks · 1 MiB transfers · direct I/O · queue depth 32": how it was done, in one line."""
    parts = [quantities.plural(run.tasks, "task")]
    transfer = transfer_bytes(run, phase)
    if transfer:
        parts.append(f"{quantities.size(transfer)} transfers")
    backend = phase.begin.backend
    if backend not in ("", "posix"):
        parts.append(one_line(backend, 40))
    if backend not in SYNTHETIC:
        parts.append("direct I/O" if phase.begin.direct else "buffered")
    depth = number({"v": run.setting(phase.id, "io", "queue_depth")}, "v")
    if depth and depth > 1:
        parts.append(f"queue depth {quantities.count(depth)}")
    return " · ".join([*parts, flush_words(run, phase)] if flush_words(run, phase) else parts)


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


def standing_of(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    """What the number is about, and the sentence that says so."""
    if phase.end is None:
        return Standing.FAILED, unfinished_words(run, phase)
    invalid = next((one for one in phase.findings if one.severity == "invalid"), None)
    if invalid is not None:
        return Standing.INVALID, one_line(invalid.text, 300).rstrip(".")
    if phase.begin.backend in SYNTHETIC:
        return Standing.SYNTHETIC, f"the backend “{phase.begin.backend}” moves no data: not a storage number"
    if memory_backed(run):
        kind = one_line(file_system(run).type, 40)
        return Standing.MEMORY, f"{kind} keeps files in memory: not a storage number"
    if not phase.end.bytes.moved and not phase.end.ops.done:
        return Standing.UNKNOWN, "nothing was moved"
    if phase.begin.op in ("write", "rewrite"):
        return _write_standing(run, phase)
    return _read_standing(phase, phase.end.resident)


def _suspect(phase: PhaseRecord) -> bool:
    return any(one.id == "cache_suspect" for one in phase.findings)


def _read_standing(phase: PhaseRecord, resident: float | None) -> tuple[Standing, str]:
    cache = phase.begin.cache
    if phase.begin.direct or cache == "direct":
        return Standing.STORAGE, "from storage: direct I/O does not use the page cache of the clients"
    warm = _suspect(phase) or cache == "warm"
    if resident is not None and (warm or resident > 0.01):
        if resident >= 0.95:
            return Standing.CACHE, "served from page cache: not a storage number"
        share = quantities.percent(resident)
        return Standing.CACHE, f"partly served from page cache ({share} of the data was there): not a storage number"
    if warm:
        return Standing.CACHE, "may have been served from page cache: not a storage number"
    if cache == "cold" or resident is not None:
        share = quantities.percent(resident or 0.0)
        return Standing.STORAGE, f"from storage: {share} of the data was in the page cache before"
    return Standing.UNKNOWN, "how much of it came from the page cache is not known"


def _write_standing(run: Run, phase: PhaseRecord) -> tuple[Standing, str]:
    flush = flush_words(run, phase)
    if flush and not _suspect(phase):
        return Standing.STORAGE, f"to storage: {'the time includes ' if 'fsync' in flush else ''}{flush}"
    if phase.begin.direct:
        return Standing.STORAGE, "to storage: direct I/O, not flushed (devices and servers may still cache some)"
    return Standing.CACHE, "into page cache: nothing made it durable while the clock ran, so not a storage number"


def unfinished_words(run: Run, phase: PhaseRecord) -> str:
    """Why a phase has no result."""
    if phase.errors:
        return f"stopped by an error: {error_words(phase.errors[0]).rstrip('.')}"
    if run.status == "interrupted":
        return "interrupted before it ended"
    return "it did not end: nothing was measured"


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


def _rates(phase: PhaseRecord, operations: bool) -> tuple[Quantity | None, str, str]:
    """The headline, the same in the other unit, and what was divided by what."""
    total = phase.end.rates.total if phase.end else None
    if total is None:
        return None, "", ""
    exact = f"{exact_words(total, operations)}, first open to last close"
    if operations:
        return quantities.operation_rate(total.ops_per_s), str(quantities.byte_rate(total.bytes_per_s)), exact
    return quantities.byte_rate(total.bytes_per_s), str(quantities.binary_byte_rate(total.bytes_per_s)), exact


def exact_words(rate: Rate, operations: bool) -> str:
    """ "1,073,741,824 B / 1.302 s": numerator and interval, with the digits to divide again."""
    amount = f"{quantities.count(rate.ops)} operations" if operations else f"{quantities.count(rate.bytes)} B"
    return f"{amount.replace(' ', quantities.GAP)} / {quantities.exact_seconds(rate.seconds)}"


def rate_words(value: float, operations: bool) -> str:
    """The rate in the unit of the phase."""
    return str(quantities.operation_rate(value) if operations else quantities.byte_rate(value))


def movement_words(moved: Movement, operations: bool, profile: Profile) -> str:
    """When the rate moved during the phase, as one clause; empty when there were too few slices to tell."""
    middle = rate_words(moved.median, operations)
    if moved.kind == "steps":
        rates = [rate_words(rate, operations) for _, rate in moved.parts]
        times = [str(quantities.seconds(at)) for at, _ in moved.parts]
        way = "rose" if moved.parts[-1][1] > moved.parts[0][1] else "fell"
        if len(rates) == 2:
            return f"{way} from {rates[0]} to {rates[1]} after {times[1]}"
        return f"{rates[0]}, then " + ", ".join(f"{r} from {t} on" for r, t in zip(rates[1:], times[1:], strict=True))
    if moved.kind == "drift":
        way = "rose" if moved.after > moved.before else "fell"
        return f"{way} gradually from {rate_words(moved.before, operations)} to {rate_words(moved.after, operations)}"
    if moved.kind == "stalls":
        whole = quantities.seconds(profile.edges[-1] - profile.edges[0])
        return f"stood still for {quantities.seconds(moved.stalled_s)} of {whole}; otherwise {middle}"
    if moved.kind == "short":
        return ""
    spread = quantities.percent(max(moved.spread, 0.001))
    return f"{moved.kind}: nine tenths of the time within {spread} of {middle}"
