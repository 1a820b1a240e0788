# SPDX-License-Identifier: Apache-2.0
"""Runs the experiments of the five documents at published scale on the described machines, in simulation, and writes
docs/concepts/reproduction.md, one page a document beside it, and their numbers (docs/published/simulated).

Usage: .venv/bin/python tools/reproduction.py [--only NAME ...] [--fresh] [--page]. An experiment whose text and whose
machine are those of its numbers is not run again, unless it is to be (--fresh); with --page nothing is run. Which
experiments, which shapes of the documents and which controls: docs/published/shapes.toml.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tools")]

import keep_figures  # noqa: E402
import reproduction_page  # noqa: E402
from sonde.conduct.run import RunSetup  # noqa: E402
from sonde.experiments.claims.grid import CellGrid  # noqa: E402
from sonde.experiments.claims.measured_runs import MeasuredRuns  # noqa: E402
from sonde.experiments.claims.requirements import find_unmet_requirements  # noqa: E402
from sonde.experiments.claims.verdicts import ClaimResult  # noqa: E402
from sonde.experiments.locations import RunLocations  # noqa: E402
from sonde.experiments.page.page import evaluate_results  # noqa: E402
from sonde.experiments.request import create_request  # noqa: E402
from sonde.experiments.results import Results, read_results  # noqa: E402
from sonde.experiments.runner import Runner, RunnerObserver  # noqa: E402
from sonde.experiments.shipped_experiments import resolve_plan_source  # noqa: E402
from sonde.experiments.simulated_executor import SimulatedExecutor  # noqa: E402
from sonde.launch.engine import find_engine  # noqa: E402
from sonde.launch.simulator import SimulatedLauncher, find_simulator  # noqa: E402
from sonde.model.bundled_files import find_system_file  # noqa: E402
from sonde.model.errors import EXIT_INTERRUPTED  # noqa: E402
from sonde.model.experiment import Experiment, experiment_from_document, read_experiment  # noqa: E402
from sonde.model.system import System, read_system  # noqa: E402
from sonde.model.system.changes import apply_changes  # noqa: E402
from sonde.store.archive import Archive  # noqa: E402

KEPT = ROOT / "docs" / "published" / "simulated"
PROFILE = "published"


@dataclass(frozen=True)
class Staged:
    """An experiment on its machine: what differs from its text, and with what it must not come out.

    `settings` are PATH=VALUE of the experiment, `changes` members of the system, `faults` what is wrong with it,
    `places` parts of the system by the names that the experiment gives to directories, `variants` what each of its
    variants changes about the machine, in place of the command that would change a real one. One run of a cell is
    enough where the machine has no noise and nothing is left to chance but where files begin; six give an interval.
    `only` are claims whose cells are run; of none of them: every cell.
    """

    experiment: str
    repeats: int = 1
    settings: tuple[str, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    why: str = ""
    controls: tuple[Mapping[str, Any], ...] = ()
    only: tuple[str, ...] = ()
    beside: str = ""  # a file with more parts of the machine


def staged() -> dict[str, Staged]:
    """What is to be run, by the id of the experiment."""
    told = reproduction_page.listed()["experiments"]
    return {
        name: Staged(
            name,
            one.get("repeats", 1),
            tuple(one.get("settings", ())),
            one.get("changes", {}),
            tuple(one.get("faults", ())),
            one.get("places", {}),
            one.get("variants", {}),
            one.get("why", ""),
            tuple(one.get("controls", ())),
            tuple(one.get("only", ())),
            one.get("beside", ""),
        )
        for name, one in told.items()
    }


@dataclass(frozen=True)
class Run:
    """Runs of an experiment on a machine, and what came of its claims."""

    results: Results
    runs: MeasuredRuns
    judged: list[ClaimResult]
    system: System


def experiment_of(one: Staged) -> Experiment:
    """The experiment with as many repeats as are asked for, whatever its own text says of that."""
    return experiment_repeated(one.experiment, one.repeats)


@functools.cache
def experiment_repeated(name: str, repeats: int) -> Experiment:
    found = read_experiment(resolve_plan_source(name), finder=resolve_plan_source)
    document = dict(found.document)
    own = document.get("repeat", {})
    document["repeat"] = {"min": repeats, "seed": own.get("seed", 1), "fresh": own.get("fresh", "directory")}
    document["profiles"] = {
        profile: {key: value for key, value in changes.items() if key.partition(".")[0] != "repeat"}
        for profile, changes in document.get("profiles", {}).items()
    }
    return experiment_from_document(document, found.origin)


def machine_of(one: Staged, more: Mapping[str, Any] | None = None) -> System:
    """The machine that the experiment names, with what is changed about it."""
    named = experiment_of(one).file.storage
    assert named is not None
    source = find_system_file(named.system)
    with tempfile.TemporaryDirectory(prefix="sonde-reproduction-") as name:
        if one.beside:
            parts = [Path(source).read_text(encoding="utf-8"), (ROOT / one.beside).read_text(encoding="utf-8")]
            source = str(Path(name) / "system.toml")
            Path(source).write_text("\n".join(parts), encoding="utf-8")
        system = read_system(source)
    return apply_changes(system, {**one.changes, **(more or {})})


def simulated(
    one: Staged,
    archive: Archive,
    claims: Sequence[str] = (),
    more: Mapping[str, Any] | None = None,
    profile: str = PROFILE,
) -> Run:
    """Simulates every cell, or those that some claims look at. `more` changes the machine besides, for a control."""
    control = dict(more or {})
    faults = (*(() if control.pop("healthy", False) else one.faults), *control.pop("faults", ()))
    settings = (*one.settings, *control.pop("settings", ()))
    system = machine_of(one, control.pop("changes", {}))
    with tempfile.TemporaryDirectory(prefix="sonde-reproduction-") as name:
        folder = Path(name)
        (folder / "system.json").write_text(system.to_json(), encoding="utf-8")
        (folder / "storage").mkdir()
        named = experiment_of(one).file.storage
        where = RunLocations(str(folder / "storage"), system=named.system if named else "")
        request = create_request(experiment_of(one), profile, settings, where)
        launcher = SimulatedLauncher(simulator=find_simulator(), system=folder / "system.json", faults=faults)
        setup = RunSetup(find_engine(), archive)
        executor = SimulatedExecutor(
            setup, lambda kind, line: None, launcher, system, part_names=one.places, variants=one.variants
        )
        runner = Runner(
            request, archive, executor, RunnerObserver(on_message=lambda text: print(f"  {text}", file=sys.stderr))
        )
        prepared = runner.prepare_cells()
        if claims:
            grid = CellGrid(request.experiment)
            wanted = {cell.id for claim in claims for cell in grid.cells_of(request.experiment.claims[claim])}
            prepared = [cell for cell in prepared if cell.cell.id in wanted]
        runner.run(prepared)
        if executor.stopped:  # what is there is a part, and would pass for the whole
            raise SystemExit(EXIT_INTERRUPTED)
        results = read_results(archive, request.group)
        runs, judged = evaluate_results(
            results, system, find_unmet_requirements(results, system), settled=one.repeats == 1
        )
    return Run(results, runs, judged, system)


def controls_of(one: Staged) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The claim of each control, and what it changes: those in the experiment, then those of the list of shapes."""
    for expectation in experiment_of(one).file.expect:
        if expectation.control is not None:
            yield expectation.id, {"changes": expectation.control, "change": said(expectation.control)}
    for control in one.controls:
        changed = {key: value for key, value in control.items() if key != "claim"}
        yield str(control["claim"]), {"change": said(changed), **changed}


def said(control: Mapping[str, Any]) -> str:
    """A control in words."""
    if "change" in control:
        return str(control["change"])
    flat = {**control, **control.get("changes", {})}
    return ", ".join(f"{key} = {value}" for key, value in flat.items() if key != "changes")


def outcome_of(run: Run, claim: str) -> dict[str, str]:
    return next(one for one in keep_figures.claims(run.judged) if one["id"] == claim)


def key_of(one: Staged) -> str:
    """What the numbers follow from, as far as it is text: the experiment, its machine, and what is changed."""
    text = json.dumps(
        [experiment_of(one).document, machine_of(one).to_json(), one.settings, one.faults, dict(one.places),
         [[claim, control] for claim, control in controls_of(one)], *([dict(one.variants)] if one.variants else [])],
        sort_keys=True, default=str,
    )  # fmt: skip
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def kept_path(name: str) -> Path:
    return KEPT / f"{name}.json"


def is_kept(one: Staged) -> bool:
    """Whether the numbers of an experiment are there and follow from its text as it is."""
    try:
        return bool(json.loads(kept_path(one.experiment).read_text(encoding="utf-8"))["key"] == key_of(one))
    except (OSError, ValueError, KeyError):
        return False


def reproduce(one: Staged) -> dict[str, Any]:
    """Everything that is kept of one experiment. Each control runs the cells of its claim."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sonde-reproduction-") as name:
        archive = Archive(Path(name))
        run = simulated(one, archive, one.only)
        if not run.results.runs:
            return {
                "experiment": one.experiment,
                "key": key_of(one),
                "profile": PROFILE,
                "runs": 0,
                "figures": [],
                "tables": [],
                "machine": run.system.title,
                "refusals": {**run.results.refusals, **run.results.failures},
                "controls": [],
                "effects": [],
                "claims": keep_figures.claims(run.judged),
                "conditions": one.why,
                "date": "",
            }
        kept = keep_figures.kept_of(run.results, run.runs, run.judged, one.why, run.system.title)
        controls = []
        for claim, control in controls_of(one):
            told = {key: value for key, value in control.items() if key != "change"}
            found = outcome_of(simulated(one, archive, [claim], told), claim)
            controls.append(
                {"id": claim, "change": control["change"], "verdict": found["verdict"], "found": found["found"]}
            )
    del kept["date"]
    print(f"{one.experiment}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return {
        **kept,
        "key": key_of(one),
        "refusals": {**run.results.refusals, **run.results.failures},
        "controls": controls,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=[], metavar="NAME", help="experiments to run")
    options.add_argument("--fresh", action="store_true", help="run what has not changed, too")
    options.add_argument("--page", action="store_true", help="write the pages from the numbers that are kept")
    asked = options.parse_args()
    KEPT.mkdir(exist_ok=True)
    for name, one in staged().items():
        if asked.page or (asked.only and name not in asked.only) or (is_kept(one) and not asked.fresh):
            continue
        kept = reproduce(one)
        kept_path(name).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for claim in kept["claims"]:
            print(f"  {claim['verdict']:10} {claim['id']}: {claim['found']}", file=sys.stderr)
        for control in kept["controls"]:
            print(f"  control {control['id']}: {control['verdict']}: {control['found']}", file=sys.stderr)
    reproduction_page.kept.cache_clear()
    reproduction_page.figures.cache_clear()
    for path, text in reproduction_page.pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
