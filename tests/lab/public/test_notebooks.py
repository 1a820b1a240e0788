# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the documentation run without an error in a fresh kernel; their assertions hold."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

from sonde.launch.engine import find_engine
from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TIMEOUT_S = 300


def test_two_notebooks_are_there() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.filterwarnings("default")  # of the kernel's libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_in_a_fresh_kernel(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv("SONDE_ENGINE", str(find_engine().path))
        monkeypatch.setenv("SONDE_SIMULATOR", str(find_simulator()))
    except MachineError as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "lab"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()  # raises CellExecutionError with the traceback of the cell
    outputs = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "text/html" in output.get("data", {})
    ]
    assert any(output.data["text/html"].startswith("<iframe") for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
