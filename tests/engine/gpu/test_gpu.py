# SPDX-License-Identifier: Apache-2.0
"""Data in the memory of GPUs, with a driver of our own: where bytes go, what is counted, what is refused."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, FAILED, MISMATCH, ROOT, Engine, Plan, list_tree, write_plan

SOURCES = Path(__file__).parent


@dataclass(frozen=True)
class Copies:
    """Bytes to and from each of two GPUs, by all processes; no buffer is left registered or allocated."""

    to_first: int
    from_first: int
    to_second: int
    from_second: int


def read_copies(log: Path) -> Copies:
    rows = [[int(value) for value in line.split()] for line in log.read_text().splitlines()]
    assert rows
    assert all(row[4:] == [0, 0, 0] for row in rows), rows
    return Copies(*(sum(row[column] for row in rows) for column in range(4)))


SIZE = 1 << 20


def make_plan(target: Path, payload_kind: str = "stamped", backend: str = "posix", **io: Any) -> Plan:
    """Writes and reads 1 MiB a task in transfers of 64 KiB, one task in the memory of GPU 0, one in that of GPU 1."""
    data = {"io": {"gpus": [0, 1], **io}, "payload": {"kind": payload_kind}, "backend": backend}
    return write_plan(target, {"id": "w", "op": "write"}, {"id": "r", "op": "read"}, data=data, tasks={"threads": 2})


@pytest.mark.parametrize("backend", ["posix", "io_uring", "mmap"])
def test_every_byte_is_copied_once_for_constant_content(
    engine: Engine, target: Path, driver: str, tmp_path: Path, backend: str
) -> None:
    """Each area is filled on the GPU before a phase that writes zeros; then a byte is copied once."""
    log = tmp_path / "log"
    environment = {"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_LOG": str(log)}
    reading = make_plan(target, payload_kind="zero", backend=backend)
    result = engine.run(reading, env=environment)
    assert result.code == DONE, result.err
    copies = read_copies(log)
    assert copies.from_first == copies.from_second == SIZE
    assert SIZE <= copies.to_first <= 1.5 * SIZE


@pytest.mark.parametrize(
    "phase", [{"op": "mixed", "access": {"read_ratio": 0.5}}, {"op": "rewrite"}, {"op": "read", "measure": False}]
)
def test_other_phases_copy_too(engine: Engine, target: Path, driver: str, tmp_path: Path, phase: Plan) -> None:
    """All bytes pass to the GPU, those of writes because the processor makes them."""
    log = tmp_path / "log"
    plan = make_plan(target)
    plan["phases"][1] = {"id": "other", **phase}
    result = engine.run(plan, env={"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_LOG": str(log)})
    assert result.code == DONE, result.err
    copies = read_copies(log)
    assert copies.to_first == copies.to_second == 2 * SIZE


def test_training_delivers_each_sample_to_its_gpu(engine: Engine, target: Path, driver: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    plan = make_plan(target)
    plan["data"]["files"] = {"mapping": "many", "count": 4}
    plan["data"]["access"] = {"transfer": "64KiB", "block": "128KiB", "segments": 2}
    plan["phases"][0]["io"] = {"gpus": []}
    plan["phases"][1] = {"id": "t", "op": "train", "training": {"batch_size": 2, "compute_time": "1ms", "prefetch": 2}}
    result = engine.run(plan, env={"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_LOG": str(log)})
    assert result.code == DONE, result.err
    assert read_copies(log) == Copies(SIZE, 0, SIZE, 0)


def test_content_of_the_processor_passes_through_the_gpu(
    engine: Engine, target: Path, driver: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    result = engine.run(make_plan(target), env={"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_LOG": str(log)})
    assert result.code == DONE, result.err
    assert read_copies(log) == Copies(2 * SIZE, SIZE, 2 * SIZE, SIZE)


@pytest.mark.parametrize(("backend", "depth"), [("posix", 1), ("mmap", 1), ("io_uring", 1), ("io_uring", 8)])
@pytest.mark.parametrize("corrupt", [False, True])
def test_verification_sees_the_bytes_that_the_gpu_got(
    engine: Engine, target: Path, driver: str, backend: str, depth: int, corrupt: bool
) -> None:
    """A byte that changes on the way to the GPU is a mismatch, also when what lies on storage is right."""
    plan = make_plan(target, backend=backend, queue_depth=depth)
    plan["phases"][0]["io"] = {"gpus": []}
    plan["data"]["verify"] = "on_read"
    environment = {"SONDE_CUDA_LIBRARY": driver, **({"FAKE_CUDA_CORRUPT": "1"} if corrupt else {})}
    result = engine.run(plan, env=environment)
    assert result.code == (MISMATCH if corrupt else DONE), result.err


def test_written_bytes_come_from_the_gpu(engine: Engine, target: Path, driver: str) -> None:
    """The fake driver corrupts GPU memory; a phase without a GPU then finds the wrong bytes on storage."""
    plan = make_plan(target)
    plan["phases"][1].update({"io": {"gpus": []}, "verify": "on_read"})
    result = engine.run(plan, env={"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_CORRUPT": "1"})
    assert result.code == MISMATCH, result.err


def test_unpinned_buffers_are_a_note(engine: Engine, target: Path, driver: str) -> None:
    environment = {"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_FAIL": "cuMemHostRegister"}
    result = engine.run(make_plan(target), env=environment)
    assert result.code == DONE, result.err
    assert any("could not be pinned" in str(line) for line in result.lines)


@pytest.mark.parametrize(
    ("environment", "expected_sentence"),
    [
        ({"SONDE_CUDA_LIBRARY": "/no/such/libcuda.so"}, "the driver of NVIDIA GPUs cannot be loaded"),
        ({"SONDE_CUDA_LIBRARY": "libm.so.6"}, "libm.so.6 has no cuInit: Sonde needs the driver of CUDA 11 or later"),
        ({"FAKE_CUDA_FAIL": "cuInit"}, "the driver of NVIDIA GPUs cannot be used (unknown error)"),
        ({"FAKE_CUDA_GPUS": "0"}, "io.gpus names GPU 0, but there is none here: leave it out"),
        ({"FAKE_CUDA_GPUS": "1"}, "io.gpus names GPU 1, but the only one here is 0"),
    ],
)
def test_missing_gpu_is_refused_before_files_are_created(
    engine: Engine, target: Path, driver: str, environment: dict[str, str], expected_sentence: str
) -> None:
    result = engine.run(make_plan(target), env={"SONDE_CUDA_LIBRARY": driver, **environment})
    assert result.code == ENVIRONMENT
    assert expected_sentence in result.only_sentence
    assert list_tree(target) == []


@pytest.mark.parametrize("failing", ["cuMemAlloc", "cuDevicePrimaryCtxRetain"])
def test_gpu_without_room_ends_the_run_in_one_sentence(engine: Engine, target: Path, driver: str, failing: str) -> None:
    result = engine.run(make_plan(target), env={"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_FAIL": failing})
    assert result.code in (FAILED, ENVIRONMENT)
    assert "out of memory" in result.sentence
    assert list_tree(target) == []


@pytest.mark.parametrize("failing", ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize"])
@pytest.mark.parametrize(("backend", "depth"), [("posix", 1), ("io_uring", 8)])
def test_failed_copy_fails_the_operation(
    engine: Engine, target: Path, driver: str, failing: str, backend: str, depth: int
) -> None:
    plan = make_plan(target, backend=backend, queue_depth=depth)
    result = engine.run(plan, env={"SONDE_CUDA_LIBRARY": driver, "FAKE_CUDA_FAIL": failing})
    assert result.code == FAILED
    assert "unknown error" in result.sentence
    assert list_tree(target) == []


@pytest.mark.parametrize(
    ("io", "expected_sentence"),
    [
        ({"gpus": [-1]}, "must be a whole number from 0"),
        ({"gpus": ["0"]}, "must be a whole number"),
        ({"gpus": 0}, "must be a list"),
        ({"backend": "paced"}, "data.io.gpus needs backend"),
        ({"backend": "null"}, "data.io.gpus needs backend"),
    ],
)
def test_wrong_lists_of_gpus_are_refused(
    engine: Engine, target: Path, driver: str, io: dict[str, Any], expected_sentence: str
) -> None:
    result = engine.run(make_plan(target, **io), env={"SONDE_CUDA_LIBRARY": driver})
    assert result.code == BAD_PLAN
    assert expected_sentence in result.only_sentence


def test_declarations_match_the_cuda_header(tmp_path: Path) -> None:
    """Compiles our declarations with the real header: number, size and kind of all parameters, names and constants."""
    package = importlib.util.find_spec("nvidia.cuda_runtime")
    assert package is not None, "install the test requirements: pip install '.[test]'"
    assert package.submodule_search_locations is not None
    include = Path(package.submodule_search_locations[0]) / "include"
    compiler = shutil.which("c++")
    assert compiler
    source = SOURCES / "cuda_declarations.cc"
    command = [compiler, "-std=c++20", "-fsyntax-only", "-xc++", f"-I{ROOT}/engine", f"-I{include}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
