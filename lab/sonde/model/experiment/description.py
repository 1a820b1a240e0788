# SPDX-License-Identifier: Apache-2.0
"""The tables and members of an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonde.model.experiment import values
from sonde.model.tables.members import (
    declare_choice,
    declare_choices,
    declare_flag,
    declare_plain_number,
    declare_raw_value,
    declare_table,
    declare_tables,
    declare_text,
    declare_texts,
)

EXPERIMENT_FORMAT = "sonde-experiment/2"
NUMBER_STATUSES = ("published", "inferred", "proposed")
CLAIM_LEVELS = ("math", "simulated", "measured")
TREATMENT_KINDS = (
    "sync", "drop_page_cache", "cancel_client_locks", "remount", "sleep", "command", "server_command",
)  # fmt: skip
_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_AXIS_NAME_PATTERN = r"[a-z][a-z0-9_]*"


@dataclass(frozen=True, kw_only=True)
class NamedPlan:
    """One of several plans of an experiment."""

    id: str = declare_text("name of the plan here", required=True, pattern=_ID_PATTERN)
    title: str = declare_text("words for people")
    plan: Any = declare_raw_value(
        "a plan, or the file or name of a shipped one",
        values.PLAN_SCHEMA_FORM,
        values.find_plan_problem,
        required=True,
    )


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The nodes and tasks that do the I/O. Without these members, `tasks` of the plan applies."""

    nodes: int | None = declare_plain_number("count", "client nodes", min_value=1)
    per_target: int | None = declare_plain_number(
        "count", "client nodes for each target of the pool, instead of nodes", min_value=1
    )
    tasks_per_node: int | None = declare_plain_number("count", "processes on each node", min_value=1)
    threads: int | None = declare_plain_number("count", "threads of each process", min_value=1)
    mapping: str = declare_choice("how processes are numbered over nodes", ("block", "cyclic"))
    group: str = declare_text("nodes of the system file to use: the name of a group, or a range")
    origin: str = declare_choice(
        "where the calls come from; forwarded: a node whose calls another one executes",
        ("compute", "service", "server", "forwarded"),
    )
    launcher: str = declare_text("how processes are started, as --launch takes it")
    pin: str = declare_choice("what a process is bound to", ("none", "core", "numa"))


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The measured storage, where it is more than the directory of a plan's target."""

    system: str = declare_text("system file, or the name of a described one in systems/")
    file_systems: tuple[str, ...] = declare_texts(
        "file systems of the system file, or names that --on NAME=DIR gives; one cell each"
    )
    mounts: tuple[str, ...] = declare_texts(
        "mounts of the system file, or names that --on NAME=DIR gives; one cell each"
    )
    pool: str = declare_text("pool of the system file, or a name that --pool NAME=DIR gives")
    units: int | None = declare_plain_number(
        "count", "building blocks (SSUs, LUNs) of the pool, for rates per unit", min_value=1
    )
    targets: int | None = declare_plain_number("count", "targets (OSTs) of the pool", min_value=1)
    kind: str = declare_choice(
        "kind of file system that it needs", ("any", "local", "lustre", "gpfs", "nfs"), default_word="any"
    )
    purpose: str = declare_choice("kind of LUN that it needs", ("transaction", "bandwidth", "capacity"))
    stripe_count: Any = declare_raw_value(
        "targets of a file: a number, or all",
        {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]},
        lambda value: (
            None
            if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)
            else f'is {value!r}; write a whole number from 1, or "all".'
        ),
    )
    stripe_size: int | None = declare_plain_number("size", "on one target before the next")
    data_width: int | None = declare_plain_number("count", "data drives of a RAID stripe", min_value=1)
    segment: int | None = declare_plain_number("size", "on one drive before the next")
    peak: float | None = declare_plain_number("rate", "stated peak of all of it, where no system file says it")


@dataclass(frozen=True, kw_only=True)
class Treatment:
    """Something done to the machine around runs, never timed. Those between phases of one run are in the plan."""

    kind: str = declare_choice("what is done", TREATMENT_KINDS, required=True)
    when: str = declare_choice(
        "before every run, every cell, or once", ("run", "cell", "experiment"), default_word="run"
    )
    on: str = declare_choice("where", ("clients", "servers", "both"), default_word="clients")
    need: str = declare_choice(
        "what happens when it cannot be done", ("required", "best_effort"), default_word="best_effort"
    )
    time: float | None = declare_plain_number("duration", "how long to sleep")
    command: str = declare_text("what to execute")
    undo: str = declare_text("what to execute afterwards")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One side of a comparison (A/B): runs of all variants are interleaved."""

    id: str = declare_text("name of the variant", required=True, pattern=_ID_PATTERN)
    title: str = declare_text("words for people")
    set: Mapping[str, Any] | None = declare_raw_value(
        "members that differ, by path", values.SETTINGS_FORM, values.find_settings_problem
    )
    environment: Mapping[str, Any] | None = declare_raw_value(
        "environment variables", values.TEXTS_FORM, values.find_texts_problem
    )
    iobuf: str = declare_text("IOBUF_PARAMS of the buffering layer; the run is started under it")
    engine: str = declare_text("another sonde-engine, to compare binaries")
    mount: str = declare_text("mount of the system file, or a name that --on NAME=DIR gives")
    before: str = declare_text("command that sets it up")
    after: str = declare_text("command that takes it back")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Members that take several values: one axis of the cells."""

    name: str = declare_text(
        "name of the axis in expectations, figures and tables; if absent, the end of its first path",
        pattern=_AXIS_NAME_PATTERN,
    )
    paths: tuple[str, ...] = declare_texts(
        "members that change together, by path: of the plan, or clients.…, storage.…"
    )
    values: Any = declare_raw_value(
        "a list; of several paths, a list of lists; or {from, to, factor | step}",
        values.VALUES_FORM, values.find_values_problem, required=True,
    )  # fmt: skip
    kind: str = declare_choice(
        "with all values of the other axes, or alone", ("grid", "one_at_a_time"), default_word="grid"
    )
    plans: tuple[str, ...] = declare_texts("ids of the plans that it applies to; if absent, all")
    labels: tuple[str, ...] = declare_texts("words for each value, for people")


@dataclass(frozen=True, kw_only=True)
class RunSchedule:
    """How often each cell is run, and in which order."""

    min: int = declare_plain_number("count", "runs of each cell", default_value=3, min_value=1)
    max: int | None = declare_plain_number(
        "count", "runs of a cell at most, when interval is given; if absent, 10 times min", min_value=1
    )
    interval: float | None = declare_plain_number(
        "share", "until half the 95 % interval of the median is at most this share of it"
    )
    warmup: int = declare_plain_number("count", "runs of each cell that are thrown away", default_value=0)
    order: str = declare_choice(
        "block_random: all cells once in random order, then again; in_order: as written", ("block_random", "in_order"),
        default_word="block_random",
    )  # fmt: skip
    seed: int | None = declare_plain_number("count", "of the order; if absent, drawn and printed")
    fresh: str = declare_choice("what is made anew for every run", ("files", "directory", "none"), default_word="files")
    cooldown: float | None = declare_plain_number("duration", "wait between two runs")


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A claim about the results. It holds, fails, is undecided, or is not judged here."""

    id: str = declare_text("name of the claim, like B-S7", required=True, pattern=_ID_PATTERN)
    level: str = declare_choice(
        "math: on published numbers; simulated: must hold on a simulated machine; measured: on real storage",
        CLAIM_LEVELS,
        required=True,
    )  # fmt: skip
    claim: str = declare_text(
        "like bandwidth(read) / bandwidth(write) >= 1.3 (docs/reference/experiment.md)", required=True
    )
    needs: tuple[str, ...] = declare_choices(
        "what must be there for it to be applicable",
        ("lustre", "gpfs", "parity", "striped_volume", "two_mounts", "two_pools", "two_nodes", "root", "direct",
         "server_access", "mpi"),
    )  # fmt: skip
    published: str = declare_text("what the source document says")
    why: str = declare_text("why it is expected")
    confidence: float = declare_plain_number("share", "of the interval that is compared", default_value=0.95)
    control: Mapping[str, Any] | None = declare_raw_value(
        "simulated: changes of the system, by KIND.ID.MEMBER, under which it must fail", values.SETTINGS_FORM,
        values.find_settings_problem,
    )  # fmt: skip
    profiles: tuple[str, ...] = declare_texts("profiles in which it is looked at; if absent, all")
    about: tuple[str, ...] = declare_choices(
        "what its rates and latencies may describe: storage, or caches too; other numbers are not judged. If absent,"
        " storage", ("storage", "cache"),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """A number that the source document prints, shown beside ours. It is of another machine: the shape can be compared,
    the height cannot."""

    of: str = declare_text("what it is of, in the words of a claim, like bandwidth(write, clients=16)", required=True)
    value: Any = declare_raw_value(
        'as printed, with its unit: "1.6 GB/s", "20 kop/s", "34.8 s", "70 %", or a plain number for a ratio',
        values.NUMBER_FORM, values.find_published_number_problem, required=True,
    )  # fmt: skip
    to: Any = declare_raw_value(
        "the other end, where a range is printed", values.NUMBER_FORM, values.find_published_number_problem
    )
    limit: str = declare_choice("how the document means it, if not as a value", ("about", "at_least", "at_most"))
    source: str = declare_text("item of the source document, like D11", required=True)
    quote: str = declare_text("what the document says of it")


@dataclass(frozen=True, kw_only=True)
class FigureDescription:
    """A figure in the form of the source document."""

    id: str = declare_text("name of the figure", required=True, pattern=_ID_PATTERN)
    title: str = declare_text("words for people")
    source: str = declare_text("the figure of the source document that it follows")
    kind: str = declare_choice(
        "its form", ("curve", "bars", "percent", "over_time", "calls", "scaling", "nodes"), required=True
    )
    metrics: tuple[str, ...] = declare_texts("what is drawn: bandwidth, operations, cpu_rate …")
    phases: tuple[str, ...] = declare_texts("phases; if absent, all that are measured")
    plans: tuple[str, ...] = declare_texts("plans; if absent, all")
    x: str = declare_text("axis along the bottom: the name of a sweep, phase, variant, plan, time or call")
    series: str = declare_text("one line or color for each: the name of a sweep, phase, variant, plan or file_system")
    logarithmic: bool | None = declare_flag("true when the bottom axis is logarithmic")
    baseline: str = declare_text("percent: the value of series, or the baseline run, that is 0 %")
    where: Mapping[str, Any] | None = declare_raw_value(
        "cells that are shown, by axis and value; if absent, all", values.SETTINGS_FORM, values.find_settings_problem
    )
    per: str = declare_choice("divided by", ("unit", "target", "node", "task"))


@dataclass(frozen=True, kw_only=True)
class TableDescription:
    """A table in the form of the source document."""

    id: str = declare_text("name of the table", required=True, pattern=_ID_PATTERN)
    title: str = declare_text("words for people")
    source: str = declare_text("the table of the source document that it follows")
    rows: tuple[str, ...] = declare_texts(
        "one row for each: names of sweeps, phase, variant, plan, file_system, server"
    )
    metrics: tuple[str, ...] = declare_texts("columns")
    phases: tuple[str, ...] = declare_texts("phases; if absent, all that are measured")
    plans: tuple[str, ...] = declare_texts("plans; if absent, all")
    where: Mapping[str, Any] | None = declare_raw_value(
        "cells that are shown, by axis and value; if absent, all", values.SETTINGS_FORM, values.find_settings_problem
    )
    per: str = declare_choice("divided by", ("unit", "target", "node", "task"))


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    """An experiment: plans, a sweep, repeats, and what is expected of the results."""

    schema: str = declare_choice("version of this format", (EXPERIMENT_FORMAT,), required=True)
    id: str = declare_text("name of the experiment; if absent, that of the file", pattern=_ID_PATTERN)
    title: str = declare_text("one line for people")
    source: tuple[str, ...] = declare_texts("items of the source documents, like B10")
    status: str = declare_choice("how sure the parameters are", NUMBER_STATUSES)
    notes: tuple[str, ...] = declare_texts("every assumption")
    tags: tuple[str, ...] = declare_texts("words to select runs by")
    plan: Any = declare_raw_value(
        "the plan, or the file or name of a shipped one; next to plans, the members that all of them share",
        values.PLAN_SCHEMA_FORM,
        values.find_plan_problem,
    )
    plans: tuple[NamedPlan, ...] = declare_tables("several plans", NamedPlan)
    clients: Clients | None = declare_table("who does the I/O", Clients)
    storage: Storage | None = declare_table("what is measured", Storage)
    treatments: tuple[Treatment, ...] = declare_tables("what is done to the machine around runs", Treatment)
    variants: tuple[Variant, ...] = declare_tables("sides of a comparison", Variant)
    sweep: tuple[Sweep, ...] = declare_tables("axes of the cells", Sweep)
    repeat: RunSchedule | None = declare_table("how often, and until when", RunSchedule)
    expect: tuple[Expectation, ...] = declare_tables("claims about the results", Expectation)
    published: tuple[PublishedNumber, ...] = declare_tables(
        "numbers of the source document, shown beside ours", PublishedNumber
    )
    figures: tuple[FigureDescription, ...] = declare_tables("figures", FigureDescription)
    tables: tuple[TableDescription, ...] = declare_tables("tables", TableDescription)
    profiles: Mapping[str, Mapping[str, Any]] | None = declare_raw_value(
        "members that differ at another scale, by name of the profile (ci, laptop, published) and path; "
        "sweep.NAME replaces the values of an axis",
        values.PROFILES_FORM, values.find_profiles_problem,
    )  # fmt: skip
