# SPDX-License-Identifier: Apache-2.0
"""IOR's command line through MPI-IO, under each launcher: with a driver of ROMIO before the name, by fewer tasks than
there are, and where collective calls have nobody to call with.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import start_ranks
from start_ranks import Launcher

pytestmark = pytest.mark.mpi

SCRIPT = """IOR START
numTasks=2
RUN
numTasks=3
RUN
collective=0
numTasks=1
RUN
IOR STOP
"""


@pytest.fixture(scope="module")
def engine() -> str:
    path = start_ranks.find_built_program("sonde-engine")
    if path is None:
        pytest.skip("the engine is not built")
    return str(path)


def list_bytes_of_phases(record: Path) -> list[int]:
    """Bytes of each measured phase of a record."""
    lines = [json.loads(text) for text in record.read_text().splitlines()]
    return [
        line["bytes"]["transferred"]
        for line in lines
        if line["type"] == "phase_end" and line["op"] in ("write", "read")
    ]


@pytest.mark.parametrize(
    ("options", "tasks"),
    [("-o ufs:{0}/f", 3), ("-N 2 -o {0}/f", 2), ("-c -N 2 -o ufs:{0}/f", 2), ("-c -F -o {0}/f", 3)],
)
def test_every_byte_of_participating_ranks_is_written(
    options: str, tasks: int, mpi_launcher: Launcher, engine: str, tmp_path: Path
) -> None:
    line = f"ior -a MPIIO -w -r -R -k -l o -G 5 -t 4k -b 64k {options.format(tmp_path)} --sonde-record={tmp_path}/r"
    result = mpi_launcher.run(mpi_launcher.command(3, engine, *line.split()))
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"tasks               : {tasks}\n" in result.stdout
    assert list_bytes_of_phases(tmp_path / "r") == [tasks << 16, tasks << 16]
    files = sorted(path for path in tmp_path.iterdir() if path.name.startswith("f"))
    assert sum(path.stat().st_size for path in files) == tasks << 16
    assert len(files) == (tasks if "-F" in options else 1)


def test_tests_of_a_script_may_each_have_another_number_of_tasks(
    mpi_launcher: Launcher, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "script").write_text(SCRIPT)
    line = f"ior -a MPIIO -c -t 4k -b 64k -o {tmp_path}/f -f {tmp_path}/script --sonde-record={tmp_path}/r"
    result = mpi_launcher.run(mpi_launcher.command(3, engine, *line.split()))
    assert result.returncode == 0, result.stdout + result.stderr
    assert [list_bytes_of_phases(tmp_path / name)[0] >> 16 for name in ("r", "r.1", "r.2")] == [2, 3, 1]


def test_a_name_without_a_folder_is_in_the_working_directory(
    mpi_launcher: Launcher, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open MPI 4.1 itself opens none."""
    monkeypatch.chdir(tmp_path)
    line = "ior -a MPIIO -w -k -t 4k -b 8k -o f"
    result = mpi_launcher.run(mpi_launcher.command(2, engine, *line.split()))
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "f").stat().st_size == 2 << 13
