# SPDX-License-Identifier: Apache-2.0
"""Remarks on phases whose answer is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sonde.findings.profile import Profile, profile_of
from sonde.findings.remarks import dip_words
from sonde.model.lines import PhaseBegin, SeriesLine
from sonde.model.record import PhaseRecord


def profile(rates: np.ndarray) -> Profile:
    slices = tuple(int(rate) for rate in rates)
    count = len(slices)
    line = SeriesLine(
        t=0.0, phase="read", slice_s=0.1, scope="all", bytes=slices, ops=(1,) * count, active=(2,) * count
    )
    found = profile_of(replace(PhaseRecord(PhaseBegin(t=0.0, phase="read")), series=[line]))
    assert found is not None
    return found


def test_dips_that_come_back_are_told_with_their_period() -> None:
    random = np.random.default_rng(1)
    rates = 1e8 * np.exp(random.normal(0, 0.1, 200))
    rates[np.arange(200) % 25 < 5] *= 0.3
    words = re.fullmatch(
        r"The rate fell by (\d+) % again and again: 8 dips, one every (\S+)\s+s\.",
        dip_words(profile(rates), operations=False),
    )
    assert words
    assert int(words[1]) == pytest.approx(70, abs=3)
    assert float(words[2]) == pytest.approx(2.5, abs=0.1)


def test_one_dip_and_none_are_not_told() -> None:
    random = np.random.default_rng(2)
    rates = 1e8 * np.exp(random.normal(0, 0.1, 200))
    assert dip_words(profile(rates), operations=False) == ""
    rates[50:60] *= 0.1
    assert dip_words(profile(rates), operations=False) == ""
    assert dip_words(None, operations=False) == ""
