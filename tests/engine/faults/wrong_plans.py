# SPDX-License-Identifier: Apache-2.0
"""Wrong plans: what is changed in a good one, and a part of the sentence that must come. A value of DROP removes the
member; a path is written with dots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DROP = object()
TWO: list[dict[str, Any]] = [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]


@dataclass(frozen=True)
class WrongPlan:
    """One mistake. `says`: parts of the sentence, in any order."""

    changes: dict[str, Any]
    says: tuple[str, ...]
    code: int = 2

    @property
    def name(self) -> str:
        return ",".join(f"{path}={'absent' if value is DROP else value}" for path, value in self.changes.items())[:70]


def make_wrong_plan(expected_texts: str | tuple[str, ...], expected_exit_code: int = 2, **changes: Any) -> WrongPlan:
    """`changes`: dots in paths are written as two underscores, indices as numbers."""
    parts = (expected_texts,) if isinstance(expected_texts, str) else expected_texts
    return WrongPlan({path.replace("__", "."): value for path, value in changes.items()}, parts, expected_exit_code)


def make_phases(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """A write, and phases that may depend on it."""
    return [TWO[0], *more]


MANY = {"mapping": "many", "count": 4}
STREAMS = [{"id": "a", "op": "write", "file": 0}, {"id": "b", "op": "read", "file": 1}]

SHAPE = [
    make_wrong_plan("schema is missing: it must be text", schema=DROP),
    make_wrong_plan('this engine reads "sonde-plan/2"', schema="sonde-plan/3"),
    make_wrong_plan(("schema", "must be text"), schema=1),
    make_wrong_plan("id is missing: it must be a name of letters", id=DROP),
    make_wrong_plan(("id is", "letters, digits"), id="a/b"),
    make_wrong_plan(("id is", "letters, digits"), id=""),
    make_wrong_plan(("id is", "1 to 100 letters"), id="x" * 101),
    make_wrong_plan("target is missing: it must be an object", target=DROP),
    make_wrong_plan(("target is", "must be an object"), target="/tmp"),
    make_wrong_plan("target.path is missing", target__path=DROP),
    make_wrong_plan("target.path must name a directory", target__path=""),
    make_wrong_plan("phases is missing: it must be a list", phases=DROP),
    make_wrong_plan("phases is [], but must be a list with at least one entry", phases=[]),
    make_wrong_plan(("phases is", "must be a list"), phases={"id": "w"}),
    make_wrong_plan('phases[0] is "write", but must be an object', phases=["write"]),
    make_wrong_plan("phase is not known; did you mean phases?", phase=[]),
    make_wrong_plan("tasks.thread is not known; did you mean threads?", tasks={"thread": 2}),
    make_wrong_plan("tasks.threads is 0, but must be a whole number from 1 to 4096", tasks={"threads": 0}),
    make_wrong_plan("tasks.threads is 2.5, but must be a whole number", tasks={"threads": 2.5}),
    make_wrong_plan('tasks.threads is "2", but must be a whole number', tasks={"threads": "2"}),
    make_wrong_plan("tasks.processes is -1", tasks={"processes": -1}),
    make_wrong_plan("tasks.pin is 1, but must be true or false", tasks={"pin": 1}),
    make_wrong_plan("observe.slice must be from 1 us to 1 min", observe={"slice": "1ns"}),
    make_wrong_plan("observe.max_slices is 4, but must be a whole number from 16", observe={"max_slices": 4}),
    make_wrong_plan("limits.time must be more than zero", limits={"time": "0s"}),
    make_wrong_plan("limits.volume is not known; there are begin, time", limits={"volume": 1}),
    make_wrong_plan(("is not known; there are", "schema"), **{"a b\n": 1}),
    make_wrong_plan(("limits.time", "unknown unit", "use ns, us, ms, s, min or h"), limits={"time": "5 weeks"}),
    make_wrong_plan(("limits.time", "is not a duration such as 10s"), limits={"time": "soon"}),
]

TARGET = [
    make_wrong_plan(("target.striping: ", "not told how to stripe files: leave it out"), target__striping={"count": 4}),
    make_wrong_plan("target.striping says nothing: give it count, size, pool or start", target__striping={}),
    make_wrong_plan("target.striping.count is 0: say how many targets a file gets", target__striping={"count": 0}),
    make_wrong_plan("target.striping.count is -2, but must be a whole number from -1", target__striping={"count": -2}),
    make_wrong_plan(
        "target.striping.size must be a multiple of 64 KiB below 4 GiB", target__striping={"size": "100KiB"}
    ),
    make_wrong_plan("target.striping.size must be a multiple of 64 KiB below 4 GiB", target__striping={"size": "4GiB"}),
    make_wrong_plan("target.striping.pool must be one name", target__striping={"pool": "two words"}),
    make_wrong_plan("target.striping.start is -1, but must be a whole number from 0", target__striping={"start": -1}),
    make_wrong_plan("target.striping.cont is not known; did you mean count?", target__striping={"cont": 2}),
    make_wrong_plan(
        "target.striping: no backend of the plan makes files", target__striping={"count": 2}, data__backend="null"
    ),
    make_wrong_plan("must be one name without '/'", target__directory="../other"),
    make_wrong_plan("must be one name without '/'", target__directory=".."),
    make_wrong_plan("must be one name without '/'", target__directory="a/b"),
    make_wrong_plan("target.keep is", target__keep="yes"),
    make_wrong_plan(("target.min_free", "more than a file can hold"), target__min_free="99999PiB"),
    make_wrong_plan("name an existing directory on the file system under test", target__path="/absent/nowhere"),
    make_wrong_plan("is not a directory: name one on the file system under test", target__path="/etc/passwd"),
    make_wrong_plan("is not a directory: name one on the file system under test", target__path="/dev/null"),
]

DATA = [
    make_wrong_plan(("backend is", "there are only posix"), data__backend="netcdf"),
    make_wrong_plan(("files.mapping is", "shared, per_task"), data__files={"mapping": "per_rank"}),
    make_wrong_plan("group_size is missing", data__files={"mapping": "per_group"}),
    make_wrong_plan("group_size is only used with", data__files={"group_size": 2}),
    make_wrong_plan("count is only used with", data__files={"count": 3}),
    make_wrong_plan("plain file name", data__files={"name": "a/b"}),
    make_wrong_plan("plain file name", data__files={"name": ".hidden"}),
    make_wrong_plan("plain file name", data__files={"name": ""}),
    make_wrong_plan("does not go with one shared file", data__files={"mapping": "shared", "directories": "per_task"}),
    make_wrong_plan(
        "'1M' is ambiguous: write 1MiB (powers of 1024) or 1MB (powers of 1000)", data__access={"transfer": "1M"}
    ),
    make_wrong_plan("unknown unit", data__access={"transfer": "1 Mio"}),
    make_wrong_plan("is not a number of bytes such as 4KiB", data__access={"transfer": "big"}),
    make_wrong_plan("is not a whole number of bytes", data__access={"transfer": "0.3B"}),
    make_wrong_plan("access.transfer must be from 1 B to 1 GiB", data__access={"transfer": 0}),
    make_wrong_plan("access.transfer must be from 1 B to 1 GiB", data__access={"transfer": "2GiB"}),
    make_wrong_plan("access.transfer is -4096", data__access={"transfer": -4096}),
    make_wrong_plan("must be a multiple of transfer (65536 B)", data__access={"transfer": "64KiB", "block": "100KiB"}),
    make_wrong_plan("segments and volume exclude each other", data__access={"segments": 2, "volume": "1MiB"}),
    make_wrong_plan("access.segments is 0", data__access={"segments": 0}),
    make_wrong_plan("access.volume must be more than zero", data__access={"volume": 0}),
    make_wrong_plan(("volume.of is", "bytes, node_memory"), data__access={"volume": {"of": "ram", "x": 1}}),
    make_wrong_plan("volume.bytes is missing", data__access={"volume": {"per": "task"}}),
    make_wrong_plan("access.stride must be at least transfer", data__access={"order": "stride", "stride": 512}),
    make_wrong_plan("access.stride is only used with order", data__access={"stride": "1MiB"}),
    make_wrong_plan(("access.order is", "sequential, reverse"), data__access={"order": "random"}),
    make_wrong_plan("beyond the largest file (4 EiB)", data__access={"offset": "4096PiB"}),
    make_wrong_plan("beyond the largest file (4 EiB)", data__access={"transfer": "1MiB", "segments": 2**60}),
    make_wrong_plan(
        "more than 4 EiB",
        data__files={**MANY, "count": 100_000_000},
        data__access={"volume": "2PiB"},
        tasks={"threads": 4096},
    ),
    make_wrong_plan("read_ratio is only used with", data__access={"read_ratio": 0.5}),
    make_wrong_plan(("direct", "multiple of 512 B"), data__access={"transfer": 1000}, data__io={"direct": True}),
    make_wrong_plan(
        'data.io.queue_depth is 4, but backend "posix" does one operation at a time', data__io={"queue_depth": 4}
    ),
    make_wrong_plan(
        "io.queue_depth is 5000, but must be a whole number from 1 to 4096", data__io={"queue_depth": 5000}
    ),
    make_wrong_plan("io.collective needs backend mpiio or hdf5 or pnetcdf", data__io={"collective": True}),
    make_wrong_plan("io.hints needs backend mpiio or hdf5 or pnetcdf", data__io={"hints": {"cb_nodes": "2"}}),
    make_wrong_plan(("io.sync is", "none, dsync, sync"), data__io={"sync": "osync"}),
    make_wrong_plan("data.io.fsyncs is not known; did you mean fsync?", data__io={"fsyncs": "end"}),
    make_wrong_plan(("payload.kind is", "stamped, random, zero"), data__payload={"kind": "ones"}),
    make_wrong_plan("compressible is 1.5, but must be a number from 0.0 to 1.0", data__payload={"compressible": 1.5}),
    make_wrong_plan(("verify is", "none, on_read, readback, both"), data__verify=True),
    make_wrong_plan("is useless with payload.kind", data__verify="on_read", data__payload={"kind": "zero"}, phases=TWO),
    make_wrong_plan("keeps no data", data__verify="on_read", data__backend="null", phases=TWO),
    make_wrong_plan(
        "schedule and rate exclude each other",
        data__backend="paced",
        data__paced={"rate": "1MB/s", "schedule": [{"at": 0, "rate": "1MB/s"}]},
    ),
    make_wrong_plan(
        "must begin at 0 and have ascending times",
        data__backend="paced",
        data__paced={"schedule": [{"at": "1s", "rate": "1MB/s"}]},
    ),
    make_wrong_plan("is not a rate such as 100MB/s", data__backend="paced", data__paced={"rate": "100MB"}),
    make_wrong_plan("is 0, but a rate must be from 1 B/s to 1e18 B/s", data__backend="paced", data__paced={"rate": 0}),
    make_wrong_plan(
        "must be a task number with a factor",
        data__backend="paced",
        data__paced={"rate": "1MB/s", "slow_tasks": {"x": 2}},
    ),
    make_wrong_plan("fail_errno is 0", data__backend="paced", data__paced={"rate": "1MB/s", "fail_errno": 0}),
    make_wrong_plan(
        "of buffers and meters on a node",
        data__access={"transfer": "1GiB", "block": "1GiB"},
        data__io={"queue_depth": 4096},
        data__backend="io_uring",
    ),
]

PHASES = [
    make_wrong_plan("phases[0].id is missing", phases=[{"op": "write"}]),
    make_wrong_plan("phases[0].op is missing: it must be one of write, rewrite", phases=[{"id": "w"}]),
    make_wrong_plan(("phases[0].op is", "write, rewrite, read"), phases=[{"id": "w", "op": "append"}]),
    make_wrong_plan('"w" is used twice', phases=[TWO[0], TWO[0]]),
    make_wrong_plan("no earlier phase writes the data", phases=[{"id": "r", "op": "read"}]),
    make_wrong_plan(
        "no earlier phase of that name writes", phases=make_phases({"id": "r", "op": "read", "data_of": "x"})
    ),
    make_wrong_plan(
        "phases[0].stops is not known; did you mean stop?", phases=[{"id": "w", "op": "write", "stops": {}}]
    ),
    make_wrong_plan("stop.time must be more than zero", phases=[{"id": "w", "op": "write", "stop": {"time": "0s"}}]),
    make_wrong_plan(
        "stop.time stands alone", phases=[{"id": "w", "op": "write", "stop": {"time": "1s", "stonewall": "2s"}}]
    ),
    make_wrong_plan("wearout needs stop.stonewall", phases=[{"id": "w", "op": "write", "stop": {"wearout": True}}]),
    make_wrong_plan(
        "is longer than stop.stonewall",
        phases=[{"id": "w", "op": "write", "stop": {"stonewall": "1s", "min_time": "2s"}}],
    ),
    make_wrong_plan("shift is for reads", phases=[{"id": "w", "op": "write", "shift": {"by": "tasks"}}]),
    make_wrong_plan(
        ("shift.by is", "none, tasks, nodes"), phases=make_phases({"id": "r", "op": "read", "shift": {"by": "rank"}})
    ),
    make_wrong_plan(
        "before[0].kind is missing: it must be one of sync", phases=[{"id": "w", "op": "write", "before": [{}]}]
    ),
    make_wrong_plan(
        ("before[0].kind is", "drop_page_cache"), phases=[{"id": "w", "op": "write", "before": [{"kind": "drop"}]}]
    ),
    make_wrong_plan(
        "before[0].time is missing: how long to sleep",
        phases=[{"id": "w", "op": "write", "before": [{"kind": "sleep"}]}],
    ),
    make_wrong_plan(
        "before[0].command is missing", phases=[{"id": "w", "op": "write", "before": [{"kind": "command"}]}]
    ),
    make_wrong_plan(
        "before[0].fraction is missing", phases=[{"id": "w", "op": "write", "before": [{"kind": "memory_hog"}]}]
    ),
    make_wrong_plan("files is only used with files.mapping", phases=[{"id": "w", "op": "write", "files": [0]}]),
    make_wrong_plan(
        "names file 9, but files.count is 4", data__files=MANY, phases=[{"id": "w", "op": "write", "files": [9]}]
    ),
    make_wrong_plan(
        'does not go with files.mapping = "many"',
        data__files=MANY,
        phases=[{"id": "w", "op": "write", "barrier": "intra"}],
    ),
    make_wrong_plan("has no meaning for the first phase", phases=[{"id": "w", "op": "write", "process": "separate"}]),
    make_wrong_plan("read_ratio is missing", phases=make_phases({"id": "m", "op": "mixed"})),
    make_wrong_plan("streams must be two", phases=make_phases({"id": "d", "op": "duplex"})),
    make_wrong_plan("need files.mapping", phases=make_phases({"id": "d", "op": "duplex", "streams": STREAMS})),
    make_wrong_plan("within is only used with order", data__access={"within": 4096}),
    make_wrong_plan(
        ("within is 5000 B", "a multiple of transfer"),
        data__access={"transfer": 4096, "segments": 1, "order": "random_replace", "within": 5000},
    ),
    make_wrong_plan(
        'streams are only used with op = "duplex"', phases=[{"id": "w", "op": "write", "streams": STREAMS}]
    ),
    make_wrong_plan(
        "phases[1].access.transfer is", phases=make_phases({"id": "r", "op": "read", "access": {"transfer": None}})
    ),
]

CODE_3 = [
    make_wrong_plan("already exists: choose another target.directory", expected_exit_code=3, target__directory="taken"),
    make_wrong_plan(
        ("free, but the plan needs", "make the volume smaller"),
        expected_exit_code=3,
        data__access={"transfer": "1MiB", "volume": "3PiB"},
    ),
]

TREE = {"items_per_dir": 3}


def make_wrong_tree_plan(expected_texts: str | tuple[str, ...], phase: dict[str, Any], **meta: Any) -> WrongPlan:
    """A plan about a tree with one phase."""
    return make_wrong_plan(expected_texts, data=DROP, meta={"tree": TREE, **meta}, phases=[{"id": "p", **phase}])


NAMES = [
    make_wrong_tree_plan("meta.tree.leafs is not known", {"op": "create"}, tree={"leafs": True}),
    make_wrong_tree_plan(
        "meta.tree.depth and branching make more than", {"op": "mktree"}, tree={"depth": 40, "branching": 2}
    ),
    make_wrong_tree_plan(("meta.tree.depth is 9000", "at most"), {"op": "mktree"}, tree={"depth": 9000}),
    make_wrong_tree_plan(
        "must be a multiple of the 7", {"op": "create"}, tree={"depth": 2, "branching": 2, "items_per_task": 10}
    ),
    make_wrong_tree_plan("exclude each other", {"op": "create"}, tree={"items_per_dir": 1, "items_per_task": 1}),
    make_wrong_tree_plan("has no items: give it items_per_dir", {"op": "stat"}, tree={}),
    make_wrong_tree_plan("must be a plain name", {"op": "create"}, names={"file": "../x"}),
    make_wrong_tree_plan("must differ from each other", {"op": "create"}, names={"file": "a", "directory": "a"}),
    make_wrong_tree_plan("only files are opened and read", {"op": "read"}, objects="directories"),
    make_wrong_tree_plan("so file.write must be 0", {"op": "create"}, file={"create": "mknod", "write": 1}),
    make_wrong_tree_plan("is more than 1 GiB", {"op": "create"}, file={"write": "2GiB"}),
    make_wrong_tree_plan("must be creation or permute", {"op": "remove"}, select={"order": "zipf"}),
    make_wrong_tree_plan("must be creation: each item takes", {"op": "rename"}, select={"order": "permute"}),
    make_wrong_tree_plan("none of type, mode", {"op": "stat"}, lookup={"stat": "statx", "fields": ["name"]}),
    make_wrong_tree_plan("must not repeat op", {"op": "create", "stop": {"time": "1s"}}),
    make_wrong_tree_plan("works on directories: leave it out", {"op": "walk", "stop": {"items": 3}}),
    make_wrong_tree_plan("works on directories: leave it out", {"op": "readdir", "stop": {"items": 3}}),
    make_wrong_tree_plan("for a tree use stop.items", {"op": "walk", "stop": {"operations": 3}}),
    make_wrong_tree_plan("wearout has no meaning", {"op": "walk", "stop": {"stonewall": "1s", "wearout": True}}),
    make_wrong_tree_plan("is for what comes after", {"op": "create", "shift": {"by": "tasks", "n": 1}}),
    make_wrong_tree_plan("lets two tasks change the same item", {"op": "remove", "shift": {"by": "random"}}),
    make_wrong_tree_plan("needs meta.file.read from 1 B", {"op": "read", "verify": "on_read"}, file={"write": 4}),
    make_wrong_tree_plan("is for data, but this phase works on a tree", {"op": "create", "access": {"transfer": 1}}),
    make_wrong_tree_plan("has no operations on names", {"op": "create", "backend": "mmap"}),
    make_wrong_tree_plan("keeps nothing", {"op": "walk", "backend": "null"}),
    make_wrong_tree_plan('on is "data", but op = "walk"', {"op": "walk", "on": "data"}),
    make_wrong_plan(
        "phases[1].meta is for operations on a tree", phases=make_phases({"id": "r", "op": "read", "meta": {}})
    ),
    make_wrong_plan("stop.items counts the items of a tree", phases=[{"id": "w", "op": "write", "stop": {"items": 3}}]),
    make_wrong_plan("meta.tree.depth is", meta={"tree": {"depth": -1}}),
]

WRONG_PLANS = [*SHAPE, *TARGET, *DATA, *PHASES, *NAMES, *CODE_3]

TEXTS: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "is empty"),
    ("spaces", b"  \n ", "is empty"),
    ("no JSON", b"target = '/tmp'\n", "is not JSON: line 1, column 2"),
    ("TOML", b'schema = "sonde-plan/2"\nid = "x"\n', "it looks like TOML, which `sonde run` reads"),
    ("cut off", b'{"schema": "sonde-plan/2",\n "id": ', "is not JSON: line 2, column"),
    ("trailing comma", b'{"a": 1,}', "is not JSON: line 1, column 9"),
    ("a list", b"[]", "must be a JSON object"),
    ("a number", b"17", "must be a JSON object"),
    ("too deep", b"[" * 100_000, "nested more than 64 levels"),
    ("huge number", b'{"id": 1e999}', "beyond what a computer can hold"),
    ("bytes", bytes(range(128, 256)), "is not JSON"),
    ("NUL", b"\0" * 20, "is not JSON"),
    ("twice", b'{"schema": "sonde-plan/2", "id": "a", "id": "b"}', '"id" is there twice'),
    ("bad UTF-8", b'{"schema": "sonde-plan/2", "id": "\xff\xfe"}', "is not JSON"),
]
