# SPDX-License-Identifier: Apache-2.0
"""Experiments just inside and just outside of what is allowed, and the sentence about those outside, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from sonde.model.errors import ExperimentError
from sonde.model.experiment import change_members_by_path, make_experiment
from sonde.model.experiment.axes import AxisError, AxisValue, SweepAxis, build_cell_axes, expand_values, get_axis_name
from sonde.model.experiment.checks import MAX_CELLS, MAX_CHECKED_CELLS
from sonde.model.experiment.description import (
    Clients,
    Expectation,
    ExperimentFile,
    PublishedNumber,
    RunSchedule,
    Storage,
    Sweep,
    Treatment,
    Variant,
)
from sonde.model.experiment.experiment import PLACEHOLDER_TARGET, Cell, Experiment

PHASES = [{"id": "w", "op": "write"}, {"id": "r", "op": "read"}]
PLAN: dict[str, Any] = {"data": {"access": {"transfer": "64KiB"}}, "phases": PHASES}
SIZES = {"paths": "data.access.transfer", "values": ["4KiB", "64KiB"]}


def build_experiment(**members: Any) -> Experiment:
    """Of one plan; a member that is None is left out."""
    document = {"schema": "sonde-experiment/2", "plan": PLAN} | members
    return make_experiment({name: value for name, value in document.items() if value is not None}, "x.toml")


def plans(**members: Any) -> Experiment:
    """Of two plans, the second of which has one phase more."""
    two = {"phases": [*PHASES, {"id": "s", "op": "stat"}]}
    document = {"schema": "sonde-experiment/2", "plans": [{"id": "a", "plan": PLAN}, {"id": "b", "plan": two}]}
    return make_experiment(document | members, "x.toml")


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
def test_what_is_just_allowed(members: dict[str, Any]) -> None:
    assert build_experiment(**members).cells


NO_AXIS = 'names the axis "z", which is not there.'


@pytest.mark.parametrize(
    ("members", "sentence"),
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
def test_what_is_just_not_allowed(members: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        build_experiment(**members)
    assert str(caught.value) == f"x.toml: {sentence}"


def test_of_several_plans_the_wrong_one_is_named() -> None:
    assert [cell.id for cell in plans().cells] == ["plan=a", "plan=b"]
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
            plans(**members)
        assert str(caught.value) == f"x.toml: {sentence}"
    for members in (claim("time(s) > 1"), claim("time(s, plan=b) > 1"), figure(where={"plan": "b"}),
                    claim("largest(time(w), over=plan) > 1"), figure(series="plan", plans=["b"])):  # fmt: skip
        assert len(plans(**members).cells) == 2


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


def test_what_a_file_leaves_out() -> None:
    bare = build_experiment()
    file = bare.file
    assert (file.id, file.title, file.source, file.status, file.notes, file.tags) == ("x", "", (), "", (), ())
    assert (file.plans, file.clients, file.storage, file.treatments, file.variants) == ((), None, None, (), ())
    assert (file.sweep, file.repeat, file.expect, file.published, file.figures, file.tables) == ((), None, *[()] * 4)
    assert (file.profiles, bare.profile_names, bare.title, bare.id) == (None, (), "x", "x")
    assert vars(Clients()) == dict.fromkeys(("nodes", "per_target", "tasks_per_node", "threads")) | {
        "mapping": "", "group": "", "origin": "", "launcher": "", "pin": "",
    }  # fmt: skip
    assert vars(Storage()) == {
        "system": "", "file_systems": (), "mounts": (), "pool": "", "units": None, "targets": None, "kind": "any",
        "purpose": "", "stripe_count": None, "stripe_size": None, "data_width": None, "segment": None, "peak": None,
    }  # fmt: skip
    assert vars(Treatment(kind="sync")) == {
        "kind": "sync", "when": "run", "on": "clients", "need": "best_effort", "time": None, "command": "", "undo": "",
    }  # fmt: skip
    assert vars(Variant(id="v")) == {"id": "v", "set": None, "environment": None} | dict.fromkeys(
        ("title", "iobuf", "engine", "mount", "before", "after"), ""
    )
    assert vars(Sweep(values=[1])) == {
        "name": "", "paths": (), "values": [1], "kind": "grid", "plans": (), "labels": (),
    }  # fmt: skip
    assert vars(RunSchedule()) == {
        "min": 3, "max": None, "interval": None, "warmup": 0, "order": "block_random", "seed": None, "fresh": "files",
        "cooldown": None,
    }  # fmt: skip
    expectation = Expectation(id="e", level="math", claim="c")
    assert (
        expectation.needs, expectation.published, expectation.why, expectation.confidence, expectation.control,
        expectation.profiles,
    ) == (
        (), "", "", 0.95, None, (),
    )  # fmt: skip
    number = PublishedNumber(of="x", value=1, source="s")
    assert (number.to, number.limit, number.quote) == (None, "", "")


def test_axes_are_variant_file_system_mount_then_sweeps() -> None:
    experiment = build_experiment(
        sweep=[SIZES | {"labels": ["small", "large"]}], storage={"mounts": ["m"], "file_systems": ["f", "g"]},
        variants=[{"id": "v", "title": "The one"}, {"id": "u"}],
    )  # fmt: skip
    assert [axis.name for axis in experiment.axes] == ["variant", "file_system", "mount", "transfer"]
    assert [value.label for axis in experiment.axes for value in axis.values] == [
        "The one", "u", "f", "g", "m", "small", "large",
    ]  # fmt: skip
    assert experiment.axes[3] == SweepAxis(
        "transfer",
        (AxisValue("4KiB", (("data.access.transfer", "4KiB"),), "small"),
         AxisValue("64KiB", (("data.access.transfer", "64KiB"),), "large")),
    )  # fmt: skip
    assert build_cell_axes(ExperimentFile(schema="sonde-experiment/2", plan=PLAN)) == ()
    assert get_axis_name(Sweep(values=[])) == ""
    assert get_axis_name(Sweep(values=[], paths=("a.b", "c.d"))) == "b"
    assert get_axis_name(Sweep(values=[], paths=("a.b",), name="n")) == "n"


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ({"from": 1, "to": 1, "step": 1}, [1]),
        ({"from": 0, "to": 2, "step": 1}, [0, 1, 2]),
        ({"from": 1, "to": 10, "factor": 3}, [1, 3, 9]),
        ({"from": 0.5, "to": 2, "step": 0.5}, [0.5, 1, 1.5, 2]),
        ({"from": "1KiB", "to": "3KiB", "step": 1024}, ["1KiB", "2KiB", "3KiB"]),
        ({"from": "1KiB", "to": "3000B", "factor": 2}, ["1KiB", "2KiB"]),
        ({"from": 1, "to": 10_000, "step": 1}, list(range(1, 10_001))),
    ],
)
def test_values_run_from_one_end_to_the_other(written: dict[str, Any], values: list[Any]) -> None:
    assert expand_values(written) == values


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            {"from": 2, "to": 1, "step": 1},
            "runs from 2 to 1, which never arrives; write the smaller end first, above 0.",
        ),
        (
            {"from": 0, "to": 1, "factor": 2},
            "runs from 0 to 1, which never arrives; write the smaller end first, above 0.",
        ),
        (
            {"from": 1, "to": 2, "step": 0},
            "runs from 1 to 2, which never arrives; write the smaller end first, above 0.",
        ),
        (
            {"from": "4k", "to": "8KiB", "factor": 2},
            'cannot be read: "4k" does not say which unit is meant: write 4KiB (4,096 bytes) or 4kB (4,000 bytes).',
        ),
        ({"from": 1, "to": 10_001, "step": 1}, "has more than 10000 values, which cannot be meant."),
    ],
)
def test_values_that_never_arrive_or_are_too_many(written: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AxisError) as caught:
        expand_values(written)
    assert str(caught.value) == sentence


def test_a_cell_is_named_by_its_plan_and_its_places() -> None:
    assert Cell("", {}, ()).id == "base"
    assert Cell("p", {}, ()).id == "plan=p"
    assert Cell("p", {"x": 1, "y": "a"}, ()).id == "plan=p,x=1,y=a"
    assert Cell("", {"x": 1}, ()).id == "x=1"


@pytest.mark.parametrize(
    ("clients", "storage", "tasks"),
    [
        ({"nodes": 3}, {}, {"processes": 3}),
        ({"tasks_per_node": 4}, {}, {"processes": 4}),
        ({"nodes": 3, "tasks_per_node": 4}, {}, {"processes": 12}),
        ({"threads": 2}, {}, {"threads": 2}),
        ({"per_target": 2, "threads": 5}, {"targets": 4}, {"processes": 8, "threads": 5}),
        ({"group": "g"}, {}, None),
        ({}, {}, None),
    ],
)
def test_clients_are_processes_and_threads(
    clients: dict[str, Any], storage: dict[str, Any], tasks: dict[str, int] | None
) -> None:
    experiment = build_experiment(clients=clients, storage=storage)
    document = experiment.build_plan_of_cell(experiment.cells[0]).document
    assert document.get("tasks") == tasks
    assert document["target"] == {"path": "/no-target-yet"} == {"path": PLACEHOLDER_TARGET}
    assert document["id"] == "x"


def test_plan_keeps_its_own_id_target_stripe_and_tasks() -> None:
    plan = PLAN | {"id": "own", "target": {"path": "/own", "full_stripe": "1MiB"}, "tasks": {"pin": True}}
    experiment = build_experiment(plan=plan, clients={"nodes": 2}, storage={"data_width": 8, "segment": "1 MiB"})
    document = experiment.build_plan_of_cell(experiment.cells[0], "/other").document
    assert (document["id"], document["target"]) == ("own", {"path": "/own", "full_stripe": "1MiB"})
    assert document["tasks"] == {"pin": True, "processes": 2}
    bare = build_experiment(storage={"data_width": 8})
    assert "full_stripe" not in bare.build_plan_of_cell(bare.cells[0]).document["target"]
    of_two_plans = plans()
    assert [of_two_plans.build_plan_of_cell(cell).id for cell in of_two_plans.cells] == ["x.a", "x.b"]


def test_variant_settings_apply_before_axis_settings() -> None:
    sides = [{"id": "v", "set": {"data.access.transfer": "1KiB", "data.io.direct": True, "clients.nodes": 5}}]
    experiment = build_experiment(variants=sides, sweep=[SIZES])
    document = experiment.build_plan_of_cell(experiment.cells[0]).document
    assert document["data"] == {"access": {"transfer": "4KiB"}, "io": {"direct": True}}
    assert document["tasks"] == {"processes": 5}
    assert experiment.resolve_clients(experiment.cells[0]) == Clients(nodes=5)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sweep.z": [1]}, 'sweep.z: there is no axis "z" whose values could be replaced.'),
        ({"variants.w.engine": "x"}, 'variants.w.engine: there is no variant "w".'),
        ({"variants.v": "x"}, 'variants.v: "variants.v" names no member; say which, like variants.v.engine=PATH.'),
        ({"plans.c.title": "x"}, 'plans.c.title: there is no plan "c".'),
    ],
)
def test_a_setting_that_leads_nowhere(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        change_members_by_path(plans(variants=[{"id": "v"}], sweep=[SIZES]), settings)
    assert str(caught.value) == f"x.toml: {sentence}"


def test_a_setting_reaches_every_plan_or_the_one_that_is_named() -> None:
    changed = change_members_by_path(
        plans(), {"tasks.threads": 3, "plans.b.title": "B", "repeat.min": 5, "storage.pool": "p"}
    )
    assert [plan.get("title") for plan in changed.plans.values()] == [None, "B"]
    assert [plan["tasks"] for plan in changed.plans.values()] == [{"threads": 3}] * 2
    assert changed.file.repeat is not None
    assert changed.file.storage is not None
    assert (changed.file.repeat.min, changed.file.storage.pool) == (5, "p")
    data = change_members_by_path(plans(), {"data.access.transfer": "8KiB", "meta.sync": True})
    assert [plan.get("data") for plan in data.plans.values()] == [{"access": {"transfer": "8KiB"}}, None]
    assert [plan.get("meta") for plan in data.plans.values()] == [{"sync": True}] * 2, "no plan has meta, so all get it"


@pytest.mark.parametrize(
    ("values", "labels"),
    [(["64KiB"], ("large",)), (["64KiB", "4KiB"], ("large", "small")), (["4KiB", "1MiB"], ())],
)
def test_labels_stay_with_their_values(values: list[str], labels: tuple[str, ...]) -> None:
    experiment = build_experiment(sweep=[SIZES | {"labels": ["small", "large"]}])
    (sweep,) = change_members_by_path(experiment, {"sweep.transfer": values}).file.sweep
    assert (sweep.values, sweep.labels) == (values, labels)
