# SPDX-License-Identifier: Apache-2.0
"""Systems just inside and just outside of what is allowed, and the sentence about those outside, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import SystemFileError
from sonde.model.system import System, make_system, read_system
from sonde.model.system.changes import apply_changes, split_change_path

Kinds = dict[str, list[dict[str, Any]]]


def build_system(kinds: Kinds) -> System:
    return make_system({"schema": "sonde-system/2", **kinds}, "x.toml")


def make_drives(drive_count: int) -> Kinds:
    return {"drives": [{"id": f"d[1-{drive_count}]", "capacity": "100 B"}]}


def raid_group(drive_count: int, **more: Any) -> Kinds:
    return make_drives(drive_count) | {"raid_groups": [{"id": "g", "drives": f"d[1-{drive_count}]"} | more]}


def make_slices(*slices: dict[str, Any]) -> Kinds:
    """Slices of a disk of 100 B."""
    return make_drives(1) | {
        "slices": [{"id": f"s{index}", "on": "d1"} | members for index, members in enumerate(slices)]
    }


def target(**more: Any) -> Kinds:
    return {
        "servers": [{"id": "o", "roles": "oss"}, {"id": "m", "roles": ["mds", "mgs"]}, {"id": "any"}],
        "nodes": [{"id": "n"}],
        "file_systems": [{"id": "fs", "kind": "lustre"}, {"id": "gs", "kind": "lustre"}],
        "targets": [{"id": "t", "kind": "ost", "file_system": "fs"} | more],
    }


def joined(*interfaces: dict[str, Any], hosts: str = "n[1-2]", **network: Any) -> Kinds:
    net = {"id": "ib", "kind": "infiniband", "addresses": "10.0.0.0/24", "lnet": "o2ib"} | network
    return {"networks": [net, {"id": "eth", "kind": "ethernet"}], "nodes": [{"id": hosts, "interfaces": [*interfaces]}]}


@pytest.mark.parametrize(
    "kinds",
    [
        *(raid_group(4, level=level, data=4 - parity, parity=parity) for level, parity in
          (("0", 0), ("none", 0), ("4", 1), ("5", 1), ("6", 2), ("7", 3), ("1", 2), ("10", 2))),
        raid_group(3, level="1", data=1, parity=2),
        raid_group(6, level="10", data=2, parity=4),
        raid_group(4, level="5", data=3),
        raid_group(4, level="1", data=2),
        raid_group(4, level="6"),
        raid_group(4, level="declustered", data=2, parity=2),
        raid_group(9, level="declustered", data=2, parity=2),
        make_slices({"size": "60 B"}, {"size": "40 B"}),
        make_slices({"size": "60 B"}, {}),
        make_slices({"share": "50 %"}, {"share": "50 %"}),
        make_slices({"start": "8 B", "alignment": "4 B", "size": "1 B"}),
        make_slices({"start": "0 B", "size": "50 B"}, {"start": "50 B", "size": "50 B"}),
        make_slices({"start": "3 B", "size": "1 B"}, {"alignment": "4 B", "start": "4 B", "size": "1 B"}),
        make_drives(2) | {"volumes": [{"id": "v", "kind": "stripe", "stripe_unit": "1 KiB", "members": "d1"},
                                 {"id": "z", "kind": "zfs", "stripe_unit": "1 KiB", "members": "d2"}]},
        {"volumes": [{"id": "v", "kind": "concat", "members": "w"}, {"id": "w", "kind": "concat", "members": "d1"}]}
        | make_drives(1),
        target(server="o"), target(server="any"), target(server="n"), target(kind="mdt", server="m"),
        target(kind="mgt", server="m"), target(kind="target", server="o"),
        target(index=3) | {"pools": [{"id": "p", "file_system": "fs", "targets": "t"}]},
        {"servers": [{"id": "a[1-4]", "failover": "pairs"}, {"id": "b", "failover": "none", "partner": "a1"}]},
        {"file_systems": [{"id": "f", "kind": "xfs", "device": "d1", "stripe": {"count": 1.0}}]} | make_drives(1),
        {"file_systems": [{"id": "f", "kind": "xfs", "stripe": {"count": -1}}]},
        {"file_systems": [{"id": "f", "kind": "xfs"}], "nodes": [{"id": "n"}],
         "mounts": [{"id": f"m{how}", "file_system": "f", "path": "/f", "via": "n", "through": how}
                    for how in ("dvs", "nfs", "fuse")]},
        joined({"network": "ib", "addresses": "10.0.0.[1-2]"}, {"network": "ib", "addresses": "10.0.0.[3-4]"}),
        joined({"network": "ib", "nids": ["10.0.0.1@o2ib0", "10.0.0.2@o2ib"]}),
        joined({"network": "ib", "nids": "[1-2]@o2ib1"}, lnet="o2ib1"),
        joined({"network": "eth", "addresses": "10.9.0.[1-2]"}, {"network": "ib", "addresses": "10.0.0.[1-2]"}),
        joined({"network": "eth", "nids": "[1-2]@tcp7"}),
        joined({"network": "ib", "addresses": ["10.0.0.1", "10.1.0.2"]}, addresses=["10.0.0.0/24", "10.1.0.0/24"]),
        {"networks": [{"id": "a", "kind": "ethernet"}, {"id": "b", "kind": "ethernet"}], "routers": [
            {"id": "r", "between": ["a", "b"]},
            {"id": "s", "between": "b", "interfaces": [{"network": "a"}, {"network": "b"}]}]},
        {"enclosures": [{"id": "a"}, {"id": "b", "inside": "a"}, {"id": "c", "inside": "b"}]},
    ],
)  # fmt: skip
def test_limits_of_system_members_are_accepted(kinds: Kinds) -> None:
    assert len(build_system(kinds).index)


SPARES = make_drives(5) | {"raid_groups": [{"id": "g", "level": "0", "drives": "d[1-4]", "spares": "d[3-5]"}]}


@pytest.mark.parametrize(
    ("kinds", "expected_sentence"),
    [
        (raid_group(4, level="5", data=2, parity=2),
         "raid_groups.g.parity is 2, but RAID 5 has 1; change one of them."),
        (raid_group(4, level="0", data=3, parity=1),
         "raid_groups.g.parity is 1, but RAID 0 has 0; change one of them."),
        (raid_group(5, level="1", data=2, parity=3),
         "raid_groups.g.parity is 3; a mirror has as many drives of copies as of data, 2, or a multiple of that."),
        (raid_group(5, level="5", data=3),
         "raid_groups.g.drives gives each group 5, but data and parity together are 4."),
        (raid_group(5, level="1", data=2, parity=2),
         "raid_groups.g.drives gives each group 5, but data and parity together are 4."),
        (raid_group(3, level="declustered", data=2, parity=2),
         "raid_groups.g.drives gives each group 3, fewer than the 4 of one stripe."),
        (SPARES, "raid_groups.g.spares and drives both name d[3-4]; a spare holds no data yet."),
        (raid_group(4, level="0") | {"raid_groups": [{"id": "g", "level": "0", "drives": "d[1-3]"},
                                                {"id": "h", "level": "0", "drives": "d[3-4]"}]},
         'raid_groups.h.drives names "d3", which raid_groups.g names too; it can be in one only.'),
        ({"volumes": [{"id": "v", "kind": "concat", "members": "w"}, {"id": "w", "kind": "concat", "members": "v"}]},
         'volumes.v.members leads back to "v"; nothing is inside itself.'),
        ({"enclosures": [{"id": "a", "inside": "c"}, {"id": "b", "inside": "a"}, {"id": "c", "inside": "b"}]},
         'enclosures.a.inside leads back to "a"; nothing is inside itself.'),
        (make_slices({"size": "60 B"}, {"size": "41 B"}),
         'slices.s1.size does not fit: the pieces of "d1" are 101 B together, but it has 100 B.'),
        (make_slices({}, {"size": "1 B"}, {}),
         'slices.s2.size is missing, and of "s0" on the same "d1" too; only one of them can be what is left.'),
        (make_slices({"size": "1 B", "share": "1 %"}), "slices.s0.share stands beside size; give one of them."),
        (make_slices({"start": "6 B", "alignment": "4 B", "size": "1 B"}),
         "slices.s0.start is 6 B, which is no multiple of alignment, 4 B."),
        (make_drives(2) | {"volumes": [{"id": "v", "kind": "mirror", "stripe_unit": "1 KiB", "members": "d[1-2]"}]},
         'volumes.v.stripe_unit is of no use with kind = "mirror"; only a stripe has one.'),
        (target(server="m"), 'targets.t.server names "m", whose roles are mds, mgs; an ost needs oss.'),
        (target(kind="mdt", server="o"), 'targets.t.server names "o", whose roles are oss; an mdt needs mds.'),
        (target(kind="mgt", server="o"), 'targets.t.server names "o", whose roles are oss; an mgt needs mgs.'),
        (target(kind="nsd", server="o"), 'targets.t.server names "o", whose roles are oss; an nsd needs nsd.'),
        (target(index=3) | {"targets": [{"id": "t[1-2]", "kind": "ost", "file_system": "fs", "index": 3},
                                        {"id": "u", "kind": "ost", "file_system": "fs", "index": 4}]},
         'targets.u.index 4 of fs is that of "t2" too; change one of them.'),
        ({"servers": [{"id": "a[1-2]", "failover": "pairs", "partner": "a1"}]},
         "servers.a[1-2].partner stands beside failover = pairs; give one of them."),
        ({"servers": [{"id": "a[1-3]", "failover": "pairs"}]},
         "servers.a[1-3].failover is pairs, but there are 3 servers in this table; pairs need an even number."),
        (target() | {"pools": [{"id": "p", "file_system": "fs"}]},
         "pools.p.targets and units are both missing; a pool names at least one target or unit."),
        (target() | {"pools": [{"id": "p", "file_system": "gs", "targets": "t"}]},
         'pools.p.targets include "t", which is part of fs, not of gs.'),
        (target() | {"units": [{"id": "u", "targets": "t"}],
                     "pools": [{"id": "p", "file_system": "gs", "units": "u"}]},
         'pools.p.targets include "t", which is part of fs, not of gs.'),
        (target() | {"units": [{"id": "u", "targets": "t"}, {"id": "w", "targets": "t"}]},
         'units.w.targets names "t", which units.u names too; it can be in one only.'),
        (target() | make_drives(1) | {"file_systems": [{"id": "fs", "kind": "lustre", "device": "d1"}]},
         "file_systems.fs.device is given, but targets name this file system too; keep one of them."),
        *(({"file_systems": [{"id": "f", "kind": "xfs", "stripe": {"count": count}}]},
           f"file_systems.f.stripe.count is {count}; write -1 for all targets, or a whole number from 1.")
          for count in (0, 1.5, -2)),
        *(({"file_systems": [{"id": "f", "kind": "xfs"}], "nodes": [{"id": "n"}],
            "mounts": [{"id": "m", "file_system": "f", "path": "/f", "via": "n", "through": how}]},
           f'mounts.m.via names forwarders, but through is "{how}"; write through = "dvs" or "nfs".')
          for how in ("native", "local")),
        (joined({"network": ["ib", "eth"]}, hosts="n"),
         "nodes.n.interfaces.network names several networks; give each an interface of its own."),
        (joined({"network": "ib", "addresses": "10.0.0.1"}),
         "nodes.n[1-2].interfaces.addresses has 1 for 2 hosts; give one for each, in the same order."),
        (joined({"network": "eth", "nids": "[1-3]@tcp"}),
         "nodes.n[1-2].interfaces.nids has 3 for 2 hosts; give one for each, in the same order."),
        (joined({"network": "ib", "addresses": ["10.0.0.1", "10.0.0.1"]}),
         'nodes.n[1-2].interfaces.addresses gives "n2" 10.0.0.1, which "n1" has on ib too.'),
        (joined({"network": "ib", "addresses": ["10.0.0.1", "10.0.1.2"]}),
         "nodes.n[1-2].interfaces.addresses has 10.0.1.2, which is outside ib, 10.0.0.0/24."),
        (joined({"network": "ib", "addresses": "10.2.0.[1-2]"}, addresses=["10.0.0.0/24", "10.1.0.0/24"]),
         "nodes.n[1-2].interfaces.addresses has 10.2.0.1, which is outside ib, 10.0.0.0/24 or 10.1.0.0/24."),
        (joined({"network": "ib", "nids": "[1-2]@tcp"}),
         'nodes.n[1-2].interfaces.nids has "1@tcp"; an LNet id on ib ends in @o2ib.'),
        (joined({"network": "ib", "nids": "[1-2]@o2ib1"}),
         'nodes.n[1-2].interfaces.nids has "1@o2ib1"; an LNet id on ib ends in @o2ib.'),
        (joined({"network": "eth", "nids": "[1-2]"}),
         'nodes.n[1-2].interfaces.nids has "1"; an LNet id on eth ends in @ and the LNet network.'),
        (joined({"network": "eth", "nids": "@tcp"}, hosts="n"),
         'nodes.n.interfaces.nids has "@tcp"; an LNet id on eth ends in @ and the LNet network.'),
        (joined({"network": "ib", "nids": "[2-1]@o2ib"}),
         'nodes.n[1-2].interfaces.nids is wrong: "[2-1]@o2ib" runs from 2 down to 1; write the smaller number first.'),
        (joined({"network": "ib", "addresses": "ten"}, hosts="n"),
         'nodes.n.interfaces.addresses is wrong: "ten" is not an IPv4 or IPv6 address; write it like 10.100.0.91 or'
         " fd00::91."),
        (joined(addresses="10.0.0.1/24"),
         'networks.ib.addresses is wrong: "10.0.0.1/24" is an address inside a range, not a range; write 10.0.0.0/24.'),
        ({"networks": [{"id": "a", "kind": "ethernet"}], "routers": [{"id": "r", "interfaces": [{"network": "a"}]}]},
         "routers.r.interfaces join one network only; a router joins two or more."),
        ({"networks": [{"id": name, "kind": "ethernet"} for name in "abc"],
          "routers": [{"id": "r", "between": "c", "interfaces": [{"network": "a"}, {"network": "b"}]}]},
         'routers.r.between names "c", which no interface of it joins; add [[routers.interfaces]].'),
        ({"drives": [{"id": "d", "enclosure": ["a", "b"]}], "enclosures": [{"id": "a"}, {"id": "b"}]},
         "drives.d.enclosure names several parts; name one."),
        ({"drives": [{"id": "d[1-3]", "enclosure": ["a", "b"]}], "enclosures": [{"id": "a"}, {"id": "b"}]},
         "drives.d[1-3].enclosure names 2 parts for 3; name one for all, one for each, or as many as divide 3"
         " equally."),
        (make_drives(3) | {"raid_groups": [{"id": "g[1-2]", "level": "0", "drives": "d[1-3]"}]},
         "raid_groups.g[1-2].drives names 3 parts for 2, which is no equal share for each; name a multiple of 2."),
        (make_drives(4) | {"raid_groups": [{"id": "g[1-2]", "level": "0", "blocks": 2, "spares": "d[1-3]"}]},
         "raid_groups.g[1-2].blocks is 2, which divides 2 groups and 3 spares not equally."),
        ({"drives": [{"id": "d", "enclosure": "n"}], "nodes": [{"id": "n"}]},
         'drives.d.enclosure names "n", which is one of nodes; it must be one of enclosures.'),
        ({"drives": [{"id": "d", "enclosure": "e["}]},
         'drives.d.enclosure is not a range: "e[" has a bracket without its partner; a range is written like'
         " oss[001-036]."),
        ({"drives": [{"id": "d", "group": "d"}, {"id": "e", "group": "d"}]},
         'drives.d.group is "d", which is the id of a part; a group needs a name of its own.'),
        ({"drives": [{"id": "d[1-2]"}], "nodes": [{"id": "d2"}]},
         'drives.d[1-2].id names "d2", which nodes.d2 in x.toml names too; every id is used once in a system.'),
    ],
)  # fmt: skip
def test_values_beyond_system_limits_are_rejected(kinds: Kinds, expected_sentence: str) -> None:
    with pytest.raises(SystemFileError) as caught:
        build_system(kinds)
    assert str(caught.value) == f"x.toml: {expected_sentence}"


def test_a_group_may_be_called_like_its_only_part() -> None:
    assert build_system({"drives": [{"id": "d", "group": "d"}]}).resolve_names("d") == ("d",)


def read_problem(path: Path) -> str:
    with pytest.raises(SystemFileError) as caught:
        read_system(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def test_invalid_system_files_have_exact_error_messages(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    head = 'schema = "sonde-system/2"\n'
    site.write_text(f'{head}include = ["b.toml"]\n', encoding="utf-8")
    assert read_problem(site) == 'site.toml: include names "b.toml", but there is no file b.toml.'
    (tmp_path / "b.toml").write_text(f'{head}include = "c.toml"\n', encoding="utf-8")
    (tmp_path / "c.toml").write_text(f'{head}include = "b.toml"\n', encoding="utf-8")
    assert read_problem(site) == "b.toml: b.toml includes c.toml includes b.toml; a file cannot include itself."
    site.write_text("title = 1", encoding="utf-8")
    assert read_problem(site) == 'site.toml: schema is missing; a system file begins with schema = "sonde-system/2".'
    site.write_text("=", encoding="utf-8")
    assert read_problem(site).startswith("site.toml is not valid TOML: ")
    other = tmp_path / "site.JSON"
    other.write_text("{", encoding="utf-8")
    assert read_problem(other).startswith("site.JSON is not valid JSON: ")
    other.write_text("[]", encoding="utf-8")
    assert read_problem(other) == "site.JSON: a system file is a table of members, not list."
    with pytest.raises(SystemFileError) as caught:
        make_system({"schema": "sonde-system/2", "include": "x"}, "made.toml")
    assert str(caught.value) == (
        "made.toml: include names files, but this system does not come from a file; read it from one."
    )
    other.write_text('{"schema": "sonde-system/2", "id": "own", "title": "T", "notes": "n"}', encoding="utf-8")
    system = read_system(str(other))
    assert (system.id, system.title, system.notes, system.files) == ("own", "T", ("n",), (str(other),))


DOTTED: Kinds = {
    "servers": [{"id": "a.b[1-4]", "group": "all", "failover": "pairs", "memory": "1 GB"}],
    "drives": [{"id": "d[01-04]", "capacity": "1 B"}],
    "luns": [{"id": "l[1-3]", "number": 5, "raid_group": "g", "size": "1 B"}],
    "raid_groups": [{"id": "g", "level": "0", "drives": "d[01-04]"}],
    "nodes": [{"id": "n[1-3]", "interfaces": [{"network": "ib", "addresses": "10.0.0.[1-3]", "nids": "[4-6]@x"}]}],
    "networks": [{"id": "ib", "kind": "infiniband", "rate": {"read": "2 GB/s"}}],
}


def test_change_path_is_split_into_kind_part_and_member() -> None:
    index = build_system(DOTTED).index
    assert split_change_path(index, "servers.a.b1.memory") == ("servers", "a.b1", ["memory"])
    assert split_change_path(index, "servers.a.b[1-2].model.threads") == ("servers", "a.b[1-2]", ["model", "threads"])
    assert split_change_path(index, "servers.all.memory") == ("servers", "all", ["memory"])


@pytest.mark.parametrize(
    ("member_path", "member_value", "expected_sentence"),
    [
        ("server.all.memory", 1, 'server.all.memory: there is no kind of part "server". Did you mean "servers"?'),
        ("servers.a.b1", 1, "servers.a.b1: write KIND.ID.MEMBER; a is none of the servers."),
        ("raid_groups.d01.data", 1, "raid_groups.d01.data: write KIND.ID.MEMBER; d01 is none of the raid groups."),
        ("servers.all.memry", 1, 'servers.all.memry: there is no member "memry" to change. Did you mean "memory"?'),
        ("servers.all.id", "x", 'servers.all.id: there is no member "id" to change.'),
        ("servers.all.memory", 1, 'servers.all.memory: 1 has no unit; write a size like "1 B", "64 GB" or "4 KiB".'),
        ("servers.all.title.x", "y", "servers.all.title.x: title has no members; give it a value as a whole."),
        (
            "networks.ib.rate.read.x",
            "1 GB/s",
            "networks.ib.rate.read.x: rate has no members; give it a value as a whole.",
        ),
    ],
)
def test_invalid_changes_have_exact_error_messages(member_path: str, member_value: Any, expected_sentence: str) -> None:
    with pytest.raises(SystemFileError) as caught:
        apply_changes(build_system(DOTTED), {member_path: member_value})
    assert str(caught.value) == expected_sentence


def test_change_that_divides_a_table_preserves_other_parts() -> None:
    system = build_system(DOTTED)
    changed = apply_changes(system, {"luns.l2.device": "sdb", "nodes.n2.cores": 9, "servers.a.b2.memory": "2 GB"})
    assert [int(lun.number) if lun.number else None for lun in changed.luns] == [5, 6, 7]
    assert [node.id for node in changed.nodes] == ["n1", "n2", "n3"]
    assert [address.address for name in ("n1", "n2", "n3") for address in changed.find_addresses(name)] == [
        "10.0.0.1", "10.0.0.2", "10.0.0.3",
    ]  # fmt: skip
    assert [address.nid for name in ("n1", "n2", "n3") for address in changed.find_addresses(name)] == [
        "4@x",
        "5@x",
        "6@x",
    ]
    assert [server.id for server in changed.servers] == ["a.b1", "a.b2", "a.b[3-4]"]
    assert [server.failover for server in changed.servers] == [""] * 3
    assert [changed.find_partner(f"a.b{number}") for number in (1, 2, 3, 4)] == ["a.b2", "a.b1", "a.b4", "a.b3"]
    assert [server.memory.text if server.memory else "" for server in changed.servers] == ["1 GB", "2 GB", "1 GB"]
    assert changed.resolve_names("all") == system.resolve_names("all")
    assert (changed.id, changed.title, changed.notes, changed.files) == ("system", "", (), ("x.toml",))


def test_change_sets_either_direction_of_a_rate_or_removes_it() -> None:
    def rate(**changes: Any) -> tuple[float | None, float | None] | None:
        system = apply_changes(build_system(DOTTED), {f"networks.ib.{name}": value for name, value in changes.items()})
        rate_found = system.networks[0].rate
        if rate_found is None:
            return None
        return tuple(
            None if direction is None else float(direction) for direction in (rate_found.read, rate_found.write)
        )  # type: ignore[return-value]

    assert rate() == (2e9, None)
    assert rate(**{"rate.write": "1 GB/s"}) == (2e9, 1e9)
    assert rate(**{"rate.read": "1 GB/s"}) == (1e9, None)
    assert rate(rate="3 GB/s") == (3e9, 3e9)
    assert rate(rate=None) is None
