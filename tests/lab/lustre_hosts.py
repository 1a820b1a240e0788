# SPDX-License-Identifier: Apache-2.0
"""Collected outputs of two servers of Lustre with two object targets each, and of one client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from sonde.design.layout.check_hosts import check_hosts
from sonde.design.layout.faults import LayoutFault
from sonde.design.layout.live.saved_output import read_hosts

NIDS = {"oss1": "10.0.0.11@o2ib", "oss2": "10.0.0.12@o2ib"}
CLIENT_SUFFIX = "-osc-ffff9a1b5c3e8000"
_LABEL = """   Read previous values:
Target:     fs-OST{0:04x}
Index:      {0}
Lustre FS:  fs
Mount type: ldiskfs
Flags:      0x2
              (OST )
Persistent mount opts: errors=remount-ro
Parameters: failover.node={1} mgsnode=10.0.0.1@o2ib:10.0.0.2@o2ib
"""


def print_server(host: str, rotating: Mapping[int, bool], failover: Mapping[int, str], options: str) -> dict[str, str]:
    """The outputs of one server; `rotating` are its targets and whether each is on a rotating drive."""
    partner = next(nid for name, nid in NIDS.items() if name != host)
    drives, mounts, outputs = [], [], {}
    for number, (index, is_rotating) in enumerate(rotating.items()):
        name = f"sd{'bcd'[number]}"
        label = f"fs-OST{index:04x}"
        drives.append({"name": name, "kname": name, "type": "disk", "size": 10**12, "rota": is_rotating,
                       "wwn": f"0x5000c500000000{index:02x}", "fstype": "ext4", "label": label})  # fmt: skip
        mounts.append({"target": f"/mnt/ost{index}", "source": f"/dev/{name}", "fstype": "lustre",
                       "options": f"rw,svname={label},osd=osd-ldiskfs"})  # fmt: skip
        outputs[f"tunefs.lustre --dryrun /dev/{name}"] = _LABEL.format(index, failover.get(index, partner))
    lines = [f"LABEL=fs-OST{index:04x} /mnt/ost{index} lustre {options} 0 0" for index in range(4)]
    return {
        "lsblk --json --bytes --output-all": json.dumps({"blockdevices": drives}),
        "findmnt --json --real": json.dumps({"filesystems": mounts}),
        "cat /etc/fstab": "\n".join(lines),
        **outputs,
    }


def print_client(servers: bool = True) -> dict[str, str]:
    """The outputs of a client; with `servers`, it prints which server has each target."""
    mount = {"target": "/fs", "source": "10.0.0.1@o2ib:10.0.0.2@o2ib:/fs", "fstype": "lustre", "options": "rw,flock"}
    nids = [NIDS["oss1"], NIDS["oss1"], NIDS["oss2"], NIDS["oss2"]]
    lines = [f"osc.fs-OST{index:04x}{CLIENT_SUFFIX}.{parameter}" for index, nid in enumerate(nids)
             for parameter in ("active=1", *[f"ost_conn_uuid={nid}"] * servers)]  # fmt: skip
    return {"findmnt --json --real": json.dumps({"filesystems": [mount]}), "lctl get_param": "\n".join(lines)}


def find_faults(
    folder: Path,
    *,
    extra: Mapping[str, Mapping[str, str]] | None = None,
    files: Mapping[str, str] | None = None,
    rotating: Mapping[int, bool] | None = None,
    failover: Mapping[int, str] | None = None,
    options: str = "defaults,noauto",
    client: Mapping[str, str] | None = None,
    indexes: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[LayoutFault, ...]:
    """The faults of all hosts together, with `extra` outputs of hosts and `files` of outputs by themselves."""
    media = rotating or dict.fromkeys(range(4), False)
    hosts = {
        host: print_server(host, {index: media[index] for index in served}, failover or {}, options)
        for host, served in (indexes or {"oss1": (0, 1), "oss2": (2, 3)}).items()
    } | {"login": dict(client or print_client())}
    paths = []
    for host, outputs in hosts.items():
        texts = {**outputs, **(extra or {}).get(host, {})}
        path = folder / f"{host}.txt"
        path.write_text("".join(f"=== sonde layout collect: {name} ===\n{text}\n" for name, text in texts.items()))
        paths.append(path)
    for name, text in (files or {}).items():
        (folder / name).write_text(text)
        paths.append(folder / name)
    return check_hosts(read_hosts(paths)).faults


def print_component(
    number: int, indexes: tuple[int, ...], *, mirror: int = 0, flags: str = "init", begin: str = "0", end: str = "EOF"
) -> str:
    """One component of a file as lfs getstripe prints it."""
    objects = "".join(f"      - {each}: {{ l_ost_idx: {index}, l_fid: [0x100000000:0x21:0x0] }}\n"
                      for each, index in enumerate(indexes))  # fmt: skip
    return (
        f"    lcme_id:             {65536 * mirror + number}\n    lcme_mirror_id:      {mirror}\n"
        f"    lcme_flags:          {flags}\n    lcme_extent.e_start: {begin}\n    lcme_extent.e_end:   {end}\n"
        f"      lmm_stripe_count:  {len(indexes)}\n      lmm_stripe_size:   1048576\n      lmm_pattern:       raid0\n"
        f"      lmm_stripe_offset: {indexes[0]}\n      lmm_objects:\n{objects}\n"
    )


def print_file(*components: str) -> str:
    """A file with several components as lfs getstripe prints it."""
    return f"/fs/f\n  lcm_layout_gen:    2\n  lcm_entry_count:   {len(components)}\n{''.join(components)}"
