# SPDX-License-Identifier: Apache-2.0
"""Mistakes with Lustre targets and clients of a drawn server, with the reason that a check must give."""

from __future__ import annotations

import json
import re
from random import Random

from drawn_servers import DrawnServer
from layout_mistake import Mistake, Plant


def _pick_ost(server: DrawnServer, random: Random) -> str:
    return random.choice(server.targets[1:])


def _plant_no_management_node(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    server.replace_text(f"tunefs {target}", "mgsnode=10.0.0.1@o2ib:10.0.0.2@o2ib ", "")
    return target


def _plant_other_management_node(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text(
        f"tunefs {target}", "mgsnode=10.0.0.1@o2ib:10.0.0.2@o2ib", f"mgsnode=10.0.0.{random.randint(7, 99)}@o2ib"
    )
    return target


def _plant_no_failover_node(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    text = server.outputs[f"tunefs {target}"]
    server.outputs[f"tunefs {target}"] = re.sub(r" failover.node=\S+", "", text)
    return target


def _plant_doubled_index(server: DrawnServer, random: Random) -> str:
    first, second = random.sample(server.targets[1:], 2)
    text = server.outputs[f"tunefs {second}"]
    text = text.replace(second, first)
    server.outputs[f"tunefs {second}"] = re.sub(r"Index:      \d+", f"Index:      {int(first[-4:], 16)}", text)
    return first


def _plant_never_registered(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text(f"tunefs {target}", "0x1002", "0x1062")
    server.replace_text(f"tunefs {target}", "(OST no_primnode", "(OST first_time update no_primnode")
    return target


def _plant_goes_on_after_errors(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    server.replace_text(f"tunefs {target}", "errors=remount-ro", "errors=continue")
    return target


def _plant_management_server_down(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl dl", "1 UP mgs", "1 IN mgs")
    return "MGS"


def _plant_metadata_target_down(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl dl", "UP mdt", f"{random.choice(['IN', 'ST'])} mdt")
    return "MDT0000"


def _plant_little_dirty_data(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text(
        "lctl", f"{target}-osc-ffff8.max_dirty_mb=512", f"{target}-osc-ffff8.max_dirty_mb={random.choice([0, 1, 2])}"
    )
    return target


def _plant_no_read_ahead(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl", "max_read_ahead_mb=256", f"max_read_ahead_mb={random.choice([0, 1])}")
    return "fs1"


def _plant_one_other_target(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.replace_text("lctl", f"{target}-osc-ffff8.max_rpcs_in_flight=16", f"{target}-osc-ffff8.max_rpcs_in_flight=8")
    return target


def _plant_one_metadata_request(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl", "mdc-ffff8.max_rpcs_in_flight=16", "mdc-ffff8.max_rpcs_in_flight=1")
    return "MDT0000"


def _plant_files_begin_on_one_target(server: DrawnServer, random: Random) -> str:
    server.replace_text("getstripe", "stripe_offset: -1", f"stripe_offset: {random.randint(0, 3)}")
    return "/fs1/work"


def _plant_full_target(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    percent = random.randint(93, 99)
    server.outputs["lfs df"] = re.sub(
        rf"({target}_UUID \d+ \d+ \d+ ) \d+%", rf"\g<1> {percent}%", server.outputs["lfs df"]
    )
    return target


def _plant_lost_target(server: DrawnServer, random: Random) -> str:
    target = _pick_ost(server, random)
    server.outputs["lfs df"] = re.sub(
        rf"{target}_UUID .*", f"{target}             : inactive device", server.outputs["lfs df"]
    )
    return target


def _plant_other_file_system_name(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    text = server.outputs[f"tunefs {target}"]
    server.outputs[f"tunefs {target}"] = text.replace("fs1", "sf1")
    return target.replace("fs1", "sf1")


def _plant_forgotten_writeconf(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets)
    server.replace_text(f"tunefs {target}", "no_primnode", "writeconf no_primnode")
    return target


def _plant_other_backend(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.replace_text(f"tunefs {target}", "Mount type: ldiskfs", "Mount type: zfs")
    return target


def _plant_forgotten_degraded(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.outputs["lctl"] += f"obdfilter.{target}.degraded=1\n"
    return target


def _plant_no_new_objects(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.outputs["lctl"] += f"osp.{target}-osc-MDT0000.max_create_count=0\n"
    return target


def _plant_small_client_cache(server: DrawnServer, random: Random) -> str:
    server.replace_text("lctl", "max_cached_mb=128000", f"max_cached_mb={random.choice([1, 4, 32])}")
    return "fs1"


def _plant_uneven_use(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.outputs["lfs df"] = re.sub(rf"({target}_UUID \d+ \d+ \d+ ) \d+%", rf"\g<1> {random.randint(84, 89)}%",
                                      server.outputs["lfs df"])  # fmt: skip
    return target


def _plant_no_inodes(server: DrawnServer, random: Random) -> str:
    percent = random.randint(94, 99)
    lines = ["UUID                      Inodes       IUsed       IFree IUse% Mounted on",
             f"fs1-MDT0000_UUID       1000000      {10000 * percent}       1000  {percent}% /fs1[MDT:0]"]  # fmt: skip
    server.outputs["lfs df -i"] = "\n".join(lines) + "\n"
    return "fs1-MDT0000"


def _add_parameter(text: str, location: str = "OST") -> Plant:
    """Prints a parameter of lctl; TARGET is a random object target, which is the location unless another is given."""

    def plant(server: DrawnServer, random: Random) -> str:
        target = random.choice(server.targets[1:])
        server.outputs["lctl"] += text.replace("TARGET", target) + "\n"
        return target if location == "OST" else location

    return plant


def _plant_one_network_only(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    server.replace_text(f"tunefs {target}", "mgsnode=", "network=tcp mgsnode=")
    return target


def _plant_index_of_another_target(server: DrawnServer, random: Random) -> str:
    target = random.choice(server.targets[1:])
    text = server.outputs[f"tunefs {target}"]
    server.outputs[f"tunefs {target}"] = re.sub(r"Index:      \d+", f"Index:      {random.randint(20, 90)}", text)
    return target


def _plant_local_locks(server: DrawnServer, random: Random) -> str:
    document = json.loads(server.outputs["findmnt"])
    document["filesystems"].append({"target": "/fs1", "source": "10.0.0.1@o2ib:/fs1", "fstype": "lustre",
                                    "options": "rw,localflock,lazystatfs"})  # fmt: skip
    server.outputs["findmnt"] = json.dumps(document)
    return "/fs1"


LUSTRE_MISTAKES: list[Mistake] = [
    Mistake("a target without management server", "management|mgsnode", _plant_no_management_node),
    Mistake("a target of another management server", "management|mgsnode", _plant_other_management_node),
    Mistake("a target without failover", "failover", _plant_no_failover_node),
    Mistake("an index used twice", "index|twice", _plant_doubled_index),
    Mistake("a target that never registered", "registered|first_time|first time", _plant_never_registered),
    Mistake("a target that goes on after errors", "errors", _plant_goes_on_after_errors),
    Mistake("a management server that is down", "inactive", _plant_management_server_down),
    Mistake("a metadata target that is down", "inactive", _plant_metadata_target_down),
    Mistake("little dirty data for a target", "max_dirty_mb", _plant_little_dirty_data, ("targets differ",)),
    Mistake("no read-ahead of clients", "read.?ahead", _plant_no_read_ahead),
    Mistake("one target with another setting", "differ", _plant_one_other_target),
    Mistake("one metadata request in flight", "max_rpcs_in_flight", _plant_one_metadata_request,
            ("parameter too small",)),
    Mistake("all files begin on one target", "offset|begin", _plant_files_begin_on_one_target),
    Mistake("a target that is full", "full", _plant_full_target),
    Mistake("a target that is lost", "inactive", _plant_lost_target),
    Mistake("a target with another file system name", "file system|fsname", _plant_other_file_system_name),
    Mistake("a forgotten writeconf", "writeconf", _plant_forgotten_writeconf),
    Mistake("a target of another backend", "ldiskfs|zfs", _plant_other_backend),
    Mistake("a target that is marked as degraded", "degraded", _plant_forgotten_degraded),
    Mistake("a target that gets no new objects", "new objects|max_create_count", _plant_no_new_objects),
    Mistake("a small cache of clients", "max_cached_mb", _plant_small_client_cache),
    Mistake("a target fuller than the others", "full", _plant_uneven_use),
    Mistake("a metadata target without inodes", "inode", _plant_no_inodes),
    Mistake("messages of all parts", "debug", _add_parameter(
            "debug=trace inode super malloc cache info ioctl neterror rpctrace vfstrace config", "debug")),
    Mistake("a target on one network", "network", _plant_one_network_only),
    Mistake("a name with another index", "index", _plant_index_of_another_target),
    Mistake("writes that wait for the journal", "sync_journal", _add_parameter("obdfilter.TARGET.sync_journal=1")),
    Mistake("locks of one node", "localflock", _plant_local_locks),
    Mistake("a target that makes no objects", "prealloc_status|objects",
            _add_parameter("osp.TARGET-osc-MDT0000.prealloc_status=-5")),
    Mistake("all files on all targets", "stripe.?count",
            _add_parameter("lod.fs1-MDT0000-mdtlov.stripecount=-1", "fs1")),
]  # fmt: skip
