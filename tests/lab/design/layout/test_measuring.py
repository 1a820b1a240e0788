# SPDX-License-Identifier: Apache-2.0
"""What a measurement of a layout says, with rates that are known beforehand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sonde.design.layout import measuring
from sonde.design.layout.geometry import KIB, MIB
from sonde.design.layout.live.seen import Seen, SeenDisk, SeenFileSystem
from sonde.design.layout.measuring import Stripe, judge, plan_document, rates_in, stripe_of
from sonde.design.layout.plan import plan_layout
from sonde.model.errors import UserError
from sonde.model.plan import Plan
from sonde.model.record import RecordReader
from sonde.model.shipped import system_source
from sonde.model.system import read_system

TALK = Stripe(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, True, "the talk")


def around(rate: float, spread: float = 0.02) -> tuple[float, ...]:
    return tuple(rate * (1 + spread * step) * 1e6 for step in (-1, -0.5, 0, 0.3, 0.6, 1))


def verdicts(stripe: Stripe, **rates: tuple[float, ...]) -> dict[str, str]:
    return {one.question: one.verdict for one in judge(rates, stripe).answers}


def test_the_rates_of_the_talk_are_those_of_parity() -> None:
    """271 against 136 MB/s at another offset, 362 against 847 MB/s with one unit and all six."""
    found = judge({"aligned": around(271), "misaligned": around(136), "unit": around(362), "width": around(847)}, TALK)
    alignment, width = found.answers
    assert alignment.measured == pytest.approx(271 / 136, rel=0.02)
    assert width.measured == pytest.approx(847 / 362, rel=0.02)
    assert (alignment.verdict, width.verdict) == ("holds", "holds")
    assert found.holds


def test_equal_rates_contradict_parity_and_fit_a_mirror() -> None:
    rates = {"aligned": around(271), "misaligned": around(271), "unit": around(400), "width": around(500)}
    assert verdicts(TALK, **rates)["aligned by misaligned"] == "does not hold"
    mirror = Stripe(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, False, "made")
    assert verdicts(mirror, **rates)["aligned by misaligned"] == "holds"
    unknown = Stripe(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, None, "made")
    assert verdicts(unknown, **rates)["aligned by misaligned"] == "nothing is predicted"


def test_more_than_all_members_is_contradicted_and_noise_says_nothing() -> None:
    fast = {"aligned": around(200), "misaligned": around(100), "unit": around(100), "width": around(900)}
    assert verdicts(TALK, **fast)["all units by one"] == "does not hold"
    noise = fast | {"aligned": around(200, 0.9), "misaligned": around(100, 0.9)}
    assert verdicts(TALK, **noise)["aligned by misaligned"] == "cannot be told"
    few = {name: values[:2] for name, values in fast.items()}
    assert verdicts(TALK, **few)["aligned by misaligned"] == "cannot be told"


def test_a_rate_above_the_roll_up_says_that_the_map_is_wrong() -> None:
    plan = plan_layout(read_system(system_source("cray-x1"))).of("large")
    rates = {"aligned": around(271), "misaligned": around(136), "unit": around(362), "width": around(847)}
    last = judge(rates, TALK, plan).answers[-1]
    assert last.verdict == "holds"
    assert "reached are 85 %" in last.why
    wrong = judge(rates | {"width": around(2000)}, TALK, plan).answers[-1]
    assert wrong.verdict == "does not hold"


def test_a_simulated_record_is_held_against_the_measured_one() -> None:
    rates = {"aligned": around(271), "misaligned": around(136), "unit": around(362), "width": around(847)}
    same = {name: tuple(value * 3 for value in values) for name, values in rates.items()}
    assert judge(rates, TALK, simulated=same).holds
    flat = rates | {"misaligned": around(271)}
    assert not judge(rates, TALK, simulated=flat).holds


def test_the_stripe_is_that_of_the_plan_or_the_disks_or_what_is_told() -> None:
    plan = plan_layout(read_system(system_source("cray-x1"))).of("large")
    assert stripe_of(Seen(), plan) == Stripe(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, True, "the plan of large")
    disk = SeenDisk("md0", "md", level="raid6", data=8, unit=128 * KIB)
    seen = Seen((SeenFileSystem("/s", "xfs", "/dev/md0", unit=0, width=0),), {"md0": disk})
    assert stripe_of(seen, None) == Stripe(128 * KIB, MIB, 128 * KIB, MIB, True, "the disks beneath")
    only = Seen((SeenFileSystem("/s", "xfs", unit=128 * KIB, width=MIB),))
    assert stripe_of(only, None).source == "sunit and swidth of /s"
    assert stripe_of(Seen(), None, (64 * KIB, 256 * KIB), False).parity is False
    with pytest.raises(UserError, match="No stripe is known here"):
        stripe_of(Seen(), None)
    with pytest.raises(UserError, match="is no multiple of a segment"):
        stripe_of(Seen(), None, (100 * KIB, 256 * KIB))


def test_the_plan_has_every_case_in_turn_at_the_right_offsets() -> None:
    document = plan_document("/scratch", TALK, repeats=2)
    plan = Plan.from_document(document, "made")
    assert [phase["id"] for phase in plan.phases] == [
        *(f"{name}-1" for name in measuring.CASES), *(f"{name}-2" for name in reversed(measuring.CASES)),
    ]  # fmt: skip
    access = {phase["id"]: phase["access"] for phase in plan.phases}
    assert access["aligned-1"] == {"transfer": "2MiB", "volume": "192MiB", "offset": "0B"}
    assert access["misaligned-1"]["offset"] == "256KiB"
    assert access["width-1"]["transfer"] == "12MiB"
    single = Stripe(MIB, MIB, MIB, MIB, False, "made")
    inside = plan_document("/scratch", single, repeats=1)["phases"][1]["access"]
    assert inside["offset"] == "512KiB"


def test_a_record_without_the_phases_is_one_sentence() -> None:
    with pytest.raises(UserError, match="is not one of sonde layout verify"):
        rates_in(RecordReader())


@pytest.mark.engine
def test_known_rates_come_out_exactly(engine: object, sonde: object, target: Path, tmp_path: Path) -> None:
    """The plan of a verification on a schedule instead of storage: 1 GB/s, whatever offset and transfer are."""
    document = plan_document(str(target), TALK, 16 * MIB, repeats=5, direct=False)
    document["data"] |= {"backend": "paced", "io": {},
                         "paced": {"virtual_clock": True, "schedule": [{"at": "0s", "rate": "1GB/s"}]}}  # fmt: skip
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    said = sonde("run", path, "--json", "--no-report")  # type: ignore[operator]
    assert said.code == 0, said.err
    by_case: dict[str, list[float]] = {}
    for phase in said.json["phases"]:
        by_case.setdefault(phase["phase"].rpartition("-")[0], []).append(phase["bytes_per_s"])
    assert set(by_case) == set(measuring.CASES)
    for values in by_case.values():
        assert values == pytest.approx([1e9] * 5, rel=1e-3)
    same = Stripe(256 * KIB, 2 * MIB, 2 * MIB, 12 * MIB, False, "made")
    answers = judge({name: tuple(values) for name, values in by_case.items()}, same).answers
    assert [one.verdict for one in answers] == ["holds", "holds"]
    assert answers[0].measured == pytest.approx(1, rel=1e-3)


@pytest.mark.engine
def test_a_directory_is_measured_and_left_empty(engine: object, sonde: object, target: Path, archive: Path) -> None:
    words = (
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
    said = sonde("layout", "verify", target, *words, "--json")  # type: ignore[operator]
    assert said.code in (0, 1), said.err
    assert {name: len(values) for name, values in said.json["rates"].items()} == dict.fromkeys(measuring.CASES, 2)
    assert [one["question"] for one in said.json["answers"]] == ["aligned by misaligned", "all units by one"]
    assert list(target.iterdir()) == []
