# SPDX-License-Identifier: Apache-2.0
"""LUNs of an enclosure leave a described system with everything that lies on them, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.design.layout.deletion import delete_enclosure_luns
from sonde.design.layout.plan import format_system_file
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import System, read_system


@pytest.fixture(scope="module")
def cray() -> System:
    return read_system(find_system_file("cray-x1"))


def test_published_command_removes_the_luns_of_one_s_brick(cray: System) -> None:
    deletion = delete_enclosure_luns(cray, "rs1-s2")
    assert deletion.command == "csmdelete 1 2 SBRICK"
    assert deletion.removed["luns"] == ("rs1-L00", "rs1-L02", "rs1-L04", "rs1-L06")
    assert "file_systems" not in deletion.removed
    assert deletion.bytes_freed == 582_000_000_000  # both groups of RG128


def test_file_system_on_a_deleted_lun_is_lost_too(cray: System, tmp_path: Path) -> None:
    deletion = delete_enclosure_luns(cray, "rs2-s2")
    assert deletion.removed["volumes"] == ("xlv0",)
    assert deletion.removed["file_systems"] == ("large",)
    file = tmp_path / "smaller.toml"
    file.write_text(format_system_file(deletion.system, "without LUNs"), encoding="utf-8")
    smaller = read_system(file)
    assert set(cray.list_part_ids("luns")) - set(smaller.list_part_ids("luns")) == {"rs2-L00", "rs2-L01"}
    assert smaller.list_part_ids("drives") == cray.list_part_ids("drives")
    assert "large" not in smaller.list_part_ids("file_systems")


@pytest.mark.parametrize(
    ("enclosure", "expected_text"),
    [("rs1-s9", 'has no enclosure "rs1-s9"'), ("rs1-c1", "holds no LUN")],
    ids=["unknown", "empty"],
)
def test_enclosure_without_luns_is_refused(cray: System, enclosure: str, expected_text: str) -> None:
    with pytest.raises(UserError, match=expected_text):
        delete_enclosure_luns(cray, enclosure)
