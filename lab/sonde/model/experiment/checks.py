# SPDX-License-Identifier: Apache-2.0
"""Checks of an experiment beyond its schema: axes, cells, clients, figures and profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonde.model.errors import ExperimentError, PlanError
from sonde.model.experiment.axes import RESERVED_AXIS_NAMES, AxisError, build_cell_axes, get_axis_name
from sonde.model.experiment.claim_checks import check_claims, check_published
from sonde.model.experiment.claims import METRICS
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.model.experiment.experiment_names import (
    describe_unknown_name,
    list_phase_ids,
    make_experiment_error,
    map_axes_by_name,
)

MAX_CELLS = 100_000
# With at most this many cells, the plan of every cell is checked on reading; with more, enough cells to cover every
# value of every axis.
MAX_CHECKED_CELLS = 60


def check_experiment(experiment: Experiment, full_experiment: Experiment | None = None) -> None:
    """Raises ExperimentError at the first problem.

    `full_experiment` is the one without its profile: a claim about cells that a profile leaves out does not apply.
    """
    for check_rule in _CHECKS:
        check_rule(experiment)
    check_claims(experiment, full_experiment or experiment)
    check_published(experiment, full_experiment or experiment)


def _check_plans(experiment: Experiment) -> None:
    file = experiment.file
    if file.plan is None and not file.plans:
        raise make_experiment_error(
            experiment, "plan", 'is missing; write [plan] with its phases, or plan = "FILE.toml".'
        )
    for name, plan in experiment.plans.items():
        if "phases" not in plan:
            path = f"plans.{name}.plan" if name else "plan"
            raise make_experiment_error(
                experiment, path, "has no phases; write them there, or in [plan] for all plans."
            )


def _check_unique_ids(experiment: Experiment) -> None:
    file = experiment.file
    entries_by_member = {"plans": file.plans, "variants": file.variants, "expect": file.expect, "figures": file.figures,
             "tables": file.tables}  # fmt: skip
    for member, entries in entries_by_member.items():
        ids = [entry.id for entry in entries]  # type: ignore[attr-defined]
        duplicate = next((entry for number, entry in enumerate(ids) if entry in ids[:number]), None)
        if duplicate is not None:
            raise make_experiment_error(experiment, f"{member}.{duplicate}", "appears twice; ids must differ.")
    storage = file.storage
    locations = (("file_systems", storage.file_systems), ("mounts", storage.mounts)) if storage is not None else ()
    for member, names in locations:
        if len(set(names)) < len(names):
            raise make_experiment_error(experiment, f"storage.{member}", "names one twice; each is one cell.")


def _check_axes(experiment: Experiment) -> None:
    plans, names = list(experiment.plans), set[str]()
    for number, sweep in enumerate(experiment.file.sweep):
        name = get_axis_name(sweep)
        sweep_path = f"sweep.{name or number}"
        if not sweep.paths:
            raise make_experiment_error(
                experiment, f"{sweep_path}.paths", 'is missing; name the member, like paths = "data.access.transfer".'
            )
        if name in RESERVED_AXIS_NAMES:
            raise make_experiment_error(
                experiment, f"{sweep_path}.name", f'is "{name}", which means something else; give it another name.'
            )
        if name in names:
            raise make_experiment_error(experiment, sweep_path, "appears twice; give one of them a name of its own.")
        names.add(name)
        unknown = next((plan for plan in sweep.plans if plan not in plans), None)
        if unknown is not None:
            raise make_experiment_error(
                experiment, f"{sweep_path}.plans", describe_unknown_name("plan", unknown, plans)
            )
        for path in sweep.paths:
            if path.partition(".")[0] in ("repeat", "sweep"):
                raise make_experiment_error(
                    experiment, f"{sweep_path}.paths", f'names "{path}", which is the same for all cells.'
                )
    for sweep in experiment.file.sweep:
        try:
            build_cell_axes(replace(experiment.file, sweep=(sweep,)))
        except AxisError as reason:
            raise make_experiment_error(experiment, f"sweep.{get_axis_name(sweep)}.values", str(reason)) from None


def _check_clients(experiment: Experiment) -> None:
    clients, storage = experiment.file.clients, experiment.file.storage
    if clients is None:
        return
    if clients.nodes is not None and clients.per_target is not None:
        raise make_experiment_error(experiment, "clients.per_target", "stands beside nodes; give one of them.")
    swept_paths = {path for sweep in experiment.file.sweep for path in sweep.paths}
    has_target_count = storage is not None and (storage.targets is not None or storage.pool or storage.system)
    if clients.per_target is not None and not has_target_count and "storage.targets" not in swept_paths:
        raise make_experiment_error(
            experiment, "clients.per_target", "needs storage.targets or storage.pool, so that they can be counted."
        )
    sets_tasks = clients.nodes or clients.per_target or clients.tasks_per_node or clients.threads
    for name, plan in experiment.plans.items():
        if sets_tasks and {"processes", "threads"} & set(plan.get("tasks", {})):
            path = f"plans.{name}.plan.tasks" if name else "plan.tasks"
            raise make_experiment_error(
                experiment, path, "stands beside clients; say processes and threads in one of them."
            )


def _check_repeat(experiment: Experiment) -> None:
    repeat = experiment.file.repeat
    if repeat is None:
        return
    if repeat.max is not None and repeat.max < repeat.min:
        raise make_experiment_error(
            experiment, "repeat.max", f"is {repeat.max}, less than min, {repeat.min}; change one of them."
        )
    if repeat.interval is not None and not 0 < repeat.interval < 1:
        raise make_experiment_error(
            experiment, "repeat.interval", f"is {repeat.interval}; write a share above 0 and below 1, like 0.05."
        )
    if repeat.max is not None and repeat.interval is None and repeat.max > repeat.min:
        raise make_experiment_error(
            experiment, "repeat.max", "is of no use without interval; write interval = 0.05, or leave max out."
        )


def _check_treatments(experiment: Experiment) -> None:
    for number, treatment in enumerate(experiment.file.treatments):
        path = f"treatments.{number}"
        if treatment.kind == "sleep" and treatment.time is None:
            raise make_experiment_error(experiment, path, 'is a sleep without time; write time = "15 min".')
        if treatment.kind in ("command", "server_command") and not treatment.command:
            raise make_experiment_error(
                experiment, path, f"is a {treatment.kind} without command; write what to execute."
            )


def _check_cells(experiment: Experiment) -> None:
    count = 0
    for plan in experiment.plans:
        cell_count = 1
        for axis in experiment.axes:
            if not axis.plans or plan in axis.plans:
                cell_count *= 1 if axis.is_one_at_a_time else len(axis.values)
        count += cell_count
    if count > MAX_CELLS:
        raise make_experiment_error(
            experiment, "sweep", f"makes {count:,} cells; more than {MAX_CELLS:,} cannot be meant."
        )
    for cell in _select_cells_to_check(experiment.cells):
        try:
            experiment.build_plan_of_cell(cell)
        except (PlanError, ExperimentError) as error:
            message = str(error).removeprefix(f"{experiment.origin}: ")
            path = f"cell {cell.id}"
            if message == _find_plan_problem(experiment, cell.plan):
                path = f"plans.{cell.plan}.plan" if cell.plan else "plan"
            raise ExperimentError(f"{experiment.origin}: {path}: {message}") from None


def _find_plan_problem(experiment: Experiment, plan_id: str) -> str:
    """Returns the error of a plan without any sweep; empty when it is valid."""
    try:
        experiment.build_plan_of_cell(Cell(plan_id, {}, ()))
    except (PlanError, ExperimentError) as error:
        return str(error).removeprefix(f"{experiment.origin}: ")
    return ""


def _select_cells_to_check(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Returns all cells if they are few, otherwise those that contain an axis value for the first time."""
    if len(cells) <= MAX_CHECKED_CELLS:
        return cells
    seen_values: set[tuple[str, str, str]] = set()
    selected = []
    for cell in cells:
        coordinates = {(cell.plan, name, str(value)) for name, value in cell.coordinates.items()}
        if not coordinates <= seen_values:
            seen_values |= coordinates
            selected.append(cell)
    return selected


def _check_figures_and_tables(experiment: Experiment) -> None:
    axes = [
        *map_axes_by_name(experiment),
        "phase",
        "plan",
        "variant",
        "file_system",
        "mount",
        "server",
        "node",
        "target",
        "task",
    ]
    plans, phases = list(experiment.plans), list_phase_ids(experiment)
    for member, entries in (("figures", experiment.file.figures), ("tables", experiment.file.tables)):
        for entry in entries:
            path = f"{member}.{entry.id}"
            declared: Any = entry
            if not declared.metrics:
                raise make_experiment_error(
                    experiment, f"{path}.metrics", "is missing; name what is shown, like bandwidth."
                )
            rows = (
                list(declared.rows)
                if member == "tables"
                else [entry for entry in (declared.x, declared.series) if entry]
            )
            names = {
                "metrics": (declared.metrics, list(METRICS)),
                "phases": (declared.phases, phases),
                "plans": (getattr(declared, "plans", ()), plans),
                "axes": (rows, [*axes, "time", "call"]),
            }
            _check_selected_cells(experiment, path, declared.where or {})
            for kind, (used_names, known_names) in names.items():
                unknown = next((name for name in used_names if name not in known_names), None)
                if unknown is not None:
                    raise make_experiment_error(
                        experiment,
                        path,
                        describe_unknown_name(kind.removesuffix("s").replace("axe", "axis"), unknown, known_names),
                    )


def _check_selected_cells(experiment: Experiment, member_path: str, cell_selection: Mapping[str, Any]) -> None:
    axes = map_axes_by_name(experiment)
    for name, value in cell_selection.items():
        if name not in axes:
            raise make_experiment_error(experiment, f"{member_path}.where", describe_unknown_name("axis", name, axes))
        if axes[name] is None and value not in experiment.plans:
            raise make_experiment_error(
                experiment, f"{member_path}.where", describe_unknown_name("plan", str(value), experiment.plans)
            )


def _check_profiles(experiment: Experiment) -> None:
    names = list(experiment.file.profiles or ())
    for expectation in experiment.file.expect:
        unknown = next((name for name in expectation.profiles if name not in names), None)
        if unknown is not None:
            raise make_experiment_error(
                experiment, f"expect.{expectation.id}.profiles", describe_unknown_name("profile", unknown, names)
            )


_CHECKS: Sequence[Callable[[Experiment], None]] = (
    _check_plans,
    _check_unique_ids,
    _check_axes,
    _check_clients,
    _check_repeat,
    _check_treatments,
    _check_cells,
    _check_figures_and_tables,
    _check_profiles,
)
