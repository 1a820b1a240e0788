# SPDX-License-Identifier: Apache-2.0
"""The directory of these tests is where their own modules are found."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
