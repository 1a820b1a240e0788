# SPDX-License-Identifier: Apache-2.0
"""Faults of a simulated machine are named in the terminal, in JSON and on the page; a healthy run names none."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_machine import small_machine

ROUTED = """
[[nodes.interfaces]]
network = "fabric"

[[servers.interfaces]]
network = "storage"

[[networks]]
id = "fabric"
kind = "aries"
lnet = "gni"
rate = "10 GB/s"

[[networks]]
id = "storage"
kind = "infiniband"
lnet = "o2ib"
rate = "10 GB/s"

[[routers]]
id = "r[1-2]"
protocol = "lnet"
[[routers.interfaces]]
network = "fabric"
nids = "[61-62]@gni"
[[routers.interfaces]]
network = "storage"
nids = "10.1.0.[1-2]@o2ib"
"""
# What people read of each fault.
FAULTS = {
    "slow-target 3 4x": "Writes to target t3",
    "failing-drive 3 20%": "I/O errors of t3 on oss",
    "router-lost r2": "LNet router 10.1.0.2@o2ib is down for oss",
    "mds-saturated 90%": "service mdt of oss could not keep up with its requests",
}
# A target with a failing drive is a slow target too.
OVERLAPPING = {"failing-drive 3 20%", "slow-target 3 4x"}
Sonde = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two clients on one network, a server with 8 targets on another, two LNet routers between them."""
    path = tmp_path / "machine.toml"
    text = small_machine(targets=8, nodes=2, server_threads=16, stripe='{ size = "1 MiB", count = 8 }')
    path.write_text(text + ROUTED, encoding="utf-8")
    plan: dict[str, Any] = {
        "schema": "sonde-plan/2",
        "id": "named",
        "target": {"path": "/fs"},
        "tasks": {"processes": 2},
        "data": {
            "files": {"mapping": "shared"},
            "access": {"transfer": "1MiB", "block": "256MiB"},
            "io": {"direct": True},
        },
        "phases": [{"id": "write", "op": "write"}],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return path


def read_surfaces(sonde: Sonde, machine: Path, *fault: str) -> dict[str, str]:
    """Output of one simulated run on the terminal, in JSON and on the page."""
    simulated = sonde("simulate", "plan.json", "--system", str(machine), "--traces", "--quiet", *fault)
    assert simulated.returncode == 0, simulated.stderr
    run = simulated.stdout.split()[-1]
    page = machine.with_name("page.html")
    assert sonde("report", run, "-o", str(page)).returncode == 0
    document = json.loads(sonde("show", run, "--json").stdout)[0]
    findings = [finding["text"] for finding in document["findings"]]
    assessments = [json.dumps(phase["assessment"]) for phase in document["phases"]]
    texts = {
        "terminal": sonde("show", run).stdout,
        "JSON": "\n".join([*findings, *assessments]),
        "page": page.read_text(encoding="utf-8"),
    }
    return {surface: " ".join(text.split()) for surface, text in texts.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_reported_on_each_surface(sonde: Sonde, machine: Path, fault: str) -> None:
    for surface, text in read_surfaces(sonde, machine, "--fault", fault).items():
        for other, message in FAULTS.items():
            assert (message in text) == (other == fault) or {fault, other} == OVERLAPPING, (surface, other)


def test_healthy_run_names_no_fault(sonde: Sonde, machine: Path) -> None:
    for surface, text in read_surfaces(sonde, machine).items():
        assert "log message" not in text, surface
        for message in FAULTS.values():
            assert message not in text, surface
