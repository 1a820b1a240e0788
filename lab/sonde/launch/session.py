# SPDX-License-Identifier: Apache-2.0
"""Launches the engine for one run, stage by stage, and follows its record as it grows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sonde.launch.child_process import ChildProcess, SignalWatch
from sonde.launch.engine import Engine, find_engine_message, make_engine_error
from sonde.launch.growing_file import GrowingFile
from sonde.launch.launchers.launcher import Launcher
from sonde.model.confined_files import ConfinedDirectory
from sonde.model.errors import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UserError, format_as_sentence
from sonde.model.lines import RecordLine, RunLine
from sonde.model.record import RECORD_FILE, RecordReader, merge_stage_records

MESSAGES_FILE = "messages.txt"
# Time for a launcher to return after a failed run. A launcher that has lost a node may wait for it forever.
LAUNCHER_GRACE_S = 20.0
# Time for a phase to end after the time limit. A call to storage that hangs keeps it from ending.
STUCK_STORAGE_GRACE_S = 300.0
# Statuses of a child that a forwarded signal (HUP, INT, USR1, TERM) ended before it could install a handler: as wait()
# reports them, and as a shell does.
_EXIT_CODES_OF_FORWARDED_SIGNALS = (-1, -2, -10, -15, 129, 130, 138, 143)

LineObserver = Callable[[str, RecordLine], None]


@dataclass(frozen=True)
class DevicePermission:
    """The block device that a run may access, as the user typed it; `destroy`: also when it holds data."""

    device: str = ""
    destroy: bool = False

    def make_engine_options(self) -> list[str]:
        """The options of `sonde-engine run`."""
        return [
            *(["--allow-device", self.device] if self.device else []),
            *(["--destroy"] if self.destroy else []),
        ]


NO_DEVICE = DevicePermission()


@dataclass(frozen=True)
class EngineLaunch:
    """A program to launch, and the folder for its files."""

    engine: Engine
    launcher: Launcher
    plan_file: Path
    folder: Path
    run_id: str
    stages: int = 1
    mpi_module: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # variables besides those of this process
    directory: Path | None = None  # working directory; None: that of this process
    time_limit_s: float | None = None  # after which the engine ends by itself, unless storage hangs
    device_permission: DevicePermission = NO_DEVICE

    def make_stage_command(self, stage: int | None, record_file: Path) -> list[str]:
        """The command line of one stage; `stage` is None when the plan has only one."""
        engine = [
            str(self.engine.path),
            "run",
            str(self.plan_file),
            "--record",
            str(record_file),
            "--run-id",
            self.run_id,
        ]
        if stage is not None:
            engine += ["--stage", str(stage)]
        if self.mpi_module is not None:
            engine += ["--mpi-module", str(self.mpi_module)]
        engine += self.device_permission.make_engine_options()
        return self.launcher.make_command_line(engine)


@dataclass(frozen=True)
class LaunchResult:
    """How the launch ended. `text` is one sentence, empty after success."""

    exit_code: int
    text: str
    record: RecordReader


class EngineSession:
    """Runs one launch. The observer is called for every complete line of the record soon after it was written."""

    def __init__(
        self,
        launch: EngineLaunch,
        observer: LineObserver,
        on_start: Callable[[int], None] = lambda pid: None,
        on_stop: Callable[[], None] = lambda: None,
        on_poll: Callable[[], None] = lambda: None,
    ) -> None:
        self._launch = launch
        self._observer = observer
        self._on_start = on_start  # called with the process id of each child
        self._on_stop = on_stop  # called once when a signal was forwarded
        self._on_poll = on_poll  # called each time after the record was read
        self._reader = RecordReader()
        self._rank_error = ""  # the launcher started processes that do not form one run
        self._storage_error = ""  # storage did not answer

    def run_all_stages(self) -> LaunchResult:
        """Blocks until the end. Raises only when nothing could be started."""
        if self._launch.stages > 1:
            return self._run_stages()
        with SignalWatch() as signals:
            return self._make_launch_result(*self._run_stage(None, self._launch.folder / RECORD_FILE, signals))

    def _run_stages(self) -> LaunchResult:
        """Starts new processes for each stage, so that they inherit no memory or open files of earlier stages."""
        files = [self._launch.folder / f"stage-{stage}.ndjson" for stage in range(self._launch.stages)]
        start_times: list[float] = []
        status, messages = EXIT_OK, ""
        with SignalWatch() as signals:
            for stage, file in enumerate(files):
                start_times.append(time.monotonic())
                status, messages = self._run_stage(stage, file, signals)
                if status != EXIT_OK or signals.received:
                    break
        self._merge_records(files[: len(start_times)], [start - start_times[0] for start in start_times])
        return self._make_launch_result(status, messages)

    def _merge_records(self, record_files: list[Path], time_offsets: list[float]) -> None:
        present = [(file, offset) for file, offset in zip(record_files, time_offsets, strict=True) if file.exists()]
        with ConfinedDirectory.open(self._launch.folder) as folder:
            records = []
            for path, _ in present:
                with folder.open_file(path.name) as file:
                    records.append(file.read())
            folder.write_bytes(RECORD_FILE, merge_stage_records(records, [offset for _, offset in present]))
            for path, _ in present:
                folder.remove_file(path.name)

    def _run_stage(self, stage_number: int | None, stage_record: Path, signals: SignalWatch) -> tuple[int, str]:
        """Runs one stage. Returns the exit status and what the processes printed."""
        launch = self._launch
        variables = {**launch.launcher.make_environment(), **launch.environment}
        deadline = _compute_deadline(launch)
        child = ChildProcess(
            launch.make_stage_command(stage_number, stage_record),
            launch.folder / MESSAGES_FILE,
            variables,
            launch.directory,
        )
        self._on_start(child.pid)
        record_file = GrowingFile(stage_record)

        def observe_new_lines() -> None:
            for kind, line in self._reader.parse_chunk(record_file.read_appended_bytes()):
                if isinstance(line, RunLine) and not self._has_all_ranks(line):
                    child.request_stop()
                self._observer(kind, line)
            if self._reader.end is not None and self._reader.end.exit_code != EXIT_OK:
                child.kill_group_after(LAUNCHER_GRACE_S)
            if deadline is not None and time.monotonic() > deadline and self._reader.current_phase is not None:
                child.kill_group_after(0)
            self._on_poll()

        def choose_forwarded_signal(signal_number: int) -> int:
            self._on_stop()
            return launch.launcher.choose_forwarded_signal(signal_number)

        status = child.wait_for_end(signals, choose_forwarded_signal, observe_new_lines)
        is_late = deadline is not None and time.monotonic() > deadline and status != EXIT_OK
        if child.is_stuck or (is_late and self._reader.current_phase is not None):
            self._storage_error = self._describe_stuck_storage(child)
        for kind, line in self._reader.finish_input():
            self._observer(kind, line)
        record_file.close()
        return status, child.read_last_output()

    def _describe_stuck_storage(self, child: ChildProcess) -> str:
        """The error message when storage did not answer."""
        phase = self._reader.current_phase
        subject = f"Phase {phase.id}" if phase else "The engine"
        unkillable = f"; process {child.pid} of the engine cannot be killed before that" if child.is_stuck else ""
        return (
            f"{subject} waited for storage that did not answer, and was ended; finished phases are stored, and"
            f" `sonde clean` removes the remaining files when the storage answers{unkillable}."
        )

    def _has_all_ranks(self, run_line: RunLine) -> bool:
        """False when the processes that the launcher started did not connect: each would run the whole plan."""
        launcher = self._launch.launcher
        if launcher.ranks is None or run_line.processes is None or run_line.processes == launcher.ranks:
            return True
        self._rank_error = (
            f"{launcher.name} was asked for {launcher.ranks} processes, but the engine sees {run_line.processes}: "
            "they did"
            " not connect to each other. Use the launcher of the MPI that the engine loads (`sonde doctor`)"
            f"{launcher.missing_rank_hint}."
        )
        return False

    def _make_launch_result(self, exit_status: int, printed_text: str) -> LaunchResult:
        end, message = self._reader.end, find_engine_message(printed_text)
        if self._rank_error:
            return LaunchResult(EXIT_ENVIRONMENT, self._rank_error, self._reader)
        if self._storage_error:
            return LaunchResult(EXIT_INTERRUPTED, self._storage_error, self._reader)
        if end is not None and end.exit_code == EXIT_OK == exit_status:
            return LaunchResult(EXIT_OK, "", self._reader)
        if end is not None and end.exit_code != EXIT_OK:
            text = format_as_sentence(end.text) or str(make_engine_error(end.exit_code, message))
            return LaunchResult(end.exit_code, text, self._reader)
        if exit_status == EXIT_OK:
            return LaunchResult(EXIT_FAILED, "The engine ended without completing its record.", self._reader)
        launcher = self._launch.launcher
        program = "The engine" if launcher.ranks is None else f"The launcher {launcher.name}"
        error = make_engine_error(exit_status, message, program)
        code = EXIT_INTERRUPTED if exit_status in _EXIT_CODES_OF_FORWARDED_SIGNALS else error.exit_code
        return LaunchResult(code, str(error), self._reader)


def _compute_deadline(launch: EngineLaunch) -> float | None:
    """When (CLOCK_MONOTONIC) the session kills a phase that did not end: SONDE_STORAGE_PATIENCE seconds after the time
    limit. None without a time limit."""
    if launch.time_limit_s is None:
        return None
    text = os.environ.get("SONDE_STORAGE_PATIENCE", "")
    try:
        patience_s = float(text) if text else STUCK_STORAGE_GRACE_S
    except ValueError:
        raise UserError(f'SONDE_STORAGE_PATIENCE is "{text}", which is no number of seconds.') from None
    return time.monotonic() + launch.time_limit_s + patience_s
