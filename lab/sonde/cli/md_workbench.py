# SPDX-License-Identifier: Apache-2.0
"""``sonde md-workbench``: a command line of md-workbench, measured by Sonde."""

from __future__ import annotations

from sonde.cli.tool_commands import make_tool_command

command = make_tool_command(
    "md-workbench",
    """Run a command line of md-workbench 4.1: the same phases, the same lines, and the run kept in the archive.

    Options of Sonde come first, words of md-workbench after them. `sonde-engine md-workbench -h` lists md-workbench's
    options; that program runs them under srun or mpiexec too, without Python.

    \b
    Examples:
      sonde md-workbench -o /scratch/mdw
      sonde md-workbench --tasks 4 -P 1000 -I 500 -D 10 -R 3 -o /scratch/mdw
      sonde md-workbench --tasks 2 -1 --run-info-file=pos -o /scratch/mdw

    More: sonde help reference/md-workbench
    """,
)
