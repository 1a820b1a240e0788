# SPDX-License-Identifier: Apache-2.0
"""Files that somebody else has planted where the library writes its own: no link is followed, nothing is emptied, and
what cannot be done then is said.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from preload_under_test import Preload

# Plants a file of the name that the library will choose, whose number it knows, and becomes the program.
PLANTER = """
import os, sys
kind, place, victim, library, name, value = sys.argv[1:]
(os.link if kind == "hard" else os.symlink)(victim, place.replace("PID", str(os.getpid())))
settings = {**os.environ, "LD_PRELOAD": library, "IOBUF_PARAMS": "*", name: value}
writer = "import os; fd = os.open('data', os.O_WRONLY | os.O_CREAT); [os.write(fd, b'x' * 100) for _ in range(100)]"
os.execve(sys.executable, [sys.executable, "-S", "-c", writer], settings)
"""


@pytest.mark.parametrize("link_kind", ["symbolic", "hard"])
def test_no_report_is_written_through_a_link(preload: Preload, tmp_path: Path, link_kind: str) -> None:
    folder = tmp_path / "open to all"
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    python = os.path.realpath("/proc/self/exe")
    planted_path = folder / "buffer-PID.ndjson"
    arguments = [link_kind, str(planted_path), str(victim), str(preload.library), "SONDE_IOBUF_LINES", str(folder)]
    done = subprocess.run(
        [python, "-c", PLANTER, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "precious"
    assert (tmp_path / "data").stat().st_size == 10_000


@pytest.mark.root
@pytest.mark.parametrize("planted_names", [1, 64])
def test_shared_memory_file_of_another_user_is_not_trusted(
    preload: Preload, tmp_path: Path, planted_names: int
) -> None:
    """The library uses another name; when all names are taken, it detects no other process, and the report says so."""
    if os.geteuid() != 0:
        pytest.skip("needs two users")
    user = 54321 + planted_names
    planted = [
        Path(f"/dev/shm/sonde-preload-{user}{f'-{number}' if number else ''}") for number in range(planted_names)
    ]
    own_file = Path(f"/dev/shm/sonde-preload-{user}-{planted_names}")
    if any(path.exists() for path in (*planted, own_file)):
        pytest.skip(f"{planted[0]} is in use")
    tmp_path.chmod(0o777)
    copy = tmp_path / preload.library.name  # where that user can read it
    copy.write_bytes(preload.library.read_bytes())
    copy.chmod(0o755)
    try:
        for path in planted:
            path.touch(mode=0o666)
        python = os.path.realpath("/proc/self/exe")
        writer = "import os; fd = os.open('data', os.O_RDWR | os.O_CREAT); os.write(fd, b'x' * 100); os.close(fd)"
        done = preload.run(
            [python, "-S", "-c", f"import os; os.setuid({user}); exec({writer!r})"],
            tmp_path,
            LD_PRELOAD=str(copy),
            IOBUF_PARAMS="*/data:alone:verbose,%process:threads=0",
        )
        assert ("guarded by your word alone" in done.stderr) == (planted_names == 64), done
        assert own_file.exists() == (planted_names == 1)
        assert all(path.stat().st_size == 0 for path in planted)
    finally:
        for path in (*planted, own_file):
            path.unlink(missing_ok=True)
