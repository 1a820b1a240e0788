# SPDX-License-Identifier: Apache-2.0
"""Database servers under the preload library, killed under load: they recover, nothing they promised is missing, and
their logs hold no error. With `eager` too, although a server's processes look at each other's files then: they share
memory, or use rings, and that is noticed.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from preload_under_test import OURS, Preload

PARAMS = {"auto": "*:auto", "named": "*", "alone": "*:alone"}
every_setting = pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS.keys())
kills_by_day_and_night = pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.nightly)])


def plain_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in OURS}


@pytest.fixture
def socket_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose name is short enough for a socket, and open to the user of a server."""
    with tempfile.TemporaryDirectory(prefix="sonde-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def make_environment_for_all_users(preload: Preload, folder: Path, params: str) -> dict[str, str]:
    """The environment of a server of another user, with a copy of the library that it can read."""
    library = folder / preload.library.name
    shutil.copyfile(preload.library, library)
    library.chmod(0o755)
    return {**preload.environment(IOBUF_PARAMS=params), "LD_PRELOAD": str(library)}


class Redis:
    """A server in a folder of its own that writes each change to its log before it answers."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        settings = [
            "--port",
            "0",
            "--unixsocket",
            str(folder / "s"),
            "--dir",
            str(folder),
            "--save",
            "",
            "--daemonize",
            "no",
        ]
        settings += ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "64kb"]
        settings += ["--auto-aof-rewrite-percentage", "50", "--logfile", str(folder / "log")]
        (folder / "s").unlink(missing_ok=True)
        self.server = subprocess.Popen(["redis-server", *settings], env=environment)
        self.line = socket.socket(socket.AF_UNIX)
        limit = time.monotonic() + 60
        while self.line.connect_ex(str(folder / "s")) != 0:
            assert time.monotonic() < limit, (folder / "log").read_text()
            time.sleep(0.01)
        self.answers = self.line.makefile("rb")
        while self.ask("PING") != b"+PONG":
            time.sleep(0.01)  # it is reading its log

    def ask(self, *arguments: str) -> bytes:
        parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in arguments)
        self.line.sendall(f"*{len(arguments)}\r\n{parts}".encode())
        answer = self.answers.readline().rstrip()
        if answer.startswith(b"$") and answer != b"$-1":
            answer = self.answers.read(int(answer[1:]) + 2)[:-2]
        return answer

    def kill(self) -> None:
        self.server.kill()
        self.server.wait()
        self.line.close()


@every_setting
@kills_by_day_and_night
def test_redis_loses_no_acknowledged_data_when_killed(
    preload: Preload, socket_folder: Path, params: str, kills: int
) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed (Debian: redis-server)")
    chance = random.Random(1)
    number = 0
    for _ in range(kills + 1):
        server = Redis(socket_folder, preload.environment(IOBUF_PARAMS=params))
        for key in range(0, number, 1 + number // 500):
            assert server.ask("GET", f"key{key}") == b"x" * (key % 900), key
        until = time.monotonic() + chance.uniform(0.1, 0.4)
        while time.monotonic() < until or number == 0:
            assert server.ask("SET", f"key{number}", "x" * (number % 900)) == b"+OK"
            number += 1
        server.kill()
    check = shutil.which("redis-check-aof")
    log = next((socket_folder / "appendonlydir").glob("*.incr.aof"))
    if check is not None:
        done = subprocess.run([check, str(log)], capture_output=True, text=True, check=False)
        assert "AOF analyzed" in done.stdout, done.stdout
    assert not [
        line for line in (socket_folder / "log").read_text().splitlines() if " # " in line and "error" in line.lower()
    ]


class Postgres:
    """A cluster in a folder of its own; its server runs under the library."""

    def __init__(self, programs: Path, folder: Path, environment: dict[str, str]) -> None:
        self.programs, self.folder, self.environment = programs, folder, environment
        self.as_user = (
            ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.geteuid() == 0 else []
        )

    def run(self, name: str, *arguments: str, under: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.as_user, str(self.programs / name), *arguments],
            env=self.environment if under else plain_environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start(self) -> None:
        limit = time.monotonic() + 60  # the children of a killed server take a while to notice
        arguments = ("-D", str(self.folder / "db"), "-w", "-l", str(self.folder / "log"), "start")
        while self.run("pg_ctl", *arguments, under=True).returncode != 0:
            assert time.monotonic() < limit, (self.folder / "log").read_text()
            time.sleep(0.1)

    def ask(self, question: str) -> str:
        return self.run("psql", "-h", str(self.folder), "-qtA", "-d", "postgres", "-c", question).stdout.strip()


@every_setting
@kills_by_day_and_night
def test_postgresql_recovers_when_it_is_killed(preload: Preload, socket_folder: Path, params: str, kills: int) -> None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not installed or shutil.which("setpriv") is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    if os.geteuid() == 0:
        shutil.chown(socket_folder, "postgres", "postgres")
    server = Postgres(
        installed[-1].parent, socket_folder, make_environment_for_all_users(preload, socket_folder, params)
    )
    result = server.run("initdb", "-D", str(socket_folder / "db"), "-A", "trust", "-N", under=True)
    assert result.returncode == 0, result.stderr
    with (socket_folder / "db/postgresql.conf").open("a") as settings:
        settings.write(f"listen_addresses=''\nunix_socket_directories='{socket_folder}'\n")
    server.start()
    assert server.run("pgbench", "-h", str(socket_folder), "-q", "-i", "postgres").returncode == 0
    assert server.ask("create extension amcheck") == ""
    indexes = "from pg_class c join pg_am a on a.oid = c.relam where a.amname = 'btree' and c.relpersistence = 'p'"
    done = 0
    for _ in range(kills):
        load = subprocess.Popen(
            [
                *server.as_user,
                str(server.programs / "pgbench"),
                "-h",
                str(socket_folder),
                "-n",
                "-c",
                "4",
                "-T",
                "60",
                "postgres",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        limit = time.monotonic() + 60
        while (rows_seen := int(server.ask("select count(*) from pgbench_history") or 0)) < done + 200:
            assert time.monotonic() < limit, (socket_folder / "log").read_text()[-3000:]
            time.sleep(0.05)
        os.kill(int((socket_folder / "db/postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        load.wait()
        server.start()
        done = int(server.ask("select count(*) from pgbench_history"))
        assert done >= rows_seen
        checked = server.ask(f"select count(bt_index_check(c.oid, true)) {indexes}")
        assert checked == server.ask(f"select count(*) {indexes}")
        assert server.ask("select sum(abalance) from pgbench_accounts") == server.ask(
            "select sum(delta) from pgbench_history"
        )
    server.run("pg_ctl", "-D", str(socket_folder / "db"), "-m", "fast", "-w", "stop")
    signs = ("PANIC", "unexpected data", "invalid page", "could not read", "corrupt")
    assert not [
        line for line in (socket_folder / "log").read_text().splitlines() if any(sign in line for sign in signs)
    ]


def find_mariadb_account() -> str:
    """Returns the account for a server that root starts: that of the package with the service, else nobody."""
    return "mysql" if any(account.pw_name == "mysql" for account in pwd.getpwall()) else "nobody"


class MariaDb:
    """A server in a folder of its own, under the library."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.user = [f"--user={find_mariadb_account()}"] if os.geteuid() == 0 else []
        self.server: subprocess.Popen[bytes] | None = None

    def make(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *("mariadb-install-db", "--no-defaults", *self.user, f"--datadir={self.folder / 'db'}"),
                *("--auth-root-authentication-method=normal", "--skip-test-db"),
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def start(self) -> None:
        self.server = subprocess.Popen(
            [
                *(shutil.which("mariadbd") or "/usr/sbin/mariadbd", "--no-defaults", *self.user),
                *(f"--datadir={self.folder / 'db'}", f"--socket={self.folder / 's'}", "--skip-networking"),
                *(f"--log-error={self.folder / 'log.err'}", f"--pid-file={self.folder / 'pid'}"),
            ],
            env=self.environment,
        )
        limit = time.monotonic() + 60
        while self.ask("select 1") != "1":
            assert time.monotonic() < limit, (self.folder / "log.err").read_text()[-3000:]
            time.sleep(0.1)

    def client(self, *arguments: str) -> list[str]:
        return ["mariadb", "--no-defaults", "-u", "root", f"--socket={self.folder / 's'}", "-N", "-B", *arguments]

    def ask(self, question: str) -> str:
        done = subprocess.run(
            self.client("-e", question), env=plain_environment(), capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def load(self) -> subprocess.Popen[str]:
        """A client that says of each row when it is safe."""
        rows = "".join(
            f"insert into test.rows (text) values (repeat('x', {n % 700})); select last_insert_id();\n"
            for n in range(9000)
        )
        (self.folder / "rows.sql").write_text(rows)
        with (self.folder / "rows.sql").open() as rows_file:
            return subprocess.Popen(
                self.client("--unbuffered"),
                env=plain_environment(),
                stdin=rows_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()
            self.server.wait()


@every_setting
@kills_by_day_and_night
def test_mariadb_recovers_when_it_is_killed(preload: Preload, socket_folder: Path, params: str, kills: int) -> None:
    if shutil.which("mariadb-install-db") is None:
        pytest.skip("MariaDB is not installed (Debian: mariadb-server-core)")
    if os.geteuid() == 0:
        shutil.chown(socket_folder, find_mariadb_account())
    server = MariaDb(socket_folder, make_environment_for_all_users(preload, socket_folder, params))
    result = server.make()
    assert result.returncode == 0, result.stdout + result.stderr
    try:
        server.start()
        server.ask(
            "create database test;create table test.rows (id int primary key auto_increment, text text, key (text(40)))"
        )
        for _ in range(kills):
            before = int(server.ask("select count(*) from test.rows"))
            load = server.load()
            assert load.stdout is not None
            lines = [load.stdout.readline() for _ in range(100)]
            server.kill()
            lines += load.communicate()[0].splitlines(keepends=True)
            safe = max(int(line) for line in lines if line.endswith("\n"))
            server.start()
            assert server.ask("check table test.rows extended").split() == ["test.rows", "check", "status", "OK"]
            assert int(server.ask("select max(id) from test.rows")) >= safe
            assert int(server.ask("select count(*) from test.rows")) >= before + 100
    finally:
        server.kill()
    assert "[ERROR]" not in (socket_folder / "log.err").read_text()
