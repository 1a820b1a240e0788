# SPDX-License-Identifier: Apache-2.0
"""Wrong descriptions and requirements: each is refused with one sentence that says what is wrong and where."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from storage_builders import build_lun_system, make_requirement

from sonde.design.layout.plan import plan_layout
from sonde.design.layout.scripts import make_layout_scripts
from sonde.model.errors import UserError
from sonde.model.system import make_system, read_system

_SCRATCH = make_requirement("scratch", "scratch", capacity="8 GB")
_SLICE = {"id": "s1", "on": "b1g0-lun", "size": "1 GB"}
_VOLUME = {"id": "vol", "kind": "stripe", "members": ["b1g0-lun", "b1g2-lun"], "stripe_unit": "2 MiB"}


def change(kind: str, index: int, /, **members: Any) -> dict[str, Any]:
    """The machine with some members of its `at`-th part of a kind changed; None takes one away."""
    document = build_lun_system(file_systems=[copy.deepcopy(_SCRATCH)])
    part = document[kind][index]
    for name, value in members.items():
        if value is None:
            part.pop(name)
        else:
            part[name] = value
    return document


def more(kind: str, /, *parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The machine with parts added."""
    document = build_lun_system(file_systems=[copy.deepcopy(_SCRATCH)])
    document[kind] = [*document.get(kind, []), *copy.deepcopy(list(parts))]
    return document | members


def fs(**members: Any) -> dict[str, Any]:
    """The machine with one file system, changed."""
    file_system = copy.deepcopy(_SCRATCH)
    for name, value in members.items():
        if value is None:
            file_system.pop(name)
        else:
            file_system[name] = value
    return build_lun_system(file_systems=[file_system])


# What is wrong -> the document, the place that the sentence names, and words of what it says.
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    # requirements
    "a requirement without purpose": (fs(purpose=None), "purpose", "write one of root, "),
    "a purpose that is none": (fs(purpose="scrach"), "purpose", 'Did you mean "scratch"?'),
    "a purpose that is a number": (fs(purpose=3), "purpose", "allowed is root"),
    "a small requirement without size": (fs(purpose="home", requirement={}), "requirement.capacity", "needs a size"),
    "a kind that lies on no drive": (fs(kind="tmpfs"), "kind", "cannot be laid out"),
    "a kind that is none": (fs(kind="xsf"), "kind", 'Did you mean "xfs"?'),
    "no kind": (fs(kind=None), "file_systems", 'lacks "kind"'),
    "a capacity without unit": (fs(requirement={"capacity": "80"}), "requirement.capacity", "has no unit"),
    "a capacity as a number": (fs(requirement={"capacity": 80}), "requirement.capacity", "has no unit"),
    "a capacity of which nobody knows the unit": (
        fs(requirement={"capacity": "80 T"}), "requirement.capacity", "which unit is meant"),
    "a negative capacity": (fs(requirement={"capacity": "-1 TB"}), "requirement.capacity", "is negative"),
    "a rate in bits or bytes": (fs(requirement={"write": "10 Gb/s"}), "requirement.write", "may be bits or bytes"),
    "a rate without time": (fs(requirement={"read": "10 GB"}), "requirement.read", 'ends in "/s"'),
    "a rate of nothing": (fs(requirement={"read": "0 GB/s"}), "requirement.read", "is zero"),
    "a rate as a number": (fs(requirement={"read": 5}), "requirement.read", "bits or bytes"),
    "a requirement for creates": (fs(requirement={"creates": "5 kop/s"}), "requirement", 'no member "creates"'),
    "a requirement that is a text": (fs(requirement="much"), "requirement", "is"),
    "requirement misspelled": (
        fs(requirement=None, requirment={"capacity": "1 GB"}), "file_systems", 'Did you mean "requirement"?'),
    "groups of none": (fs(allocation_groups=0), "allocation_groups", "at least 1"),
    "groups as a text": (fs(allocation_groups="4"), "allocation_groups", "is not a count"),
    "a log on nothing": (fs(log="mirror"), "log", "which nothing in the system has"),
    "a device that is none": (fs(device="b1g9-lun"), "device", "which nothing in the system has"),
    "a device of another kind": (fs(device="ca"), "device", "must be one of"),
    # RAID groups
    "a level that is none": (change("raid_groups", 0, level="8"), "level", "allowed is"),
    "no level": (change("raid_groups", 0, level=None), "raid_groups", 'lacks "level"'),
    "no data drives": (change("raid_groups", 0, data=0), "data", "at least 1"),
    "data drives as a text": (change("raid_groups", 0, data="8"), "data", "is not a count"),
    "RAID 5 with two parities": (change("raid_groups", 0, parity=2), "parity", "RAID 5 has 1"),
    "RAID 6 with one": (change("raid_groups", 0, level="6"), "parity", "RAID 6 has 2"),
    "a mirror with half a copy": (change("raid_groups", 1, parity=3), "parity", "a multiple of that"),
    "more drives than data and parity": (change("raid_groups", 0, data=7), "drives", "data and parity together are 8"),
    "drives that do not exist": (change("raid_groups", 0, drives="b1g0d[0-9]"), "drives", "nothing in the system has"),
    "drives of two groups": (change("raid_groups", 0, drives="b2g0d[0-8]"), "drives", "it can be in one only"),
    "a range that ends before it begins": (change("raid_groups", 0, drives="b1g0d[8-0]"), "drives", "is not a range"),
    "a segment without unit": (change("raid_groups", 0, segment="256"), "segment", "has no unit"),
    "a segment of kilos": (change("raid_groups", 0, segment="256K"), "segment", "which unit is meant"),
    "half a byte": (change("raid_groups", 0, segment="0.5 B"), "segment", "not a whole number"),
    "a spare that is used": (change("raid_groups", 0, spares="b1g0d1"), "spares", "a spare holds no data yet"),
    "a controller that is none": (change("raid_groups", 0, controller="cc"), "controller", "nothing in the system has"),
    "two controllers": (change("raid_groups", 0, controller=["ca", "cb"]), "controller", "several parts; name one"),
    "a share of spares as words": (change("raid_groups", 0, spare_share="much"), "spare_share", "is not a share"),
    # drives, boxes, controllers, links
    "a drive of no known kind": (change("drives", 0, kind="disk"), "kind", "allowed is"),
    "a drive in no box": (change("drives", 0, enclosure="box9"), "enclosure", "nothing in the system has"),
    "a drive's size without unit": (change("drives", 0, capacity="73"), "capacity", "has no unit"),
    "a rate of megabits or bytes": (change("drives", 0, rate="150 Mb/s"), "rate", "may be bits or bytes"),
    "a rate in a third direction": (change("drives", 0, rate={"both": "1 GB/s"}), "rate", "both"),
    "a box in itself": (change("enclosures", 1, inside="box1"), "inside", "nothing is inside itself"),
    "an id used twice": (more("enclosures", {"id": "box1"}), "id", "every id is used once"),
    "a partner that is a box": (change("controllers", 0, partner="box1"), "partner", "must be one of"),
    "ports as words": (change("controllers", 0, ports="two"), "ports", "is not a count"),
    "a link to nowhere": (change("links", 0, far="cz"), "far", "nothing in the system has"),
    "a link without a near end": (change("links", 0, near=None), "links", 'lacks "near"'),
    "no parallel links": (change("links", 0, count=0), "count", "at least 1"),
    "a model of its own without x-": (change("drives", 0, model={"seeks": "4 ms"}), "model", "seek"),
    # LUNs and slices
    "a LUN of no group": (change("luns", 0, raid_group="b9g9"), "raid_group", "nothing in the system has"),
    "a LUN larger than its group": (change("luns", 0, size="9 GB"), "size", "does not fit"),
    "two LUNs of what is left": (more("luns", {"id": "second", "raid_group": "b1g0"}), "size", "only one of them"),
    "a queue of none": (change("luns", 0, queue_depth=0), "queue_depth", "at least 1"),
    "a purpose of a LUN that is none": (change("luns", 0, purpose="speed"), "purpose", "allowed is"),
    "a slice on nothing": (more("slices", _SLICE | {"on": "sda"}), "on", "nothing in the system has"),
    "a slice without a disk": (more("slices", {"id": "s1", "size": "1 GB"}), "slices", 'lacks "on"'),
    "a slice with size and share": (more("slices", _SLICE | {"share": "10 %"}), "share", "give one of them"),
    "a slice between alignments": (
        more("slices", _SLICE | {"start": "3 MiB", "alignment": "2 MiB"}), "start", "no multiple"),
    "a slice larger than its disk": (more("slices", _SLICE | {"size": "9 GB"}), "size", "does not fit"),
    "slices of more than a disk": (
        more("slices", _SLICE | {"size": "5 GB"}, _SLICE | {"id": "s2", "size": "5 GB"}), "size", "does not fit"),
    "slices over each other": (
        more("slices", _SLICE | {"start": "0 B"}, _SLICE | {"id": "s2", "start": "1 MiB"}),
        "start", 'lies within "s1"'),
    "a slice beyond the end": (more("slices", _SLICE | {"start": "7500 MB"}), "start", "make it smaller"),
    "a share of more than all": (
        more("slices", {"id": "s1", "on": "b1g0-lun", "share": "120 %"}), "share", "outside 0 to 1"),
    # volumes
    "a volume of nothing": (more("volumes", {"id": "vol", "kind": "stripe"}), "volumes", 'lacks "members"'),
    "a volume of no kind": (more("volumes", _VOLUME | {"kind": "raid0"}), "kind", "allowed is"),
    "a member that is none": (
        more("volumes", _VOLUME | {"members": ["b1g0-lun", "sdq"]}), "members", "nothing in the system"),
    "a member of two volumes": (more("volumes", _VOLUME, _VOLUME | {"id": "v2"}), "members", "it can be in one only"),
    "a volume of itself": (
        more("volumes", _VOLUME | {"members": ["vol", "b1g0-lun"]}), "members", "nothing is inside itself"),
    "a concatenation with a unit": (
        more("volumes", _VOLUME | {"kind": "concat"}), "stripe_unit", "only a stripe has one"),
}  # fmt: skip


def test_at_least_sixty_wrong_layouts_are_tested() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("name", WRONG)
def test_wrong_layout_is_one_sentence(name: str, tmp_path: Path) -> None:
    document, location, text = WRONG[name]
    path = tmp_path / "site.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UserError) as reason:
        plan_layout(read_system(path))
    sentence = str(reason.value)
    assert "site.json" in sentence
    assert location in sentence
    assert text in sentence
    assert sentence.endswith((".", "?"))
    assert "\n" not in sentence


def test_unchanged_machine_is_accepted() -> None:
    """What is changed above is right before."""
    for document in (fs(), more("slices", _SLICE), more("volumes", _VOLUME)):
        path_free = copy.deepcopy(document)
        assert plan_layout(make_system(path_free, "made")).file_systems


def test_triple_parity_is_rejected_for_md() -> None:
    group = {"id": "g", "level": "7", "data": 8, "parity": 3, "segment": "128 KiB", "drives": "d[0-10]"}
    document = {"schema": "sonde-system/2", "id": "d", "raid_groups": [group],
                "drives": [{"id": "d[0-10]", "kind": "hdd", "capacity": "4 TB"}],
                "file_systems": [{"id": "fs", "kind": "xfs", "device": "g"}]}  # fmt: skip
    with pytest.raises(UserError, match="md has two at most"):
        make_layout_scripts(plan_layout(make_system(document, "made")))
