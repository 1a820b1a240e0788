# SPDX-License-Identifier: Apache-2.0
"""mypy --strict over everything that is Python: the lab, the tools and all tests.

Usage: .venv/bin/python tools/check_types.py. Two calls of mypy: one over the files that pyproject.toml lists, one over
the tests. Test files of different folders may have the same name, as pytest's import mode allows. mypy rejects two
modules with one name, so all but the first of these files are passed by their full module names, such as
tests.lab.findings.conftest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def name_modules(files: list[Path]) -> list[str]:
    """Returns a different module name for each file: the short one with which other tests import it, or, where a file
    in an earlier folder has that one, its path with dots."""
    modules: dict[str, Path] = {}
    for file in sorted(files, key=lambda path: (str(path.parent), path.name)):  # as mypy searches them
        dotted = ".".join(file.with_suffix("").parts)
        modules[dotted if file.stem in modules else file.stem] = file
    return list(modules)


def main() -> int:
    """Runs mypy twice; 1 when it found something."""
    tests = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts)
    # Modules beside the tests are found as pytest finds them: by the folder of a conftest.py.
    folders = ["lab", "tools", *sorted({str(path.parent) for path in tests})]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(folders)}
    mypy = [sys.executable, "-m", "mypy"]
    good = subprocess.run(mypy, cwd=ROOT).returncode == 0
    modules = [argument for name in name_modules(tests) for argument in ("-m", name)]
    good &= subprocess.run([*mypy, *modules], cwd=ROOT, env=environment).returncode == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
