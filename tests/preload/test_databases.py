# SPDX-License-Identifier: Apache-2.0
"""Databases under the library, as it is by default, and killed: they recover, and nothing they promised is missing."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from preload_under_test import OURS, Preload

PARAMS = {"default": "*", "always": "*,%process:gather=always"}
every_setting = pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())

WRITER = """
import sqlite3, sys
name, journal, sign = sys.argv[1:]
data = sqlite3.connect(name, timeout=60)
data.execute(f"pragma journal_mode={journal}")
number = data.execute("select coalesce(max(number), -1) + 1 from lines where sign = ?", (sign,)).fetchone()[0]
while True:
    with data:
        data.execute("insert into lines values (?, ?, ?)", (sign, number, "x" * (number % 3000)))
    print(number, flush=True)
    number += 1
"""


@every_setting
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_sqlite_with_two_writers_that_are_killed(preload: Preload, memory: Path, journal: str, params: str) -> None:
    chance = random.Random(journal)
    file = memory / "data.db"
    with sqlite3.connect(file) as made:
        made.execute("create table lines (sign text, number integer, text text, unique (sign, number))")
    made.close()
    python = os.path.realpath("/proc/self/exe")
    environment = preload.environment(IOBUF_PARAMS=params, PYTHONPATH=os.pathsep.join(sys.path))
    for _ in range(6):
        writers = [
            subprocess.Popen(
                [python, "-c", WRITER, file, journal, sign], env=environment, stdout=subprocess.PIPE, text=True
            )
            for sign in "ab"
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.1))
        said = {}
        for writer, sign in zip(writers, "ab", strict=True):
            writer.kill()
            out, _ = writer.communicate()
            said[sign] = max((int(line) for line in out.splitlines(keepends=True) if line.endswith("\n")), default=-1)
        with sqlite3.connect(file, timeout=60) as data:
            assert data.execute("pragma integrity_check").fetchall() == [("ok",)]
            for sign, last in said.items():
                numbers = [row[0] for row in data.execute("select number from lines where sign = ? order by 1", sign)]
                assert numbers == list(range(len(numbers)))
                assert len(numbers) > last
        data.close()


class Postgres:
    """A cluster in a folder of its own; its server runs under the library."""

    def __init__(self, programs: Path, folder: Path, environment: dict[str, str]) -> None:
        self.programs, self.folder, self.environment = programs, folder, environment
        self.as_user = (
            ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.geteuid() == 0 else []
        )

    def run(self, name: str, *words: str, under: bool = False) -> subprocess.CompletedProcess[str]:
        plain = {key: value for key, value in os.environ.items() if key not in OURS}
        return subprocess.run(
            [*self.as_user, str(self.programs / name), *words],
            env=self.environment if under else plain,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self) -> None:
        limit = time.monotonic() + 60  # the children of a killed server take a while to notice
        words = ("-D", str(self.folder / "db"), "-w", "-l", str(self.folder / "log"), "start")
        while self.run("pg_ctl", *words, under=True).returncode != 0:
            assert time.monotonic() < limit, (self.folder / "log").read_text()
            time.sleep(0.1)

    def ask(self, question: str) -> str:
        return self.run("psql", "-h", str(self.folder), "-qtA", "-d", "postgres", "-c", question).stdout.strip()


@pytest.mark.parametrize("params", [PARAMS["default"]])
def test_postgresql_recovers_when_it_is_killed(preload: Preload, params: str) -> None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed or shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        library = folder / preload.library.name  # where that user can read it
        shutil.copyfile(preload.library, library)
        library.chmod(0o755)
        environment = {**preload.environment(IOBUF_PARAMS=params), "LD_PRELOAD": str(library)}
        server = Postgres(installed[-1].parent, folder, environment)
        made = server.run("initdb", "-D", str(folder / "db"), "-A", "trust", "-N", under=True)
        assert made.returncode == 0, made.stderr
        with (folder / "db/postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses=''\nunix_socket_directories='{folder}'\n")
        server.start()
        assert server.run("pgbench", "-h", str(folder), "-q", "-i", "postgres").returncode == 0
        assert server.ask("create extension amcheck") == ""
        load = subprocess.Popen(
            [*server.as_user, str(server.programs / "pgbench"), "-h", str(folder), "-c", "4", "-T", "60", "postgres"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while int(server.ask("select count(*) from pgbench_history") or 0) < 200:
            time.sleep(0.05)
        os.kill(int((folder / "db/postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        load.wait()
        server.start()
        assert int(server.ask("select count(*) from pgbench_history")) >= 200
        indexes = "from pg_class c join pg_am a on a.oid = c.relam where a.amname = 'btree' and c.relpersistence = 'p'"
        assert server.ask(f"select count(bt_index_check(c.oid, true)) {indexes}") == server.ask(
            f"select count(*) {indexes}"
        )
        assert server.ask("select sum(abalance) from pgbench_accounts") == server.ask(
            "select sum(delta) from pgbench_history"
        )
        server.run("pg_ctl", "-D", str(folder / "db"), "-m", "fast", "-w", "stop")
        log = (folder / "log").read_text()
        assert not [line for line in log.splitlines() if any(word in line for word in ("PANIC", "unexpected data"))]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
