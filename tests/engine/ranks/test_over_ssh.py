# SPDX-License-Identifier: Apache-2.0
"""Processes that `sonde-engine ssh` started: by a real sshd on each node, and what ends while they run."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import many_nodes
import pytest
import start_ranks
from engine_over_nodes import EngineOverNodes
from engine_under_test import (
    ENVIRONMENT,
    INTERRUPTED,
    Plan,
    Running,
    iterate_environments,
    list_tree,
    parse_record,
    read_parent_pid,
    write_plan,
)
from many_nodes import ManyNodes

pytestmark = pytest.mark.root
LONG: list[Plan] = [{"id": "first", "op": "write"}, {"id": "long", "op": "rewrite", "stop": {"time": "300s"}}]
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
SSHD_SETTINGS = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PidFile {folder}/{name}.pid
Port 22
"""
SSH_SETTINGS = """\
Host *
  User {user}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking accept-new
  BatchMode yes
"""


@pytest.fixture(autouse=True)
def _nodes_can_be_made() -> None:
    if reason := many_nodes.explain_unavailability():
        pytest.skip(reason)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[ManyNodes]:
    with ManyNodes(2, tmp_path) as started_nodes:
        yield started_nodes


def start_sshd(nodes: ManyNodes, folder: Path) -> list[subprocess.Popen[bytes]]:
    """An sshd on each node that admits one key. /run/sshd is where Debian's wants to separate privileges."""
    for key in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(command, check=True)
    (folder / "ssh_config").write_text(SSH_SETTINGS.format(folder=folder, user=getpass.getuser()))
    Path("/run/sshd").mkdir(exist_ok=True)
    servers = []
    for name in nodes.names:
        (folder / f"sshd-{name}").write_text(SSHD_SETTINGS.format(folder=folder, name=name))
        command = [str(folder / "remote-shell"), name, "exec", SSHD, "-D", "-e", "-f", str(folder / f"sshd-{name}")]
        with (folder / f"log-{name}").open("wb") as log:
            servers.append(subprocess.Popen(command, stderr=log))
    deadline = time.monotonic() + 20
    while not all((folder / f"{name}.pid").exists() for name in nodes.names):
        assert time.monotonic() < deadline, [(folder / f"log-{name}").read_text() for name in nodes.names]
        time.sleep(0.05)
    return servers


def test_real_sshd_on_two_nodes_starts_a_run(nodes: ManyNodes, engine_path: Path, target: Path, tmp_path: Path) -> None:
    if not Path(SSHD).exists():
        pytest.skip("needs sshd: tools/system-packages clusters")
    plan = write_plan(target, tasks={"threads": 1}, data={"verify": "readback"})
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    servers = start_sshd(nodes, tmp_path)
    try:
        shell = f"ssh -F {tmp_path}/ssh_config"
        command = nodes.start("ssh", (str(engine_path),), 4, "run", f"{tmp_path}/plan.json", "--record", "-")
        command[command.index("--shell") + 1] = shell
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    assert done.returncode == 0, done.stderr
    lines = parse_record(done.stdout)
    assert (lines[0]["processes"], lines[0]["nodes"]) == (4, 2)
    assert [line["host"] for line in lines if line["type"] == "node"] == nodes.names
    assert list_tree(target) == []


def find_processes(running: Running, argument: str) -> list[int]:
    """The engine's processes of this run that were started with this argument."""
    pids = [pid for pid, environment in iterate_environments() if running.token.encode() in environment]
    return [pid for pid in pids if argument.encode() in read_arguments(pid)[:2]]


def read_arguments(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def find_process_of_second_host(running: Running) -> int:
    """Process id of an engine process that the node command of n2 started; the root is on n1."""
    commands = find_processes(running, "ssh-node")
    others = {pid for pid, environment in iterate_environments() if b"SONDE_SSH_HOST=n2\0" in environment}
    return max(pid for pid in find_processes(running, "run") if pid in others and read_parent_pid(pid) in commands)


def kill_process(running: Running) -> None:
    os.kill(find_process_of_second_host(running), signal.SIGKILL)


def kill_node_command(running: Running) -> None:
    os.kill(read_parent_pid(find_process_of_second_host(running)), signal.SIGKILL)


@pytest.mark.parametrize("kill_part", [kill_process, kill_node_command])
def test_run_ends_when_a_part_of_it_is_killed(
    kill_part: Callable[[Running], None], nodes: ManyNodes, engine_path: Path, target: Path, tmp_path: Path
) -> None:
    plan = write_plan(target, *LONG, tasks={"threads": 4}, observe={"progress": "50ms"})
    engine = EngineOverNodes(engine_path, tmp_path, nodes, start_ranks.make_ssh_launcher())
    with engine.start(plan, env={"SONDE_NODE_PATIENCE": "2"}) as running:
        running.wait_for_phase("long")
        running.wait_for('"nodes_seen":2')
        kill_part(running)
        result = running.result()
        assert find_processes(running, "run") == find_processes(running, "ssh-node") == []
    assert result.code == 1, result.err
    assert result.of("end")[0]["status"] == "failed"
    assert result.finished("first")["bytes"]["transferred"] == 4 << 20
    assert list_tree(target) == []


def test_processes_end_in_good_order_without_the_hub(
    nodes: ManyNodes, engine_path: Path, target: Path, tmp_path: Path
) -> None:
    plan = write_plan(target, *LONG, tasks={"threads": 4}, observe={"progress": "50ms"})
    engine = EngineOverNodes(engine_path, tmp_path, nodes, start_ranks.make_ssh_launcher())
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        (hub,) = find_processes(running, "ssh")
        os.kill(hub, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while find_processes(running, "run") or find_processes(running, "ssh-node"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        end = parse_record(running.text())[-1]
    assert (end["type"], end["status"]) == ("end", "interrupted")
    assert list_tree(target) == []


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_hub_ends_all_processes_in_good_order(
    signal_number: signal.Signals, nodes: ManyNodes, engine_path: Path, target: Path, tmp_path: Path
) -> None:
    plan = write_plan(target, *LONG, tasks={"threads": 4})
    engine = EngineOverNodes(engine_path, tmp_path, nodes, start_ranks.make_ssh_launcher())
    with engine.start(plan) as running:
        running.wait_for_phase("long")
        (hub,) = find_processes(running, "ssh")
        os.kill(hub, signal_number)
        result = running.result()
    assert result.code == INTERRUPTED, result.err
    assert result.of("end")[0]["status"] == "interrupted"
    assert result.finished("first")["bytes"]["transferred"] == 4 << 20
    assert list_tree(target) == []


SHELLS = {
    "unreachable": ('echo "no route" >&2; exit 255', "n2 could not be reached: `"),
    "no engine": ("exit 127", "n2 cannot start "),
    "silent": ("exec true", "n2 could not be reached: `"),
    "another version": (
        "echo 'sonde-engine 0.0.1 waits for its start order'; exec sleep 60",
        "n2 would run engine 0.0.1, ",
    ),
}


@pytest.mark.parametrize("failure", SHELLS)
def test_nothing_starts_when_a_host_does_not_answer(
    failure: str, engine_path: Path, target: Path, tmp_path: Path
) -> None:
    commands, message = SHELLS[failure]
    shell = write_shell(tmp_path, f'[ "$host" = n2 ] && {{ {commands}; }}')
    result = start_over_shell(engine_path, shell, tmp_path, target)
    assert result.returncode == ENVIRONMENT
    assert result.stderr.splitlines()[-1].startswith(f"sonde-engine: {message}"), result.stderr
    assert list_tree(target) == []


def test_login_shell_output_is_not_parsed_as_messages(engine_path: Path, target: Path, tmp_path: Path) -> None:
    shell = write_shell(tmp_path, 'printf "Welcome\\nto $host "; printf "\\n"')
    result = start_over_shell(engine_path, shell, tmp_path, target)
    assert result.returncode == 0, result.stderr
    assert parse_record(result.stdout)[-1]["status"] == "done"


def test_messages_that_arrive_with_the_start_order_are_read(engine_path: Path, target: Path, tmp_path: Path) -> None:
    """The first host gets its order late, together with what the processes of the others have sent meanwhile."""
    shell = write_shell(tmp_path, '[ "$host" = n1 ] && { shift; { sleep 0.7; cat; } | eval "$@"; exit; }')
    result = start_over_shell(engine_path, shell, tmp_path, target)
    assert result.returncode == 0, result.stderr


def test_shell_that_waits_for_the_end_of_its_input_ends(engine_path: Path, target: Path, tmp_path: Path) -> None:
    """The program that passes on the input of the first host gets nothing more, after which it could notice the end."""
    shell = write_shell(tmp_path, '[ "$host" = n1 ] && { shift; cat | { (eval "$@"); sleep 0.7; }; exit; }')
    result = start_over_shell(engine_path, shell, tmp_path, target)
    assert result.returncode == 0, result.stderr


def write_shell(folder: Path, commands: str) -> Path:
    shell = folder / "shell"
    shell.write_text(f'#!/bin/sh\nhost=$1\n{commands}\nshift\nexport SONDE_PRETEND_NODE=$host\neval "$@"\n')
    shell.chmod(0o755)
    return shell


def start_over_shell(engine: Path, shell: Path, folder: Path, target: Path) -> subprocess.CompletedProcess[str]:
    (folder / "plan.json").write_text(json.dumps(write_plan(target, tasks={"threads": 1})))
    command = [str(engine), "ssh", "--hosts", "n1,n2,n3", "--processes", "3", "--shell", str(shell)]
    command += ["run", str(folder / "plan.json"), "--record", "-"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hosts", "n1", "--processes", "0"], "0 processes cannot be divided among 1 hosts"),
        (["--hosts", "n1,n2", "--processes", "1"], "1 processes cannot be divided among 2 hosts"),
        (["--hosts", ",", "--processes", "1"], "--hosts names no host"),
        (["--hosts", "n1,n1", "--processes", "2"], "--hosts: n1 stands there twice"),
        (["--hosts", "-oProxyCommand=sh", "--processes", "1"], "--hosts: -oProxyCommand=sh is no host name"),
        (["--hosts", "n1", "--processes", "1", "--shell", " "], "--shell names no program"),
    ],
)
def test_wrong_requests_are_refused_in_one_sentence(engine_path: Path, options: list[str], message: str) -> None:
    command = [str(engine_path), "ssh", *options, "run", "plan.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"sonde-engine: {message}")


def test_mpi_io_is_rejected_before_any_file_is_created(
    nodes: ManyNodes, engine_path: Path, target: Path, tmp_path: Path
) -> None:
    plan = write_plan(target, tasks={"threads": 2}, data={"backend": "mpiio"})
    with EngineOverNodes(engine_path, tmp_path, nodes, start_ranks.make_ssh_launcher()).start(plan) as running:
        result = running.result()
    assert result.code == ENVIRONMENT
    assert result.sentence.startswith("the backend needs MPI, and processes started over ssh have none")
    assert (result.lines, list_tree(target)) == ([], [])


def test_other_command_lines_print_on_standard_output(nodes: ManyNodes, engine_path: Path, target: Path) -> None:
    arguments = f"ior -a POSIX -F -t 4k -b 64k -w -r -R -G 5 -o {target}/f".split()
    command = nodes.start("ssh", (str(engine_path),), 4, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "nodes               : 2\ntasks               : 4\nclients per node    : 2\n" in done.stdout
