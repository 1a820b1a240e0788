# SPDX-License-Identifier: Apache-2.0
"""Launches processes on a list of hosts over ssh, without MPI, batch system or a service on the hosts."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sonde.launch.launchers.launcher import Launcher, RankVariables
from sonde.model.errors import MachineError, UserError
from sonde.model.ranges import expand_name_range

_HOSTS_USAGE = '--launcher-args "--hosts n[01-16]"'
_OUTSIDE_BRACKETS_PATTERN = re.compile(r"[,\s]+(?![^\[]*\])")


@dataclass(frozen=True)
class SshLauncher(Launcher):
    """``sonde-engine ssh``, which starts the engine on each of `hosts` with the remote shell `shell`."""

    name = "ssh"
    rank_variables = (RankVariables("SONDE_SSH_RANK", "SONDE_SSH_RANKS"),)
    ranks: int
    hosts: Sequence[str]
    shell: str = ""
    """Program and options, separated by spaces; empty: the engine's default."""

    @classmethod
    def describe_unavailability(cls) -> str:
        return "" if shutil.which("ssh") else "There is no ssh on PATH; install the OpenSSH client."

    @classmethod
    def make_for_ranks(cls, rank_count: int, extra_arguments: Sequence[str]) -> SshLauncher:
        """Reads the hosts from `extra_arguments`: `--hosts LIST` and, optionally, `--shell PROGRAM`.

        Raises UserError when these are wrong, MachineError when there is no remote shell.
        """
        values = _read_arguments(extra_arguments)
        hosts = _read_hosts(values.get("--hosts", ""))
        if rank_count < len(hosts):
            raise UserError(
                f"--launcher ssh has {len(hosts)} hosts for {rank_count} process{'' if rank_count == 1 else 'es'}; ask"
                f" for at least one for each host (--tasks {len(hosts)})."
            )
        program = (shlex.split(values.get("--shell", "")) or ["ssh"])[0]
        if shutil.which(program) is None:
            raise MachineError(f"There is no {program} on PATH, which --launcher ssh needs to reach the hosts.")
        return cls(rank_count, hosts, values.get("--shell", ""))

    def make_command_line(self, engine_command: Sequence[str]) -> list[str]:
        engine, *arguments = engine_command
        options = ["--hosts", ",".join(self.hosts), "--processes", str(self.ranks)]
        options += ["--shell", self.shell] if self.shell else []
        return [engine, "ssh", *options, *arguments]


def _read_arguments(arguments: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    remaining = list(arguments)
    while remaining:
        option, _, value = remaining.pop(0).partition("=")
        if option not in ("--hosts", "--shell"):
            raise UserError(f"--launcher ssh has no argument {option}; it takes --hosts and --shell: {_HOSTS_USAGE}.")
        if not value and not remaining:
            raise UserError(f"--launcher ssh: {option} needs a value after it: {_HOSTS_USAGE}.")
        values[option] = value or remaining.pop(0)
    return values


def _read_hosts(hosts_argument: str) -> list[str]:
    """The names of `hosts_argument`: separated by commas, with ranges, or `@FILE` with such names in each line (#
    comments)."""
    if hosts_argument.startswith("@"):
        try:
            lines = Path(hosts_argument[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as reason:
            raise UserError(f"--launcher ssh cannot read the hosts in {hosts_argument[1:]}: {reason}.") from None
        hosts_argument = ",".join(line.partition("#")[0].strip() for line in lines)
    hosts = [
        name for part in _OUTSIDE_BRACKETS_PATTERN.split(hosts_argument) if part for name in expand_name_range(part)
    ]
    if not hosts:
        raise UserError(f"--launcher ssh needs the hosts on which the processes start: {_HOSTS_USAGE}.")
    for name in hosts:
        if name.startswith("-"):
            raise UserError(f"--launcher ssh: {name} is no host name; it begins with a dash.")
        if hosts.count(name) > 1:
            raise UserError(f"--launcher ssh: the host {name} is listed twice; ask for more --tasks instead.")
    return hosts
