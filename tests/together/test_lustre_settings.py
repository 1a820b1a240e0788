# SPDX-License-Identifier: Apache-2.0
"""A setting of Lustre's client that changed between two runs is among the differences that `compare` lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

OSC = "sys/fs/lustre/osc/scratch-OST0000-osc-ffff9c0c4e5a3800"


def test_compare_names_the_setting_that_changed(sonde: Any, runs: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SONDE_LUSTRE_ROOT", str(tmp_path / "root"))
    (tmp_path / "root" / OSC).mkdir(parents=True)
    for name, value in (("max_dirty_mb", "32"), ("max_rpcs_in_flight", "8")):
        (tmp_path / "root" / OSC / name).write_text(f"{value}\n", encoding="utf-8")
    (tmp_path / "target").mkdir()
    (tmp_path / "plan.toml").write_text(
        """schema = "sonde-plan/2"
id = "small"
target = { path = "target", min_free = 0 }
data = { access = { transfer = "4KiB", block = "64KiB" } }
phases = [{ id = "write", op = "write" }]
""",
        encoding="utf-8",
    )
    for checksums in ("1", "0"):
        (tmp_path / "root" / OSC / "checksums").write_text(f"{checksums}\n", encoding="utf-8")
        done = sonde("run", "plan.toml")
        assert done.returncode == 0, done.stderr
    compared = sonde("compare", *(run["id"] for run in runs()))
    assert compared.returncode in (0, 1), compared.stderr
    text = " ".join(compared.stdout.split())
    assert "lustre osc checksums" in text
    assert "lustre osc max dirty mb" not in text
