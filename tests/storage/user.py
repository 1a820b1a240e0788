# SPDX-License-Identifier: Apache-2.0
"""Somebody who uses Sonde inside a room: calls of `sonde`, and what is in the archive afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from daemon_namespace import Room

from sonde.model.record import RecordReader, read_record
from sonde.model.run import RecordedRun, read_recorded_run_folder

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


class User:
    """`folder` is the current directory of all that is called, with the archive; it is no part of the storage."""

    def __init__(self, room: Room, engine: Path, folder: Path) -> None:
        self.room, self.folder = room, folder
        self.environment = {"SONDE_ENGINE": str(engine), "PYTHONPATH": str(ROOT / "lab"), "HOME": str(folder)}

    def sonde(self, *arguments: str, patience_s: float = 300, directory: Path | None = None) -> CommandResult:
        done = self.room.run(
            sys.executable, "-m", "sonde", *arguments, check=False, directory=directory or self.folder,
            environment=self.environment, patience_s=patience_s,
        )  # fmt: skip
        return CommandResult(done)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, without waiting."""
        return subprocess.Popen(
            self.room.enter_command(sys.executable, "-m", "sonde", *arguments, directory=self.folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **self.environment},
        )  # fmt: skip

    def plan(self, name: str, **members: Any) -> str:
        (self.folder / f"{name}.json").write_text(json.dumps({"schema": "sonde-plan/2", "id": name, **members}))
        return f"{name}.json"

    def records(self) -> list[RecordReader]:
        """All runs of the archive, the oldest first."""
        return [read_record(path) for path in sorted(self.folder.glob("sonde-archive/2*/*/record.ndjson"))]

    def runs(self) -> list[RecordedRun]:
        """The same with what belongs to them."""
        return [
            read_recorded_run_folder(path.parent)
            for path in sorted(self.folder.glob("sonde-archive/2*/*/record.ndjson"))
        ]

    def first_in_path(self, folder: Path) -> None:
        """Programs of `folder` are found before those of the machine."""
        self.environment["PATH"] = f"{folder}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

    def incoming(self) -> list[Path]:
        """Records of active runs."""
        return list(self.folder.glob("sonde-archive/.incoming-*/record.ndjson"))


def in_tree(room: Room, folder: Path, pattern: str = "*") -> list[str]:
    """Everything below `place` that is called `what`, as `find` inside the room sees it."""
    return room.output_of("find", str(folder), "-mindepth", "1", "-name", pattern).split()


class CommandResult:
    """How a call ended."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}"
