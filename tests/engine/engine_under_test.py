# SPDX-License-Identifier: Apache-2.0
"""Drives the engine as a user or a launcher would, and looks at everything it leaves: exit code, streams, record,
processes, files.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60  # only there so that a hang fails instead of hanging the tests
NAME = "sonde-engine"
TOKEN = "SONDE_TEST_TOKEN"

Plan = dict[str, Any]
Line = dict[str, Any]

DONE, FAILED, BAD_PLAN, ENVIRONMENT, MISMATCH, INTERRUPTED = range(6)


def find_engine() -> Path | None:
    """$SONDE_ENGINE, else the newest program in build/*/engine."""
    engine_path = os.environ.get("SONDE_ENGINE")
    if engine_path:
        return Path(engine_path)
    built = [path for path in ROOT.glob(f"build/*/engine/{NAME}") if os.access(path, os.X_OK)]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


def write_plan(path: Path, *phases: Plan, **members: Any) -> Plan:
    """A plan with small files of 64 KiB operations; `phases` default to one write. `data` is laid over the default."""
    data: Plan = {"access": {"transfer": "64KiB", "block": "64KiB", "segments": 16}}
    data.update(members.pop("data", {}))
    tasks = members.pop("tasks", {})
    target_members = {"path": str(path), "min_free": 0, **members.pop("target", {})}
    return {
        "schema": "sonde-plan/2",
        "id": "test",
        "target": target_members,
        "tasks": tasks,
        "data": data,
        "phases": list(phases) or [{"id": "write", "op": "write"}],
        **members,
    }


def parse_record(text: str) -> list[Line]:
    """Every line must be a whole JSON object: a record is valid however the engine ended."""
    assert text == "" or text.endswith("\n"), f"the record ends in the middle of a line: {text[-80:]!r}"
    lines = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(line, dict) and "type" in line for line in lines)
    return lines


@cache
def _format() -> Draft202012Validator:
    schema = ROOT / "schema" / "record" / "record.schema.json"
    return Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))


def find_schema_errors(line: Line) -> list[str]:
    """What the format of records has against a line, also members that it does not declare: readers ignore them, but
    the engine writes none."""
    schema: Plan = dict(_format().schema)  # type: ignore[arg-type]
    undeclared = list_undeclared(line, schema, schema["$defs"].get(f"line_{line['type']}", {}), str(line["type"]))
    return [error.message for error in _format().iter_errors(line)] + undeclared


def list_undeclared(value: Any, schema: Plan, node: Plan, path: str) -> list[str]:
    """Paths of members in `value` that `node` of the schema neither declares nor leaves open."""
    while "$ref" in node:
        target: Any = schema
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    if "anyOf" in node:
        return min((list_undeclared(value, schema, arm, path) for arm in node["anyOf"]), key=len)
    if isinstance(value, list):
        items = node.get("items", {})
        return [name for entry in value for name in list_undeclared(entry, schema, items, f"{path}[]")]
    if not isinstance(value, dict) or not {"properties", "additionalProperties"} & node.keys():
        return []
    every_line: Plan = {"type": {}, "t": {}} if "." not in path and "[" not in path else {}
    members, other = node.get("properties", {}) | every_line, node.get("additionalProperties")
    undeclared = []
    for name, member in value.items():
        if name in members or other:
            form = members.get(name, other if isinstance(other, dict) else {})
            undeclared += list_undeclared(member, schema, form, f"{path}.{name}")
        else:
            undeclared.append(f"{path}.{name} is not declared in record.schema.json")
    return undeclared


@dataclass(frozen=True)
class Result:
    """How one run ended."""

    code: int
    out: str
    err: str
    lines: list[Line] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The only line on standard error, without the name of the program. Lines of a launcher do not count."""
        ours = [line for line in self.err.splitlines() if line.startswith(f"{NAME}: ")]
        assert len(ours) == 1, f"expected one sentence, got {self.err!r} (exit code {self.code})"
        return ours[0].removeprefix(f"{NAME}: ")

    @property
    def only_sentence(self) -> str:
        """The same where nobody else may have written."""
        assert self.err.count("\n") == 1, f"expected one line, got {self.err!r} (exit code {self.code})"
        return self.sentence

    def of(self, line_type: str) -> list[Line]:
        """Lines of one type."""
        return [line for line in self.lines if line["type"] == line_type]

    @property
    def end(self) -> Line:
        """The end line, which is the last one and the only one."""
        assert [line["type"] for line in self.lines].count("end") == 1
        assert self.lines[-1]["type"] == "end"
        return self.lines[-1]

    def finished(self, phase: str) -> Line:
        """The phase_end of a phase of which all other lines are there as well."""
        of_all = [line for line in self.lines if line.get("phase") == phase and line.get("scope", "all") == "all"]
        kinds = [line["type"] for line in of_all]
        for kind in ("phase_begin", "phase_end", "series", "nodes", "tasks"):
            assert kinds.count(kind) == 1, f"phase {phase} has {kinds.count(kind)} lines {kind}"
        return next(line for line in self.of("phase_end") if line["phase"] == phase)


class Running:
    """An engine that has been started. Leaving the context kills whatever is left of it."""

    def __init__(self, command: Sequence[str], record: Path | None, env: dict[str, str], **options: Any) -> None:
        self.token = uuid.uuid4().hex
        self.record = record
        self._begin = record.stat().st_size if record is not None and record.exists() else 0
        self.process = subprocess.Popen(
            list(command),
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, TOKEN: self.token, **env},
            text=True,
            **options,
        )

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            send_signal_if_alive(pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def processes(self) -> list[int]:
        """All processes that this start has brought about and that still run, found by their environment."""
        return sorted(
            pid for pid, environment in iterate_environments() if f"{TOKEN}={self.token}".encode() in environment
        )

    def children(self) -> list[int]:
        """Processes that the first one has started itself."""
        return [pid for pid in self.processes() if read_parent_pid(pid) == self.process.pid]

    def text(self) -> str:
        """The text that this start of the engine has added to the record so far."""
        if self.record is None or not self.record.exists():
            return ""
        with self.record.open(encoding="utf-8") as file:
            file.seek(self._begin)
            return file.read()

    def wait_for(self, fragment: str, limit_s: float = LIMIT_S) -> None:
        """Until the record holds some text."""
        until = time.monotonic() + limit_s
        while fragment not in self.text():
            assert time.monotonic() < until, f"{fragment} never came into the record: {self.text()[-500:]}"
            assert self.process.poll() is None or fragment in self.text(), f"the engine ended before {fragment}"
            time.sleep(0.01)

    def wait_for_phase(self, phase: str) -> None:
        """Until tasks of a phase have moved something."""
        until = time.monotonic() + LIMIT_S
        while not any(
            line["type"] == "progress" and line["phase"] == phase and line["ops"] > 0
            for line in map(json.loads, self.text().rpartition("\n")[0].splitlines())
        ):
            assert time.monotonic() < until, f"no progress in {phase}: {self.text()[-500:]}"
            assert self.process.poll() is None, f"the engine ended before {phase}: {self.text()[-500:]}"
            time.sleep(0.02)

    def result(self, limit_s: float = LIMIT_S, orphans: bool = False) -> Result:
        """Waits for the end; then none of its processes may be left (the monitor gets some time)."""
        out, err = self.process.communicate(timeout=limit_s)
        until = time.monotonic() + 20
        while not orphans and (survivors := self.processes()):
            assert time.monotonic() < until, f"processes {survivors} outlive the engine"
            time.sleep(0.02)
        return Result(self.process.returncode, out, err, parse_record(self.text()))


class Engine:
    """The program under test."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder

    def ask(self, *arguments: str, **options: Any) -> Result:
        """Any command; the record, if one is written, is not looked at."""
        with Running([str(self.path), *arguments], None, options.pop("env", {}), **options) as running:
            return running.result()

    def plan_file(self, plan: Plan | str | bytes) -> Path:
        """Writes a plan into the test's folder."""
        path = self.folder / "plan.json"
        if isinstance(plan, bytes):
            path.write_bytes(plan)
        else:
            path.write_text(plan if isinstance(plan, str) else json.dumps(plan), encoding="utf-8")
        return path

    def start(
        self, plan: Plan | str | bytes, *run_options: str, launch_prefix: Sequence[str] = (), **options: Any
    ) -> Running:
        """Starts `run`. `launch_prefix`: arguments in front of it (a launcher, setpriv); `record`: another path."""
        record: Path = options.pop("record", self.folder / "record.ndjson")
        command = [
            *launch_prefix,
            str(self.path),
            "run",
            str(self.plan_file(plan)),
            "--record",
            str(record),
            *run_options,
        ]
        return Running(command, record, options.pop("env", {}), **options)

    def run(self, plan: Plan | str | bytes, *run_options: str, **options: Any) -> Result:
        """Runs a plan to its end."""
        with self.start(plan, *run_options, **options) as running:
            return running.result()

    def clean(self, target: Path, *options: str) -> tuple[int, list[Line]]:
        """`clean --json`: exit code and report."""
        answer = self.ask("clean", str(target), "--json", *options)
        return answer.code, json.loads(answer.out) if answer.out else []


def iterate_environments() -> Iterator[tuple[int, bytes]]:
    """Process number and environment of all processes that may be looked at and are not zombies."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            yield int(entry.name), (entry / "environ").read_bytes()
        except OSError:
            continue


def read_parent_pid(pid: int) -> int:
    """0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def send_signal_if_alive(process_id: int, signal_number: int) -> None:
    """Sends a signal to a process that may have ended."""
    try:
        os.kill(process_id, signal_number)
    except ProcessLookupError:
        return


def list_tree(folder: Path) -> list[str]:
    """Everything below a folder, as relative paths."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
