# SPDX-License-Identifier: Apache-2.0
"""One run from start to end: its engine processes one stage after the other, their record followed as it grows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sonde.launch.child import Child, SignalWatch
from sonde.launch.engine import Engine, engine_error, last_sentence
from sonde.launch.follow import Follower
from sonde.launch.launchers.launcher import Launcher
from sonde.model.errors import DONE, FAILED, INTERRUPTED, UserError, sentence
from sonde.model.lines import Line, RunLine
from sonde.model.record import RecordReader, join_stages

RECORD = "record.ndjson"
MESSAGES = "messages.txt"
# A launcher that has lost a node may wait for it without end: after a run that has failed it gets so long to return.
LAUNCHER_GRACE_S = 20.0
# A call to storage that hangs keeps its phase from ending at the time limit. It gets so many seconds more.
STORAGE_PATIENCE_S = 300.0
# Statuses of a child that ended by a signal that we pass on (HUP, INT, USR1, TERM) before it could listen to it: its
# own, and how a shell tells it.
_ENDED_BY_REQUEST = (-1, -2, -10, -15, 129, 130, 138, 143)

Observer = Callable[[str, Line], None]


@dataclass(frozen=True)
class Job:
    """What to launch, and where its files go."""

    engine: Engine
    launcher: Launcher
    plan_file: Path
    folder: Path
    run_id: str
    stages: int = 1
    mpi_module: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)  # of what is launched, beside that of this process
    directory: Path | None = None  # where it runs; None: where this process does
    time_limit_s: float | None = None  # after which the engine ends by itself, if its storage lets it

    def command(self, stage: int | None, record: Path) -> list[str]:
        """The command line of one stage; None when the plan has only one."""
        engine = [str(self.engine.path), "run", str(self.plan_file), "--record", str(record), "--run-id", self.run_id]
        if stage is not None:
            engine += ["--stage", str(stage)]
        if self.mpi_module is not None:
            engine += ["--mpi-module", str(self.mpi_module)]
        return self.launcher.arguments(engine)


@dataclass(frozen=True)
class Outcome:
    """How it ended. `text` is one sentence, empty when all went well."""

    exit_code: int
    text: str
    record: RecordReader


class Session:
    """Runs a job. The observer sees every line of the record soon after it was written, and only whole lines."""

    def __init__(
        self,
        job: Job,
        observer: Observer,
        started: Callable[[int], None] = lambda pid: None,
        stopping: Callable[[], None] = lambda: None,
        beside: Callable[[], None] = lambda: None,
    ) -> None:
        self._job = job
        self._observer = observer
        self._started = started  # told the process id of each child
        self._stopping = stopping  # told once when a signal was passed on
        self._beside = beside  # looks after what else the job writes, as often as the record is looked at
        self._reader = RecordReader()
        self._complaint = ""
        self._stuck = ""

    def run(self) -> Outcome:
        """Blocks until the end. Raises only when nothing could be started."""
        if self._job.stages > 1:
            return self._run_in_launches()
        with SignalWatch() as signals:
            return self._outcome(*self._stage(None, self._job.folder / RECORD, signals))

    def _run_in_launches(self) -> Outcome:
        """A launch for each stage, so that its processes have nothing of the earlier ones' memory or open files."""
        files = [self._job.folder / f"stage-{stage}.ndjson" for stage in range(self._job.stages)]
        began: list[float] = []
        code, said = DONE, ""
        with SignalWatch() as signals:
            for stage, file in enumerate(files):
                began.append(time.monotonic())
                code, said = self._stage(stage, file, signals)
                if code != DONE or signals.received:
                    break
        self._join(files[: len(began)], [at - began[0] for at in began])
        return self._outcome(code, said)

    def _join(self, files: list[Path], offsets: list[float]) -> None:
        present = [(file, offset) for file, offset in zip(files, offsets, strict=True) if file.exists()]
        joined = join_stages([file.read_bytes() for file, _ in present], [offset for _, offset in present])
        (self._job.folder / RECORD).write_bytes(joined)
        for file, _ in present:
            file.unlink()

    def _stage(self, stage: int | None, record: Path, signals: SignalWatch) -> tuple[int, str]:
        variables = {**self._job.launcher.environment(), **self._job.environment}
        overdue = _overdue(self._job)
        child = Child(self._job.command(stage, record), self._job.folder / MESSAGES, variables, self._job.directory)
        self._started(child.pid)
        follower = Follower(record)

        def look() -> None:
            for kind, line in self._reader.feed(follower.read()):
                if isinstance(line, RunLine) and not self._is_whole(line):
                    child.stop()
                self._observer(kind, line)
            if self._reader.end is not None and self._reader.end.exit_code != DONE:
                child.allow(LAUNCHER_GRACE_S)
            if overdue is not None and time.monotonic() > overdue and self._reader.current is not None:
                child.allow(0)
            self._beside()

        def relayed(number: int) -> int:
            self._stopping()
            return self._job.launcher.relayed(number)

        status = child.watch(signals, relayed, look)
        late = overdue is not None and time.monotonic() > overdue and status != DONE
        if child.stuck or (late and self._reader.current is not None):
            self._stuck = self._waits(child)
        for kind, line in self._reader.finish():
            self._observer(kind, line)
        follower.close()
        return status, child.messages()

    def _waits(self, child: Child) -> str:
        """That storage did not answer, and what becomes of the engine."""
        phase = self._reader.current
        where = f"Phase {phase.id} waited" if phase else "The engine waited"
        left = f"; process {child.pid} of the engine cannot be ended before that" if child.stuck else ""
        return (
            f"{where} for storage that did not answer and was given up; finished phases are kept, and `sonde clean`"
            f" removes what is left when the storage answers{left}."
        )

    def _is_whole(self, line: RunLine) -> bool:
        """False when the launcher started processes that do not know of each other: each would run the whole plan."""
        wanted = self._job.launcher.ranks
        if wanted is None or line.processes is None or line.processes == wanted:
            return True
        self._complaint = (
            f"{self._job.launcher.name} was asked for {wanted} processes, but the engine sees {line.processes}: they do"
            " not know of each other. Use the launcher of the MPI that the engine loads (`sonde doctor`)"
            f"{self._job.launcher.lost}."
        )
        return False

    def _outcome(self, status: int, messages: str) -> Outcome:
        end, said = self._reader.end, last_sentence(messages)
        if self._complaint:
            return Outcome(3, self._complaint, self._reader)
        if self._stuck:
            return Outcome(INTERRUPTED, self._stuck, self._reader)
        if end is not None and not (end.exit_code == DONE and status != DONE):
            text = "" if end.exit_code == DONE else sentence(end.text) or str(engine_error(end.exit_code, said))
            return Outcome(end.exit_code, text, self._reader)
        if status == DONE:
            return Outcome(FAILED, "The engine ended without completing its record.", self._reader)
        program = "The engine" if self._job.launcher.ranks is None else f"The launcher {self._job.launcher.name}"
        error = engine_error(status, said, program)
        code = INTERRUPTED if status in _ENDED_BY_REQUEST else error.exit_code
        return Outcome(code, str(error), self._reader)


def _overdue(job: Job) -> float | None:
    """When (CLOCK_MONOTONIC) a run that has to be over by then is given up; None without a time limit.

    SONDE_STORAGE_PATIENCE is the time between the two in seconds.
    """
    if job.time_limit_s is None:
        return None
    wish = os.environ.get("SONDE_STORAGE_PATIENCE", "")
    try:
        patience = float(wish) if wish else STORAGE_PATIENCE_S
    except ValueError:
        raise UserError(f'SONDE_STORAGE_PATIENCE is "{wish}", which is no number of seconds.') from None
    return time.monotonic() + job.time_limit_s + patience
