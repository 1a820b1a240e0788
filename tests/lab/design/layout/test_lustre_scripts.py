# SPDX-License-Identifier: Apache-2.0
"""Scripts for the servers of Lustre: management and metadata targets, service nodes, spares, parameters, queues."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from storage_builders import build_lun_system, make_requirement

from sonde.design.layout.commands import list_queue_settings
from sonde.design.layout.device_names import DeviceNames
from sonde.design.layout.geometry import KIB, parse_geometry
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.design.layout.segments import choose_segment
from sonde.model.bundled_files import find_system_file
from sonde.model.system import make_system, read_system


def build_lustre(segment: str = "1 MiB", separate_mgt: bool = False) -> dict[str, Any]:
    """Two metadata and two object servers in pairs; each has a RAID 6 of ten drives and shares two spares."""
    document: dict[str, Any] = {
        "schema": "sonde-system/2",
        "id": "lustre",
        "networks": [{"id": "ib", "kind": "infiniband", "addresses": ["10.0.0.0/24"], "lnet": "o2ib"}],
        "servers": [
            {"id": f"{role}[1-2]", "roles": roles, "failover": "pairs",
             "interfaces": [{"network": "ib", "device": "ib0", "addresses": f"10.0.0.[{first}-{first + 1}]"}]}
            for role, roles, first in (("mds", ["mds", "mgs"], 1), ("oss", ["oss"], 11))
        ],
        "drives": [{"id": "d[0-21]", "capacity": "4 TB", "device": "/dev/disk/by-id/d[0-21]"},
                   {"id": "m[0-3]", "kind": "ssd", "capacity": "1 TB", "device": "/dev/disk/by-id/m[0-3]"}],
        "raid_groups": [
            {"id": "g[0-1]", "level": "6", "data": 8, "parity": 2, "segment": segment, "drives": "d[0-19]",
             "spares": "d[20-21]"},
            {"id": "mm[0-1]", "level": "1", "data": 1, "parity": 1, "drives": "m[0-3]"},
        ],
        "file_systems": [{"id": "fs", "kind": "lustre"}],
        "targets": [
            {"id": "ost[0-1]", "kind": "ost", "file_system": "fs", "index": 0, "on": "g[0-1]", "server": "oss[1-2]"},
            {"id": "mdt0", "kind": "mdt", "file_system": "fs", "index": 0, "on": "mm0", "server": "mds1"},
        ],
    }  # fmt: skip
    if separate_mgt:
        document["targets"].append({"id": "mgt", "kind": "mgt", "file_system": "fs", "on": "mm1", "server": "mds2"})
    return document


def make_scripts(document: dict[str, Any]) -> dict[str, str]:
    return make_layout_scripts(plan_layout(make_system(document, "made.toml")))


def find_commands(script: str, program: str) -> list[list[str]]:
    return [shlex.split(line) for line in script.splitlines() if line.startswith(program)]


def test_first_mdt_holds_management_target() -> None:
    scripts = make_scripts(build_lustre())
    (mdt,) = find_commands(scripts["fs-mds1.sh"], "mkfs.lustre")
    assert {"--mdt", "--mgs", "--index=0", "--servicenode=10.0.0.1@o2ib", "--servicenode=10.0.0.2@o2ib"} <= set(mdt)
    assert not any(argument.startswith("--mgsnode") for argument in mdt)


def test_separate_management_target_is_made() -> None:
    scripts = make_scripts(build_lustre(separate_mgt=True))
    (mgt,) = find_commands(scripts["fs-mds2.sh"], "mkfs.lustre")
    (mdt,) = find_commands(scripts["fs-mds1.sh"], "mkfs.lustre")
    assert "--mgs" in mgt
    assert "--fsname=fs" not in mgt
    assert "--mgs" not in mdt
    assert {"--mgsnode=10.0.0.2@o2ib", "--mgsnode=10.0.0.1@o2ib"} <= set(mdt)


def test_osts_name_both_servers_and_management() -> None:
    (ost,) = find_commands(make_scripts(build_lustre())["fs-oss2.sh"], "mkfs.lustre")
    assert [argument for argument in ost if argument.startswith(("--mgsnode", "--servicenode"))] == [
        "--mgsnode=10.0.0.1@o2ib", "--mgsnode=10.0.0.2@o2ib",
        "--servicenode=10.0.0.12@o2ib", "--servicenode=10.0.0.11@o2ib",
    ]  # fmt: skip
    assert "--index=1" in ost


def test_parameters_are_for_the_management_server() -> None:
    scripts = make_scripts(build_lustre("1 MiB"))
    assert "brw_size=8" in scripts["fs-parameters.sh"]
    assert all("set_param" not in text for name, text in scripts.items() if name != "fs-parameters.sh")
    small = make_scripts(build_lustre("128 KiB"))
    assert not any("brw_size" in text for text in small.values()), "a stripe of 1 MiB: the default of 4 stays"


def test_missing_segments_are_chosen_and_said() -> None:
    plan = plan_layout(read_system(find_system_file("edison")))
    scripts = make_layout_scripts(plan)
    script = scripts["fs1-fs1-oss01.sh"]
    arrays = [array for array in find_commands(script, "mdadm") if "--level=6" in array]
    assert len(arrays) == 4
    assert all("--chunk=128K" in array for array in arrays)
    assert "stride=32,stripe_width=256" in script
    assert not any("brw_size" in text for text in scripts.values()), "a stripe of 1 MiB: the default of 4 stays"
    (note,) = plan.notes
    assert "fs1-md[000-095]" in note
    assert "128 KiB is chosen" in note
    assert [choose_segment(data) for data in (2, 4, 8, 10, 16)] == [512 * KIB, 256 * KIB, 128 * KIB, 64 * KIB, 64 * KIB]


def test_server_scripts_have_spares_and_queues() -> None:
    script = make_scripts(build_lustre())["fs-oss1.sh"]
    (array,) = find_commands(script, "mdadm")
    assert "--spare-devices=2" in array
    assert array[-2:] == ["/dev/disk/by-id/d20", "/dev/disk/by-id/d21"]
    settings = {tokens[1]: tokens[2] for tokens in find_commands(script, "queue ")}
    assert settings["md/stripe_cache_size"] == "8192"
    assert settings["md/group_thread_cnt"] == "4"
    assert settings["queue/nr_requests"] == "256"
    (disks,) = find_commands(script, "set -- ")
    assert "/dev/disk/by-id/d20" in disks


def test_unknown_server_address_is_a_variable() -> None:
    document = build_lustre()
    document["networks"][0].pop("lnet")
    script = make_scripts(document)["fs-oss1.sh"]
    assert set(re.findall(r'--servicenode="\$(\w+)"', script)) == {"NID_OSS1", "NID_OSS2"}
    assert set(re.findall(r'--mgsnode="\$(\w+)"', script)) == {"NID_MDS1", "NID_MDS2"}
    assert '[ -n "${NID_MDS1:-}" ]' in script


def test_pool_sets_no_queue_of_an_array() -> None:
    document = build_lun_system(file_systems=[make_requirement("tank", "scratch", "zfs", capacity="4 GB")])
    document["luns"], document["controllers"] = [], []
    document["links"] = []
    for group in document["raid_groups"]:
        group.pop("controller")
    layout = plan_layout(make_system(document, "made.toml"))
    pool = layout.get_layout("tank")
    names = DeviceNames(layout.system)
    settings = [setting for base in pool.devices for _, setting in list_queue_settings(pool, base, names)]
    assert settings
    assert not any(name.startswith("md/") or "read_ahead" in name for setting in settings for name in setting)


def test_stated_queue_depth_of_luns_is_set() -> None:
    document = build_lun_system(file_systems=[make_requirement("fs", "scratch", "xfs", capacity="4 GB")])
    for lun in document["luns"]:
        lun["queue_depth"] = 32
    (script,) = make_layout_scripts(plan_layout(make_system(document, "made.toml"))).values()
    assert ["queue", "device/queue_depth", "32"] in [tokens[:3] for tokens in find_commands(script, "queue ")]


@pytest.mark.parametrize("free_drives", [1, 2])
def test_groups_have_spares_of_their_own_while_drives_are_free(free_drives: int) -> None:
    document = {
        "schema": "sonde-system/2", "id": "box", "nodes": [{"id": "host"}], "enclosures": [{"id": "jbod"}],
        "drives": [{"id": f"d[0-{17 + free_drives}]", "kind": "hdd", "enclosure": "jbod", "capacity": "4 TB",
                    "rate": "200 MB/s"}],
        "file_systems": [make_requirement("fs", "scratch", "xfs", capacity="60 TB")],
    }  # fmt: skip
    plan = plan_layout(make_system(document, "made.toml"), parse_geometry("8+1"), member_count=2)
    (script,) = make_layout_scripts(plan).values()
    assert len(find_commands(script, "mdadm --create /dev/md/fs-g")) == 2
    assert script.count("--spare-devices=1") == free_drives
