# SPDX-License-Identifier: Apache-2.0
"""System files of the real file systems in which tools/diagnosis_real_servers.py plants faults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from real_clusters import compute_request_us, fill_rates, fill_system_text  # noqa: E402
from sonde.diagnose.experiment_plan import scale_experiment_to_machine  # noqa: E402
from sonde.diagnose.library import find_diagnosis_experiment  # noqa: E402
from sonde.diagnose.machine_map import read_machine  # noqa: E402
from sonde.diagnose.measurements import RunMeasurement  # noqa: E402
from sonde.diagnose.simulation import SimulationRequest, Simulator  # noqa: E402
from sonde.model.system import read_system  # noqa: E402


def test_slow_network_spares_small_reads_of_one_client(tmp_path: Path) -> None:
    text = fill_system_text("client", "storage", "osd.[0-3]", "osd", "ceph").replace("{path}", "/fs")
    request_us = compute_request_us(4, 1500)
    assert request_us == pytest.approx(4e6 / 1500)
    rates = {"read": 87.7, "write": 5.35, "network": 351.0, "depth": 4, "request": request_us}
    file = tmp_path / "system.toml"
    file.write_text(fill_rates(text, rates), encoding="utf-8")
    machine = read_machine(read_system(str(file)))
    simulator = Simulator(machine)

    def simulate_change(experiment_id: str) -> float:
        scaled = scale_experiment_to_machine(find_diagnosis_experiment(experiment_id), machine)
        results = [
            simulator.simulate_request(SimulationRequest(scaled, faults)) for faults in ((), ("slow-link storage 6",))
        ]
        healthy, slow = (item.rates["read"] for item in results if isinstance(item, RunMeasurement))
        return slow - healthy

    assert simulate_change("every-target") < -1
    assert simulate_change("small-reads") > -0.1
