# SPDX-License-Identifier: Apache-2.0
"""Child processes of the lab, and files that grow meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from launch_builders import Fake, make_launch

from sonde.launch.child_process import ChildProcess, SignalWatch
from sonde.launch.growing_file import GrowingFile
from sonde.model.errors import MachineError


def test_children_of_a_killed_launcher_are_ended(tmp_path: Path) -> None:
    """The processes of a killed launcher are in its process group."""
    script = "import subprocess, sys, os, signal\n"
    script += "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    script += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); os.kill(os.getpid(), signal.SIGKILL)"
    with SignalWatch() as signals:
        status = ChildProcess([sys.executable, "-c", script], tmp_path / "messages", {}).wait_for_end(
            signals, lambda n: n, lambda: None
        )
    assert status == -9
    orphan = int((tmp_path / "pid").read_text())
    stat = Path(f"/proc/{orphan}/stat")
    assert not stat.exists() or stat.read_text().split(") ")[1].startswith("Z")


def test_child_has_a_separate_process_group_and_no_input(tmp_path: Path) -> None:
    script = "import os, sys; print(os.getpgid(0) == os.getpid(), sys.stdin.read() == '')"
    child = ChildProcess([sys.executable, "-c", script], tmp_path / "messages", {"X": "1"})
    with SignalWatch() as signals:
        assert child.wait_for_end(signals, lambda n: n, lambda: None) == 0
    assert child.read_last_output() == "True True\n"


def test_missing_command_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="does not start"):
        ChildProcess(["/no/such/program"], tmp_path / "messages", {})


def test_growing_file_returns_only_new_bytes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    follower = GrowingFile(file)
    assert follower.read_appended_bytes() == b""
    file.write_bytes(b"one")
    assert follower.read_appended_bytes() == b"one"
    assert follower.read_appended_bytes() == b""
    with file.open("ab") as out:
        out.write(b"two")
    assert follower.read_appended_bytes() == b"two"
    follower.close()


def test_engine_completes_its_record_after_the_lab_dies(fake_engine: Fake, tmp_path: Path) -> None:
    """The engine writes its messages to a file, not to a pipe that would break."""
    fake_engine(seconds="0.5")
    launch, record = make_launch(tmp_path), tmp_path / "record.ndjson"
    code = (
        "import sys, os, signal, threading, time\n"
        "from pathlib import Path\n"
        "from sonde.launch.child_process import ChildProcess, SignalWatch\n"
        "def die():\n"
        f"    while not Path({str(record)!r}).exists(): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "threading.Thread(target=die).start()\n"
        f"child = ChildProcess({launch.make_stage_command(None, record)!r}, Path({str(tmp_path / 'm')!r}), {{}})\n"
        "with SignalWatch() as signals: child.watch(signals, lambda n: n, lambda: None)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    text = record.read_text()
    assert '"end"' not in text, "it died too late to show anything"
    for _ in range(200):
        text = record.read_text()
        if '"end"' in text:
            break
        time.sleep(0.05)
    assert '"status": "done"' in text
