# SPDX-License-Identifier: Apache-2.0
"""A line of text that shows how values moved."""

from __future__ import annotations

from collections.abc import Sequence

BLOCK_CHARACTERS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.:-=+*#"


def make_sparkline(values: Sequence[float], character_count: int, block_characters: str = BLOCK_CHARACTERS) -> str:
    """The last `character_count` values from zero to their maximum. Zero is the lowest block, so that a stall is seen
    as one."""
    displayed = values[-character_count:]
    top = max(displayed, default=0.0)
    if top <= 0:
        return block_characters[0] * len(displayed)
    return "".join(
        block_characters[min(len(block_characters) - 1, int(value / top * len(block_characters)))]
        for value in displayed
    )
