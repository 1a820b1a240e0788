# SPDX-License-Identifier: Apache-2.0
"""``sonde mount``: mounts a simulated machine as a file system that stores data with the machine's timing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from sonde.launch.mounted_machine import mount_machine, require_no_machine
from sonde.model.bundled_files import find_system_file
from sonde.model.confined_files import write_file
from sonde.model.errors import EXIT_OK, UserError
from sonde.model.system import read_system
from sonde.terminal.encoding import print_plain_text


@click.command("mount")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--system", metavar="FILE", required=True, help="System file of the machine, or the name of a shipped one."
)
@click.option("--mount", "mount_id", metavar="ID", default="", help="Mount, file system or pool; default: the first.")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory for the stored bytes; default: DIRECTORY.",
)
@click.option(
    "--nodes", type=click.IntRange(1), default=1, help="Nodes of the machine that programs are distributed over."
)
@click.option(
    "--speed",
    type=click.FloatRange(1e-6, 1000),
    default=1.0,
    help="Seconds of the machine per second here: 0.01 for a machine 100 times as fast as this computer.",
)
@click.option(
    "--lead",
    metavar="S",
    type=click.FloatRange(0, 1),
    help="Seconds from an answer to the next call that are not the program's.",
)
@click.option(
    "--spin",
    metavar="S",
    type=click.FloatRange(0, 1),
    help="Seconds to look out for the next call before sleeping: short calls of few tasks are answered sooner, and a"
    " processor has no time for others meanwhile.",
)
@click.option(
    "--fault",
    "faults",
    metavar="FAULT",
    multiple=True,
    help="Fault that is active from the start, as for `sonde fault`.",
)
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, help="Seed of the random numbers.")
@click.option("--kernel-cache", is_flag=True, help="Let the kernel cache pages, which mmap needs.")
@click.option("--allow-other", is_flag=True, help="Allow access by other users.")
@click.option(
    "--no-cost", is_flag=True, help="End calls as soon as their bytes are stored, to measure the mount itself."
)
@click.option("--foreground", is_flag=True, help="Stay in the foreground until it is unmounted or interrupted.")
def command(
    directory: Path,
    system: str,
    mount_id: str,
    store: Path | None,
    nodes: int,
    speed: float,
    lead: float | None,
    spin: float | None,
    faults: tuple[str, ...],
    seed: int,
    kernel_cache: bool,
    allow_other: bool,
    no_cost: bool,
    foreground: bool,
) -> int:
    """Mount a model of a machine on DIRECTORY.

    Any program can use it. Its bytes are stored, and each operation ends when the machine would have ended it.
    DIRECTORY (or --store) must be empty or from an earlier mount.

    \b
    Examples:
      sonde mount --system laptop-md /tmp/machine
      sonde mount --system cray-x1 /tmp/machine --foreground
      sonde fault /tmp/machine slow-target 0 10x
      sonde unmount /tmp/machine

    More: sonde help concepts/mount
    """
    require_no_machine(directory)
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory; make it first.")
    machine = read_system(find_system_file(system))
    with tempfile.TemporaryDirectory(prefix="sonde-system-") as folder:
        resolved = Path(folder) / "system.json"
        write_file(resolved, machine.to_json())
        arguments = ["--system", str(resolved), "--seed", str(seed), "--nodes", str(nodes)]
        arguments += ["--speed", repr(speed)]
        arguments += ["--mount", mount_id] if mount_id else []
        arguments += ["--store", str(store.absolute())] if store else []
        arguments += ["--lead", repr(lead)] if lead is not None else []
        arguments += ["--spin", repr(spin)] if spin else []
        for fault in faults:
            arguments += ["--fault", fault]
        for flag, is_set in (
            ("--kernel-cache", kernel_cache),
            ("--allow-other", allow_other),
            ("--no-cost", no_cost),
        ):
            arguments += [flag] if is_set else []
        if foreground:
            print_plain_text(f"{directory} is {machine.id} until it is unmounted or interrupted.", to_stderr=True)
        code = mount_machine(directory, arguments, foreground)
    if not foreground:
        print_plain_text(f"{directory} is {machine.id} now; `sonde unmount {directory}` ends it.", to_stderr=True)
    return code or EXIT_OK
