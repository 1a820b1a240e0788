# SPDX-License-Identifier: Apache-2.0
"""The hdf5 backend: what other programs read in its files, and which plans it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import pytest
from hdf5_plans import BLOCK, SEED, SEGMENTS, TRANSFER, make_plan, read_record

pytestmark = pytest.mark.mpi
RunPlan = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[3]


def read_datasets(path: Path) -> list[np.ndarray]:
    """All datasets by name, which must be those of IOR."""
    with h5py.File(path, "r") as file:
        assert sorted(file) == [f"Dataset-0000.{number:04d}" for number in range(len(file))]
        assert all(dataset.dtype == "<i8" and dataset.ndim == 1 for dataset in file.values())
        return [file[name][:] for name in sorted(file)]


def assert_known_content(datasets: list[np.ndarray], tasks: int, first_task: int = 0) -> None:
    """Blocks of the tasks, interleaved round robin. Word i of each transfer is task * 2^32 + seed + i; word 0 has its
    offset."""
    assert [len(values) for values in datasets] == [BLOCK * tasks // 8] * SEGMENTS
    offsets = np.arange(BLOCK * tasks * SEGMENTS // TRANSFER, dtype=np.int64) * TRANSFER
    assert_written_by(offsets // BLOCK % tasks + first_task, datasets)


def assert_written_by(writers: np.ndarray, datasets: list[np.ndarray]) -> None:
    """`writers` has the task of each transfer, in order of the file."""
    values = np.concatenate(datasets).reshape(-1, TRANSFER // 8)
    first = writers << 32
    expected = first[:, None] + SEED + np.arange(TRANSFER // 8, dtype=np.int64)
    expected[:, 0] = first + np.arange(len(values), dtype=np.int64) * TRANSFER
    assert np.array_equal(values, expected)


@pytest.mark.parametrize("tasks", [1, 2, 16])
@pytest.mark.parametrize("collective", [False, True])
def test_shared_file_is_read_by_h5py(run_plan: RunPlan, tmp_path: Path, tasks: int, collective: bool) -> None:
    result = run_plan(tasks, make_plan(tmp_path, io={"collective": collective, "fsync": "end"}))
    assert result.returncode == 0, result.stderr
    assert_known_content(read_datasets(tmp_path / "run/data"), tasks)
    moved = [line["bytes"]["transferred"] for line in read_record(tmp_path, "phase_end")]
    assert moved == [tasks * BLOCK * SEGMENTS] * 2
    (check,) = read_record(tmp_path, "verification")
    assert (check["checked_bytes"], check["mismatches"]) == (tasks * BLOCK * SEGMENTS, 0)


@pytest.mark.parametrize("tasks", [1, 2, 16])
def test_file_per_task_is_read_by_h5py(run_plan: RunPlan, tmp_path: Path, tasks: int) -> None:
    result = run_plan(tasks, make_plan(tmp_path, files={"mapping": "per_task"}))
    assert result.returncode == 0, result.stderr
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file() and not path.name.startswith(".")]
    writers = [int(read_datasets(path)[0][1] >> 32) for path in files]
    assert sorted(writers) == list(range(tasks))
    for path, writer in zip(files, writers, strict=True):
        assert_known_content(read_datasets(path), 1, writer)


@pytest.mark.parametrize("order", ["reverse", "random_permute"])
def test_other_orders_write_the_same_file(run_plan: RunPlan, tmp_path: Path, order: str) -> None:
    access = {"transfer": TRANSFER, "block": BLOCK, "segments": SEGMENTS, "order": order, "scope": "block"}
    result = run_plan(2, make_plan(tmp_path, access=access))
    assert result.returncode == 0, result.stderr
    assert_known_content(read_datasets(tmp_path / "run/data"), 2)


def test_random_order_over_the_file_writes_each_transfer_once(run_plan: RunPlan, tmp_path: Path) -> None:
    access = {"transfer": TRANSFER, "block": BLOCK, "segments": SEGMENTS, "order": "random_permute", "scope": "file"}
    result = run_plan(2, make_plan(tmp_path, access=access))
    assert result.returncode == 0, result.stderr
    datasets = read_datasets(tmp_path / "run/data")
    writers = np.concatenate(datasets)[:: TRANSFER // 8] >> 32
    assert_written_by(writers, datasets)
    assert sorted(writers) == [0] * (len(writers) // 2) + [1] * (len(writers) // 2)


def test_chunks_and_alignment_are_in_the_file(run_plan: RunPlan, tmp_path: Path) -> None:
    io = {"chunk": 8192, "alignment": 65536, "collective_metadata": True, "collective": True}
    result = run_plan(2, make_plan(tmp_path, io=io))
    assert result.returncode == 0, result.stderr
    assert_known_content(read_datasets(tmp_path / "run/data"), 2)
    with h5py.File(tmp_path / "run/data", "r") as file:
        assert all(dataset.chunks == (1024,) for dataset in file.values())
    result = run_plan(2, make_plan(tmp_path / "..", io={"alignment": 8192}) | {"id": "a"})
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path.parent / "run/data", "r") as file:
        assert all(dataset.id.get_offset() % 8192 == 0 for dataset in file.values())
    shutil.rmtree(tmp_path.parent / "run")


def test_changed_byte_is_a_mismatch(run_plan: RunPlan, tmp_path: Path) -> None:
    plan = make_plan(tmp_path, verify="on_read")
    plan["phases"] = plan["phases"][:1]
    assert run_plan(2, plan).returncode == 0
    with h5py.File(tmp_path / "run/data", "r+") as file:
        file["Dataset-0000.0001"][5] += 1
    plan["target"]["use_existing"] = True
    plan["phases"] = [{"id": "r", "op": "read"}]
    result = run_plan(2, plan)
    assert result.returncode == 4, result.stderr


def test_ior_arguments_create_the_same_file_as_the_plan(run_engine: RunPlan, run_plan: RunPlan, tmp_path: Path) -> None:
    assert run_plan(2, make_plan(tmp_path)).returncode == 0
    line = f"ior -a HDF5 -w -r -R -W -k -l o -G {SEED} -t 4k -b 16k -s 3 -o {tmp_path}/f"
    for options in ("", "-c", "-c --hdf5.collectiveMetadata", "-e -C"):
        result = run_engine(2, *line.split(), *options.split())
        assert result.returncode == 0, result.stdout + result.stderr
        first, second = read_datasets(tmp_path / "f"), read_datasets(tmp_path / "run/data")
        assert len(first) == SEGMENTS
        assert all(map(np.array_equal, first, second))
        compare = shutil.which("h5diff")
        if compare is not None:
            assert subprocess.run([compare, f"{tmp_path}/f", f"{tmp_path}/run/data"], check=False).returncode == 0


def test_ior_chunks_are_counted_in_elements(run_engine: RunPlan, tmp_path: Path) -> None:
    line = f"ior -a HDF5 -w -k -t 4k -b 16k -o {tmp_path}/f --hdf5.chunkSize=512 --hdf5.setAlignment=4k"
    result = run_engine(2, *line.split())
    assert result.returncode == 0, result.stdout + result.stderr
    with h5py.File(tmp_path / "f", "r") as file:
        assert file["Dataset-0000.0000"].chunks == (512,)


def test_ior_hints_for_hdf5_are_applied_and_printed(run_engine: RunPlan, tmp_path: Path) -> None:
    (tmp_path / "hints").write_text("IOR_HINT__MPI__cb_buffer_size=65536\n")
    line = f"ior -a HDF5 -c -w -k -t 4k -b 16k -o {tmp_path}/f --hdf5.hintsFileName={tmp_path}/hints --hdf5.showHints"
    result = run_engine(2, *line.split())
    assert result.returncode == 0, result.stdout + result.stderr
    assert "hints given to MPI_File_open: cb_buffer_size=65536" in result.stderr
    plan = run_engine(1, *line.split(), "--sonde-plan").stdout
    assert json.loads(plan[plan.index("{") :])["data"]["io"]["hints"] == {"cb_buffer_size": "65536"}


def test_time_limit_does_not_corrupt_the_file(run_plan: RunPlan, tmp_path: Path) -> None:
    """Tasks stop at different operations and segments; none waits for another in a collective call."""
    plan = make_plan(tmp_path, verify="none", access={"transfer": TRANSFER, "block": BLOCK, "segments": 200})
    plan["phases"] = [{"id": "w", "op": "write", "stop": {"stonewall": "30ms"}}]
    result = run_plan(3, plan)
    assert result.returncode == 0, result.stderr
    assert len(read_datasets(tmp_path / "run/data")) == 200


WRONG_PLANS = [
    ({"io": {"queue_depth": 4}}, "one operation at a time"),
    ({"io": {"direct": True}}, "io.direct"),
    ({"io": {"sync": "dsync"}}, "io.sync"),
    ({"io": {"view": True}}, "io.view needs backend mpiio"),
    ({"io": {"fsync": "per_op"}}, "flush takes all tasks"),
    ({"io": {"preallocate": "truncate"}}, "allocates its datasets itself"),
    ({"io": {"chunk": 12}}, "multiple of 8 B"),
    ({"files": {"mapping": "per_task"}, "io": {"chunk": 2 * BLOCK}}, "larger than block"),
    ({"files": {"mapping": "per_group", "group_size": 2}}, "either all do or none"),
    ({"access": {"transfer": 4, "block": 8, "segments": 1}}, "multiple of 8 B"),
    ({"access": {"transfer": 8, "block": 8, "segments": 1, "gap": 8}}, "access.gap has no meaning"),
    ({"access": {"transfer": 8, "block": 8, "segments": 1, "offset": 8}}, "access.offset has no meaning"),
    ({"access": {"transfer": 8, "block": 8, "segments": 1, "order": "stride", "stride": 64}}, "access.order"),
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


@pytest.mark.parametrize(("options", "expected_sentence"), [("-z", "-z does not go"), ("-Y", "-Y does not go")])
def test_invalid_ior_arguments_get_one_sentence(
    run_engine: RunPlan, tmp_path: Path, options: str, expected_sentence: str
) -> None:
    result = run_engine(2, *f"ior -a HDF5 {options} -t 8 -b 64 -o {tmp_path}/f".split())
    assert result.returncode == 2
    assert sum(expected_sentence in line for line in result.stderr.splitlines()) == 1
    assert not (tmp_path / "f").exists()


def test_declarations_match_the_hdf5_header(hdf5_engine: str, tmp_path: Path) -> None:
    """Compiles our declarations with the real header: number, size and kind of all parameters, and all constants."""
    compiler = shutil.which("mpicxx.openmpi")
    header = Path("/usr/include/hdf5/openmpi/hdf5.h")
    if compiler is None or not header.exists():
        pytest.skip("the header of HDF5 for Open MPI is not installed: tools/system-packages tests")
    source = Path(__file__).with_name("hdf5_declarations.cc")
    command = [compiler, "-std=c++20", "-fsyntax-only", "-xc++", f"-I{ROOT}/engine", f"-I{header.parent}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
