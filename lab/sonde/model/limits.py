# SPDX-License-Identifier: Apache-2.0
"""Limits that a rate must meet to be classified as storage; `sonde check` and reports share them."""

from __future__ import annotations

MIN_PHASE_S = 0.5
"""Seconds. In a shorter phase, start and end of the tasks dominate the time."""

MIN_SMALL_FILE_PHASE_S = 0.1
"""Seconds, for phases of small files: thousands of operations, each one an independent sample."""

MIN_SUSTAINED_S = 50.0
"""Seconds. A shorter phase may have ended in caches of devices or servers."""

MAX_RESIDENCY_OF_COLD_FILE = 0.01
"""Largest fraction of the data in the page cache before a read that still counts as a read from storage."""
