# SPDX-License-Identifier: Apache-2.0
"""Verification finds damage of every kind, names the place and the writer, and finds nothing in whole data.

Each run writes its files, keeps a copy, writes them again (so that there is an older generation), and damages one block
in a treatment before the read. `lying_storage.c` does the same between a write and its read-back.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from engine_under_test import DONE, MISMATCH, Engine, Line, Plan, Result, write_plan

KIB = 1024
TASKS = 2
FILES = 3  # of each task, mapping many
WRITER = 1  # whose data is damaged
SIZES = {
    "4KiB": {"transfer": 4 * KIB, "block": 32 * KIB, "segments": 3},
    "64KiB": {"transfer": 64 * KIB, "block": 256 * KIB, "segments": 2},
    "records": {"transfer": 10_000, "block": 1_000_000, "segments": 1},
}
# Every backend with every mapping, each of them with every size.
SETUPS = [
    ("posix", "shared", "4KiB"),
    ("posix", "per_task", "64KiB"),
    ("posix", "many", "records"),
    ("io_uring", "shared", "64KiB"),
    ("io_uring", "per_task", "records"),
    ("io_uring", "many", "4KiB"),
    ("mmap", "shared", "records"),
    ("mmap", "per_task", "4KiB"),
    ("mmap", "many", "64KiB"),
]

DAMAGE = r"""
import json, os, shutil, sys

what = json.loads(sys.argv[1])
length = what["length"]


def swap(a, b):
    with open(a[0], "r+b") as one, open(b[0], "r+b") as other:
        one.seek(a[1])
        other.seek(b[1])
        first, second = one.read(length), other.read(length)
        assert len(first) == len(second) == length and first != second
        one.seek(a[1])
        other.seek(b[1])
        one.write(second)
        other.write(first)


def put(place, data):
    with open(place[0], "r+b") as file:
        file.seek(place[1])
        assert file.read(len(data)) != data
        file.seek(place[1])
        file.write(data)


def get(place, size):
    with open(place[0], "rb") as file:
        file.seek(place[1])
        data = file.read(size)
    assert len(data) == size
    return data


kind, place, old = what["kind"], what["place"], what["old"]
half = length // 2
if kind == "keep":
    shutil.copytree(place[0], old[0])
elif kind == "flipped":
    put((place[0], place[1] + half), bytes([get((place[0], place[1] + half), 1)[0] ^ 0x10]))
elif kind in ("swapped", "neighbor"):
    swap(place, what["other"])
elif kind == "stale":
    put(place, get(old, length))
elif kind == "torn":
    put((place[0], place[1] + half), get((old[0], old[1] + half), length - half))
elif kind == "zeros":
    put(place, bytes(length))
elif kind == "truncated":
    os.truncate(place[0], place[1] + half)
else:
    sys.exit("unknown damage " + kind)
"""

Place = tuple[str, int]


@dataclass(frozen=True)
class Setup:
    """Locations of the blocks of a run in its files."""

    backend: str
    mapping: str
    size: str
    folder: Path

    @property
    def access(self) -> dict[str, int]:
        return SIZES[self.size]

    @property
    def length(self) -> int:
        return self.access["transfer"]

    @property
    def volume(self) -> int:
        return TASKS * self.files * self.access["block"] * self.access["segments"]

    @property
    def files(self) -> int:
        return FILES if self.mapping == "many" else 1

    def block_of(self, task: int, slot: int, file: int = 1) -> Place:
        """Path and offset of one operation."""
        in_block = self.access["block"] // self.length
        sharers, index = (TASKS, task) if self.mapping == "shared" else (1, 0)
        name = {"shared": "data", "per_task": f"data.t{task:08}", "many": f"data.t{task:08}.{file:08}"}[self.mapping]
        offset = (slot // in_block * sharers + index) * self.access["block"] + slot % in_block * self.length
        return str(self.folder / name), offset

    def plan(self, target: Path, *phases: Plan, **data: object) -> Plan:
        files: Plan = {"mapping": self.mapping} | ({"count": FILES} if self.mapping == "many" else {})
        return write_plan(
            target,
            *phases,
            target={"directory": self.folder.name, "keep": True},
            tasks={"threads": TASKS},
            data={"backend": self.backend, "files": files, "access": self.access, **data},
            observe={"progress": 0},
        )


def make_command_treatment(script: Path, **options: object) -> Plan:
    command_line = [sys.executable, "-I", "-S", str(script), json.dumps(options)]
    return {"kind": "command", "need": "required", "command": shlex.join(command_line)}


def run_damaged(engine: Engine, setup: Setup, tmp_path: Path, damage: str, block: Place, other: Place) -> Result:
    script = tmp_path / "damage.py"
    script.write_text(DAMAGE, encoding="utf-8")
    old = tmp_path / "old"
    keep = make_command_treatment(script, kind="keep", place=[str(setup.folder)], old=[str(old)], length=0)
    older = (str(old / Path(block[0]).name), block[1])
    harm = make_command_treatment(script, kind=damage, place=block, other=other, old=older, length=setup.length)
    return engine.run(
        setup.plan(
            setup.folder.parent,
            {"id": "write", "op": "write"},
            {"id": "again", "op": "rewrite", "before": [keep]},
            {"id": "read", "op": "read", "verify": "on_read", "before": [harm], "shift": {"by": "tasks", "n": 1}},
        )
    )


def skip_without_backend(engine: Engine, backend: str) -> None:
    answer = engine.ask("backends", "--json") if backend == "io_uring" else None
    if answer is not None and answer.code == DONE:
        backends = {entry["name"]: entry for entry in json.loads(answer.out)}
        if not backends[backend].get("usable", True):
            pytest.skip(f"{backend} cannot be used here: {backends[backend]}")


@pytest.fixture(params=SETUPS, ids="-".join)
def setup(request: pytest.FixtureRequest, engine: Engine, target: Path) -> Setup:
    backend, mapping, size = request.param
    skip_without_backend(engine, backend)
    return Setup(backend, mapping, size, target / "kept")


def check_error(error: Line, block: Place, length: int, writer: int, expected_phrase: str) -> None:
    assert error["operation"] == "verify"
    assert error["path"] == block[0]
    assert block[1] <= error["offset"] < block[1] + length
    assert f"written by task {writer}, generation 2" in error["text"]
    assert error["task"] == (writer - 1) % TASKS, "the reader is not the writer"
    assert expected_phrase in error["text"]


def check_mismatch(result: Result, expected_count: int) -> list[Line]:
    assert result.code == MISMATCH, result.err
    assert result.end["status"] == "mismatch"
    assert "verification" in result.only_sentence
    phase = result.finished("read")
    assert phase["verify"]["mismatches"] == expected_count
    assert phase["seconds"]["verify"] > 0
    errors = result.of("error")
    assert all(error["phase"] == "read" for error in errors)
    return errors


DAMAGE_DESCRIPTIONS = {
    "flipped": "changed bytes",
    "swapped": "from another place of the same file",
    "neighbor": "of another file",
    "stale": "an older version",
    "torn": "half-written",
    "zeros": "holds zeros",
}


def describe_damage(damage: str, size: str) -> str:
    """The error's description of a kind of damage."""
    if (damage, size) == ("torn", "64KiB"):
        return DAMAGE_DESCRIPTIONS["stale"]  # half of sixteen blocks: all of the first wrong 4 KiB is old
    return DAMAGE_DESCRIPTIONS[damage]


# A shared file has no neighbor.
DAMAGES = [
    (setup, kind) for setup in SETUPS for kind in DAMAGE_DESCRIPTIONS if (setup[1], kind) != ("shared", "neighbor")
]


@pytest.mark.parametrize(
    ("setup", "damage"), DAMAGES, indirect=["setup"], ids=lambda x: x if x in DAMAGE_DESCRIPTIONS else "-".join(x)
)
def test_damaged_block_is_detected_and_located(engine: Engine, setup: Setup, tmp_path: Path, damage: str) -> None:
    slots = setup.access["block"] // setup.length * setup.access["segments"]
    slot = slots - 2
    block = setup.block_of(WRITER, slot)
    other, other_writer = block, WRITER
    if damage == "swapped":
        other_writer = 0 if setup.mapping == "shared" else WRITER
        other = setup.block_of(other_writer, 1)
    elif damage == "neighbor":
        other_writer = WRITER if setup.mapping == "many" else 0
        other = setup.block_of(other_writer, slot, file=0)
    result = run_damaged(engine, setup, tmp_path, damage, block, other)
    errors = check_mismatch(result, 1 if other == block else 2)
    damaged = {block: WRITER, other: other_writer}
    assert len(errors) == len(damaged)
    for error in errors:
        [damaged_block] = [
            p for p in damaged if p[0] == error["path"] and p[1] <= error["offset"] < p[1] + setup.length
        ]
        check_error(error, damaged_block, setup.length, damaged.pop(damaged_block), describe_damage(damage, setup.size))
    if damage == "flipped":
        assert errors[0]["offset"] == block[1] + setup.length // 2
    if damage == "torn":
        assert errors[0]["offset"] >= block[1] + setup.length // 2
    assert result.finished("read")["verify"]["checked_bytes"] == setup.volume


def test_truncated_file_is_detected(engine: Engine, setup: Setup, tmp_path: Path) -> None:
    """The last two operations of the last task are lost: one in half, one wholly."""
    slots = setup.access["block"] // setup.length * setup.access["segments"]
    block = setup.block_of(WRITER, slots - 2)
    result = run_damaged(engine, setup, tmp_path, "truncated", block, block)
    errors = check_mismatch(result, 2)
    cut = block[1] + setup.length // 2
    first = min(errors, key=lambda error: int(error["offset"]))
    check_error(first, block, setup.length, WRITER, "the end of the file")
    assert first["offset"] == cut
    assert f"the file ends at byte {cut}" in first["text"]


@pytest.mark.parametrize("verify", ["on_read", "both"])
def test_intact_data_passes_verification(engine: Engine, setup: Setup, verify: str) -> None:
    """Also data of two generations, in another reader's hands; all of it has been compared, and that took time."""
    result = engine.run(
        setup.plan(
            setup.folder.parent,
            {"id": "write", "op": "write"},
            {"id": "again", "op": "rewrite", **({"files": [0, 2]} if setup.mapping == "many" else {})},
            {"id": "read", "op": "read", "shift": {"by": "tasks", "n": 1}},
            verify=verify,
        )
    )
    assert result.code == DONE, result.err
    assert result.of("error") == []
    phase = result.finished("read")
    assert phase["verify"] == {"checked_bytes": setup.volume, "mismatches": 0}
    assert phase["seconds"]["verify"] > 0
    if verify == "both":
        share = {"write": 1.0, "again": 2 / 3 if setup.mapping == "many" else 1.0}
        back = {line["phase"]: line for line in result.of("verification")}
        assert sorted(back) == sorted(share)
        for name, line in back.items():
            assert line["checked_bytes"] == round(setup.volume * share[name])
            assert line["mismatches"] == 0
            assert line["seconds"] > 0


# Between a write and its read-back -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def lying_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the library of lying calls")
    library = tmp_path_factory.mktemp("lying") / "lying_storage.so"
    source = Path(__file__).with_name("lying_storage.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize(("storage_fault", "wrong_blocks"), [("flip", 1), ("drop", 1), ("misplace", 2)])
def test_read_back_detects_silently_lost_writes(
    engine: Engine, target: Path, lying_storage: Path, storage_fault: str, wrong_blocks: int, size: str
) -> None:
    """Every call succeeds, but one write changes a byte, is lost, or lands on the next block."""
    setup = Setup("posix", "per_task", size, target / "kept")
    slots = setup.access["block"] // setup.length * setup.access["segments"]
    block = setup.block_of(WRITER, slots - 2)
    # In reverse order the misplaced block is not overwritten by the right one afterwards.
    plan = setup.plan(target, {"id": "write", "op": "write", "verify": "readback"})
    plan["data"]["access"] = {**setup.access, "order": "reverse"}
    env = {
        "LD_PRELOAD": str(lying_storage),
        "LIE_KIND": storage_fault,
        "LIE_PATH": block[0],
        "LIE_OFFSET": str(block[1]),
    }
    result = engine.run(plan, env=env)
    assert result.code == MISMATCH, result.err
    assert "reading back" in result.only_sentence
    [line] = result.of("verification")
    assert line["mismatches"] == wrong_blocks
    assert line["checked_bytes"] == setup.volume
    errors = sorted(result.of("error"), key=lambda error: int(error["offset"]))
    assert len(errors) == wrong_blocks
    for n, error in enumerate(errors):
        begin = block[1] + n * setup.length
        assert error["path"] == block[0]
        assert begin <= error["offset"] < begin + setup.length
        assert f"written by task {WRITER}, generation 1" in error["text"]
    assert result.finished("write")["ops"]["failed"] == 0
