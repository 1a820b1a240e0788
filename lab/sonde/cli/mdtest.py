# SPDX-License-Identifier: Apache-2.0
"""``sonde mdtest``: a command line of mdtest, measured by Sonde."""

from __future__ import annotations

from sonde.cli.tool_commands import make_tool_command

command = make_tool_command(
    "mdtest",
    """Run a command line of mdtest 4.1: the same trees, the same table, and the run kept in the archive.

    Options of Sonde come first, words of mdtest after them. `sonde-engine mdtest -h` lists mdtest's options; that
    program runs them under srun or mpiexec too, without Python.

    \b
    Examples:
      sonde mdtest -n 1000 -d /scratch/md
      sonde mdtest --tasks 4 -F -C -T -r -n 20000 -u -N 1 -d /scratch/md
      sonde mdtest --tasks 2 -I 100 -z 2 -b 4 -L -w 3901 -e 3901 -d /scratch/md

    More: sonde help reference/mdtest
    """,
)
