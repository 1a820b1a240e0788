#!/usr/bin/env -S python3 -I -S
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the engine in tests of the lab: the same command line, records of the same form, no storage touched.

How it behaves is said by environment variables, so that a test needs no other file:

FAKE_MODE     ok (default), refuse (exit 2), environment (exit 3), enospc (exit 1 in the second phase), mismatch (4),
              crash (SIGKILL of itself in the second phase), no-end (exit 0 without an end line), torn (a last line cut
              off, then SIGKILL), deaf (ignores SIGINT and SIGTERM), alone (says that it is one process), silent (exit 3
              without a word), limit (time limit in the second phase), no-direct (phases with direct I/O
              fail), slow-start (a second before the first line)
FAKE_SECONDS  time each phase takes, default 0
FAKE_RATE     bytes per second of every phase, default 1e9
FAKE_TYPE     file system type, default ext4
FAKE_RESIDENCY share of the data that stays in the page cache, default 0
FAKE_LOG      file to which the command line is added
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

# Tests start this program by the thousand; the import of pathlib and typing was a quarter of what each start takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

MODE = os.environ.get("FAKE_MODE", "ok")
SECONDS = float(os.environ.get("FAKE_SECONDS", "0"))
RATE = float(os.environ.get("FAKE_RATE", "1e9"))
TYPE = os.environ.get("FAKE_TYPE", "ext4")
RESIDENCY = float(os.environ.get("FAKE_RESIDENCY", "0"))
SLICES = 60

stop = 0


def record_signal(signal_number: int, _frame: object) -> None:
    global stop
    stop = signal_number


class Writer:
    """Writes lines as the engine does: one JSON object each, with the time since the start."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.start = time.monotonic()

    def line(self, type_: str, /, **members: Any) -> None:
        text = json.dumps({"type": type_, "t": time.monotonic() - self.start, **members})
        self.file.write(text + "\n")
        self.file.flush()


def make_node_facts() -> dict[str, Any]:
    memory = TYPE in ("tmpfs", "ramfs")
    return {
        "host": "fakehost",
        "kernel": "6.1",
        "cpus": 4,
        "memory_bytes": 16 << 30,
        "page_bytes": 4096,
        "file_system": {
            "type": TYPE,
            "mount_point": "/fake",
            "source": "/dev/fake",
            "block_bytes": 4096,
            "total_bytes": 1 << 40,
            "free_bytes": 1 << 39,
            "available_bytes": int(os.environ.get("FAKE_AVAILABLE", str(1 << 39))),
            "read_only": TYPE == "iso9660",
            "memory_backed": memory,
            "network": False,
        },
    }


def estimate_sizes(plan: dict[str, Any], phase: dict[str, Any]) -> tuple[int, int]:
    """Transfer and bytes of a phase, roughly: enough for plans that the lab makes itself."""
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "MB": 10**6, "GB": 10**9, "kB": 1000, "B": 1}

    def number(value: Any) -> int:
        if isinstance(value, int):
            return value
        if isinstance(value, dict):  # a share of the memory
            return 64 << 20
        unit = next(name for name in units if str(value).endswith(name))
        return int(float(str(value).removesuffix(unit)) * units[unit])

    access = {**plan.get("data", {}).get("access", {}), **phase.get("access", {})}
    transfer = number(access.get("transfer", "1MiB"))
    tasks = plan.get("tasks", {}).get("threads", 1) * plan.get("tasks", {}).get("processes", 1)
    files = plan.get("data", {}).get("files", {})
    if files.get("mapping") == "many":
        return transfer, transfer * tasks * int(files.get("count", 1))
    volume = number(access["volume"]) if "volume" in access else number(access.get("block", transfer))
    return transfer, max(transfer, volume) * tasks


def run_phase(out: Writer, plan: dict[str, Any], index: int, phase: dict[str, Any]) -> int:
    """One phase; the exit code it leads to, 0 when it went well."""
    name, op = phase["id"], phase["op"]
    io = {**plan.get("data", {}).get("io", {}), **phase.get("io", {})}
    transfer, planned = estimate_sizes(plan, phase)
    for treatment in phase.get("before", ()):
        out.line(
            "treatment",
            phase=name,
            kind=treatment["kind"],
            need=treatment.get("need", "best_effort"),
            outcome="done",
            seconds=0.001,
            text="done",
            residency_before=1.0,
            residency_after=RESIDENCY,
        )
    out.line(
        "phase_begin",
        phase=name,
        index=index,
        op=op,
        backend=phase.get("backend", "posix"),
        direct=bool(io.get("direct")),
        measured=phase.get("measure", True),
        cache="direct" if io.get("direct") else "unknown",
        planned_bytes=planned,
        planned_ops=planned // transfer,
        files=1,
        labels=[],
    )
    if MODE == "no-direct" and io.get("direct"):
        text = f"{name}: the file system does not support O_DIRECT"
        out.line("error", phase=name, task=0, node=0, host="fakehost", path="/fake/data", offset=0, what="open",
                 errno=22, name="EINVAL", text=text)  # fmt: skip
        return 3
    code = write_progress(out, name, planned, transfer)
    if code:
        return code
    if op in ("stat", "remove"):
        write_phase_end_of_names(out, name, op, planned // transfer)
        return 0
    seconds = planned / RATE
    write_phase_end(out, plan, phase, planned, transfer, seconds, io)
    return 0


def write_progress(out: Writer, phase_id: str, planned_bytes: int, transfer_bytes: int) -> int:
    begin = time.monotonic()
    while (spent := time.monotonic() - begin) < SECONDS:
        share = spent / SECONDS
        done = int(planned_bytes * share)
        out.line("progress", phase=phase_id, phase_s=spent, bytes=done, ops=done // transfer_bytes, bytes_per_s=RATE,
                 ops_per_s=RATE / transfer_bytes, percent=100 * share, nodes_seen=1)  # fmt: skip
        time.sleep(0.05)
        if stop and MODE != "deaf":
            return 5
    return 5 if stop and MODE != "deaf" else 0


def write_phase_end_of_names(out: Writer, phase_id: str, op: str, file_count: int) -> None:
    """Ends a phase of operations on names, each of 10 µs."""
    seconds = file_count * 1e-5
    rate = {"bytes": 0, "ops": file_count, "seconds": seconds, "bytes_per_s": 0.0, "ops_per_s": file_count / seconds}
    latency = {"count": file_count, "min_ns": 900, "mean_ns": 1500.0, "p50_ns": 1200, "p90_ns": 2000, "p95_ns": 2500,
               "p99_ns": 9000, "p999_ns": 20000, "max_ns": 90000}  # fmt: skip
    out.line("phase_end", phase=phase_id, stopped_by="volume", bytes={"transferred": 0, "read": 0, "written": 0},
             ops={"planned": file_count, "done": file_count, "read": 0, "written": 0, "short": 0, "failed": 0},
             seconds={"elapsed": seconds, "transfer": seconds}, task_seconds={"transfer": seconds},
             rates={"total": rate, "transfer": rate}, latency={op: latency}, cpu={"user_s": 0.0, "system_s": 0.1},
             imbalance={"slowest": []})  # fmt: skip


def write_phase_end(
    out: Writer,
    plan: dict[str, Any],
    phase: dict[str, Any],
    moved_bytes: int,
    transfer_bytes: int,
    seconds: float,
    io: dict[str, Any],
) -> None:
    name, op, ops = phase["id"], phase["op"], moved_bytes // transfer_bytes
    writes = op in ("write", "rewrite")
    fsync = writes and io.get("fsync", "none") != "none"
    total = seconds * (2 if fsync else 1)
    rate = {
        "bytes": moved_bytes,
        "ops": ops,
        "seconds": seconds,
        "bytes_per_s": moved_bytes / seconds,
        "ops_per_s": ops / seconds,
    }
    slow = {**rate, "seconds": total, "bytes_per_s": moved_bytes / total, "ops_per_s": ops / total}
    latency = {"count": ops, "min_ns": 900, "mean_ns": 1500.0, "p50_ns": 1200, "p90_ns": 2000, "p95_ns": 2500,
               "p99_ns": 9000, "p999_ns": 20000, "max_ns": 90000}  # fmt: skip
    kinds = {"write" if writes else "read": latency, "open": {**latency, "count": 1}, "close": {**latency, "count": 1}}
    if fsync:
        kinds["fsync"] = {**latency, "count": 1}
    mismatch = MODE == "mismatch" and not writes
    out.line(
        "phase_end",
        phase=name,
        stopped_by="time" if "time" in phase.get("stop", {}) else "volume",
        bytes={"planned": moved_bytes, "transferred": moved_bytes, "read": 0 if writes else moved_bytes,
               "written": moved_bytes if writes else 0},
        ops={"planned": ops, "done": ops, "read": 0 if writes else ops, "written": ops if writes else 0, "short": 0,
             "failed": 0},
        seconds={"elapsed": total, "open": 0.0001, "transfer": seconds, "fsync": total - seconds, "close": 0.0001},
        task_seconds={"open": 0.0001, "transfer": seconds, "fsync": total - seconds, "close": 0.0001},
        rates={"total": slow, "transfer": rate, "steady": rate, "task_sum": rate},
        latency=kinds,
        cpu={"user_s": 0.01, "system_s": 0.1,
             "bytes_per_system_s": moved_bytes / 0.1, "bytes_per_user_s": moved_bytes / 0.01},
        imbalance={"max_over_mean": 1.05, "tail_share": 0.1,
                   "slowest": [{"task": 0, "node": 0, "host": "fakehost", "bytes_per_s": RATE, "seconds": seconds}]},
        **({"verify": {"checked_bytes": moved_bytes, "mismatches": 3}} if mismatch else {}),
        **({} if writes else {"residency": RESIDENCY if phase.get("before") else 1.0}),
    )  # fmt: skip
    band = [RATE] * SLICES
    out.line("series", phase=name, scope="all", slice_s=seconds / SLICES, bytes=[moved_bytes // SLICES] * SLICES,
             ops=[ops // SLICES] * SLICES, active=[1] * SLICES,
             task_rate={"min": band, "p25": band, "p50": band, "p75": band, "max": band})  # fmt: skip
    out.line("histogram", phase=name, kind="write" if writes else "read", count=ops, min_ns=900, max_ns=90000,
             sum_ns=1500 * ops, overflow=0, buckets=[[900, 2000, ops]])  # fmt: skip
    out.line("nodes", phase=name, columns=["node", "host", "bytes"], rows=[[0, "fakehost", moved_bytes]])
    out.line("tasks", phase=name, columns=["task", "node", "bytes", "seconds", "transfer_s", "fsync_s", "close_s"],
             rows=[[0, 0, moved_bytes, total, seconds, total - seconds, 0.0001]],
             first_task=0)  # fmt: skip
    if mismatch:
        text = f"{name}: the block at offset 4096 of /fake/data is not what was written"
        out.line("error", phase=name, task=0, node=0, host="fakehost", path="/fake/data", offset=4096, what="verify",
                 errno=0, name="", text=text)  # fmt: skip
    if not writes and RESIDENCY > 0.01:
        text, advice = "The data was in the page cache.", "Drop it first."
        out.line("finding", id="cache_suspect", phase=name, severity="warning", text=text, advice=advice,
                 evidence={"residency": RESIDENCY})  # fmt: skip


def resolve(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to what a plan would touch."""
    plan = request["plan"]
    sizes_of_phases = [(phase["id"], *estimate_sizes(plan, phase)) for phase in plan["phases"]]
    phases = [
        {"phase": name, "files": 1, "segments": 1, "operations": volume // transfer, "bytes": volume}
        for name, transfer, volume in sizes_of_phases
    ]
    largest = max(phase_sizes["bytes"] for phase_sizes in phases)
    return {"phases": phases, "space": {"bytes": largest, "files": 1, "most_bytes": largest}}


def run(arguments: list[str]) -> int:
    option_words = [word for word in arguments[1:] if word != "--dry-run"]
    options = dict(zip(option_words[0::2], option_words[1::2], strict=False))
    with open(arguments[0], encoding="utf-8") as file:
        plan = json.load(file)
    if MODE == "refuse":
        sys.stderr.write("sonde-engine: plan: phases[0].op is not what this fake engine likes\n")
        return 2
    if "--dry-run" in arguments:
        return 0
    if MODE == "environment":
        sys.stderr.write("some library says hello\nsonde-engine: /fake cannot be written: permission denied\n")
        return 3
    if MODE == "silent":
        return 3
    if MODE == "slow-start":
        time.sleep(1)
    stage = int(options["--stage"]) if "--stage" in options else None
    with open(options["--record"], "w", encoding="utf-8") as record:
        return write_record(Writer(record), plan, options, stage)


def write_record(out: Writer, plan: dict[str, Any], options: dict[str, str], stage: int | None) -> int:
    processes = int(os.environ.get("FAKE_PROCESSES") or plan.get("tasks", {}).get("processes", 1))
    threads = plan.get("tasks", {}).get("threads", 1)
    out.line("run", schema="sonde-record/2", id=options["--run-id"], engine={"version": "0.0.fake"},
             started="2026-11-21T20:45:01Z", command=["sonde-engine", "run"], launch="single",
             tasks=processes * threads, processes=1 if MODE == "alone" else processes, threads=threads, nodes=1,
             clock="tsc", plan=plan)  # fmt: skip
    out.line("node", node=0, **make_node_facts())
    number = 0
    status, code, text = "done", 0, ""
    for index, phase in enumerate(plan["phases"]):
        number += index > 0 and phase.get("process") == "separate"
        if stage is not None and number != stage:
            continue
        if index == 1 and MODE in ("crash", "torn"):
            if MODE == "torn":
                out.file.write('{"type":"progress","t":1.0,"pha')
                out.file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if index == 1 and MODE == "limit":
            status, code, text = "interrupted", 5, "The time limit of the plan is over."
            break
        if index == 1 and MODE == "enospc":
            text = f"{phase['id']}: no space left on device"
            out.line("phase_begin", phase=phase["id"], index=index, op=phase["op"], backend="posix", measured=True)
            out.line("error", phase=phase["id"], task=0, node=0, host="fakehost", path="/fake/data", offset=0,
                     what="write", errno=28, name="ENOSPC", text=text)  # fmt: skip
            status, code = "failed", 1
            break
        code = run_phase(out, plan, index, phase)
        if code:
            status = {5: "interrupted"}.get(code, "failed")
            text = "Stopped by a signal." if code == 5 else f"{phase['id']} failed."
            break
    if MODE == "no-end":
        return 0
    if MODE == "mismatch" and code == 0:
        status, code, text = "mismatch", 4, "3 blocks are not what was written."
    out.line("end", status=status, exit_code=code, seconds=time.monotonic() - out.start, text=text, files_removed=1,
             files_left=0)  # fmt: skip
    return code


def main(arguments: list[str]) -> int:
    if "FAKE_LOG" in os.environ:
        with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
            log.write(json.dumps(arguments) + "\n")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, record_signal)
    match arguments[:1]:
        case ["--version"]:
            print("sonde-engine 0.0.fake")
        case ["backends"]:
            backends = [{"name": "posix", "usable": True, "why": ""}, {"name": "io_uring", "usable": True, "why": ""}]
            print(json.dumps(backends))
        case ["probe"]:
            print(json.dumps(make_node_facts()))
        case ["resolve"]:
            print(json.dumps(resolve(json.loads(sys.stdin.read()))))
        case ["run"]:
            return run(arguments[1:])
        case _:
            sys.stderr.write(f"sonde-engine: unknown command {arguments}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
