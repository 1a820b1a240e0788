# SPDX-License-Identifier: Apache-2.0
"""A large site loads in a small multiple of the time that its text takes to parse; it grows as the site does."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from sonde.model.system import read_system

HEAD = """schema = "sonde-system/2"
[[networks]]
id = "hsn"
kind = "slingshot"
addresses = "10.0.0.0/8"
lnet = "kfi"
"""


def build_site_text(nodes: int) -> str:
    """A site that writes every node in a table of its own: the worst case."""
    return HEAD + "".join(
        f'[[nodes]]\nid = "nid{number:05d}"\nmemory = "512 GiB"\ncores = 128\n[[nodes.interfaces]]\nnetwork = "hsn"\n'
        f'addresses = "10.{number // 65536}.{number // 256 % 256}.{number % 256}"\n'
        for number in range(nodes)
    )


def cost(work: Callable[[], object]) -> float:
    """Processor seconds of the quickest of three: other programs on the machine do not count."""
    took = []
    for _ in range(3):
        begin = time.process_time()
        work()
        took.append(time.process_time() - begin)
    return min(took)


def test_loading_time_is_a_small_multiple_of_parsing(tmp_path: Path) -> None:
    small, large = tmp_path / "small.toml", tmp_path / "large.toml"
    small.write_text(build_site_text(400), encoding="utf-8")
    large.write_text(build_site_text(1600), encoding="utf-8")
    text = large.read_text(encoding="utf-8")
    parsing = cost(lambda: tomllib.loads(text))
    loading = cost(lambda: read_system(large))
    assert loading < 6 * parsing  # measured 2.5; a pass over all parts for each part would be hundreds
    assert loading < 8 * cost(lambda: read_system(small))  # four times as many nodes


def test_node_range_loads_faster_than_separate_tables(tmp_path: Path) -> None:
    ranged, tables = tmp_path / "ranged.toml", tmp_path / "tables.toml"
    ranged.write_text(
        HEAD + '[[nodes]]\nid = "nid[00001-10000]"\n[[nodes.interfaces]]\nnetwork = "hsn"\n'
        'addresses = "10.0.0.1 .. 10.0.39.16"\n',
        encoding="utf-8",
    )
    tables.write_text(build_site_text(1600), encoding="utf-8")
    system = read_system(ranged)
    assert len(system.list_part_ids("nodes")) == 10_000
    assert system.find_addresses("nid10000")[0].nid == "10.0.39.16@kfi"
    assert cost(lambda: read_system(ranged)) < cost(lambda: read_system(tables))


def test_the_resolved_form_of_a_large_site_grows_with_the_site(tmp_path: Path) -> None:
    took = {}
    for nodes, last in ((1000, "10.0.3.232"), (4000, "10.0.15.160")):
        path = tmp_path / f"{nodes}.toml"
        path.write_text(
            HEAD + f'[[nodes]]\nid = "nid[1-{nodes}]"\n[[nodes.interfaces]]\nnetwork = "hsn"\n'
            f'addresses = "10.0.0.1 .. {last}"\n',
            encoding="utf-8",
        )
        system = read_system(path)
        assert len(system.resolve()["nodes"]) == nodes
        took[nodes] = cost(system.resolve)
    assert took[4000] < 8 * took[1000]
