# SPDX-License-Identifier: Apache-2.0
"""Databases: libraries (SQLite, LMDB) in a program of their own, and servers (Redis, PostgreSQL, MariaDB), of which one
runs with the library and one without it, and the same clients go to both in turns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from buffering.cells import BOTH, MAX_COST_RATIO, SETTINGS_WITHOUT_GAIN, Cell, Command
from buffering.programs import HERE, MissingProgramError, Workshop
from buffering.turns import OWN_VARIABLES, Turn, TurnResults, run_turn

DATABASE_SETTINGS = {"as is": None, "auto": "*:auto", "named": "*"}
MIN_RATE_RATIO = 0.9  #: they need not be faster


def make_stored_command(program: str, library: str, count: int) -> Callable[[Workshop, Path], Command]:
    def command(_: Workshop, file: Path) -> Command:
        tried = subprocess.run([sys.executable, "-c", f"import {library}"], capture_output=True, check=False)
        if tried.returncode != 0:
            raise MissingProgramError(f"the package {library} is not installed for {sys.executable}")
        return (sys.executable, HERE / "stored.py", program, file, str(count))

    return command


LIBRARIES = tuple(
    Cell(
        f"{name}.{kind}",
        make_stored_command(f"{name}.{kind}", library, count),
        prepare,
        DATABASE_SETTINGS,
        MIN_RATE_RATIO,
    )
    for name, library, count in (
        ("sqlite", "sqlite3", 3_000),
        ("sqlite-wal", "sqlite3", 10_000),
        ("lmdb", "lmdb", 5_000),
    )
    for kind, prepare in (("insert", None), ("select", make_stored_command(f"{name}.insert", library, count)))
)


def make_sqlite_cells(inserts: int) -> tuple[Cell, ...]:
    """Rows with nothing to gain: so many transactions, and ten times as many selects."""
    insert, select = (make_stored_command(f"sqlite.{kind}", "sqlite3", inserts) for kind in ("insert", "select"))
    return tuple(
        Cell(f"sqlite.{kind}", command, prepare, SETTINGS_WITHOUT_GAIN, 1 / MAX_COST_RATIO, BOTH)
        for kind, command, prepare in (("insert", insert, None), ("select", select, insert))
    )


@dataclass(frozen=True)
class ServerLocation:
    """Where one server works, and as whom."""

    folder: Path
    environment: Mapping[str, str]
    user: str | None  #: None: who runs the bench

    def enter_command(self, *arguments: str) -> list[str]:
        as_user = ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups"] if self.user else []
        return [*as_user, *arguments]

    def call(self, *arguments: str, under: bool = False) -> None:
        done = subprocess.run(
            self.enter_command(*arguments),
            env=self.environment if under else make_plain_environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise MissingProgramError(
                f"{arguments[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-300:]}"
            )

    def wait(self, *question: str) -> None:
        limit = time.monotonic() + 60
        while (
            subprocess.run(
                self.enter_command(*question), env=make_plain_environment(), capture_output=True, check=False
            ).returncode
            != 0
        ):
            if time.monotonic() > limit:
                raise MissingProgramError(f"{question[0]} got no answer")
            time.sleep(0.05)


def make_plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}


def start_redis(server_place: ServerLocation) -> tuple[subprocess.Popen[bytes], dict[str, Sequence[str]]]:
    socket = str(server_place.folder / "s")
    arguments = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", str(server_place.folder), "--save", ""]
    arguments += ["--appendonly", "yes", "--daemonize", "no", "--logfile", str(server_place.folder / "log")]
    server = subprocess.Popen(arguments, env=server_place.environment)
    server_place.wait("redis-cli", "-s", socket, "ping")
    load = ["redis-benchmark", "-s", socket, "-q", "-c", "10", "-d", "200", "-r", "10000"]
    return server, {"set": [*load, "-n", "60000", "-t", "set"], "get": [*load, "-n", "60000", "-t", "get"]}


def start_postgresql(server_place: ServerLocation) -> tuple[subprocess.Popen[bytes], dict[str, Sequence[str]]]:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    data, folder = str(server_place.folder / "db"), str(server_place.folder)
    server_place.call(str(programs / "initdb"), "-D", data, "-A", "trust", "-N", under=True)
    with (server_place.folder / "db/postgresql.conf").open("a") as settings:
        settings.write(f"listen_addresses=''\nunix_socket_directories='{folder}'\n")
    with (server_place.folder / "log").open("w") as log:
        server = subprocess.Popen(
            server_place.enter_command(str(programs / "postgres"), "-D", data),
            env=server_place.environment,
            stdout=log,
            stderr=log,
        )
    server_place.wait(str(programs / "pg_isready"), "-h", folder)
    server_place.call(str(programs / "pgbench"), "-h", folder, "-q", "-i", "-s", "5", "postgres")
    load = server_place.enter_command(str(programs / "pgbench"), "-h", folder, "-n", "-c", "2")
    return server, {"tpcb": [*load, "-t", "1000", "postgres"], "select": [*load, "-S", "-t", "10000", "postgres"]}


def start_mariadb(server_place: ServerLocation) -> tuple[subprocess.Popen[bytes], dict[str, Sequence[str]]]:
    folder = str(server_place.folder)
    server_place.call(
        *("mariadb-install-db", "--no-defaults", f"--datadir={folder}/db", "--skip-test-db"),
        "--auth-root-authentication-method=normal",
        under=True,
    )
    server = subprocess.Popen(
        server_place.enter_command(
            *(shutil.which("mariadbd") or "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={folder}/db"),
            *(f"--socket={folder}/s", "--skip-networking", f"--log-error={folder}/log", f"--pid-file={folder}/pid"),
        ),
        env=server_place.environment,
    )
    client = ["--no-defaults", "-u", "root", f"--socket={folder}/s"]
    server_place.wait("mariadb", *client, "-e", "select 1")
    rows = "create table test.t (id int primary key auto_increment, text varchar(300), key (text))"
    server_place.call("mariadb", *client, "-e", f"create database test; {rows}")
    load = ["mariadb-slap", *client, "--create-schema=test", "--no-drop", "--concurrency=2"]
    insert = "insert into t (text) values (repeat('x', 200))"
    return server, {
        "insert": [*load, "--number-of-queries=6000", f"--query={insert}"],
        "select": [*load, "--number-of-queries=20000", "--query=select count(*) from t where id < 50"],
    }


@dataclass(frozen=True)
class DatabaseKind:
    """A server: what must be there, whose it is, and how it comes up."""

    name: str
    needs: str
    user: str
    start: Callable[[ServerLocation], tuple[subprocess.Popen[bytes], dict[str, Sequence[str]]]]


SERVERS = (
    DatabaseKind("redis", "redis-benchmark", "", start_redis),
    DatabaseKind("postgresql", "pgbench", "postgres", start_postgresql),
    DatabaseKind("mariadb", "mariadb-slap", "mysql", start_mariadb),
)


@dataclass(frozen=True)
class RunningServer:
    """A server, and the commands of its clients."""

    pid: int
    loads: Mapping[str, Sequence[str]]

    def processor(self) -> tuple[float, float]:
        """Seconds, user and system, of the server, its children, and theirs that have ended."""
        user = system = 0
        waiting = [self.pid]
        while waiting:
            process_folder = Path(f"/proc/{waiting.pop()}")
            try:
                stat_fields = (process_folder / "stat").read_text().rpartition(")")[2].split()
                waiting += map(int, (process_folder / f"task/{process_folder.name}/children").read_text().split())
            except OSError:
                continue  # it has just ended, and is its parent's now
            user, system = (
                user + int(stat_fields[11]) + int(stat_fields[13]),
                system + int(stat_fields[12]) + int(stat_fields[14]),
            )
        ticks = os.sysconf("SC_CLK_TCK")
        return user / ticks, system / ticks

    def turn(self, load: str) -> Turn:
        """One run of a client: its time, and what the server used meanwhile."""
        before = self.processor()
        real_s = run_turn(self.loads[load], {}).real_s
        time.sleep(0.2)  # processes that served it end, and are counted then
        after = self.processor()
        return Turn(real_s, after[0] - before[0], after[1] - before[1])


def measure_servers_in_turns(servers: Mapping[str, RunningServer], load: str, rounds: int) -> TurnResults:
    """As take_turns()."""
    result = TurnResults({variant: [] for variant in servers})
    ways = list(servers)
    for number in range(rounds):
        shift = number % len(ways)
        for variant in ways[shift:] + ways[:shift]:
            result.turns[variant].append(servers[variant].turn(load))
    return result


@contextmanager
def start_servers_side_by_side(kind: DatabaseKind, below: Path, library: Path) -> Iterator[dict[str, RunningServer]]:
    """A server for each way."""
    if shutil.which(kind.needs) is None or shutil.which("setpriv") is None:
        raise MissingProgramError(f"{kind.needs} is not on PATH")
    user = kind.user if os.geteuid() == 0 and kind.user else None
    servers: list[subprocess.Popen[bytes]] = []
    running: dict[str, RunningServer] = {}
    try:
        for number, (variant, params) in enumerate(DATABASE_SETTINGS.items()):
            folder = below / f"{kind.name}{number}"
            folder.mkdir()
            copy = folder / library.name  # the server's user may not be allowed to go where the library was built
            shutil.copyfile(library, copy)
            ours = {"LD_PRELOAD": str(copy), "IOBUF_PARAMS": params} if params else {}
            if user is not None:
                shutil.chown(folder, user, user)
            server, loads = kind.start(ServerLocation(folder, {**make_plain_environment(), **ours}, user))
            servers.append(server)
            running[variant] = RunningServer(server.pid, loads)
        yield running
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait(timeout=60)
