# SPDX-License-Identifier: Apache-2.0
"""The facts of `sonde doctor` about kernel settings."""

from __future__ import annotations

from pathlib import Path

from sonde.launch.machine_facts import PARTLY, YES, make_write_back_fact


def test_changed_write_back_settings_come_with_a_caution(tmp_path: Path) -> None:
    (tmp_path / "dirty_ratio").write_text("20\n")
    assert make_write_back_fact(tmp_path).state == YES
    (tmp_path / "dirty_ratio").write_text("80\n")
    (tmp_path / "dirty_background_bytes").write_text("1048576\n")
    fact = make_write_back_fact(tmp_path)
    assert fact.state == PARTLY
    assert fact.text == "dirty_ratio = 80 (default 20), dirty_background_bytes = 1048576 (default 0)"
    assert fact.remedy.startswith("Changes are generally not required")
    assert "prevent hangs" in fact.remedy
