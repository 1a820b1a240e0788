# SPDX-License-Identifier: Apache-2.0
"""A described machine as a mounted file system: where the program is that serves it, and how it is started, told what
is wrong with the machine, and ended."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sonde.launch.parts import Part, find
from sonde.model.errors import BAD_INPUT, DONE, MachineError, UserError

NAME = "sonde-mount"
MOUNTER = Part(
    NAME,
    "SONDE_MOUNT",
    "simulate",
    f"There is no {NAME} in this package, as libfuse 3.12 or later was missing when it was built: install"
    " libfuse3-dev and fuse3 (Debian, Ubuntu) or fuse3-devel and fuse3 (Fedora), then",
)
_CONTROL = ".sonde"
_SAID = f"{NAME}: "


def find_mounter() -> Path:
    return find(MOUNTER).path


def mount(words: Sequence[str], foreground: bool) -> int:
    """Starts the program; in the background it answers once the directory is mounted. Gives its exit code."""
    command = [str(find_mounter()), "mount", *words]
    if foreground:
        return subprocess.run([*command, "--foreground"], check=False).returncode
    answer = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    _check(answer, "The machine could not be mounted")
    return DONE


def tell(directory: Path, line: str) -> None:
    """A fault, `end` and a fault, or `clear`."""
    answer = subprocess.run(
        [str(find_mounter()), "tell", str(directory), line], capture_output=True, text=True, check=False
    )
    _check(answer, f"{directory} did not answer")


def faults_of(directory: Path) -> list[str]:
    """What is wrong with the machine that is mounted there."""
    path = directory / _CONTROL / "faults"
    if not path.is_file():
        raise UserError(
            f"{directory} is no mounted machine, as there is no {path}; `sonde mount --system FILE {directory}` makes"
            " it one."
        )
    return path.read_text(encoding="utf-8").splitlines()


def _is_mount_point(directory: Path) -> bool:
    """Also of one whose program has gone, which cannot be looked at."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines())
    whole = os.path.abspath(directory)
    return whole in {re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), point) for point in points}


def unmount(directory: Path) -> None:
    """Ends the mount. One whose program has been killed can be unmounted too."""
    if not _is_mount_point(directory):
        raise UserError(f"Nothing is mounted on {directory}; name the directory that `sonde mount` was given.")
    for program, words in (("fusermount3", ("-u",)), ("umount", ())):
        if shutil.which(program):
            answer = subprocess.run([program, *words, str(directory)], capture_output=True, text=True, check=False)
            break
    else:
        raise MachineError("Neither fusermount3 nor umount is on PATH: install fuse3.")
    if answer.returncode != 0:
        why = " ".join(answer.stderr.split())
        hint = "; programs still use it: `fuser -m` names them" if "busy" in why else ""
        raise UserError(f"{directory} could not be unmounted: {why}{hint}.")


def _check(answer: subprocess.CompletedProcess[str], what: str) -> None:
    if answer.returncode == DONE:
        return
    said = answer.stderr.strip().splitlines() or [f"{what} (exit code {answer.returncode})"]
    sentence = said[-1].removeprefix(_SAID)
    raise (UserError if answer.returncode == BAD_INPUT else MachineError)(
        sentence if sentence.endswith(".") else sentence + "."
    )
