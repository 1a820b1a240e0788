# SPDX-License-Identifier: Apache-2.0
"""The same plan has the same mean rate in virtual time and on the mounted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import two_drivers  # noqa: E402


@pytest.mark.nightly
@pytest.mark.parametrize("case", two_drivers.CASES, ids=[case.name for case in two_drivers.CASES])
def test_both_drivers_agree_on_the_rates_of_a_plan(
    case: two_drivers.DriverCase, mount_program: Path, simulator: Path, engine: Path
) -> None:
    rows = two_drivers.measure_with_retries(case)
    assert len(rows) >= 1
    assert [f"{row.phase}: {row.simulated:.6g} {row.mounted:.6g}" for row in rows if not row.holds] == []


def test_driver_table_has_every_plan_within_the_limit() -> None:
    lines = two_drivers.PAGE_FILE.read_text(encoding="utf-8").splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines if line.split("|")[1].strip()] == [
        case.name for case in two_drivers.CASES
    ]
    differences = [abs(float(line.split("|")[6].strip().rstrip("%"))) / 100 for line in lines]
    assert max(differences) <= two_drivers.MAX_RELATIVE_DIFFERENCE
