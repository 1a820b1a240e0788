# SPDX-License-Identifier: Apache-2.0
"""Scripts for the servers of Lustre: management and metadata targets, service nodes, spares, parameters, queues."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from storage_builders import build_lun_system, build_lustre, describe_pair, make_requirement

from sonde.design.layout.commands import list_queue_settings
from sonde.design.layout.device_names import DeviceNames
from sonde.design.layout.geometry import KIB, parse_geometry
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.design.layout.segments import choose_segment
from sonde.model.bundled_files import find_system_file
from sonde.model.system import make_system, read_system


def make_scripts(document: dict[str, Any]) -> dict[str, str]:
    return make_layout_scripts(plan_layout(make_system(document, "made.toml")))


def find_commands(script: str, program: str) -> list[list[str]]:
    return [shlex.split(line) for line in script.splitlines() if line.startswith(program)]


def test_first_mdt_holds_management_target() -> None:
    scripts = make_scripts(build_lustre())
    (mdt,) = find_commands(scripts["fs-mds1.sh"], "mkfs.lustre")
    assert {"--mdt", "--mgs", "--index=0", "--servicenode=10.0.0.1@o2ib", "--servicenode=10.0.0.2@o2ib"} <= set(mdt)
    assert not any(argument.startswith("--mgsnode") for argument in mdt)


def test_separate_management_target_is_created() -> None:
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


@pytest.mark.parametrize("kind", ["lustre", "beegfs"])
def test_target_on_a_zfs_pool_gets_no_lines_of_mdadm(kind: str) -> None:
    document = build_lustre()
    document["volumes"] = [{"id": "pool", "kind": "zfs", "members": "g0"}]
    document["file_systems"][0]["kind"] = kind
    document["targets"][0]["on"] = ["pool", "g1"]
    script = make_scripts(document)["fs-oss1.sh"]
    assert find_commands(script, "mdadm") == []
    assert "stripe_cache_size" not in script
    assert "it is on the ZFS pool pool (g0 8+2)" in script
    assert ("mkfs.lustre --ost --fsname=fs --index=0 --backfstype=zfs pool/ost0" in script) == (kind == "lustre")


def test_parameters_are_for_the_management_server() -> None:
    scripts = make_scripts(build_lustre("1 MiB"))
    assert "brw_size=8" in scripts["fs-parameters.sh"]
    assert all("set_param" not in text for name, text in scripts.items() if name != "fs-parameters.sh")
    small = make_scripts(build_lustre("128 KiB"))
    assert not any("brw_size" in text for text in small.values()), "a stripe of 1 MiB: the default of 4 stays"


def test_missing_segments_are_chosen_and_reported() -> None:
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
    assert "--spare-devices=1" in array
    assert array[-1] == "/dev/disk/by-id/d20"
    settings = {tokens[1]: tokens[2] for tokens in find_commands(script, "queue ")}
    assert settings["md/stripe_cache_size"] == "8192"
    assert settings["md/group_thread_cnt"] == "4"
    assert settings["queue/nr_requests"] == "256"
    (disks,) = find_commands(script, "set -- ")
    assert "/dev/disk/by-id/d20" in disks


def test_spares_of_two_servers_are_divided() -> None:
    scripts = make_scripts(build_lustre())
    for name, drive, other in (("fs-oss1.sh", "d20", "d21"), ("fs-oss2.sh", "d21", "d20")):
        assert f"/dev/disk/by-id/{drive}" in scripts[name]
        assert f"/dev/disk/by-id/{other}" not in scripts[name]


def test_described_bitmap_files_are_used() -> None:
    document = build_lustre()
    document["raid_groups"][0]["bitmap"] = "/bitmaps/g[0-1]"
    scripts = make_scripts(document)
    arrays = {name: array for name, script in scripts.items() for array in find_commands(script, "mdadm")}
    assert "--bitmap=/bitmaps/g0" in arrays["fs-oss1.sh"]
    assert "--bitmap=/bitmaps/g1" in arrays["fs-oss2.sh"]
    assert "--bitmap=internal" in arrays["fs-mds1.sh"], "no file is described for it"
    assert find_commands(scripts["fs-oss1.sh"], "require_mount /") == [["require_mount", "/bitmaps"]]
    assert find_commands(scripts["fs-mds1.sh"], "require_mount /") == []


def test_script_refuses_bitmaps_without_file_system(tmp_path: Path) -> None:
    document = build_lustre()
    document["raid_groups"][0]["bitmap"] = "/bitmaps/g[0-1]"
    script = make_scripts(document)["fs-oss1.sh"]
    functions = script[script.index("refuse() {") : script.index("settle() {")]
    text = f"set -eu\nscript=made\n{functions}\nrequire_mount {tmp_path}\necho passed\n"
    completed = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False)
    assert (completed.returncode, completed.stdout) == (3, "")
    assert "is no mounted file system" in completed.stderr
    mounted = subprocess.run(
        ["sh"], input=text.replace(str(tmp_path), "/proc"), capture_output=True, text=True, check=True
    )
    assert mounted.stdout == "passed\n"


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


def test_raid_group_of_a_lun_without_controller_is_no_md() -> None:
    document = build_lun_system(file_systems=[make_requirement("fs", "scratch", "xfs", capacity="4 GB")])
    for group in document["raid_groups"]:
        group.pop("controller")
    for lun in document["luns"]:
        lun["controller"] = "ca"
    (script,) = make_layout_scripts(plan_layout(make_system(document, "made.toml"))).values()
    settings = {tokens[1] for tokens in find_commands(script, "queue ")}
    assert "queue/scheduler" in settings
    assert not any(setting.startswith("md/") for setting in settings)


def test_stated_queue_depth_of_luns_is_set() -> None:
    document = build_lun_system(file_systems=[make_requirement("fs", "scratch", "xfs", capacity="4 GB")])
    for lun in document["luns"]:
        lun["queue_depth"] = 32
    (script,) = make_layout_scripts(plan_layout(make_system(document, "made.toml"))).values()
    assert ["queue", "device/queue_depth", "32"] in [tokens[:3] for tokens in find_commands(script, "queue ")]


def make_block_device(folder: Path, name: str, paths: tuple[str, ...] = ()) -> None:
    """A disk with a depth, or a multipath map over disks, as sysfs shows them."""
    (folder / name / "queue").mkdir(parents=True)
    (folder / name / "queue" / "scheduler").write_text("other")
    for path in paths:
        (folder / name / "slaves").mkdir(exist_ok=True)
        (folder / name / "slaves" / path).symlink_to(folder / path)
    if not paths:
        (folder / name / "device").mkdir()
        (folder / name / "device" / "queue_depth").write_text("1")


def test_queue_depth_of_map_is_set_on_its_paths(tmp_path: Path) -> None:
    document = build_lun_system(file_systems=[make_requirement("fs", "scratch", "xfs", capacity="4 GB")])
    (script,) = make_layout_scripts(plan_layout(make_system(document, "made.toml"))).values()
    function = script[script.index("queue() {") : script.index("refuse() {")]
    blocks = tmp_path / "block"
    for name in ("sda", "sdb", "sdc"):
        make_block_device(blocks, name)
    make_block_device(blocks, "dm-0", ("sda", "sdb"))
    for name in ("dm-0", "sdc"):
        (tmp_path / name).touch()
    commands = f"queue device/queue_depth 32 {tmp_path}/dm-0 {tmp_path}/sdc; queue queue/scheduler none {tmp_path}/dm-0"
    text = f"set -eu\n{function.replace('/sys/class/block', str(blocks))}\n{commands}\n"
    completed = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=True)
    assert completed.stderr == ""
    depths = {path.parts[-3]: path.read_text().strip() for path in sorted(blocks.glob("*/device/queue_depth"))}
    assert depths == {"sda": "32", "sdb": "32", "sdc": "32"}
    schedulers = {path.parts[-3]: path.read_text().strip() for path in sorted(blocks.glob("*/queue/scheduler"))}
    assert schedulers == {"dm-0": "none", "sda": "other", "sdb": "other", "sdc": "other"}


def test_read_ahead_of_slice_is_set_on_its_disk() -> None:
    document = build_lun_system(file_systems=[make_requirement("fs", "scratch", "xfs", capacity="4 GB")])
    (script,) = make_layout_scripts(plan_layout(make_system(document, "made.toml"))).values()
    assert find_commands(script, "sgdisk"), "the file system is on a slice"
    assert [tokens[2:] for tokens in find_commands(script, "queue queue/read_ahead_kb")] == [["4096", "$DEV_B1G0_LUN"]]


@pytest.mark.parametrize("free_drives", [1, 2])
def test_groups_have_dedicated_spares_while_drives_are_free(free_drives: int) -> None:
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


def test_script_asks_for_devices_that_its_commands_use() -> None:
    """The drives behind the controller of an array are no devices of the host."""
    document = describe_pair()
    assert not any("${DEV_" in script for script in make_scripts(document).values())
    for lun in document["luns"]:
        del lun["device"]
    assert "${DEV_OLUN0:-}" in make_scripts(document)["fs-oss1.sh"]
    for target in document["targets"]:
        target["on"] = target["on"].replace("olun", "g").replace("mlun", "m")
    del document["luns"]
    for script in make_scripts(document).values():
        required = set(re.findall(r"\$\{(DEV_\w+):-\}", script))
        _, _, commands = script.partition("mkfs")
        assert all(f'"${name}"' in commands for name in required)
