# SPDX-License-Identifier: Apache-2.0
"""Plans and experiments on described machines: what is put into a machine comes out of its record."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sonde.launch.simulator import find_simulator
from sonde.model.errors import MachineError
from sonde.model.record import read_record
from sonde.model.system import read_system

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20

try:
    SIMULATOR = find_simulator()
except MachineError as reason:  # a tree without C++ programs
    pytest.skip(str(reason), allow_module_level=True)


@pytest.fixture(scope="module")
def edison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("system") / "edison.json"
    path.write_text(read_system(str(ROOT / "systems" / "edison.toml")).to_json(), encoding="utf-8")
    return path


def plan_of(tasks: int, mib: int, **more: Any) -> dict[str, Any]:
    """Each task writes a file, and reads that of a task on another node."""
    return {
        "schema": "sonde-plan/2",
        "id": "t",
        "title": "t",
        "target": {"path": "/scratch"},
        "tasks": {"processes": tasks},
        "data": {"access": {"transfer": "1MiB", "block": f"{mib}MiB", "segments": 1}, "io": {"fsync": "end"}, **more},
        "phases": [{"id": "write", "op": "write"}, {"id": "read", "op": "read", "shift": {"by": "nodes", "n": 1}}],
    }


def simulated(folder: Path, system: Path, plan: dict[str, Any], *arguments: str) -> bytes:
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    record = folder / "record.ndjson"
    record.unlink(missing_ok=True)
    command = [str(SIMULATOR), "run", str(folder / "plan.json"), "--system", str(system), "--record", str(record)]
    started = ["--started", "2014-08-23T12:00:00Z"]
    subprocess.run([*command, *started, *arguments], check=True, capture_output=True, text=True)
    return record.read_bytes()


def rate(folder: Path, phase: str) -> float:
    end = read_record(folder / "record.ndjson").phases[phase].end
    assert end is not None
    return (end.rates.total.bytes_per_s if end.rates.total else 0.0) or 0.0


def test_a_file_for_each_target_gets_the_rate_of_all_targets(tmp_path: Path, edison: Path) -> None:
    # A task a node: those of one node would share its read-ahead.
    simulated(tmp_path, edison, plan_of(96, 512), "--mount", "fs2", "--nodes", "96")
    # A target has 4 GB/s / 8, less what its place on the drives costs (1 % full).
    assert rate(tmp_path, "write") == pytest.approx(96 * 500e6, rel=0.05)
    assert rate(tmp_path, "read") == pytest.approx(96 * 500e6, rel=0.05)


def test_stripes_of_a_plan_use_the_targets_of_the_machine(tmp_path: Path, edison: Path) -> None:
    plan = plan_of(8, 512)
    plan["target"]["striping"] = {"count": 1, "start": 3}  # all on one target, which all tasks share
    simulated(tmp_path, edison, plan, "--mount", "fs2", "--nodes", "8")
    assert rate(tmp_path, "write") == pytest.approx(500e6, rel=0.15)
    plan["target"]["striping"] = {"count": 1}  # assigned round robin: one target each
    simulated(tmp_path, edison, plan, "--mount", "fs2", "--nodes", "8")
    assert rate(tmp_path, "write") == pytest.approx(8 * 500e6, rel=0.15)


def test_error_of_a_simulated_task_has_its_node(tmp_path: Path, edison: Path) -> None:
    """All tasks are in one process of the simulator; their nodes are those of the model."""
    system = json.loads(edison.read_text(encoding="utf-8"))
    for target in system["targets"]:
        target["capacity"] = 2 * MIB
    (tmp_path / "small.json").write_text(json.dumps(system), encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        simulated(tmp_path, tmp_path / "small.json", plan_of(4, 8), "--mount", "fs2", "--nodes", "4")
    lines = [json.loads(line) for line in (tmp_path / "record.ndjson").read_text(encoding="utf-8").splitlines()]
    hosts = {line["node"]: line["host"] for line in lines if line["type"] == "node"}
    errors = [line for line in lines if line["type"] == "error"]
    assert {(line["task"], line["node"], line["host"]) for line in errors} <= {(n, n, hosts[n]) for n in hosts}
    assert f"task {errors[0]['task']} on {hosts[errors[0]['node']]}: write of " in errors[0]["text"]
    assert f" on {hosts[errors[0]['node']]}: " in failed.value.stderr


def test_pool_of_a_plan_equals_a_mount_on_its_targets(tmp_path: Path) -> None:
    system = tmp_path / "slingshot.json"
    system.write_text(read_system(str(ROOT / "systems" / "slingshot-lustre.toml")).to_json(), encoding="utf-8")
    plan = plan_of(8, 64)
    simulated(tmp_path, system, plan, "--mount", "flash")
    without = rate(tmp_path, "write")
    plan["target"]["striping"] = {"pool": "flash"}
    simulated(tmp_path, system, plan, "--mount", "flash")
    assert rate(tmp_path, "write") == without > 0


@pytest.mark.parametrize(
    ("striping", "expected_text"), [({"start": 999}, "no target of index 999"), ({"pool": "p"}, "--mount p")]
)
def test_stripes_that_the_machine_has_not_are_refused(
    tmp_path: Path, edison: Path, striping: dict[str, Any], expected_text: str
) -> None:
    plan = plan_of(1, 1)
    plan["target"]["striping"] = striping
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [str(SIMULATOR), "run", str(tmp_path / "plan.json"), "--system", str(edison), "--mount", "fs2"]
    done = subprocess.run([*command, "--record", str(tmp_path / "r")], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert expected_text in done.stderr


def test_seed_determines_the_simulated_record(tmp_path: Path, edison: Path) -> None:
    plan = plan_of(48, 32)
    first = simulated(tmp_path, edison, plan, "--seed", "7")
    assert simulated(tmp_path, edison, plan, "--seed", "7") == first
    assert simulated(tmp_path, edison, plan, "--seed", "8") != first


def test_a_slow_target_slows_the_tasks_on_it_by_its_factor(tmp_path: Path, edison: Path) -> None:
    plan = plan_of(96, 256)
    simulated(tmp_path, edison, plan, "--mount", "fs2")
    sound = rate(tmp_path, "write")
    simulated(tmp_path, edison, plan, "--mount", "fs2", "--fault", "slow-target 3 10x")
    assert rate(tmp_path, "write") == pytest.approx(sound / 10, rel=0.1)


def test_traces_have_the_form_of_the_files_of_lustre(tmp_path: Path, edison: Path) -> None:
    traces = tmp_path / "traces"
    simulated(tmp_path, edison, plan_of(96, 16), "--mount", "fs2", "--traces", str(traces))
    written = 0
    for stats in traces.glob("proc/fs/lustre/obdfilter/*/stats"):
        lines = {line.split()[0]: line.split() for line in stats.read_text(encoding="utf-8").splitlines()}
        assert lines["write_bytes"][2:4] == ["samples", "[bytes]"]
        written += int(lines["write_bytes"][6])
    assert written == 96 * 16 * MIB
    of_nodes = [path.read_text(encoding="utf-8") for path in traces.glob("proc/fs/lustre/llite/*/stats")]
    calls = [line.split() for text in of_nodes for line in text.splitlines() if line.startswith("write_bytes")]
    assert sum(int(line[6]) for line in calls) == written
    rows = [line.split() for line in (traces / "proc/diskstats").read_text(encoding="utf-8").splitlines()]
    assert sum(int(row[9]) for row in rows) * 512 == written
    assert (traces / "lmt.csv").read_text(encoding="utf-8").startswith("TIMESTAMP,OST_NAME,READ_BYTES,WRITE_BYTES\n")


def test_traces_begin_at_a_start_with_a_fraction(tmp_path: Path, edison: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan_of(1, 16)), encoding="utf-8")
    command = [str(SIMULATOR), "run", str(tmp_path / "plan.json"), "--system", str(edison), "--mount", "fs2"]
    options = ["--traces", str(tmp_path), "--started", "2014-08-23T12:00:00.250000Z"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    _header, first, *_rows = (tmp_path / "lmt.csv").read_text(encoding="utf-8").splitlines()
    assert first.split(",")[0] == "1408795200.250"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("slow-targe 3", "there is none of that name"),
        ("slow-target", "needs the target it is about"),
        ("slow-target 999", 'has no target "999"'),
        ("slow-target 3 fast", '"fast" is no factor'),
        ("router-lost", "needs the router it is about"),
        ("router-lost lnet99", 'has no router "lnet99"'),
        ("tunable color 3", "is no tunable of a client"),
        ("noisy-neighbor 2", "is no share of the rate"),
        ("raid-rebuild 3 at soon", "is no time"),
    ],
)
def test_a_wrong_fault_is_one_sentence(tmp_path: Path, edison: Path, fault: str, message: str) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(plan_of(2, 1)), encoding="utf-8")
    command = [str(SIMULATOR), "run", str(tmp_path / "plan.json"), "--system", str(edison), "--fault", fault]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_an_experiment_is_run_on_the_pools_of_the_machine(sonde: Any, runs: Any, tmp_path: Path) -> None:
    """Pools of 1, 2 and 4 units of one kind: twice the units, twice the rate."""
    result = sonde("simulate", "hpcs-07", "--profile", "ci", "--system", "hpcs-demo", "--json")
    assert result.returncode == 0, result.stderr
    rates: dict[str, list[float]] = {}
    for run in runs():
        assert run["simulated"]["mount"] == run["experiment"]["axis_values"]["pool"]
        (write, *_) = run["phases"]
        rates.setdefault(run["experiment"]["axis_values"]["pool"], []).append(write["bytes_per_s"])
    medians = {pool: sorted(values)[len(values) // 2] for pool, values in rates.items()}
    assert medians["FS2"] == pytest.approx(2 * medians["FS1"], rel=0.02)
    assert medians["FS3"] == pytest.approx(4 * medians["FS1"], rel=0.02)


TRAINING = """
schema = "sonde-plan/2"
id = "input"
title = "input"
[data]
files = { mapping = "many", count = 12 }
access = { transfer = "1MiB", block = "64MiB", segments = 1 }
[[phases]]
id = "generate"
op = "write"
[[phases]]
id = "epoch"
op = "train"
training = { batch_size = 1, compute_time = "600ms", prefetch = 2 }
"""


def test_sweep_reports_how_many_accelerators_a_machine_feeds(sonde: Any, runs: Any, tmp_path: Path) -> None:
    """cray-x1 serves a task at 120 MB/s, 32 at less each; an accelerator takes 67 MB each 0.6 s, which is 112 MB/s."""
    (tmp_path / "input.toml").write_text(TRAINING, encoding="utf-8")
    sweep = ("simulate", "input.toml", "--system", "cray-x1", "--sweep", "tasks.processes=1,2,32")
    result = sonde(*sweep, "--json")
    assert result.returncode == 0, result.stderr
    shares = {run["tasks"]: run["phases"][1]["utilization"] for run in runs()}
    assert shares[1] > 0.9 > 0.7 > shares[32]
    at_90, at_70 = (text for text in json.loads(result.stdout)["ranking"] if text.startswith("epoch: "))
    assert f"32 computed {100 * shares[32]:.1f} %" in at_70
    assert ": the most that reached 90 %; " in at_90
    refused = sonde(*sweep, "--tasks", "4")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "both set the number of tasks" in refused.stderr


def test_tasks_option_states_the_total_number_of_tasks(sonde: Any, runs: Any) -> None:
    result = sonde("simulate", "quick", "--system", "edison", "--tasks", "6", "--set", "data.access.volume=1MiB")
    assert result.returncode == 0, result.stderr
    assert runs()[0]["tasks"] == 6
    refused = sonde("simulate", "quick", "--system", "edison", "--tasks", "6", "--set", "tasks.threads=2")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "both set the number of tasks" in refused.stderr


def test_default_target_is_the_mount_that_is_simulated(sonde: Any, runs: Any) -> None:
    """The first mount of edison, /global, has no storage in its file; the simulator takes the second."""
    result = sonde("simulate", "quick", "--system", "edison", "--set", "data.access.volume=1MiB")
    assert result.returncode == 0, result.stderr
    assert runs()[0]["target"] == "/scratch1"


def test_runs_of_a_simulated_experiment_are_on_the_modeled_mount(sonde: Any, runs: Any) -> None:
    """The simulator gets an empty directory of this machine; the record names the modeled mount."""
    result = sonde("simulate", "cumulus-single-client", "--profile", "ci", "--system", "cumulus")
    assert {run["target"] for run in runs()} == {"/wolf", "/dvs/wolf"}
    assert "gpfs in /wolf, /dvs/wolf." in result.stdout


def test_variants_that_change_a_real_program_are_not_simulated(sonde: Any, runs: Any) -> None:
    result = sonde("simulate", "edison-mpiio-10k", "--profile", "ci", "--system", "edison")
    assert "which a model of a machine does not know" in result.stdout + result.stderr
    assert {run["experiment"]["variant"] for run in runs()} == {"plain", "records-of-1mb"}, "all but iobuf"


def read_phase_end(folder: Path, phase: str) -> dict[str, Any]:
    """The `phase_end` line of a phase."""
    lines = map(json.loads, (folder / "record.ndjson").read_text(encoding="utf-8").splitlines())
    return next(line for line in lines if line["type"] == "phase_end" and line["phase"] == phase)


def tree_plan(tasks: int, phases: list[dict[str, Any]], **meta: Any) -> dict[str, Any]:
    tree = {"depth": 2, "branching": 3, "items_per_dir": 4, "scope": "shared"}
    return {
        "schema": "sonde-plan/2",
        "id": "t",
        "title": "t",
        "target": {"path": "/scratch"},
        "tasks": {"processes": tasks},
        "meta": {"tree": tree, **meta},
        "phases": [{"id": "mktree", "op": "mktree"}, {"id": "create", "op": "create"}, *phases],
    }


@pytest.mark.parametrize("tasks", [1, 5])
def test_walk_visits_every_name_once_on_any_number_of_nodes(tmp_path: Path, edison: Path, tasks: int) -> None:
    phases: list[dict[str, Any]] = [
        {"id": "walk", "op": "walk"},
        {"id": "within", "op": "walk", "stop": {"within": "walk"}},
    ]
    simulated(tmp_path, edison, tree_plan(tasks, phases), "--mount", "fs2", "--nodes", str(tasks))
    for phase in ("walk", "within"):
        end = read_phase_end(tmp_path, phase)
        # 1 + 3 + 9 directories, each with four files of each task.
        assert end["walk"] == {"directories": 13, "examined": 13 + 13 * 4 * tasks}
        # A look takes 100 us of one of eight server threads, and the way there and back.
        assert 4e3 < end["rates"]["total"]["ops_per_s"] < 10e3 * tasks


def test_a_cycle_waits_between_its_calls_on_the_clock_of_the_machine(tmp_path: Path, edison: Path) -> None:
    def seconds(wait: float) -> float:
        window = {"window": {"first": 0, "count": 5, "across": True}}
        cycle = {"id": "cycle", "op": "cycle", "meta": {**window, "cycle": {"working": 5, "wait": wait}}}
        phases = [{"id": "mktree", "op": "mktree"}, {"id": "create", "op": "create", "meta": window}, cycle]
        meta = {
            "tree": {"scope": "per_task", "items_per_dir": 100},
            "file": {"write": 100, "read": 100},
            "lookup": {"paths": "full"},
            "payload": {"kind": "ior_timestamp"},
        }
        plan = {**tree_plan(2, []), "meta": meta, "phases": phases}
        simulated(tmp_path, edison, plan, "--mount", "fs2", "--nodes", "2")
        return float(read_phase_end(tmp_path, "cycle")["rates"]["total"]["seconds"])

    assert seconds(3.0) == pytest.approx(4 * seconds(0.0), rel=0.03)


def one_phase(op: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    access = {"transfer": "1MiB", "block": "64MiB", "segments": 1}
    return {
        "schema": "sonde-plan/2",
        "id": "t",
        "title": "t",
        "target": {"path": "/scratch"},
        "tasks": {"processes": 4},
        "data": {"access": access, **data},
        "phases": [{"id": "one", "op": op, **more}],
    }


def test_a_paced_phase_takes_the_time_of_its_schedule(tmp_path: Path, edison: Path) -> None:
    paced = {"rate": "100MiB/s", "latency": "1ms", "slow_tasks": {"2": 4}}
    simulated(tmp_path, edison, one_phase("write", {"backend": "paced", "paced": paced}), "--mount", "fs2")
    end = read_phase_end(tmp_path, "one")
    # 64 calls of 10 ms and 1 ms; a task with a quarter of the rate takes 40 ms and 1 ms.
    assert end["rates"]["total"]["seconds"] == pytest.approx(64 * 0.041, rel=1e-6)
    assert [end["latency"]["write"][name] for name in ("min_ns", "max_ns")] == pytest.approx([11e6, 41e6], rel=1e-6)


def test_concurrent_calls_share_the_rate_of_a_paced_phase(tmp_path: Path, edison: Path) -> None:
    data = {"backend": "paced", "paced": {"rate": "100MiB/s", "latency": "20ms"}, "io": {"queue_depth": 4}}
    simulated(tmp_path, edison, one_phase("write", data), "--mount", "fs2")
    # One after the other moves its bytes in 10 ms; the latency is waited for beside the others, but for the last one.
    assert read_phase_end(tmp_path, "one")["rates"]["total"]["seconds"] == pytest.approx(64 * 0.010 + 0.020, rel=1e-6)


def test_pause_advances_virtual_time_for_every_backend(tmp_path: Path, edison: Path) -> None:
    io = {"pause": "5ms"}
    seconds = []
    for data in ({"backend": "paced", "paced": {"rate": "100MiB/s"}, "io": io}, {"backend": "null", "io": io}):
        simulated(tmp_path, edison, one_phase("write", data), "--mount", "fs2")
        seconds.append(read_phase_end(tmp_path, "one")["rates"]["total"]["seconds"])
    assert seconds[0] == pytest.approx(64 * 0.010 + 63 * 0.005, rel=0.01)
    assert seconds[1] == pytest.approx(63 * 0.005, rel=0.02)


def test_null_backend_phase_costs_only_engine_time(tmp_path: Path, edison: Path) -> None:
    simulated(tmp_path, edison, one_phase("write", {"backend": "null"}, stop={"time": "1ms"}), "--mount", "fs2")
    end = read_phase_end(tmp_path, "one")
    # 50 ns a call and nothing else, in each of four tasks.
    assert end["rates"]["total"]["ops_per_s"] == pytest.approx(4 / 50e-9, rel=0.001)
    assert end["rates"]["total"]["seconds"] == pytest.approx(1e-3, rel=0.001)


def test_phases_with_and_without_storage_follow_each_other(tmp_path: Path, edison: Path) -> None:
    plan = plan_of(8, 64)
    plan["phases"].insert(0, {"id": "nothing", "op": "write", "backend": "null"})
    simulated(tmp_path, edison, plan, "--mount", "fs2", "--nodes", "8")
    there = rate(tmp_path, "write"), rate(tmp_path, "read")
    assert there == pytest.approx((8 * 500e6, 8 * 500e6), rel=0.15)
    assert rate(tmp_path, "nothing") > 1000 * there[0]


def test_tree_without_storage_is_created_and_walked(tmp_path: Path, edison: Path) -> None:
    paced = {"backend": "paced", "paced": {"latency": "1ms"}}
    plan = tree_plan(2, [{"id": "stat", "op": "stat"}], **paced)
    simulated(tmp_path, edison, plan, "--mount", "fs2", "--nodes", "2")
    for phase in ("create", "stat"):
        assert read_phase_end(tmp_path, phase)["rates"]["total"]["ops_per_s"] == pytest.approx(2 * 1000, rel=0.01)
