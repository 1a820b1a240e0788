# SPDX-License-Identifier: Apache-2.0
"""``sonde system`` as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SYSTEMS = Path(__file__).resolve().parents[3] / "systems"
WRONG_SYSTEM = """schema = "sonde-system/2"

[[networks]]
id = "net"
addresses = ["10.0.0.0/8"]

[[nodes]]
id = "n[1-4]"
memory = "much"
hue = "red"
[[nodes.interfaces]]
network = "net"
addresses = "10.0.0.[1-4]"

[[servers]]
id = "oss[1-3]"
failover = "pairs"
[[servers.interfaces]]
network = "elsewhere"
addresses = "10.0.1.[1-3]"

[[raid_groups]]
id = "g"
level = "6"
data = 8
parity = 1

[[raid_groups]]
id = "h"
level = "5"
data = 4
parity = 2

[[targets]]
id = "ost0"
kind = "ost"
server = "oss9"
file_system = "nothing"
"""


def test_all_problems_are_reported_at_once(sonde: Any, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(WRONG_SYSTEM, encoding="utf-8")
    result = sonde("system", "check", path)
    assert result.code == 2
    for text in (
        'networks.net lacks "kind": technology, one of aries', "nodes.n[1-4].memory", 'has no member "hue"',
        "pairs need an even number", '"elsewhere"', "RAID 6 has 2", "RAID 5 has 1", '"oss9"', '"nothing"',
    ):  # fmt: skip
        assert text in result.err.replace("\n", " "), text
    assert "9 problems." in result.err
    assert "Traceback" not in result.err
    document = sonde("system", "check", path, "--json").json
    assert len(document["problems"]) == 9
    assert not document["valid"]


def test_names_of_unreadable_tables_are_not_unknown(sonde: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(
        'schema = "sonde-system/2"\n[[networks]]\nid = "net"\n[[nodes]]\nid = "n"\n'
        '[[nodes.interfaces]]\nnetwork = "net"\n', encoding="utf-8"
    )  # fmt: skip
    problems = sonde("system", "check", path, "--json").json["problems"]
    assert len(problems) == 1
    assert 'lacks "kind"' in problems[0]


def test_broken_includes_are_reported(sonde: Any, tmp_path: Path) -> None:
    (tmp_path / "part.toml").write_text('schema = "sonde-system/2"\n[[drives]]\nkind = "wood"\n', encoding="utf-8")
    path = tmp_path / "all.toml"
    path.write_text('schema = "sonde-system/2"\ninclude = ["part.toml", "gone.toml"]\n', encoding="utf-8")
    result = sonde("system", "check", path)
    assert result.code == 2
    assert "gone.toml" in result.err
    assert 'lacks "id"' in result.err
    assert "wood" in result.err


@pytest.mark.parametrize(
    "system_name", sorted(path.stem for path in SYSTEMS.glob("*.toml") if "wishes" not in path.stem)
)
def test_shipped_systems_are_valid_and_can_be_displayed(sonde: Any, system_name: str) -> None:
    result = sonde("system", "check", system_name)
    assert result.code == 0, result.err
    assert "is valid" in result.out
    result = sonde("system", "show", system_name)
    assert result.code == 0, result.err
    assert "file system " in result.out


def test_counts_of_parts_agree_with_their_nouns(sonde: Any) -> None:
    for verb in ("check", "show"):
        output = sonde("system", verb, "laptop-md").out
        assert "1 node, 8 drives, 2 RAID groups, " in output
        assert "1 telemetry source, 1 log." in output


def test_system_show_prints_addresses_and_users_of_a_part(sonde: Any) -> None:
    output = sonde("system", "show", "cumulus", "router1").out
    assert "on aries: ipogif0 10.100.0.91" in output
    assert "on wolf-ib: ib0 10.10.1.91" in output
    drive = sonde("system", "show", "laptop-md", "md5").out
    assert "offers: 2.73 TiB" in drive
    assert "used by: bulk" in drive
    missing = sonde("system", "show", "cumulus", "roter1")
    assert missing.code == 2
    assert "Did you mean" in missing.err
