# SPDX-License-Identifier: Apache-2.0
"""Readers of files that somebody else may have written, each with files that it accepts.

The contract: a reader returns, or raises one of its documented errors. `tools/fuzz_lab.py` feeds these readers with
Atheris, `tests/lab/test_changed_bytes.py` with a fixed sequence of mutations.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import tomli_w

from sonde.advise.buffers import choose_iobuf_params
from sonde.advise.dftracer_trace import read_dftracer_job
from sonde.design.layout.live.saved_output import read_files
from sonde.design.layout.live.superblocks import read_superblock
from sonde.design.routes.table_reader import read_host_tables
from sonde.dialects.io500.ini import DEFAULT_CONFIG, read_ini_file
from sonde.dialects.io500.verify import verify_result_hashes
from sonde.findings.assessment import assess_phase_rate
from sonde.launch.elf import read_elf_header
from sonde.launch.sites import read_sites
from sonde.logs.log_follow import LogState, follow_log
from sonde.logs.rule_files import compile_rules, list_shipped_rule_files
from sonde.logs.scan import LogDefaults, scan_logs
from sonde.logs.sec_rules import read_sec_rule_file
from sonde.model.errors import RecordError, UserError
from sonde.model.event import read_events_file
from sonde.model.experiment import read_experiment
from sonde.model.plan import Plan
from sonde.model.record import RECORD_FILE, merge_stage_records
from sonde.model.run import read_recorded_run_folder
from sonde.model.system import read_system
from sonde.model.trace import read_trace
from sonde.sources.column_guesses import guess_column_map
from sonde.sources.columns import read_column_map
from sonde.sources.csv_rows import read_csv_header, read_csv_runs
from sonde.sources.formats import read_result_file
from sonde.sources.import_defaults import ImportDefaults
from sonde.store.columns import read_table_columns
from sonde.store.index import PARQUET_WRITE_OPTIONS, RUN_SCHEMA
from sonde.store.packs import UNREADABLE_PACK_ERRORS, iterate_pack_members
from sonde.store.rows import read_folder_rows
from sonde.store.summary import SUMMARY_FILE, build_summary_document, read_summary
from sonde.telemetry.data import load_telemetry
from sonde.telemetry.file_format import SAMPLED_FILE
from sonde.telemetry.foreign_files import read_foreign_telemetry
from sonde.telemetry.imports import TelemetryDefaults
from sonde.terminal.trace_tables import build_trace_document
from sonde.trends.environment import read_environment
from sonde.watch.configuration import read_watch_file
from sonde.watch.watch_state import STATE_FILE, HistoryState, Incident, Notice, PendingRun, StateStore, WatchState

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


@dataclass(frozen=True)
class ReaderTarget:
    """A reader: `read` receives the path of a file called `file` with any content. `seeds`: contents that it accepts.
    `errors`: the errors that it documents. `mutations`: how many of the seeds an ordinary test run tries."""

    name: str
    file: str
    read: Callable[[Path], object]
    seeds: Callable[[], Sequence[bytes]]
    errors: tuple[type[Exception], ...] = (UserError,)
    mutations: int = 300


def _files(*patterns: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path.is_file()]


def _texts(*texts: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [text.encode() for text in texts]


def _read_record(path: Path) -> None:
    """Reads a record like `sonde show` and `sonde list` after a run was lost."""
    run = read_recorded_run_folder(path.parent)
    for phase in run.record.phases.values():
        assess_phase_rate(run, phase)
    build_summary_document(run.record, {}, None, "")
    read_environment(path.parent)
    merge_stage_records([path.read_bytes()] * 2, [0.0, 1.5])


def _read_summary(path: Path) -> None:
    """Reads a summary like the index, which lists unreadable runs with the reason."""
    read_folder_rows(path.parent, path.parent.name, 0)
    read_summary(path.parent)


def _read_csv(path: Path) -> None:
    guess_column_map(read_csv_header(path))
    columns = read_column_map(None, ["time=start", "rate=rate GiB/s", "tasks=tasks", "op=op", "phase=phase"])
    for run in read_csv_runs(path, columns, lambda sentence: None):
        run.make_run_id()


def _read_results(path: Path) -> None:
    for run in read_result_file(path, ImportDefaults()):
        run.make_run_id()
        run.make_history_key_of_all_phases()


def _read_trace(path: Path) -> None:
    trace = read_trace(path)
    json.dumps([build_trace_document(trace), trace.duration_seconds, trace.untraced_calls])
    choose_iobuf_params(trace)


def _read_system(path: Path) -> None:
    read_system(path).resolve()


def _read_pack(path: Path) -> None:
    for member in iterate_pack_members(path):
        while member.content.read(1 << 20):
            pass


def _read_telemetry(path: Path) -> None:
    telemetry = load_telemetry(path.parent)
    telemetry.compute_increase("disk_read_bytes", "sda", 10.0, 20.0)


@cache
def _log_rules() -> list[Any]:
    return compile_rules(list_shipped_rule_files().values())


def _log_lines() -> Sequence[bytes]:
    """The sample lines of the shipped rules, as they stand in a system log."""
    lines = [f"Nov 23 12:00:00 node7 kernel: {sample}" for rule in _log_rules() for sample in rule.rule.samples]
    return ["\n".join(lines[start : start + 20]).encode() for start in range(0, len(lines), 20)]


def _telemetry_of_other_programs() -> Sequence[bytes]:
    stamp = {"date": "2026-11-20", "time": "12:00:02", "tz": "UTC", "interval": 1}
    disk = {"disk-device": "sda", "rkB": 100.0, "wkB": 50.0, "aqu-sz": 2.5, "util-percent": 98.0}
    sadf = {"sysstat": {"hosts": [{"nodename": "n7", "statistics": [{"timestamp": stamp, "disk": [disk]}]}]}}
    series = {"metric": {"__name__": "lustre_read_kibibytes_total", "target": "fs1-OST0000"}, "values": [[10, "1"]]}
    prometheus = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
    texts = (
        json.dumps(sadf),
        json.dumps(prometheus),
        "obdfilter.fs1-OST0000.stats=\nsnapshot_time 1284241188.775657 secs.usecs\n"
        "read_bytes 1023683 samples [bytes] 0 1048576 471987441490\n",
        "1284241188 ost: 2;oss1;0.184;13.33;fs1-OST0001;1;2;3;4;500;600;7;129;0;1;2;0;0;COMPLETE 129/129 0s left;\n",
        "TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n2010-09-11 22:06:28,fs1-OST0001,100,200\n",
        "_fs_io_s_ _n_ 10.0.0.1 _nn_ node1 _rc_ 0 _t_ 1066660148 _tu_ 407431 _cl_ c _fs_ gpfs2 _d_ 2 _br_ 1 _bw_ 2 "
        "_oc_ 10 _cc_ 16 _rdc_ 101 _wc_ 300 _dir_ 7 _iu_ 2\n",
        *_timed_outputs(),
    )
    return [text.encode() for text in texts]


def _timed_outputs() -> Sequence[str]:
    """Outputs of programs that print no time, each after a line with one, and of other collectors."""
    latency = {"avgcount": 4, "sum": 0.5, "avgtime": 0.125}
    osd = {
        "op_r": 4,
        "op_w": 5,
        "op_r_out_bytes": 1,
        "op_w_in_bytes": 2,
        "op_r_latency": latency,
        "op_w_latency": latency,
    }
    outputs = (
        "obdfilter.fs1-OST0000.job_stats=\njob_stats:\n- job_id:          24\n  snapshot_time:   1510782606\n"
        "  read_bytes:      { samples: 125, unit: bytes, min: 4096, max: 4096, sum: 512000 }\n",
        "osc.fs1-OST0000.rpc_stats=\nsnapshot_time: 5.5 (secs.usecs)\nread RPCs in flight:  2\n\n"
        "pages per rpc         rpcs   % cum % |       rpcs   % cum %\n256:   850 100 100   |      18346  99 100\n",
        "obdfilter.fs1-OST0000.recovery_status=\nstatus: RECOVERING\ntime_remaining: 118\nconnected_clients: 3/5\n",
        "\n=== mmdiag: waiters ===\n"
        "Waiting 64.25 sec since 17:55:45, monitored, thread 1 NSDThread: for I/O completion\n",
        "Sum: 61 [sum]  3 [ops-rd]  12 [MiB-rd/s]  46 [ops-wr]  184 [MiB-wr/s]\n",
        f"osd.3\n{json.dumps({'osd': osd})}\n",
        json.dumps({"osd_perf_infos": [{"id": 4, "perf_stats": {"commit_latency_ms": 2, "apply_latency_ms": 64}}]}),
        "Brick: s1:/b\n---\nCumulative Stats:\n  40.00  500.00 us  50.00 us  9000.00 us  100  READ\n"
        "   Data Read: 12980224 bytes\nData Written: 26214400 bytes\n",
        '# TYPE node_disk_read_bytes_total counter\nnode_disk_read_bytes_total{device="sda"} 1e+06\n',
    )
    return (
        *(f"1700000000\n{output}" for output in outputs),
        " time_index write_KiB  read_KiB   reqs   qlen bsy\n 1700000000      2048         0     12      0   1\n",
        "#Date Time [CPU]Wait% [DSK:vda]Name [DSK:vda]RKBytes [DSK:vda]Util\n20261123 23:49:36 1 vda 10 25\n",
        "diskio,host=n7,name=sda io_time=400i,read_bytes=1024i 1700000000000000000\n",
    )


def _plans_in_toml() -> Sequence[bytes]:
    return [tomli_w.dumps(json.loads(content)).encode() for content in _files("schema/plan/example*.json")()]


def _routes() -> Sequence[bytes]:
    texts = (
        "routes:\n  config:\n  - destination: 10.1.0.0/16\n    next-hop-address: 10.0.0.1\n"
        "    next-hop-interface: eth0\n    table-id: 254\nroute-rules:\n  config:\n  - ip-from: 10.2.0.0/16\n"
        "    route-table: 100\n    priority: 1000\n",
        "route:\n- net: tcp\n  gateway: 10.0.0.1@o2ib\n  hop: 1\n",
        "[Match]\nName=eth0\n[Route]\nDestination=10.1.0.0/16\nGateway=10.0.0.1\n[RoutingPolicyRule]\nFrom=10.2.0.0/16\n"
        "Table=100\nPriority=1000\n",
        "[ipv4]\nroute1=10.1.0.0/16,10.0.0.1,100\nroute1_options=table=100\n"
        "routing-rule1=priority 5 from 10.2.0.0/16 table 1\n",
        '[{"dst": "10.1.0.0/16", "gateway": "10.0.0.1", "dev": "eth0", "flags": [], "metrics": [{"mtu": 9000}]}]',
        '[{"priority": 1000, "src": "10.2.0.0", "srclen": 16, "table": "100", "fwmark": "0x1"}]',
        '[{"ifname": "eth0", "mtu": 9000, "addr_info": [{"local": "10.0.0.2", "prefixlen": 24}]}]',
    )
    return [text.encode() for text in texts] + [*_files("tests/data/routes/*")()]


def _sec_rules() -> Sequence[bytes]:
    return [
        b"# rules\ntype=Single\nptype=RegExp\npattern=error on (\\S+)\ndesc=$1 failed\naction=write - %s\n\n"
        b"type=PairWithWindow\nptype=SubStr\npattern=down\ndesc=down\naction=event x\nptype2=RegExp\n"
        b"pattern2=up (\\d+)\ndesc2=up $1\naction2=logonly\nwindow=60\n"
    ]


def _follow_log_lines() -> LogState:
    """The state after a pair was opened."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages"
        path.write_text("2026-03-17T08:41:00Z oss3 kernel: md: recovery of RAID array md3\n")
        return follow_log(path, LogState(), _log_rules(), LogDefaults()).state


def _watch_states() -> Sequence[bytes]:
    labels = {"probe": "a", "phase": "read", "directory": "/fs"}
    state = WatchState(
        histories={"h": HistoryState(labels, "bytes/s", [1.0, 2.0], [3.0, 4.0], [1.0], 1, [0.5, 0.1])},
        incidents=[Incident("i", 1.0, {"h": 0.5}, "Slower.")],
        notices=[Notice("n", "slower", "i", 1.0, "Title", "Text.", ["f"])],
        durations={"a": [(1.0, 2.0)]},
        pending=PendingRun("a", 1, "g", 2.0),
        logs={"l": _follow_log_lines()},
    )
    return [json.dumps(state.to_json()).encode()]


def _packs() -> Sequence[bytes]:
    files = {"2026-01/run.json": b'{"schema": "sonde-run/2"}', "2026-01/record.ndjson": b"{}\n" * 50}
    plain, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tape, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tape.addfile(member, io.BytesIO(content))
            archive.writestr(zipfile.ZipInfo(name), content)
    return [plain.getvalue(), packed.getvalue(), gzip.compress(plain.getvalue(), mtime=0)]


@cache
def _index() -> Sequence[bytes]:
    columns: dict[str, Any] = {field.name: pa.nulls(3, field.type) for field in RUN_SCHEMA}
    file = io.BytesIO()
    parquet.write_table(pa.table(columns, schema=RUN_SCHEMA), file, **PARQUET_WRITE_OPTIONS)
    return [file.getvalue()]


def _summaries() -> Sequence[bytes]:
    phase = {"phase": "write", "op": "write", "measured": True, "done": True, "bytes_per_s": 1e9, "seconds": 60.0}
    run = {
        "schema": "sonde-run/2",
        "id": "2026-01-01T00-00-00Z-quick-abcd",
        "status": "done",
        "started": "2026-01-01T00:00:00Z",
        "plan": {"id": "quick", "title": "Quick"},
        "tasks": 4,
        "series": {"version": 1, "system": "s", "experiment": "e", "target": "t"},
        "findings": [{"id": "short", "severity": "info"}],
        "phases": [phase],
    }
    return [json.dumps(run, indent=1).encode()]


def _superblocks() -> Sequence[bytes]:
    ext4 = bytearray(4096)
    ext4[1024 + 56 : 1024 + 58] = b"\x53\xef"
    return [b"XFSB" + bytes(4092), bytes(ext4)]


TARGETS: tuple[ReaderTarget, ...] = (
    ReaderTarget("record", RECORD_FILE, _read_record, _files("schema/record/example.ndjson"), mutations=60),
    ReaderTarget("summary", SUMMARY_FILE, _read_summary, _summaries, (UserError, RecordError)),
    ReaderTarget(
        "index",
        "part.parquet",
        lambda path: read_table_columns(path, RUN_SCHEMA.names, RUN_SCHEMA),
        _index,
        (OSError, pa.ArrowException),
    ),
    ReaderTarget("results", "results.txt", _read_results, _files("tests/data/results/*")),
    ReaderTarget(
        "csv",
        "rows.csv",
        _read_csv,
        _texts(
            "start,rate,tasks,op,phase\n2026-01-01T00:00:00Z,1.5,4,write,w\n1767225600,2,8,read,r\n",
            '"start","rate","tasks","op","phase"\r\n2026-01-01,nan,1,w,\r\n',
        ),
    ),
    ReaderTarget(
        "column map",
        "columns.toml",
        lambda path: read_column_map(path, ["rate=b"]),
        _texts('tool = "x"\n[columns]\ntime = "a"\nrate = {column = "b", unit = "GiB/s"}\nexperiment = ["c"]\n'),
    ),
    ReaderTarget("plan", "plan.json", lambda path: Plan.read(str(path)).resolve(), _files("schema/plan/example*.json")),
    ReaderTarget(
        "plan in TOML",
        "plan.toml",
        lambda path: Plan.read(str(path)),
        _plans_in_toml,
    ),
    ReaderTarget("system", "system.toml", _read_system, _files("systems/hpcs-demo.toml"), mutations=60),
    ReaderTarget(
        "experiment", "experiment.toml", read_experiment, _files("schema/experiment/examples/hpcs*.toml"), mutations=60
    ),
    ReaderTarget("events", "events.toml", read_events_file, _files("schema/event/example.toml")),
    ReaderTarget("event lines", "events.ndjson", read_events_file, _files("schema/event/example.ndjson")),
    ReaderTarget("trace", "trace.ndjson", _read_trace, _files("schema/trace/example.ndjson")),
    ReaderTarget(
        "trace of DFTracer", "trace.pfw", read_dftracer_job, _files("tests/data/dftracer/parent.pfw"), mutations=60
    ),
    ReaderTarget("pack", "pack.tar", _read_pack, _packs, UNREADABLE_PACK_ERRORS),
    ReaderTarget("tool output", "output.txt", lambda path: read_files([path]), _files("tests/data/layout/*")),
    ReaderTarget("routes", "routes.txt", lambda path: read_host_tables([path]), _routes),
    ReaderTarget("superblock", "device", lambda path: read_superblock(str(path)), _superblocks, (UserError, OSError)),
    ReaderTarget("ini of IO500", "config.ini", read_ini_file, _files("tests/data/io500/*.ini")),
    ReaderTarget(
        "result of IO500",
        "result.txt",
        lambda path: verify_result_hashes(DEFAULT_CONFIG, path),
        _files("tests/data/results/io500*", "tests/data/io500/*"),
    ),
    ReaderTarget(
        "telemetry",
        SAMPLED_FILE,
        _read_telemetry,
        _texts(
            '{"type": "telemetry", "schema": "sonde-telemetry/1", "host": "n1", "sources": {"disks": ["busy"]}}\n'
            '{"type": "sample", "time": 10.5, "disks": {"sda": [4096]}}\n'
            '{"type": "lost", "source": "disks", "text": "x"}\n'
        ),
    ),
    ReaderTarget(
        "telemetry of other programs",
        "counters.txt",
        lambda path: read_foreign_telemetry(path, TelemetryDefaults("server")),
        _telemetry_of_other_programs,
    ),
    ReaderTarget(
        "log", "messages", lambda path: scan_logs([path], _log_rules(), LogDefaults()), _log_lines, mutations=100
    ),
    ReaderTarget(
        "log of a watch",
        "messages",
        lambda path: follow_log(path, _follow_log_lines(), _log_rules(), LogDefaults()),
        _log_lines,
        mutations=30,
    ),
    ReaderTarget("rules of logs", "rules.toml", lambda path: compile_rules([path]), _files("lab/sonde/logs/rules/ce*")),
    ReaderTarget("rules of SEC", "rules.sec", read_sec_rule_file, _sec_rules),
    ReaderTarget(
        "watch file",
        "watch.toml",
        read_watch_file,
        _texts(
            'schema = "sonde-watch/1"\nzone = "UTC"\nbudget = 0.001\nquiet = ["22:00-06:00"]\n[[probes]]\nid = "a"\n'
            'plan = "quick"\non = "/fs"\nevery = "24 h"\n[[logs]]\nid = "l"\npath = "/y"\nnotify = "error"\n'
            '[[channels]]\nid = "f"\nto = "file"\npath = "/x"\n'
        ),
    ),
    ReaderTarget("state of a watch", STATE_FILE, lambda path: StateStore(path.parent).load_state(), _watch_states),
    ReaderTarget("program", "program", read_elf_header, lambda: [Path("/bin/true").read_bytes()[:4096]]),
    ReaderTarget(
        "sites",
        "sites.toml",
        lambda path: read_sites([path]),
        _texts('[cluster]\nscheduler = "slurm"\nlauncher = "srun"\nmodules = ["x"]\n'),
    ),
)
