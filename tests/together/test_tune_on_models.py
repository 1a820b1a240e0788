# SPDX-License-Identifier: Apache-2.0
"""`sonde tune` on simulated machines: optima that follow from their parameters are found, and no others."""

from __future__ import annotations

import json
import random
import statistics
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
from sonde.tune.search import SearchRule
from sonde.tune.tuning import TuneOutcome, TuneVariant, Tuning

TUNABLES = read_tunables()


def make_machine(folder: Path, seed: int, helps: bool) -> tuple[Path, str, tuple[str, ...]]:
    """A machine of eight noisy targets on which the count of stripes or the requests in flight matter, or nothing."""
    draw = random.Random(seed)
    text = small_machine(8, 1, 64)
    noise = f"model = {{ noise = {draw.uniform(0.1, 0.3):.2f}, queue_depth = 1"
    name = draw.choice(("stripe-count", "lustre-rpcs-in-flight")) if helps else "lustre-dirty"
    if name == "stripe-count":
        # Each further target of a file costs time at its opening, so that the best count depends on this cost.
        layout = draw.choice((0.2, 5, 20, 60))
        text = text.replace('kind = "lustre"', f'kind = "lustre"\nmodel = {{ layout_cost = "{layout} ms" }}')
        values: tuple[str, ...] = ("1", "2", "4", "8")
    elif name == "lustre-rpcs-in-flight":
        noise += f', contention = {draw.choice((0, 0.02, 0.1))}, request_cost = "{draw.choice((0.1, 1, 5))} ms"'
        values = ("1", "2", "4", "16", "64")
    else:
        values = ("16", "64", "256", "512")
    text = text.replace('rate = "100 MB/s"', f'rate = "100 MB/s"\n{noise} }}')
    path = folder / f"machine-{seed}.toml"
    path.write_text(text, encoding="utf-8")
    return path, name, values


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
        "data": {"access": {"transfer": "8MiB", "volume": "64MiB"}, "io": {"direct": True}},
        "phases": [{"id": "write", "op": "write"}],
    }
    return Plan.from_document(document, "test")


def tune_machine(folder: Path, seed: int, helps: bool) -> tuple[TuneOutcome, dict[str | None, float]]:
    """The outcome, and the true rate with each value: the median of runs with other seeds."""
    machine, name, values = make_machine(folder, seed, helps)
    request = TuneRequest(TUNABLES[name], values)
    with open_journal() as journal:
        runner = make_runner(folder, machine, 1_000_000 * seed)
        outcome = Tuning(make_plan(), folder, runner, journal, SearchRule(), seed).run([request], apply=False)
    truth_runner = make_runner(folder, machine, 77_000_000 + seed)
    tuning = Tuning(make_plan(), folder, truth_runner, None, SearchRule())  # type: ignore[arg-type]
    tuning._tunables = {name: request.tunable}
    variants: dict[str | None, TuneVariant] = {value: tuning._make_variant({name: value}) for value in values}
    variants[None] = tuning._make_variant({})
    truth = {
        value: statistics.median(truth_runner.measure(variant) for _ in range(9)) for value, variant in variants.items()
    }
    return outcome, truth


def is_right(outcome: TuneOutcome, truth: dict[str | None, float]) -> bool:
    """Whether the best value was found where one is worth it, up to what is worth a change; else nothing."""
    result = outcome.settings[0].result
    best = max(truth.values())
    if best < 1.05 * truth[None]:
        return not result.is_better
    return result.is_better and truth[result.best] > best / 1.05


@pytest.mark.nightly
def test_planted_optima_on_models_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    cases = [tune_machine(tmp_path, seed, helps=True) for seed in range(20)]
    assert sum(is_right(*case) for case in cases) >= 18
    assert sum(case[0].settings[0].result.is_better for case in cases) >= 5  # else nothing was planted


@pytest.mark.nightly
def test_nothing_is_found_on_models_where_nothing_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    outcomes = [tune_machine(tmp_path, 100 + seed, helps=False)[0] for seed in range(20)]
    assert sum(outcome.settings[0].result.is_better for outcome in outcomes) <= 1


def test_verb_finds_stripes_of_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are on one target of 100 MB/s by default; eight are several times as fast."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    machine = tmp_path / "machine.toml"
    machine.write_text(small_machine(8, 1, 64), encoding="utf-8")
    (tmp_path / "plan.json").write_text(make_plan().to_json(), encoding="utf-8")
    arguments = ["tune", str(tmp_path / "plan.json"), "--system", str(machine), "--try", "stripe-count=1,8"]
    assert main([*arguments, "--blocks", "5", "--archive", str(tmp_path / "a"), "--json"]) == 0
    (setting,) = json.loads(capsys.readouterr().out)["settings"]
    assert (setting["best"], setting["verdict"]) == ("8", "better")
