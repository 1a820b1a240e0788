#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run of a large machine costs to keep, to report and to read.

    python bench/report.py [--nodes 1000] [--tasks 16] [--targets 144] [--phases 4] [--check]

Takes the newest programs below build/. A run of that many nodes over that many storage targets is simulated, so that
its record is what an engine writes: its size, the time and memory that `sonde report` takes for it, the size of the
page, and how long a browser (headless Chromium, where one is installed) takes until its document is there and until
all of it is laid out and drawn. The goals, which --check holds the run to: a record of four phases of 1,000 nodes in
20 MB, and a page that opens in a second (the median of five tries; where the machine does other work look at the
processor time of the page's thread instead). Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests" / "lab")]

from browser import Page, browser, find_browser  # noqa: E402

RECORD_MB, OPEN_S, TRIES = 20.0, 1.0, 5
PAGE_OPEN_SCRIPT = (
    "(t => [t.responseEnd, t.domContentLoadedEventEnd, t.loadEventEnd].join(' '))"
    "(performance.getEntriesByType('navigation')[0])"
)


def make_machine(nodes: int, targets: int) -> str:
    """Six targets a server, two servers an SSU."""
    servers = (targets + 5) // 6
    return f"""
schema = "sonde-system/2"
id = "large"
title = "{nodes} nodes, {targets} targets"

[[nodes]]
id = "n[0001-{nodes:04}]"
group = "all"
model = {{ call_cost = "1 us", copy_rate = "10 GB/s" }}

[[servers]]
id = "oss[01-{servers:02}]"
roles = ["oss", "mds", "mgs"]
model = {{ create_cost = "20 us", stat_cost = "20 us", open_cost = "20 us", remove_cost = "20 us", threads = 64 }}

[[targets]]
id = "t[000-{targets - 1:03}]"
kind = "ost"
index = 0
file_system = "fs"
server = [{", ".join(f'"oss{index // 6 + 1:02}"' for index in range(targets))}]
rate = "5 GB/s"

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "oss01"

[[file_systems]]
id = "fs"
kind = "lustre"
stripe = {{ size = "1 MiB", count = 4 }}

[[mounts]]
id = "m"
file_system = "fs"
path = "/fs"
on = "all"
"""


def make_plan(nodes: int, tasks: int, phases: int) -> dict[str, Any]:
    """A file for each task; writes, and then reads again and again."""
    return {
        "schema": "sonde-plan/2",
        "id": "large",
        "title": f"{nodes:,} nodes with {tasks} tasks each",
        "target": {"path": "/fs", "min_free": 0},
        "tasks": {"processes": nodes, "threads": tasks},
        "data": {"access": {"transfer": "1MiB", "block": "16MiB"}, "io": {"direct": True}},
        "phases": [
            {"id": f"{'read' if index else 'write'}-{index + 1}", "op": "read" if index else "write"}
            for index in range(phases)
        ],
    }


def run_sonde(folder: Path, *arguments: str) -> tuple[float, resource.struct_rusage]:
    """Seconds of one command, and what it used."""
    command = [sys.executable, "-m", "sonde", *arguments, "--archive", str(folder / "archive")]
    begun = time.monotonic()
    with (folder / "said.txt").open("w", encoding="utf-8") as output:
        started = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, env={**os.environ, "PYTHONPATH": str(ROOT / "lab")}
        )
        _, status, used = os.wait4(started.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments[:2])}: {(folder / 'said.txt').read_text(encoding='utf-8').strip()}")
    return time.monotonic() - begun, used


def measure_page_open(page: Path) -> dict[str, float]:
    """Medians in seconds from the beginning of the navigation: document, load event, laid out and drawn; and what the
    page's own thread used of a processor for it.
    """
    rows = []
    with browser() as tab:
        tab.call("Performance.enable", timeDomain="threadTicks")
        for _ in range(TRIES + 1):  # the first one starts a process of the browser
            before = measure_main_thread_work(tab)
            drawn_s = tab.open(page)
            document, loaded = (float(ms) / 1000 for ms in tab.evaluate(PAGE_OPEN_SCRIPT).split()[1:])
            after = measure_main_thread_work(tab)
            # A page may get a process of its own, whose count begins anew.
            rows.append((document, loaded, drawn_s, after - before if after > before else after))
    medians = [statistics.median(column) for column in zip(*rows[1:], strict=True)]
    names = ("document", "load", "drawn", "processor")
    return {name: round(value, 3) for name, value in zip(names, medians, strict=True)}


def measure_main_thread_work(tab: Page) -> float:
    """Processor seconds of the thread that reads, lays out and draws the page."""
    metrics = {metric["name"]: metric["value"] for metric in tab.call("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def measure_report(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    (folder / "large.toml").write_text(make_machine(options.nodes, options.targets), encoding="utf-8")
    (folder / "plan.json").write_text(
        json.dumps(make_plan(options.nodes, options.tasks, options.phases)), encoding="utf-8"
    )
    simulated, _ = run_sonde(folder, "simulate", "plan.json", "--system", "large.toml")
    (record,) = folder.glob("archive/2*/*/record.ndjson")
    seconds, used = run_sonde(folder, "report", "last", "-o", "page.html")
    page = folder / "page.html"
    figures: dict[str, Any] = {
        "nodes": options.nodes,
        "tasks": options.nodes * options.tasks,
        "targets": options.targets,
        "phases": options.phases,
        "simulated_s": round(simulated, 1),
        "record_mb": round(record.stat().st_size / 1e6, 2),
        "archived_mb": round(sum(path.stat().st_size for path in record.parent.rglob("*") if path.is_file()) / 1e6, 2),
        "report_s": round(seconds, 2),
        "report_processor_s": round(used.ru_utime + used.ru_stime, 2),
        "report_mib": round(used.ru_maxrss / 1024),
        "page_kb": round(page.stat().st_size / 1e3),
    }
    if find_browser():
        figures["opens_s"] = measure_page_open(page)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("nodes", 1000), ("tasks", 16), ("targets", 144), ("phases", 4)):
        parser.add_argument(f"--{name}", type=int, default=usual, metavar="N")
    parser.add_argument("--check", action="store_true", help="end with 1 when a goal is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as name:
        figures = measure_report(options, Path(name))
    print(json.dumps(figures))
    missed = figures["record_mb"] > RECORD_MB or figures.get("opens_s", {}).get("drawn", 0.0) > OPEN_S
    if options.check and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
