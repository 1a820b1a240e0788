# SPDX-License-Identifier: Apache-2.0
"""Limits that somebody wrote: 10 GB/s less a tenth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import UserError
from sonde.trends.limits import read_limit

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
    assert read_limit(text).least == pytest.approx(least)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10GB/s", "is not PHASE=RATE"),
        ("write=10", "--at-least write: "),
        ("write=10GB/s-100%", "which leaves nothing"),
        ("=10GB/s", "is not PHASE=RATE"),
    ],
)
def test_what_is_no_limit_is_told(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_limit(text)


def test_the_gate_opens_for_what_reaches_the_limit_only(fake: Fake, sonde: Any, target: Path, archive: Path) -> None:
    assert sonde("run", "quick", "--on", target, "--no-report", "-q").code == 0
    (run,) = archive.glob("20*/*/run.json")
    rate = next(one["bytes_per_s"] for one in json.loads(run.read_text())["phases"] if one["phase"] == "write")
    for share, code in ((0.99, 0), (1.01, 1)):
        said = sonde("gate", "last", "--at-least", f"write={share * rate / 1e6:.6f}MB/s", "--retests", "0", "--json")
        assert said.code == code, said.err
        assert said.json["good"] is (code == 0)
    assert sonde("gate", "last", "--at-least", f"write={rate * 1.05 / 1e6:.6f}MB/s-10%", "--retests", "0").code == 0
    none = sonde("gate", "last", "--at-least", "wrote=1MB/s")
    assert (none.code, len(none.sentences)) == (2, 1)
    assert 'Did you mean "write"?' in none.err
    assert sonde("gate", "last").sentences == [
        "sonde: Say what to hold it against: --baseline NAME, or --at-least PHASE=RATE."
    ]
