# SPDX-License-Identifier: Apache-2.0
"""What every parallel file system has to give: a check with truth, the benchmarks of others, the right target of every
byte, the slow server by its name, one sentence for a dead one, and what a second client sees."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_ceph import NEEDED as CEPH
from made_ceph import Ceph
from made_gluster import NEEDED as GLUSTER
from made_gluster import Gluster
from made_moosefs import NEEDED as MOOSEFS
from made_moosefs import MooseFS
from room import NotStartedError, Room, lacking
from user import MIB, User

from sonde.findings.served import slow_answers
from sonde.findings.targets import slow_targets, target_rates
from sonde.launch.preload import find_library
from sonde.model.errors import MachineError
from sonde.model.record import PhaseRecord

pytestmark = [pytest.mark.storage, pytest.mark.root, pytest.mark.serial]
SYSTEMS: dict[str, tuple[type[Gluster] | type[MooseFS] | type[Ceph], tuple[str, ...]]] = {
    "gluster": (Gluster, GLUSTER), "moosefs": (MooseFS, MOOSEFS), "ceph": (Ceph, CEPH),
}  # fmt: skip
Storage = Gluster | MooseFS | Ceph


@pytest.fixture(scope="module", params=SYSTEMS)
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    made, programs = SYSTEMS[request.param]
    if reason := lacking(*programs):
        pytest.skip(reason)
    try:
        room = Room(tmp_path_factory.mktemp(request.param))
    except NotStartedError as why:
        pytest.skip(f"no namespaces here: {why}")
    try:
        began = time.monotonic()
        system = made(room)
        print(f"{request.param} came up in {time.monotonic() - began:.1f} s")
        yield system
    finally:
        room.close()


@pytest.fixture
def user(storage: Storage, engine: Path, tmp_path: Path) -> User:
    return User(storage.room, engine, tmp_path)


def in_tree(storage: Storage, place: Path, what: str = "*") -> list[str]:
    return storage.room.said("find", str(place), "-mindepth", "1", "-name", what).split()


def test_a_check_ends_with_numbers_and_leaves_nothing(storage: Storage, user: User) -> None:
    done = user.sonde("check", str(storage.place), "--json", "--no-report", patience_s=900)
    assert done.code == 0, done
    ended = [(phase.id, phase.end) for record in user.records() for phase in record.phases.values()]
    assert [phase for phase, end in ended if end is None or end.ops.failed] == []
    assert sum(end.bytes.moved for _, end in ended if end is not None) > 64 * MIB
    assert json.loads(done.out)["schema"] == "sonde-check/2", done
    assert in_tree(storage, storage.place, "sonde-*") == []


def test_ior_writes_and_reads_back_what_it_wrote(storage: Storage, user: User) -> None:
    words = ("-w", "-r", "-W", "-R", "-C", "-e", "-t", "256k", "-b", "4m", "-s", "2")
    for name, kind in (("alone", ("-F",)), ("shared", ())):
        done = user.sonde("ior", "--tasks", "4", "--no-report", *words, *kind, "-O", "summaryFormat=JSON",
                          "-o", str(storage.place / name))  # fmt: skip
        assert done.code == 0, done
        results = json.loads(done.out)["tests"][0]["Results"]
        assert [one["access"] for one in results] == ["write", "read"], done
    assert all(one.end is not None and one.end.exit_code == 0 for one in user.records())
    assert in_tree(storage, storage.place, "alone*") == in_tree(storage, storage.place, "shared*") == []


def test_ior_sees_a_byte_that_changed_behind_its_back(storage: Storage, user: User) -> None:
    file = storage.place / "changed"
    words = ("ior", "--tasks", "2", "--no-report", "-t", "64k", "-b", "1m", "-G", "7", "-k", "-o", str(file))
    assert user.sonde(*words, "-w", "-e").code == 0
    # through the other client: what is compared comes from the servers
    other = storage.second / "changed"
    storage.room.run("dd", f"of={other}", "if=/dev/zero", "bs=1", "count=8", "seek=1048584", "conv=notrunc,fsync")
    time.sleep(2)  # attributes and data of a client may be so old
    done = user.sonde(*words[:-3], "-o", str(file), "-r", "-R")
    storage.room.run("rm", "-f", str(file))
    assert done.code != 0, done
    assert "erro" in (done.out + done.err).lower(), done


def test_mdtest_makes_stats_reads_and_removes(storage: Storage, user: User) -> None:
    place = storage.place / "names"
    storage.room.run("mkdir", str(place))
    done = user.sonde("mdtest", "--tasks", "4", "--no-report", "-n", "40", "-w", "4096", "-e", "4096", "-i", "2",
                      "-X", "-d", str(place))  # fmt: skip
    assert done.code == 0, done
    for row in ("Directory creation", "File creation", "File stat", "File read", "File removal"):
        assert re.search(rf"{row}\s+:?\s*[1-9]", done.out), (row, done)
    assert in_tree(storage, place) == []
    storage.room.run("rmdir", str(place))


def layout_rows(phase: PhaseRecord) -> list[dict[str, Any]]:
    assert phase.layout is not None, "the file system's layout was not read"
    return [dict(zip(phase.layout.columns, row, strict=True)) for row in phase.layout.rows]


def kept_files(storage: Storage, user: User, files: int, volume: str, **data: Any) -> tuple[PhaseRecord, Path]:
    """A run whose files stay: its phase, and their directory."""
    plan = user.plan(
        "kept",
        target={"path": str(storage.place), "directory": "kept", "keep": True},
        tasks={"threads": files},
        data={"access": {"transfer": "1MiB", "block": volume}, "io": {"fsync": "end"}, **data},
        phases=[{"id": "write", "op": "write"}],
    )
    done = user.sonde("run", plan, "--no-report", "-q")
    assert done.code == 0, done
    return user.records()[-1].phases["write"], storage.place / "kept"


def test_the_target_of_every_file_is_the_one_that_the_system_names(storage: Storage, user: User) -> None:
    phase, place = kept_files(storage, user, 16, "4MiB")
    rows = layout_rows(phase)
    names = sorted(in_tree(storage, place, "data*"))
    assert len(rows) == len(names) == 16
    by_name = {int(re.findall(r"\d+", Path(name).name)[-1]): Path(name) for name in names}
    for row in rows:
        held = dict(row["targets"])
        path = by_name[row["task"]]
        told = {storage.of_object(path, 0)} if isinstance(storage, Ceph) else storage.told(path)
        assert set(held) == told, row
        assert set(held.values()) == {4 * MIB}
    storage.room.run("rm", "-r", str(place))
    assert len({target for row in rows for target, _ in row["targets"]}) > 1, "all on one target tell little"


def slow_one(storage: Storage, user: User) -> tuple[list[str], str]:
    """Names of slow targets by operations and by whole files, of tasks with a file each; and what is said of them."""
    plan = user.plan(
        "slow",
        target={"path": str(storage.place)},
        tasks={"threads": 40},
        data={"access": {"transfer": "128KiB", "block": "3MiB"}, "io": storage.to_servers},
        phases=[{"id": "write", "op": "write"}],
    )
    done = user.sonde("run", plan, "--no-report")
    assert done.code == 0, done
    phase = user.records()[-1].phases["write"]
    by_files = [one.name for one in slow_targets(target_rates(phase, operations=False))]
    return sorted({*by_files, *(one.name for one in slow_answers(phase))}), done.out


def test_a_slow_server_is_named_and_no_other(storage: Storage, user: User) -> None:
    assert slow_one(storage, user)[0] == []
    with storage.room.slowed(storage.pid(2), storage.stops_ms):
        names, said = slow_one(storage, user)
    assert names == [storage.targets[2]], said
    assert storage.targets[2] in said


def test_a_dead_server_is_one_sentence_and_what_was_finished_is_kept(storage: Storage, user: User) -> None:
    plan = user.plan(
        "dying",
        target={"path": str(storage.place)},
        tasks={"threads": 16},
        data={"access": {"transfer": "64KiB", "block": "1MiB"}, "io": storage.to_servers},
        phases=[
            {"id": "write", "op": "write"},
            {"id": "again", "op": "rewrite", "stop": {"time": "60s"}},
        ],
        limits={"time": "40s"},
    )
    going = user.begin("run", plan, "--no-report", "-q")
    end = time.monotonic() + 60
    while not any('"phase":"again"' in path.read_text() for path in user.incoming()) and time.monotonic() < end:
        time.sleep(0.1)
    storage.kill(1)
    try:
        if storage.waits:  # its clients wait for a server however long, and so does who calls them
            time.sleep(8)
            assert going.poll() is None
            storage.start(1)
        out, err = going.communicate(timeout=150)
    finally:
        if not storage.waits:
            storage.start(1)
    assert going.returncode in (1, 3, 5), (out, err)
    assert err.count("\n") == 1, err
    (record,) = user.records()
    assert record.phases["write"].end is not None
    assert record.phases["write"].end.stopped_by == "volume"
    left = in_tree(storage, storage.place)
    done = user.sonde("clean", str(storage.place))
    assert done.code == 0, done
    assert in_tree(storage, storage.place, "sonde-*") == [], (left, done, err)


READER = """
import hashlib, os, sys
for line in sys.stdin:
    file = os.open(sys.argv[1], os.O_RDONLY)
    found = hashlib.sha256()
    while piece := os.read(file, 1000):
        found.update(piece)
    os.close(file)
    print(found.hexdigest(), flush=True)
"""
WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
for number in range(3000):
    os.write(file, (b"%07d" % (number + int(sys.argv[2]))) * 11)
os.close(file)
"""


def content(first: int) -> bytes:
    return b"".join(b"%07d" % (number + first) * 11 for number in range(3000))


def test_what_one_client_closed_under_the_library_the_other_sees(storage: Storage, user: User, tmp_path: Path) -> None:
    """Also by pages that stayed after a close: they count only when the file is unchanged."""
    try:
        library = os.environ.get("SONDE_PRELOAD") or str(find_library())
    except MachineError as reason:
        pytest.skip(str(reason))
    under = {**os.environ, "LD_PRELOAD": library, "IOBUF_PARAMS": "*:alone:lazyclose:size=64k"}
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "writer.py").write_text(WRITER)
    name = "seen"

    def write(place: Path, first: int) -> None:
        words = storage.room.words(sys.executable, "-S", str(tmp_path / "writer.py"), str(place / name), str(first))
        subprocess.run(words, check=True, env=under, timeout=60)

    def wanted(first: int) -> str:
        return hashlib.sha256(content(first)).hexdigest()

    def seen(first: int) -> bool:
        """Whether the system itself shows it to the other client."""
        return storage.room.said("sha256sum", str(storage.second / name)).split()[0] == wanted(first)

    write(storage.place, 0)
    reader = subprocess.Popen(
        storage.room.words(sys.executable, "-S", str(tmp_path / "reader.py"), str(storage.second / name)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=under,
    )  # fmt: skip
    assert reader.stdin is not None
    assert reader.stdout is not None
    try:
        for first in (0, 5_000_000, 7):
            if first:
                write(storage.place, first)
            # Some take a second or two. The library must not show it later than the system does.
            storage.room.until(partial(seen, first), "the other client does not see it at all")
            print("look", file=reader.stdin, flush=True)
            assert reader.stdout.readline().strip() == wanted(first), first
    finally:
        reader.stdin.close()
        reader.wait(20)
        reader.stdout.close()
    storage.room.run("rm", str(storage.place / name))
