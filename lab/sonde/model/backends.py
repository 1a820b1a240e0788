# SPDX-License-Identifier: Apache-2.0
"""Facts about the engine's backends that the lab needs before a run; a test compares them with ``engine/backends``."""

from __future__ import annotations

# Backends whose trait `stores_data` is false: they reach no storage and need no space.
BACKENDS_WITHOUT_STORAGE = frozenset({"null", "paced"})
