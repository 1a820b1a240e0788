# SPDX-License-Identifier: Apache-2.0
"""``sonde ior``: a command line of IOR, measured by Sonde."""

from __future__ import annotations

from sonde.cli.tool_commands import make_tool_command

command = make_tool_command(
    "ior",
    """Run a command line of IOR 4.1: the same files, the same output, and the run kept in the archive.

    Options of Sonde come first, words of IOR after them. `sonde-engine ior -h` lists IOR's options; that program runs
    them under srun or mpiexec too, without Python.

    \b
    Examples:
      sonde ior -a POSIX -F -t 1m -b 1g -o /scratch/file
      sonde ior --tasks 4 -w -r -C -t 47008 -b 47008 -s 1000 -o /scratch/shared
      sonde ior --launcher srun --tasks 64 -f script.ior
      sonde ior -O summaryFormat=JSON -o /scratch/file > result.json

    More: sonde help reference/ior
    """,
)
