# SPDX-License-Identifier: Apache-2.0
"""A setuid program that loads the library through /etc/ld.so.preload: the variables of its caller, who has fewer
rights, name no file that it writes or reads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from preload_under_test import Preload

CALLER = 54323  # a user id that nobody has

# Mounts its own /etc, in a mount namespace of its own, and becomes the caller.
ENTER = """
mount --bind "$1/etc" /etc
exec setpriv --reuid="$2" --regid="$2" --clear-groups env -C "$1/work" "$3" "${@:4}"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the caller can enter, with an /etc that loads a copy of the library into every program."""
    with tempfile.TemporaryDirectory(prefix="sonde-secure-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "etc").mkdir()
        for file in ("ld.so.cache", "passwd", "group"):
            shutil.copy(f"/etc/{file}", folder / "etc" / file)
        (folder / "work").mkdir()
        (folder / "work").chmod(0o777)
        yield folder


def run_as_caller(
    preload: Preload, folder: Path, mode: int, variable: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Copies a file with `dd` that has these mode bits. Returns the result, and the names that the library wrote."""
    library = folder / preload.library.name
    shutil.copy(preload.library, library)
    library.chmod(0o755)
    (folder / "etc/ld.so.preload").write_text(f"{library}\n")
    program = folder / "dd"
    shutil.copy(shutil.which("dd") or "", program)
    program.chmod(mode)
    written = folder / "written"
    written.mkdir()
    written.chmod(0o777)
    (folder / "work/input").write_bytes(b"x" * 100_000)
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-c", ENTER, "enter"]
    command += [str(folder), str(CALLER), f"{variable}={written}", "IOBUF_PARAMS=*:alone:verbose"]
    command += [str(program), "if=input", "of=output", "bs=1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (folder / "work/output").read_bytes() == b"x" * 100_000, done.stderr
    return done, sorted(path.name for path in written.iterdir())


@pytest.mark.parametrize("variable", ["SONDE_TRACE", "SONDE_IOBUF_LINES"])
@pytest.mark.parametrize("setuid", [False, True])
def test_setuid_program_ignores_variables_of_its_caller(
    preload: Preload, folder: Path, variable: str, setuid: bool
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: a setuid program and a mount")
    done, written = run_as_caller(preload, folder, 0o4755 if setuid else 0o755, variable)
    assert done.returncode == 0, done.stderr
    assert bool(written) == (not setuid), written
    assert ("sonde:" in done.stderr) == (not setuid and variable == "SONDE_IOBUF_LINES"), done.stderr
