# SPDX-License-Identifier: Apache-2.0
"""``sonde unmount``: unmounts a machine that ``sonde mount`` mounted."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.launch.mounted_machine import unmount_machine
from sonde.model.errors import EXIT_OK
from sonde.terminal.encoding import print_plain_text


@click.command("unmount")
@click.argument("directory", type=click.Path(path_type=Path))
def command(directory: Path) -> int:
    """Unmount the machine on DIRECTORY. Its data stays in its store.

    \b
    Examples:
      sonde unmount /tmp/machine
      sonde unmount "$HOME/machine"

    More: sonde help concepts/mount
    """
    unmount_machine(directory)
    print_plain_text(f"{directory} is unmounted.", to_stderr=True)
    return EXIT_OK
