# SPDX-License-Identifier: Apache-2.0
"""The command line of another tool, run by the engine's dialect of it, and kept: one run in the archive for each plan
that it comes to.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sonde
from sonde.conduct.run import Observer, Result, Setup, failure
from sonde.launch.engine import NAME as ENGINE_NAME
from sonde.launch.engine import engine_error, last_sentence
from sonde.launch.follow import Follower
from sonde.launch.session import MESSAGES, RECORD, Job, Session
from sonde.model.errors import DONE, MachineError, UserError
from sonde.model.plan import Plan
from sonde.model.record import RecordReader, read_record
from sonde.store.archive import Draft, new_id


@dataclass(frozen=True)
class ToolLine:
    """Words for the dialect `tool` of the engine. `processes` are forked by it where no launcher starts them. `name`,
    `title` and `group`: how the run is called, and of what it is a part, when it is one of several."""

    tool: str
    words: tuple[str, ...]
    processes: int = 1
    name: str = ""
    title: str = ""
    group: str | None = None


@dataclass(frozen=True)
class ToolJob(Job):
    """Starts the dialect instead of a plan."""

    line: ToolLine = ToolLine("", ())

    def command(self, stage: int | None, record: Path) -> list[str]:
        own = ["--sonde-record", str(record), "--sonde-run-id", self.run_id]
        own += ["--sonde-title", self.line.title] if self.line.title else []
        if self.launcher.ranks is None and self.line.processes > 1:
            own += ["--sonde-processes", str(self.line.processes)]
        if self.mpi_module is not None:
            own += ["--sonde-mpi-module", str(self.mpi_module)]
        return self.launcher.arguments([str(self.engine.path), self.line.tool, *self.line.words, *own])


@dataclass(frozen=True)
class ToolResult:
    """What came of it. `output` is what the tool would have printed, `remarks` what else the engine had to say."""

    runs: tuple[Result, ...]
    output: str
    remarks: str
    exit_code: int
    text: str

    def raise_failure(self) -> None:
        """The error that ends the command, when there is one."""
        if self.exit_code != DONE:
            raise failure(self.exit_code, self.text)


def plans_of(line: ToolLine, setup: Setup) -> list[Plan]:
    """The plans that the words come to (with one task). Raises UserError when the engine refuses the words; an empty
    list when they ask for something else than a run, like help."""
    command = [str(setup.engine.path), line.tool, *line.words, "--sonde-plan"]
    try:
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as reason:
        raise MachineError(f"The engine {setup.engine.path} does not start: {reason.strerror}.") from None
    if answer.returncode != DONE:
        raise engine_error(answer.returncode, last_sentence(answer.stderr).removeprefix(f"{line.tool}: "))
    text, plans = answer.stdout.strip(), []
    while text.startswith("{"):
        document, end = json.JSONDecoder().raw_decode(text)
        plans.append(Plan.from_document(document, f"{line.tool} {' '.join(line.words)}"))
        text = text[end:].strip()
    return plans


class LaterRecords:
    """Follows the records of the second and later plans, which stand beside the first one's, one after the other."""

    def __init__(self, first: Path, count: int, observer: Observer, begin: Callable[[int], None]) -> None:
        self._paths = [first.with_name(f"{first.name}.{number}") for number in range(1, count)]
        self._observer = observer
        self._begin = begin  # told the index of a plan whose record has appeared
        self._at = 0
        self._follower: Follower | None = None
        self._reader = RecordReader()

    def look(self) -> None:
        """Hands out the lines that have come since."""
        while self._at < len(self._paths) and self._paths[self._at].exists():
            if self._follower is None:
                self._follower, self._reader = Follower(self._paths[self._at]), RecordReader()
                self._begin(self._at + 1)
            for kind, line in self._reader.feed(self._follower.read()):
                self._observer(kind, line)
            if self._reader.end is None:
                return
            self._follower.close()
            self._follower = None
            self._at += 1


def conduct_line(
    line: ToolLine,
    plans: Sequence[Plan],
    setup: Setup,
    observer: Observer,
    begin: Callable[[int], None] = lambda index: None,
) -> ToolResult:
    """Runs it and keeps every plan's record, however it ended. `begin` is told the index of each plan but the first
    when its record appears. Raises UserError when nothing was measured."""
    first = plans[0]
    group = line.group or (new_id(line.tool) if len(plans) > 1 else None)
    name = line.name or line.tool
    draft = setup.archive.begin(name, first.to_json(), _facts(line, setup, first.document, group))
    job = ToolJob(setup.engine, setup.launcher, draft.plan_file, draft.folder, draft.id, 1, setup.mpi_module, line=line)
    later_records = LaterRecords(draft.folder / RECORD, len(plans), observer, begin)
    try:
        outcome = Session(job, observer, lambda pid: draft.claim(pid), setup.stopping, later_records.look).run()
    except UserError:
        setup.archive.discard(draft)
        raise
    output, remarks = _divided(draft.folder / MESSAGES)
    if outcome.record.run is None:
        setup.archive.discard(draft)
        if outcome.exit_code != DONE:
            raise failure(outcome.exit_code, outcome.text)
        return ToolResult((), output, remarks, DONE, "")
    more = sorted(draft.folder.glob(f"{RECORD}.*"), key=lambda path: int(path.suffix[1:]))
    later = []
    for path in more:
        record = read_record(path)
        plan = record.run.plan if record.run else {}
        other = setup.archive.begin(name, json.dumps(plan, indent=2) + "\n", _facts(line, setup, plan, group))
        path.rename(other.folder / RECORD)
        later.append((other, record))
    runs = [_keep(setup, draft, outcome.record, outcome.exit_code, outcome.text)]
    for other, record in later:
        end = record.end
        runs.append(_keep(setup, other, record, end.exit_code if end else None, end.text if end else ""))
    worst = next((run for run in runs if run.exit_code != DONE), runs[0])
    return ToolResult(tuple(runs), output, remarks, worst.exit_code, worst.text)


def _keep(setup: Setup, draft: Draft, record: RecordReader, exit_code: int | None, text: str) -> Result:
    if record.run is not None and record.run.plan:
        draft.plan_file.write_text(json.dumps(record.run.plan, indent=2) + "\n", encoding="utf-8")
    folder = setup.archive.commit(draft, record, exit_code, text)
    return Result(folder, exit_code if exit_code is not None else 1, text, record)


def _facts(line: ToolLine, setup: Setup, plan: Mapping[str, Any], group: str | None) -> dict[str, Any]:
    title = line.title or " ".join([line.tool, *line.words])
    return {
        "lab": sonde.__version__,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "plan": {"id": line.name or plan.get("id", line.tool), "title": title},
        "target": str(Path(plan.get("target", {}).get("path", ".")).absolute()),
        "launcher": setup.launcher.name,
        "engine_path": str(setup.engine.path),
        "role": "run",
        "group": group,
    }


def _divided(messages: Path) -> tuple[str, str]:
    """The tool's own output, and what the engine says of its own beside it."""
    lines = messages.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    of_sonde = (f"{ENGINE_NAME}: ", "sonde: ")
    ours = [line for line in lines if line.startswith(of_sonde)]
    return "".join(line for line in lines if not line.startswith(of_sonde)), "".join(ours)
