# SPDX-License-Identifier: Apache-2.0
"""``sonde unmount``: ends what ``sonde mount`` began."""

from __future__ import annotations

from pathlib import Path

import click

from sonde.launch.mounting import unmount
from sonde.model.errors import DONE


@click.command("unmount")
@click.argument("directory", type=click.Path(path_type=Path))
def command(directory: Path) -> int:
    """End the mounted machine on DIRECTORY. What was stored stays in its store.

    \b
    Examples:
      sonde unmount /tmp/machine
    """
    unmount(directory)
    click.echo(f"{directory} is unmounted.", err=True)
    return DONE
