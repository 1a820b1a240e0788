# SPDX-License-Identifier: Apache-2.0
"""The table of cases is a module of its own beside the tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
