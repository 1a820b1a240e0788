# SPDX-License-Identifier: Apache-2.0
"""The command ``sonde``: one verb a file, and what a person sees on a terminal.

This folder knows options, tables, colors and exit codes. It must not know how anything is measured, launched or kept:
it asks the other folders and shows their answers. Nobody imports it.
"""

from sonde.cli.main import main

__all__ = ["main"]
