# SPDX-License-Identifier: Apache-2.0
"""What IOR 4.1 prints, recorded in `ior_output.json` by `python ior_output.py` with the `ior` on PATH."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from ior_cases import make_launcher_command, run

RECORDED = Path(__file__).with_name("ior_output.json")
TASKS = 2
COMMANDS = {
    "json": "-w -r -F -t 4k -b 16k -s 2 -i 2 -G 5 -C -e -O summaryFormat=JSON -o f",
    "human": "-w -r -t 4k -b 16k -i 2 -G 5 -v -o f",
    "human wear-out": "-w -F -t 4k -b 16k -D 30 -O stoneWallingWearOut=1 -G 5 -o f",
    "csv": "-w -r -F -t 4k -b 16k -i 2 -G 5 -O summaryFormat=CSV -o f",
}


def read_recorded_outputs() -> dict[str, str]:
    """Standard output by the name of the command."""
    recorded_output: dict[str, str] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return recorded_output


def record_all_commands(folder: Path) -> None:
    """Runs the commands with the real IOR."""
    start, program = make_launcher_command(TASKS), shutil.which("ior")
    if start is None or program is None:
        sys.exit("there is no ior on PATH, or no launcher")
    recorded_output: dict[str, Any] = {}
    for name, command_line in COMMANDS.items():
        result = run([*start, program, *command_line.split()], folder)
        assert result.returncode == 0, result.stderr
        recorded_output[name] = result.stdout.replace(program, "ior")
    RECORDED.write_text(json.dumps(recorded_output, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        record_all_commands(Path(temporary))
