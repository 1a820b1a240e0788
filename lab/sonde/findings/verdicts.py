# SPDX-License-Identifier: Apache-2.0
"""One phase in plain words: what was done, how fast, what the number is about, and whether the rate held."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.findings.members import lagging, tasks_of
from sonde.findings.movement import Movement
from sonde.findings.profile import Profile, profile_of
from sonde.findings.standing import NAMES, SYNTHETIC, Standing, flush_words, many_files, standing_of
from sonde.model import quantities
from sonde.model.errors import UnitError
from sonde.model.json_parts import number
from sonde.model.limits import SHORTEST_S
from sonde.model.lines import Rate
from sonde.model.quantities import Quantity
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.units import parse_bytes
from sonde.model.visible import one_line

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
_FILE_OPS = {
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
    "rmtree": "Remove directories",
}
_ORDERS = {
    "sequential": "Sequential",
    "reverse": "Backward",
    "stride": "Strided",
    "random_permute": "Random",
    "random_replace": "Random",
}


@dataclass(frozen=True)
class Verdict:
    """One phase in words. `rate` is None when nothing was measured; `exact` spells out its numerator and interval.

    `because` is the sentence on the standing, `remarks` are further ones: how the rate moved, who lagged behind.
    """

    name: str
    detail: str
    standing: Standing
    because: str
    rate: Quantity | None
    second: str
    exact: str
    remarks: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """All remarks, one after the other."""
        return " ".join(self.remarks)


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
    rate, second, exact = _rates(run, phase, operations)
    profile = profile_of(phase)
    files = many_files(run, phase)
    remarks = [
        movement_words(profile.moved(operations), operations, profile) if profile else "",
        _before_fsync(phase),
        _lagging_words(run, phase, operations),
    ]
    found = Verdict(
        name=phase_name(run, phase),
        detail=phase_detail(run, phase),
        standing=standing,
        because=sentence(because),
        rate=rate,
        second=second,
        exact=exact,
        remarks=tuple(sentence(one.replace("op/s", "files/s") if files else one) for one in remarks if one),
    )
    return Judged(phase, found, profile, operations)


def phase_name(run: Run, phase: PhaseRecord) -> str:
    """ "Random read, direct": what was done, for a heading."""
    plain = _plain_name(run, phase)
    return f"{plain}, direct" if phase.begin.direct else plain


def _plain_name(run: Run, phase: PhaseRecord) -> str:
    op = phase.begin.op
    words = _OPS.get(op, one_line(op, 40) or "unknown operation")
    if many_files(run, phase) and op in _FILE_OPS:
        directories = phase.begin.tree is not None and phase.begin.tree.objects == "directories"
        return _FILE_OPS[op].replace("files", "directories") if directories else _FILE_OPS[op]
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
    """ "1 MiB transfers · direct · queue depth 32": how each task did it, in one line."""
    if phase.begin.op in NAMES:
        return "operations on names"
    parts = []
    transfer = transfer_bytes(run, phase)
    if transfer:
        parts.append(f"{quantities.size(transfer)} transfers")
    backend = phase.begin.backend
    if backend not in ("", "posix"):
        parts.append(one_line(backend, 40))
    if backend not in SYNTHETIC:
        parts.append("direct" if phase.begin.direct else "buffered")
    depth = number({"v": run.setting(phase.id, "io", "queue_depth")}, "v")
    if depth and depth > 1:
        parts.append(f"queue depth {quantities.count(depth)}")
    return quantities.DOT.join([*parts, flush_words(run, phase)] if flush_words(run, phase) else parts)


def _rates(run: Run, phase: PhaseRecord, operations: bool) -> tuple[Quantity | None, str, str]:
    """The headline, the same in the other unit with how long it lasted, and what was divided by what."""
    total = phase.end.rates.total if phase.end else None
    if total is None:
        return None, "", ""
    exact = f"{exact_words(total, operations)}, first open to last close"
    if operations:
        rate = quantities.operation_rate(total.ops_per_s)
        if many_files(run, phase):
            things = "dirs/s" if phase.begin.op in ("mktree", "rmtree") else "files/s"
            rate = Quantity(rate.digits, rate.unit.replace("op/s", things))
        moved = quantities.byte_rate(total.bytes_per_s) if total.bytes else quantities.count(total.ops)
        return rate, f"{moved} {'for' if total.bytes else 'in'} {quantities.seconds(total.seconds)}", exact
    other = f"{quantities.binary_byte_rate(total.bytes_per_s)} for {quantities.seconds(total.seconds)}"
    return quantities.byte_rate(total.bytes_per_s), other, exact


def exact_words(rate: Rate, operations: bool) -> str:
    """ "1,073,741,824 B / 1.302 s": numerator and interval, with the digits to divide again."""
    amount = f"{quantities.count(rate.ops)} operations" if operations else f"{quantities.count(rate.bytes)} B"
    return f"{amount.replace(' ', quantities.GAP)} / {quantities.exact_seconds(rate.seconds)}"


def _before_fsync(phase: PhaseRecord) -> str:
    """How fast the page cache took what fsync made durable afterwards, when both were timed apart."""
    end = phase.end
    if end is None or phase.begin.direct or not end.rates.total or not end.rates.transfer or not end.bytes.written:
        return ""
    total, transfer = end.rates.total, end.rates.transfer
    if not end.seconds.fsync or 1.25 * transfer.seconds > total.seconds:
        return ""
    taken = quantities.byte_rate(transfer.bytes_per_s)
    return f"the page cache took it at {taken}, which is not a storage number"


def _lagging_words(run: Run, phase: PhaseRecord, operations: bool) -> str:
    found = lagging(tasks_of(run, phase, operations))
    if found is None:
        return ""
    slowest, middle, count = found
    where = f" on {slowest.host}" if slowest.host else ""
    also = f", and {count - 1} more below half of that" if count > 1 else ""
    return (
        f"{slowest.name}{where} reached {rate_words(slowest.value, operations)},"
        f" the median task {rate_words(middle, operations)}{also}"
    )


def sentence(words: str) -> str:
    """With a capital at the beginning and a full stop at the end."""
    return f"{words[:1].upper()}{words[1:]}{'' if words.endswith(('.', '!', '?')) else '.'}" if words else ""


def rate_words(value: float, operations: bool) -> str:
    """The rate in the unit of the phase."""
    return str(quantities.operation_rate(value) if operations else quantities.byte_rate(value))


def movement_words(moved: Movement, operations: bool, profile: Profile) -> str:
    """When the rate moved during the phase, as one clause; empty when there was too little of it to tell."""

    def words(rate: float) -> str:
        return rate_words(rate, operations)

    if profile.edges[-1] < SHORTEST_S:
        return ""
    middle = words(moved.median)
    if moved.kind == "steps":
        times = [str(quantities.seconds(at)) for at, _ in moved.parts]
        rates = [rate for _, rate in moved.parts]
        first = (
            f"{'rose' if rates[1] > rates[0] else 'fell'} from {words(rates[0])} to {words(rates[1])} after {times[1]}"
        )
        if len(rates) == 2:
            return first
        return f"{first}, then {'rose' if rates[2] > rates[1] else 'fell'} to {words(rates[2])} after {times[2]}"
    if moved.kind == "drift":
        way = "rose" if moved.after > moved.before else "fell"
        return f"{way} gradually from {words(moved.before)} to {words(moved.after)}"
    if moved.kind == "stalls":
        whole = quantities.seconds(profile.edges[-1] - profile.edges[0])
        return f"stood still for {quantities.seconds(moved.stalled_s)} of {whole}; otherwise {middle}"
    if moved.kind == "steady":
        return f"steady, ±{max(1, round(moved.spread * 100))}{quantities.GAP}% around {middle}"
    if moved.kind == "uneven":
        return f"uneven, {words(moved.low)} to {words(moved.high)}, median {middle}"
    return ""
