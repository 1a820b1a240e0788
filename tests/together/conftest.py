# SPDX-License-Identifier: Apache-2.0
"""The whole chain as a user starts it: the lab of this checkout with an engine that was built from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # what its tests share

from small_machine import resolved, small_machine  # noqa: E402  (found through the path above)
from warm_sonde import WarmSonde  # noqa: E402

from sonde.launch.mounted_machine import find_mounter  # noqa: E402
from sonde.launch.preload import find_preload_library  # noqa: E402
from sonde.launch.simulator import find_simulator  # noqa: E402
from sonde.model.errors import MachineError  # noqa: E402


@pytest.fixture
def engine() -> Path:
    """$SONDE_ENGINE, else the newest program in build/*/engine."""
    engine_path = os.environ.get("SONDE_ENGINE")
    built = sorted(ROOT.glob("build/*/engine/sonde-engine"), key=lambda path: path.stat().st_mtime)
    if not engine_path and not built:
        pytest.skip("the engine is not built: cmake --preset dev && cmake --build --preset dev, or set SONDE_ENGINE")
    return Path(engine_path) if engine_path else built[-1]


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmSonde]:
    """The process that has everything loaded."""
    warm_sonde = WarmSonde(ROOT / "lab")
    yield warm_sonde
    warm_sonde.close()


@pytest.fixture(scope="session")
def warm_program(warm_process: WarmSonde, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that behaves like `sonde` and starts faster."""
    return warm_process.write_program(tmp_path_factory.mktemp("programs") / "sonde")


@pytest.fixture
def sonde(engine: Path, warm_process: WarmSonde, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sonde WORDS…` in the folder of the test."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab")}
        return warm_process.run(arguments, tmp_path, environment)

    return run


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Reads what the archive in the folder of the test knows of its runs, the oldest first."""

    def read() -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(tmp_path.glob("sonde-archive/*/*/run.json"))]

    return read


@pytest.fixture
def library() -> Path:
    """The preload library; the test is skipped where there is none."""
    try:
        return find_preload_library()
    except MachineError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def sonde_with_library(
    library: Path, warm_process: WarmSonde, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `sonde WORDS…` in the folder of the test, with no settings of the library but those of the words."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "IOBUF_PARAMS"}
        return warm_process.run(arguments, tmp_path, environment)

    return run


@pytest.fixture(scope="session")
def simulator() -> Path:
    """The simulator; the test is skipped where it is not built."""
    try:
        return find_simulator()
    except MachineError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def mount_program() -> Path:
    """The program that mounts a described machine; the test is skipped where it was built without libfuse, or where
    nothing can be mounted."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or shutil.which("fusermount3") is None:
        pytest.skip("/dev/fuse or fusermount3 cannot be used here")
    try:
        return find_mounter()
    except MachineError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def small_system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two targets, resolved: a direct write of a stripe takes what arithmetic says."""
    return resolved(tmp_path_factory.mktemp("small"), small_machine(targets=2, nodes=4, server_threads=1))


@pytest.fixture
def mount_model(mount_program: Path, small_system: Path, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts the small machine on `machine` in the folder of the test, with words of one's own; unmounts it."""
    directory = tmp_path / "machine"
    directory.mkdir()

    def start(*arguments: str) -> Path:
        command = [
            str(mount_program),
            "mount",
            str(directory),
            "--system",
            str(small_system),
            "--store",
            str(tmp_path / "store"),
        ]
        (tmp_path / "store").mkdir(exist_ok=True)
        answer = subprocess.run([*command, *arguments], stderr=subprocess.PIPE, text=True, check=False)
        if "fusermount3" in answer.stderr or "Operation not permitted" in answer.stderr:
            pytest.skip(f"this container may not mount: {answer.stderr.strip()}")
        assert answer.returncode == 0, answer.stderr
        return directory

    yield start
    subprocess.run(["fusermount3", "-u", "-z", str(directory)], capture_output=True, check=False)


@pytest.fixture
def short_io500() -> str:
    """An ini file of IO500 with little data and a stonewall of a second."""
    return """[global]
datadir = ./data
timestamp-resultdir = FALSE
[debug]
stonewall-time = 1
[ior-easy]
transferSize = 64k
blockSize = 1m
[ior-hard]
segmentCount = 20
[mdtest-easy]
n = 200
[mdtest-hard]
n = 150
[ior-rnd4K-easy-read]
run = FALSE
"""
