# SPDX-License-Identifier: Apache-2.0
"""Servers of a pair that see the same LUNs: targets that none has mounted, that moved, and settings that differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from storage_builders import describe_pair

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutCheck
from sonde.design.layout.live.saved_output import read_hosts
from sonde.design.layout.plan import plan_layout
from sonde.design.layout.written_attributes import list_written_attributes
from sonde.model.system import make_system

MANAGEMENT = "10.0.0.1@o2ib:10.0.0.2@o2ib"
PATH_SETTINGS = {
    "device/timeout": "30",
    "device/eh_timeout": "10",
    "device/queue_depth": "64",
    "queue/rq_affinity": "1",
}


@dataclass
class Server:
    """What one host has mounted, its source of the client's mount, its settings of paths, and its devices (lctl dl)."""

    mounted: tuple[str, ...]
    luns: tuple[str, ...]
    client: str = MANAGEMENT
    settings: Mapping[str, str] = field(default_factory=lambda: dict(PATH_SETTINGS))
    devices: tuple[str, ...] = ()
    features: Mapping[str, str] = field(default_factory=dict)
    system_disk: bool = False
    labels: tuple[str, ...] = ()  # of its maps, in lsblk
    requests: Mapping[str, str] = field(default_factory=dict)  # max_sectors_kb by device

    def print_outputs(self) -> dict[str, str]:
        maps, lines, dumps = "", "", dict[str, str]()
        mounts = [{"target": "/fs", "source": f"{self.client}:/fs", "fstype": "lustre", "options": "rw,flock"}
                  ] if self.client else []  # fmt: skip
        for number, lun in enumerate(self.luns):
            paths = [f"sd{chr(97 + 2 * number + side)}" for side in (0, 1)]
            maps += (f"{lun} (3600a0b80{lun}) dm-{number} ACME,LUN\n"
                     "size=14T features='1 queue_if_no_path' hwhandler='1 alua' wp=rw\n"
                     "`-+- policy='service-time 0' prio=50 status=active\n"
                     + "".join(f"  |- {2 + side}:0:0:{number} {path} 65:{number} active ready running\n"
                               for side, path in enumerate(paths)))  # fmt: skip
            lines += "".join(f"/sys/block/{path}/{name}:{value}\n" for path in paths
                             for name, value in self.settings.items())  # fmt: skip
        lines += "".join(f"/sys/block/{name}/queue/max_sectors_kb:{value}\n" for name, value in self.requests.items())
        block_devices = [{"kname": f"dm-{number}", "name": lun, "type": "mpath", "size": 1 << 40, "label": label}
                         for number, (lun, label) in enumerate(zip(self.luns, self.labels, strict=False))]  # fmt: skip
        if self.system_disk:
            block_devices.append({"kname": "nvme0n1", "name": "nvme0n1", "type": "disk", "size": 400 * 10**9})
            mounts.append({"target": "/", "source": "/dev/nvme0n1", "fstype": "xfs", "options": "rw"})
        for lun in self.mounted:
            stride, width = (16, 32) if lun == "mdt0" else (32, 256)
            label = f"fs-{lun[:3].upper()}000{lun[3]}"
            mounts.append({"target": f"/mnt/{lun}", "source": f"/dev/mapper/{lun}", "fstype": "lustre",
                           "options": f"rw,svname={label},mgsnode={MANAGEMENT}"})  # fmt: skip
            dumps[f"dumpe2fs -h /dev/mapper/{lun}"] = (
                f"Filesystem volume name:   {label}\nFilesystem magic number:  0xEF53\n"
                f"Filesystem features:      has_journal extent mmp flex_bg{self.features.get(lun, ' project')}\n"
                "Filesystem state:         clean\nBlock count:              3662109375\n"
                "Block size:               4096\nInode size:               512\nFlex block group size:    256\n"
                f"RAID stride:              {stride}\nRAID stripe width:        {width}\n"
            )
        devices = "".join(f" {number} UP {device}_UUID 5\n" for number, device in enumerate(self.devices))
        return {"multipath -ll": maps, "findmnt": json.dumps({"filesystems": mounts}), "grep": lines, **dumps,
                **({"lsblk": json.dumps({"blockdevices": block_devices})} if block_devices else {}),
                **({"lctl dl": devices} if devices else {})}  # fmt: skip


def make_pair() -> dict[str, Server]:
    luns = ("ost0", "ost1", "ost2", "ost3")
    management = ("mgs MGS MGS", "mdt fs-MDT0000 fs-MDT0000",
                  *(f"osp fs-OST000{number}-osc-MDT0000 fs-MDT0000-mdtlov" for number in range(4)))  # fmt: skip
    return {"oss1": Server(("ost0", "ost1"), luns), "oss2": Server(("ost2", "ost3"), luns),
            "mds1": Server(("mdt0",), ("mdt0",), devices=management)}  # fmt: skip


def check(servers: Mapping[str, Server], folder: Path) -> LayoutCheck:
    paths = []
    for host, server in servers.items():
        paths.append(folder / f"{host}.txt")
        paths[-1].write_text("".join(f"=== sonde layout collect: {command} ===\n{text}\n"
                                     for command, text in server.print_outputs().items()))  # fmt: skip
    plan = plan_layout(make_system(describe_pair(), "pair.toml"))
    layout = plan.get_layout("fs")
    return check_hosts(read_hosts(paths), layout, ["/fs"], list_written_attributes(plan.system, layout))


def test_pair_of_servers_is_sound(tmp_path: Path) -> None:
    verdict = check(make_pair(), tmp_path)
    assert verdict.faults == ()
    subjects = {item.subject for item in verdict.checked_items}
    assert {"a server of a planned target", "the targets of a metadata server", "the management service",
            "the management servers of a mount", "timeout of paths on hosts with the same LUNs",
            } <= subjects  # fmt: skip


@pytest.mark.parametrize("labels", [("fs-MDT0000",), ()])
@pytest.mark.parametrize("request_kb", ["128", "64"])
def test_standby_server_is_compared_by_its_targets(labels: tuple[str, ...], request_kb: str, tmp_path: Path) -> None:
    """Its system disk is not planned, and its LUN is planned for metadata, with other settings than those of data."""
    servers = make_pair()
    servers["mds2"] = Server((), ("mdt0",), "", system_disk=True, labels=labels, requests={"dm-0": request_kb})
    problems = [fault.problem for fault in check(servers, tmp_path).faults]
    is_wrong = bool(labels) and request_kb == "64"
    assert problems == ["max_sectors_kb is 64; planned is 128"] * is_wrong


def find_single(servers: Mapping[str, Server], folder: Path) -> tuple[str, str, str]:
    (fault,) = check(servers, folder).faults
    return fault.kind, fault.location, fault.problem


def test_target_that_no_server_mounts_is_reported(tmp_path: Path) -> None:
    servers = make_pair()
    servers["oss2"].mounted = ("ost3",)
    assert find_single(servers, tmp_path) == (
        "target not mounted", "fs-OST0002", "oss1 and oss2 see its device, but none has it mounted")  # fmt: skip


@pytest.mark.parametrize("moved", [("ost2",), ("ost2", "ost3")])
def test_target_on_its_failover_server_is_reported(tmp_path: Path, moved: tuple[str, ...]) -> None:
    servers = make_pair()
    servers["oss1"].mounted += moved
    servers["oss2"].mounted = tuple(lun for lun in ("ost2", "ost3") if lun not in moved)
    faults = check(servers, tmp_path).faults
    assert {fault.kind for fault in faults} == {"target on its failover server"}
    assert ", ".join(fault.location for fault in faults) == ", ".join(f"fs-OST000{lun[3]}" for lun in moved)
    assert all("oss1 has it mounted; its server in the plan is 10.0.0.12@o2ib (oss2)" in fault.problem
               for fault in faults)  # fmt: skip


def test_setting_of_one_server_of_a_pair_is_reported_once(tmp_path: Path) -> None:
    servers = make_pair()
    servers["oss2"].settings = PATH_SETTINGS | {"device/timeout": "120"}
    kind, location, problem = find_single(servers, tmp_path)
    assert (kind, location) == ("hosts differ", "oss1, oss2")
    assert problem == "timeout of the paths of their 4 common LUNs is 30 on oss1, 120 on oss2"


def test_settings_of_one_server_of_a_pair_are_one_fault(tmp_path: Path) -> None:
    servers = make_pair()
    servers["oss2"].settings = PATH_SETTINGS | {"device/timeout": "120", "device/queue_depth": "32"}
    kind, location, problem = find_single(servers, tmp_path)
    assert (kind, location) == ("settings lost", "oss1, oss2")
    assert "queue_depth of the paths of their 4 common LUNs is" in problem
    assert "timeout of the paths" in problem


def test_client_that_lacks_a_management_server_is_reported(tmp_path: Path) -> None:
    servers = make_pair()
    servers["oss1"].client = "10.0.0.1@o2ib"
    kind, location, problem = find_single(servers, tmp_path)
    assert (kind, location) == ("not as planned", "oss1: /fs")
    assert "planned management servers are 10.0.0.1@o2ib, 10.0.0.2@o2ib" in problem


def test_feature_of_a_target_is_compared_over_all_servers(tmp_path: Path) -> None:
    servers = make_pair()
    servers["oss2"].features = {"ost3": ""}
    kind, location, problem = find_single(servers, tmp_path)
    assert (kind, location) == ("differs from its peers", "fs-OST0003")
    assert "feature project is off; on 3 of 4 targets fs-OST* it is on" in problem


@pytest.mark.parametrize(("device", "kind"), [
    ("osp fs-OST0003-osc-MDT0000 fs-MDT0000-mdtlov", "target unknown to its metadata server"),
    ("mgs MGS MGS", "no management service")])  # fmt: skip
def test_device_that_a_metadata_server_lacks_is_reported(tmp_path: Path, device: str, kind: str) -> None:
    servers = make_pair()
    servers["mds1"].devices = tuple(each for each in servers["mds1"].devices if each != device)
    assert find_single(servers, tmp_path)[:2] == (kind, "mds1: fs-MDT0000")


def test_target_that_lfs_df_does_not_reach_has_its_full_name(tmp_path: Path) -> None:
    path = tmp_path / "df.txt"
    path.write_text("=== sonde layout collect: lfs df ===\nUUID 1K-blocks Used Available Use% Mounted on\n"
                    "fs-OST0000_UUID 100 10 90 10% /fs[OST:0]\nOST0001             : inactive device\n")  # fmt: skip
    (storage,) = read_hosts([path]).values()
    assert [each.location for each in storage.file_systems] == ["fs-OST0000", "fs-OST0001"]


def test_equal_fault_of_two_servers_is_one_fault(tmp_path: Path) -> None:
    servers = make_pair()
    for host in ("oss1", "oss2"):
        servers[host].settings = PATH_SETTINGS | {"device/timeout": "5"}
    kind, location, _ = find_single(servers, tmp_path)
    assert kind == "timeout too short"
    assert location.startswith("oss1: sda, ")
    assert "; oss2: sda, " in location


def test_lun_that_one_server_of_a_pair_does_not_see_is_reported(tmp_path: Path) -> None:
    servers = make_pair()
    servers["oss2"].luns = ("ost0", "ost2", "ost3")
    kind, location, problem = find_single(servers, tmp_path)
    assert (kind, location) == ("device not visible", "fs-OST0001")
    assert problem == "oss2 does not see its device, which oss1 sees"


def test_clients_of_two_servers_are_not_mixed(tmp_path: Path) -> None:
    """Both hosts may have the same address in the names of their clients."""
    paths = []
    for host, ahead in (("oss1", "1024"), ("oss2", "0")):
        paths.append(tmp_path / f"{host}.txt")
        paths[-1].write_text(
            f"=== sonde layout collect: lctl get_param ===\nllite.fs-ffff9a0c.max_read_ahead_mb={ahead}\n"
        )
    (fault,) = check_hosts(read_hosts(paths)).faults
    assert (fault.kind, fault.location) == ("parameter too small", "oss2: fs-ffff9a0c max_read_ahead_mb")
