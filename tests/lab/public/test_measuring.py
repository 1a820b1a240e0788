# SPDX-License-Identifier: Apache-2.0
"""`sonde.run`, `sonde.check` and `sonde.simulate`: the results of the command as objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sonde
from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError, RunFailedError

PLAN: dict[str, Any] = {
    "id": "small",
    "data": {"access": {"transfer": "64KiB", "volume": "1MiB"}},
    "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read"}],
}
Fake = Callable[..., Path]


def test_run_stores_and_returns_the_run(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine(rate=2e9)
    run = sonde.run(PLAN, on=target, tags=["first"], group="mine", note="a comment")
    assert (run.plan, run.status, run.tags) == ("small", "done", ("first",))
    assert (run.document["group"], run.document["note"]) == ("mine", "a comment")
    assert run.target == str(target)
    assert run.phase("write").bytes_per_s == pytest.approx(2e9, rel=0.01)
    assert sonde.open(archive).run().id == run.id
    assert "target" not in PLAN, "the caller's document is not changed"


def test_run_prints_nothing_by_default(
    fake_engine: Fake, target: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sonde.run(PLAN, on=target)
    assert capsys.readouterr() == ("", "")
    sonde.run(PLAN, on=target, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "write" in captured.err


def test_run_divides_tasks_and_applies_settings(fake_engine: Fake, target: Path, tmp_path: Path) -> None:
    run = sonde.run(PLAN, on=target, settings=["data.access.transfer=4KiB"], tasks=3, archive=tmp_path / "other")
    plan = run.record().plan
    assert plan["tasks"]["threads"] == 3
    assert plan["data"]["access"]["transfer"] == "4KiB"
    assert sonde.open(tmp_path / "other").root in run.folder.parents


def test_single_text_is_one_tag_and_one_setting(fake_engine: Fake, target: Path, archive: Path) -> None:
    run = sonde.run(PLAN, on=target, settings="data.access.transfer=4KiB", tags="first")
    assert (run.tags, run.record().plan["data"]["access"]["transfer"]) == (("first",), "4KiB")
    with pytest.raises(sonde.UserError, match="is not a rate"):
        sonde.open(archive).gate(run.id, at_least="write=1TB/s=")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: sonde.run(PLAN, on=folder, processes=0), "processes is 0; it must be from 1 to 65536"),
        (lambda folder: sonde.simulate(PLAN, "cumulus", nodes=0), "nodes is 0; it must be from 1 to 10000000"),
        (lambda folder: sonde.simulate(PLAN, "cumulus", tasks=-2), "tasks is -2"),
        (lambda folder: sonde.simulate(PLAN, "cumulus", seed=-1), "seed is -1"),
    ],
)
def test_number_outside_its_range_starts_no_run(
    call: Callable[[Path], object], message: str, fake_engine: Fake, target: Path, archive: Path
) -> None:
    with pytest.raises(sonde.UserError, match=message):
        call(target)
    assert not list(archive.glob("*/*"))


def test_failed_run_raises_and_is_stored(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine("enospc")
    with pytest.raises(RunFailedError, match="no space left"):
        sonde.run(PLAN, on=target)
    assert sonde.open(archive).run().status == "failed"


@pytest.mark.parametrize(
    ("plan", "options", "expected_sentence"),
    [
        ({"phases": [{"id": "w", "op": "burn"}]}, {}, "burn"),
        ("no-such-plan", {}, 'There is no plan file "no-such-plan"'),
        ("hpcs-07", {}, "hpcs-07 is an experiment"),
        (PLAN, {"on": "/no/such/directory"}, "There is no directory /no/such/directory"),
        (PLAN, {"tags": ["two words"]}, "cannot be a tag"),
        (PLAN, {"group": "../up"}, "cannot be the name of a group"),
        (PLAN, {"launcher": "carrier-pigeon"}, "carrier-pigeon"),
        (PLAN, {"tasks": 7, "processes": 2}, "cannot be divided evenly"),
        (PLAN, {"system": "atlantis"}, "atlantis"),
    ],
)
def test_bad_input_is_one_sentence(
    fake_engine: Fake, target: Path, archive: Path, plan: Any, options: dict[str, Any], expected_sentence: str
) -> None:
    with pytest.raises(sonde.UserError, match=expected_sentence) as caught:
        sonde.run(plan, **{"on": target, **options})
    assert "\n" not in str(caught.value)
    assert not list(archive.glob("*/*/run.json"))


def test_check_returns_its_figures(fake_engine: Fake, target: Path, archive: Path) -> None:
    fake_engine(seconds=0.01)
    check = sonde.check(target)
    assert check.target == target
    assert check.headline.endswith(".")
    assert {"random-read-1", "create"} <= {figure.key for figure in check.figures}
    assert check.figure("create").unit == "files_per_s"
    assert {run.document["group"] for run in check.runs} == {check.document["id"]}
    assert check.figures.to_arrow()["value"].to_pylist() == [figure.value for figure in check.figures]
    assert (archive / "reports" / f"{check.document['id']}.json").is_file()
    with pytest.raises(sonde.UserError, match='no figure "write-speed"'):
        check.figure("write-speed")


def test_check_of_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sonde.UserError, match="There is no directory"):
        sonde.check(tmp_path / "none")


def test_simulated_run_is_marked_and_repeatable(archive: Path) -> None:
    try:
        find_simulator()
    except MachineError as reason:
        pytest.skip(str(reason))
    first, again, other = (sonde.simulate(PLAN, "laptop-md", seed=seed, tags=["model"]) for seed in (1, 1, 2))
    assert first.phase("write").classification == "simulated"
    assert not first.phase("write").is_storage
    assert first.tags == ("model",)
    assert first.phase("write").seconds == again.phase("write").seconds
    assert (first.document["simulated"]["seed"], other.document["simulated"]["seed"]) == (1, 2)
    with pytest.raises(sonde.UserError, match="nothing-like-it"):
        sonde.simulate(PLAN, "laptop-md", faults=["nothing-like-it"])
