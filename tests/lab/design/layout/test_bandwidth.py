# SPDX-License-Identifier: Apache-2.0
"""The bandwidth roll-up: hand-made truths, and what it never does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.design.layout.bandwidth import REBUILD_SHARE, BandwidthEstimate
from sonde.design.layout.file_system_layout import compute_layout
from sonde.model.bundled_files import find_system_file
from sonde.model.errors import UserError
from sonde.model.system import System, make_system, read_system


def rates(system: System, name: str, *without: str) -> BandwidthEstimate:
    layout = compute_layout(system, name, without)
    assert layout is not None
    return layout.rates


def shipped(name: str) -> System:
    return read_system(find_system_file(name))


def test_array_reads_at_the_rate_of_its_data_drives() -> None:
    both = rates(shipped("laptop-md"), "bulk")
    assert (both.read, both.write) == (3 * 550e6, 3 * 500e6)
    assert both.limits["read"] == "drives"


def test_rebuild_takes_its_fraction_of_the_rate() -> None:
    assert rates(shipped("laptop-md"), "bulk", "sd3").write == pytest.approx(3 * 500e6 * (1 - REBUILD_SHARE))


def test_second_lost_drive_loses_the_file_system() -> None:
    lost = rates(shipped("laptop-md"), "bulk", "sd3", "sd4")
    assert (lost.read, lost.write) == (0, 0)
    assert "md5 has lost 2 drives" in lost.lost


def test_published_volume_is_limited_by_its_two_channels() -> None:
    """Two channels of 500 MB/s; measured were 1011 MB/s reading and 847 MB/s writing."""
    intact = rates(shipped("cray-x1"), "large")
    assert intact.read == pytest.approx(1e9)
    assert intact.limits["read"] == "links"
    ports = next(stage for stage in intact.stages if stage.name == "controller ports")
    # 2 of 6 members on the busiest controller of 2 x 200 MB/s
    assert ports.read == pytest.approx(400e6 * 6 / 2)


def test_lost_path_cabinet_or_controller_costs_its_load() -> None:
    system = shipped("cray-x1")
    # one of the two fibres of a controller with a third of the bytes
    assert rates(system, "large", "rs2-fc-b1").read == pytest.approx(200e6 * 3)
    assert rates(system, "large", "ioca1").read == pytest.approx(500e6)
    # the partner carries all three members of its subsystem
    assert rates(system, "large", "rs2-a").read == pytest.approx(400e6 * 2)
    assert "no controller takes over" in rates(system, "large", "rs2-a", "rs2-b").lost
    assert "no path to" in rates(system, "large", "ioca1", "ioca2").lost


@pytest.mark.parametrize(("name", "expected_units"), [("fs1", 12), ("fs2", 12), ("fs3", 18)])
def test_each_unit_allows_four_gigabytes_per_second(name: str, expected_units: int) -> None:
    both = rates(shipped("edison"), name)
    assert both.read == both.write == pytest.approx(expected_units * 4e9)
    assert both.limits["read"] == "units (stated)"


def test_partner_serves_the_targets_of_a_lost_server() -> None:
    system = shipped("edison")
    intact, lost = rates(system, "fs1"), rates(system, "fs1", "fs1-oss01")
    servers = [next(stage for stage in estimate.stages if stage.name == "servers") for estimate in (intact, lost)]
    assert servers[0].read is not None
    assert servers[1].read == pytest.approx(servers[0].read / 2)
    assert servers[1].part == "fs1-oss02"
    assert "no server remains for" in rates(system, "fs1", "fs1-oss01", "fs1-oss02").lost


def test_servers_limit_when_rates_below_are_unknown() -> None:
    estimate = rates(shipped("sonexion-1300"), "lustre")
    servers = next(stage for stage in estimate.stages if stage.name == "servers")
    assert servers.write == pytest.approx(2 * 1858e6)
    assert estimate.write == pytest.approx(3e9)  # what the data sheet states is less


def test_unknown_part_is_one_sentence() -> None:
    with pytest.raises(UserError, match='no part "sd33"'):
        rates(shipped("laptop-md"), "bulk", "sd33")


@st.composite
def machines(draw: st.DrawFn) -> dict[str, Any]:
    """A host, cabinets, pairs of controllers, boxes of drives, and one volume striped over all of it."""
    pairs, groups, data = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    rate = st.integers(10, 5000).map(
        lambda megabytes: {"read": f"{megabytes} MB/s", "write": f"{megabytes * 9 // 10} MB/s"}
    )
    maybe = st.none() | rate
    # paths and partners are alike: where one of several is slow, losing it would help
    up, down, controller_rate, port, cabinet = (_known_member("rate", draw(maybe)) for _ in range(5))
    document: dict[str, list[dict[str, Any]]] = {
        kind: [] for kind in ("enclosures", "controllers", "links", "drives", "raid_groups")
    }
    document["enclosures"] = [{"id": f"cab{index}"} | cabinet for index in (0, 1)]
    document["links"] = [{"id": f"up{index}", "near": "host", "far": f"cab{index}"} | up for index in (0, 1)]
    for pair in range(pairs):
        for side, other in ("ab", "ba"):
            name = f"c{pair}{side}"
            controller = {"id": name, "partner": f"c{pair}{other}", "ports": 2}
            document["controllers"].append(controller | controller_rate | ({"port_rate": port["rate"]} if port else {}))
            document["links"] += [
                {"id": f"{name}{index}", "near": f"cab{index}", "far": name} | down for index in (0, 1)
            ]
        for group in range(groups):
            name = f"g{pair}{group}"
            document["enclosures"].append({"id": f"box-{name}"} | _known_member("rate", draw(maybe)))
            drives = {"id": f"{name}d[0-{data}]", "enclosure": f"box-{name}", "capacity": "1 TB"}
            document["drives"].append(drives | _known_member("rate", draw(maybe)))
            document["raid_groups"].append(
                {"id": name, "level": "5", "data": data, "parity": 1, "segment": "256 KiB",
                 "drives": f"{name}d[0-{data}]", "controller": f"c{pair}{'ab'[group % 2]}"}
            )  # fmt: skip
    volume = {"id": "vol", "kind": "stripe", "stripe_unit": "1 MiB",
              "members": [group["id"] for group in document["raid_groups"]]}  # fmt: skip
    return {"schema": "sonde-system/2", "nodes": [{"id": "host"}], "volumes": [volume],
            "file_systems": [{"id": "fs", "kind": "xfs", "device": "vol"}]} | document  # fmt: skip


def _known_member(name: str, rate: dict[str, str] | None) -> dict[str, Any]:
    return {} if rate is None else {name: rate}


@settings(max_examples=60, deadline=None)
@given(machines(), st.data())
def test_estimate_never_exceeds_a_stage_or_gains_by_a_loss(document: dict[str, Any], data: st.DataObject) -> None:
    system = make_system(document, "drawn")
    intact = rates(system, "fs")
    part = data.draw(st.sampled_from([entry["id"] for kind in ("links", "controllers") for entry in document[kind]]))
    less = rates(system, "fs", part)
    for direction in ("read", "write"):
        rates_known = [getattr(stage, direction) for stage in intact.stages if getattr(stage, direction) is not None]
        total = getattr(intact, direction)
        assert (total is None) == (not rates_known)
        if total is not None:
            assert all(total <= limit for limit in rates_known)
            # at this rate no part moves more than it can: every controller port, counted by hand
            owners = [group["controller"] for group in document["raid_groups"]]
            for controller in document["controllers"]:
                if "port_rate" in controller and controller["id"] in owners:
                    limit = 2 * float(controller["port_rate"][direction].split()[0]) * 1e6
                    assert total * owners.count(controller["id"]) / len(owners) <= limit * 1.000001
            for group in document["drives"]:
                if "rate" in group:
                    drives = int(group["id"].partition("[0-")[2][:-1])
                    assert total / len(owners) / drives <= float(group["rate"][direction].split()[0]) * 1e6 * 1.000001
            after = getattr(less, direction)
            assert after is None or after <= total * 1.000001


def test_mirror_of_two_volumes_writes_all_data_twice() -> None:
    drives = {"id": "d[0-1]", "capacity": "1 TB", "rate": "100 MB/s"}
    volume = {"id": "both", "kind": "mirror", "members": ["d[0-1]"]}
    document = {"schema": "sonde-system/2", "drives": [drives], "volumes": [volume],
                "file_systems": [{"id": "fs", "kind": "ext4", "device": "both"}]}  # fmt: skip
    estimate = rates(make_system(document, "made"), "fs")
    assert (estimate.read, estimate.write) == (200e6, 100e6)
