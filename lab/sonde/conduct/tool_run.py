# SPDX-License-Identifier: Apache-2.0
"""Runs the command line of another tool through the engine's dialect, and stores one run for each resulting plan."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sonde.conduct.run import RunResult, RunSetup, make_engine_failure
from sonde.conduct.sampling import sample_at_phase_borders, start_telemetry_sampling
from sonde.launch.engine import ENGINE_NAME, find_engine_message, make_engine_error
from sonde.launch.growing_file import GrowingFile
from sonde.launch.session import MESSAGES_FILE, EngineLaunch, EngineSession, LineObserver
from sonde.model.confined_files import ConfinedDirectory, open_file, write_file
from sonde.model.errors import EXIT_OK, MachineError, UserError
from sonde.model.plan import Plan
from sonde.model.record import RECORD_FILE, RecordReader, read_record
from sonde.model.target_names import make_target_absolute
from sonde.model.version import __version__
from sonde.store.archive import RunDraft, make_run_id
from sonde.telemetry.file_format import SAMPLED_FILE


@dataclass(frozen=True)
class ToolCommand:
    """Words for the dialect `tool` of the engine. `processes` are forked by it where no launcher starts them. `name`,
    `title` and `group`: how the run is called, and of what it is a part, when it is one of several."""

    tool: str
    arguments: tuple[str, ...]
    processes: int = 1
    name: str = ""
    title: str = ""
    group: str | None = None


@dataclass(frozen=True)
class ToolLaunch(EngineLaunch):
    """A job that starts the dialect instead of a plan."""

    tool_command: ToolCommand = ToolCommand("", ())

    def make_stage_command(self, stage: int | None, record_file: Path) -> list[str]:
        sonde_options = ["--sonde-record", str(record_file), "--sonde-run-id", self.run_id]
        sonde_options += ["--sonde-title", self.tool_command.title] if self.tool_command.title else []
        if self.launcher.ranks is None and self.tool_command.processes > 1:
            sonde_options += ["--sonde-processes", str(self.tool_command.processes)]
        if self.mpi_module is not None:
            sonde_options += ["--sonde-mpi-module", str(self.mpi_module)]
        return self.launcher.make_command_line(
            [str(self.engine.path), self.tool_command.tool, *self.tool_command.arguments, *sonde_options]
        )


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool command: `output` has the tool's own format, `engine_messages` the other messages."""

    runs: tuple[RunResult, ...]
    output: str
    engine_messages: str
    exit_code: int
    text: str

    def raise_error(self) -> None:
        """The error that ends the command, when there is one."""
        if self.exit_code != EXIT_OK:
            raise make_engine_failure(self.exit_code, self.text)


def resolve_plans_of_tool(tool_command: ToolCommand, setup: RunSetup) -> list[Plan]:
    """The plans that the words come to (with one task). Raises UserError when the engine refuses the words; an empty
    list when they ask for something else than a run, like help."""
    command = [str(setup.engine.path), tool_command.tool, *tool_command.arguments, "--sonde-plan"]
    try:
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MachineError(f"The engine {setup.engine.path} does not start: {error.strerror}.") from None
    if answer.returncode != EXIT_OK:
        raise make_engine_error(
            answer.returncode, find_engine_message(answer.stderr).removeprefix(f"{tool_command.tool}: ")
        )
    text, plans = answer.stdout.strip(), []
    while text.startswith("{"):
        document, end = json.JSONDecoder().raw_decode(text)
        plans.append(Plan.from_document(document, f"{tool_command.tool} {' '.join(tool_command.arguments)}"))
        text = text[end:].strip()
    return plans


class LaterRecordFollower:
    """Follows the records of the second and later plans, which are files next to the first record, in order."""

    def __init__(
        self, first_record: Path, record_count: int, observer: LineObserver, on_plan_begin: Callable[[int], None]
    ) -> None:
        self._paths = [first_record.with_name(f"{first_record.name}.{number}") for number in range(1, record_count)]
        self._observer = observer
        self._begin = on_plan_begin  # called with the index of a plan whose record has appeared
        self._at = 0
        self._follower: GrowingFile | None = None
        self._reader = RecordReader()

    def observe_new_lines(self) -> None:
        """Passes new lines to the observer."""
        while self._at < len(self._paths) and self._paths[self._at].exists():
            if self._follower is None:
                self._follower, self._reader = GrowingFile(self._paths[self._at]), RecordReader()
                self._begin(self._at + 1)
            for kind, line in self._reader.parse_chunk(self._follower.read_appended_bytes()):
                self._observer(kind, line)
            if self._reader.end is None:
                return
            self._follower.close()
            self._follower = None
            self._at += 1


def conduct_tool_run(
    tool_command: ToolCommand,
    plans: Sequence[Plan],
    setup: RunSetup,
    observer: LineObserver,
    on_plan_begin: Callable[[int], None] = lambda index: None,
) -> ToolResult:
    """Runs it and keeps every plan's record, however it ended. Calls `on_plan_begin` with the index of each plan except
    the first when its record appears. Raises UserError when nothing was measured."""
    first = plans[0]
    group = tool_command.group or (make_run_id(tool_command.tool) if len(plans) > 1 else None)
    name = tool_command.name or tool_command.tool
    draft = setup.archive.begin_run(name, first.to_json(), _build_run_facts(tool_command, setup, first.document, group))
    launch_parts = (setup.engine, setup.launcher, draft.plan_file, draft.folder, draft.id, 1, setup.mpi_module)
    job = ToolLaunch(*launch_parts, tool_command=tool_command)
    later_records = LaterRecordFollower(draft.folder / RECORD_FILE, len(plans), observer, on_plan_begin)
    try:
        with start_telemetry_sampling(draft.folder, is_simulated=False) as sampler:
            sampling_observer = sample_at_phase_borders(sampler, observer)
            outcome = EngineSession(
                job,
                sampling_observer,
                lambda pid: draft.record_writer_processes(pid),
                setup.on_stop,
                later_records.observe_new_lines,
            ).run_all_stages()
    except UserError:
        setup.archive.discard_run(draft)
        raise
    output, remarks = _separate_tool_output_from_engine_messages(draft.folder / MESSAGES_FILE)
    if outcome.record.run is None:
        setup.archive.discard_run(draft)
        if outcome.exit_code != EXIT_OK:
            raise make_engine_failure(outcome.exit_code, outcome.text)
        return ToolResult((), output, remarks, EXIT_OK, "")
    later_paths = sorted(draft.folder.glob(f"{RECORD_FILE}.*"), key=lambda path: int(path.suffix[1:]))
    later = []
    for path in later_paths:
        record = read_record(path)
        plan = record.run.plan if record.run else {}
        later_draft = setup.archive.begin_run(
            name, json.dumps(plan, indent=2) + "\n", _build_run_facts(tool_command, setup, plan, group)
        )
        with (
            ConfinedDirectory.open_beneath(draft.folder.parent, draft.folder) as source,
            ConfinedDirectory.open_beneath(later_draft.folder.parent, later_draft.folder) as destination,
        ):
            source.rename_entry(path.name, destination, RECORD_FILE)
            if source.has_file(SAMPLED_FILE):
                with source.open_file(SAMPLED_FILE) as samples:
                    # All plans of the command share one interval of telemetry.
                    destination.write_bytes(SAMPLED_FILE, samples.read())
        later.append((later_draft, record))
    runs = [_store_run(setup, draft, outcome.record, outcome.exit_code, outcome.text)]
    for later_draft, record in later:
        end = record.end
        runs.append(_store_run(setup, later_draft, record, end.exit_code if end else None, end.text if end else ""))
    worst = next((run for run in runs if run.exit_code != EXIT_OK), runs[0])
    return ToolResult(tuple(runs), output, remarks, worst.exit_code, worst.text)


def _store_run(
    setup: RunSetup, draft: RunDraft, record: RecordReader, exit_code: int | None, stderr_text: str
) -> RunResult:
    if record.run is not None and record.run.plan:
        write_file(draft.plan_file, json.dumps(record.run.plan, indent=2) + "\n")
    folder = setup.archive.commit_run(draft, record, exit_code, stderr_text)
    return RunResult(folder, exit_code if exit_code is not None else 1, stderr_text, record)


def _build_run_facts(
    tool_command: ToolCommand, setup: RunSetup, plan_document: Mapping[str, Any], run_group: str | None
) -> dict[str, Any]:
    title = tool_command.title or " ".join([tool_command.tool, *tool_command.arguments])
    return {
        "lab": __version__,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "plan": {"id": tool_command.name or plan_document.get("id", tool_command.tool), "title": title},
        "target": make_target_absolute(str(plan_document.get("target", {}).get("path", "."))),
        "launcher": setup.launcher.name,
        "engine_path": str(setup.engine.path),
        "role": "run",
        "group": run_group,
    }


def _separate_tool_output_from_engine_messages(messages_file: Path) -> tuple[str, str]:
    """Separates the tool's output from messages of the engine."""
    with open_file(messages_file) as file:
        lines = file.read().decode("utf-8", "replace").splitlines(keepends=True)
    prefixes = (f"{ENGINE_NAME}: ", "sonde: ")
    sonde_lines = [line for line in lines if line.startswith(prefixes)]
    return "".join(line for line in lines if not line.startswith(prefixes)), "".join(sonde_lines)
