# SPDX-License-Identifier: Apache-2.0
"""What is in the files: every 4 KiB granule that the engine wrote is computed again here, from the description of the
payload, and compared byte by byte. So anybody can check a file without the engine, and verification is not judged by
the code that made the data.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from engine_under_test import DONE, Engine, Plan, Result, write_plan

KIB = 1024
GRANULE = 4 * KIB
MAGIC = 0x31656D6152646E53
MASK = 2**64 - 1


# The reference -------------------------------------------------------------------------------------------------------


def mix_bits(value: int) -> int:
    """The finalizer of SplitMix64."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


@lru_cache(maxsize=512)
def make_noise(key: int, length: int, compressible: float) -> bytes:
    """Pseudo-random bytes; of every 64 the share `compressible` at the front is zero."""
    words64 = [mix_bits((key + i) & MASK) for i in range(0, length, 8)]
    out = bytearray(struct.pack(f"<{len(words64)}Q", *words64))
    zeros = int(compressible * 64 + 0.5)
    for start in range(0, length, 64):
        out[start : start + zeros] = bytes(zeros)
    return bytes(out)


@dataclass(frozen=True)
class Payload:
    kind: str = "stamped"
    seed: int = 1
    compressible: float = 0.0
    duplicates: float = 0.0
    period: int = 0

    def has_duplicated_content(self, file_number: int, offset: int) -> bool:
        return self.identity(file_number, offset) >> 11 < int(self.duplicates * 2**53)

    def identity(self, file_number: int, offset: int) -> int:
        return mix_bits((mix_bits(file_number ^ self.seed) + offset) & MASK)

    def granule(self, file_number: int, offset: int, generation: int, period: int) -> bytes:
        """The 4 KiB of a file that begin at `offset`."""
        if self.kind == "zero":
            return bytes(GRANULE)
        duplicate = self.has_duplicated_content(file_number, offset)
        stamp_offset = 0
        if self.kind == "random":
            identity = self.identity(file_number, offset)
            key = mix_bits(self.seed + identity % 64) if duplicate else mix_bits(identity ^ generation)
            body = make_noise(key, GRANULE, self.compressible)
        else:
            places = period // GRANULE
            rotation = GRANULE * (((mix_bits(file_number) + generation * 2654435761) & MASK) % places)
            start = (offset + rotation) % period
            stamp_offset = start // GRANULE % min(64, places) * 64
            body = make_noise(mix_bits(self.seed), period, self.compressible)[start : start + GRANULE]
        fields = (0, 0, 0) if duplicate else (file_number, offset, generation)
        return body[:stamp_offset] + struct.pack("<4Q", MAGIC ^ self.seed, *fields) + body[stamp_offset + 32 :]


# The cases -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A plan, and what the description of the plan says about its files."""

    name: str
    payload: Payload = field(default_factory=Payload)
    backend: str = "posix"
    mapping: str = "per_task"
    count: int = 1
    group: int = 0
    access: Plan = field(default_factory=lambda: {"transfer": 64 * KIB, "block": 128 * KIB, "segments": 2})
    io: Plan = field(default_factory=dict)
    rewrite: Plan | None = None  # members of a second phase

    @property
    def tasks(self) -> Plan:
        return {"processes": 2, "threads": 2} if self.mapping == "per_group" else {"threads": 2}

    def period(self) -> int:
        if self.payload.period:
            return self.payload.period
        again = (self.rewrite or {}).get("access", {}).get("transfer", 0)
        return 256 * KIB if max(self.access["transfer"], again) < 256 * KIB else 1024 * KIB

    def blocks(self, sharers: int) -> list[tuple[int, int]]:
        """Start and end of what is written in one file."""
        first, gap = self.access.get("offset", 0), self.access.get("gap", 0)
        block = self.access["block"]
        count = self.access["segments"] * sharers
        return [(first + n * (block + gap), first + n * (block + gap) + block) for n in range(count)]

    def expected_files(self) -> dict[str, tuple[int, int, int]]:
        """Name -> number, tasks that share it, generation."""
        again = 1 if self.rewrite is None else 2
        if self.mapping == "shared":
            return {"data": (0, 2, again)}
        if self.mapping == "per_node":
            return {"data.n000000": (0, 2, again)}
        if self.mapping == "per_group":  # four tasks, the last group is smaller
            return {"data.g00000000": (0, 3, again), "data.g00000001": (1, 1, again)}
        if self.mapping == "per_task":
            return {f"data.t{task:08}": (task, 1, again) for task in range(2)}
        chosen = (self.rewrite or {}).get("files", range(self.count))
        return {
            f"data.t{task:08}.{k:08}": (task * self.count + k, 1, again if k in chosen else 1)
            for task in range(2)
            for k in range(self.count)
        }


SMALL_ACCESS = {"transfer": 4 * KIB, "block": 16 * KIB, "segments": 3}
RECORDS = {"transfer": 10_000, "block": 100_000, "segments": 2}  # ends and begins inside granules
LARGE = {"transfer": 256 * KIB, "block": 512 * KIB, "segments": 1}  # has the longer period
HOLES = {"transfer": 4 * KIB, "block": 12 * KIB, "segments": 3, "gap": 8 * KIB, "offset": 20 * KIB}
ODD_HOLES = {"transfer": 1000, "block": 7000, "segments": 4, "gap": 3333, "offset": 777}
RANDOM = {**SMALL_ACCESS, "order": "random_permute", "scope": "file", "seed": 9}

CASES = [
    Case("defaults"),
    Case("4KiB", access=SMALL_ACCESS),
    Case("records", access=RECORDS),
    Case("records-shared", access=RECORDS, mapping="shared"),
    Case("large", access=LARGE),
    Case("large-shared", access=LARGE, mapping="shared"),
    Case("seed-0", payload=Payload(seed=0)),
    Case("largest-seed", payload=Payload(seed=2**63 - 1)),
    Case("shared", access=SMALL_ACCESS, mapping="shared"),
    Case("per-node", access=SMALL_ACCESS, mapping="per_node"),
    Case("per-group", access=SMALL_ACCESS, mapping="per_group", group=3),
    Case("many", access=SMALL_ACCESS, mapping="many", count=3),
    Case("holes", access=HOLES, mapping="shared"),
    Case("odd-holes", access=ODD_HOLES, mapping="shared"),
    Case("one-byte", access={"transfer": 1, "block": 300, "segments": 2}, mapping="shared"),
    Case("reverse", access={**RECORDS, "order": "reverse"}),
    Case("random", access=RANDOM, mapping="shared"),
    Case("mmap", backend="mmap", access=RECORDS, mapping="shared"),
    Case("io_uring", backend="io_uring", access=SMALL_ACCESS, mapping="shared", io={"queue_depth": 8}),
    Case("io_uring-unregistered", backend="io_uring", io={"queue_depth": 4, "registered": False}),
    Case("io_uring-random", backend="io_uring", access=RANDOM, mapping="shared", io={"queue_depth": 16}),
    Case("rewrite", access=RECORDS, rewrite={}),
    Case("rewrite-some", access=SMALL_ACCESS, mapping="many", count=3, rewrite={"files": [0, 2]}),
    Case("rewrite-larger", mapping="shared", access={**LARGE, "transfer": 4 * KIB}, rewrite={"access": LARGE}),
    Case("half-compressible", payload=Payload(seed=3, compressible=0.5), access=RECORDS),
    Case("one-buffer", payload=Payload(period=4 * KIB), access=SMALL_ACCESS),
    Case(
        "one-buffer-records", payload=Payload(period=4 * KIB), access=RECORDS, rewrite={"id": "again", "op": "rewrite"}
    ),
    Case("long-period", payload=Payload(period=2048 * KIB), access=LARGE),
    Case("half-duplicates", payload=Payload(seed=4, duplicates=0.5), access=SMALL_ACCESS, mapping="many", count=2),
    Case("all-duplicates", payload=Payload(seed=5, duplicates=1.0), access=RECORDS),
    Case("random-bytes", payload=Payload("random", seed=6), access=RECORDS, mapping="shared"),
    Case("random-bytes-dials", payload=Payload("random", 7, 0.25, 0.5), access=SMALL_ACCESS, mapping="shared"),
    Case("random-bytes-rewritten", payload=Payload("random", 8), access=SMALL_ACCESS, rewrite={}),
    Case("zero", payload=Payload("zero"), access=RECORDS),
]


def run_case(engine: Engine, target: Path, case: Case) -> Result:
    files: Plan = {"mapping": case.mapping}
    if case.mapping == "many":
        files["count"] = case.count
    if case.group:
        files["group_size"] = case.group
    phases: list[Plan] = [{"id": "write", "op": "write"}]
    if case.rewrite is not None:
        phases.append({"id": "again", "op": "rewrite", **case.rewrite})
    data: dict[str, Any] = {"backend": case.backend, "files": files, "access": case.access, "io": case.io}
    data["payload"] = {name: value for name, value in vars(case.payload).items() if value or name != "period"}
    plan = write_plan(
        target, *phases, target={"directory": "kept", "keep": True}, tasks=case.tasks, data=data,
        observe={"progress": 0},
    )  # fmt: skip
    return engine.run(plan)


def check_file(case: Case, path: Path, file_number: int, sharers: int, generation: int) -> int:
    """Compares each granule; the number of granules."""
    content = path.read_bytes()
    blocks = case.blocks(sharers)
    assert len(content) == blocks[-1][1], path
    written = bytearray(len(content))
    for begin, end in blocks:
        written[begin:end] = b"\1" * (end - begin)
    for start in range(0, len(content), GRANULE):
        granule_bytes = case.payload.granule(file_number, start, generation, case.period())
        written_mask = written[start : start + GRANULE]
        # What lies between the blocks was never written.
        wanted = bytes(byte if there else 0 for byte, there in zip(granule_bytes, written_mask, strict=False))
        assert content[start : start + GRANULE] == wanted, (
            f"{path.name}: the granule at {start} is not what it should be"
        )
    return -(-len(content) // GRANULE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_granule_has_the_documented_content(engine: Engine, target: Path, case: Case) -> None:
    result = run_case(engine, target, case)
    if case.backend == "io_uring" and result.code != DONE and "io_uring" in result.err and not result.of("phase_end"):
        pytest.skip(result.err.strip())
    assert result.code == DONE, result.err
    wanted = case.expected_files()
    run_directory = target / "kept"
    assert sorted(p.name for p in run_directory.iterdir() if not p.name.startswith(".")) == sorted(wanted)
    for name, (number, sharers, generation) in wanted.items():
        assert check_file(case, run_directory / name, number, sharers, generation) > 0


def test_every_granule_is_unique(engine: Engine, target: Path) -> None:
    """Storage that removes duplicates or compresses gains nothing: the granules of all files differ from each other."""
    case = Case("unique", mapping="many", count=3, access={"transfer": 64 * KIB, "block": 512 * KIB, "segments": 2})
    assert run_case(engine, target, case).code == DONE
    contents = [p.read_bytes() for p in sorted((target / "kept").iterdir()) if re.match("data", p.name)]
    granules = [content[start : start + GRANULE] for content in contents for start in range(0, len(content), GRANULE)]
    assert len(granules) == 6 * 256
    assert len(set(granules)) == len(granules)
    for content in contents[:2]:
        window = content[: 128 * KIB]
        assert len(zlib.compress(window, 1)) > 0.99 * len(window)


@pytest.mark.parametrize("payload_kind", ["stamped", "random"])
@pytest.mark.parametrize("share", [0.25, 0.75])
def test_compressible_and_duplicate_shares_are_as_configured(
    engine: Engine, target: Path, payload_kind: str, share: float
) -> None:
    """The compressible share is saved by a compressor, the duplicate share by removing duplicates."""
    access = {"transfer": 64 * KIB, "block": 1024 * KIB, "segments": 1}
    case = Case("dials", payload=Payload(payload_kind, 11, compressible=share), access=access)
    assert run_case(engine, target, case).code == DONE
    content = (target / "kept" / "data.t00000000").read_bytes()
    # The stamp in each granule and the coding of the zeros cost a little.
    assert abs(len(zlib.compress(content[: 256 * KIB], 6)) / (256 * KIB) - (1 - share)) < 0.06


@pytest.mark.parametrize("share", [0.25, 0.75])
def test_duplicate_share_of_content_is_as_configured(engine: Engine, target: Path, share: float) -> None:
    access = {"transfer": 64 * KIB, "block": 4096 * KIB, "segments": 1}
    case = Case("dials", payload=Payload("random", 12, duplicates=share), access=access, mapping="shared")
    assert run_case(engine, target, case).code == DONE
    content = (target / "kept" / "data").read_bytes()
    granules = [content[start : start + GRANULE] for start in range(0, len(content), GRANULE)]
    # 2048 granules; the duplicates are drawn from 64 different ones, which remain.
    saved = 1 - len(set(granules)) / len(granules)
    assert abs(saved - (share - 64 / 2048)) < 0.04
