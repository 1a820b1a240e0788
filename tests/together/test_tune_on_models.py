# SPDX-License-Identifier: Apache-2.0
"""`sonde tune` on simulated machines: optima that follow from their parameters are found, and no others."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from small_machine import small_machine

from sonde.cli.main import main
from sonde.conduct.run import RunSetup
from sonde.launch.engine import find_engine
from sonde.launch.simulator import SimulatedLauncher, find_simulator
from sonde.model.errors import MachineError
from sonde.store.archive import Archive
from sonde.terminal.run_display import Display

try:
    find_simulator()
except MachineError:
    pytest.skip("the simulator is not built", allow_module_level=True)

from sonde.cli.tune_runs import SimulatedTuneRunner
from sonde.model.confined_files import write_file
from sonde.model.plan import Plan
from sonde.model.system import read_system
from sonde.tune.description import TuneRequest, read_tunables
from sonde.tune.journal import open_journal
from sonde.tune.search import SearchResult, SearchRule
from sonde.tune.tuning import TuningSession

TUNABLES = read_tunables()
VALUES = ("2", "4", "8", "-1")
VOLUME_MIB, RATE = 512, 100e6  # of a run, and of a storage target
TARGETS = 16


def make_machine(folder: Path, seed: int, optimum: int | None) -> Path:
    """A machine of noisy targets whose files have one stripe. A write of the volume V to n targets of rate r takes
    V / (n r), and each target costs time c at the opening: n = sqrt(V / (r c)) is the best."""
    draw = random.Random(seed)
    text = small_machine(TARGETS, 1, 64, stripe="{ count = 1 }")
    if optimum is not None:
        cost_s = VOLUME_MIB * 2**20 / RATE / optimum**2
        text = text.replace('kind = "lustre"', f'kind = "lustre"\nmodel = {{ layout_cost = "{1000 * cost_s:.3f} ms" }}')
    noise = f"model = {{ noise = {draw.uniform(0.02, 0.15):.2f} }}"
    path = folder / f"machine-{seed}.toml"
    path.write_text(text.replace('rate = "100 MB/s"', f'rate = "100 MB/s"\n{noise}'), encoding="utf-8")
    return path


def make_runner(folder: Path, machine: Path, seed: int) -> SimulatedTuneRunner:
    system = read_system(str(machine))
    resolved = folder / "system.json"
    write_file(resolved, system.to_json())
    setup = RunSetup(find_engine(), Archive(folder / "archive"))
    launcher = SimulatedLauncher(simulator=find_simulator(), system=resolved, seed=seed)
    return SimulatedTuneRunner(setup, Display(), "", "tune", launcher=launcher, system=system)


def make_plan() -> Plan:
    document: dict[str, Any] = {
        "schema": "sonde-plan/2",
        "id": "tuned",
        "target": {"path": "/fs"},
        "data": {"access": {"transfer": "16MiB", "volume": f"{VOLUME_MIB}MiB"}, "io": {"direct": True}},
        "phases": [{"id": "write", "op": "write"}],
    }
    return Plan.from_document(document, "test")


def tune_machine(folder: Path, seed: int, name: str, optimum: int | None, values: tuple[str, ...]) -> SearchResult:
    runner = make_runner(folder, make_machine(folder, seed, optimum), 1_000_000 * seed)
    with open_journal() as journal:
        tuning = TuningSession(make_plan(), folder, runner, journal, SearchRule(), seed)
        return (
            tuning.tune_all_settings([TuneRequest(TUNABLES[name], values)], keeps_best_values=False).settings[0].result
        )


@pytest.mark.nightly
def test_planted_optima_on_models_are_identified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the best count, times are 1.25 of those of the next ones."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hits = 0
    for seed in range(20):
        optimum = (2, 4, 8)[seed % 3]
        result = tune_machine(tmp_path, seed, "stripe-count", optimum, VALUES)
        hits += result.is_better and result.best == str(optimum)
    assert hits >= 18


@pytest.mark.nightly
def test_no_improvement_is_reported_on_models_without_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Direct writes have no dirty pages, so their limit has no effect."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    results = [
        tune_machine(tmp_path, 100 + seed, "lustre-dirty", None, ("16", "64", "256", "512")) for seed in range(20)
    ]
    assert sum(result.is_better for result in results) <= 1


def test_verb_finds_stripes_of_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are on one target of 100 MB/s by default; eight are several times as fast."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    machine = tmp_path / "machine.toml"
    machine.write_text(small_machine(8, 1, 64), encoding="utf-8")
    (tmp_path / "plan.json").write_text(make_plan().to_json(), encoding="utf-8")
    arguments = ["tune", str(tmp_path / "plan.json"), "--system", str(machine), "--try", "stripe-count=1,8"]
    assert main([*arguments, "--blocks", "7", "--archive", str(tmp_path / "a"), "--json"]) == 0
    (setting,) = json.loads(capsys.readouterr().out)["settings"]
    assert (setting["best"], setting["verdict"]) == ("8", "better")
