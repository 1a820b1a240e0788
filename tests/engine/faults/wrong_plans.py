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
class Wrong:
    """One mistake. `says`: parts of the sentence, in any order."""

    changes: dict[str, Any]
    says: tuple[str, ...]
    code: int = 2

    @property
    def name(self) -> str:
        return ",".join(f"{path}={'absent' if value is DROP else value}" for path, value in self.changes.items())[:70]


def wrong(says: str | tuple[str, ...], code: int = 2, **changes: Any) -> Wrong:
    """`changes`: dots in paths are written as two underscores, indices as numbers."""
    parts = (says,) if isinstance(says, str) else says
    return Wrong({path.replace("__", "."): value for path, value in changes.items()}, parts, code)


def phases(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """A write, and phases that may depend on it."""
    return [TWO[0], *more]


MANY = {"mapping": "many", "count": 4}
STREAMS = [{"id": "a", "op": "write", "file": 0}, {"id": "b", "op": "read", "file": 1}]

SHAPE = [
    wrong("schema is missing: it must be text", schema=DROP),
    wrong('this engine reads "sonde-plan/2"', schema="sonde-plan/3"),
    wrong(("schema", "must be text"), schema=1),
    wrong("id is missing: it must be a name of letters", id=DROP),
    wrong(("id is", "letters, digits"), id="a/b"),
    wrong(("id is", "letters, digits"), id=""),
    wrong(("id is", "1 to 100 letters"), id="x" * 101),
    wrong("target is missing: it must be an object", target=DROP),
    wrong(("target is", "must be an object"), target="/tmp"),
    wrong("target.path is missing", target__path=DROP),
    wrong("target.path must name a directory", target__path=""),
    wrong("phases is missing: it must be a list", phases=DROP),
    wrong("phases is [], but must be a list with at least one entry", phases=[]),
    wrong(("phases is", "must be a list"), phases={"id": "w"}),
    wrong('phases[0] is "write", but must be an object', phases=["write"]),
    wrong("phase is not known; did you mean phases?", phase=[]),
    wrong("tasks.thread is not known; did you mean threads?", tasks={"thread": 2}),
    wrong("tasks.threads is 0, but must be a whole number from 1 to 4096", tasks={"threads": 0}),
    wrong("tasks.threads is 2.5, but must be a whole number", tasks={"threads": 2.5}),
    wrong('tasks.threads is "2", but must be a whole number', tasks={"threads": "2"}),
    wrong("tasks.processes is -1", tasks={"processes": -1}),
    wrong("tasks.pin is 1, but must be true or false", tasks={"pin": 1}),
    wrong("observe.slice must be from 1 us to 1 min", observe={"slice": "1ns"}),
    wrong("observe.max_slices is 4, but must be a whole number from 16", observe={"max_slices": 4}),
    wrong("limits.time must be more than zero", limits={"time": "0s"}),
    wrong("limits.volume is not known; there are begin, time", limits={"volume": 1}),
    wrong(("is not known; there are", "schema"), **{"a b\n": 1}),
    wrong(("limits.time", "unknown unit", "use ns, us, ms, s, min or h"), limits={"time": "5 weeks"}),
    wrong(("limits.time", "is not a duration such as 10s"), limits={"time": "soon"}),
]

TARGET = [
    wrong(("target.striping: ", "not told how to stripe files: leave it out"), target__striping={"count": 4}),
    wrong("target.striping says nothing: give it count, size, pool or start", target__striping={}),
    wrong("target.striping.count is 0: say how many targets a file gets", target__striping={"count": 0}),
    wrong("target.striping.count is -2, but must be a whole number from -1", target__striping={"count": -2}),
    wrong("target.striping.size must be a multiple of 64 KiB below 4 GiB", target__striping={"size": "100KiB"}),
    wrong("target.striping.size must be a multiple of 64 KiB below 4 GiB", target__striping={"size": "4GiB"}),
    wrong("target.striping.pool must be one name", target__striping={"pool": "two words"}),
    wrong("target.striping.start is -1, but must be a whole number from 0", target__striping={"start": -1}),
    wrong("target.striping.cont is not known; did you mean count?", target__striping={"cont": 2}),
    wrong("target.striping: no backend of the plan makes files", target__striping={"count": 2}, data__backend="null"),
    wrong("must be one name without '/'", target__directory="../other"),
    wrong("must be one name without '/'", target__directory=".."),
    wrong("must be one name without '/'", target__directory="a/b"),
    wrong("target.keep is", target__keep="yes"),
    wrong(("target.min_free", "more than a file can hold"), target__min_free="99999PiB"),
    wrong("name an existing directory on the file system under test", target__path="/absent/nowhere"),
    wrong("is not a directory: name one on the file system under test", target__path="/etc/passwd"),
    wrong("is not a directory: name one on the file system under test", target__path="/dev/null"),
]

DATA = [
    wrong(("backend is", "there are only posix"), data__backend="netcdf"),
    wrong(("files.mapping is", "shared, per_task"), data__files={"mapping": "per_rank"}),
    wrong("group_size is missing", data__files={"mapping": "per_group"}),
    wrong("group_size is only used with", data__files={"group_size": 2}),
    wrong("count is only used with", data__files={"count": 3}),
    wrong("plain file name", data__files={"name": "a/b"}),
    wrong("plain file name", data__files={"name": ".hidden"}),
    wrong("plain file name", data__files={"name": ""}),
    wrong("does not go with one shared file", data__files={"mapping": "shared", "directories": "per_task"}),
    wrong("'1M' is ambiguous: write 1MiB (powers of 1024) or 1MB (powers of 1000)", data__access={"transfer": "1M"}),
    wrong("unknown unit", data__access={"transfer": "1 Mio"}),
    wrong("is not a number of bytes such as 4KiB", data__access={"transfer": "big"}),
    wrong("is not a whole number of bytes", data__access={"transfer": "0.3B"}),
    wrong("access.transfer must be from 1 B to 1 GiB", data__access={"transfer": 0}),
    wrong("access.transfer must be from 1 B to 1 GiB", data__access={"transfer": "2GiB"}),
    wrong("access.transfer is -4096", data__access={"transfer": -4096}),
    wrong("must be a multiple of transfer (65536 B)", data__access={"transfer": "64KiB", "block": "100KiB"}),
    wrong("segments and volume exclude each other", data__access={"segments": 2, "volume": "1MiB"}),
    wrong("access.segments is 0", data__access={"segments": 0}),
    wrong("access.volume must be more than zero", data__access={"volume": 0}),
    wrong(("volume.of is", "bytes, node_memory"), data__access={"volume": {"of": "ram", "x": 1}}),
    wrong("volume.bytes is missing", data__access={"volume": {"per": "task"}}),
    wrong("access.stride must be at least transfer", data__access={"order": "stride", "stride": 512}),
    wrong("access.stride is only used with order", data__access={"stride": "1MiB"}),
    wrong(("access.order is", "sequential, reverse"), data__access={"order": "random"}),
    wrong("beyond the largest file (4 EiB)", data__access={"offset": "4096PiB"}),
    wrong("beyond the largest file (4 EiB)", data__access={"transfer": "1MiB", "segments": 2**60}),
    wrong(
        "more than 4 EiB",
        data__files={**MANY, "count": 100_000_000},
        data__access={"volume": "2PiB"},
        tasks={"threads": 4096},
    ),
    wrong("read_ratio is only used with", data__access={"read_ratio": 0.5}),
    wrong(("direct", "multiple of 512 B"), data__access={"transfer": 1000}, data__io={"direct": True}),
    wrong('data.io.queue_depth is 4, but backend "posix" does one operation at a time', data__io={"queue_depth": 4}),
    wrong("io.queue_depth is 5000, but must be a whole number from 1 to 4096", data__io={"queue_depth": 5000}),
    wrong("io.collective needs backend mpiio or hdf5 or pnetcdf", data__io={"collective": True}),
    wrong("io.hints needs backend mpiio or hdf5 or pnetcdf", data__io={"hints": {"cb_nodes": "2"}}),
    wrong(("io.sync is", "none, dsync, sync"), data__io={"sync": "osync"}),
    wrong("data.io.fsyncs is not known; did you mean fsync?", data__io={"fsyncs": "end"}),
    wrong(("payload.kind is", "stamped, random, zero"), data__payload={"kind": "ones"}),
    wrong("compressible is 1.5, but must be a number from 0.0 to 1.0", data__payload={"compressible": 1.5}),
    wrong(("verify is", "none, on_read, readback, both"), data__verify=True),
    wrong("is useless with payload.kind", data__verify="on_read", data__payload={"kind": "zero"}, phases=TWO),
    wrong("keeps no data", data__verify="on_read", data__backend="null", phases=TWO),
    wrong(
        "schedule and rate exclude each other",
        data__backend="paced",
        data__paced={"rate": "1MB/s", "schedule": [{"at": 0, "rate": "1MB/s"}]},
    ),
    wrong(
        "must begin at 0 and have ascending times",
        data__backend="paced",
        data__paced={"schedule": [{"at": "1s", "rate": "1MB/s"}]},
    ),
    wrong("is not a rate such as 100MB/s", data__backend="paced", data__paced={"rate": "100MB"}),
    wrong("is 0, but a rate must be from 1 B/s to 1e18 B/s", data__backend="paced", data__paced={"rate": 0}),
    wrong(
        "must be a task number with a factor",
        data__backend="paced",
        data__paced={"rate": "1MB/s", "slow_tasks": {"x": 2}},
    ),
    wrong("fail_errno is 0", data__backend="paced", data__paced={"rate": "1MB/s", "fail_errno": 0}),
    wrong(
        "of buffers and meters on a node",
        data__access={"transfer": "1GiB", "block": "1GiB"},
        data__io={"queue_depth": 4096},
        data__backend="io_uring",
    ),
]

PHASES = [
    wrong("phases[0].id is missing", phases=[{"op": "write"}]),
    wrong("phases[0].op is missing: it must be one of write, rewrite", phases=[{"id": "w"}]),
    wrong(("phases[0].op is", "write, rewrite, read"), phases=[{"id": "w", "op": "append"}]),
    wrong('"w" is used twice', phases=[TWO[0], TWO[0]]),
    wrong("no earlier phase writes the data", phases=[{"id": "r", "op": "read"}]),
    wrong("no earlier phase of that name writes", phases=phases({"id": "r", "op": "read", "data_of": "x"})),
    wrong("phases[0].stops is not known; did you mean stop?", phases=[{"id": "w", "op": "write", "stops": {}}]),
    wrong("stop.time must be more than zero", phases=[{"id": "w", "op": "write", "stop": {"time": "0s"}}]),
    wrong("stop.time stands alone", phases=[{"id": "w", "op": "write", "stop": {"time": "1s", "stonewall": "2s"}}]),
    wrong("wearout needs stop.stonewall", phases=[{"id": "w", "op": "write", "stop": {"wearout": True}}]),
    wrong(
        "is longer than stop.stonewall",
        phases=[{"id": "w", "op": "write", "stop": {"stonewall": "1s", "min_time": "2s"}}],
    ),
    wrong("shift is for reads", phases=[{"id": "w", "op": "write", "shift": {"by": "tasks"}}]),
    wrong(("shift.by is", "none, tasks, nodes"), phases=phases({"id": "r", "op": "read", "shift": {"by": "rank"}})),
    wrong("before[0].kind is missing: it must be one of sync", phases=[{"id": "w", "op": "write", "before": [{}]}]),
    wrong(("before[0].kind is", "drop_page_cache"), phases=[{"id": "w", "op": "write", "before": [{"kind": "drop"}]}]),
    wrong(
        "before[0].time is missing: how long to sleep",
        phases=[{"id": "w", "op": "write", "before": [{"kind": "sleep"}]}],
    ),
    wrong("before[0].command is missing", phases=[{"id": "w", "op": "write", "before": [{"kind": "command"}]}]),
    wrong("before[0].fraction is missing", phases=[{"id": "w", "op": "write", "before": [{"kind": "memory_hog"}]}]),
    wrong("files is only used with files.mapping", phases=[{"id": "w", "op": "write", "files": [0]}]),
    wrong("names file 9, but files.count is 4", data__files=MANY, phases=[{"id": "w", "op": "write", "files": [9]}]),
    wrong(
        'does not go with files.mapping = "many"',
        data__files=MANY,
        phases=[{"id": "w", "op": "write", "barrier": "intra"}],
    ),
    wrong("has no meaning for the first phase", phases=[{"id": "w", "op": "write", "process": "separate"}]),
    wrong("read_ratio is missing", phases=phases({"id": "m", "op": "mixed"})),
    wrong("streams must be two", phases=phases({"id": "d", "op": "duplex"})),
    wrong("need files.mapping", phases=phases({"id": "d", "op": "duplex", "streams": STREAMS})),
    wrong("within is only used with order", data__access={"within": 4096}),
    wrong(
        ("within is 5000 B", "a multiple of transfer"),
        data__access={"transfer": 4096, "segments": 1, "order": "random_replace", "within": 5000},
    ),
    wrong('streams are only used with op = "duplex"', phases=[{"id": "w", "op": "write", "streams": STREAMS}]),
    wrong("phases[1].access.transfer is", phases=phases({"id": "r", "op": "read", "access": {"transfer": None}})),
]

CODE_3 = [
    wrong("already exists: choose another target.directory", code=3, target__directory="taken"),
    wrong(
        ("free, but the plan needs", "make the volume smaller"),
        code=3,
        data__access={"transfer": "1MiB", "volume": "3PiB"},
    ),
]

TREE = {"items_per_dir": 3}


def on_tree(says: str | tuple[str, ...], phase: dict[str, Any], **meta: Any) -> Wrong:
    """A plan about a tree with one phase."""
    return wrong(says, data=DROP, meta={"tree": TREE, **meta}, phases=[{"id": "p", **phase}])


NAMES = [
    on_tree("meta.tree.leafs is not known", {"op": "create"}, tree={"leafs": True}),
    on_tree("meta.tree.depth and branching make more than", {"op": "mktree"}, tree={"depth": 40, "branching": 2}),
    on_tree(("meta.tree.depth is 9000", "at most"), {"op": "mktree"}, tree={"depth": 9000}),
    on_tree("must be a multiple of the 7", {"op": "create"}, tree={"depth": 2, "branching": 2, "items_per_task": 10}),
    on_tree("exclude each other", {"op": "create"}, tree={"items_per_dir": 1, "items_per_task": 1}),
    on_tree("has no items: give it items_per_dir", {"op": "stat"}, tree={}),
    on_tree("must be a plain name", {"op": "create"}, names={"file": "../x"}),
    on_tree("must differ from each other", {"op": "create"}, names={"file": "a", "directory": "a"}),
    on_tree("only files are opened and read", {"op": "read"}, objects="directories"),
    on_tree("so file.write must be 0", {"op": "create"}, file={"create": "mknod", "write": 1}),
    on_tree("is more than 1 GiB", {"op": "create"}, file={"write": "2GiB"}),
    on_tree("must be creation or permute", {"op": "remove"}, select={"order": "zipf"}),
    on_tree("must be creation: each item takes", {"op": "rename"}, select={"order": "permute"}),
    on_tree("none of type, mode", {"op": "stat"}, lookup={"stat": "statx", "fields": ["name"]}),
    on_tree("must not repeat op", {"op": "create", "stop": {"time": "1s"}}),
    on_tree("works on directories: leave it out", {"op": "walk", "stop": {"items": 3}}),
    on_tree("works on directories: leave it out", {"op": "readdir", "stop": {"items": 3}}),
    on_tree("for a tree use stop.items", {"op": "walk", "stop": {"operations": 3}}),
    on_tree("wearout has no meaning", {"op": "walk", "stop": {"stonewall": "1s", "wearout": True}}),
    on_tree("is for what comes after", {"op": "create", "shift": {"by": "tasks", "n": 1}}),
    on_tree("lets two tasks change the same item", {"op": "remove", "shift": {"by": "random"}}),
    on_tree("needs meta.file.read from 1 B", {"op": "read", "verify": "on_read"}, file={"write": 4}),
    on_tree("is for data, but this phase works on a tree", {"op": "create", "access": {"transfer": 1}}),
    on_tree("has no operations on names", {"op": "create", "backend": "mmap"}),
    on_tree("keeps nothing", {"op": "walk", "backend": "null"}),
    on_tree('on is "data", but op = "walk"', {"op": "walk", "on": "data"}),
    wrong("phases[1].meta is for operations on a tree", phases=phases({"id": "r", "op": "read", "meta": {}})),
    wrong("stop.items counts the items of a tree", phases=[{"id": "w", "op": "write", "stop": {"items": 3}}]),
    wrong("meta.tree.depth is", meta={"tree": {"depth": -1}}),
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
