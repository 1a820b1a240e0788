# SPDX-License-Identifier: Apache-2.0
"""Which tests want the machine for themselves: those that hold measured times, or ratios of them, against a truth. They
are marked `serial`, or their file is named here. And which are only run when asked for: `pytest -m nightly`, or
`-m storage`.

tools/test.py runs all others on every core at once, and these afterwards, one at a time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from sonde.model.schema_problems import find_schema_problems

HERE = Path(__file__).parent
os.environ["SONDE_CONFIG"] = ""  # the configuration of whoever runs the tests must not change them
# Ranks of Open MPI that wait for each other leave the processor to other tests. Open MPI does so itself only where it
# starts more ranks than there are cores.
os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
find_schema_problems({}, {})  # imports jsonschema for all tests in a third of the time of `import jsonschema`
# How long one drawn case takes says how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile("sonde", deadline=None)
hypothesis.settings.load_profile("sonde")
SERIAL = (
    "lab/design/routes/test_health.py",  # flows of a pace
    "engine/faults/test_memory.py",  # with busy processors the kernel counts resident pages less exactly
    "lab/model/system/test_large_sites.py",
    "together/test_slowdown_detection.py",
)
# Of the serial tests, those that mostly wait for paced packets in network namespaces; the others run next to them.
SERIAL_NETWORK = ("lab/design/routes/test_health.py", "lab/design/routes/test_path_latency.py")
# The lab stores its files with a sync for each; a disk would take a fifth of the processor time of its tests, and most
# of their waiting.
IN_MEMORY = ("lab/",)
# These measure a disk, ask for its properties, or take leases on files, which a file system in memory refuses.
ON_DISK = ("lab/cli/test_layout.py", "lab/cli/test_with_engine.py", "lab/telemetry/test_device_sources.py")
MEMORY_FILE_SYSTEM = Path("/dev/shm")  # nosec B108 # folders in it have random names
MIN_FREE_MEMORY_BYTES = 2 << 30
# Long files whose tests share nothing: each test may be the work of another process.
DIVIDED = ("together/test_commands.py", "together/test_io500.py")
# Files whose tests parse the same sources are the work of one process together.
RUN_IN_ONE_WORKER = (
    "structure/test_directions.py",
    "structure/test_file_writing.py",
    "structure/test_module_cycles.py",
    "structure/test_names.py",
    "structure/test_shell.py",
    "structure/test_terminal_output.py",
)
# Any other file is the work of one process: those that take longest come first, so that no core waits for one at last.
START_FIRST = (
    "together/test_slurm.py",  # mostly waits
    "lab/cli/test_with_engine.py",  # a whole check
    "together/test_commands.py",
    "together/test_io500.py",
    "lab/store/test_bench.py",
    "lab/experiments/check/test_check.py",
    "lab/stats/test_shapes.py",
    "lab/store/test_killed_writers.py",
    "together/test_plan_agreement.py",
    "lab/trends/test_budget.py",
    "lab/trends/test_survey.py",
    "lab/report/test_in_browser.py",
    "preload/test_tools.py",
    "structure/test_adding_to_the_engine.py",
    # Without their place here these would be among the last, by their names.
    "preload/test_refused_writes.py",
    "structure/test_names.py",
    "together/test_io500_over_nodes.py",
    "together/test_mpi_under_iobuf.py",
    "together/test_object_plans.py",
    "together/test_simulate.py",
    "together/test_tune_on_models.py",
    "together/test_under_launchers.py",
)


def pytest_configure() -> None:
    """A shell that starts us behind itself has SIGINT ignored; programs that a test interrupts would inherit that.

    Collecting makes a million objects and no garbage: to look for some takes a sixth of the time.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of `-m serial` alone, files without such tests: to import them all takes longer than many of these tests."""
    if config.option.markexpr != "serial" or not collection_path.match("test_*.py"):
        return None
    is_listed = collection_path.relative_to(HERE).as_posix().startswith(SERIAL)
    return None if is_listed or "mark.serial" in collection_path.read_text(encoding="utf-8") else True


def pytest_collection_finish() -> None:
    """From here on only new objects are searched for garbage."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for asked_for in (name for name in ("nightly", "storage") if name not in config.option.markexpr):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(asked_for)])
        items[:] = [item for item in items if not item.get_closest_marker(asked_for)]
    places = [item.path.relative_to(HERE).as_posix() for item in items]
    for item, test_path in zip(items, places, strict=True):
        if test_path.startswith(SERIAL):
            item.add_marker(pytest.mark.serial)
    turn = {
        test_path: START_FIRST.index(test_path) if test_path in START_FIRST else len(START_FIRST)
        for test_path in places
    }
    items.sort(key=lambda item: turn[item.path.relative_to(HERE).as_posix()])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`: hands out files, those of DIVIDED test by test, those of RUN_IN_ONE_WORKER as one and the
    serial tests in two groups."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FileOrTestScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist states no types
        def _split_scope(self, nodeid: str) -> str:
            test_path = nodeid.split("::", 1)[0]
            if config.option.markexpr == "serial":
                return "network" if test_path.endswith(SERIAL_NETWORK) else "others"
            if test_path.endswith(DIVIDED):
                return nodeid
            return "together" if test_path.endswith(RUN_IN_ONE_WORKER) else test_path

    return FileOrTestScheduling(config, log)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Sets have no order of their own: without this every process would give such a test another name."""
    return "{" + ", ".join(sorted(map(repr, val))) + "}" if isinstance(val, set | frozenset) else None


@pytest.fixture(scope="session")
def fsx() -> str:
    """The exerciser of crates.io; what wants it is skipped where it is not installed."""
    program = os.environ.get("FSX") or shutil.which("fsx") or shutil.which("fsx", path=Path.home() / ".cargo/bin")
    if program is None:
        pytest.skip("fsx is not on PATH (cargo install fsx)")
    return program


@pytest.fixture(scope="session")
def memory_folder() -> Iterator[Path | None]:
    """A folder on a file system in memory, or None where there is little space on it."""
    if not MEMORY_FILE_SYSTEM.is_dir() or shutil.disk_usage(MEMORY_FILE_SYSTEM).free < MIN_FREE_MEMORY_BYTES:
        yield None
        return
    for folder in MEMORY_FILE_SYSTEM.glob("sonde-tests-*"):
        process_number = folder.name.split("-")[2]
        if process_number.isdigit() and not Path("/proc", process_number).exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    with tempfile.TemporaryDirectory(
        prefix=f"sonde-tests-{os.getpid()}-", dir=MEMORY_FILE_SYSTEM, ignore_cleanup_errors=True
    ) as folder_name:
        yield Path(folder_name)


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, memory_folder: Path | None
) -> Iterator[Path]:
    """As pytest's, but in memory for tests of IN_MEMORY; files of a failed test are then moved to pytest's folder."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    test_path = request.path.relative_to(HERE).as_posix()
    if memory_folder is None or not test_path.startswith(IN_MEMORY) or test_path in ON_DISK:
        # mktemp() of pytest lists the folders of all earlier tests.
        yield Path(tempfile.mkdtemp(prefix=f"{name}-", dir=tmp_path_factory.getbasetemp()))
        return
    failures = request.session.testsfailed
    path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=memory_folder))
    yield path
    if request.session.testsfailed > failures:
        with contextlib.suppress(OSError):  # a pipe or a socket cannot be moved
            shutil.move(path, tmp_path_factory.getbasetemp())
    shutil.rmtree(path, ignore_errors=True)
