# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for systemctl, loginctl and crontab, which a test must not change on the machine where it runs.

They do once what the service would do again and again: check the units or the line, and run the command that is in it.

Usage: service_stand_ins.py systemctl|loginctl|crontab ARGUMENTS…
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROUND_CODES = (0, 1)  # of `sonde watch once`; 1: something is slower


def write_service_stand_ins(folder: Path) -> None:
    """Writes the three programs into a folder of PATH."""
    for name in ("systemctl", "loginctl", "crontab"):
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n', encoding="utf-8")
        path.chmod(0o755)


def run_systemctl(arguments: list[str]) -> None:
    """`daemon-reload` checks the units; `enable --now` runs the service of the timer."""
    units = Path(os.environ["HOME"]) / ".config" / "systemd" / "user"
    assert arguments[0] == "--user"
    if arguments[1:] == ["daemon-reload"]:
        if program := shutil.which("systemd-analyze"):
            subprocess.run([program, "--user", "verify", *units.glob("sonde-watch.*")], check=True)
        return
    assert arguments[1:] == ["enable", "--now", "sonde-watch.timer"]
    assert "WantedBy=timers.target" in (units / "sonde-watch.timer").read_text()
    service = dict(re.findall(r"^(\w+)=(.*)$", (units / "sonde-watch.service").read_text(), re.MULTILINE))
    command = [part.replace("%%", "%").replace("$$", "$") for part in shlex.split(service["ExecStart"])]
    run_round(command, service["WorkingDirectory"])


def run_crontab(arguments: list[str]) -> None:
    """`-l` lists nothing; `-` runs the command of each line by sh in the home directory, as cron does."""
    if arguments == ["-l"]:
        return
    assert arguments == ["-"]
    lines = sys.stdin.read().splitlines()
    assert lines
    for line in lines:
        match = re.fullmatch(r"(?:[*/0-9]+ ){5}(.+)", line)
        assert match, line
        run_round(["sh", "-c", match[1].replace(r"\%", "%")], os.environ["HOME"])


def run_round(command: list[str], folder: str) -> None:
    """Runs a round. Raises AssertionError when it fails."""
    code = subprocess.run(command, cwd=folder, check=False).returncode
    assert code in ROUND_CODES, (command, code)


def main(name: str, arguments: list[str]) -> None:
    """Does what the program of this name is asked for; loginctl has nothing to do."""
    if name == "systemctl":
        run_systemctl(arguments)
    elif name == "crontab":
        run_crontab(arguments)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
