# SPDX-License-Identifier: Apache-2.0
"""The command does not import pandas to write its tables; a program that imports `sonde` is left as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIST_RUNS = "import sys; sys.argv = ['sonde', 'list']; from sonde.cli.main import main; main({}); "
PRINT_IMPORT = "print('pandas' in sys.modules)"
CONVERT = "import pyarrow\ntry:\n    pyarrow.array([1]).to_pandas()\nexcept ImportError as error:\n    print(error)"


def run_with_pandas(folder: Path, program: str) -> list[str]:
    """Lines that a program prints where a module `pandas` of an old version is installed."""
    (folder / "pandas.py").write_text("__version__ = '1.0.0'\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(("arguments", "is_imported"), [("", False), ("['list']", True)])
def test_only_the_command_avoids_pandas(archive: Path, tmp_path: Path, arguments: str, is_imported: bool) -> None:
    from sonde.store.archive import Archive

    Archive(archive)
    program = LIST_RUNS.format(arguments) + "import sonde.store.catalog, pyarrow; pyarrow.array([1]); " + PRINT_IMPORT
    assert run_with_pandas(tmp_path, program)[-1] == str(is_imported)


def test_explicit_conversion_still_imports_pandas(tmp_path: Path) -> None:
    program = (
        "import sonde.store.pandas_discovery as discovery, sonde.store.tables as tables\n"
        "discovery.declare_command_process(); tables.make_arrow_schema({'run': 'text'})\n" + CONVERT
    )
    assert "pandas 1.0.0 is installed" in "".join(run_with_pandas(tmp_path, program))
