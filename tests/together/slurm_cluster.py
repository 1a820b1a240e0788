# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of three nodes on this machine: munge, slurmctld, three slurmd, all on loopback, ended by the test."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "sinfo")
NODES = ("n1", "n2", "n3")
_PATIENCE_S = 30.0


def missing() -> str:
    """Why there can be no Slurm here; empty when there can."""
    if os.geteuid() != 0:
        return "slurmctld and slurmd are started as root"
    absent = [name for name in NEEDED if program(name) is None]
    return f"{', '.join(absent)} of Slurm and munge are not installed" if absent else ""


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class NotStartedError(Exception):
    """A daemon did not come up."""


class Slurm:
    """One cluster. `environment` is what clients need to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: Mapping[str, str] = {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> str:
        """Starts everything. Returns why it did not come up, or nothing."""
        self.folder.chmod(0o755)
        for name in ("state", *NODES):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(self._configuration())
        try:
            self._munge()
            self._start("slurmctld", "-c", "-f", str(self.folder / "slurm.conf"))
            for node in NODES:
                self.start_node(node)
            self._wait(f"idle {len(NODES)}")
        except (NotStartedError, OSError, subprocess.SubprocessError) as reason:
            return str(reason)
        return ""

    def start_node(self, node: str) -> None:
        """A host of its own name, with memory of its own to share: MPI finds two nodes where there is one machine."""
        slurmd = f"exec {program('slurmd')} -N {node} -c -f {self.folder / 'slurm.conf'}"
        self._start("unshare", "-m", "-u", "sh", "-c", f"hostname {node} && mount -t tmpfs none /dev/shm && {slurmd}")

    def kill_node(self, node: str) -> None:
        """Simulates a power loss of a machine: slurmd and its job processes end at once."""
        roots = [int((self.folder / f"slurmd.{node}.pid").read_text()), *_steps(self.folder / node)]
        for pid in [*roots, *(child for root in roots for child in _descendants(root))]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def output_of(self, *arguments: str) -> str:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **self.environment}
        )
        return done.stdout + done.stderr

    def close(self) -> None:
        self.output_of("scancel", "--state=RUNNING")
        pids = []
        for file in (*self.folder.glob("slurmd.*.pid"), self.folder / "ctld.pid", self.folder / "munge" / "pid"):
            with contextlib.suppress(OSError, ValueError):
                pids.append(int(file.read_text()))
        for number, patience_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 1.0)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            end = time.monotonic() + patience_s
            while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
                time.sleep(0.05)

    def _munge(self) -> None:
        """An authority of its own, with a key of its own: whatever runs on this machine is left alone."""
        folder = self.folder / "munge"
        folder.mkdir(mode=0o755)
        (folder / "key").write_bytes(secrets.token_bytes(1024))
        (folder / "key").chmod(0o400)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self._start("munged", "--force", *(f"--{option}={folder / name}" for option, name in files.items()))

    def _start(self, name: str, *arguments: str) -> None:
        done = subprocess.run([str(program(name)), *arguments], capture_output=True, text=True, timeout=30, check=False)
        if done.returncode:
            raise NotStartedError(f"{name}: {done.stdout}{done.stderr}")

    def _configuration(self) -> str:
        host, folder = socket.gethostname().split(".")[0], self.folder
        control, *ports = _free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs=4 State=UNKNOWN"
            for name, port in zip(NODES, ports, strict=True)
        )
        return f"""
ClusterName=made
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n/log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
MpiDefault=pmi2
SlurmdTimeout=60
KillWait=5
{nodes}
PartitionName=work Nodes={",".join(NODES)} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""

    def _wait(self, state: str) -> None:
        end = time.monotonic() + _PATIENCE_S
        while state not in (states := self.output_of("sinfo", "-h", "-o", "%t %D")):
            if time.monotonic() > end:
                raise NotStartedError(f"after {_PATIENCE_S:g} s nodes are {states}")
            time.sleep(0.1)


def _steps(folder: Path) -> list[int]:
    """Step daemons of one node: they stand in the folder of its log."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd") == str(folder) and b"slurmstepd" in (process / "cmdline").read_bytes():
                pids.append(int(process.name))
    return pids


def _descendants(pid: int) -> list[int]:
    output = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return [descendant for child in map(int, output.split()) for descendant in (child, *_descendants(child))]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [socket.getsockname()[1] for socket in sockets]
    for listener in sockets:
        listener.close()
    return ports
