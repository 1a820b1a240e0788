# SPDX-License-Identifier: Apache-2.0
"""A simulated machine as a mounted file system: locates the program that serves it, starts it, switches faults on and
off, and unmounts it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sonde.launch.components import Component, locate_component
from sonde.model.configuration import find_state_folder
from sonde.model.confined_files import ConfinedDirectory, open_file, remove_file
from sonde.model.errors import EXIT_BAD_INPUT, EXIT_OK, MachineError, UserError
from sonde.model.escaping import escape_line

MOUNTER_NAME = "sonde-mount"
MOUNTER_COMPONENT = Component(
    MOUNTER_NAME,
    "SONDE_MOUNT",
    "simulate",
    f"There is no {MOUNTER_NAME} in this package, as libfuse 3.12 or later was missing when it was built: install"
    " libfuse3-dev and fuse3 (Debian, Ubuntu) or fuse3-devel and fuse3 (Fedora), then",
)
_CONTROL_FILE = ".sonde"
_MESSAGE_PREFIX = f"{MOUNTER_NAME}: "
_MAX_MESSAGE_BYTES, _MAX_MESSAGE_LENGTH = 4096, 300


def find_mounter() -> Path:
    return locate_component(MOUNTER_COMPONENT).path


def _find_log_file(directory: Path) -> Path:
    """The file for messages of the program that serves a directory. The directory itself does not answer when that
    program has died, and home directories may be shared by several hosts."""
    mount_point = f"{socket.gethostname()}:{os.path.abspath(directory)}"
    return find_state_folder() / f"mount-{hashlib.sha256(os.fsencode(mount_point)).hexdigest()[:16]}.log"


def _prepare_log_file(directory: Path) -> Path | None:
    """The path of the log file; None where the folder of state cannot be written."""
    path = _find_log_file(directory)
    try:
        ConfinedDirectory.open(path.parent, create_if_absent=True).close()
        remove_file(path)
    except OSError:
        return None
    return path


def _read_last_message(directory: Path) -> str:
    try:
        with open_file(_find_log_file(directory), trusted_only=True) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_MESSAGE_BYTES))
            lines = file.read(_MAX_MESSAGE_BYTES).decode(errors="replace").split("\n")
    except OSError:
        return "without a log"
    messages = [line.strip().removeprefix(_MESSAGE_PREFIX) for line in lines if line.strip()]
    return f"with the message: {escape_line(messages[-1], _MAX_MESSAGE_LENGTH)}" if messages else "without a message"


def _has_faults_file(directory: Path) -> bool:
    """Whether a machine is mounted there. Raises UserError when its program has died and left its mount."""
    try:
        return (directory / _CONTROL_FILE / "faults").is_file()
    except OSError as error:
        raise UserError(
            f"The directory {directory} does not answer ({error.strerror}), as its program ended"
            f" {_read_last_message(directory)}; `sonde unmount {directory}` removes the mount of a machine that died."
        ) from error


def require_no_machine(directory: Path) -> None:
    """Raises UserError when a machine is mounted there, also one whose program has died."""
    if _has_faults_file(directory):
        raise UserError(f"A machine is mounted on {directory} already; `sonde unmount {directory}` ends it.")


def mount_machine(directory: Path, mount_options: Sequence[str], in_foreground: bool) -> int:
    """Starts the program and returns its exit code; in the background it returns once the directory is mounted."""
    command = [str(find_mounter()), "mount", str(directory.absolute()), *mount_options]
    if in_foreground:
        return subprocess.run([*command, "--foreground"], check=False).returncode
    log = _prepare_log_file(directory)
    command += ["--log", str(log)] if log else []
    answer = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    _require_success(answer, "The machine could not be mounted")
    return EXIT_OK


def send_fault_command(mount_directory: Path, fault_line: str) -> None:
    """Sends one line to the mounted machine: a fault, `end` and a fault, or `clear`."""
    answer = subprocess.run(
        [str(find_mounter()), "tell", str(mount_directory), fault_line], capture_output=True, text=True, check=False
    )
    _require_success(answer, f"{mount_directory} did not answer")


def read_active_faults(directory: Path) -> list[str]:
    """The faults of the machine that is mounted at `directory`."""
    path = directory / _CONTROL_FILE / "faults"
    if not _has_faults_file(directory):
        raise UserError(
            f"{directory} is no mounted machine: there is no {path}; `sonde mount --system FILE {directory}` mounts"
            " one."
        )
    return path.read_text(encoding="utf-8").splitlines()


def _is_mount_point(directory: Path) -> bool:
    """Reads mountinfo: a mount point whose program has died answers no stat()."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines())
    path = os.path.abspath(directory)
    return path in {re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), point) for point in points}


def unmount_machine(mount_directory: Path) -> None:
    """Unmounts a machine, also one whose program was killed."""
    if not _is_mount_point(mount_directory):
        raise UserError(f"Nothing is mounted on {mount_directory}; name the directory that `sonde mount` was given.")
    for program, options in (("fusermount3", ("-u",)), ("umount", ())):
        if shutil.which(program):
            answer = subprocess.run(
                [program, *options, str(mount_directory)], capture_output=True, text=True, check=False
            )
            break
    else:
        raise MachineError("Neither fusermount3 nor umount is on PATH: install fuse3.")
    if answer.returncode != 0:
        reason = " ".join(answer.stderr.split())
        hint = "; programs still use it: `fuser -m` names them" if "busy" in reason else ""
        raise UserError(f"{mount_directory} could not be unmounted: {reason}{hint}.")
    with suppress(OSError):
        remove_file(_find_log_file(mount_directory))


def _require_success(completed_process: subprocess.CompletedProcess[str], failure_text: str) -> None:
    if completed_process.returncode == EXIT_OK:
        return
    messages = completed_process.stderr.strip().splitlines() or [
        f"{failure_text} (exit code {completed_process.returncode})"
    ]
    sentence = messages[-1].removeprefix(_MESSAGE_PREFIX)
    raise (UserError if completed_process.returncode == EXIT_BAD_INPUT else MachineError)(
        sentence if sentence.endswith(".") else sentence + "."
    )
