# SPDX-License-Identifier: Apache-2.0
"""A wrong system file gets one sentence: the file, the place in it, what is wrong, what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from sonde.model.errors import EXIT_BAD_INPUT, SystemFileError
from sonde.model.system import read_system

VALID_SYSTEM = """schema = "sonde-system/2"
[[networks]]
id = "ib"
kind = "infiniband"
addresses = "10.0.0.0/24"
lnet = "o2ib"
[[networks]]
id = "eth"
kind = "ethernet"
addresses = ["10.1.0.0/16", "fd00::/64"]
[[nodes]]
id = "n[1-4]"
group = "compute"
memory = "64 GB"
[[nodes.interfaces]]
network = "eth"
addresses = "10.1.0.[1-4]"
[[routers]]
id = "r[1-2]"
between = ["ib", "eth"]
[[routers.interfaces]]
network = "ib"
addresses = "10.0.0.[11-12]"
[[routers.interfaces]]
network = "eth"
addresses = "10.1.1.[11-12]"
[[servers]]
id = "oss[1-2]"
roles = "oss"
failover = "pairs"
[[servers.interfaces]]
network = "ib"
addresses = "10.0.0.[1-2]"
[[servers]]
id = "mds1"
roles = "mds"
[[enclosures]]
id = "box[1-2]"
slots = 12
[[controllers]]
id = "ctl[1-2]"
rate = "3 GB/s"
[[drives]]
id = "box[1-2]-d[01-12]"
group = "drives"
enclosure = "box[1-2]"
capacity = "1 TB"
[[raid_groups]]
id = "rg[1-2]"
level = "6"
data = 8
parity = 2
segment = "128 KiB"
drives = "box[1-2]-d[01-10]"
spares = "box[1-2]-d11"
blocks = 2
[[luns]]
id = "lun1"
raid_group = "rg1"
size = "6 TB"
[[luns]]
id = "lun2"
raid_group = "rg1"
[[slices]]
id = "s1"
on = "lun2"
share = "50 %"
[[volumes]]
id = "v1"
kind = "stripe"
members = ["lun1", "s1"]
stripe_unit = "1 MiB"
[[targets]]
id = "ost[0-1]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss[1-2]"
on = ["v1", "rg2"]
[[file_systems]]
id = "fs"
kind = "lustre"
[file_systems.stripe]
size = "1 MiB"
count = -1
[[file_systems]]
id = "other"
kind = "xfs"
[[units]]
id = "ssu1"
targets = "ost[0-1]"
[[pools]]
id = "p1"
file_system = "fs"
units = "ssu1"
[[mounts]]
id = "m1"
file_system = "fs"
path = "/fs"
on = "compute"
"""

# Name of the slip -> (what stands in RIGHT, what is written instead, parts of the sentence)
WRONG: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "no schema": ('schema = "sonde-system/2"\n', "", ("schema is missing", 'schema = "sonde-system/2"')),
    "another version": ('"sonde-system/2"', '"sonde-system/3"', ("schema", "sonde-system/2")),
    "not TOML": ("[[networks]]", "[[networks]", ("not valid TOML",)),
    "a misspelled kind of part": ("[[mounts]]", "[[mount]]", ('"mount"', 'Did you mean "mounts"?')),
    "a misspelled member": ("memory =", "memroy =", ("nodes.n[1-4]", '"memroy"', 'Did you mean "memory"?')),
    "an unknown member": ("memory =", "paint =", ('"paint"', "Allowed are")),
    "a table where a list belongs": ('[[mounts]]\nid = "m1"', '[mounts]\nid = "m1"', ("mounts", "[[mounts]]")),
    "more devices than LUNs": ('id = "lun1"', 'device = "/dev/sd[1-3]"\nid = "lun1"', ("luns.lun1.device", "3 names")),
    "a device with half a bracket": ('id = "lun1"', 'device = "/dev/sd[1-"\nid = "lun1"', (".device is not a range",)),
    "no id": ('[[controllers]]\nid = "ctl[1-2]"\n', "[[controllers]]\n", ("controllers.0", 'lacks "id"')),
    "an id with a space": ('"ctl[1-2]"', '"ctl 1"', ("controllers.ctl 1.id",)),
    "an empty id": ('id = "ctl[1-2]"', 'id = ""', ("controllers.0.id", "empty")),
    "no kind": ('kind = "ethernet"\n', "", ("networks.eth", 'lacks "kind"')),
    "an unknown kind": ('"infiniband"', '"infinband"', ("networks.ib.kind", 'Did you mean "infiniband"?')),
    "a size without a unit": ('"64 GB"', "64", ("nodes.n[1-4].memory", '"64 GB"')),
    "a bare letter": ('"64 GB"', '"64G"', ("nodes.n[1-4].memory", "64GiB", "64GB")),
    "bits or bytes": ('rate = "3 GB/s"', 'rate = "3 Gb/s"', ("controllers.ctl[1-2].rate", "Gbit/s", "GB/s")),
    "a rate that is no rate": ('rate = "3 GB/s"', 'rate = "3 GB"', ("controllers.ctl[1-2].rate", "/s")),
    "a third direction": ('rate = "3 GB/s"', 'rate = { raed = "3 GB/s" }', ('"raed"', 'Did you mean "read"?')),
    "a number with an unknown member": (
        '"64 GB"',
        '{ value = "64 GB", sorce = "x" }',
        ("nodes.n[1-4].memory", 'Did you mean "source"?'),
    ),
    "a number without its value": ('"64 GB"', '{ source = "x" }', ("nodes.n[1-4].memory", 'lacks "value"')),
    "an unknown status": (
        '"64 GB"',
        '{ value = "64 GB", status = "guessed" }',
        ("memory.status", "guessed", "assumed"),
    ),
    "a count with a fraction": ("slots = 12", "slots = 1.5", ("enclosures.box[1-2].slots", "whole number")),
    "a count of nothing": ("data = 8", "data = 0", ("raid_groups.rg[1-2].data", "at least 1")),
    "a share in words": ('share = "50 %"', 'share = "half"', ("slices.s1.share", '"40 %"')),
    "a share above one": ('share = "50 %"', "share = 50", ("slices.s1.share", "0 to 1")),
    "an unknown parameter": (
        'memory = "64 GB"',
        'model = { cal_rate = "5 op/s" }',
        ("nodes.n[1-4].model", 'Did you mean "call_rate"?'),
    ),
    "a range upside down": ('id = "n[1-4]"', 'id = "n[4-1]"', ("nodes.n[4-1].id", "smaller number first")),
    "a bracket alone": ('id = "n[1-4]"', 'id = "n[1-4"', ("nodes.n[1-4", "[001-036]")),
    "a range of too much": ('id = "n[1-4]"', 'id = "n[1-99999999]"', ("nodes", "cannot be meant")),
    "an id used twice": ('id = "mds1"', 'id = "oss2"', ("servers.oss2.id", "used once")),
    "a group named like a part": ('group = "compute"', 'group = "oss1"', ("nodes.n[1-4].group", "a name of its own")),
    "a name of nothing": ('server = "oss[1-2]"', 'server = "os[1-2]"', ("targets.ost[0-1].server", "os[1-2]")),
    "a name nearly right": ('units = "ssu1"', 'units = "ssu2"', ("pools.p1.units", 'Did you mean "ssu1"?')),
    "a part of another kind": (
        'server = "oss[1-2]"',
        'server = "rg[1-2]"',
        ("targets.ost[0-1].server", "servers or nodes"),
    ),
    "names that cannot be dealt out": (
        'enclosure = "box[1-2]"',
        'enclosure = ["box1", "box2", "box1", "box2", "box1"]',
        ("drives.box[1-2]-d[01-12].enclosure", "5 parts for 24"),
    ),
    "an unequal share": (
        'drives = "box[1-2]-d[01-10]"',
        'drives = "box1-d[01-09]"',
        ("raid_groups.rg[1-2].drives", "equal share"),
    ),
    "several where one belongs": (
        'raid_group = "rg1"\nsize',
        'raid_group = "rg[1-2]"\nsize',
        ("luns.lun1.raid_group", "one"),
    ),
    "parity against the level": ("parity = 2", "parity = 1", ("raid_groups.rg[1-2].parity", "RAID 6 has 2")),
    "too few drives": (
        'drives = "box[1-2]-d[01-10]"',
        'drives = "box[1-2]-d[01-09]"',
        ("raid_groups.rg[1-2].drives", "9", "10"),
    ),
    "a spare that holds data": (
        'spares = "box[1-2]-d11"',
        'spares = "box[1-2]-d10"',
        ("raid_groups.rg[1-2].spares", "d10"),
    ),
    "blocks that do not divide": ("blocks = 2", "blocks = 3", ("raid_groups.rg[1-2].blocks", "equally")),
    "a member in two volumes": (
        "[[targets]]",
        '[[volumes]]\nid = "v2"\nkind = "concat"\nmembers = "lun1"\n[[targets]]',
        ("volumes.v2.members", "v1", "one only"),
    ),
    "a volume inside itself": (
        'members = ["lun1", "s1"]',
        'members = ["lun1", "v1"]',
        ("volumes.v1.members", "itself"),
    ),
    "a stripe unit of a concatenation": ('kind = "stripe"', 'kind = "concat"', ("volumes.v1.stripe_unit", "concat")),
    "a LUN that does not fit": ('size = "6 TB"', 'size = "9 TB"', ("luns.", "does not fit", "rg1")),
    "two remainders": ('size = "6 TB"\n', "", ("luns.lun2.size", "lun1", "what is left")),
    "size and share": ('share = "50 %"', 'share = "50 %"\nsize = "1 GB"', ("slices.s1.share", "size")),
    "a start off its alignment": (
        'share = "50 %"',
        'share = "50 %"\nstart = "1 MB"\nalignment = "1 MiB"',
        ("slices.s1.start", "alignment"),
    ),
    "a server of another role": ('server = "oss[1-2]"', 'server = "mds1"', ("targets.ost[0-1].server", "mds", "oss")),
    "an index used twice, after a target that has none": (
        '[[targets]]\nid = "ost[0-1]"',
        '[[targets]]\nid = "x"\nkind = "ost"\nfile_system = "fs"\n'
        '[[targets]]\nid = "y"\nkind = "ost"\nindex = 1\nfile_system = "fs"\n[[targets]]\nid = "ost[0-1]"',
        ("targets.ost[0-1].index", "y"),
    ),
    "an index used twice": (
        "[[file_systems]]",
        '[[targets]]\nid = "x"\nkind = "ost"\nindex = 1\nfile_system = "fs"\n[[file_systems]]',
        ("targets.x.index", "ost1"),
    ),
    "pairs of an odd number": ('id = "mds1"\n', 'id = "mds1"\nfailover = "pairs"\n', ("servers.mds1.failover", "even")),
    "a pool of nothing": ('units = "ssu1"\n', "", ("pools.p1.targets", "at least one")),
    "a pool of another file system": (
        'id = "p1"\nfile_system = "fs"',
        'id = "p1"\nfile_system = "other"',
        ("pools.p1.targets", "ost0", "fs"),
    ),
    "a target in two units": (
        "[[pools]]",
        '[[units]]\nid = "ssu3"\ntargets = "ost0"\n[[pools]]',
        ("units.ssu3.targets", "ssu1"),
    ),
    "a device and targets": (
        'id = "fs"\nkind = "lustre"',
        'id = "fs"\nkind = "lustre"\ndevice = "v1"',
        ("file_systems.fs.device", "one of them"),
    ),
    "a stripe count of nothing": ("count = -1", "count = 0", ("file_systems.fs.stripe.count", "-1")),
    "a relative mount": ('path = "/fs"', 'path = "fs"', ("mounts.m1.path",)),
    "forwarders of a native mount": ('path = "/fs"', 'path = "/fs"\nvia = "oss1"', ("mounts.m1.via", "dvs")),
    "an address outside": (
        'addresses = "10.0.0.[1-2]"',
        'addresses = "10.0.1.[1-2]"',
        ("servers.oss[1-2]", "10.0.0.0/24"),
    ),
    "too few addresses": ('addresses = "10.1.0.[1-4]"', 'addresses = "10.1.0.[1-3]"', ("nodes.n[1-4]", "3 for 4")),
    "an address used twice": (
        'addresses = "10.0.0.[11-12]"',
        'addresses = "10.0.0.[2-3]"',
        ("oss[1-2].interfaces.addresses", "10.0.0.2", "r1"),
    ),
    "no address": ('addresses = "10.1.0.[1-4]"', 'addresses = "10.1.0.[253-256]"', ("nodes.n[1-4]", "10.1.0.256")),
    "an LNet id of another network": (
        'addresses = "10.0.0.[1-2]"',
        'nids = "10.0.0.[1-2]@o2ib3"',
        ("oss[1-2].interfaces.nids", "@o2ib"),
    ),
    "an LNet id without its network": (
        'addresses = "10.0.0.[1-2]"',
        'nids = "10.0.0.[1-2]"',
        ("oss[1-2].interfaces.nids", "@o2ib"),
    ),
    "spaces around a number": ('"64 GB"', '" 64 GB"', ("nodes.n[1-4].memory", "remove")),
    "a range of addresses that is none": ('"10.0.0.0/24"', '"10.0.0.7/24"', ("networks.ib.addresses", "10.0.0.0/24")),
    "a router of one network": (
        '[[routers.interfaces]]\nnetwork = "eth"\naddresses = "10.1.1.[11-12]"\n',
        "",
        ("routers.r[1-2].interfaces", "two"),
    ),
    "a router between other networks": (
        'between = ["ib", "eth"]',
        'between = ["ib", "gni"]',
        ("routers.r[1-2].between", "gni"),
    ),
    "an include that is not there": (
        '"sonde-system/2"\n',
        '"sonde-system/2"\ninclude = "more.toml"\n',
        ("include", "more.toml", "no file"),
    ),
    "an include of itself": (
        '"sonde-system/2"\n',
        '"sonde-system/2"\ninclude = "site.toml"\n',
        ("cannot include itself",),
    ),
}


def sentence(text: str, folder: Path) -> str:
    """The error text of a file with this content."""
    path = folder / "site.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemFileError) as caught:
        read_system(path)
    assert caught.value.exit_code == EXIT_BAD_INPUT
    return str(caught.value)


def test_reference_system_without_mistake_is_valid(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(VALID_SYSTEM, encoding="utf-8")
    assert len(read_system(tmp_path / "site.toml").list_part_ids("drives")) == 24


def test_at_least_60_mistakes_are_tested() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("name", WRONG)
def test_mistake_in_a_system_file_gets_a_one_sentence_error(name: str, tmp_path: Path) -> None:
    before, after, fragments = WRONG[name]
    assert before in VALID_SYSTEM
    message = sentence(VALID_SYSTEM.replace(before, after, 1), tmp_path)
    assert message.startswith(f"{tmp_path / 'site.toml'}")
    assert "\n" not in message
    assert message[-1] in ".?"
    assert len(message) < 400 + len(str(tmp_path)) * 3
    for part in fragments:
        assert part in message


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [(None, "no system file"), (b"\xff\xfe", "not UTF-8"), (b"[1, 2]", "table of members"), (b"{", "not valid JSON")],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(
    content: bytes | None, expected_text: str, tmp_path: Path
) -> None:
    path = tmp_path / "site.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemFileError, match=expected_text):
        read_system(path)


def test_directory_is_rejected_as_a_system_file(tmp_path: Path) -> None:
    with pytest.raises(SystemFileError, match="is a directory"):
        read_system(tmp_path)


def test_included_file_with_the_mistake_is_identified(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text('schema = "sonde-system/2"\ninclude = "nodes.toml"\n', encoding="utf-8")
    inner = 'schema = "sonde-system/2"\n[[nodes]]\nid = "n1"\nmemory = "4 G"\n'
    (tmp_path / "nodes.toml").write_text(inner, encoding="utf-8")
    with pytest.raises(SystemFileError) as caught:
        read_system(tmp_path / "site.toml")
    assert str(caught.value).startswith(f"{tmp_path / 'nodes.toml'}: nodes.n1.memory")
