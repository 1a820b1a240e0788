# SPDX-License-Identifier: Apache-2.0
"""What a cell would take is said before it is run, and what cannot be run is left out with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.cells import prepare
from sonde.experiments.directories import Directories
from sonde.experiments.forecast import Forecast, Forecaster, total_seconds
from sonde.launch.engine import Engine
from sonde.model.errors import UserError
from sonde.model.experiment import experiment_from_document
from sonde.model.units import parse_bytes

GIB = 1 << 30
PHASES = [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}]


class Known(Engine):
    """An engine on a machine with 16 GiB of memory and 100 GiB of free space, that counts one file."""

    def probe(self, directory: Path) -> dict[str, Any]:
        return {"memory_bytes": 16 * GIB, "file_system": {"available_bytes": 100 * GIB}}

    def resolve(self, plan: Any, processes: int) -> dict[str, Any]:
        if plan["data"].get("io", {}).get("queue_depth") == 99:
            raise UserError("plan: data.io.queue_depth is more than this backend can do.")
        volume = parse_bytes(plan["data"]["access"]["volume"]) * processes
        one = {"files": processes, "segments": 1, "operations": 7, "bytes": volume}
        return {"space": {"bytes": volume}, "phases": [one for _ in plan["phases"]]}


def forecast(phases: list[dict[str, Any]] = PHASES, rate: float | None = None, **more: Any) -> Forecast:
    volume = more.pop("volume", "1GiB")
    data = {"access": {"transfer": "1MiB", "volume": volume}, "files": {"mapping": "per_task"}, **more.pop("data", {})}
    document = {"schema": "sonde-experiment/1", "id": "e", "plan": {"data": data, "phases": phases}, **more}
    (cell,) = prepare(experiment_from_document(document, "x.toml"), Directories("/d"), "g")
    return Forecaster(Known(Path("/fake"), "test"), rate).of(cell)


def test_bytes_are_held_against_memory_and_reckoned_into_time() -> None:
    found = forecast(rate=GIB / 2, volume="4GiB")
    assert [one.of_memory for one in found.phases] == [0.25, 0.25]
    assert found.seconds == 16
    assert (found.space, found.available) == (4 * GIB, 100 * GIB)
    assert forecast(volume="4GiB").seconds is None


def test_a_phase_with_a_time_takes_that_time_and_a_sleep_adds_to_it() -> None:
    phases = [{"id": "write", "op": "write", "stop": {"time": "30s"}, "before": [{"kind": "sleep", "time": "5s"}]}]
    assert forecast(phases).seconds == 35


def test_a_stonewall_is_the_longest_that_a_phase_takes() -> None:
    phases = [{"id": "write", "op": "write", "stop": {"stonewall": "3s"}}]
    assert forecast(phases, rate=GIB / 2).seconds == 2
    assert forecast(phases, rate=GIB / 8).seconds == 3


def test_a_cell_without_room_is_refused() -> None:
    assert forecast(volume="99GiB").refused == ""
    said = forecast(volume="100GiB").refused
    assert said.startswith("It needs 100 GiB in /d, where 100 GiB are available and 64 MiB must stay free; make it")


@pytest.mark.parametrize(
    ("read", "data", "volume", "cached", "refused"),
    [
        ({}, {}, "1GiB", True, False),
        ({"valid": {"max_resident": 0.01}}, {}, "1GiB", True, True),
        ({"valid": {"max_resident": 0.01}}, {}, "30GiB", False, False),
        ({"valid": {"max_resident": 0.01}}, {"io": {"direct": True}}, "1GiB", False, False),
        ({"valid": {"max_resident": 0.01}, "before": [{"kind": "fadvise"}]}, {}, "1GiB", False, False),
        ({"valid": {"max_resident": 0.01}, "before": [{"kind": "sync"}]}, {}, "1GiB", True, True),
        ({"valid": {"max_resident": 0.01}}, {"backend": "null"}, "1GiB", False, False),
    ],
)
def test_a_read_that_cannot_come_from_storage_is_told_and_refused_where_it_must(
    read: dict[str, Any], data: dict[str, Any], volume: str, cached: bool, refused: bool
) -> None:
    found = forecast([PHASES[0], {**PHASES[1], **read}], data=data, volume=volume)
    assert found.phases[1].from_memory is cached
    assert bool(found.refused) is refused


def test_what_the_engine_refuses_is_said_in_its_words() -> None:
    assert forecast(data={"io": {"queue_depth": 99}}).refused == "data.io.queue_depth is more than this backend can do."


def test_bytes_of_many_nodes_are_held_against_the_memory_of_each() -> None:
    found = forecast(clients={"nodes": 8, "tasks_per_node": 2, "launcher": "mpi"}, volume="4GiB")
    assert found.tasks == 16
    assert found.phases[0].bytes == 64 * GIB
    assert found.phases[0].of_memory == 0.5


def test_all_cells_together_take_their_runs_times_their_time() -> None:
    ready, unknown = forecast(rate=GIB), forecast()
    assert total_seconds([ready, ready]) == (4.0, True)
    assert total_seconds([ready, unknown]) == (2.0, False)
