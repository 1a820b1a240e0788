# SPDX-License-Identifier: Apache-2.0
"""``sonde plan``: what a plan would do, without doing it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from sonde.cli.options import json_option, load_plan, plan_options, spread, task_options
from sonde.launch.engine import Engine, find_engine
from sonde.launch.launchers.list import LOCAL
from sonde.model.errors import BAD_INPUT, DONE, ENVIRONMENT, MachineError, UserError
from sonde.model.plan import Plan
from sonde.model.plan_remarks import remarks_on
from sonde.model.units import format_bytes, format_seconds, parse_bytes
from sonde.model.volume import PhaseVolume, phase_volumes, written_bytes
from sonde.terminal.phase_words import preparation
from sonde.terminal.screen import messages, plain_table, print_json, results


@click.command("plan")
@plan_options
@task_options
@json_option
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
    """
    checked = load_plan(plan, settings, target)
    checked, ranks = spread(checked, launcher, tasks, processes)
    engine = _engine()
    if engine is not None:
        _check(engine, checked)
    for remark in remarks_on(checked):
        messages().print(f"sonde: {remark}", soft_wrap=True)
    if as_json:
        print_json(checked.resolved())
        return 0
    count = ranks if launcher != LOCAL else checked.processes
    facts = _facts(engine, checked)
    volumes = phase_volumes(checked, count * checked.threads, node_memory=facts.get("memory_bytes"))
    needed = written_bytes(volumes)
    if engine is not None:
        volumes, needed = _counted(engine, checked, count, volumes)
    _print(
        results(),
        checked,
        count * checked.threads,
        volumes,
        _space(needed, checked, count * checked.threads, facts),
        facts.get("memory_bytes"),
    )
    return DONE if _fits(needed, checked, facts) else ENVIRONMENT


def _counted(engine: Engine, plan: Plan, processes: int, volumes: list[PhaseVolume]) -> tuple[list[PhaseVolume], int]:
    """What the engine counts, and the bytes of storage it needs: it alone knows how much there is to read."""
    try:
        answer = engine.resolve(plan.document, processes)
    except UserError as reason:
        raise UserError(f"{plan.origin}: {str(reason).removeprefix('plan: ')}") from None
    counted = [
        replace(one, files=said["files"], segments=said["segments"], operations=said["operations"], bytes=said["bytes"])
        for one, said in zip(volumes, answer["phases"], strict=True)
    ]
    return counted, int(answer["space"]["bytes"])


def _engine() -> Engine | None:
    try:
        return find_engine()
    except MachineError as reason:
        messages().print(f"sonde: checked against the schema only. {reason}", soft_wrap=True)
        return None


def _check(engine: Engine, plan: Plan) -> None:
    """The engine knows rules between members that no schema can say."""
    with tempfile.TemporaryDirectory(prefix="sonde-plan-") as folder:
        file = Path(folder) / "plan.json"
        file.write_text(plan.to_json(), encoding="utf-8")
        try:
            engine.check(file)
        except UserError as reason:
            text = str(reason).replace(str(file), plan.origin)
            if reason.exit_code == BAD_INPUT:
                raise UserError(f"{plan.origin}: {text.removeprefix('Plan: ')}") from None
            raise


def _facts(engine: Engine | None, plan: Plan) -> dict[str, Any]:
    if engine is None or not plan.target.is_dir():
        return {}
    try:
        return engine.probe(plan.target)
    except UserError:
        return {}


def _print(
    console: Console, plan: Plan, tasks: int, volumes: list[PhaseVolume], space: str, memory: int | None
) -> None:
    console.print(Text(plan.title, style="bold"))
    for note in plan.document.get("notes", ()):
        console.print(Text(f"  {note}", style="dim"), soft_wrap=True)
    console.print(f"Target  {plan.target}", soft_wrap=True)
    processes = tasks // plan.threads
    console.print(f"Tasks   {tasks} ({processes} process{'es' if processes != 1 else ''} x {plan.threads} threads)")
    console.print(f"Space   {space}")
    if plan.stages > 1:
        console.print(f"Stages  {plan.stages}: a fresh process starts where a phase asks for one")
    console.print()
    table = plain_table()
    for title in ("phase", "what", "files", "bytes in one pass", "of memory", "operations", "ends", "before"):
        table.add_column(title, justify="right" if title in ("files", "of memory", "operations") else "left")
    for phase, one in zip(plan.phases, volumes, strict=True):
        share = f"{one.bytes / memory:.2g} x" if memory else "-"
        table.add_row(
            Text(one.id, style="bold" if phase.get("measure", True) else "dim"),
            _what(plan, phase, one),
            f"{one.files:,}",
            f"{format_bytes(one.bytes)} ({one.tasks} x {format_bytes(one.bytes / one.tasks)})",
            share,
            f"{one.operations:,}",
            _ending(one),
            preparation(phase) if phase.get("before") else "-",
        )
    console.print(table)


def _what(plan: Plan, phase: Any, one: PhaseVolume) -> str:
    if plan.on_tree(phase):
        meta = plan.meta_of(phase)
        length = [f"{format_bytes(one.transfer)} each"] if one.transfer else []
        if phase["op"] == "walk" and "find" in meta:
            return ", ".join([one.op, one.backend, *(f"{name} {value}" for name, value in meta["find"].items())])
        return ", ".join([one.op, one.backend, meta["objects"], *length, str(meta["select"]["order"])])
    data = plan.data_of(phase)
    words = [one.op, one.backend, f"{format_bytes(one.transfer)} transfers", str(data["access"]["order"])]
    if data["io"]["direct"]:
        words.append("direct")
    if data["io"]["queue_depth"] > 1:
        words.append(f"{data['io']['queue_depth']} in flight")
    return ", ".join(words)


def _ending(one: PhaseVolume) -> str:
    if one.time is not None:
        return f"after {format_seconds(one.time)}"
    if one.stonewall is not None:
        return f"with the volume, or after {format_seconds(one.stonewall)}"
    return "with the volume"


def _available(facts: dict[str, Any]) -> int | None:
    available = (facts.get("file_system") or {}).get("available_bytes")
    return None if available is None else int(available)


def _fits(needed: int, plan: Plan, facts: dict[str, Any]) -> bool:
    """True also where nothing is known about the space."""
    available = _available(facts)
    return available is None or needed + _kept_free(plan) <= available


def _kept_free(plan: Plan) -> int:
    return parse_bytes(plan.resolved()["target"]["min_free"])


def _space(needed: int, plan: Plan, tasks: int, facts: dict[str, Any]) -> str:
    available = _available(facts)
    if available is None:
        return f"{format_bytes(needed)} needed"
    words = f"{format_bytes(needed)} needed, {format_bytes(available)} available"
    if _fits(needed, plan, facts):
        return words
    if needed <= available:
        return (
            f"{words}, of which {format_bytes(_kept_free(plan))} must stay free: does not fit; --set target.min_free=0"
        )
    return (
        f"{words}: does not fit; make it smaller, like --set data.access.volume={_room_of_task(available, tasks, plan)}"
    )


def _room_of_task(available: int, tasks: int, plan: Plan) -> str:
    """A volume that fits when each task writes as much as its volume says."""
    room = max(0, available - _kept_free(plan)) // max(1, tasks)
    return f"{max(1, room >> 20)}MiB"
