# SPDX-License-Identifier: Apache-2.0
"""Runs experiments on the model of a machine, and caches what they measured.

The cache is named by machine, fault, plan, seed and simulator, so that nothing has to be invalidated.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sonde.diagnose.experiment_plan import ScaledExperiment
from sonde.diagnose.machine_map import DiagnosedMachine
from sonde.diagnose.measurements import RunMeasurement, measure_record
from sonde.diagnose.scratch_folders import create_scratch_folder, remove_abandoned_folders
from sonde.diagnose.server_messages import SIMULATED_WITH, find_messages, list_server_message_kinds
from sonde.launch.simulator import find_simulator
from sonde.model.confined_files import ConfinedDirectory, open_file, write_file
from sonde.model.errors import MachineError
from sonde.model.record import RecordReader

_CACHE_FORMAT = "3"  # of what is measured in a record; part of the cache's names
_SIMULATOR_PROCESSES = 2
_SIMULATION_TIMEOUT_S = 600
_UNUSED_LINES = (b'{"type":"series"', b'{"type":"histogram"')


@dataclass(frozen=True)
class SimulationRequest:
    """One run on the model."""

    experiment: ScaledExperiment
    faults: tuple[str, ...] = ()
    seed: int = 1


@dataclass
class Simulator:
    """Simulates experiments on one machine. `cache` is a directory, or None."""

    machine: DiagnosedMachine
    cache: Path | None = None
    program: Path = field(default_factory=find_simulator)
    simulated_runs: int = 0  # without those from the cache

    def __post_init__(self) -> None:
        remove_abandoned_folders()

    @cached_property
    def _simulator_version(self) -> str:
        return _hash_content(self.program.read_bytes())

    @cached_property
    def _stripe_systems(self) -> dict[int, str]:
        return {}

    def simulate_request(self, request: SimulationRequest) -> RunMeasurement | str:
        """Returns the measurement, or the sentence by which the simulator refuses the fault on this machine."""
        key = self._make_cache_key(request)
        stored = self._read_cached_result(key)
        if stored is None:
            result = self._run_simulator(request)
            self.simulated_runs += 1
            stored = {"refused": result} if isinstance(result, str) else result.to_json()
            self._write_cached_result(key, stored)
        return str(stored["refused"]) if "refused" in stored else RunMeasurement.from_json(stored)

    def simulate_requests(
        self, requests: Iterable[SimulationRequest], on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[RunMeasurement | str]:
        """Measures on two processors at a time; results are in the order of the requests."""
        items = list(requests)
        results: list[RunMeasurement | str] = []
        with ThreadPoolExecutor(_SIMULATOR_PROCESSES) as pool:
            try:
                for done, result in enumerate(pool.map(self.simulate_request, items), start=1):
                    results.append(result)
                    on_progress(done, len(items))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return results

    def _make_system_text(self, stripe_count: int) -> str:
        if stripe_count not in self._stripe_systems:
            self._stripe_systems[stripe_count] = (
                json.dumps(_replace_stripe_count(self.machine, stripe_count), separators=(",", ":"))
                if stripe_count
                else self.machine.simulator_input_text
            )
        return self._stripe_systems[stripe_count]

    def _make_cache_key(self, request: SimulationRequest) -> str:
        experiment = request.experiment
        parts = [
            _CACHE_FORMAT,
            self._simulator_version,
            self._make_system_text(experiment.stripe_count),
            json.dumps(experiment.plan, sort_keys=True),
            json.dumps([experiment.phase_ids, experiment.operation_phases, experiment.vector_kinds, experiment.nodes]),
            json.dumps([request.faults, request.seed]),
        ]
        if experiment.id == SIMULATED_WITH:
            parts += [kind.describe_matching_rules() for kind in list_server_message_kinds()]
        return _hash_content("\0".join(parts).encode())

    def _run_simulator(self, request: SimulationRequest) -> RunMeasurement | str:
        experiment = request.experiment
        with create_scratch_folder() as folder:
            write_file(folder / "system.json", self._make_system_text(experiment.stripe_count))
            write_file(folder / "plan.json", experiment.make_plan("/simulated").to_json())
            command = [
                str(self.program), "run", str(folder / "plan.json"), "--system", str(folder / "system.json"),
                "--mount", self.machine.mount, "--nodes", str(experiment.nodes), "--seed", str(request.seed),
                "--record", str(folder / "record.ndjson"),
            ]  # fmt: skip
            for fault in request.faults:
                command += ["--fault", fault]
            if logs_messages := experiment.id == SIMULATED_WITH:
                command += ["--traces", str(folder / "traces")]
            try:
                outcome = subprocess.run(
                    command, capture_output=True, text=True, timeout=_SIMULATION_TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired:
                raise MachineError(
                    f"The simulation of {experiment.id} took more than {_SIMULATION_TIMEOUT_S} s;"
                    " describe a smaller mount."
                ) from None
            if outcome.returncode and request.faults and "fault " in outcome.stderr:
                return outcome.stderr.strip().removeprefix("sonde-simulate: ")
            if outcome.returncode:
                reason = outcome.stderr.strip().splitlines()[-1:] or ["it printed no reason"]
                raise MachineError(f"The simulation of {experiment.id} failed: {reason[0]}.")
            record = _read_needed_lines(folder / "record.ndjson")
            messages = find_messages([folder / "traces" / "messages"], self.machine) if logs_messages else {}
        measured = measure_record(record, experiment.phase_ids, experiment.operation_phases, experiment.vector_kinds)
        return replace(measured, messages=messages)

    def _read_cached_result(self, cache_key: str) -> Mapping[str, Any] | None:
        if self.cache is None:
            return None
        try:
            with ConfinedDirectory.open(self.cache) as directory:
                return directory.read_json_file(f"{cache_key}.json", trusted_only=True)
        except OSError:
            return None

    def _write_cached_result(self, cache_key: str, result_document: Mapping[str, Any]) -> None:
        if self.cache is not None:
            with ConfinedDirectory.open(self.cache, create_if_absent=True) as directory:
                directory.write_json_file(f"{cache_key}.json", result_document)


def _read_needed_lines(record_file: Path) -> RecordReader:
    """Reads a record without series and histograms, which are most of it."""
    reader = RecordReader()
    with open_file(record_file) as file:
        for line in file:
            if not line.startswith(_UNUSED_LINES):
                reader.parse_chunk(line)
    reader.finish_input()
    return reader


def _replace_stripe_count(machine: DiagnosedMachine, stripe_count: int) -> dict[str, Any]:
    """Returns the machine's document with files on `stripe_count` targets."""
    file_systems: Sequence[Mapping[str, Any]] = machine.document["file_systems"]
    changed = [
        {**item, "stripe": {**item.get("stripe", {}), "count": stripe_count}}
        if item["id"] == machine.file_system
        else item
        for item in file_systems
    ]
    return {**machine.document, "file_systems": changed}


def _hash_content(file_content: bytes) -> str:
    return hashlib.blake2b(file_content, digest_size=20).hexdigest()
