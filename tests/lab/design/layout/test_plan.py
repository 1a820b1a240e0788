# SPDX-License-Identifier: Apache-2.0
"""Plans: what goes where, that nothing is used twice or lost, and that a plan read again is the same plan."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_layout import lun_machine, wish

from sonde.design.layout.alternatives import compare, parse_alternative
from sonde.design.layout.diagram import diagram
from sonde.design.layout.documents import plan_files
from sonde.design.layout.failures import failures
from sonde.design.layout.geometry import MIB, parse_geometry
from sonde.design.layout.laid import Laid
from sonde.design.layout.notation import notation
from sonde.design.layout.plan import LayoutPlan, plan_layout
from sonde.design.layout.planner import wishes
from sonde.design.layout.stores import starts_on, used_stores
from sonde.design.layout.words import report
from sonde.model.errors import UserError
from sonde.model.shipped import shipped, system_source
from sonde.model.system import read_system, system_from_document
from sonde.model.system.writing import document_of

# Systems in which something lies on something.
LAID = [name for name in shipped("systems") if name not in ("cumulus", "slingshot-routed")]


def planned(*asked: dict[str, Any], **more: Any) -> LayoutPlan:
    return plan_layout(system_from_document(lun_machine(file_systems=list(asked)), "made"), **more)


def shipped_plan(name: str) -> LayoutPlan:
    return plan_layout(read_system(system_source(name)))


# ---- what goes where


def test_small_file_systems_share_a_mirror_and_large_ones_get_whole_luns() -> None:
    plan = planned(
        wish("home", "home", capacity="500 MB"), wish("root", "root", capacity="300 MB"),
        wish("scratch", "scratch", capacity="20 GB"),
    )  # fmt: skip
    home, root, scratch = (plan.of(name) for name in ("home", "root", "scratch"))
    assert str(home.store.geometry) == "4x2"
    assert home.store.members == root.store.members
    assert [str(one.geometry) for one in scratch.store.members] == ["8+1"] * 3
    assert scratch.capacity is not None
    assert scratch.capacity >= 20e9


def test_members_of_a_stripe_alternate_over_controllers_and_boxes() -> None:
    plan = planned(wish("scratch", "scratch", capacity="28 GB"))
    groups = [one.groups()[0].id for one in plan.of("scratch").store.members]
    owners = [plan.system.reference(one, "controller") for one in groups]
    assert sorted(map(str, owners)) == ["ca", "ca", "cb", "cb"]
    assert all(one != other for one, other in pairwise(owners))


def test_a_fast_striped_file_system_logs_on_a_mirror_of_its_own() -> None:
    scratch = planned(wish("scratch", "scratch", capacity="20 GB")).of("scratch")
    assert scratch.log is not None
    assert str(scratch.log.geometry) == "4x2"
    data = {one.id for one in scratch.store.walk() if one.kind == "drives"}
    assert not data & {one.id for one in scratch.log.walk() if one.kind == "drives"}
    assert scratch.log_size == 128 * MIB


def test_as_many_members_as_the_bandwidth_takes_and_no_more() -> None:
    one = planned(wish("scratch", "scratch", write="1100 MB/s")).of("scratch")
    assert one.store.kind == "slices"
    two = planned(wish("scratch", "scratch", write="1300 MB/s")).of("scratch")
    assert len(two.store.members) == 2
    assert two.rates.write == pytest.approx(2 * 8 * 150e6)


def test_what_cannot_be_had_is_said_with_the_limit() -> None:
    plan = planned(wish("scratch", "scratch", write="9 GB/s"))
    (said,) = plan.short
    assert "scratch wants to write 9.00 GB/s" in said
    assert "the limit is links" in said  # two of 800 MB/s to each of two controllers
    assert plan.of("scratch").rates.write == pytest.approx(4 * 800e6)
    (space,) = planned(wish("bulk", "archive", capacity="1 TB")).short
    assert "bulk wants 931 GiB" in space


def test_a_wish_for_thirteen_and_one_is_aligned_to_13_mib() -> None:
    plan = shipped_plan("cray-x1-wishes")
    archive = plan.of("archive")
    assert archive.alignment == archive.store.start == 13 * MIB
    assert archive.unit == 1664 * 1024
    assert str(archive.store.geometry) == "13+1"


def test_the_volume_of_the_talk_is_worked_out_as_printed() -> None:
    large = shipped_plan("cray-x1").of("large")
    assert (large.unit, large.width) == (4096 * 512, 6 * 4096 * 512)
    assert large.groups is not None
    assert (large.groups.count, large.groups.size, large.groups.blocks) == (3258, 262_144, 853_951_488)
    assert large.log_size == 262_144 * 512
    single = shipped_plan("cray-x1").of("single")
    assert single.groups is not None
    assert (single.groups.count, single.groups.size, single.unit // 4096) == (272, 261_632, 256)


def test_the_talk_s_own_notation_comes_back() -> None:
    plan = shipped_plan("cray-x1")
    text = notation(plan.system, plan.file_systems)
    assert "csmadd 1 2 RG128 80:0 80:0" in text
    assert "ve -stripe -stripe_unit 4096 pm1d1L1s11 pm1d6L1s11 pm1d1L7s11 pm1d6L7s11 pm1d1L10s11 pm1d6L10s11" in text
    assert "vol xlv0\nlog\nplex\nve pm1d6L6s4\nend\ndata\nplex\n" in text
    assert "/sbin/mkfs -d sunit=2048,swidth=2048" in text
    wished = shipped_plan("cray-x1-wishes")
    assert "modulo 13M\npart 11 100%" in notation(wished.system, wished.file_systems)
    assert notation(shipped_plan("nvme-enclosure").system, shipped_plan("nvme-enclosure").file_systems) == ""


def test_a_report_lists_luns_as_csmreport_did() -> None:
    plan = shipped_plan("cray-x1")
    text = report(plan.system, plan.file_systems)
    for line in (
        "LUN   0  01d02_A0_L00   RAID-5/4+1/128KB       80GB  transaction",
        "LUN   6  01d02_A2_L06   RAID-1/4x2/128KB      211GB  transaction",
        "LUN   8  01d04_A0_L08   RAID-5/4+1/256KB      291GB  bandwidth",
        "LUN  10  01d04_A2_L10   RAID-5/8+1/256KB      583GB  bandwidth",
        "CTLR-A (top) 10.0.117.24",
    ):
        assert line in text


def test_sizes_of_luns_in_powers_of_1024_as_with_the_option_g() -> None:
    plan = shipped_plan("cray-x1")
    assert "RAID-5/8+1/256KB      543GB" in report(plan.system, plan.file_systems, binary=True)
    assert "csmadd -G 1 2 RG128 75:0 75:0" in notation(plan.system, plan.file_systems, binary=True)


def test_a_lustre_wish_becomes_targets_on_servers() -> None:
    document = {"schema": "sonde-system/1", "id": "site",
                "servers": [{"id": "oss[1-2]", "roles": "oss", "rate": "6 GB/s"}],
                "drives": [{"id": "d[0-59]", "kind": "hdd", "capacity": "8 TB", "rate": "200 MB/s", "server": "oss1"}],
                "file_systems": [wish("fs", "scratch", "lustre", capacity="250 TB")]}  # fmt: skip
    plan = plan_layout(system_from_document(document, "made"))
    found = plan.of("fs")
    assert len(found.targets) == 4
    assert [plan.system.reference(one, "server") for one in found.targets] == ["oss1", "oss2"] * 2
    assert {str(one.geometry) for one in found.stores} == {"8+2"}
    assert found.rates.write == pytest.approx(4 * 8 * 200e6)


# ---- nothing is used twice, nothing is lost


def capacity_of_drives(plan: LayoutPlan, laid: Laid) -> int:
    """Bytes of data drives beneath, less what parity and copies take."""
    total = 0
    for group in {one.id: one for store in laid.stores for one in store.groups()}.values():
        drives = [one.capacity or 0 for one in group.walk() if one.kind == "drives"]
        geometry = group.geometry
        total += sum(drives) * geometry.data // geometry.drives if geometry is not None else sum(drives)
    return total


def sound(plan: LayoutPlan) -> None:
    """What holds for every plan."""
    system = plan.system
    for kind in ("luns", "drives", "raid_groups"):
        for item in system.items(kind):
            starts = sorted(starts_on(system, item.id).items(), key=lambda one: one[1])
            if not plan.made & {name for name, _ in starts}:
                continue  # as described: the slices of the talk's root.cf, 100 % and a label, are a little too long
            end = 0
            for name, start in starts:
                size = system.capacity_of(name) or 0
                assert start >= end, f"{name} overlaps the slice before it"
                assert start > 0
                end = start + size
            assert end <= (system.capacity_of(item.id) or end)
    owners: dict[str, str] = {}
    for laid in plan.file_systems:
        for store in (*laid.stores, *([laid.log] if laid.log is not None else [])):
            assert owners.setdefault(store.id, laid.id) == laid.id, f"{store.id} is used twice"
        assert laid.capacity is None or laid.capacity <= capacity_of_drives(plan, laid) or laid.table.capacity
        for group in (one for store in laid.stores for one in store.groups()):
            if group.stripe and group.geometry and group.geometry.data > 1:
                assert laid.alignment % group.stripe == 0
        for way in ("read", "write"):
            total = getattr(laid.rates, way)
            stages = [getattr(stage, way) for stage in laid.rates.stages if getattr(stage, way) is not None]
            assert total is None or all(total <= one for one in stages)
        if laid.groups is not None and laid.unit:
            assert laid.groups.size * 4096 % laid.unit == 0
    again = plan_layout(system)
    assert [one.id for one in again.file_systems] == [one.id for one in plan.file_systems]
    for one, other in zip(again.file_systems, plan.file_systems, strict=True):
        assert (one.unit, one.width, one.log_size, one.capacity) == (
            other.unit, other.width, other.log_size, other.capacity,
        )  # fmt: skip
    assert system_from_document(document_of(system), "again").resolved() == system.resolved()


@pytest.mark.parametrize("name", LAID)
def test_plans_of_described_systems_are_sound(name: str) -> None:
    sound(shipped_plan(name))


_WISHES = st.lists(
    st.tuples(
        st.sampled_from(["root", "home", "spool", "tmp", "scratch", "checkpoint", "archive"]),
        st.sampled_from(["xfs", "ext4"]), st.integers(1, 40), st.booleans(),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(_WISHES)
def test_plans_of_luns_are_sound_whatever_is_wished(drawn: list[tuple[str, str, int, bool]]) -> None:
    asked = [
        wish(f"fs{at}", purpose, kind, capacity=f"{size * 100} MB", **({"write": "400 MB/s"} if fast else {}))
        for at, (purpose, kind, size, fast) in enumerate(drawn)
    ]
    try:
        plan = planned(*asked)
    except UserError as reason:
        if "Nothing is left for fs" not in str(reason):
            raise
        return
    sound(plan)
    for one, laid in ((one, plan.of(one["id"])) for one in asked):
        wanted = int(one["wanted"]["capacity"].split()[0]) * 10**6
        named = any(one["id"] in said for said in plan.short)
        assert named or (laid.capacity or 0) >= 0.98 * wanted


@settings(max_examples=25, deadline=None)
@given(_WISHES, st.integers(4, 40), st.sampled_from(["hdd", "nvme"]))
def test_plans_of_drives_are_sound_whatever_is_wished(
    drawn: list[tuple[str, str, int, bool]], drives: int, kind: str
) -> None:
    asked = [
        wish(f"fs{at}", purpose, one, capacity=f"{size * 300} GB") for at, (purpose, one, size, _) in enumerate(drawn)
    ]
    document = {"schema": "sonde-system/1", "id": "d", "enclosures": [{"id": "box"}], "file_systems": asked,
                "drives": [{"id": f"d[0-{drives - 1}]", "kind": kind, "enclosure": "box", "capacity": "4 TB",
                            "rate": "200 MB/s"}]}  # fmt: skip
    try:
        plan = plan_layout(system_from_document(document, "made"))
    except UserError as reason:
        if "Nothing is left for fs" not in str(reason):
            raise
        return
    sound(plan)
    used = [one for group in plan.system.raid_groups for one in plan.system.index.references(group, "drives")]
    assert len(used) == len(set(used)) <= drives
    assert set(used) <= used_stores(plan.system)


# ---- side by side, and with parts failed


def test_narrow_groups_give_capacity_away_and_split_volumes_halve_a_file() -> None:
    system = read_system(system_source("nvme-enclosure"))
    asked = next(one for one in wishes(system) if one.id == "scratch")
    wide, narrow, one, two = compare(
        system, asked, [parse_alternative(text) for text in ("8+1*2", "4+1*4", "2+1*6", "2+1*3,3")]
    )
    assert wide.capacity == narrow.capacity == 16 * 7_680_000_000_000
    assert (wide.drives, narrow.drives) == (18, 20)
    assert one.write == pytest.approx(two.write)
    assert two.single_write == pytest.approx((one.single_write or 0) * 3 * 7e9 / min(6 * 7e9, one.single_write or 1))
    assert (one.at_risk, two.at_risk) == (1, 0.5)
    assert wide.rebuild_s == pytest.approx(7.68e12 / (3.5e9 * 0.3))


def test_the_cost_of_every_kind_of_part_is_told() -> None:
    plan = shipped_plan("cray-x1")
    large = plan.of("large")
    found = {one.kind: one for one in failures(plan.system, "large", large.stores)}
    assert found["link"].write == pytest.approx(500e6)
    assert found["controller"].write == pytest.approx(800e6)
    assert found["cabinet"].write == pytest.approx(500e6)
    assert found["drive"].write is None  # the talk gives no rate of a drive
    assert "more than its geometry bears" in found["box"].lost


def test_the_picture_in_the_documentation_is_the_one_that_is_drawn() -> None:
    """Made with `sonde layout plan cray-x1 -o DIR`."""
    plan = shipped_plan("cray-x1")
    drawn = diagram(plan.system, plan.file_systems)
    shown = Path(__file__).resolve().parents[4] / "docs" / "tasks" / "layout-cray-x1.svg"
    assert shown.read_text(encoding="utf-8") == drawn
    for words in (
        "rs2-L10s11",
        "by rs2-b",
        "6 x 2 MiB",
        "3,258 allocation groups of 1 GiB",
        "read 1.00 GB/s, write 1.00 GB/s",
    ):
        assert words in drawn


def test_files_of_a_plan_are_read_as_the_same_system(tmp_path: Any) -> None:
    plan = shipped_plan("nvme-enclosure")
    path = tmp_path / "system.toml"
    path.write_text(plan_files(plan)["system.toml"], encoding="utf-8")
    assert read_system(path).resolved() == plan.system.resolved()


# ---- what cannot be planned

_DRIVES = {"id": "d[0-9]", "kind": "hdd", "capacity": "4 TB"}
_WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("no file system", {"drives": [_DRIVES]}, "has no file system to lay out"),
    ("no purpose", {"drives": [_DRIVES], "file_systems": [{"id": "a", "kind": "xfs", "wanted": {"capacity": "1 TB"}}]},
     "purpose is missing"),
    ("no size", {"drives": [_DRIVES], "file_systems": [wish("a", "home")]}, "wanted.capacity is missing"),
    ("kind", {"drives": [_DRIVES], "file_systems": [wish("a", "home", "tmpfs", capacity="1 GB")]},
     'kind is "tmpfs", which cannot be laid out'),
    ("no drives", {"file_systems": [wish("a", "home", capacity="1 GB")]}, "has no free drives, RAID groups or LUNs"),
    ("no capacity", {"drives": [{"id": "d0"}], "file_systems": [wish("a", "home", capacity="1 GB")]},
     "has no free drives, RAID groups or LUNs of known size"),
    ("a wrong purpose", {"drives": [_DRIVES], "file_systems": [wish("a", "hom", capacity="1 GB")]},
     'Did you mean "home"'),
    ("a size without unit", {"drives": [_DRIVES], "file_systems": [wish("a", "home", capacity="1")]}, "has no unit"),
    ("bits or bytes", {"drives": [_DRIVES], "file_systems": [wish("a", "scratch", write="1 Gb/s")]},
     "may be bits or bytes"),
    ("an unknown wish", {"drives": [_DRIVES], "file_systems": [wish("a", "scratch", creates="5 op/s")]},
     'no member "creates"'),
    ("everything used", {"drives": [_DRIVES | {"id": "d[0-1]"}], "file_systems": [
        wish("a", "scratch"), wish("b", "archive")]}, "Nothing is left for b"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "said"), [case[1:] for case in _WRONG], ids=[case[0] for case in _WRONG])
def test_what_cannot_be_planned_is_one_sentence(document: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as reason:
        plan_layout(system_from_document({"schema": "sonde-system/1", "id": "wrong"} | document, "wrong.toml"))
    assert said in str(reason.value)
    assert "\n" not in str(reason.value)


@pytest.mark.parametrize("text", ["", "8+", "*", "*0", "8+1*", "8+1*0,2", "fast"])
def test_what_is_no_alternative_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match=r"is no alternative|without members|is no geometry"):
        parse_alternative(text)


def test_an_alternative_that_the_machine_does_not_have() -> None:
    system = read_system(system_source("nvme-enclosure"))
    asked = next(one for one in wishes(system) if one.id == "scratch")
    with pytest.raises(UserError, match="takes 99 equal groups or LUNs"):
        compare(system, asked, [parse_alternative("8+1*99")])
    with pytest.raises(UserError, match="takes at least one"):
        compare(system, asked, [parse_alternative("99+1")])
    with pytest.raises(UserError, match="Nothing is left for scratch"):
        plan_layout(system, parse_geometry("90+1"))
