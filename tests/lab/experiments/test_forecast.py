# SPDX-License-Identifier: Apache-2.0
"""The cost of a cell is reported before its runs, and cells that cannot run are skipped with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.cells import prepare_cells
from sonde.experiments.directories import Directories
from sonde.experiments.forecast import Forecast, Forecaster, sum_known_seconds_with_completeness
from sonde.launch.engine import Engine
from sonde.model.errors import UserError
from sonde.model.experiment import make_experiment
from sonde.model.units import parse_bytes

GIB = 1 << 30
PHASES = [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}]


class EngineOfLargeMachine(Engine):
    """An engine on a machine with 16 GiB of memory and 100 GiB of free space, that counts one file."""

    def probe_directory(self, directory: Path) -> dict[str, Any]:
        return {"memory_bytes": 16 * GIB, "file_system": {"available_bytes": 100 * GIB}}

    def resolve_plan(self, plan: Any, processes: int) -> dict[str, Any]:
        if plan["data"].get("io", {}).get("queue_depth") == 99:
            raise UserError("plan: data.io.queue_depth is more than this backend can do.")
        volume = parse_bytes(plan["data"]["access"]["volume"]) * processes
        phase_document = {"files": processes, "segments": 1, "operations": 7, "bytes": volume}
        return {"space": {"bytes": volume, "most_bytes": volume}, "phases": [phase_document for _ in plan["phases"]]}


def make_forecast(phases: list[dict[str, Any]] = PHASES, bytes_per_s: float | None = None, **more: Any) -> Forecast:
    volume = more.pop("volume", "1GiB")
    data = {"access": {"transfer": "1MiB", "volume": volume}, "files": {"mapping": "per_task"}, **more.pop("data", {})}
    document = {"schema": "sonde-experiment/2", "id": "e", "plan": {"data": data, "phases": phases}, **more}
    (cell,) = prepare_cells(make_experiment(document, "x.toml"), Directories("/d"), "g")
    return Forecaster(EngineOfLargeMachine(Path("/fake"), "test"), bytes_per_s).forecast_cell(cell)


def test_forecast_has_memory_share_and_time() -> None:
    cell_forecast = make_forecast(bytes_per_s=GIB / 2, volume="4GiB")
    assert [phase.memory_share for phase in cell_forecast.phases] == [0.25, 0.25]
    assert cell_forecast.run_seconds == 16
    assert (cell_forecast.space, cell_forecast.available) == (4 * GIB, 100 * GIB)
    assert make_forecast(volume="4GiB").run_seconds is None


def test_timed_phase_takes_its_time_plus_sleeps() -> None:
    phases = [{"id": "write", "op": "write", "stop": {"time": "30s"}, "before": [{"kind": "sleep", "time": "5s"}]}]
    assert make_forecast(phases).run_seconds == 35


def test_stonewall_limits_phase_time() -> None:
    phases = [{"id": "write", "op": "write", "stop": {"stonewall": "3s"}}]
    assert make_forecast(phases, bytes_per_s=GIB / 2).run_seconds == 2
    assert make_forecast(phases, bytes_per_s=GIB / 8).run_seconds == 3


def test_cell_without_free_space_is_rejected() -> None:
    assert make_forecast(volume="99GiB").refusal == ""
    refusal = make_forecast(volume="100GiB").refusal
    assert refusal.startswith("It needs 100 GiB in /d, where 100 GiB are available and 64 MiB must stay free; make it")


@pytest.mark.parametrize(
    ("read_members", "data", "volume", "is_cached", "is_refused"),
    [
        ({}, {}, "1GiB", True, False),
        ({"valid": {"max_residency": 0.01}}, {}, "1GiB", True, True),
        ({"valid": {"max_residency": 0.01}}, {}, "30GiB", False, False),
        ({"valid": {"max_residency": 0.01}}, {"io": {"direct": True}}, "1GiB", False, False),
        ({"valid": {"max_residency": 0.01}, "before": [{"kind": "fadvise"}]}, {}, "1GiB", False, False),
        ({"valid": {"max_residency": 0.01}, "before": [{"kind": "sync"}]}, {}, "1GiB", True, True),
        ({"valid": {"max_residency": 0.01}}, {"backend": "null"}, "1GiB", False, False),
    ],
)
def test_read_from_memory_is_reported_or_rejected(
    read_members: dict[str, Any], data: dict[str, Any], volume: str, is_cached: bool, is_refused: bool
) -> None:
    cell_forecast = make_forecast([PHASES[0], {**PHASES[1], **read_members}], data=data, volume=volume)
    assert cell_forecast.phases[1].is_from_memory is is_cached
    assert bool(cell_forecast.refusal) is is_refused


def test_engine_rejection_is_the_refusal() -> None:
    assert (
        make_forecast(data={"io": {"queue_depth": 99}}).refusal
        == "data.io.queue_depth is more than this backend can do."
    )


def test_memory_share_is_per_node() -> None:
    cell_forecast = make_forecast(clients={"nodes": 8, "tasks_per_node": 2, "launcher": "mpi"}, volume="4GiB")
    assert cell_forecast.tasks == 16
    assert cell_forecast.phases[0].bytes == 64 * GIB
    assert cell_forecast.phases[0].memory_share == 0.5


def test_total_is_sum_of_runs_times_duration() -> None:
    ready, unknown = make_forecast(bytes_per_s=GIB), make_forecast()
    assert sum_known_seconds_with_completeness([ready, ready]) == (4.0, True)
    assert sum_known_seconds_with_completeness([ready, unknown]) == (2.0, False)
