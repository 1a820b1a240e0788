# SPDX-License-Identifier: Apache-2.0
"""What an experiment must not say: axes of members that no plan has, claims about cells that do not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sonde.model.errors import ExperimentError, PlanError, UnitError, suggestion
from sonde.model.experiment.axes import RESERVED, AxisError, axes_of, axis_name
from sonde.model.experiment.claims import (
    METRICS,
    Claim,
    ClaimError,
    Metric,
    claim_of,
    parse_claim,
    parse_value,
    printed,
    unit_of,
)
from sonde.model.experiment.experiment import Cell, Experiment
from sonde.model.system.description import KINDS
from sonde.model.tables.members import members

MOST_CELLS = 100_000
# Plans of so many cells are checked when the experiment is read; of more, a share that has every place of every axis.
CHECKED_CELLS = 60


def check(experiment: Experiment, whole: Experiment | None = None) -> None:
    """Raises ExperimentError at the first thing that is wrong.

    `whole` is the experiment without its profile: a claim about cells that a profile leaves out does not apply.
    """
    for rule in _RULES:
        rule(experiment)
    _claims(experiment, whole or experiment)
    _published(experiment, whole or experiment)


def _wrong(experiment: Experiment, where: str, what: str) -> ExperimentError:
    return ExperimentError(f"{experiment.origin}: {where} {what}")


def _plans(experiment: Experiment) -> None:
    file = experiment.file
    if file.plan is not None and file.plans:
        raise _wrong(experiment, "plan", "stands beside plans; an experiment has one plan, or a list of them.")
    if file.plan is None and not file.plans:
        raise _wrong(experiment, "plan", 'is missing; write [plan] with its phases, or plan = "FILE.toml".')


def _unique(experiment: Experiment) -> None:
    file = experiment.file
    named = {"plans": file.plans, "variants": file.variants, "expect": file.expect, "figures": file.figures,
             "tables": file.tables}  # fmt: skip
    for member, listed in named.items():
        ids = [one.id for one in listed]  # type: ignore[attr-defined]
        twice = next((one for number, one in enumerate(ids) if one in ids[:number]), None)
        if twice is not None:
            raise _wrong(experiment, f"{member}.{twice}", "appears twice; ids must differ.")


def _axes(experiment: Experiment) -> None:
    plans, seen = list(experiment.plans), set[str]()
    for number, sweep in enumerate(experiment.file.sweep):
        name = axis_name(sweep)
        where = f"sweep.{name or number}"
        if not sweep.paths:
            raise _wrong(
                experiment, f"{where}.paths", 'is missing; name the member, like paths = "data.access.transfer".'
            )
        if name in RESERVED:
            raise _wrong(experiment, f"{where}.name", f'is "{name}", which means something else; give it another name.')
        if name in seen:
            raise _wrong(experiment, where, "appears twice; give one of them a name of its own.")
        seen.add(name)
        unknown = next((one for one in sweep.plans if one not in plans), None)
        if unknown is not None:
            raise _wrong(experiment, f"{where}.plans", _no_such("plan", unknown, plans))
        for path in sweep.paths:
            if path.partition(".")[0] in ("repeat", "sweep"):
                raise _wrong(experiment, f"{where}.paths", f'names "{path}", which is the same for all cells.')
    for sweep in experiment.file.sweep:
        try:
            axes_of(replace(experiment.file, sweep=(sweep,)))
        except AxisError as reason:
            raise _wrong(experiment, f"sweep.{axis_name(sweep)}.values", str(reason)) from None


def _no_such(kind: str, name: str, known: Iterable[str]) -> str:
    listed = [one for one in known if one]
    others = f" There is {', '.join(listed)}." if listed else ""
    return f'names the {kind} "{name}", which is not there.{suggestion(name, listed) or others}'


def _clients(experiment: Experiment) -> None:
    clients, storage = experiment.file.clients, experiment.file.storage
    if clients is None:
        return
    if clients.nodes is not None and clients.per_target is not None:
        raise _wrong(experiment, "clients.per_target", "stands beside nodes; give one of them.")
    swept = {path for sweep in experiment.file.sweep for path in sweep.paths}
    targets = storage is not None and (storage.targets is not None or storage.pool or storage.system)
    if clients.per_target is not None and not targets and "storage.targets" not in swept:
        raise _wrong(
            experiment, "clients.per_target", "needs storage.targets or storage.pool, so that they can be counted."
        )
    ours = clients.nodes or clients.per_target or clients.tasks_per_node or clients.threads
    for name, plan in experiment.plans.items():
        if ours and {"processes", "threads"} & set(plan.get("tasks", {})):
            where = f"plans.{name}.plan.tasks" if name else "plan.tasks"
            raise _wrong(experiment, where, "stands beside clients; say processes and threads in one of them.")


def _repeat(experiment: Experiment) -> None:
    repeat = experiment.file.repeat
    if repeat is None:
        return
    if repeat.max is not None and repeat.max < repeat.min:
        raise _wrong(experiment, "repeat.max", f"is {repeat.max}, less than min, {repeat.min}; change one of them.")
    if repeat.interval is not None and not 0 < repeat.interval < 1:
        raise _wrong(
            experiment, "repeat.interval", f"is {repeat.interval}; write a share above 0 and below 1, like 0.05."
        )
    if repeat.max is not None and repeat.interval is None and repeat.max > repeat.min:
        raise _wrong(
            experiment, "repeat.max", "is of no use without interval; write interval = 0.05, or leave max out."
        )


def _treatments(experiment: Experiment) -> None:
    for number, one in enumerate(experiment.file.treatments):
        where = f"treatments.{number}"
        if one.kind == "sleep" and one.time is None:
            raise _wrong(experiment, where, 'is a sleep without time; write time = "15 min".')
        if one.kind in ("command", "server_command") and not one.command:
            raise _wrong(experiment, where, f"is a {one.kind} without command; write what to execute.")


def _cells(experiment: Experiment) -> None:
    count = 0
    for plan in experiment.plans:
        here = 1
        for axis in experiment.axes:
            if not axis.plans or plan in axis.plans:
                here *= 1 if axis.alone else len(axis.places)
        count += here
    if count > MOST_CELLS:
        raise _wrong(experiment, "sweep", f"makes {count:,} cells; more than {MOST_CELLS:,} cannot be meant.")
    for cell in _some(experiment.cells):
        try:
            experiment.plan_of(cell)
        except (PlanError, ExperimentError) as reason:
            told = str(reason).removeprefix(f"{experiment.origin}: ")
            where = f"cell {cell.id}"
            if told == _wrong_itself(experiment, cell.plan):
                where = f"plans.{cell.plan}.plan" if cell.plan else "plan"
            raise ExperimentError(f"{experiment.origin}: {where}: {told}") from None


def _wrong_itself(experiment: Experiment, plan: str) -> str:
    """What is wrong with a plan as it stands, without any sweep; empty when nothing is."""
    try:
        experiment.plan_of(Cell(plan, {}, ()))
    except (PlanError, ExperimentError) as reason:
        return str(reason).removeprefix(f"{experiment.origin}: ")
    return ""


def _some(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Few cells as they are; of many, those in which some place is seen first."""
    if len(cells) <= CHECKED_CELLS:
        return cells
    seen: set[tuple[str, str, str]] = set()
    chosen = []
    for cell in cells:
        here = {(cell.plan, name, str(value)) for name, value in cell.at.items()}
        if not here <= seen:
            seen |= here
            chosen.append(cell)
    return chosen


def _phases(experiment: Experiment, plan: str | None = None) -> list[str]:
    chosen = [one for name, one in experiment.plans.items() if plan is None or name == plan]
    return [phase["id"] for one in chosen for phase in one["phases"]]


def _claims(experiment: Experiment, whole: Experiment) -> None:
    for one in experiment.file.expect:
        where = f"expect.{one.id}"
        if one.control is not None and one.level != "simulated":
            raise _wrong(
                experiment, f"{where}.control", f"is given, but level is {one.level}; only a simulated claim has one."
            )
        for path in one.control or {}:
            _control(experiment, f"{where}.control", path)
        if not 0.5 <= one.confidence < 1:
            raise _wrong(experiment, f"{where}.confidence", f"is {one.confidence}; write a share from 0.5, below 1.")
        where = f"{where}.claim"
        try:
            claim = parse_claim(one.claim)
        except ClaimError as reason:
            raise ExperimentError(f"{experiment.origin}: {where}: {reason}") from None
        _parts(whole, where, claim)


def _parts(whole: Experiment, where: str, claim: Claim) -> None:
    """Whether every cell, phase and axis that a claim names is there."""
    for metric in claim.metrics():
        _metric(whole, where, metric)
    for function in claim.functions():
        _function(whole, where, function.options)


def _published(experiment: Experiment, whole: Experiment) -> None:
    for number, one in enumerate(experiment.file.published):
        where = f"published.{number}"
        try:
            value = parse_value(one.of)
            ends = [printed(told, unit_of(value)) for told in (one.value, one.to) if told is not None]
        except (ClaimError, UnitError) as reason:
            raise ExperimentError(f"{experiment.origin}: {where}: {reason}") from None
        if len(ends) == 2 and ends[1] <= ends[0]:
            raise _wrong(
                experiment, f"{where}.to", f"is {one.to}, not above value, {one.value}; write the smaller first."
            )
        _parts(whole, f"{where}.of", claim_of(one.of, value))


def _control(experiment: Experiment, where: str, path: str) -> None:
    """A path into a system file: kind, id, member."""
    kind, _, rest = path.partition(".")
    if kind not in KINDS:
        raise _wrong(experiment, where, f"{_no_such('kind of part', kind, KINDS)} Write KIND.ID.MEMBER.")
    steps = rest.split(".")
    known = members(KINDS[kind])
    if len(steps) < 2 or not any(step in known for step in steps[1:]):
        near = suggestion(steps[-1], known)
        raise _wrong(experiment, where, f'has "{path}", which names no member of {kind}; write KIND.ID.MEMBER.{near}')


def _known_axes(experiment: Experiment) -> dict[str, Any]:
    axes: dict[str, Any] = {axis.name: axis for axis in experiment.axes}
    return axes | ({"plan": None} if experiment.file.plans else {})


def _metric(experiment: Experiment, where: str, metric: Metric) -> None:
    axes = _known_axes(experiment)
    for name, value in metric.at.items():
        if name not in axes:
            raise _wrong(experiment, where, _no_such("axis", name, axes))
        if name == "plan":
            if value not in experiment.plans:
                raise _wrong(experiment, where, _no_such("plan", str(value), experiment.plans))
        elif axes[name].place(value) is None:
            listed = ", ".join(str(one.value) for one in axes[name].places)
            raise _wrong(experiment, where, f'names the cell {name}="{value}", which is not there; {name} is {listed}.')
    plan = metric.at.get("plan")
    phases = _phases(experiment, None if plan is None else str(plan))
    if metric.phase and metric.phase not in phases:
        raise _wrong(experiment, where, _no_such("phase", metric.phase, phases))
    if not metric.phase and len(set(phases)) > 1:
        raise _wrong(experiment, where, f"says {metric.name}() without a phase; phases are {', '.join(phases)}.")


def _function(experiment: Experiment, where: str, options: Mapping[str, Any]) -> None:
    axes = _known_axes(experiment)
    over = options.get("over")
    if over is None:
        return
    if over not in axes:
        raise _wrong(experiment, where, _no_such("axis", str(over), axes))
    at = options.get("at")
    if at is not None and axes[over] is not None and axes[over].place(at) is None:
        listed = ", ".join(str(one.value) for one in axes[over].places)
        raise _wrong(experiment, where, f'names the cell {over}="{at}", which is not there; {over} is {listed}.')


def _drawn(experiment: Experiment) -> None:
    axes = [
        *_known_axes(experiment),
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
    plans, phases = list(experiment.plans), _phases(experiment)
    for member, listed in (("figures", experiment.file.figures), ("tables", experiment.file.tables)):
        for one in listed:
            where = f"{member}.{one.id}"
            told: Any = one
            if not told.metrics:
                raise _wrong(experiment, f"{where}.metrics", "is missing; name what is shown, like bandwidth.")
            rows = list(told.rows) if member == "tables" else [one for one in (told.x, told.series) if one]
            names = {"metrics": (told.metrics, list(METRICS)), "phases": (told.phases, phases),
                     "plans": (getattr(told, "plans", ()), plans), "axes": (rows, [*axes, "time", "call"])}  # fmt: skip
            _shown(experiment, where, told.where or {})
            for kind, (used, known) in names.items():
                unknown = next((name for name in used if name not in known), None)
                if unknown is not None:
                    raise _wrong(
                        experiment, where, _no_such(kind.removesuffix("s").replace("axe", "axis"), unknown, known)
                    )


def _shown(experiment: Experiment, where: str, chosen: Mapping[str, Any]) -> None:
    axes = _known_axes(experiment)
    for name, value in chosen.items():
        if name not in axes:
            raise _wrong(experiment, f"{where}.where", _no_such("axis", name, axes))
        if axes[name] is None and value not in experiment.plans:
            raise _wrong(experiment, f"{where}.where", _no_such("plan", str(value), experiment.plans))


def _profiles(experiment: Experiment) -> None:
    names = list(experiment.file.profiles or ())
    for one in experiment.file.expect:
        unknown = next((name for name in one.profiles if name not in names), None)
        if unknown is not None:
            raise _wrong(experiment, f"expect.{one.id}.profiles", _no_such("profile", unknown, names))


_RULES: Sequence[Callable[[Experiment], None]] = (
    _plans, _unique, _axes, _clients, _repeat, _treatments, _cells, _drawn, _profiles,
)  # fmt: skip
