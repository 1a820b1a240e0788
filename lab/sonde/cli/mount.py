# SPDX-License-Identifier: Apache-2.0
"""``sonde mount``: a described machine as a file system that really stores and takes as long as the machine would."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from sonde.launch.mounting import mount
from sonde.model.errors import DONE, UserError
from sonde.model.shipped import system_source
from sonde.model.system import read_system


@click.command("mount")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--system", metavar="FILE", required=True, help="Described machine: a system file, or the name of one.")
@click.option("--mount", "which", metavar="ID", default="", help="Mount, file system or pool; default: the first.")
@click.option(
    "--store", type=click.Path(path_type=Path), metavar="DIR", help="Where the bytes lie; default: DIRECTORY."
)
@click.option("--nodes", type=click.IntRange(1), default=1, help="Nodes of the machine that programs are dealt to.")
@click.option(
    "--speed",
    type=click.FloatRange(1e-6, 1000),
    default=1.0,
    help="Seconds of the machine in a second here: 0.01 for one that is a hundred times as fast as this computer.",
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
    "--fault", "faults", metavar="FAULT", multiple=True, help="What is wrong from the beginning, as of `fault`."
)
@click.option("--seed", type=click.IntRange(0, 2**62), default=1, help="Of all that is left to chance.")
@click.option("--kernel-cache", is_flag=True, help="Let the kernel keep pages; files can be mapped then.")
@click.option("--allow-other", is_flag=True, help="Let other users in.")
@click.option(
    "--free-of-cost", is_flag=True, help="End calls when their bytes are stored: how fast the mount itself is."
)
@click.option("--foreground", is_flag=True, help="Stay here until it is unmounted or interrupted.")
def command(
    directory: Path,
    system: str,
    which: str,
    store: Path | None,
    nodes: int,
    speed: float,
    lead: float | None,
    spin: float | None,
    faults: tuple[str, ...],
    seed: int,
    kernel_cache: bool,
    allow_other: bool,
    free_of_cost: bool,
    foreground: bool,
) -> int:
    """Mount a model of a described machine on DIRECTORY.

    Any program can use it. Its bytes are really stored, and each operation ends when the machine would have ended it.
    DIRECTORY (or --store) must be empty, or have been used for this before.

    \b
    Examples:
      sonde mount --system laptop-md /tmp/machine
      sonde fault /tmp/machine slow-target 0 10x
      sonde unmount /tmp/machine
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory; make it first.")
    machine = read_system(system_source(system))
    with tempfile.TemporaryDirectory(prefix="sonde-system-") as folder:
        resolved = Path(folder) / "system.json"
        resolved.write_text(machine.to_json(), encoding="utf-8")
        words = [str(directory.absolute()), "--system", str(resolved), "--seed", str(seed), "--nodes", str(nodes)]
        words += ["--speed", repr(speed)]
        words += ["--mount", which] if which else []
        words += ["--store", str(store.absolute())] if store else []
        words += ["--lead", repr(lead)] if lead is not None else []
        words += ["--spin", repr(spin)] if spin else []
        for fault in faults:
            words += ["--fault", fault]
        for flag, asked in (
            ("--kernel-cache", kernel_cache),
            ("--allow-other", allow_other),
            ("--free-of-cost", free_of_cost),
        ):
            words += [flag] if asked else []
        if foreground:
            click.echo(f"{directory} is {machine.id} until it is unmounted or interrupted.", err=True)
        code = mount(words, foreground)
    if not foreground:
        click.echo(f"{directory} is {machine.id} now; `sonde unmount {directory}` ends it.", err=True)
    return code or DONE
