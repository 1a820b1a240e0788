# SPDX-License-Identifier: Apache-2.0
"""The bandwidth roll-up: hand-made truths, and what it never does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.design.layout.bandwidth import REBUILD_SHARE, RollUp
from sonde.design.layout.laid import laid
from sonde.model.errors import UserError
from sonde.model.shipped import system_source
from sonde.model.system import System, read_system, system_from_document


def rates(system: System, name: str, *without: str) -> RollUp:
    found = laid(system, name, without)
    assert found is not None
    return found.rates


def shipped(name: str) -> System:
    return read_system(system_source(name))


def test_an_array_reads_as_fast_as_its_data_drives() -> None:
    both = rates(shipped("laptop-md"), "bulk")
    assert (both.read, both.write) == (3 * 550e6, 3 * 500e6)
    assert both.limits["read"] == "drives"


def test_a_rebuild_takes_its_share() -> None:
    assert rates(shipped("laptop-md"), "bulk", "sd3").write == pytest.approx(3 * 500e6 * (1 - REBUILD_SHARE))


def test_a_second_lost_drive_loses_the_file_system() -> None:
    lost = rates(shipped("laptop-md"), "bulk", "sd3", "sd4")
    assert (lost.read, lost.write) == (0, 0)
    assert "md5 has lost 2 drives" in lost.lost


def test_the_striped_volume_of_the_talk_is_limited_by_its_two_channels() -> None:
    """Two channels of 500 MB/s; measured were 1011 MB/s reading and 847 MB/s writing."""
    whole = rates(shipped("cray-x1"), "large")
    assert whole.read == pytest.approx(1e9)
    assert whole.limits["read"] == "links"
    ports = next(stage for stage in whole.stages if stage.name == "controller ports")
    # 2 of 6 members on the busiest controller of 2 x 200 MB/s
    assert ports.read == pytest.approx(400e6 * 6 / 2)


def test_a_lost_path_a_lost_cabinet_and_a_lost_controller_cost_what_they_carried() -> None:
    system = shipped("cray-x1")
    # one of the two fibres of a controller with a third of the bytes
    assert rates(system, "large", "rs2-fc-b1").read == pytest.approx(200e6 * 3)
    assert rates(system, "large", "ioca1").read == pytest.approx(500e6)
    # the partner carries all three members of its subsystem
    assert rates(system, "large", "rs2-a").read == pytest.approx(400e6 * 2)
    assert "nobody takes over" in rates(system, "large", "rs2-a", "rs2-b").lost
    assert "no path leads" in rates(system, "large", "ioca1", "ioca2").lost


@pytest.mark.parametrize(("name", "units"), [("fs1", 12), ("fs2", 12), ("fs3", 18)])
def test_four_gigabytes_a_second_for_each_unit(name: str, units: int) -> None:
    both = rates(shipped("edison"), name)
    assert both.read == both.write == pytest.approx(units * 4e9)
    assert both.limits["read"] == "units (stated)"


def test_a_lost_server_leaves_its_targets_to_its_partner() -> None:
    system = shipped("edison")
    whole, lost = rates(system, "fs1"), rates(system, "fs1", "fs1-oss01")
    servers = [next(stage for stage in one.stages if stage.name == "servers") for one in (whole, lost)]
    assert servers[0].read is not None
    assert servers[1].read == pytest.approx(servers[0].read / 2)
    assert servers[1].part == "fs1-oss02"
    assert "nobody serves" in rates(system, "fs1", "fs1-oss01", "fs1-oss02").lost


def test_servers_limit_where_nothing_is_known_beneath_them() -> None:
    found = rates(shipped("sonexion-1300"), "lustre")
    servers = next(stage for stage in found.stages if stage.name == "servers")
    assert servers.write == pytest.approx(2 * 1858e6)
    assert found.write == pytest.approx(3e9)  # what the data sheet states is less


def test_a_part_that_does_not_exist_is_one_sentence() -> None:
    with pytest.raises(UserError, match='no part "sd33"'):
        rates(shipped("laptop-md"), "bulk", "sd33")


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    """A host, cabinets, pairs of controllers, boxes of drives, and one volume striped over all of it."""
    pairs, groups, data = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    rate = st.integers(10, 5000).map(lambda one: {"read": f"{one} MB/s", "write": f"{one * 9 // 10} MB/s"})
    maybe = st.none() | rate
    # paths and partners are alike: where one of several is slow, losing it would help
    up, down, own, port, cabinet = (_told("rate", draw(maybe)) for _ in range(5))
    found: dict[str, list[dict[str, Any]]] = {
        kind: [] for kind in ("enclosures", "controllers", "links", "drives", "raid_groups")
    }
    found["enclosures"] = [{"id": f"cab{at}"} | cabinet for at in (0, 1)]
    found["links"] = [{"id": f"up{at}", "near": "host", "far": f"cab{at}"} | up for at in (0, 1)]
    for pair in range(pairs):
        for side, other in ("ab", "ba"):
            name = f"c{pair}{side}"
            one = {"id": name, "partner": f"c{pair}{other}", "ports": 2}
            found["controllers"].append(one | own | ({"port_rate": port["rate"]} if port else {}))
            found["links"] += [{"id": f"{name}{at}", "near": f"cab{at}", "far": name} | down for at in (0, 1)]
        for group in range(groups):
            name = f"g{pair}{group}"
            found["enclosures"].append({"id": f"box-{name}"} | _told("rate", draw(maybe)))
            drives = {"id": f"{name}d[0-{data}]", "enclosure": f"box-{name}", "capacity": "1 TB"}
            found["drives"].append(drives | _told("rate", draw(maybe)))
            found["raid_groups"].append(
                {"id": name, "level": "5", "data": data, "parity": 1, "segment": "256 KiB",
                 "drives": f"{name}d[0-{data}]", "controller": f"c{pair}{'ab'[group % 2]}"}
            )  # fmt: skip
    volume = {"id": "vol", "kind": "stripe", "stripe_unit": "1 MiB",
              "members": [one["id"] for one in found["raid_groups"]]}  # fmt: skip
    return {"schema": "sonde-system/1", "nodes": [{"id": "host"}], "volumes": [volume],
            "file_systems": [{"id": "fs", "kind": "xfs", "device": "vol"}]} | found  # fmt: skip


def _told(name: str, rate: dict[str, str] | None) -> dict[str, Any]:
    return {} if rate is None else {name: rate}


@settings(max_examples=60, deadline=None)
@given(machines(), st.data())
def test_a_roll_up_never_exceeds_a_stage_and_a_lost_part_never_helps(
    document: dict[str, Any], data: st.DataObject
) -> None:
    system = system_from_document(document, "drawn")
    whole = rates(system, "fs")
    part = data.draw(st.sampled_from([one["id"] for kind in ("links", "controllers") for one in document[kind]]))
    less = rates(system, "fs", part)
    for way in ("read", "write"):
        known = [getattr(stage, way) for stage in whole.stages if getattr(stage, way) is not None]
        total = getattr(whole, way)
        assert (total is None) == (not known)
        if total is not None:
            assert all(total <= one for one in known)
            # at this rate no part moves more than it can: every controller port, counted by hand
            owners = [one["controller"] for one in document["raid_groups"]]
            for one in document["controllers"]:
                if "port_rate" in one and one["id"] in owners:
                    limit = 2 * float(one["port_rate"][way].split()[0]) * 1e6
                    assert total * owners.count(one["id"]) / len(owners) <= limit * 1.000001
            for group in document["drives"]:
                if "rate" in group:
                    drives = int(group["id"].partition("[0-")[2][:-1])
                    assert total / len(owners) / drives <= float(group["rate"][way].split()[0]) * 1e6 * 1.000001
            after = getattr(less, way)
            assert after is None or after <= total * 1.000001


def test_a_mirror_of_two_volumes_writes_everything_twice() -> None:
    drives = {"id": "d[0-1]", "capacity": "1 TB", "rate": "100 MB/s"}
    volume = {"id": "both", "kind": "mirror", "members": ["d[0-1]"]}
    document = {"schema": "sonde-system/1", "drives": [drives], "volumes": [volume],
                "file_systems": [{"id": "fs", "kind": "ext4", "device": "both"}]}  # fmt: skip
    found = rates(system_from_document(document, "made"), "fs")
    assert (found.read, found.write) == (200e6, 100e6)
