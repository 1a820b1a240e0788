# SPDX-License-Identifier: Apache-2.0
"""Collects the facts about a run: location, time, software, and the command that repeats it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sonde.charts.markup import Markup
from sonde.findings.classification import get_tested_file_system
from sonde.model import quantities
from sonde.model.json_access import convert_to_finite_number, get_items, get_text
from sonde.model.run import RecordedRun
from sonde.model.shell import quote_command, quote_word

MAX_LISTED_NODES = 16
_FACT_SEPARATOR = quantities.FACT_SEPARATOR
_NODE_IDENTITY_MEMBERS = frozenset({"type", "t", "node", "host"})

LabelsAndValues = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NodeView:
    """One node: what identifies it, and all recorded facts by group."""

    title: str
    groups: tuple[tuple[str, LabelsAndValues], ...]


def list_run_facts(run: RecordedRun) -> LabelsAndValues:
    """Where, on what, with what and when, for the head of a run."""
    result = [
        ("Where", _describe_storage(run)),
        ("On", _describe_hosts(run)),
        ("With", _describe_tasks(run)),
        ("When", _describe_start(run)),
    ]
    return tuple((name, text) for name, text in result if text)


def list_shared_facts(runs: Sequence[RecordedRun]) -> LabelsAndValues:
    """The facts that are the same for all runs, for the head of the report."""
    if len(runs) == 1:
        return list_run_facts(runs[0])
    lists = [dict(list_run_facts(run)) for run in runs]
    same = [
        (name, text)
        for name, text in lists[0].items()
        if all(facts_of_run.get(name) == text for facts_of_run in lists[1:])
    ]
    if "When" not in dict(same):
        starts = sorted(run.run_line.started for run in runs if run.run_line.started)
        took = sum(run.end.seconds or 0.0 for run in runs)
        if starts:
            text = quantities.format_utc_time(starts[0])
            same.append(
                ("When", f"{text}{_FACT_SEPARATOR}{quantities.display_seconds(took)} of measuring" if took else text)
            )
    return (*same, ("Runs", str(len(runs))))


def have_same_machines(first_run: RecordedRun, second_run: RecordedRun) -> bool:
    """True when both ran on the same nodes and file system, so that one table describes both."""

    def identify_machines(run: RecordedRun) -> list[tuple[str, str, str]]:
        return [(node.host, node.kernel, node.file_system.source) for node in run.nodes]

    return identify_machines(first_run) == identify_machines(second_run)


def get_target_directory(run: RecordedRun) -> str:
    """The directory under test."""
    return get_text(run.plan, "target", "path") or get_text(run.notes, "target")


def _describe_storage(run: RecordedRun) -> str:
    system = get_tested_file_system(run)
    parts = [get_target_directory(run)] if get_target_directory(run) else []
    kind, source = system.type, system.source
    if kind:
        parts.append(f"{kind} on {source}" if source and source != kind else kind)
    if system.total_bytes:
        free = system.available_bytes
        room = str(quantities.display_transferred_bytes(system.total_bytes))
        parts.append(room if free is None else f"{room}, {quantities.display_percent(free / system.total_bytes)} free")
    return _FACT_SEPARATOR.join(parts)


def _describe_hosts(run: RecordedRun) -> str:
    if not run.nodes:
        return ""
    first = run.nodes[0]
    names = [node.host for node in run.nodes]
    parts = [", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")]
    each = " each" if len(names) > 1 else ""
    if first.cpus:
        parts.append(f"{quantities.display_count_with_noun(first.cpus, 'CPU')}{each}")
    if first.memory_bytes:
        parts.append(f"{quantities.display_configured_size(first.memory_bytes)} memory{each}")
    return _FACT_SEPARATOR.join([*parts, first.kernel] if first.kernel else parts)


def _describe_tasks(run: RecordedRun) -> str:
    head = run.run_line
    if head.tasks is None:
        return ""
    text = quantities.display_count_with_noun(run.tasks, "task")
    if head.processes and head.threads:
        text += (
            f" ({quantities.display_count_with_noun(head.processes, 'process')} × "
            f"{quantities.display_count_with_noun(head.threads, 'thread')})"
        )
    if head.nodes and head.nodes > 1:
        text += f" on {quantities.display_count_with_noun(head.nodes, 'node')}"
    parts = [text]
    if head.launch and head.launch != "single":
        parts.append(head.launch)
    engine = get_text(head.engine, "version") or get_text({"v": head.engine}, "v")
    return _FACT_SEPARATOR.join([*parts, f"sonde {engine}"] if engine else parts)


def _describe_start(run: RecordedRun) -> str:
    parts = [quantities.format_utc_time(run.run_line.started)] if run.run_line.started else []
    if run.end.seconds is not None:
        parts.append(f"took {quantities.display_seconds(run.end.seconds)}")
    return _FACT_SEPARATOR.join(parts)


def make_member_label(member_name: str) -> str:
    """The name of a member as words, without the unit that its value will show."""
    label = member_name
    units = {"bytes_per_s": "rate", "ops_per_s": "rate of operations", "seconds": "time", "bytes": "bytes"}
    for unit in ("_bytes_per_s", "_ops_per_s", "_bytes", "_ns", "_s"):
        label = label.removesuffix(unit) if label not in units else label
    return units.get(label, label.replace("_", " "))


def format_fact_with_unit(member_name: str, recorded_value: object) -> str:
    """A recorded value with the unit from its name."""
    figure = convert_to_finite_number(recorded_value)
    if figure is None:
        if isinstance(recorded_value, bool):
            return "yes" if recorded_value else "no"
        return (
            recorded_value
            if isinstance(recorded_value, str)
            else json.dumps(recorded_value, ensure_ascii=False, default=str)
        )
    if member_name.endswith("bytes_per_s"):
        return str(quantities.display_byte_rate(figure))
    if member_name.endswith("ops_per_s"):
        return str(quantities.display_operation_rate(figure))
    if member_name.endswith("bytes"):
        exact = f"{quantities.display_count(figure)}{quantities.NO_BREAK_SPACE}B"
        return exact if figure < 1e5 else f"{quantities.display_transferred_bytes(figure)} ({exact})"
    if figure >= 0 and member_name.endswith("_ns"):
        return str(quantities.display_nanoseconds(figure))
    if figure >= 0 and (member_name.endswith("_s") or member_name == "seconds"):
        return str(quantities.display_seconds(figure))
    if member_name.endswith(("residency", "share")) or member_name.startswith("residency"):
        return quantities.display_percent(figure)
    return quantities.display_count(figure) if figure == int(figure) else f"{figure:.4g}"


def list_node_facts(run: RecordedRun) -> tuple[NodeView, ...]:
    """The facts of the first MAX_NODES nodes, all that the record has."""
    views: list[NodeView] = []
    for line in run.raw_nodes[:MAX_LISTED_NODES]:
        machine = [
            (name, value)
            for name, value in line.items()
            if name not in _NODE_IDENTITY_MEMBERS and not isinstance(value, dict)
        ]
        groups = [("Machine", _make_label_pairs(machine))]
        groups += [
            (_capitalize_label(name), _make_label_pairs(v.items())) for name, v in line.items() if isinstance(v, dict)
        ]
        host = get_text(line, "host")
        title = f"Node {get_text(line, 'node') or '0'}{': ' + host if host else ''}"
        views.append(NodeView(title, tuple((name, result) for name, result in groups if result)))
    return tuple(views)


def _capitalize_label(member_name: str) -> str:
    title = member_name.replace("_", " ")
    return title[:1].upper() + title[1:]


def _make_label_pairs(labels_with_values: Iterable[tuple[str, Any]], prefix: str = "") -> LabelsAndValues:
    result: list[tuple[str, str]] = []
    for name, value in labels_with_values:
        label_text = prefix + make_member_label(name)
        if isinstance(value, Mapping):
            result += _make_label_pairs(value.items(), f"{label_text}: ")
        elif value not in (None, ""):
            result.append((label_text, format_fact_with_unit(name, value)))
    return tuple(result)


def format_engine_command(run: RecordedRun) -> str:
    """How the engine was started, as a line for a shell."""
    text = run.run_line.command
    parts = get_items({"v": text}, "v")
    return quote_command(str(part) for part in parts) if parts else get_text({"v": text}, "v")


def format_user_command(run: RecordedRun) -> str:
    """Command line that the user typed, as stored in the archive; empty when it is not stored."""
    parts = get_items(run.notes, "command")
    return quote_command(str(part) for part in parts) if parts else ""


def format_repeat_command(run: RecordedRun) -> str:
    """The command line that does this run again from the plan in the archive."""
    return f"sonde run {quote_word(str(run.folder / 'plan.json'))}"


def format_plan(run: RecordedRun) -> Markup:
    """The plan as indented JSON, ready to be saved; empty when it is not known."""
    if not run.plan:
        return Markup("")
    # ASCII keeps what cannot be shown as JSON escapes: what is copied is exactly the plan.
    return Markup.escape_lines(json.dumps(run.plan, indent=2, ensure_ascii=True))
