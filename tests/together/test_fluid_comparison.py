# SPDX-License-Identifier: Apache-2.0
"""Transfers over random networks end on the model when a fluid says, and at the same nanosecond from two compilers."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("second_opinion", ROOT / "bench" / "second_opinion" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["second_opinion"] = module
    spec.loader.exec_module(module)
    return module


opinion = _module()


def test_full_link_is_shared_max_min_fairly() -> None:
    text = (
        "router 90 full\nclient 1000 full\nclient 10 full\nserver 0 full\n"
        "target 0 1000\ntarget 0 1000\nflow 0 0 800 w\nflow 1 1 100 w\nflow 0 1 80 r\n"
    )
    # 10 for the second one by its adapter, the other 80 for the first; reading has its own 90.
    assert opinion.simulate_fluid_model(text).ends == pytest.approx([10, 10, 80 / 90])
    halved = text.replace("router 90 full", "router 90 half")
    # 90 for three: 10, and 40 each until the reader is done at 2 s; then 80, and all of it from 10 s on.
    assert opinion.simulate_fluid_model(halved).ends == pytest.approx([10 + 80 / 90, 10, 2])


def test_transfer_limited_by_two_links_is_detected() -> None:
    text = "client 100 full\nserver 0 full\ntarget 0 50\ntarget 0 100\nflow 0 0 100 w\nflow 0 1 100 w\n"
    assert opinion.simulate_fluid_model(text).two_lines
    assert not opinion.simulate_fluid_model(text.replace("target 0 50", "target 0 60")).two_lines


@pytest.fixture(scope="module")
def program() -> Path:
    """The program from the build tree; skips the test when this tree has none."""
    built = sorted(ROOT.glob("build/*/bench/sonde-bench-flows"), key=lambda path: path.stat().st_mtime)
    if not built:
        pytest.skip("sonde-bench-flows is not built here")
    return built[-1]


def test_transfers_end_by_max_min_fair_shares(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opinion.compare_networks(program, None, 12, 1) == 0, capsys.readouterr().out


@pytest.mark.nightly
def test_simgrid_agrees_on_sixty_networks(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simgrid_ends = opinion.compile_simgrid_program("c++", tmp_path)
    if simgrid_ends is None:
        pytest.skip("SimGrid is not installed: tools/system-packages simgrid")
    assert opinion.compare_networks(program, simgrid_ends, 60, 1) == 0, capsys.readouterr().out
    output = capsys.readouterr().out
    assert "60 networks: ours and SimGrid differ" in output
    assert float(output.rsplit("differ by ", 1)[1].split()[0]) < 1e-6  # of progressive filling, which CI asks


@pytest.mark.nightly  # 16 s of compiling
@pytest.mark.skipif(shutil.which("clang++") is None, reason="needs clang++ beside the compiler of the build")
def test_two_compilers_give_the_same_nanoseconds(program: Path, tmp_path: Path) -> None:
    other = opinion.compiled("clang++", tmp_path)
    for seed in range(1, 11):
        text = opinion.network(seed).replace("noise 0", "noise 0.3")
        outputs = [
            subprocess.run([executable], input=text, capture_output=True, text=True).stdout
            for executable in (program, other)
        ]
        assert outputs[0] == outputs[1]
        assert "events" in outputs[0]
