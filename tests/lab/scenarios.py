# SPDX-License-Identifier: Apache-2.0
"""Runs for tests of reports: one for each kind of content a record may have or lack."""

from __future__ import annotations

from record_scene import MIB, Scene, Work, ramping, steady, stepped

HOSTILE = "/scratch/a \"b\" 'c' <script>alert(1)</script>&amp;\n\x1b[31m\udcff\u202egpj.txt"

_DROPPED = (
    {"kind": "sync", "outcome": "done", "seconds": 0.2, "text": "Wrote all dirty data back."},
    {
        "kind": "drop_page_cache",
        "outcome": "done",
        "seconds": 0.35,
        "text": "Dropped the page cache of this node.",
        "residency_before": 0.98,
        "residency_after": 0.0,
    },
)
_SUSPECT = {
    "id": "cache_suspect",
    "severity": "warning",
    "text": "100 % of the data was in this node's page cache before the phase: not a storage number",
    "advice": "drop the cache before",
    "evidence": {"residency": 1.0},
}
_RANDOM = {
    "access": {"transfer": "4KiB", "order": "random_permute"},
    "io": {"direct": True, "queue_depth": 32},
    "backend": "io_uring",
}
COLD_READ = Work(
    "read", "read", stepped(620e6, 280e6, 1.9), 3.0, cache="cold", residency=0.0, fsync=0, treatments=_DROPPED
)
CACHED_READ = Work(
    "reread", "reread", steady(2.1e9), 1.2, cache="warm", residency=1.0, fsync=0, findings=(_SUSPECT,), transfer=MIB
)
RANDOM = Work(
    "random-read",
    "read",
    steady(80e6),
    2.0,
    transfer=4096,
    direct=True,
    cache="direct",
    fsync=0,
    backend="io_uring",
    plan=_RANDOM,
)
_EIO = {
    "task": 2,
    "node": 0,
    "host": "node17",
    "path": HOSTILE,
    "offset": 4096,
    "operation": "read",
    "errno": 5,
    "name": "EIO",
    "text": f"read of {HOSTILE} failed on node17: Input/output error (EIO)",
}

SCENARIOS: dict[str, Scene] = {
    "typical": Scene(works=[Work("write", "write", steady(480e6), 4.0), COLD_READ, CACHED_READ, RANDOM]),
    "stepped": Scene(works=[Work(curve=stepped(400e6, 100e6, 2.0))]),
    "ramping": Scene(works=[Work(curve=ramping(900e6, 300e6, 4.0))], tasks=1),
    "slow task": Scene(
        works=[Work(curve=steady(100e6), seconds=5.0, slow={11: 10.0}, stonewall=4.0)], tasks=32, nodes=4
    ),
    "one task": Scene(works=[Work()], tasks=1),
    "many tasks": Scene(works=[Work(curve=steady(20e6), seconds=20.0, noise=0.12, slice_s=0.1)], tasks=5000, nodes=100),
    "failed": Scene(
        works=[Work(), Work("read", "read", ends=False, errors=(_EIO,))],
        status="failed",
        text="Task 2 on node17 could not read: Input/output error.",
    ),
    "interrupted": Scene(works=[Work(), Work("read", "read", ends=False)], status="interrupted", text="SIGINT."),
    "lost": Scene(works=[Work(), Work("read", "read", ends=False)], ends=False),
    "nothing moved": Scene(works=[Work(curve=steady(0.0), seconds=0.5, fsync=0)]),
    "odd names": Scene(works=[Work()], path=HOSTILE, title=HOSTILE, hosts=(HOSTILE,)),
    "in memory": Scene(works=[Work()], file_system={"type": "tmpfs", "source": "tmpfs", "memory_backed": True}),
}
