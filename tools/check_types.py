# SPDX-License-Identifier: Apache-2.0
"""mypy --strict over everything that is Python: the lab, the tools and all tests.

Usage: .venv/bin/python tools/check_types.py. Tests of different folders may have one name, as pytest's import mode
allows; mypy allows it not, so that what has a name for the second time is looked at in a second call.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def split_files_by_unique_name(files: list[Path]) -> list[list[Path]]:
    """Distributes the files over as few lists as possible so that no list has two files of one name."""
    lists: list[list[Path]] = []
    counts: defaultdict[str, int] = defaultdict(int)
    for file in files:
        turn = counts[file.name]
        counts[file.name] += 1
        if turn == len(lists):
            lists.append([])
        lists[turn].append(file)
    return lists


def main() -> int:
    """Runs mypy as often as needed; 1 when it found something."""
    tests = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts)
    # Modules beside the tests are found as pytest finds them: by the folder of a conftest.py.
    folders = ["lab", "tools", *sorted({str(path.parent) for path in tests})]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(folders)}
    mypy = [sys.executable, "-m", "mypy"]
    good = subprocess.run(mypy, cwd=ROOT).returncode == 0
    for files in split_files_by_unique_name(tests):
        good &= subprocess.run([*mypy, *map(str, files)], cwd=ROOT, env=environment).returncode == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
