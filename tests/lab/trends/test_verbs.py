# SPDX-License-Identifier: Apache-2.0
"""compare, trend, baseline and gate on archives whose answers are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.store.tags import change_tags

AddRun = Callable[..., Path]
Sonde = Callable[..., Any]
SYSTEMS = ("lustre:fs1 /scratch", "lustre:fs2 /scratch", "lustre:fs3 /scratch")
TESTS = ("posix-10k", "mpiio-10k", "posix-1m", "mpiio-1m")
SLOW_NUMBER = ("mpiio-10k", "read")


def edison(add_run: AddRun, days: range, slow_from: int | None = None, seed: int = 1) -> None:
    """Four tests, reads and writes, on three file systems; one kind of read loses 70 % on all of them."""
    random = np.random.default_rng(seed)
    for day, (number, storage), test in itertools.product(days, enumerate(SYSTEMS), TESTS):
        rates = {}
        for op in ("write", "read"):
            factor = 0.28 if slow_from is not None and day >= slow_from and (test, op) == SLOW_NUMBER else 1.0
            rates[(op, op)] = 1e9 * (1 + number) * factor * float(np.exp(random.normal(0, 0.05)))
        later = slow_from is not None and day >= slow_from
        node = {"kernel": "Linux 3.0.101-cle51"} if later else {}
        add_run(day + number / 50, rates, plan=test, storage=storage, node=node)


def test_compare_flags_exactly_the_changed_numbers(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    edison(add_run, range(16), slow_from=8)
    completed = sonde("compare", "2026-01-01..2026-01-08", "2026-01-09..2026-01-31", "--json", "--check")
    assert completed.code == 1
    numbers = completed.json["numbers"]
    assert len(numbers) == 24
    flagged = {
        (number["plan"], number["key"]["op"], number["key"]["file_system"]) for number in numbers if _changed(number)
    }
    assert flagged == {(*SLOW_NUMBER, storage) for storage in SYSTEMS}
    assert all(0.2 < number["ratio"]["value"] < 0.4 for number in numbers if _changed(number))
    others = [number for number in numbers if not _changed(number)]
    assert all(number["smallest_visible_drop"] is not None for number in others)
    assert [difference["name"] for difference in completed.json["environment"]] == ["kernel"]


def _changed(number: dict[str, Any]) -> bool:
    return number["verdict"] in ("slower", "faster")


def test_two_like_halves_have_no_flagged_number(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    edison(add_run, range(16), seed=9)
    completed = sonde("compare", "2026-01-01..2026-01-08", "2026-01-09..2026-01-31", "--json", "--check")
    assert completed.code == 0
    assert not [number for number in completed.json["numbers"] if _changed(number)]
    assert completed.json["environment"] == []


def test_few_runs_give_a_ratio_and_no_verdict(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    for day in range(4):
        add_run(day, {("read", "read"): 1e9 if day < 2 else 4e8})
    completed = sonde("compare", "2026-01-01..2026-01-02", "2026-01-03..2026-01-04")
    assert completed.code == 0
    assert "an interval needs 5 runs on each side; here are 2 and 2" in completed.out
    assert "−60 %" in completed.out


def test_comparison_of_two_file_systems_is_allowed_and_reported(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    for day in range(6):
        change_tags(add_run(day, {("read", "read"): 1e9 + day}, storage="lustre:fs1 /a"), added_tags=["old"])
        change_tags(add_run(day + 0.5, {("read", "read"): 5e8 + day}, storage="lustre:fs2 /b"), added_tags=["new"])
    completed = sonde("compare", "tag:old", "tag:new", "--json")
    assert completed.code == 0, completed.err
    (number,) = completed.json["numbers"]
    assert number["ratio"]["value"] == pytest.approx(0.5, rel=1e-6)
    assert number["verdict"] == "slower"
    assert number["differs_in"] == [{"name": "file system", "before": "lustre:fs1 /a", "after": "lustre:fs2 /b"}]
    assert "not the same file system" in sonde("compare", "tag:old", "tag:new").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "last", "tag:nobody"), '"tag:nobody" means no run'),
        (("compare", "2026-13-01..", "last"), "is not a time"),
        (("gate", "last", "--baseline", "none"), 'There is no baseline "none"'),
        (("baseline", "set", "bad name!", "last"), "cannot be a tag"),
        (("baseline", "rm", "absent"), 'no baseline "absent"'),
        (("trend", "--plan", "nothing"), "holds no history like that"),
    ],
)
def test_bad_arguments_get_one_sentence(
    sonde: Sonde, add_run: AddRun, archive: Path, arguments: tuple[str, ...], message: str
) -> None:
    add_run(0, {("read", "read"): 1e9})
    completed = sonde(*arguments)
    assert completed.code == 2
    assert len(completed.sentences) == 1
    assert message in completed.err


def test_baseline_is_created_displayed_and_deleted(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    folders = [add_run(day, {("read", "read"): 1e9 * (1 + day / 100)}) for day in range(8)]
    assert sonde("baseline", "set", "good", "2026-01-01..2026-01-06").code == 0
    baseline = sonde("baseline", "show", "good", "--json").json
    assert len(baseline["runs"]) == 6
    assert baseline["numbers"][0]["median"] == pytest.approx(1e9 * (1.02 * 1.03) ** 0.5)
    assert baseline["numbers"][0]["limit"] == pytest.approx(0.85 * 1e9 * (1.02 * 1.03) ** 0.5)
    sonde("baseline", "set", "good", folders[-1].name, "--add")
    assert sonde("baseline", "show", "--json").json == [{"name": "good", "runs": 7}]
    sonde("baseline", "set", "good", folders[0].name)
    assert sonde("baseline", "show", "--json").json == [{"name": "good", "runs": 1}]
    assert "needs 5 runs" in sonde("baseline", "show", "good").out
    assert sonde("baseline", "rm", "good").code == 0
    assert "There is no baseline" in sonde("baseline", "show").out


def test_gate_passes_usual_rates_and_fails_unusual_rates(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    random = np.random.default_rng(1)
    for day in range(10):
        add_run(day, {(op, op): 1e9 * float(np.exp(random.normal(0, 0.02))) for op in ("read", "write")})
    sonde("baseline", "set", "good", "2026-01-01..2026-01-10")
    add_run(20, {("read", "read"): 9e8, ("write", "write"): 1.1e9})
    assert sonde("gate", "last", "--baseline", "good", "--retests", "0").code == 0
    add_run(21, {("read", "read"): 7e8, ("write", "write"): 1e9})
    completed = sonde("gate", "last", "--baseline", "good", "--retests", "0", "--json")
    assert completed.code == 1
    assert {number["key"]["op"]: number["good"] for number in completed.json["numbers"]} == {
        "read": False,
        "write": True,
    }
    assert completed.json["good"] is False
    assert "Too slow" in sonde("gate", "last", "--baseline", "good", "--retests", "0").out


def test_gate_passes_if_any_run_of_a_group_is_good(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    for day in range(6):
        add_run(day, {("read", "read"): 1e9 + day})
    sonde("baseline", "set", "good", "2026-01-01..2026-01-06")
    for rate in (5e8, 5e8, 9.9e8):
        add_run(20, {("read", "read"): rate}, group="three")
    assert sonde("gate", "three", "--baseline", "good", "--retests", "0").code == 0


def test_a_baseline_of_few_runs_cannot_judge(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    for day in range(4):
        add_run(day, {("read", "read"): 1e9})
    sonde("baseline", "set", "good", "2026-01-01..2026-01-03")
    completed = sonde("gate", "last", "--baseline", "good")
    assert completed.code == 2
    assert "holds 3 runs of read; a limit needs 5" in completed.err


def test_change_on_all_file_systems_is_one_joint_change(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    edison(add_run, range(70), slow_from=66)
    completed = sonde("trend", "--json", "--check")
    assert completed.code == 1
    document = completed.json
    assert len(document["histories"]) == 24
    assert document["calibration"]["from_site_noise"] is True
    slower = {
        (history["labels"]["experiment"], history["labels"]["operation"])
        for history in document["histories"]
        if history["slower"]
    }
    assert slower == {SLOW_NUMBER}
    (joint,) = document["joint_changes"]
    (part,) = joint["parts"]
    (scope,) = part["scopes"]
    assert set(scope["conditions"].values()) == set(SLOW_NUMBER)
    assert scope["spans"] == {"file_system": [3, 3]}
    assert (scope["spared"], part["cause"], part["certainty"]) == (0, "clients", "clear")
    assert {history["runs_to_notice"] for history in part["changes"]} == {3}
    assert document["summary"].startswith("Slower now: ")
    text = sonde("trend").out
    assert "False alarms:" in text
    assert text.startswith("Slower now: mpiio-10k")
    assert "mpiio-10k read on all" in text


def test_repeats_of_a_probe_are_one_value(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    for day in range(6):
        for repeat, rate in enumerate((8e8, 1e9, 6e8)):
            add_run(day + repeat / 1000, {("read", "read"): rate}, group=f"probe-{day}")
    for measure, level in (("delivered", 8e8), ("capability", 1e9)):
        (series,) = sonde("trend", "--measure", measure, "--json").json["histories"]
        assert series["runs"] == 6
        assert series["level"] == pytest.approx(level)


def test_trend_names_a_new_kernel_in_text_and_json(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    """Also from the cache, when no record can be read any more."""
    folders = []
    for day in range(24):
        kernel = "Linux 6.1" if day < 16 else "Linux 6.8"
        rate = (1e9 if day < 16 else 5e8) * (1 + (day % 5) / 1000)
        folders.append(add_run(day, {("read", "read"): rate}, node={"kernel": kernel}))
    title = "The environment of the runs changed: kernel"
    for _ in range(2):
        assert title in " ".join(sonde("trend").out.split())
        (joint,) = sonde("trend", "--json").json["joint_changes"]
        assert [event["title"] for event in joint["events"]] == [title]
        for folder in folders:
            (folder / "record.ndjson").unlink(missing_ok=True)
