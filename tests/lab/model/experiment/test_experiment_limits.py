# SPDX-License-Identifier: Apache-2.0
"""Experiments just inside and just outside of what is allowed, and the sentence about those outside, word for word."""

from __future__ import annotations

from typing import Any

import pytest
from experiment_builders import PLAN, SIZES, build_experiment, make_experiment_with_plans

from sonde.model.errors import ExperimentError
from sonde.model.experiment.checks import MAX_CELLS, MAX_CHECKED_CELLS


def claim(text: str, **more: Any) -> dict[str, Any]:
    return {"expect": [{"id": "e", "level": "measured", "claim": text} | more]}


def published(**more: Any) -> dict[str, Any]:
    return {"published": [{"of": "time(w)", "value": "3 s", "source": "D1"} | more]}


def figure(**more: Any) -> dict[str, Any]:
    return {"figures": [{"id": "f", "kind": "curve", "metrics": "time"} | more]}


def table(**more: Any) -> dict[str, Any]:
    return {"tables": [{"id": "t", "metrics": "time"} | more]}


@pytest.mark.parametrize(
    "members",
    [
        {"repeat": {"min": 3, "max": 3}},
        {"repeat": {"min": 3, "max": 4, "interval": 0.05}},
        {"repeat": {"min": 3, "interval": 0.999}},
        {"clients": {"per_target": 2}, "storage": {"targets": 4}},
        {"clients": {"per_target": 2}, "storage": {"pool": "p"}},
        {"clients": {"per_target": 2}, "storage": {"system": "s"}},
        {"clients": {"per_target": 2}, "sweep": [{"paths": "storage.targets", "values": [1, 2]}]},
        {"clients": {"group": "g"}, "plan": PLAN | {"tasks": {"processes": 3}}},
        {"clients": {"threads": 2}, "plan": PLAN | {"tasks": {"pin": True}}},
        {
            "treatments": [
                {"kind": "sleep", "time": "1 s"},
                {"kind": "server_command", "command": "x"},
                {"kind": "sync"},
            ]
        },
        claim("time(w) > 1", confidence=0.5),
        claim("time(w) > 1", confidence=0.999),
        claim("time(w) > 1", level="simulated", control={"drives.d.model.seek": "1 ms"}),
        claim("slope(time(w), over=transfer) > 1") | {"sweep": [SIZES]},
        claim('scaling(time(w), over=transfer, at="64KiB") > 1') | {"sweep": [SIZES]},
        claim('time(w, transfer="65536B") > 1') | {"sweep": [SIZES]},
        claim("time(w) > 1", profiles="ci") | {"profiles": {"ci": {}}},
        published(to="4 s"),
        published(of="bandwidth(w) / bandwidth(r)", value="70 %"),
        figure(x="time", series="call"),
        figure(x="transfer", where={"transfer": "4KiB"}) | {"sweep": [SIZES]},
        figure(series="plan", phases=["w"]),
        *(
            table(rows=name)
            for name in (
                "phase",
                "plan",
                "variant",
                "file_system",
                "mount",
                "server",
                "node",
                "target",
                "task",
                "time",
                "call",
            )
        ),
    ],
)
def test_limits_of_experiment_members_are_accepted(members: dict[str, Any]) -> None:
    assert build_experiment(**members).cells


NO_AXIS = 'names the axis "z", which is not there.'


@pytest.mark.parametrize(
    ("members", "expected_sentence"),
    [
        ({"plan": None}, 'plan is missing; write [plan] with its phases, or plan = "FILE.toml".'),
        ({"repeat": {"min": 4, "max": 3}}, "repeat.max is 3, less than min, 4; change one of them."),
        (
            {"repeat": {"min": 3, "max": 4}},
            "repeat.max is of no use without interval; write interval = 0.05, or leave max out.",
        ),
        ({"repeat": {"interval": 0}}, "repeat.interval is 0.0; write a share above 0 and below 1, like 0.05."),
        ({"repeat": {"interval": 1}}, "repeat.interval is 1.0; write a share above 0 and below 1, like 0.05."),
        ({"clients": {"nodes": 1, "per_target": 1}}, "clients.per_target stands beside nodes; give one of them."),
        (
            {"clients": {"per_target": 2}},
            "clients.per_target needs storage.targets or storage.pool, so that they can be counted.",
        ),
        (
            {"clients": {"per_target": 2}, "storage": {"kind": "lustre"}},
            "clients.per_target needs storage.targets or storage.pool, so that they can be counted.",
        ),
        *(
            (
                {"clients": ours, "plan": PLAN | {"tasks": {tasks: 3}}},
                "plan.tasks stands beside clients; say processes and threads in one of them.",
            )
            for ours in ({"nodes": 1}, {"tasks_per_node": 1}, {"threads": 1})
            for tasks in ("processes", "threads")
        ),
        (
            {"treatments": [{"kind": "sync"}, {"kind": "sleep"}]},
            'treatments.1 is a sleep without time; write time = "15 min".',
        ),
        (
            {"treatments": [{"kind": "server_command"}]},
            "treatments.0 is a server_command without command; write what to execute.",
        ),
        (
            {"sweep": [{"values": [1]}]},
            'sweep.0.paths is missing; name the member, like paths = "data.access.transfer".',
        ),
        (
            {"sweep": [SIZES | {"name": "run"}]},
            'sweep.run.name is "run", which means something else; give it another name.',
        ),
        ({"sweep": [SIZES, SIZES]}, "sweep.transfer appears twice; give one of them a name of its own."),
        ({"sweep": [SIZES | {"plans": "q"}]}, 'sweep.transfer.plans names the plan "q", which is not there.'),
        (
            {"sweep": [{"paths": "repeat.max", "values": [1]}]},
            'sweep.max.paths names "repeat.max", which is the same for all cells.',
        ),
        (
            {"sweep": [{"paths": "sweep.x", "values": [1]}]},
            'sweep.x.paths names "sweep.x", which is the same for all cells.',
        ),
        ({"sweep": [SIZES | {"labels": ["a"]}]}, "sweep.transfer.values has 1 labels for 2 values; give one for each."),
        ({"storage": {"file_systems": ["a", "b", "a"]}}, "storage.file_systems names one twice; each is one cell."),
        ({"storage": {"mounts": ["a", "a"]}}, "storage.mounts names one twice; each is one cell."),
        ({"variants": [{"id": "v"}, {"id": "u"}, {"id": "v"}]}, "variants.v appears twice; ids must differ."),
        (
            {"sweep": [SIZES | {"values": ["4KiB", "4k"]}]},
            'cell transfer=4k: data.access.transfer: "4k" does not say which unit is meant: write 4KiB (4,096 bytes) or'
            " 4kB (4,000 bytes).",
        ),
        ({"plan": PLAN | {"titel": 1}}, 'plan: The plan has no member "titel". Did you mean "title"?'),
        (
            {"plan": PLAN | {"titel": 1}, "sweep": [SIZES]},
            'plan: The plan has no member "titel". Did you mean "title"?',
        ),
        (claim("time(w) > 1", confidence=0.49), "expect.e.confidence is 0.49; write a share from 0.5, below 1."),
        (claim("time(w) > 1", confidence=1), "expect.e.confidence is 1.0; write a share from 0.5, below 1."),
        (
            claim("time(w) > 1", control={}),
            "expect.e.control is given, but level is measured; only a simulated claim has one.",
        ),
        (
            claim("time(w) > 1", level="simulated", control={"drives.capacity": 1}),
            'expect.e.control has "drives.capacity", which names no member of drives; write KIND.ID.MEMBER.'
            ' Did you mean "capacity"?',
        ),
        (claim("time() > 1"), "expect.e.claim says time() without a phase; phases are w, r."),
        (claim("time(x) > 1"), 'expect.e.claim names the phase "x", which is not there. There is w, r.'),
        (claim("time(w, z=1) > 1"), f"expect.e.claim {NO_AXIS}"),
        (claim("slope(time(w), over=z) > 1"), f"expect.e.claim {NO_AXIS}"),
        (claim("slope(time(w), over=z) > 1") | {"sweep": [SIZES]}, f"expect.e.claim {NO_AXIS} There is transfer."),
        (
            claim("time(w, transfer=1) > 1") | {"sweep": [SIZES]},
            'expect.e.claim names the cell transfer="1", which is not there; transfer is 4KiB, 64KiB.',
        ),
        (
            claim("scaling(time(w), over=transfer, at=1) > 1") | {"sweep": [SIZES]},
            'expect.e.claim names the cell transfer="1", which is not there; transfer is 4KiB, 64KiB.',
        ),
        (claim("time(w, plan=a) > 1"), 'expect.e.claim names the axis "plan", which is not there.'),
        (published(to="3 s"), "published.0.to is 3 s, not above value, 3 s; write the smaller first."),
        (
            published(value="3 GB/s"),
            'published.0: "3 GB/s" has the unknown unit "GB/s"; durations end in ns, us, ms, s, min, h.',
        ),
        (published(of="time(x)"), 'published.0.of names the phase "x", which is not there. There is w, r.'),
        (figure(metrics=[]), "figures.f.metrics is missing; name what is shown, like bandwidth."),
        (figure(metrics="tiem"), 'figures.f names the metric "tiem", which is not there. Did you mean "time"?'),
        (figure(phases=["x"]), 'figures.f names the phase "x", which is not there. There is w, r.'),
        (figure(plans=["x"]), 'figures.f names the plan "x", which is not there.'),
        (figure(x="tiem"), 'figures.f names the axis "tiem", which is not there. Did you mean "time"?'),
        (figure(series="tiem"), 'figures.f names the axis "tiem", which is not there. Did you mean "time"?'),
        (figure(where={"z": 1}), f"figures.f.where {NO_AXIS}"),
        (table(rows="tiem"), 'tables.t names the axis "tiem", which is not there. Did you mean "time"?'),
        (
            table() | {"figures": [{"id": "t", "kind": "bars"}]},
            "figures.t.metrics is missing; name what is shown, like bandwidth.",
        ),
        ({"tables": [{"id": "t", "metrics": "time"}] * 2}, "tables.t appears twice; ids must differ."),
        (
            claim("time(w) > 1", profiles=["ci", "cj"]) | {"profiles": {"ci": {}}},
            'expect.e.profiles names the profile "cj", which is not there. There is ci.',
        ),
    ],
)
def test_values_beyond_experiment_limits_are_rejected(members: dict[str, Any], expected_sentence: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        build_experiment(**members)
    assert str(caught.value) == f"x.toml: {expected_sentence}"


def test_wrong_plan_of_several_is_identified_in_the_error() -> None:
    assert [cell.id for cell in make_experiment_with_plans().cells] == ["plan=a", "plan=b"]
    for members, sentence in (
        (claim("time(w, plan=c) > 1"), 'expect.e.claim names the plan "c", which is not there. There is a, b.'),
        (claim("time(s, plan=a) > 1"), 'expect.e.claim names the phase "s", which is not there. There is w, r.'),
        (figure(where={"plan": "c"}), 'figures.f.where names the plan "c", which is not there. There is a, b.'),
        ({"clients": {"nodes": 1}, "plans": [{"id": "q", "plan": PLAN | {"tasks": {"threads": 2}}}]},
         "plans.q.plan.tasks stands beside clients; say processes and threads in one of them."),
        ({"plans": [{"id": "q", "plan": PLAN | {"titel": 1}}]},
         'plans.q.plan: The plan has no member "titel". Did you mean "title"?'),
        ({"sweep": [SIZES | {"plans": ["a", "c"]}]},
         'sweep.transfer.plans names the plan "c", which is not there. There is a, b.'),
    ):  # fmt: skip
        with pytest.raises(ExperimentError) as caught:
            make_experiment_with_plans(**members)
        assert str(caught.value) == f"x.toml: {sentence}"
    for members in (claim("time(s) > 1"), claim("time(s, plan=b) > 1"), figure(where={"plan": "b"}),
                    claim("largest(time(w), over=plan) > 1"), figure(series="plan", plans=["b"])):  # fmt: skip
        assert len(make_experiment_with_plans(**members).cells) == 2


def test_many_cells_are_checked_once_per_axis_value() -> None:
    assert (MAX_CELLS, MAX_CHECKED_CELLS) == (100_000, 60)
    depths = {"paths": "data.io.queue_depth", "values": list(range(1, 31))}
    # only both together are wrong: of 60 cells each is tried, of 62 the one that has nothing new is not
    blocks = {"paths": "data.access.block", "values": ["64KiB", "4KiB"]}
    few = {"name": "size", "paths": "data.access.transfer", "values": ["4KiB", "64KiB"]}
    with pytest.raises(ExperimentError, match="block=4KiB,size=64KiB"):
        build_experiment(sweep=[depths | {"values": list(range(1, 16))}, blocks, few])
    assert len(
        build_experiment(
            sweep=[depths | {"values": list(range(1, 17))}, few, blocks | {"values": ["64KiB", "128KiB"]}]
        ).cells
    )
