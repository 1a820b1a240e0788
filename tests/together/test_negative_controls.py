# SPDX-License-Identifier: Apache-2.0
"""Claims of the shipped experiments fail where the reason that they give is taken away: with calls that cost the
same whatever their size, with names that all cost the same, with a cache that nobody empties."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

SIX = ("--repeat", "6", "--no-report", "--json", "--profile", "laptop")
# Claim -> the experiment, and what takes its reason away.
CONTROLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "A-S1": (
        "cray-x1/cray-x1-service-io",
        ("data.backend=paced", 'data.paced.schedule=[{"at":"0s","rate":"1GB/s"}]', "data.access.volume=16MiB"),
    ),
    "D-S7": (
        "sonexion-1300/sonexion-mdtest-figure-7",
        ("meta.backend=paced", "meta.paced.latency=20us", "meta.tree.items_per_task=100", "sweep.items=[100,200]"),
    ),
    "B-S10": (
        "edison/edison-caches",
        ("data.access.volume=16MB", 'phases.read_cleared.before=[{"kind":"sync"}]',
         'phases.read_only.before=[{"kind":"sync"}]'),
    ),
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("claim", CONTROLS)
def test_claim_fails_without_its_cause(
    sonde: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, claim: str
) -> None:
    (tmp_path / "storage").mkdir()
    name, settings = CONTROLS[claim]
    file = Path(__file__).resolve().parents[2] / "experiments" / f"{name}.toml"
    changed = [word for setting in settings for word in ("--set", setting)]
    done = sonde("run", str(file), "--on", str(tmp_path / "storage"), *SIX, *changed)
    assert done.returncode == 1, done.stderr
    judged = {claim["id"]: claim["verdict"] for claim in json.loads(done.stdout)["claims"]}
    assert judged[claim] == "fails"
