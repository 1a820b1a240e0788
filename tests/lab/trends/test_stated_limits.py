# SPDX-License-Identifier: Apache-2.0
"""Limits that somebody wrote: 10 GB/s less a tenth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sonde.model.errors import UserError
from sonde.store.summary import Summary
from sonde.trends.stated_limits import LimitCheck, StatedLimit, check_limit_against_runs, parse_limit

Fake = Callable[..., Path]


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("write=10GB/s", 10e9),
        ("write = 10 GB/s - 10 %", 9e9),
        ("write=10GiB/s-2.5%", 0.975 * 10 * (1 << 30)),
        ("stat=20kop/s", 20e3),
        ("read-after-write=1GB/s-5%", 0.95e9),
    ],
)
def test_a_limit_is_a_rate_less_its_tolerance(text: str, least: float) -> None:
    assert parse_limit(text).least == pytest.approx(least)


@pytest.mark.parametrize(
    ("text", "expected_reason"),
    [
        ("10GB/s", "is not PHASE=RATE"),
        ("write=10", "--at-least write: "),
        ("write=10GB/s-100%", "which leaves nothing"),
        ("=10GB/s", "is not PHASE=RATE"),
    ],
)
def test_invalid_limit_is_rejected_with_the_reason(text: str, expected_reason: str) -> None:
    with pytest.raises(UserError, match=expected_reason):
        parse_limit(text)


def test_gate_passes_only_rates_that_reach_the_limit(
    fake_engine: Fake, sonde: Any, target: Path, archive: Path
) -> None:
    assert sonde("run", "quick", "--on", target, "--no-report", "-q").code == 0
    (run,) = archive.glob("20*/*/run.json")
    rate = next(phase["bytes_per_s"] for phase in json.loads(run.read_text())["phases"] if phase["phase"] == "write")
    for share, code in ((0.99, 0), (1.01, 1)):
        completed = sonde(
            "gate", "last", "--at-least", f"write={share * rate / 1e6:.6f}MB/s", "--retests", "0", "--json"
        )
        assert completed.code == code, completed.err
        assert completed.json["good"] is (code == 0)
    assert sonde("gate", "last", "--at-least", f"write={rate * 1.05 / 1e6:.6f}MB/s-10%", "--retests", "0").code == 0
    none = sonde("gate", "last", "--at-least", "wrote=1MB/s")
    assert (none.code, len(none.sentences)) == (2, 1)
    assert 'Did you mean "write"?' in none.err
    assert sonde("gate", "last").sentences == [
        "sonde: Say what to compare with: --baseline NAME, or --at-least PHASE=RATE."
    ]


def test_limit_has_phase_and_unit_or_an_error() -> None:
    assert parse_limit(" read = 2 GB/s ") == StatedLimit("read", 2e9, False)
    assert parse_limit("stat=20kop/s-25%") == StatedLimit("stat", 15e3, True)
    assert parse_limit("a b=1MB/s-99.5%") == StatedLimit("a b", pytest.approx(5e3), False)  # type: ignore[arg-type]
    assert StatedLimit("x", 1.0, True).format_rate(2000.0) == "2,000 op/s"
    assert StatedLimit("x", 1.0, False).format_rate(2e9) == "2.00 GB/s"
    for text, sentence in (
        ("10GB/s", '--at-least "10GB/s" is not PHASE=RATE; write it like write=10GB/s or write=10GB/s-10%.'),
        ("write=10GB/s-100%", '--at-least "write=10GB/s-100%" takes 100 % off, which leaves nothing.'),
    ):
        with pytest.raises(UserError) as wrong:
            parse_limit(text)
        assert str(wrong.value) == sentence


def run(*phases: Mapping[str, object]) -> Summary:
    finished = [{"phase": "write", "done": True, **phase} for phase in phases]
    return cast(Summary, SimpleNamespace(id=f"run-{len(finished)}", phases=finished))


def test_runs_are_held_against_a_limit_by_their_finished_phases() -> None:
    good, bad = {"bytes_per_s": 3e9, "ops_per_s": 30}, {"bytes_per_s": 1e9, "ops_per_s": 10.5}
    runs = [run(good), run(bad, {"phase": "read", **good}), run({"done": False, **good}), run({"bytes_per_s": None})]
    assert check_limit_against_runs(StatedLimit("write", 2e9, False), runs) == LimitCheck(
        "write", 2e9, False, (3e9, 1e9), runs=("run-1", "run-2")
    )
    assert check_limit_against_runs(StatedLimit("write", 20.0, True), runs).measured == (30.0, 10.5)
    assert [LimitCheck("w", 2.0, False, measured).is_too_slow for measured in ((1.0, 1.9), (1.0, 2.0), (3.0,))] == [
        True,
        False,
        False,
    ]
    with pytest.raises(UserError) as none:
        check_limit_against_runs(StatedLimit("reed", 1.0, False), [*runs, run({"phase": "idle", "bytes_per_s": 0.0})])
    assert str(none.value) == (
        '--at-least reed: there is no finished phase of that name; there are write, read. Did you mean "read"?'
    )
