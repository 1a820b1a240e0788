# SPDX-License-Identifier: Apache-2.0
"""A model of the small machine with some faults and experiments, simulated once for all tests of the folder."""

from __future__ import annotations

import pytest
from diagnosis_machine import read_small_machine

from sonde.diagnose.description import WITH_TARGETS
from sonde.diagnose.diagnosis_model import DiagnosisModel, HypothesisLibrary, build_diagnosis_model
from sonde.diagnose.library import list_causes_for_machine_kind, list_diagnosis_experiments
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.simulation import Simulator

EXPERIMENTS = (
    *("every-target", "warm-cache", "names", "quiet-time", "previous-software", "server-messages"),
    *("client-settings", "server-load"),
)
FAULTS = ("slow-target", "slow-node", "slow-link", "mds-saturated", "noisy-neighbor")


@pytest.fixture(scope="session")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    folder = tmp_path_factory.mktemp("diagnosis")
    return Simulator(read_small_machine(folder), folder / "cache")


@pytest.fixture(scope="session")
def diagnosis_model(simulator: Simulator) -> DiagnosisModel:
    experiments = [item for item in list_diagnosis_experiments() if item.id in EXPERIMENTS]
    library = HypothesisLibrary(list_causes_for_machine_kind(WITH_TARGETS), experiments, frozenset(FAULTS))
    return build_diagnosis_model(simulator.machine, simulator, NoiseModel(), hypothesis_library=library)
