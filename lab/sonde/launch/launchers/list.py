# SPDX-License-Identifier: Apache-2.0
"""All launchers. To add a launcher, add a file with its class to this folder and its class to LAUNCHERS."""

from __future__ import annotations

import shlex

from sonde.launch.launchers.aprun import AprunLauncher
from sonde.launch.launchers.flux import FluxLauncher
from sonde.launch.launchers.jsrun import JsrunLauncher, LrunLauncher
from sonde.launch.launchers.launcher import Launcher
from sonde.launch.launchers.local import LocalLauncher
from sonde.launch.launchers.mpiexec import MpiexecLauncher
from sonde.launch.launchers.srun import SrunLauncher
from sonde.launch.launchers.ssh import SshLauncher
from sonde.model.errors import UserError

LAUNCHERS: tuple[type[Launcher], ...] = (
    LocalLauncher,
    MpiexecLauncher,
    SrunLauncher,
    FluxLauncher,
    AprunLauncher,
    JsrunLauncher,
    LrunLauncher,
    SshLauncher,
)
LOCAL = LocalLauncher.name


def list_launcher_names() -> list[str]:
    """The values of --launcher."""
    return [launcher.name for launcher in LAUNCHERS]


def make_launcher(launcher_name: str, rank_count: int, extra_arguments: str = "") -> Launcher:
    """The launcher of that name; `extra_arguments` holds further arguments for it, as typed in a shell. Raises
    UserError for an unknown name, MachineError when the launcher cannot be used on this machine."""
    try:
        options = shlex.split(extra_arguments)
    except ValueError as reason:
        raise UserError(f'--launcher-args "{extra_arguments}" cannot be split into arguments: {reason}.') from None
    for launcher in LAUNCHERS:
        if launcher.name == launcher_name:
            return launcher.make_for_ranks(rank_count, options)
    raise UserError(f'There is no launcher "{launcher_name}"; known are {", ".join(list_launcher_names())}.')
