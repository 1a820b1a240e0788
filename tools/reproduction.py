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
from sonde.experiments.results import Results, read_group_results  # noqa: E402
from sonde.experiments.runner import ExperimentRunner, RunnerObserver  # noqa: E402
from sonde.experiments.shipped_experiments import resolve_plan_source  # noqa: E402
from sonde.experiments.simulated_executor import SimulatedExecutor  # noqa: E402
from sonde.launch.engine import find_engine  # noqa: E402
from sonde.launch.simulator import SimulatedLauncher, find_simulator  # noqa: E402
from sonde.model.bundled_files import find_system_file  # noqa: E402
from sonde.model.errors import EXIT_INTERRUPTED  # noqa: E402
from sonde.model.experiment import Experiment, make_experiment, read_experiment  # noqa: E402
from sonde.model.system import System, read_system  # noqa: E402
from sonde.model.system.changes import apply_changes  # noqa: E402
from sonde.store.archive import Archive  # noqa: E402

NUMBERS_FOLDER = ROOT / "docs" / "published" / "simulated"
PROFILE = "published"


@dataclass(frozen=True)
class SimulatedExperiment:
    """An experiment on its simulated machine: changes of its text, and changes with which its claims must fail.

    `settings` are PATH=VALUE of the experiment, `changes` members of the system, `faults` what is wrong with it,
    `places` parts of the system by the names that the experiment gives to directories, `variants` what each of its
    variants changes about the machine, in place of the command that would change a real one. One run per cell is enough
    on a machine without noise, where only the first targets of files are random; six runs give an interval. `only` are
    claims whose cells are run; of none of them: every cell."""

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
    extra_system: str = ""  # a file with more parts of the machine


def list_simulated_experiments() -> dict[str, SimulatedExperiment]:
    """The experiments to simulate, by id."""
    experiments = reproduction_page.read_shapes()["experiments"]
    return {
        name: SimulatedExperiment(
            name,
            members.get("repeats", 1),
            tuple(members.get("settings", ())),
            members.get("changes", {}),
            tuple(members.get("faults", ())),
            members.get("places", {}),
            members.get("variants", {}),
            members.get("why", ""),
            tuple(members.get("controls", ())),
            tuple(members.get("only", ())),
            members.get("beside", ""),
        )
        for name, members in experiments.items()
    }


@dataclass(frozen=True)
class SimulatedRuns:
    """Runs of an experiment on a machine, and what came of its claims."""

    results: Results
    runs: MeasuredRuns
    judged: list[ClaimResult]
    system: System


def read_experiment_with_settings(simulated_experiment: SimulatedExperiment) -> Experiment:
    """The experiment with the requested number of repeats instead of those of its file."""
    return read_experiment_with_repeats(simulated_experiment.experiment, simulated_experiment.repeats)


@functools.cache
def read_experiment_with_repeats(experiment_name: str, repeat_count: int) -> Experiment:
    experiment = read_experiment(resolve_plan_source(experiment_name), find_plan=resolve_plan_source)
    document = dict(experiment.document)
    repeat_rule = document.get("repeat", {})
    document["repeat"] = {
        "min": repeat_count,
        "seed": repeat_rule.get("seed", 1),
        "fresh": repeat_rule.get("fresh", "directory"),
    }
    document["profiles"] = {
        profile: {key: value for key, value in changes.items() if key.partition(".")[0] != "repeat"}
        for profile, changes in document.get("profiles", {}).items()
    }
    return make_experiment(document, experiment.origin)


def read_changed_machine(
    simulated_experiment: SimulatedExperiment, extra_changes: Mapping[str, Any] | None = None
) -> System:
    """The machine that the experiment names, with the changes applied."""
    storage = read_experiment_with_settings(simulated_experiment).file.storage
    assert storage is not None
    source = find_system_file(storage.system)
    with tempfile.TemporaryDirectory(prefix="sonde-reproduction-") as name:
        if simulated_experiment.extra_system:
            parts = [
                Path(source).read_text(encoding="utf-8"),
                (ROOT / simulated_experiment.extra_system).read_text(encoding="utf-8"),
            ]
            source = str(Path(name) / "system.toml")
            Path(source).write_text("\n".join(parts), encoding="utf-8")
        system = read_system(source)
    return apply_changes(system, {**simulated_experiment.changes, **(extra_changes or {})})


def simulate_experiment(
    simulated_experiment: SimulatedExperiment,
    archive: Archive,
    claim_ids: Sequence[str] = (),
    extra_changes: Mapping[str, Any] | None = None,
    profile: str = PROFILE,
) -> SimulatedRuns:
    """Simulates every cell, or those that the claims `claim_ids` use. `extra_changes` changes the machine besides, for
    a control."""
    control = dict(extra_changes or {})
    faults = (*(() if control.pop("healthy", False) else simulated_experiment.faults), *control.pop("faults", ()))
    settings = (*simulated_experiment.settings, *control.pop("settings", ()))
    places, variants = (
        control.pop("places", simulated_experiment.places),
        control.pop("variants", simulated_experiment.variants),
    )
    system = read_changed_machine(simulated_experiment, control.pop("changes", {}))
    with tempfile.TemporaryDirectory(prefix="sonde-reproduction-") as name:
        folder = Path(name)
        (folder / "system.json").write_text(system.to_json(), encoding="utf-8")
        (folder / "storage").mkdir()
        storage = read_experiment_with_settings(simulated_experiment).file.storage
        where = RunLocations(str(folder / "storage"), system=storage.system if storage else "")
        request = create_request(read_experiment_with_settings(simulated_experiment), profile, settings, where)
        launcher = SimulatedLauncher(simulator=find_simulator(), system=folder / "system.json", faults=faults)
        setup = RunSetup(find_engine(), archive)
        executor = SimulatedExecutor(
            setup,
            lambda kind, line: None,
            launcher,
            system,
            part_names=places,
            variants=variants,
        )
        runner = ExperimentRunner(
            request, archive, executor, RunnerObserver(on_message=lambda text: print(f"  {text}", file=sys.stderr))
        )
        prepared = runner.prepare_cells()
        if claim_ids:
            grid = CellGrid(request.experiment)
            wanted = {
                cell.id for claim in claim_ids for cell in grid.list_cells_of_claim(request.experiment.claims[claim])
            }
            prepared = [cell for cell in prepared if cell.cell.id in wanted]
        runner.run_all_cells(prepared)
        if executor.stopped:  # what is there is a part, and would pass for the whole
            raise SystemExit(EXIT_INTERRUPTED)
        results = read_group_results(archive, request.group)
        runs, judged = evaluate_results(
            results,
            system,
            find_unmet_requirements(results, system),
            is_deterministic=simulated_experiment.repeats == 1,
        )
    return SimulatedRuns(results, runs, judged, system)


def list_controls(simulated_experiment: SimulatedExperiment) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The claim of each control, and what it changes: those in the experiment, then those of the list of shapes."""
    for expectation in read_experiment_with_settings(simulated_experiment).file.expect:
        if expectation.control is not None:
            yield expectation.id, {"changes": expectation.control, "change": describe_control(expectation.control)}
    for control in simulated_experiment.controls:
        changed = {key: value for key, value in control.items() if key != "claim"}
        yield str(control["claim"]), {"change": describe_control(changed), **changed}


def describe_control(control: Mapping[str, Any]) -> str:
    """A control in words."""
    if "change" in control:
        return str(control["change"])
    flat = {**control, **control.get("changes", {})}
    return ", ".join(f"{key} = {value}" for key, value in flat.items() if key != "changes")


def find_claim_result(run: SimulatedRuns, claim_id: str) -> dict[str, str]:
    return next(verdict for verdict in keep_figures.convert_claims_to_json(run.judged) if verdict["id"] == claim_id)


def hash_inputs(simulated_experiment: SimulatedExperiment) -> str:
    """Hash of the texts that determine the numbers: the experiment, its machine and the changes of the machine."""
    text = json.dumps(
        [
            read_experiment_with_settings(simulated_experiment).document,
            read_changed_machine(simulated_experiment).to_json(),
            simulated_experiment.settings,
            simulated_experiment.faults,
            dict(simulated_experiment.places),
            [[claim, control] for claim, control in list_controls(simulated_experiment)],
            *([dict(simulated_experiment.variants)] if simulated_experiment.variants else []),
        ],
        sort_keys=True,
        default=str,
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def locate_numbers_file(experiment_name: str) -> Path:
    return NUMBERS_FOLDER / f"{experiment_name}.json"


def is_up_to_date(simulated_experiment: SimulatedExperiment) -> bool:
    """Whether the stored numbers of an experiment exist and match its present text."""
    try:
        return bool(
            json.loads(locate_numbers_file(simulated_experiment.experiment).read_text(encoding="utf-8"))["key"]
            == hash_inputs(simulated_experiment)
        )
    except (OSError, ValueError, KeyError):
        return False


def reproduce_experiment(simulated_experiment: SimulatedExperiment) -> dict[str, Any]:
    """The stored document of one experiment. Each control runs the cells of its claim."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sonde-reproduction-") as name:
        archive = Archive(Path(name))
        run = simulate_experiment(simulated_experiment, archive, simulated_experiment.only)
        if not run.results.runs:
            return {
                "experiment": simulated_experiment.experiment,
                "key": hash_inputs(simulated_experiment),
                "profile": PROFILE,
                "runs": 0,
                "figures": [],
                "tables": [],
                "machine": run.system.title,
                "refusals": {**run.results.refusals, **run.results.failures},
                "controls": [],
                "effects": [],
                "claims": keep_figures.convert_claims_to_json(run.judged),
                "conditions": simulated_experiment.why,
                "date": "",
            }
        document = keep_figures.build_figures_document(
            run.results, run.runs, run.judged, simulated_experiment.why, run.system.title
        )
        controls = []
        for claim, control in list_controls(simulated_experiment):
            changed = {key: value for key, value in control.items() if key != "change"}
            verdict = find_claim_result(simulate_experiment(simulated_experiment, archive, [claim], changed), claim)
            controls.append(
                {"id": claim, "change": control["change"], "verdict": verdict["verdict"], "found": verdict["found"]}
            )
    del document["date"]
    print(f"{simulated_experiment.experiment}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return {
        **document,
        "key": hash_inputs(simulated_experiment),
        "refusals": {**run.results.refusals, **run.results.failures},
        "controls": controls,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=[], metavar="NAME", help="experiments to run")
    options.add_argument("--fresh", action="store_true", help="run what has not changed, too")
    options.add_argument("--page", action="store_true", help="write the pages from the numbers that are kept")
    arguments = options.parse_args()
    NUMBERS_FOLDER.mkdir(exist_ok=True)
    for name, staging in list_simulated_experiments().items():
        if (
            arguments.page
            or (arguments.only and name not in arguments.only)
            or (is_up_to_date(staging) and not arguments.fresh)
        ):
            continue
        document = reproduce_experiment(staging)
        locate_numbers_file(name).write_text(
            json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        for claim in document["claims"]:
            print(f"  {claim['verdict']:10} {claim['id']}: {claim['found']}", file=sys.stderr)
        for control in document["controls"]:
            print(f"  control {control['id']}: {control['verdict']}: {control['found']}", file=sys.stderr)
    reproduction_page.read_numbers.cache_clear()
    reproduction_page.list_simulated_experiments.cache_clear()
    for path, text in reproduction_page.format_all_pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
