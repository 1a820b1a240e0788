# SPDX-License-Identifier: Apache-2.0
"""Measures a layout: aligned against misaligned requests and one stripe unit against all of them, compared with the
prediction of the geometry and with the estimated bandwidth.

One plan has every case several times, in turn, so that other load on the machine affects all cases equally. The engine
measures the plan or the simulator computes it; both write a record with the same phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sonde.design.layout.check_stripe_units import find_unit_and_stripe_below
from sonde.design.layout.file_system_layout import FileSystemLayout
from sonde.design.layout.live.observations import ObservedStorage
from sonde.model.errors import UserError
from sonde.model.record import RecordReader
from sonde.model.units import format_bytes, format_exact_bytes
from sonde.stats.ratio import RateRatio, compare_rates

# Ratio of writing at stripe starts to writing inside stripes on parity RAID without a write cache: 271 to 136 MB/s were
# published (1.99), because a partial stripe is read before it is written. Without parity both rates are equal.
PARITY_RATIO, SAME_RATIO = (1.3, 2.3), (0.9, 1.1)
# The estimate is an upper bound: a rate above it by up to this factor is noise, more means a wrong system file.
ABOVE_ROLL_UP = 1.05
REPEATS = 6
_LEAST_VOLUME = 64 << 20
CASES = ("aligned", "misaligned", "unit", "width")
# Results of a comparison with a prediction.
_HOLDS, _FAILS, _OPEN = "holds", "fails", "undecided"


@dataclass(frozen=True)
class StripeGeometry:
    """Sizes in bytes: `segment` on one drive, the full `stripe` of a RAID group, `unit` and `width` of the device
    above.

    `parity` states whether a partial write must read first; None is unknown. `source` states where the sizes come from.
    """

    segment: int
    stripe: int
    unit: int
    width: int
    parity: bool | None
    source: str


@dataclass(frozen=True)
class PredictionCheck:
    """One compared quantity: the measured ratio or rate, the prediction (low, high), and whether it holds."""

    question: str
    measured: float
    low: float | None
    high: float | None
    predicted: tuple[float, float] | None
    verdict: str
    why: str


@dataclass(frozen=True)
class StripeMeasurement:
    """The rates of each case in bytes/s, one per repetition, and the checks of the predictions."""

    rates: dict[str, tuple[float, ...]]
    answers: tuple[PredictionCheck, ...]

    @property
    def holds(self) -> bool:
        return all(check.verdict != _FAILS for check in self.answers)


def choose_stripe_geometry(
    observed_storage: ObservedStorage,
    planned_layout: FileSystemLayout | None,
    stated_unit_and_width: tuple[int, int] | None = None,
    parity: bool | None = None,
) -> StripeGeometry:
    """The stripe to measure: as stated by the user, else of the plan, else below the file system. Raises UserError."""
    if stated_unit_and_width is not None:
        segment, stripe = stated_unit_and_width
        if stripe % segment or stripe < segment:
            raise UserError(
                f"A stripe of {format_bytes(stripe)} is no multiple of a segment of {format_bytes(segment)}; give both "
                "of one RAID group."
            )
        return StripeGeometry(segment, stripe, segment, stripe, parity, "as stated")
    if planned_layout is not None and planned_layout.devices:
        group = next(
            (
                group
                for group in planned_layout.first_device.list_raid_groups()
                if group.stripe_unit_bytes and group.raid_geometry and group.raid_geometry.data > 1
            ),
            None,
        )
        if group is not None and group.stripe_unit_bytes and group.full_stripe_bytes:
            geometry = group.raid_geometry
            striped = planned_layout.first_device.kind == "volumes"
            unit = (planned_layout.first_device.stripe_unit_bytes if striped else None) or group.stripe_unit_bytes
            width = (planned_layout.first_device.stripe_width_bytes if striped else None) or group.full_stripe_bytes
            parity = bool(geometry and geometry.parity)
            return StripeGeometry(
                group.stripe_unit_bytes,
                group.full_stripe_bytes,
                unit,
                width,
                parity,
                f"the plan of {planned_layout.id}",
            )
    for file_system in observed_storage.file_systems:
        inner, full = find_unit_and_stripe_below(observed_storage, file_system, None)
        if inner and full:
            levels = {disk.level for disk in observed_storage.disks.values() if disk.level}
            has_parity = bool(levels & {"raid4", "raid5", "raid6"}) if levels else parity
            return StripeGeometry(inner, full, inner, full, has_parity, "the disks below")
        if file_system.unit and file_system.width:
            return StripeGeometry(
                file_system.unit,
                file_system.width,
                file_system.unit,
                file_system.width,
                parity,
                f"sunit and swidth of {file_system.location}",
            )
    raise UserError(
        "No stripe is known: neither the disks nor the file system report one. Give --plan, or --segment and --stripe."
    )


def make_stripe_plan_document(
    target_directory: str,
    stripe_geometry: StripeGeometry,
    volume_bytes: int | None = None,
    repeat_count: int = REPEATS,
    uses_direct_io: bool = True,
) -> dict[str, Any]:
    """The plan of the measurement: every case `repeat_count` times, in turn."""
    step = max(stripe_geometry.width, stripe_geometry.stripe)
    requested = volume_bytes if volume_bytes is not None else max(_LEAST_VOLUME, 16 * step)
    amount = -(-requested // step) * step
    cases = {
        "aligned": (stripe_geometry.stripe, 0),
        "misaligned": (
            stripe_geometry.stripe,
            stripe_geometry.segment
            if stripe_geometry.segment < stripe_geometry.stripe
            else stripe_geometry.stripe // 2,
        ),
        "unit": (stripe_geometry.unit, 0),
        "width": (stripe_geometry.width, 0),
    }
    phases = [
        {
            "id": f"{name}-{turn + 1}",
            "op": "write",
            "access": {
                "transfer": format_exact_bytes(transfer),
                "volume": format_exact_bytes(amount),
                "offset": format_exact_bytes(offset),
            },
        }
        for turn in range(repeat_count)
        # every second turn in reverse order, so that a drift affects all cases equally
        for name, (transfer, offset) in (cases.items() if turn % 2 == 0 else reversed(cases.items()))
    ]
    return {
        "schema": "sonde-plan/2",
        "id": "layout-verify",
        "title": "Aligned and misaligned, one stripe unit and all",
        "target": {"path": target_directory, "full_stripe": format_exact_bytes(stripe_geometry.stripe)},
        "tasks": {"processes": 1},
        "data": {
            "files": {"mapping": "per_task"},
            "access": {"transfer": format_exact_bytes(stripe_geometry.stripe)},
            "io": {"direct": uses_direct_io, "preallocate": "unwritten", "fsync": "end"},
        },
        "phases": phases,
    }


def read_rates_by_case(record: RecordReader) -> dict[str, tuple[float, ...]]:
    """The rates of every case in a record of the engine or simulator, bytes/s. Raises UserError."""
    rates: dict[str, list[float]] = {name: [] for name in CASES}
    for name, phase in record.phases.items():
        case = name.rpartition("-")[0]
        if case in rates and phase.end is not None and phase.end.seconds.elapsed:
            rates[case].append((phase.end.bytes.transferred or 0) / phase.end.seconds.elapsed)
    lacking = [name for name, values in rates.items() if not any(values)]
    if lacking:
        raise UserError(f"The record has no phase {lacking[0]}-1; it is not one of sonde layout verify.")
    return {name: tuple(value for value in values if value > 0) for name, values in rates.items()}


def evaluate_stripe_measurement(
    rates_by_case: dict[str, tuple[float, ...]],
    stripe_geometry: StripeGeometry,
    planned_layout: FileSystemLayout | None = None,
    simulated_rates: dict[str, tuple[float, ...]] | None = None,
) -> StripeMeasurement:
    """Compares the measured rates with the predictions of the geometry, of the estimated bandwidth and, if given, of a
    simulated record."""
    answers = [
        _check_alignment_prediction(rates_by_case, stripe_geometry),
        _check_width_prediction(rates_by_case, stripe_geometry),
    ]
    if planned_layout is not None and planned_layout.rates.write is not None:
        answers.append(_check_whole_device_prediction(rates_by_case, planned_layout))
    if simulated_rates is not None:
        for question, case, other in (
            ("aligned by misaligned", "misaligned", "aligned"),
            ("all units by one", "unit", "width"),
        ):
            value = compare_rates(simulated_rates[case], simulated_rates[other]).value
            measured = compare_rates(rates_by_case[case], rates_by_case[other])
            answers.append(_check_prediction(f"simulated: {question}", measured, (value / 1.25, value * 1.25),
                                   f"the simulator computes {value:.2f}, give or take a quarter"))  # fmt: skip
    return StripeMeasurement(rates_by_case, tuple(answers))


def _check_prediction(
    question: str, measured_ratio: RateRatio, predicted_interval: tuple[float, float] | None, prediction_reason: str
) -> PredictionCheck:
    """A prediction holds if it overlaps the interval of the measured ratio, and fails if they are disjoint.

    It stays open if there is no interval, or one whose ends differ by more than a factor of 4.
    """
    if predicted_interval is None or measured_ratio.low is None or measured_ratio.high is None:
        answer = _OPEN if predicted_interval is not None else "nothing is predicted"
        return PredictionCheck(
            question,
            measured_ratio.value,
            measured_ratio.low,
            measured_ratio.high,
            predicted_interval,
            answer,
            f"{prediction_reason}. {measured_ratio.why}".strip(". "),
        )
    low, high = predicted_interval
    verdict = _FAILS if measured_ratio.high < low or measured_ratio.low > high else _HOLDS
    if verdict == _HOLDS and measured_ratio.high > 4 * measured_ratio.low:
        verdict = _OPEN
    return PredictionCheck(
        question,
        measured_ratio.value,
        measured_ratio.low,
        measured_ratio.high,
        predicted_interval,
        verdict,
        prediction_reason,
    )


def _check_alignment_prediction(
    rates_by_case: dict[str, tuple[float, ...]], stripe_geometry: StripeGeometry
) -> PredictionCheck:
    measured = compare_rates(rates_by_case["misaligned"], rates_by_case["aligned"])
    if stripe_geometry.parity is None:
        return _check_prediction(
            "aligned by misaligned", measured, None, "it is unknown whether partial stripes are read first"
        )
    why = (
        "parity: a request that begins inside a stripe reads and writes two, unless a cache gathers them"
        if stripe_geometry.parity else "no parity: where a request begins makes no difference"
    )  # fmt: skip
    return _check_prediction(
        "aligned by misaligned", measured, PARITY_RATIO if stripe_geometry.parity else SAME_RATIO, why
    )


def _check_width_prediction(
    rates_by_case: dict[str, tuple[float, ...]], stripe_geometry: StripeGeometry
) -> PredictionCheck:
    measured = compare_rates(rates_by_case["unit"], rates_by_case["width"])
    members = stripe_geometry.width // stripe_geometry.unit
    if members < 2:
        return _check_prediction("all units by one", measured, SAME_RATIO, "there is one unit only")
    why = f"a request of the full width uses all {members} members at once, so at most {members} times as much"
    return _check_prediction("all units by one", measured, (1.0, float(members)), why)


def _check_whole_device_prediction(
    rates_by_case: dict[str, tuple[float, ...]], planned_layout: FileSystemLayout
) -> PredictionCheck:
    limit = planned_layout.rates.write or 0.0
    best = _compute_median(rates_by_case["width"])
    share = best / limit if limit else 0.0
    verdict = _HOLDS if share <= ABOVE_ROLL_UP else _FAILS
    why = (
        f"the estimate is an upper bound, set by {planned_layout.rates.limits['write']}; measured were "
        f"{100 * share:.0f} %"
    )
    if verdict == _FAILS:
        why += "; some rate in the system file is too low, or a cache took the writes"
    return PredictionCheck("rate of full widths", best, None, None, (0.0, limit), verdict, why)


def _compute_median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
