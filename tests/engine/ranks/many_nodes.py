# SPDX-License-Identifier: Apache-2.0
"""Several "nodes" on one machine: network namespaces on a bridge, each with its own host name and /etc/hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# What hydra calls instead of ssh: `<script> [-x] HOST COMMAND…`. It enters the network of that node, with its own host
# name and hosts file. Not `ip netns exec`: that would also change /sys and the mounts of the whole session.
# A file env.HOST holds what is different on that node, as shell commands: another library, another mount.
REMOTE_SHELL = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1; shift
exec nsenter --net=/run/netns/{prefix}$host unshare --uts --mount --propagation private bash -c \\
    'hostname "$0"; mount --bind {hosts} /etc/hosts; [[ -e {folder}/env.$0 ]] && . {folder}/env.$0; eval "$@"' \\
    "$host" "$@"
"""
NETWORK = "10.94.0.0/24"


def explain_unavailability() -> str:
    """Empty when this machine can play several nodes, else the reason for a skip."""
    if os.geteuid() != 0:
        return "needs root: network namespaces"
    for program in ("ip", "nsenter", "unshare", "hostname", "mount"):
        if shutil.which(program) is None:
            return f"needs the program {program}"
    name = f"sonde-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"no network namespaces here: {tried.stderr.strip()}"
    bridge = subprocess.run(
        ["ip", "-n", name, "link", "add", "br0", "type", "bridge"], capture_output=True, text=True, check=False
    )
    subprocess.run(["ip", "netns", "del", name], check=False)
    return f"no bridges here: {bridge.stderr.strip()}" if bridge.returncode != 0 else ""


@dataclass
class ManyNodes:
    """`count` nodes n1, n2, … on one bridge; the launcher runs in the namespace of the bridge, as the head node."""

    count: int
    folder: Path
    prefix: str = field(default_factory=lambda: f"sonde{os.getpid()}-")

    @property
    def names(self) -> list[str]:
        return [f"n{i}" for i in range(1, self.count + 1)]

    def __enter__(self) -> ManyNodes:
        hosts = self.folder / "hosts"
        own_name = os.uname().nodename
        lines = ["127.0.0.1 localhost", f"10.94.0.100 head {own_name}"]
        lines += [f"10.94.0.{i} {name}" for i, name in enumerate(self.names, 1)]
        hosts.write_text("\n".join(lines) + "\n", encoding="utf-8")
        shell = self.folder / "remote-shell"
        shell.write_text(REMOTE_SHELL.format(prefix=self.prefix, hosts=hosts, folder=self.folder), encoding="utf-8")
        shell.chmod(0o755)
        head = self.prefix + "head"
        try:
            self._ip("netns", "add", head)
            self._ip("-n", head, "link", "add", "br0", "type", "bridge")
            for device in ("br0", "lo"):
                self._ip("-n", head, "link", "set", device, "up")
            self._ip("-n", head, "addr", "add", "10.94.0.100/24", "dev", "br0")
            for i, name in enumerate(self.names, 1):
                self._add_node(i, self.prefix + name, head)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _add_node(self, node_number: int, network_namespace: str, head_namespace: str) -> None:
        self._ip("netns", "add", network_namespace)
        self._ip("-n", network_namespace, "link", "set", "lo", "up")
        self._ip(
            "link",
            "add",
            "e0",
            "netns",
            network_namespace,
            "type",
            "veth",
            "peer",
            "name",
            f"v{node_number}",
            "netns",
            head_namespace,
        )
        self._ip("-n", head_namespace, "link", "set", f"v{node_number}", "master", "br0", "up")
        self._ip("-n", network_namespace, "link", "set", "e0", "up")
        self._ip("-n", network_namespace, "addr", "add", f"10.94.0.{node_number}/24", "dev", "e0")

    def _remove(self) -> None:
        for name in [*self.names, "head"]:
            subprocess.run(["ip", "netns", "del", self.prefix + name], capture_output=True, check=False)

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)

    def differs(self, node_name: str, commands: str) -> None:
        """Shell commands that run on one node before its processes start; empty by default."""
        (self.folder / f"env.{node_name}").write_text(commands, encoding="utf-8")

    def unplug(self, node_name: str) -> None:
        """Cuts the cable of a node: its messages are lost, and no connection is closed."""
        self._ip("-n", self.prefix + "head", "link", "set", f"v{self.names.index(node_name) + 1}", "down")

    def plug_in(self, node_name: str) -> None:
        self._ip("-n", self.prefix + "head", "link", "set", f"v{self.names.index(node_name) + 1}", "up")

    def mpiexec(self, mpiexec: Path, per_node: int, *command: str) -> list[str]:
        """The command line that runs `command` with `per_node` ranks on every node, by hydra."""
        return self.start("mpich", (str(mpiexec),), per_node * self.count, *command)

    def start(self, launcher: str, program: tuple[str, ...], ranks: int, *command: str) -> list[str]:
        """The command line that runs `command` with `ranks` ranks in all and fills the first nodes first. `launcher`:
        "mpich", "openmpi", or "ssh", where `program` is the engine, which starts itself on all nodes, and `command` are
        its arguments."""
        used = self.names[: min(self.count, ranks)]
        each, more = divmod(ranks, len(used))
        where = ",".join(f"{name}:{each + (number < more)}" for number, name in enumerate(used))
        shell = str(self.folder / "remote-shell")
        if launcher == "mpich":
            launch = [*program, "-launcher", "ssh", "-launcher-exec", shell, "-hosts", where]
        elif launcher == "ssh":
            options = ["--hosts", ",".join(used), "--processes", str(ranks), "--shell", shell]
            return [*self._enter_head(), *program, "ssh", *options, *command]
        else:
            settings = ("plm_rsh_agent", shell), ("oob_tcp_if_include", NETWORK), ("btl_tcp_if_include", NETWORK)
            launch = [*program, *(word for pair in settings for word in ("--mca", *pair)), "-H", where]
        return [*self._enter_head(), *launch, "-n", str(ranks), *command]

    def _enter_head(self) -> list[str]:
        """The words in front of a command that runs it on the head node."""
        inside = f'hostname head && mount --bind {self.folder}/hosts /etc/hosts && exec "$@"'
        enter = ["nsenter", f"--net=/run/netns/{self.prefix}head", "unshare", "--uts", "--mount"]
        return [*enter, "--propagation", "private", "bash", "-c", inside, "head"]
