# SPDX-License-Identifier: Apache-2.0
"""``sonde plan``: explains a plan without running it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from sonde.cli.options import add_json_option, add_plan_options, add_task_options
from sonde.experiments.plan_loading import divide_tasks_into_processes, load_plan
from sonde.launch.engine import Engine, find_engine
from sonde.launch.launchers.list import LOCAL
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_BAD_INPUT, EXIT_ENVIRONMENT, EXIT_OK, MachineError, UserError
from sonde.model.plan import Plan
from sonde.model.plan_advice import find_plan_advice
from sonde.model.plan_warnings import find_plan_warnings
from sonde.model.required_space import RequiredSpace, compute_required_space
from sonde.model.units import format_bytes, format_seconds, parse_bytes
from sonde.model.volume import PhaseVolume, compute_phase_volumes
from sonde.terminal.phase_text import describe_preparation
from sonde.terminal.screen import get_messages_console, get_results_console, make_plain_table, print_json


@click.command("plan")
@add_plan_options
@add_task_options
@add_json_option
def command(
    plan: str,
    settings: tuple[str, ...],
    target: str | None,
    tasks: int | None,
    processes: int | None,
    launcher: str,
    launcher_args: str,
    as_json: bool,
) -> int:
    """Check a plan and explain it: tasks, files, bytes, bytes against memory. Nothing is written.

    PLAN is what `sonde run` takes. With --json the whole plan is printed with every default filled in.

    \b
    Examples:
      sonde plan quick --on /scratch
      sonde plan plan.toml --set data.access.transfer=4KiB --tasks 16
      sonde plan quick --on /scratch --json > full.json

    More: sonde help tasks/plan
    """
    checked = load_plan(plan, settings, target)
    checked, ranks = divide_tasks_into_processes(checked, launcher, tasks, processes)
    engine = _find_engine_or_warn()
    if engine is not None:
        _check_plan_with_engine(engine, checked)
    for remark in find_plan_warnings(checked):
        get_messages_console().print(f"sonde: {remark}", soft_wrap=True)
    if as_json:
        print_json(checked.resolve())
        return 0
    count = ranks if launcher != LOCAL else checked.processes
    facts = _probe_target_directory(engine, checked)
    volumes = compute_phase_volumes(checked, count * checked.threads, node_memory=facts.get("memory_bytes"))
    space = compute_required_space(checked, count * checked.threads, node_memory=facts.get("memory_bytes"))
    if engine is not None:
        volumes, space = _compute_volumes_with_engine(engine, checked, count, volumes)
    _print_plan(
        get_results_console(),
        checked,
        count * checked.threads,
        volumes,
        _describe_space(space, checked, count * checked.threads, facts),
        facts.get("memory_bytes"),
    )
    for sentence in find_plan_advice(checked, volumes, facts.get("memory_bytes")):
        get_results_console().print(Text(f"Advice  {sentence}"), soft_wrap=True)
    return EXIT_OK if _does_plan_fit_into_space(space.bytes, checked, facts) else EXIT_ENVIRONMENT


def _compute_volumes_with_engine(
    engine: Engine, plan: Plan, process_count: int, volumes: list[PhaseVolume]
) -> tuple[list[PhaseVolume], RequiredSpace]:
    """Returns the engine's volumes and required space: only the engine knows the sizes of existing files."""
    try:
        resolved = engine.resolve_plan(plan.document, process_count)
    except UserError as reason:
        raise UserError(f"{plan.origin}: {str(reason).removeprefix('plan: ')}") from None
    counted = [
        replace(
            volume,
            files=answered_phase["files"],
            segments=answered_phase["segments"],
            operations=answered_phase["operations"],
            bytes=answered_phase["bytes"],
        )
        for volume, answered_phase in zip(volumes, resolved["phases"], strict=True)
    ]
    return counted, RequiredSpace(int(resolved["space"]["bytes"]), int(resolved["space"]["most_bytes"]))


def _find_engine_or_warn() -> Engine | None:
    try:
        return find_engine()
    except MachineError as reason:
        get_messages_console().print(f"sonde: checked against the schema only. {reason}", soft_wrap=True)
        return None


def _check_plan_with_engine(engine: Engine, plan: Plan) -> None:
    """Checks rules between members that the schema cannot express."""
    with tempfile.TemporaryDirectory(prefix="sonde-plan-") as folder:
        file = Path(folder) / "plan.json"
        write_file(file, plan.to_json())
        try:
            engine.check_plan(file)
        except UserError as reason:
            text = str(reason).replace(str(file), plan.origin)
            if reason.exit_code == EXIT_BAD_INPUT:
                raise UserError(f"{plan.origin}: {text.removeprefix('Plan: ')}") from None
            raise


def _probe_target_directory(engine: Engine | None, plan: Plan) -> dict[str, Any]:
    if engine is None or not plan.target.is_dir():
        return {}
    try:
        return engine.probe_directory(plan.target)
    except UserError:
        return {}


def _print_plan(
    console: Console, plan: Plan, task_count: int, volumes: list[PhaseVolume], space_text: str, memory: int | None
) -> None:
    console.print(Text(plan.title, style="bold"))
    for note in plan.document.get("notes", ()):
        console.print(Text(f"  {note}", style="dim"), soft_wrap=True)
    console.print(f"Target  {plan.target_name}", soft_wrap=True)
    processes = task_count // plan.threads
    console.print(
        f"Tasks   {task_count} ({processes} process{'es' if processes != 1 else ''} x {plan.threads} threads)"
    )
    console.print(f"Space   {space_text}")
    if plan.stage_count > 1:
        console.print(f"Stages  {plan.stage_count}: a fresh process starts where a phase asks for one")
    console.print()
    table = make_plain_table()
    for title in ("phase", "what", "files", "bytes in one pass", "of memory", "operations", "ends", "before"):
        table.add_column(title, justify="right" if title in ("files", "of memory", "operations") else "left")
    for phase, volume in zip(plan.phases, volumes, strict=True):
        memory_share = f"{volume.bytes / memory:.2g} x" if memory else "-"
        table.add_row(
            Text(volume.id, style="bold" if phase.get("measure", True) else "dim"),
            _describe_phase(plan, phase, volume),
            f"{volume.files:,}",
            f"{format_bytes(volume.bytes)} ({volume.tasks} x {format_bytes(volume.bytes / volume.tasks)})",
            memory_share,
            f"{volume.operations:,}",
            _describe_stop(volume),
            describe_preparation(phase) if phase.get("before") else "-",
        )
    console.print(table)


def _describe_phase(plan: Plan, phase_document: Any, volume: PhaseVolume) -> str:
    if plan.is_tree_phase(phase_document):
        meta = plan.resolve_meta(phase_document)
        length = [f"{format_bytes(volume.transfer_bytes)} each"] if volume.transfer_bytes else []
        if phase_document["op"] == "walk" and "find" in meta:
            return ", ".join([volume.op, volume.backend, *(f"{name} {value}" for name, value in meta["find"].items())])
        return ", ".join([volume.op, volume.backend, meta["objects"], *length, str(meta["select"]["order"])])
    data = plan.resolve_data(phase_document)
    parts = [
        volume.op,
        volume.backend,
        f"{format_bytes(volume.transfer_bytes)} transfers",
        str(data["access"]["order"]),
    ]
    if data["io"]["direct"]:
        parts.append("direct")
    if data["io"]["queue_depth"] > 1:
        parts.append(f"{data['io']['queue_depth']} in flight")
    return ", ".join(parts)


def _describe_stop(volume: PhaseVolume) -> str:
    if volume.time_limit_s is not None:
        return f"after {format_seconds(volume.time_limit_s)}"
    if volume.stonewall_s is not None:
        return f"with the volume, or after {format_seconds(volume.stonewall_s)}"
    return "with the volume"


def _get_available_bytes(directory_facts: dict[str, Any]) -> int | None:
    available = (directory_facts.get("file_system") or {}).get("available_bytes")
    return None if available is None else int(available)


def _does_plan_fit_into_space(needed_bytes: int, plan: Plan, target_facts: dict[str, Any]) -> bool:
    """Returns whether the plan fits; also True if the free space is unknown."""
    available = _get_available_bytes(target_facts)
    return available is None or needed_bytes + _get_reserved_bytes(plan) <= available


def _get_reserved_bytes(plan: Plan) -> int:
    return parse_bytes(plan.resolve()["target"]["min_free"])


def _describe_space(space_text: RequiredSpace, plan: Plan, task_count: int, directory_facts: dict[str, Any]) -> str:
    available, needed = _get_available_bytes(directory_facts), space_text.bytes
    text = f"{format_bytes(needed)} needed"
    if space_text.most_bytes > needed:
        text += f", up to {format_bytes(space_text.most_bytes)} if storage is faster than the stonewall"
    if available is None:
        return text
    text += f", {format_bytes(available)} available"
    if _does_plan_fit_into_space(space_text.most_bytes, plan, directory_facts):
        return text
    if _does_plan_fit_into_space(needed, plan, directory_facts):
        return (
            f"{text}: may leave less than {format_bytes(_get_reserved_bytes(plan))} (target.min_free); set a volume"
            " that fits, or a shorter stonewall"
        )
    if needed <= available:
        return (
            f"{text}, of which {format_bytes(_get_reserved_bytes(plan))} must stay free: does not fit;"
            " --set target.min_free=0"
        )
    volume = _compute_fitting_task_volume(available, task_count, plan)
    return f"{text}: does not fit; make it smaller, like --set data.access.volume={volume}"


def _compute_fitting_task_volume(available_bytes: int, task_count: int, plan: Plan) -> str:
    """Returns a volume for each task that fits into the free space."""
    room = max(0, available_bytes - _get_reserved_bytes(plan)) // max(1, task_count)
    return f"{max(1, room >> 20)}MiB"
