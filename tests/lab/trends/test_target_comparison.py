# SPDX-License-Identifier: Apache-2.0
"""Comparison of runs whose records contain targets: all surfaces report differences and unknown values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from target_load import COLUMNS

from sonde.model.parents import TargetParents
from sonde.store.tags import change_tags

AddRun = Callable[..., Path]
Sonde = Callable[..., Any]
SLOW_TARGET = "OST0002"
PARENTS = TargetParents(
    "site", {"OSS": {f"oss{index}": (f"OST{2 * index:04x}", f"OST{2 * index + 1:04x}") for index in range(6)}}
)
SYSTEM = """
schema = "sonde-system/2"
id = "site"

[[servers]]
id = "oss[0-5]"
roles = ["oss", "mds", "mgs"]

[[targets]]
id = "t[00-11]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss[0-5]"

[[file_systems]]
id = "fs"
kind = "lustre"

[[mounts]]
id = "m"
file_system = "fs"
path = "/scratch"
"""


def with_targets(folder: Path, random: np.random.Generator, factor: float, parents: bool = True) -> None:
    """Adds to the record of a run that its 12 targets answered 20 writes of 1 MiB a second; two of them slower."""
    shared = {"t": 2.0, "phase": "write", "index": 0, "op": "write"}
    lines: list[dict[str, Any]] = [{"type": "phase_begin", **shared, "measured": True, "tasks": 4}]
    rows: list[list[Any]] = []
    busy = float(np.exp(random.normal(0, 0.2)))
    for index in range(12):
        name = f"OST{index:04x}"
        mean = 5e6 * busy * float(np.exp(random.normal(0, 0.02))) * (factor if name == SLOW_TARGET else 1.0)
        ns = [int(20 * mean)] * 30
        series = {"scope": "target", "target": name, "kind": "write", "slice_s": 1.0, "bytes": [20 << 20] * 30}
        counts = [20] * 30
        lines.append({"type": "series", **shared, **series, "ops": counts, "single_ops": counts, "single_ns": ns})
        rows.append([name, "write", 600 << 20, 600, 600, sum(ns), mean, mean, mean, int(mean)])
    total = sum(row[2] for row in rows)
    totals: dict[str, Any] = {"files": 1, "known_files": 1, "bytes": total, "known_bytes": total}
    lines.append({"type": "targets", **shared, **totals, "columns": list(COLUMNS), "rows": rows})
    with (folder / "record.ndjson").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    if parents:
        summary = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        summary["parents"] = PARENTS.to_json()
        (folder / "run.json").write_text(json.dumps(summary), encoding="utf-8")


@pytest.fixture
def slowed_target(add_run: AddRun) -> None:
    """Five runs before, five after which one target answers half as fast."""
    random = np.random.default_rng(1)
    for day in range(10):
        folder = add_run(day, {("write", "write"): 1e9 * float(np.exp(random.normal(0, 0.02)))})
        with_targets(folder, random, 2.0 if day >= 5 else 1.0)
        change_tags(folder, added_tags=["new" if day >= 5 else "old"])


def test_slower_target_and_server_appear_on_every_surface(
    slowed_target: None, sonde: Sonde, archive: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    completed = sonde("compare", "tag:old", "tag:new", "-o", page)
    assert completed.code == 0, completed.err
    (number,) = sonde("compare", "tag:old", "tag:new", "--json").json["numbers"]
    levels = {level["level"]: level for level in number["targets"]["levels"]}
    targets = {level["name"]: level for level in levels["target"]["parts"]}
    assert {name for name, level in targets.items() if level["verdict"] == "slower"} == {SLOW_TARGET}
    slow = targets[SLOW_TARGET]
    assert slow["low"] < 0.5 < slow["high"]
    assert slow["relative_rate"] == pytest.approx(0.5, rel=0.05)
    assert slow["rate_low"] < 0.5 < slow["rate_high"]
    # It is half of its server, which is therefore judged with it: 1.5 times as long on average.
    assert {level["name"]: level["verdict"] for level in levels["OSS"]["parts"]}["oss1"] == "slower"
    html = page.read_text(encoding="utf-8")
    printed = " ".join(completed.out.split())
    for sentence in number["targets"]["sentences"]:
        assert sentence in printed
        assert sentence in html.replace("\u00a0", " ")
    assert "Target OST0002 answered writes at 0." in printed
    assert "OSS oss1 answered writes at 0." in printed


def test_servers_come_from_a_system_file_passed_to_compare(
    add_run: AddRun, sonde: Sonde, archive: Path, tmp_path: Path
) -> None:
    random = np.random.default_rng(2)
    folders = [add_run(day, {("write", "write"): 1e9}) for day in range(2)]
    for folder, factor in zip(folders, (1.0, 2.0), strict=True):
        with_targets(folder, random, factor, parents=False)
    (tmp_path / "site.toml").write_text(SYSTEM, encoding="utf-8")
    names = [folder.name for folder in folders]
    (number,) = sonde("compare", *names, "--json").json["numbers"]
    assert [level["level"] for level in number["targets"]["levels"]] == ["target"]
    (number,) = sonde("compare", *names, "--json", "--system", tmp_path / "site.toml").json["numbers"]
    oss = next(level for level in number["targets"]["levels"] if level["level"] == "OSS")
    assert [level["name"] for level in oss["parts"] if level["verdict"] == "slower"] == ["oss1"]


def test_targets_of_two_file_systems_are_not_held_against_each_other(
    add_run: AddRun, sonde: Sonde, archive: Path
) -> None:
    random = np.random.default_rng(3)
    for storage in ("fs1", "fs2"):
        folder = add_run(0, {("write", "write"): 1e9}, storage=f"lustre:{storage} /scratch")
        with_targets(folder, random, 1.0)
        change_tags(folder, added_tags=[storage])
    (number,) = sonde("compare", "tag:fs1", "tag:fs2", "--json").json["numbers"]
    sentence = "The sides are on different file systems, whose targets are not the same ones: they are not compared."
    assert number["targets"] == {"levels": [], "sentences": [sentence]}


def test_one_side_without_target_figures_is_reported(add_run: AddRun, sonde: Sonde, archive: Path) -> None:
    random = np.random.default_rng(4)
    first, second, third = (add_run(day, {("write", "write"): 1e9}) for day in range(3))
    with_targets(third, random, 1.0)
    completed = sonde("compare", first.name, third.name)
    assert "Of the run before no figures of targets are known." in completed.out
    (number,) = sonde("compare", first.name, second.name, "--json").json["numbers"]
    assert "targets" not in number
    assert "Targets of" not in sonde("compare", first.name, second.name).out
