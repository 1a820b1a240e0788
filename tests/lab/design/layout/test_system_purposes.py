# SPDX-License-Identifier: Apache-2.0
"""File systems of the operating system, swap, dumps and checkpoints: where they go and how they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.design.checked_items import CheckedItem
from sonde.design.layout.check_permissions import find_permission_faults
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.design.layout.user_guide import make_user_guide
from sonde.model.errors import SystemFileError
from sonde.model.system import read_system

SYSTEM = """schema = "sonde-system/2"
id = "small"
[[enclosures]]
id = "box"
[[drives]]
id = "d[01-16]"
enclosure = "box"
capacity = "1 TB"
rate = "150 MB/s"
"""


def plan_purposes(folder: Path, *tables: str) -> LayoutPlan:
    file = folder / "small.toml"
    file.write_text(SYSTEM + "".join(f"[[file_systems]]\n{table}\n" for table in tables), encoding="utf-8")
    return plan_layout(read_system(file))


def describe_requirement(name: str, purpose: str, capacity: str, kind: str = "xfs") -> str:
    return f'id = "{name}"\nkind = "{kind}"\npurpose = "{purpose}"\nrequirement = {{ capacity = "{capacity}" }}'


def test_small_purposes_share_a_mirror_and_root_copies_do_not(tmp_path: Path) -> None:
    plan = plan_purposes(
        tmp_path, describe_requirement("root[1-2]", "root", "20 GB"), describe_requirement("var", "var", "20 GB"),
        describe_requirement("opt", "opt", "10 GB"), describe_requirement("swap0", "swap", "30 GB", "swap"),
    )  # fmt: skip
    groups = {layout.id: {inner.id for inner in layout.first_device.iterate_top_down() if inner.kind == "raid_groups"}
              for layout in plan.file_systems}  # fmt: skip
    assert not groups["root1"] & groups["root2"], "one lost array must leave a copy of root"
    assert groups["var"] | groups["opt"] | groups["swap0"] <= groups["root1"] | groups["root2"]
    script = make_layout_scripts(plan)["layout.sh"]
    assert "mkswap --label swap0" in script
    assert "swapon" in script
    assert "none swap sw 0 0" in script


def test_checkpoint_directory_gets_the_mode_of_pbs(tmp_path: Path) -> None:
    script = make_layout_scripts(plan_purposes(tmp_path, describe_requirement("ckpt", "checkpoint", "2 TB")))[
        "layout.sh"
    ]
    assert "chmod 0700 /ckpt" in script


def test_dump_needs_a_size_and_users_get_its_buffer(tmp_path: Path) -> None:
    plan = plan_purposes(tmp_path, describe_requirement("dump", "dump", "2 TB"))
    guide = make_user_guide(plan.file_systems)
    assert "Dumps: 8 MB buffers" in guide
    assert "find DIRECTORY -xdev -type f -size +" in guide
    with pytest.raises(SystemFileError, match="500 MB a system node and 55 MB an application node"):
        plan_purposes(tmp_path, 'id = "dump"\nkind = "xfs"\npurpose = "dump"\nrequirement = { write = "1 GB/s" }')


def test_user_guide_states_sizes_of_the_planned_stripe(tmp_path: Path) -> None:
    plan = plan_purposes(
        tmp_path, describe_requirement("work", "scratch", "5 TB"), describe_requirement("var", "var", "9 GB")
    )
    (work,) = [layout for layout in plan.file_systems if layout.id == "work"]
    guide = make_user_guide([work])
    assert guide.startswith("work (scratch)\n")
    assert make_user_guide([layout for layout in plan.file_systems if layout.id == "var"]) == ""


@pytest.mark.parametrize(
    ("mode", "parent_mode", "kinds"),
    [
        (0o700, 0o755, set()),
        (0o755, 0o755, {"checkpoint directory open to others"}),
        (0o700, 0o777, {"parent of checkpoints"}),
        (0o700, 0o700, {"parent of checkpoints"}),
    ],
)
def test_permissions_for_checkpoints_are_checked(mode: int, parent_mode: int, kinds: set[str], tmp_path: Path) -> None:
    directory = tmp_path / "parent" / "checkpoints"
    directory.mkdir(parents=True)
    directory.chmod(mode)
    directory.parent.chmod(parent_mode)
    results = list(find_permission_faults(directory))
    faults = [fault for fault in results if not isinstance(fault, CheckedItem)]
    below = [fault for fault in faults if fault.location.startswith(str(directory.parent))]
    assert {fault.kind for fault in below} == kinds
    directory.parent.chmod(0o755)
