# SPDX-License-Identifier: Apache-2.0
"""``sonde run`` with an experiment, or with a plan that is run several times; the engine is a fake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sonde.experiments.executor import EngineExecutor, RunAttempt

Fake = Callable[..., Path]

EXPERIMENT = """
schema = "sonde-experiment/2"
id = "sizes"
title = "Two sizes"
[plan.data]
access = { transfer = "64KiB", volume = "1MiB" }
[[plan.phases]]
id = "write"
op = "write"
[[sweep]]
paths = "data.access.transfer"
values = ["64KiB", "128KiB"]
[repeat]
min = 2
seed = 3
[profiles.ci]
"repeat.min" = 1
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def read_runs(archive: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(archive.glob("20*/*/run.json"))]


def test_experiment_run_prints_medians(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path
) -> None:
    result = sonde("run", experiment, "--on", target, "--tag", "t1", "--note", "n", "--group", "mine")
    assert result.code == 0, result.err
    assert "Two sizes" in result.out
    assert "64KiB" in result.out
    assert "Stored as mine" in result.out
    assert "Seed of the order: 3" in result.err
    stored_runs = read_runs(archive)
    assert len(stored_runs) == 4
    assert {run["experiment"]["cell"] for run in stored_runs} == {"transfer=64KiB", "transfer=128KiB"}
    assert {(run["group"], run["note"]) for run in stored_runs} == {("mine", "n")}
    assert sonde("run", experiment, "--on", target, "--group", "mine", "--quiet").out.strip() == "mine"
    assert len(read_runs(archive)) == 4, "the same group again runs nothing anew"
    assert sonde("show", "mine").code == 0
    assert "t1" in sonde("list", "--tag", "t1", "--json").out


def test_caveats_of_runs_are_in_every_output(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path
) -> None:
    arguments = ("run", experiment, "--on", target, "--group", "mine")
    quiet = sonde(*arguments)
    assert quiet.code == 0, quiet.err
    assert "oubtful" not in quiet.out
    why = "other processes used 1.9 cores of this node during the phase"
    busy = {"id": "noisy_node", "phase": "write", "severity": "warning", "text": f"{why}."}
    for path in sorted(archive.glob("20*/*/run.json"))[:3]:
        path.write_text(json.dumps({**json.loads(path.read_text()), "findings": [busy]}))
    sentence = f"Doubtful, write: {why} (in 3 of 4 runs)."
    assert f"! {sentence}" in sonde(*arguments).out
    again = sonde(*arguments, "--json").json
    assert again["caveats"] == [sentence]
    assert sentence in Path(again["report"]).read_text(encoding="utf-8")


def test_profile_and_setting_change_experiment(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path
) -> None:
    results = sonde(
        "run", experiment, "--on", target, "--profile", "ci", "--set", "data.access.volume=2MiB", "--json"
    ).json
    assert [len(cell["rates"]) for cell in results["cells"]] == [1, 1]
    assert {json.loads(path.read_text())["data"]["access"]["volume"] for path in archive.glob("20*/*/plan.json")} == {
        "2MiB"
    }


def test_plan_with_repeat_option_becomes_experiment(
    fake_engine: Fake, sonde: Any, target: Path, archive: Path, tmp_path: Path
) -> None:
    log = tmp_path / "prepared"
    results = sonde(
        "run", "quick", "--on", target, "--repeat", "2", "--warmup", "1", "--prepare", f"echo x >> {log}",
        "--sweep", "data.access.transfer=64KiB,1MiB", "--json",
    ).json  # fmt: skip
    assert {(cell["cell"], len(cell["rates"])) for cell in results["cells"]} == {
        ("transfer=64KiB", 2),
        ("transfer=1MiB", 2),
    }
    assert [run["warm_up"] for run in results["runs"]].count(True) == 2
    assert log.read_text().count("x") == 6


def test_dry_run_prints_forecast_and_runs_nothing(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path
) -> None:
    log = fake_engine()
    result = sonde("run", experiment, "--on", target, "--dry-run", "--rate", "1MB/s")
    assert result.code == 0, result.err
    assert "2 cells, 4 runs at least, about 4" in result.out
    assert "ior -a POSIX -t 65536" in result.out
    assert not any('"run"' in line for line in log.read_text().splitlines())
    assert not archive.exists()
    forecast = sonde("run", experiment, "--on", target, "--dry-run", "--json").json
    assert [cell["phases"][0]["bytes"] for cell in forecast["cells"]] == [1 << 20, 1 << 20]


def test_failed_cell_is_reported_and_sets_exit_code(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path
) -> None:
    fake_engine("mismatch")
    result = sonde("run", experiment, "--on", target)
    assert result.code == 4
    assert "3 blocks are not what was written" in result.sentences[0]


def test_experiment_rejected_in_all_cells_stores_nothing(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path
) -> None:
    fake_engine("refuse")
    result = sonde("run", experiment, "--on", target)
    assert result.code == 2
    assert result.sentences[0].startswith("sonde: Nothing was run. transfer=")
    assert result.sentences[0].endswith("is not what this fake engine likes. (1 more cells were not run.)")
    assert read_runs(archive) == []


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["--on", "fs1=/tmp"], 'names no file system or mount "fs1"'),
        (["--pool", "P=/tmp"], 'names no pool "P"'),
        (["--on", "/no/such"], "There is no directory /no/such"),
        ([], "Nothing says where sizes is to be measured; give --on DIR."),
        (["--on", "/tmp", "--profile", "cj"], 'has no profile "cj"; it has ci.'),
        (["--on", "/tmp", "--set", "repeat.mni=3"], 'has no member "mni". Did you mean "min"?'),
        (["--on", "/tmp", "--set", "sweep.transfr=1"], 'there is no axis "transfr"'),
        (["--on", "/tmp", "--sweep", "data.access.transfer=1MiB"], "sweep.transfer appears twice"),
        (["--on", "/tmp", "--sweep", "data.acess.gap=1MiB"], 'data has no member "acess". Did you mean "access"?'),
        (["--on", "/tmp", "--sweep", "gap"], "is not PATH=VALUES"),
        (["--on", "/tmp", "--tasks", "4"], "--tasks and --processes belong to a plan"),
        (["--on", "/tmp", "--system", "edson"], 'Did you mean "edison"?'),
        (["--on", "/tmp", "--resume"], "has no run of sizes with this profile and these settings"),
        (["--on", "/tmp", "--group", "a b"], '"a b" cannot be the name of a group'),
        (["--on", "/tmp", "--tag", "a b"], '"a b" cannot be a tag'),
        (["--on", "/tmp", "--dry-run", "--rate", "fast"], "--rate: "),
        (["--on", "/tmp", "--launcher-args", "-x"], "--launcher-args needs another --launcher than local"),
    ],
)
def test_invalid_arguments_print_one_sentence(
    fake_engine: Fake, sonde: Any, experiment: Path, archive: Path, arguments: list[str], expected_text: str
) -> None:
    result = sonde("run", experiment, *arguments)
    assert result.code == 2, result.out
    assert len(result.sentences) == 1
    assert expected_text in result.sentences[0]
    assert not list(archive.glob("20*"))


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["--profile", "ci"], "--profile belongs to an experiment, and this is a plan"),
        (["--pool", "P=/tmp"], "--pool belongs to an experiment"),
        (["--on", "fs1=/tmp"], "--on fs1=… names a file system of an experiment"),
        (["--on", "/tmp", "--sweep", "data.access.transfer="], "is not PATH=VALUES"),
    ],
)
def test_experiment_options_of_plan_are_rejected(
    fake_engine: Fake, sonde: Any, archive: Path, arguments: list[str], expected_text: str
) -> None:
    result = sonde("run", "quick", *arguments)
    assert (result.code, len(result.sentences)) == (2, 1)
    assert expected_text in result.sentences[0]


def test_single_run_stores_tag_note_and_group(fake_engine: Fake, sonde: Any, target: Path, archive: Path) -> None:
    assert (
        sonde("run", "quick", "--on", target, "--tag", "a", "--note", "b", "--group", "c", "-q", "--no-report").code
        == 0
    )
    (run,) = read_runs(archive)
    assert (run["note"], run["group"]) == ("b", "c")
    assert json.loads(next(archive.glob("20*/*/tags.json")).read_text())["tags"] == ["a"]


PROCESSES = """
schema = "sonde-experiment/2"
id = "killed"
[plan.data]
access = { transfer = "64KiB", volume = "1MiB" }
[[plan.phases]]
id = "write"
op = "write"
stop = { time = "60s" }
[repeat]
min = 1
"""


@pytest.mark.engine
def test_resume_removes_files_of_killed_runs(
    sonde: Any, tmp_path: Path, target: Path, archive: Path, engine: Any
) -> None:
    path = tmp_path / "killed.toml"
    path.write_text(PROCESSES, encoding="utf-8")
    arguments = ["run", str(path), "--on", str(target), "--group", "g", "--no-report", "-q"]
    runner = subprocess.Popen([sys.executable, "-m", "sonde", *arguments], start_new_session=True)
    owner: list[Path] = []
    while runner.poll() is None and not (owner and list(target.glob("sonde-*/*"))):
        owner = [
            path
            for path in archive.glob(".incoming-*/owner.json")
            if len(json.loads(path.read_text())["processes"]) > 1
        ]
        time.sleep(0.02)
    child = json.loads(owner[0].read_text())["processes"][1]["pid"]
    for pid in (runner.pid, child):
        os.kill(pid, signal.SIGKILL)
    runner.wait()
    assert list(target.glob("sonde-*/*")), "the killed engine left its files"
    other = sonde("run", path, "--on", target, "--group", "g", "--no-report", "--set", "phases.write.stop.time=50ms")
    assert other.code == 2, "with other settings it is another experiment"
    description_file = archive / "experiments" / "g" / "experiment.json"
    document = json.loads(description_file.read_text())
    document["settings"] = ["phases.write.stop.time=50ms"]  # so that the test does not wait for a minute
    description_file.write_text(json.dumps(document))
    result = sonde("run", path, "--on", target, "--group", "g", "--no-report", "--set", "phases.write.stop.time=50ms")
    assert result.code == 0, result.err
    assert list(target.iterdir()) == []


def test_interrupt_keeps_runs_and_prints_how_to_resume(
    fake_engine: Fake, sonde: Any, experiment: Path, target: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, begun = EngineExecutor.execute, list[RunAttempt]()

    def interrupted(self: EngineExecutor, attempt: RunAttempt) -> Any:
        begun.append(attempt)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return execute(self, attempt)

    monkeypatch.setattr(EngineExecutor, "execute", interrupted)
    result = sonde("run", experiment, "--on", target, "--no-report")
    assert result.code == 5
    assert result.sentences == ["sonde: The experiment was interrupted; finished runs are stored."]
    assert "the same command with --resume continues it" in result.out
    assert len(read_runs(archive)) == 2
    assert sonde("run", experiment, "--on", target, "--no-report", "--resume").code == 0
    assert len(read_runs(archive)) == 4
