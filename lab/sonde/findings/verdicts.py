# SPDX-License-Identifier: Apache-2.0
"""One phase in plain words: what was done, how fast, what the number is about, and whether the rate held."""

from __future__ import annotations

from dataclasses import dataclass

from sonde.findings.judgement import Judgement, judged, operations_first
from sonde.findings.profile import Profile, profile_of
from sonde.findings.standing import SYNTHETIC, Standing, flush_words, many_files
from sonde.model import quantities
from sonde.model.errors import UnitError
from sonde.model.json_parts import number
from sonde.model.lines import Rate
from sonde.model.operations import NAMES, OF_DIRECTORIES
from sonde.model.quantities import Quantity
from sonde.model.record import PhaseRecord
from sonde.model.run import Run
from sonde.model.units import parse_bytes
from sonde.model.visible import one_line

# What is not said as the operation is called.
_OPS = {
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
    "cycle": "Stat, read, remove and create files",
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
    """One phase in words. `rate` is None when nothing was measured; `exact` spells out its numerator and interval."""

    name: str
    detail: str
    judgement: Judgement
    rate: Quantity | None
    second: str
    exact: str

    @property
    def standing(self) -> Standing:
        """What the number is about."""
        return self.judgement.standing

    @property
    def because(self) -> str:
        """The sentence on the standing."""
        return self.judgement.sentence

    @property
    def words(self) -> str:
        """All remarks, one after the other."""
        return " ".join(self.judgement.remarks)


@dataclass(frozen=True)
class Judged:
    """A phase with what was made of it: its verdict, its curve, and whether operations are its natural unit."""

    phase: PhaseRecord
    verdict: Verdict
    profile: Profile | None
    operations: bool


def judge(run: Run, phase: PhaseRecord) -> Judged:
    """The verdict on one phase, and what it was drawn from."""
    operations = operations_first(phase)
    rate, second, exact = _rates(run, phase, operations)
    profile = profile_of(phase)
    verdict = Verdict(
        name=phase_name(run, phase),
        detail=phase_detail(run, phase),
        judgement=judged(run, phase, profile),
        rate=rate,
        second=second,
        exact=exact,
    )
    return Judged(phase, verdict, profile, operations)


def phase_name(run: Run, phase: PhaseRecord) -> str:
    """ "Random read, direct, 32 in flight": what was done, for a heading."""
    parts = [_plain_name(run, phase)]
    if phase.begin.direct:
        parts.append("direct")
    depth = _depth(run, phase)
    if depth > 1:
        parts.append(f"{quantities.count(depth)} in flight")
    return ", ".join(parts)


def _depth(run: Run, phase: PhaseRecord) -> float:
    """Operations that each task has in flight."""
    return number({"v": run.setting(phase.id, "io", "queue_depth")}, "v") or 1


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
    depth = _depth(run, phase)
    if depth > 1:
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
            things = "dirs/s" if phase.begin.op in OF_DIRECTORIES else "files/s"
            rate = Quantity(rate.digits, rate.unit.replace("op/s", things))
        moved = quantities.byte_rate(total.bytes_per_s) if total.bytes else quantities.count(total.ops)
        return rate, f"{moved} {'for' if total.bytes else 'in'} {quantities.seconds(total.seconds)}", exact
    other = f"{quantities.binary_byte_rate(total.bytes_per_s)} for {quantities.seconds(total.seconds)}"
    return quantities.byte_rate(total.bytes_per_s), other, exact


def exact_words(rate: Rate, operations: bool) -> str:
    """ "1,073,741,824 B / 1.302 s": numerator and interval, with the digits to divide again."""
    amount = f"{quantities.count(rate.ops)} operations" if operations else f"{quantities.count(rate.bytes)} B"
    return f"{amount.replace(' ', quantities.GAP)} / {quantities.exact_seconds(rate.seconds)}"
