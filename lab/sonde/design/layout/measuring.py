# SPDX-License-Identifier: Apache-2.0
"""A layout measured: aligned against misaligned requests, one stripe unit against all of them, held against what the
geometry predicts and what the roll-up allows.

One plan has every case several times, in turn, so that what else happens on the machine meets all of them alike. The
same plan can be measured by the engine or computed by the simulator: both leave a record with the same phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sonde.design.layout.check import stripe_beneath
from sonde.design.layout.laid import Laid
from sonde.design.layout.live.seen import Seen
from sonde.model.errors import UserError
from sonde.model.record import RecordReader
from sonde.model.units import exact_bytes, format_bytes
from sonde.stats.ratio import Ratio, ratio

# Writing full stripes against beginning inside of one, on parity RAID without a write cache: 271 against 136 MB/s were
# published (1.99); a stripe is read and written again instead of written once. Elsewhere both are the same.
PARITY_RATIO, SAME_RATIO = (1.3, 2.3), (0.9, 1.1)
# A roll-up is an upper bound; this much above it is noise of the clock, more is a wrong system file.
ABOVE_ROLL_UP = 1.05
REPEATS = 6
_LEAST_VOLUME = 64 << 20
CASES = ("aligned", "misaligned", "unit", "width")
# What both cases have in common stands in the predictions, as sentences.
_HOLDS, _FAILS, _OPEN = "holds", "does not hold", "cannot be told"


@dataclass(frozen=True)
class Stripe:
    """Bytes: what lies on one drive before the next, the full stripe of a RAID group; unit and width of what is above.

    `parity` says whether a partial write has to read first; None is unknown. `source` says who knows.
    """

    segment: int
    stripe: int
    unit: int
    width: int
    parity: bool | None
    source: str


@dataclass(frozen=True)
class Answer:
    """One question: the measured ratio or rate, what was predicted (low, high), and whether it holds."""

    question: str
    measured: float
    low: float | None
    high: float | None
    predicted: tuple[float, float] | None
    verdict: str
    why: str


@dataclass(frozen=True)
class Measured:
    """Rates of each case, bytes/s, one for each repetition; and the answers."""

    rates: dict[str, tuple[float, ...]]
    answers: tuple[Answer, ...]

    @property
    def holds(self) -> bool:
        return all(one.verdict != _FAILS for one in self.answers)


def stripe_of(seen: Seen, plan: Laid | None, told: tuple[int, int] | None = None, parity: bool | None = None) -> Stripe:
    """The stripe to measure: told, else of the plan, else beneath the file system. Raises UserError."""
    if told is not None:
        segment, stripe = told
        if stripe % segment or stripe < segment:
            raise UserError(
                f"A stripe of {format_bytes(stripe)} is no multiple of a segment of {format_bytes(segment)}; give both "
                "as of one RAID group."
            )
        return Stripe(segment, stripe, segment, stripe, parity, "as told")
    if plan is not None and plan.stores:
        group = next((one for one in plan.store.groups() if one.unit and one.geometry and one.geometry.data > 1), None)
        if group is not None and group.unit and group.stripe:
            geometry = group.geometry
            striped = plan.store.kind == "volumes"
            unit = (plan.store.unit if striped else None) or group.unit
            width = (plan.store.width if striped else None) or group.stripe
            parity = bool(geometry and geometry.parity)
            return Stripe(group.unit, group.stripe, unit, width, parity, f"the plan of {plan.id}")
    for one in seen.file_systems:
        inner, full = stripe_beneath(seen, one, None)
        if inner and full:
            levels = {disk.level for disk in seen.disks.values() if disk.level}
            has_parity = bool(levels & {"raid4", "raid5", "raid6"}) if levels else parity
            return Stripe(inner, full, inner, full, has_parity, "the disks beneath")
        if one.unit and one.width:
            return Stripe(one.unit, one.width, one.unit, one.width, parity, f"sunit and swidth of {one.where}")
    raise UserError(
        "No stripe is known here: neither the disks nor the file system have one. Give --plan, or --segment and "
        "--stripe."
    )


def plan_document(target: str, stripe: Stripe, volume: int | None = None, repeats: int = REPEATS,
                  direct: bool = True) -> dict[str, Any]:  # fmt: skip
    """The plan that measures: every case `repeats` times, in turn."""
    step = max(stripe.width, stripe.stripe)
    wanted = volume if volume is not None else max(_LEAST_VOLUME, 16 * step)
    amount = -(-wanted // step) * step
    cases = {
        "aligned": (stripe.stripe, 0), "misaligned": (stripe.stripe, stripe.segment if stripe.segment < stripe.stripe
                                                      else stripe.stripe // 2),
        "unit": (stripe.unit, 0), "width": (stripe.width, 0),
    }  # fmt: skip
    phases = [
        {"id": f"{name}-{turn + 1}", "op": "write",
         "access": {"transfer": exact_bytes(transfer), "volume": exact_bytes(amount), "offset": exact_bytes(offset)}}
        for turn in range(repeats)
        # every other turn backwards: what drifts meets both ends alike
        for name, (transfer, offset) in (cases.items() if turn % 2 == 0 else reversed(cases.items()))
    ]  # fmt: skip
    return {
        "schema": "sonde-plan/1", "id": "layout-verify", "title": "Aligned and misaligned, one stripe unit and all",
        "target": {"path": target, "full_stripe": exact_bytes(stripe.stripe)}, "tasks": {"processes": 1},
        "data": {"files": {"mapping": "per_task"}, "access": {"transfer": exact_bytes(stripe.stripe)},
                 "io": {"direct": direct, "preallocate": "unwritten", "fsync": "end"}},
        "phases": phases,
    }  # fmt: skip


def rates_in(record: RecordReader) -> dict[str, tuple[float, ...]]:
    """Bytes per second of every case in a record, of the engine or of the simulator. Raises UserError."""
    found: dict[str, list[float]] = {name: [] for name in CASES}
    for name, phase in record.phases.items():
        case = name.rpartition("-")[0]
        if case in found and phase.end is not None and phase.end.seconds.elapsed:
            found[case].append((phase.end.bytes.moved or 0) / phase.end.seconds.elapsed)
    lacking = [name for name, values in found.items() if not any(values)]
    if lacking:
        raise UserError(f"The record has no phase {lacking[0]}-1; it is not one of sonde layout verify.")
    return {name: tuple(one for one in values if one > 0) for name, values in found.items()}


def judge(rates: dict[str, tuple[float, ...]], stripe: Stripe, plan: Laid | None = None,
          simulated: dict[str, tuple[float, ...]] | None = None) -> Measured:  # fmt: skip
    """Whether what was measured is what geometry, roll-up and (when given) a simulated record predict."""
    answers = [_alignment(rates, stripe), _width(rates, stripe)]
    if plan is not None and plan.rates.write is not None:
        answers.append(_roll_up(rates, plan))
    if simulated is not None:
        for words, one, other in (
            ("aligned by misaligned", "misaligned", "aligned"),
            ("all units by one", "unit", "width"),
        ):
            value = ratio(simulated[one], simulated[other]).value
            found = ratio(rates[one], rates[other])
            answers.append(_judged(f"simulated: {words}", found, (value / 1.25, value * 1.25),
                                   f"the simulator computes {value:.2f}, give or take a quarter"))  # fmt: skip
    return Measured(rates, tuple(answers))


def _judged(question: str, found: Ratio, predicted: tuple[float, float] | None, why: str) -> Answer:
    """A prediction holds when the interval of the measured ratio meets it, and fails when the two are apart."""
    if predicted is None or found.low is None or found.high is None:
        said = _OPEN if predicted is not None else "nothing is predicted"
        return Answer(question, found.value, found.low, found.high, predicted, said, f"{why}. {found.why}".strip(". "))
    low, high = predicted
    verdict = _FAILS if found.high < low or found.low > high else _HOLDS
    if verdict == _HOLDS and found.high > 4 * found.low:
        verdict = _OPEN
    return Answer(question, found.value, found.low, found.high, predicted, verdict, why)


def _alignment(rates: dict[str, tuple[float, ...]], stripe: Stripe) -> Answer:
    found = ratio(rates["misaligned"], rates["aligned"])
    if stripe.parity is None:
        return _judged("aligned by misaligned", found, None, "whether partial stripes are read first is unknown here")
    why = (
        "parity: a request that begins inside a stripe reads and writes two, unless a cache gathers them"
        if stripe.parity else "no parity: where a request begins makes no difference"
    )  # fmt: skip
    return _judged("aligned by misaligned", found, PARITY_RATIO if stripe.parity else SAME_RATIO, why)


def _width(rates: dict[str, tuple[float, ...]], stripe: Stripe) -> Answer:
    found = ratio(rates["unit"], rates["width"])
    members = stripe.width // stripe.unit
    if members < 2:
        return _judged("all units by one", found, SAME_RATIO, "there is one unit only")
    why = f"a request of the full width uses all {members} members at once, so at most {members} times as much"
    return _judged("all units by one", found, (1.0, float(members)), why)


def _roll_up(rates: dict[str, tuple[float, ...]], plan: Laid) -> Answer:
    limit = plan.rates.write or 0.0
    best = _median(rates["width"])
    share = best / limit if limit else 0.0
    verdict = _HOLDS if share <= ABOVE_ROLL_UP else _FAILS
    why = f"the roll-up is an upper bound, set by {plan.rates.limits['write']}; reached are {100 * share:.0f} %"
    if verdict == _FAILS:
        why += "; some rate in the system file is too low, or a cache took the writes"
    return Answer("rate of full widths", best, None, None, (0.0, limit), verdict, why)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
