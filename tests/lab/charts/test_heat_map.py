# SPDX-License-Identifier: Apache-2.0
"""Heat maps: the picture holds the values, and the names that matter are there."""

from __future__ import annotations

import base64
import re
import struct
import zlib

import numpy as np

from sonde.charts.heat_map import MAX_HEAT_MAP_ROWS, HeatMap, render_heat_map


def decode_picture(html: str) -> np.ndarray:
    """The indices into the palette, rows x columns."""
    match = re.search(r"data:image/png;base64,([A-Za-z0-9+/=]+)", html)
    assert match
    data = base64.b64decode(match[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    offset, chunks = 8, {}
    while offset < len(data):
        (length,) = struct.unpack(">I", data[offset : offset + 4])
        kind, body = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        assert struct.unpack(">I", data[offset + 8 + length : offset + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        offset += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, width + 1)
    assert len(chunks[b"PLTE"]) == 3 * (2 * 127 + 2)
    return lines[:, 1:]


def test_values_become_colors_in_order() -> None:
    values = np.array([[0.25, 0.5, 0.8], [1.0, 2.0, np.nan]])
    pixels = decode_picture(str(render_heat_map(HeatMap("Nodes", "words", ["a", "b"], values, []))))
    assert pixels.tolist()[0][:2] == [0, 0]
    assert 0 < pixels[0, 2] < 127
    assert pixels.tolist()[1] == [127, 254, 255]


def test_unusual_rows_are_displayed_if_there_are_too_many() -> None:
    values = np.ones((5000, 60))
    values[1234] = 0.4
    names = [f"nid{number:05d}" for number in range(5000)]
    html = str(render_heat_map(HeatMap("Nodes", "words", names, values, [], marked=[1234])))
    assert decode_picture(html).shape == (MAX_HEAT_MAP_ROWS, 60)
    assert '<span class="slow" style="top:' in html
    assert "nid01234" in html
    assert "4600 more are not drawn" in html
    assert len(html) < 60_000


def test_names_cannot_break_the_page() -> None:
    html = str(render_heat_map(HeatMap("<b>", "<i>", ["<script>"], np.ones((1, 1)), [(0.0, "<u>")])))
    assert not re.search(r"<(b|i|u|script)>", html)
