# SPDX-License-Identifier: Apache-2.0
"""A machine that is not simulated: a local file system, whose causes state in their files what they change.

It stands where the simulator does for machines with storage targets, and has all rates of a healthy machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.simulation import SimulationRequest


class MachineModel(Protocol):
    """Interface of the objects that measure experiments on a machine: the simulator or `UnsimulatedMachine`."""

    machine: DiagnosedMachine

    def simulate_request(self, request: SimulationRequest) -> RunMeasurement | str:
        """Returns the measurement, or the sentence by which a fault is refused."""
        ...

    def simulate_requests(
        self, requests: Iterable[SimulationRequest], on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[RunMeasurement | str]:
        """Returns the measurements in the order of the requests."""
        ...


@dataclass
class UnsimulatedMachine:
    """A machine without a simulator model: its healthy rates are 0, as logarithms relative to themselves."""

    machine: DiagnosedMachine

    def simulate_request(self, request: SimulationRequest) -> RunMeasurement | str:
        """Returns equal rates; a fault is refused, because only machines with storage targets are simulated."""
        if request.faults:
            return f"{self.machine.mount} has no storage targets, so the fault {request.faults[0]} cannot be simulated"
        return RunMeasurement(dict.fromkeys(request.experiment.phase_ids, 0.0))

    def simulate_requests(
        self, requests: Iterable[SimulationRequest], on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[RunMeasurement | str]:
        """Returns the measurements in the order of the requests."""
        return [self.simulate_request(request) for request in requests]
