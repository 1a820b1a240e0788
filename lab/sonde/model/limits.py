# SPDX-License-Identifier: Apache-2.0
"""What a rate must be to count as one of storage: the same limits for the check and for reports."""

from __future__ import annotations

SHORTEST_S = 0.5
"""Shorter phases are not trusted: their start and end weigh more than the storage."""

SHORTEST_FILES_S = 0.1
"""The same where each operation is a small file: they are counted in thousands, each a sample of its own."""

SUSTAINED_S = 50.0
"""From here on a rate is taken for one that lasts: shorter ones may have ended in caches of devices or servers."""

COLD = 0.01
"""The largest share of the data in the page cache before a read that still is one from storage."""
