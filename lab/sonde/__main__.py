# SPDX-License-Identifier: Apache-2.0
"""``python -m sonde`` is the command ``sonde``."""

import sys

from sonde.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
