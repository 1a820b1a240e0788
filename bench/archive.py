#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an archive of a million runs costs: to list, to filter, to follow one number through time, to ask in SQL, and to
watch all histories, from nothing, again, and after a run was added (as shares of the first).

Runs of ten years are synthesized as the index that Sonde would have made of them; those of the last month are real
folders, so that reading new runs is measured too. Every command is a process of its own, as a user starts it. Prints a
table; with --json one object of named figures (seconds, and shares named `…_share`) instead. `sonde trend` is given in
processor time. With --site it measures `sonde site` (from nothing, again, after a run was added) instead.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lab"))

from sonde.model.history_key import HistoryKey  # noqa: E402
from sonde.model.plan_hash import hash_json  # noqa: E402
from sonde.store import index  # noqa: E402
from sonde.store.archive import Archive  # noqa: E402
from sonde.store.catalog import Catalog  # noqa: E402
from sonde.store.history import list_histories_in_catalog  # noqa: E402

MONTHS = [f"{year}-{month:02d}" for year in range(2016, 2026) for month in range(1, 13)]
PHASES = (("write", "write"), ("read", "read"), ("reread", "read"), ("stat", "stat"))
PLANS = ("daily", "quick", "shared-file", "small-files", "sustained")
SYSTEMS = ("edison", "cori", "mira", "perlmutter")
TARGETS = ("/scratch1", "/scratch2", "/scratch3", "/project")


def make_history_keys() -> list[HistoryKey]:
    """One a system, target, plan and phase."""
    history_keys = []
    for system in SYSTEMS:
        for target in TARGETS:
            for plan in PLANS:
                shared = (system, f"lustre:/{target[1:]} probe", hash_json(plan))
                for phase, op in PHASES:
                    unit = "ops_per_s" if op == "stat" else "bytes_per_s"
                    members = {"phase": phase, "op": op, "cache": "cold", "definition": "sonde total", "unit": unit}
                    history_keys.append(
                        HistoryKey(*shared, "AMD EPYC 7763, 128 cpus, 256 GiB", "sonde-record/2", **members)
                    )
    return history_keys


def synthesize_month(month: str, count: int, number: np.random.Generator) -> tuple[Any, Any]:
    """The rows of `count` runs of one month, and of their phases."""
    begin = datetime.fromisoformat(f"{month}-01T00:00:00+00:00").timestamp()
    started = np.sort(begin + number.integers(0, 28 * 86400, count))
    all_keys = make_history_keys()
    which = number.integers(0, len(all_keys) // len(PHASES), count)
    ids, texts = [], []
    for position, moment in enumerate(started):
        start_time = datetime.fromtimestamp(float(moment), UTC)
        texts.append(f"{start_time:%Y-%m-%dT%H:%M:%S}+00:00")
        ids.append(f"{start_time:%Y%m%dT%H%M%SZ}-{PLANS[which[position] % 5]}-{position:05x}")
    first = [all_keys[key_index * len(PHASES)] for key_index in which]
    rate = 1e9 * np.exp(number.normal(0, 0.1, (count, len(PHASES))))
    runs: dict[str, Any] = {
        "run": ids,
        "folder": [f"{month}/{run_id}" for run_id in ids],
        "changed_ns": np.full(count, 1),
        "problem": [None] * count,
        "started_s": started.astype(float),
        "started": texts,
        "status": np.where(number.random(count) < 0.02, "failed", "done"),
        "role": ["run"] * count,
        "group": [None] * count,
        "plan": [PLANS[key_index % 5] for key_index in which],
        "title": [f"The experiment {PLANS[key_index % 5]}" for key_index in which],
        "target": [key.file_system.split(":")[1].split()[0] for key in first],
        "file_system": ["lustre"] * count,
        "host": [f"nid{host_number:05d}" for host_number in number.integers(0, 9000, count)],
        "tasks": np.full(count, 64),
        "nodes": np.full(count, 4),
        "processes": np.full(count, 64),
        "threads": np.full(count, 1),
        "seconds": rate[:, 0] / 1e7,
        "source": [None] * count,
        "validity": np.where(number.random(count) < 0.05, "doubtful", "good"),
        "findings": [["too_short"] if draw < 0.05 else [] for draw in number.random(count)],
        "caveats": [["noisy_node"] if draw < 0.05 else [] for draw in number.random(count)],
        "tags": [["accepted"] if draw < 0.01 else [] for draw in number.random(count)],
        "system": [key.system for key in first],
        "storage": [key.file_system for key in first],
        "plan_hash": [key.plan_hash for key in first],
        "node_class": [key.node_class for key in first],
        "epoch": [key.epoch for key in first],
        "write_bytes_per_s": rate[:, 0],
        "write_ops_per_s": rate[:, 0] / 2**20,
        "read_bytes_per_s": rate[:, 1],
        "read_ops_per_s": rate[:, 1] / 2**20,
        "read_classification": ["storage"] * count,
        "write_classification": ["storage"] * count,
    }
    of_phase = [all_keys[key_index * len(PHASES) + phase] for key_index in which for phase in range(len(PHASES))]
    return pa.table(runs, schema=index.RUN_SCHEMA), make_phase_table(runs, of_phase, rate.reshape(-1))


def make_phase_table(runs: dict[str, Any], keys_of_phases: list[HistoryKey], values: Any) -> Any:
    """The rows of the phases of these runs."""
    names = {key: (key.id, json.dumps(asdict(key))) for key in set(keys_of_phases)}
    times, total = len(PHASES), len(keys_of_phases)
    phases = {
        "run": np.repeat(runs["run"], times),
        "started_s": np.repeat(runs["started_s"], times),
        "plan": np.repeat(runs["plan"], times),
        "group": [None] * total,
        "position": np.tile(np.arange(times), total // times),
        "phase": [key.phase for key in keys_of_phases],
        "op": [key.op for key in keys_of_phases],
        "backend": ["posix"] * total,
        "cache": ["cold"] * total,
        "measured": np.ones(total, bool),
        "done": np.ones(total, bool),
        "stopped_by": ["volume"] * total,
        "definition": ["sonde total"] * total,
        "bytes": np.full(total, 2**40),
        "ops": np.full(total, 2**20),
        "failed": np.zeros(total, int),
        "seconds": 2**40 / values,
        "bytes_per_s": values,
        "ops_per_s": values / 2**20,
        "classification": ["storage"] * total,
        "validity": ["good"] * total,
        "findings": [[]] * total,
        "history": [names[key][0] for key in keys_of_phases],
        "value": values,
        "key": [names[key][1] for key in keys_of_phases],
    }
    return pa.table(phases, schema=index.PHASE_SCHEMA)


def write_stored_run(folder: Path, run_id: str, number: np.random.Generator) -> None:
    """A run as a writer leaves it, of the size that run.json has."""
    folder.mkdir(parents=True)
    key = make_history_keys()[int(number.integers(0, 80)) * 4]
    shared = {name: getattr(key, name) for name in ("system", "file_system", "plan_hash", "node_class", "epoch")}
    phases = [
        {"phase": phase, "op": op, "backend": "posix", "direct": False, "cache": "cold", "measured": True, "done": True}
        | {"findings": [], "bytes": 2**30, "ops": 1024, "failed": 0, "seconds": 1.0, "stopped_by": "volume"}
        | {"bytes_per_s": float(1e9 * number.random()), "ops_per_s": 1e3, "definition": "sonde total"}
        | {
            "classification": "burst",
            "classification_text": "To storage: fsync at the end; a burst of 1.00 s.",
            "validity": "good",
        }
        for phase, op in PHASES
    ]
    started = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    document = {
        "schema": "sonde-run/2",
        "id": run_id,
        "started": started.isoformat(),
        "status": "done",
        "seconds": 60.0,
    }
    document |= {"plan": {"id": "daily", "title": "The experiment daily"}, "target": "/scratch1", "tasks": 64}
    document |= {"file_system": "lustre", "host": "nid00001", "role": "run", "group": None, "nodes": 4}
    document |= {"history": shared, "phases": phases, "findings": [], "command": ["sonde", "run", "daily"] * 4}
    (folder / "run.json").write_text(json.dumps(document, indent=2), encoding="utf-8")


def build_archive(root: Path, count: int, real: int) -> None:
    """An archive with `count` runs, `real` of which have a folder."""
    number = np.random.default_rng(1)
    folder = root / index.INDEX_FOLDER / index.INDEX_VERSION
    folder.mkdir(parents=True)
    each = (count - real) // len(MONTHS)
    for month in MONTHS:
        (root / month).mkdir()
        tables = dict(zip(("runs", "phases"), synthesize_month(month, each, number), strict=True))
        stamp = (root / month).stat().st_mtime_ns
        for part, table in tables.items():
            parquet.write_table(table, folder / f"{month}~{stamp}.{part}.parquet", **index.PARQUET_WRITE_OPTIONS)
    for position in range(real):
        day, second = 1 + position % 28, position // 28
        run_id = f"202601{day:02d}T{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}Z-daily-{position:05x}"
        write_stored_run(root / "2026-01" / run_id, run_id, number)


def measure_median_s(action: Callable[[], object], times: int) -> float:
    """The median of `times` durations, in seconds."""
    elapsed = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        elapsed.append(time.perf_counter() - begin)
    return statistics.median(elapsed)


def measure_processor_s(action: Callable[[], object]) -> float:
    """The processor time of the process that this starts, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make_sonde_command(root: Path, *arguments: str) -> Callable[[], object]:
    """`sonde …` on that archive, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lab"), "SONDE_ARCHIVE": str(root)}

    def start() -> object:
        """Waits for its end."""
        return subprocess.run(
            [sys.executable, "-m", "sonde", *arguments], env=environment, check=True, capture_output=True
        )

    return start


def measure_archive_figures(root: Path, times: int, real: int) -> Iterator[tuple[str, str, float]]:
    """(name, what it is, seconds) one after the other."""
    yield "new_runs", f"reading {real:,} new runs for the first time", measure_median_s(lambda: Catalog(root), 1)
    time.sleep(2.1)  # what changed within the last two seconds is read again: that is measured apart
    Catalog(root)
    yield "start", "sonde --version, which does nothing", measure_median_s(make_sonde_command(root, "--version"), times)
    yield "list", "sonde list, the last 100", measure_median_s(make_sonde_command(root, "list"), times)
    filters = (
        "--system",
        "edison",
        "--on",
        "scratch2",
        "--plan",
        "daily",
        "--validity",
        "good",
        "--since",
        "2024-01-01",
    )
    yield "filter", "sonde list with five filters", measure_median_s(make_sonde_command(root, "list", *filters), times)
    yield (
        "tag",
        "sonde list --tag accepted",
        measure_median_s(make_sonde_command(root, "list", "--tag", "accepted"), times),
    )
    sql = "SELECT plan, op, median(value), count(*) FROM phases GROUP BY ALL"
    yield (
        "query",
        "sonde query, medians of four million values",
        measure_median_s(make_sonde_command(root, "query", sql), times),
    )
    yield "open", "opening the catalog", measure_median_s(lambda: Catalog(root), times)
    history_id = make_history_keys()[0].id
    followed = measure_median_s(lambda: list_histories_in_catalog(Catalog(root), history_ids=[history_id]), times)
    yield (
        "one_series",
        f"one series of {len(list_histories_in_catalog(Catalog(root), history_ids=[history_id])[0]):,} values",
        followed,
    )
    catalog = Catalog(root)
    every = list_histories_in_catalog(catalog)
    seconds = measure_median_s(lambda: list_histories_in_catalog(Catalog(root)), times)
    yield "all_series", f"all {len(every)} series, {sum(map(len, every)):,} values", seconds
    trend = make_sonde_command(root, "trend")
    fresh = measure_processor_s(trend)
    yield "trend", "sonde trend from nothing (processor time)", fresh
    again = statistics.median(measure_processor_s(trend) for _ in range(times))
    yield "trend_again", "sonde trend again", again
    yield "trend_again_share", "again / from nothing", again / fresh
    newest = root / "2026-01" / "20260128T235959Z-daily-fffff"
    write_stored_run(newest, newest.name, np.random.default_rng(2))
    yield "after_a_run", "sonde list after a run was added", measure_median_s(make_sonde_command(root, "list"), 1)
    news = measure_processor_s(trend)
    yield "trend_news", "sonde trend after a run was added (processor time)", news
    yield "trend_news_share", "after a run was added / from nothing", news / fresh
    Archive(root).remove_run(newest)
    yield "after_removal", "sonde list after a run was removed", measure_median_s(make_sonde_command(root, "list"), 1)


def measure_site_figures(root: Path, out: Path) -> Iterator[tuple[str, str, float]]:
    """The same for `sonde site`, in processor time."""
    site = make_sonde_command(root, "site", str(out))
    yield "site", "sonde site from nothing (processor time)", measure_processor_s(site)
    yield "site_again", "sonde site again (processor time)", measure_processor_s(site)
    newest = root / "2026-01" / "20260128T235959Z-daily-ffffe"
    write_stored_run(newest, newest.name, np.random.default_rng(3))
    yield "site_news", "sonde site after a run was added (processor time)", measure_processor_s(site)
    pages = sum(1 for _ in out.rglob("*.html"))
    yield "site_pages", "pages of the site", float(pages)


def main() -> int:
    """Builds the archive, measures, and takes it away again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, help="where the archive is made (default: the directory for such things)")
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs in the archive (default: %(default)s)")
    parser.add_argument("--real", type=int, default=8_000, help="of them with a folder (default: %(default)s)")
    parser.add_argument("--times", type=int, default=5, help="repetitions; the median counts (default: %(default)s)")
    parser.add_argument("--site", action="store_true", help="measure `sonde site` instead")
    parser.add_argument("--json", action="store_true", help="one object of named figures on standard output")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="sonde-bench-archive-", dir=options.dir))
    try:
        print(f"making an archive of {options.runs:,} runs in {root}", file=sys.stderr, flush=True)
        build_archive(root, options.runs, options.real)
        size = sum(path.stat().st_size for path in (root / index.INDEX_FOLDER).rglob("*.parquet"))
        print(f"its index takes {size / 2**20:.0f} MiB", file=sys.stderr, flush=True)
        seconds_by_name = {}
        chosen = (
            measure_site_figures(root, root / "site")
            if options.site
            else measure_archive_figures(root, options.times, options.real)
        )
        for name, description, seconds in chosen:
            seconds_by_name[name] = seconds
            unit = " " if name.endswith(("_share", "_pages")) else "s"
            print(f"{seconds:8.3f} {unit}  {description}", file=sys.stderr if options.json else sys.stdout, flush=True)
        if options.json:
            print(json.dumps({"runs": options.runs, "index_bytes": size, **seconds_by_name}, indent=2))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
