# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a layout measurement, with rates that are known beforehand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.live.observations import ObservedDisk, ObservedFileSystem, ObservedStorage
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.stripe_measurement import (
    CASES,
    StripeGeometry,
    choose_stripe_geometry,
    evaluate_stripe_measurement,
    make_stripe_plan_document,
    read_rates_by_case,
)
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.system import read_system

TALK = StripeGeometry(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, True, "the talk")


def spread_around(rate: float, spread: float = 0.02) -> tuple[float, ...]:
    return tuple(rate * (1 + spread * step) * 1e6 for step in (-1, -0.5, 0, 0.3, 0.6, 1))


def verdicts(stripe: StripeGeometry, **rates: tuple[float, ...]) -> dict[str, str]:
    return {check.question: check.verdict for check in evaluate_stripe_measurement(rates, stripe).answers}


def test_published_rates_match_parity() -> None:
    """271 against 136 MB/s at another offset, 362 against 847 MB/s with one unit and all six."""
    measurement = evaluate_stripe_measurement(
        {
            "aligned": spread_around(271),
            "misaligned": spread_around(136),
            "unit": spread_around(362),
            "width": spread_around(847),
        },
        TALK,
    )
    alignment, width = measurement.answers
    assert alignment.measured == pytest.approx(271 / 136, rel=0.02)
    assert width.measured == pytest.approx(847 / 362, rel=0.02)
    assert (alignment.verdict, width.verdict) == ("holds", "holds")
    assert measurement.holds


def test_equal_rates_contradict_parity_and_match_a_mirror() -> None:
    rates = {
        "aligned": spread_around(271),
        "misaligned": spread_around(271),
        "unit": spread_around(400),
        "width": spread_around(500),
    }
    assert verdicts(TALK, **rates)["aligned by misaligned"] == "fails"
    mirror = StripeGeometry(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, False, "made")
    assert verdicts(mirror, **rates)["aligned by misaligned"] == "holds"
    unknown = StripeGeometry(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, None, "made")
    assert verdicts(unknown, **rates)["aligned by misaligned"] == "nothing is predicted"


def test_rate_above_all_members_fails_and_noise_is_undecided() -> None:
    fast = {
        "aligned": spread_around(200),
        "misaligned": spread_around(100),
        "unit": spread_around(100),
        "width": spread_around(900),
    }
    assert verdicts(TALK, **fast)["all units by one"] == "fails"
    noise = fast | {"aligned": spread_around(200, 0.9), "misaligned": spread_around(100, 0.9)}
    assert verdicts(TALK, **noise)["aligned by misaligned"] == "undecided"
    few = {name: values[:2] for name, values in fast.items()}
    assert verdicts(TALK, **few)["aligned by misaligned"] == "undecided"


def test_rate_above_the_estimate_reports_a_wrong_system_file() -> None:
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("large")
    rates = {
        "aligned": spread_around(271),
        "misaligned": spread_around(136),
        "unit": spread_around(362),
        "width": spread_around(847),
    }
    last = evaluate_stripe_measurement(rates, TALK, plan).answers[-1]
    assert last.verdict == "holds"
    assert "measured were 85 %" in last.why
    wrong = evaluate_stripe_measurement(rates | {"width": spread_around(2000)}, TALK, plan).answers[-1]
    assert wrong.verdict == "fails"


def test_measurement_is_compared_with_a_simulated_record() -> None:
    rates = {
        "aligned": spread_around(271),
        "misaligned": spread_around(136),
        "unit": spread_around(362),
        "width": spread_around(847),
    }
    same = {name: tuple(value * 3 for value in values) for name, values in rates.items()}
    assert evaluate_stripe_measurement(rates, TALK, simulated_rates=same).holds
    flat = rates | {"misaligned": spread_around(271)}
    assert not evaluate_stripe_measurement(rates, TALK, simulated_rates=flat).holds


def test_stripe_comes_from_user_plan_or_disks() -> None:
    plan = plan_layout(read_system(find_system_file("cray-x1"))).get_layout("large")
    assert choose_stripe_geometry(ObservedStorage(), plan) == StripeGeometry(
        256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, True, "the plan of large"
    )
    disk = ObservedDisk("md0", "md", level="raid6", data=8, unit=128 * KIB)
    storage = ObservedStorage((ObservedFileSystem("/s", "xfs", "/dev/md0", unit=0, width=0),), {"md0": disk})
    assert choose_stripe_geometry(storage, None) == StripeGeometry(
        128 * KIB, MIB, 128 * KIB, MIB, True, "the disks below"
    )
    only = ObservedStorage((ObservedFileSystem("/s", "xfs", unit=128 * KIB, width=MIB),))
    assert choose_stripe_geometry(only, None).source == "sunit and swidth of /s"
    assert choose_stripe_geometry(ObservedStorage(), None, (64 * KIB, 256 * KIB), False).parity is False
    with pytest.raises(UserError, match="No stripe is known"):
        choose_stripe_geometry(ObservedStorage(), None)
    with pytest.raises(UserError, match="is no multiple of a segment"):
        choose_stripe_geometry(ObservedStorage(), None, (100 * KIB, 256 * KIB))


def test_measurement_plan_alternates_cases_at_their_offsets() -> None:
    document = make_stripe_plan_document("/scratch", TALK, repeat_count=2)
    plan = Plan.from_document(document, "made")
    assert [phase["id"] for phase in plan.phases] == [
        *(f"{name}-1" for name in CASES),
        *(f"{name}-2" for name in reversed(CASES)),
    ]  # fmt: skip
    access = {phase["id"]: phase["access"] for phase in plan.phases}
    assert access["aligned-1"] == {"transfer": "2MiB", "volume": "192MiB", "offset": "0B"}
    assert access["misaligned-1"]["offset"] == "256KiB"
    assert access["width-1"]["transfer"] == "12MiB"
    single = StripeGeometry(MIB, MIB, MIB, MIB, False, "made")
    inside = make_stripe_plan_document("/scratch", single, repeat_count=1)["phases"][1]["access"]
    assert inside["offset"] == "512KiB"


def test_record_without_the_cases_is_one_sentence() -> None:
    with pytest.raises(UserError, match="is not one of sonde layout verify"):
        read_rates_by_case(RecordReader())


@pytest.mark.engine
def test_paced_rates_are_measured_exactly(engine: object, sonde: object, target: Path, tmp_path: Path) -> None:
    """The plan of a verification on a schedule instead of storage: 1 GB/s, whatever offset and transfer are."""
    document = make_stripe_plan_document(str(target), TALK, 16 * MIB, repeat_count=5, uses_direct_io=False)
    document["data"] |= {"backend": "paced", "io": {},
                         "paced": {"virtual_clock": True, "schedule": [{"at": "0s", "rate": "1GB/s"}]}}  # fmt: skip
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    result = sonde("run", path, "--json", "--no-report")  # type: ignore[operator]
    assert result.code == 0, result.err
    by_case: dict[str, list[float]] = {}
    for phase in result.json["phases"]:
        by_case.setdefault(phase["phase"].rpartition("-")[0], []).append(phase["bytes_per_s"])
    assert set(by_case) == set(CASES)
    for values in by_case.values():
        assert values == pytest.approx([1e9] * 5, rel=1e-3)
    same = StripeGeometry(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, False, "made")
    answers = evaluate_stripe_measurement({name: tuple(values) for name, values in by_case.items()}, same).answers
    assert [check.verdict for check in answers] == ["holds", "holds"]
    assert answers[0].measured == pytest.approx(1, rel=1e-3)


@pytest.mark.engine
def test_measured_directory_is_empty_afterwards(engine: object, sonde: object, target: Path, archive: Path) -> None:
    options = (
        "--segment",
        "64KiB",
        "--stripe",
        "256KiB",
        "--no-parity",
        "--volume",
        "1MiB",
        "--repeats",
        "2",
        "--buffered",
    )
    result = sonde("layout", "verify", target, *options, "--json")  # type: ignore[operator]
    assert result.code in (0, 1), result.err
    assert {name: len(values) for name, values in result.json["rates"].items()} == dict.fromkeys(CASES, 2)
    assert [answer["question"] for answer in result.json["answers"]] == ["aligned by misaligned", "all units by one"]
    assert list(target.iterdir()) == []
