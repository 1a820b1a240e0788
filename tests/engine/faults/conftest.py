# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the fault tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from device_plans import SIZE  # noqa: E402
from file_systems import loop_device  # noqa: E402

Fail = Callable[..., dict[str, str]]


@pytest.fixture(scope="session")
def failing_calls(tmp_path_factory: pytest.TempPathFactory) -> Fail:
    """Environment variables under which calls on the data files fail: call, after (how many succeed), error."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the library of failing calls")
    library = tmp_path_factory.mktemp("failing") / "failing_calls.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "failing_calls.c"), "-ldl"]
    subprocess.run(command, check=True)

    def environment(call: str, error: int | str, after: int = 0, path: str = "data.") -> dict[str, str]:
        return {
            "LD_PRELOAD": str(library),
            "FAIL_CALL": call,
            "FAIL_ERRNO": str(error),
            "FAIL_AFTER": str(after),
            "FAIL_PATH": path,
        }

    return environment


@pytest.fixture
def device_image(tmp_path: Path) -> Path:
    """A sparse file of 64 MiB below a loop device."""
    path = tmp_path / "device.img"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


@pytest.fixture
def device(device_image: Path) -> Iterator[str]:
    """A loop device without content. Devices of this machine are never named here."""
    with loop_device(device_image) as path:
        yield path
