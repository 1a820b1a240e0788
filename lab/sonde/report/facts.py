# SPDX-License-Identifier: Apache-2.0
"""Where, when, with what, and how to do it again: the facts without which a number means nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from sonde.findings.standing import file_system
from sonde.model import quantities
from sonde.model.json_parts import items, number, text
from sonde.model.run import Run
from sonde.model.visible import block, one_line

MOST_NODES = 16
_DOT = quantities.DOT
_IDENTITY = frozenset({"type", "t", "node", "host"})
_SHELL_SAFE_LIMIT = 4000

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NodeView:
    """One node: what identifies it, and all recorded facts by group."""

    title: str
    groups: tuple[tuple[str, Pairs], ...]


def of_run(run: Run) -> Pairs:
    """Where, on what, with what and when, for the head of a run."""
    found = [("Where", _where(run)), ("On", _hosts(run)), ("With", _tasks(run)), ("When", _when(run))]
    return tuple((name, words) for name, words in found if words)


def shared(runs: Sequence[Run]) -> Pairs:
    """The facts that are the same for all runs, for the head of the report."""
    if len(runs) == 1:
        return of_run(runs[0])
    lists = [dict(of_run(run)) for run in runs]
    same = [(name, words) for name, words in lists[0].items() if all(one.get(name) == words for one in lists[1:])]
    if "When" not in dict(same):
        starts = sorted(run.head.started for run in runs if run.head.started)
        took = sum(run.end.seconds or 0.0 for run in runs)
        if starts:
            words = quantities.moment(starts[0])
            same.append(("When", f"{words}{_DOT}{quantities.seconds(took)} of measuring" if took else words))
    return (*same, ("Runs", str(len(runs))))


def same_machines(one: Run, other: Run) -> bool:
    """True when both ran on the same nodes and file system, so that one table describes both."""

    def identity(run: Run) -> list[tuple[str, str, str]]:
        return [(node.host, node.kernel, node.file_system.source) for node in run.nodes]

    return identity(one) == identity(other)


def target(run: Run) -> str:
    """The directory under test."""
    return one_line(text(run.plan, "target", "path") or text(run.notes, "target"), 200)


def _where(run: Run) -> str:
    system = file_system(run)
    parts = [target(run)] if target(run) else []
    kind, source = one_line(system.type, 40), one_line(system.source, 120)
    if kind:
        parts.append(f"{kind} on {source}" if source and source != kind else kind)
    if system.total_bytes:
        free = system.available_bytes
        room = str(quantities.volume(system.total_bytes))
        parts.append(room if free is None else f"{room}, {quantities.percent(free / system.total_bytes)} free")
    return _DOT.join(parts)


def _hosts(run: Run) -> str:
    if not run.nodes:
        return ""
    first = run.nodes[0]
    names = [one_line(node.host, 80) for node in run.nodes]
    parts = [", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")]
    each = " each" if len(names) > 1 else ""
    if first.cpus:
        parts.append(f"{quantities.plural(first.cpus, 'CPU')}{each}")
    if first.memory_bytes:
        parts.append(f"{quantities.volume(first.memory_bytes)} memory{each}")
    return _DOT.join([*parts, one_line(first.kernel, 60)] if first.kernel else parts)


def _tasks(run: Run) -> str:
    head = run.head
    if head.tasks is None:
        return ""
    words = quantities.plural(run.tasks, "task")
    if head.processes and head.threads:
        words += f" ({quantities.plural(head.processes, 'process')} × {quantities.plural(head.threads, 'thread')})"
    if head.nodes and head.nodes > 1:
        words += f" on {quantities.plural(head.nodes, 'node')}"
    parts = [words]
    if head.launch and head.launch != "single":
        parts.append(one_line(head.launch, 80))
    engine = text(head.engine, "version") or text({"v": head.engine}, "v")
    return _DOT.join([*parts, f"sonde {one_line(engine, 40)}"] if engine else parts)


def _when(run: Run) -> str:
    parts = [quantities.moment(run.head.started)] if run.head.started else []
    if run.end.seconds is not None:
        parts.append(f"took {quantities.seconds(run.end.seconds)}")
    return _DOT.join(parts)


def label(name: str) -> str:
    """The name of a member as words, without the unit that its value will show."""
    plain = one_line(name, 60)
    whole = {"bytes_per_s": "rate", "ops_per_s": "rate of operations", "seconds": "time", "bytes": "bytes"}
    for unit in ("_bytes_per_s", "_ops_per_s", "_bytes", "_ns", "_s"):
        plain = plain.removesuffix(unit) if plain not in whole else plain
    return whole.get(plain, plain.replace("_", " "))


def shown(name: str, value: object) -> str:
    """A recorded value with the unit that its name tells."""
    figure = number({"v": value}, "v")
    if figure is None:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), 400)
    if name.endswith("bytes_per_s"):
        return str(quantities.byte_rate(figure))
    if name.endswith("ops_per_s"):
        return str(quantities.operation_rate(figure))
    if name.endswith("bytes"):
        exact = f"{quantities.count(figure)}{quantities.GAP}B"
        return exact if figure < 1e5 else f"{quantities.volume(figure)} ({exact})"
    if figure >= 0 and name.endswith("_ns"):
        return str(quantities.nanoseconds(figure))
    if figure >= 0 and (name.endswith("_s") or name == "seconds"):
        return str(quantities.seconds(figure))
    if name.endswith(("resident", "share")) or name.startswith("resident"):
        return quantities.percent(figure)
    return quantities.count(figure) if figure == int(figure) else f"{figure:.4g}"


def nodes(run: Run) -> tuple[NodeView, ...]:
    """The facts of the first MOST_NODES nodes, all that the record has."""
    views: list[NodeView] = []
    for line in run.machines[:MOST_NODES]:
        own = [(name, value) for name, value in line.items() if name not in _IDENTITY and not isinstance(value, dict)]
        groups = [("Machine", _pairs(own))]
        groups += [(_title(name), _pairs(v.items())) for name, v in line.items() if isinstance(v, dict)]
        host = one_line(text(line, "host"), 80)
        title = f"Node {text(line, 'node') or '0'}{': ' + host if host else ''}"
        views.append(NodeView(title, tuple((name, found) for name, found in groups if found)))
    return tuple(views)


def _title(name: str) -> str:
    words = one_line(name, 60).replace("_", " ")
    return words[:1].upper() + words[1:]


def _pairs(members: Iterable[tuple[str, Any]], prefix: str = "") -> Pairs:
    found: list[tuple[str, str]] = []
    for name, value in members:
        words = prefix + label(name)
        if isinstance(value, Mapping):
            found += _pairs(value.items(), f"{words}: ")
        elif value not in (None, ""):
            found.append((words, shown(name, value)))
    return tuple(found)


def engine_command(run: Run) -> str:
    """How the engine was started, as a line for a shell."""
    said = run.head.command
    parts = items({"v": said}, "v")
    words = shlex.join(str(part) for part in parts) if parts else text({"v": said}, "v")
    return one_line(words, _SHELL_SAFE_LIMIT)


def typed_command(run: Run) -> str:
    """What the user typed, as the archive remembers it; empty when it does not."""
    parts = items(run.notes, "command")
    return one_line(shlex.join(str(part) for part in parts), _SHELL_SAFE_LIMIT) if parts else ""


def repeat_command(run: Run) -> str:
    """The command line that does this run again from the plan in the archive."""
    return one_line(f"sonde run {shlex.quote(str(run.folder / 'plan.json'))}", _SHELL_SAFE_LIMIT)


def plan_text(run: Run) -> Markup:
    """The plan as indented JSON, ready to be saved; empty when it is not known."""
    if not run.plan:
        return Markup("")
    # ASCII keeps what cannot be shown as JSON escapes: what is copied is exactly the plan.
    return escape(block(json.dumps(run.plan, indent=2, ensure_ascii=True)))
