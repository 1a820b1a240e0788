# SPDX-License-Identifier: Apache-2.0
"""The picture of nodes over time, pixel by pixel, for phases whose nodes are known."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from make_record import write_run
from numpy.typing import NDArray
from record_scene import Scene, Work, steady

from sonde.model.line_members import RateSpread
from sonde.model.lines import SeriesLine
from sonde.model.record import PhaseRecord
from sonde.model.run import RecordedRun, read_recorded_run_folder
from sonde.report.sections.node_heat_map import render_node_heat_map

# The palette of charts.heat: 0 half as fast or slower, 127 usual, 254 twice as fast or faster, 255 took no part.
SLOW, USUAL, ABSENT = 0, 127, 255


def picture(html: str) -> NDArray[np.uint8]:
    """The palette numbers of the picture in a page."""
    match = re.search(r"data:image/png;base64,([A-Za-z0-9+/=]+)", html)
    assert match
    data = base64.b64decode(match[1])
    width, height = struct.unpack(">II", data[16:24])
    offset, packed = 8, b""
    while offset < len(data):
        (length,) = struct.unpack(">I", data[offset : offset + 4])
        if data[offset + 4 : offset + 8] == b"IDAT":
            packed += data[offset + 8 : offset + 8 + length]
        offset += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(height, width + 1)
    return lines[:, 1:]


def store_known_run(folder: Path) -> tuple[RecordedRun, PhaseRecord]:
    """Four nodes with one task each; the third at a third of the rate of the others."""
    scene = Scene(works=[Work(curve=steady(400e6), seconds=10.0, slow={2: 3.0}, fsync=0, noise=0.0)], tasks=4, nodes=4)
    run = read_recorded_run_folder(write_run(folder, scene))
    return run, run.phases[0]


def test_each_node_has_a_row_and_the_slow_row_is_dark(tmp_path: Path) -> None:
    run, phase = store_known_run(tmp_path / "run")
    html = str(render_node_heat_map(run, phase, counts_operations=False))
    assert "Nodes over time" in html
    pixels = picture(html)
    assert pixels.shape[0] == 4
    middle = pixels.shape[1] // 8  # all of them are at work
    assert pixels[2, middle] == SLOW
    for row in (0, 1, 3):
        assert abs(int(pixels[row, middle]) - USUAL) < 20
        assert pixels[row, -1] == ABSENT, "who has finished is not slow"
    assert 'class="slow"' in html


def test_single_node_or_missing_series_have_no_heat_map(tmp_path: Path) -> None:
    run, phase = store_known_run(tmp_path / "run")
    assert render_node_heat_map(run, replace(phase, series=phase.series[:1]), counts_operations=False) is None
    assert render_node_heat_map(run, replace(phase, series=phase.series[:2]), counts_operations=False) is None
    assert render_node_heat_map(run, replace(phase, series=[]), counts_operations=False) is None


def test_heat_map_of_many_nodes_compares_extremes_with_the_median(tmp_path: Path) -> None:
    run, phase = store_known_run(tmp_path / "run")
    node_series = []
    for node, rate in enumerate([50, 50, 200, 200]):
        line = SeriesLine(t=0.0, phase="write", scope="node", node=node, slice_s=1.0, bytes=(rate,) * 20)
        node_series.append(
            replace(line, ops=(10,) * 20, active=(1,) * 20, extreme="slowest" if rate < 100 else "fastest")
        )
    band = SeriesLine(t=0.0, phase="write", scope="nodes", nodes=1000, slice_s=1.0)
    band = replace(band, node_rate=RateSpread(p50=(100.0,) * 20))
    html = str(render_node_heat_map(run, replace(phase, series=[band, *node_series]), counts_operations=False))
    assert "The slowest and the fastest nodes over time" in html
    assert "4 of 1,000 nodes" in html
    pixels = picture(html)
    assert (pixels[:2] == SLOW).all()
    assert (pixels[2:] == 2 * USUAL).all()
