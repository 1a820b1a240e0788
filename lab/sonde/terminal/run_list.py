# SPDX-License-Identifier: Apache-2.0
"""The table of runs: a row for each run, or for each group of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from sonde.findings.caveats import GOOD_VALIDITY, label_finding
from sonde.findings.classification import Classification, label_classification
from sonde.model.units import format_seconds
from sonde.terminal.phase_text import format_rate_by_transfer
from sonde.terminal.screen import get_results_console, make_plain_table

Row = Mapping[str, Any]
_RATE_COLUMNS = tuple(
    f"{direction}_{measure}"
    for direction in ("write", "read")
    for measure in ("bytes_per_s", "ops_per_s", "classification")
)
# What the table needs of each run in the index.
RUN_LIST_COLUMNS = (
    *("run", "group", "started", "target", "file_system", "tasks", "status", "seconds", "folder", "source", "tags"),
    *_RATE_COLUMNS,
    *("validity", "caveats"),
)
_COLUMN_TITLES = (
    "run",
    "started (UTC)",
    "target",
    "tasks",
    "status",
    "time",
    "fastest write",
    "fastest read",
    "validity",
)
_STATUS_STYLES = {"done": "green", "interrupted": "yellow"}


@dataclass(frozen=True)
class RunListRow:
    """One row of the table: one run, or the runs of a group."""

    name: str
    runs: Sequence[Row]


def make_row_for_each_run(index_rows: Iterable[Row]) -> list[RunListRow]:
    """Returns one row of the list for each run, ungrouped."""
    return [RunListRow(row["run"], [row]) for row in index_rows]


def make_row_for_each_group(index_rows: Sequence[Row], smallest_group: int) -> list[RunListRow]:
    """A row for each group of at least `smallest_group` runs, at the start of its first one; a row for each other
    run."""
    sizes = Counter(row["group"] for row in index_rows)
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in index_rows:
        is_grouped = row["group"] and sizes[row["group"]] >= smallest_group
        lines.setdefault(("group", row["group"]) if is_grouped else ("run", row["run"]), []).append(row)
    return [RunListRow(name, runs) for (_, name), runs in lines.items()]


def print_run_list(rows: Sequence[RunListRow]) -> None:
    """Prints the table."""
    tagged = any(row["tags"] for line in rows for row in line.runs)
    table = make_plain_table()
    for title in [*_COLUMN_TITLES, *(["tags"] if tagged else [])]:
        right = title in ("tasks", "time") or "fastest" in title
        table.add_column(title, justify="right" if right else "left", no_wrap=title == "run")
    for line in rows:
        tags = dict.fromkeys(tag for row in line.runs for tag in row["tags"] or ())
        table.add_row(
            line.name if len(line.runs) == 1 else f"{line.name} ({len(line.runs):,} runs)",
            (line.runs[0]["started"] or "")[:16].replace("T", " "),
            _join_distinct_texts(map(_format_target_directory, line.runs)),
            _format_tasks(line.runs),
            _format_status(line.runs),
            _format_total_seconds(line.runs),
            _format_fastest(line.runs, "write"),
            _format_fastest(line.runs, "read"),
            _format_validity_and_caveats(line.runs),
            *([" ".join(tags)] if tagged else []),
        )
    get_results_console().print(table)


def _join_distinct_texts(row_texts: Iterable[str]) -> str:
    values = list(dict.fromkeys(row_texts))
    return values[0] if len(values) == 1 else f"{len(values)} targets"


def _format_target_directory(row: Row) -> str:
    target = f"{row['target']} ({row['file_system']})" if row["file_system"] else row["target"] or ""
    return f"{target} by {row['source']}".strip() if row["source"] else target


def _format_tasks(run_rows: Sequence[Row]) -> str:
    counts = sorted({row["tasks"] for row in run_rows if row["tasks"]})
    return "-" if not counts else str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _format_status(run_rows: Sequence[Row]) -> Text:
    counts = Counter(row["status"] for row in run_rows)
    if len(counts) == 1:
        status = run_rows[0]["status"]
        return Text(status, style=_STATUS_STYLES.get(status, "red"))
    return Text(", ".join(f"{count} {status}" for status, count in counts.most_common()), style="yellow")


def _format_total_seconds(run_rows: Sequence[Row]) -> str:
    seconds = [row["seconds"] for row in run_rows if row["seconds"] is not None]
    return format_seconds(sum(seconds)) if seconds else "-"


def _format_validity_and_caveats(run_rows: Sequence[Row]) -> Text:
    """How far the numbers can be trusted, and what was found against them."""
    texts = Counter(_describe_validity(row) for row in run_rows)
    caveats = dict.fromkeys(label_finding(caveat) for row in run_rows for caveat in row["caveats"] or ())
    text = next(iter(texts)) if len(texts) == 1 else ", ".join(f"{count} {name}" for name, count in texts.most_common())
    style = "red" if "invalid" in texts else "yellow" if "doubtful" in texts else ""
    return Text(f"{text}: {', '.join(caveats)}" if caveats else text, style=style)


def _describe_validity(row: Row) -> str:
    validity = str(row["validity"] or "no number")
    if validity != GOOD_VALIDITY or _has_storage_number(row):
        return validity
    return Classification.SIMULATED.table_label if _is_simulated(row) else "not of storage"


def _is_simulated(row: Row) -> bool:
    return any(row[f"{direction}_classification"] == Classification.SIMULATED.value for direction in ("write", "read"))


def _has_storage_number(row: Row) -> bool:
    """Returns whether the run has a storage number, or no classified number at all."""
    directions = ("write", "read")
    return any(row[f"{direction}_bytes_per_s"] for direction in directions) or not any(
        row[f"{direction}_classification"] for direction in directions
    )


def _format_fastest(run_rows: Sequence[Row], direction_name: str) -> str:
    """Returns the fastest storage rate, or the classification of the fastest other number."""
    best = max(run_rows, key=lambda row: row[f"{direction_name}_bytes_per_s"] or 0.0)
    rate = best[f"{direction_name}_bytes_per_s"]
    if rate:
        return format_rate_by_transfer(rate, best[f"{direction_name}_ops_per_s"] or 0.0)
    labels = dict.fromkeys(label_classification(row[f"{direction_name}_classification"] or "-") for row in run_rows)
    return ", ".join(labels)
