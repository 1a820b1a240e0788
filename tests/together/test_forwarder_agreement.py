# SPDX-License-Identifier: Apache-2.0
"""A forwarded client is the same to the plan of routes and to the simulator: it deals its calls to all forwarders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from sonde.design.routes.fabric import find_fabrics
from sonde.design.routes.mount_throughput import OperationKind, SizedOperation, build_mount_path, compute_throughput
from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError
from sonde.model.record import read_record
from sonde.model.system import System, read_system
from sonde.model.system.changes import apply_changes

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
FORWARDERS, TASKS = 6, 16

try:
    SIMULATOR = find_simulator()
except MachineError as reason:  # a tree without C++ programs
    pytest.skip(str(reason), allow_module_level=True)


@pytest.fixture(scope="module")
def narrow_site() -> System:
    """Cumulus with forwarders that are what holds one client back, if it had only one of them."""
    system = read_system(str(ROOT / "systems" / "cumulus.toml"))
    rate = {"mounts.wolf-dvs.model.forward_rate": "500 MB/s", "targets.wolf-nsd[01-06].rate": "8 GB/s"}
    return apply_changes(system, rate)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_one_client_uses_all_forwarders_planned_and_simulated(
    kind: OperationKind, narrow_site: System, tmp_path: Path
) -> None:
    path = build_mount_path(
        narrow_site, find_fabrics(narrow_site)[0], "wolf-dvs", SizedOperation(kind, MIB), (1 / FORWARDERS,) * FORWARDERS
    )
    planned = compute_throughput(path, 1, TASKS)
    assert planned is not None
    plan = {
        "schema": "sonde-plan/2",
        "id": "t",
        "target": {"path": "/wolf"},
        "tasks": {"processes": TASKS},
        "data": {"access": {"transfer": MIB, "block": 256 * MIB, "segments": 1}, "io": {"direct": True}},
        "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (tmp_path / "system.json").write_text(narrow_site.to_json(), encoding="utf-8")
    command = [str(SIMULATOR), "run", str(tmp_path / "plan.json"), "--system", str(tmp_path / "system.json")]
    command += ["--mount", "wolf-dvs", "--nodes", "1", "--record", str(tmp_path / "record.ndjson")]
    subprocess.run(command, check=True, capture_output=True)
    end = read_record(tmp_path / "record.ndjson").phases[kind].end
    assert end is not None
    assert end.rates.total is not None
    together = FORWARDERS * 500e6
    assert end.rates.total.bytes_per_s == pytest.approx(together, rel=0.1)
    assert planned.rate == pytest.approx(together, rel=0.1)
