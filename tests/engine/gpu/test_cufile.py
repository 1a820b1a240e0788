# SPDX-License-Identifier: Apache-2.0
"""The cufile backend, with a driver and a cuFile of our own."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import BAD_PLAN, DONE, ENVIRONMENT, FAILED, MISMATCH, ROOT, Engine, Plan, list_tree, write_plan

SIZE = 1 << 20


def make_plan(target: Path, **data: Any) -> Plan:
    """Two tasks write and read 1 MiB each in transfers of 64 KiB."""
    members = {"backend": "cufile", "io": {"gpus": [0, 1]}, **data}
    phases: list[Plan] = [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]
    return write_plan(target, *phases, data=members, tasks={"threads": 2})


@pytest.mark.parametrize("payload_kind", ["zero", "stamped"])
def test_all_bytes_go_through_cufile(
    engine: Engine, target: Path, gpu_environment: dict[str, str], tmp_path: Path, payload_kind: str
) -> None:
    log = tmp_path / "log"
    plan = make_plan(target, payload={"kind": payload_kind})
    result = engine.run(plan, env={**gpu_environment, "FAKE_CUFILE_LOG": str(log)})
    assert result.code == DONE, result.err
    rows = [[int(value) for value in line.split()] for line in log.read_text().splitlines()]
    assert sum(row[0] for row in rows) == 2 * SIZE
    assert sum(row[1] for row in rows) == 2 * SIZE
    assert rows[0][2] > 0  # buffers were registered


@pytest.mark.parametrize("corrupt", [False, True])
def test_verification_sees_the_bytes_that_the_gpu_got(
    engine: Engine, target: Path, gpu_environment: dict[str, str], corrupt: bool
) -> None:
    plan = make_plan(target, verify="on_read")
    plan["phases"][0].update({"backend": "posix", "io": {"gpus": []}})
    environment = {**gpu_environment, **({"FAKE_CUFILE_CORRUPT": "1"} if corrupt else {})}
    result = engine.run(plan, env=environment)
    assert result.code == (MISMATCH if corrupt else DONE), result.err


@pytest.mark.parametrize("corrupt", [False, True])
def test_written_bytes_come_from_the_gpu(
    engine: Engine, target: Path, gpu_environment: dict[str, str], corrupt: bool
) -> None:
    plan = make_plan(target)
    plan["phases"][1].update({"backend": "posix", "io": {"gpus": []}, "verify": "on_read"})
    environment = {**gpu_environment, **({"FAKE_CUFILE_CORRUPT": "1"} if corrupt else {})}
    result = engine.run(plan, env=environment)
    assert result.code == (MISMATCH if corrupt else DONE), result.err


def test_run_succeeds_when_cufile_buffer_registration_fails(
    engine: Engine, target: Path, gpu_environment: dict[str, str]
) -> None:
    """Registration makes cuFile faster, but where it fails the library uses its internal buffers."""
    result = engine.run(make_plan(target), env={**gpu_environment, "FAKE_CUFILE_FAIL": "cuFileBufRegister"})
    assert result.code == DONE, result.err


@pytest.mark.parametrize(
    ("failing", "expected_sentence"),
    [
        ("cuFileHandleRegister", "GPUDirect Storage is not supported on this file (EIO)"),
        ("cuFileWrite", "GPUDirect Storage is not supported on this file (EIO)"),
        ("errno", "(ENOSPC)"),
        ("cuFileDriverOpen", "cuFile cannot be started: the nvidia-fs driver is not loaded"),
    ],
)
def test_error_ends_the_run_in_one_sentence(
    engine: Engine, target: Path, gpu_environment: dict[str, str], failing: str, expected_sentence: str
) -> None:
    result = engine.run(make_plan(target), env={**gpu_environment, "FAKE_CUFILE_FAIL": failing})
    assert result.code in (FAILED, ENVIRONMENT)
    assert expected_sentence in result.sentence
    assert list_tree(target) == []


@pytest.mark.parametrize(
    ("environment", "expected_sentence"),
    [
        ({"SONDE_CUFILE_LIBRARY": "/no/libcufile.so"}, "cuFile cannot be loaded (/no/libcufile.so: "),
        ({"SONDE_CUFILE_LIBRARY": "libm.so.6"}, "libm.so.6 has no cuFileDriverOpen: Sonde needs cuFile 1.1 or later"),
        ({"FAKE_CUDA_GPUS": "1"}, "io.gpus names GPU 1, but the only one here is 0"),
    ],
)
def test_missing_library_is_refused_before_files_are_created(
    engine: Engine, target: Path, gpu_environment: dict[str, str], environment: dict[str, str], expected_sentence: str
) -> None:
    result = engine.run(make_plan(target), env={**gpu_environment, **environment})
    assert result.code == ENVIRONMENT
    assert expected_sentence in result.only_sentence
    assert list_tree(target) == []


def test_driver_is_queried_once_for_all_phases(
    engine: Engine, target: Path, gpu_environment: dict[str, str], tmp_path: Path
) -> None:
    """Two processes initialize the driver: a child that counts the GPUs, and the one whose tasks use them."""
    log = tmp_path / "log"
    plan = make_plan(target)
    plan["phases"] += [{"id": f"r{number}", "op": "read"} for number in range(4)]
    result = engine.run(plan, env={**gpu_environment, "FAKE_CUDA_INIT_LOG": str(log)})
    assert result.code == DONE, result.err
    assert len(log.read_text().splitlines()) == 2


def test_plan_without_gpus_is_refused(engine: Engine, target: Path, gpu_environment: dict[str, str]) -> None:
    result = engine.run(make_plan(target, io={}), env=gpu_environment)
    assert result.code == BAD_PLAN
    assert 'data.io.gpus is missing: backend "cufile" moves data to and from GPUs, like [0]' in result.only_sentence


def test_declarations_match_the_cufile_header() -> None:
    """Compiles our declarations with the real header: number, size and kind of all parameters, and constants."""
    packages = [importlib.util.find_spec(name) for name in ("nvidia.cufile", "nvidia.cuda_runtime")]
    includes = []
    for package in packages:
        assert package is not None, "install the test requirements: pip install '.[test]'"
        assert package.submodule_search_locations is not None
        includes.append(f"-I{Path(package.submodule_search_locations[0]) / 'include'}")
    compiler = shutil.which("c++")
    assert compiler
    source = Path(__file__).with_name("cufile_declarations.cc")
    command = [compiler, "-std=c++20", "-fsyntax-only", "-xc++", f"-I{ROOT}/engine", *includes, str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
