# SPDX-License-Identifier: Apache-2.0
"""Units of systemd and lines of cron that run `sonde watch once`."""

from __future__ import annotations

import sys
from pathlib import Path

from sonde.model.errors import UserError
from sonde.model.escaping import escape_line
from sonde.model.shell import quote_command

# `once` runs nothing that is not due, so it may be started often.
_ROUND_INTERVAL_MINUTES = 5


def make_watch_command(watch_file: Path, archive_folder: Path) -> list[str]:
    """The command of one round, with absolute paths. Raises UserError for an unprintable path."""
    paths = str(watch_file.absolute()), str(archive_folder.absolute())
    for path in (sys.executable, *paths):
        if not path.isprintable():
            raise UserError(f"The path {escape_line(path)} has characters that a unit cannot hold; rename it.")
    # -P: modules in the current directory do not count.
    return [sys.executable, "-P", "-m", "sonde", "watch", "once", paths[0], "--archive", paths[1]]


def make_systemd_units(watch_file: Path, archive_folder: Path) -> dict[str, str]:
    """Name and text of a service and its timer."""
    command = " ".join(_quote_for_systemd(part) for part in make_watch_command(watch_file, archive_folder))
    service = (
        "[Unit]\nDescription=Probes of file systems (sonde watch)\n\n[Service]\nType=oneshot\n"
        f"WorkingDirectory={_quote_for_systemd(str(watch_file.absolute().parent))}\n"
        f"ExecStart={command}\n# 1: something is slower, which the channels of the watch file report.\n"
        "SuccessExitStatus=1\n"
    )
    timer = (
        "[Unit]\nDescription=Starts sonde watch\n\n[Timer]\n"
        f"OnCalendar=*:0/{_ROUND_INTERVAL_MINUTES}\nRandomizedDelaySec=60\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
    )
    return {"sonde-watch.service": service, "sonde-watch.timer": timer}


def make_cron_line(watch_file: Path, archive_folder: Path) -> str:
    """A line of a crontab; a percent sign has a meaning there."""
    directory = quote_command(["cd", str(watch_file.absolute().parent)])
    command = f"{directory} && {quote_command(make_watch_command(watch_file, archive_folder))}".replace("%", r"\%")
    return f"*/{_ROUND_INTERVAL_MINUTES} * * * * {command}"


def _quote_for_systemd(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(character in argument for character in " \t\"'\\;") else escaped
