# SPDX-License-Identifier: Apache-2.0
"""The known answers again, with the tasks on two, four and eight nodes: those of test_known_answers are collected here
a second time, and meet another engine. test_several_nodes.py has what is tried every time. One kernel serves all
"nodes", so they share a page cache; nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import many_nodes
import pytest
from many_nodes import ManyNodes
from start_ranks import Launcher

sys.path.insert(0, str(Path(__file__).parents[1] / "truth"))

from engine_over_nodes import EngineOverNodes
from test_known_answers import *  # noqa: F403

pytestmark = [pytest.mark.mpi, pytest.mark.root, pytest.mark.nightly]


@pytest.fixture(scope="module", params=[2, 4, 8])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyNodes]:
    if reason := many_nodes.explain_unavailability():
        pytest.skip(reason)
    prefix = f"sonde{os.getpid()}-{request.param}-"
    with ManyNodes(request.param, tmp_path_factory.mktemp("nodes"), prefix) as started_nodes:
        yield started_nodes


@pytest.fixture
def engine(engine_path: Path, nodes: ManyNodes, node_launcher: Launcher, tmp_path: Path) -> EngineOverNodes:
    folder = tmp_path / "run"
    folder.mkdir()
    return EngineOverNodes(engine_path, folder, nodes, node_launcher)
