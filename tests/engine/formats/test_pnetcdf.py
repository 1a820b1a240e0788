# SPDX-License-Identifier: Apache-2.0
"""The pnetcdf backend: what another program reads in its files, which plans it refuses, and what fails."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
from hdf5_plans import BLOCK, SEED, SEGMENTS, TRANSFER, read_record
from hdf5_plans import make_plan as make_hdf5_plan

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("pnetcdf_engine")]
RunPlan = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[3]
ROWS = BLOCK // TRANSFER


def make_plan(folder: Path, **data: Any) -> dict[str, Any]:
    return make_hdf5_plan(folder, **{"backend": "pnetcdf", **data})


def read_records(path: Path) -> np.ndarray:
    """The records of the variable, which must be that of IOR, as 64-bit words of each row."""
    with netCDF4.Dataset(path, "r") as file:
        assert file.data_model == "NETCDF3_64BIT_OFFSET"
        assert list(file.variables) == ["data_var"]
        variable = file["data_var"]
        assert variable.dimensions == ("segments_times_np", "number_of_transfers", "transfer_size")
        assert file.dimensions["segments_times_np"].isunlimited()
        assert variable.dtype == np.int8
        variable.set_auto_mask(False)
        values = variable[:]
    assert values.shape[1:] == (ROWS, TRANSFER)
    return np.ascontiguousarray(values).view("<i8")


def assert_known_content(records: np.ndarray, writers: list[int]) -> None:
    """`writers` has the task of each record. Word i of a row is task * 2^32 + seed + i; word 0 has its offset."""
    assert len(records) == len(writers)
    first = np.array(writers, dtype=np.int64) << 32
    expected = first[:, None, None] + SEED + np.arange(TRANSFER // 8, dtype=np.int64)
    expected = np.repeat(expected, ROWS, axis=1)
    offsets = np.arange(len(records) * ROWS, dtype=np.int64).reshape(-1, ROWS) * TRANSFER
    expected[:, :, 0] = first[:, None] + offsets
    assert np.array_equal(records, expected)


@pytest.mark.parametrize("tasks", [1, 2, 16])
@pytest.mark.parametrize("collective", [False, True])
def test_shared_file_is_read_by_netcdf4(run_plan: RunPlan, tmp_path: Path, tasks: int, collective: bool) -> None:
    result = run_plan(tasks, make_plan(tmp_path, io={"collective": collective, "fsync": "end"}))
    assert result.returncode == 0, result.stderr
    assert_known_content(read_records(tmp_path / "run/data"), list(range(tasks)) * SEGMENTS)
    moved = [line["bytes"]["transferred"] for line in read_record(tmp_path, "phase_end")]
    assert moved == [tasks * BLOCK * SEGMENTS] * 2
    (check,) = read_record(tmp_path, "verification")
    assert (check["checked_bytes"], check["mismatches"]) == (tasks * BLOCK * SEGMENTS, 0)


@pytest.mark.parametrize("tasks", [1, 3])
def test_file_per_task_is_read_by_netcdf4(run_plan: RunPlan, tmp_path: Path, tasks: int) -> None:
    result = run_plan(tasks, make_plan(tmp_path, files={"mapping": "per_task"}))
    assert result.returncode == 0, result.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file() and not path.name.startswith(".")]
    writers = [int(read_records(path)[0, 0, 1] >> 32) for path in files]
    assert sorted(writers) == list(range(tasks))
    for path, writer in zip(files, writers, strict=True):
        assert_known_content(read_records(path), [writer] * SEGMENTS)


@pytest.mark.parametrize("options", ["", "-c", "-e -C", "-c --ncmpi.useFileView"])
def test_ior_arguments_create_the_same_file_as_the_plan(run_engine: RunPlan, tmp_path: Path, options: str) -> None:
    line = f"ior -a NCMPI -w -r -R -W -k -l o -G {SEED} -t 4k -b 16k -s 3 -o {tmp_path}/f {options}"
    result = run_engine(2, *line.split())
    assert result.returncode == 0, result.stdout + result.stderr
    assert_known_content(read_records(tmp_path / "f"), [0, 1] * SEGMENTS)


def test_ior_hints_for_pnetcdf_are_applied_and_printed(run_engine: RunPlan, tmp_path: Path) -> None:
    (tmp_path / "hints").write_text("IOR_HINT__MPI__nc_header_align_size=8192\n")
    line = f"ior -a NCMPI -w -k -t 4k -b 16k -o {tmp_path}/f --ncmpi.hintsFileName={tmp_path}/hints --ncmpi.showHints"
    result = run_engine(2, *line.split())
    assert result.returncode == 0, result.stdout + result.stderr
    assert "hints given to MPI_File_open: nc_header_align_size=8192" in result.stderr
    plan = run_engine(1, *line.split(), "--sonde-plan").stdout
    assert json.loads(plan[plan.index("{") :])["data"]["io"]["hints"] == {"nc_header_align_size": "8192"}


def test_changed_byte_is_a_mismatch(run_plan: RunPlan, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, verify="on_read")
    plan["phases"] = plan["phases"][:1]
    assert run_plan(2, plan).returncode == 0
    with netCDF4.Dataset(tmp_path / "run/data", "r+") as file:
        file["data_var"].set_auto_mask(False)
        file["data_var"][3, 1, 77] = file["data_var"][3, 1, 77] ^ 1
    plan["target"]["use_existing"] = True
    plan["phases"] = [{"id": "r", "op": "read"}]
    assert run_plan(2, plan).returncode == 4


def test_rewrite_keeps_the_size(run_plan: RunPlan, tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    plan["phases"].insert(1, {"id": "again", "op": "rewrite"})
    result = run_plan(2, plan)
    assert result.returncode == 0, result.stderr
    assert len(read_records(tmp_path / "run/data")) == 2 * SEGMENTS


def test_time_limit_leaves_a_readable_file(run_plan: RunPlan, tmp_path: Path) -> None:
    """Tasks stop at different operations and segments; none waits for another in a collective call."""
    plan = make_plan(tmp_path, verify="none", access={"transfer": TRANSFER, "block": BLOCK, "segments": 400})
    plan["phases"] = [{"id": "w", "op": "write", "stop": {"stonewall": "30ms"}}]
    result = run_plan(3, plan)
    assert result.returncode == 0, result.stderr
    assert 0 < len(read_records(tmp_path / "run/data")) <= 3 * 400


def make_access(**members: Any) -> dict[str, Any]:
    return {"access": {"transfer": TRANSFER, "block": BLOCK, "segments": 1, **members}}


WRONG_PLANS = [
    ({"io": {"queue_depth": 4}}, "one operation at a time"),
    ({"io": {"direct": True}}, "io.direct"),
    ({"io": {"view": True}}, "io.view needs backend mpiio"),
    ({"io": {"chunk": 4096}}, "io.chunk needs backend hdf5"),
    ({"io": {"fsync": "per_op"}}, "flush takes all tasks"),
    ({"io": {"preallocate": "truncate"}}, "allocates its datasets itself"),
    ({"files": {"mapping": "per_group", "group_size": 2}}, "either all do or none"),
    (make_access(gap=8), "access.gap has no meaning"),
    (make_access(offset=8), "access.offset has no meaning"),
    (make_access(order="stride", stride=1 << 20), "access.order"),
    (make_access(sizes=[{"size": 4096, "weight": 1}, {"size": 8192, "weight": 1}]), "access.sizes"),
]


@pytest.mark.parametrize(("change", "expected_sentence"), WRONG_PLANS)
def test_wrong_plan_is_one_sentence(
    run_plan: RunPlan, tmp_path: Path, change: dict[str, Any], expected_sentence: str
) -> None:
    result = run_plan(2, make_plan(tmp_path, **change))
    ours = [line for line in result.stderr.splitlines() if line.startswith("sonde-engine: ")]
    assert result.returncode == 2
    assert len(ours) == 1
    assert expected_sentence in ours[0]
    assert not (tmp_path / "run").exists()


def test_reading_other_transfers_is_refused(run_plan: RunPlan, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, verify="none")
    plan["phases"][1]["access"] = {"transfer": 2 * TRANSFER}
    result = run_plan(2, plan)
    assert result.returncode == 2
    assert 'differs from that of phase "w"' in result.stderr


def make_file(path: Path, dimensions: tuple[int, int], records: int) -> None:
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, length in zip(("a", "b", "c"), (None, *dimensions), strict=True):
            file.createDimension(name, length)
        file.createVariable("data_var", "i1", ("a", "b", "c"))[0:records] = 1


FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no netCDF": (lambda path: path.write_bytes(b"plain" * 10000), "is not a netCDF file"),
    "another variable": (
        lambda path: netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET").close(),
        "has no variable data_var",
    ),
    "other transfers": (lambda path: make_file(path, (2 * ROWS, TRANSFER // 2), 99), "holds records of 8 transfers"),
    "few records": (lambda path: make_file(path, (ROWS, TRANSFER), 2), "holds 2 records, but this phase reads 6"),
}


@pytest.mark.parametrize("file_kind", FILES)
def test_file_of_another_program_is_refused(run_plan: RunPlan, tmp_path: Path, file_kind: str) -> None:
    make, sentence = FILES[file_kind]
    (tmp_path / "run").mkdir()
    make(tmp_path / "run" / "data")
    plan = make_plan(tmp_path, verify="none")
    plan["target"]["use_existing"] = True
    plan["phases"] = plan["phases"][1:]
    result = run_plan(2, plan)
    ours = [line for line in result.stderr.splitlines() if line.startswith("sonde-engine: ")]
    assert result.returncode == 1, result.stderr
    assert len(ours) == 1
    assert sentence in ours[0]


def test_missing_pnetcdf_library_is_reported(run_plan: RunPlan, tmp_path: Path) -> None:
    result = run_plan(2, make_plan(tmp_path), SONDE_PNETCDF_LIBRARY="/no/such/libpnetcdf.so")
    ours = [line for line in result.stderr.splitlines() if line.startswith("sonde-engine: ")]
    assert result.returncode == 3, result.stderr
    assert len(ours) == 1
    assert "no parallel PnetCDF for the MPI here" in ours[0]
    assert not (tmp_path / "run").exists()


def test_declarations_match_the_pnetcdf_header(tmp_path: Path) -> None:
    """Compiles our declarations with the real header: types of all parameters, and all constants."""
    compiler = shutil.which("mpicxx.openmpi")
    if compiler is None or not Path("/usr/include/pnetcdf.h").exists():
        pytest.skip("the header of PnetCDF is not installed: tools/system-packages tests")
    source = Path(__file__).with_name("pnetcdf_declarations.cc")
    command = [compiler, "-std=c++20", "-fsyntax-only", "-xc++", f"-I{ROOT}/engine", str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
