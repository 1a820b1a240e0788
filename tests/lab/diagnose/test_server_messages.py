# SPDX-License-Identifier: Apache-2.0
"""Messages of servers: which kinds logs have, and what a kind says about a hypothesis."""

from __future__ import annotations

import gzip
import json
import subprocess
from math import log
from pathlib import Path

import numpy as np
import pytest
from diagnosis_machine import SYSTEM, read_small_machine, write_small_system

from sonde.diagnose.hypotheses import Hypothesis, list_hypotheses
from sonde.diagnose.library import find_diagnosis_experiment, list_shipped_log_rules
from sonde.diagnose.likelihood import compute_message_densities
from sonde.diagnose.machine_map import DiagnosedMachine, read_machine
from sonde.diagnose.measurements import RunMeasurement
from sonde.diagnose.predictions import Prediction, SimulatedEffect, predict_messages
from sonde.diagnose.server_messages import (
    LOGGED_BY_CHANCE,
    LOGGED_WITH_CAUSE,
    MESSAGE_EXPERIMENT,
    compute_chance_of_message,
    find_messages,
)
from sonde.launch.simulator import find_simulator, list_known_faults
from sonde.model.errors import UserError
from sonde.model.system import read_system

LINES = {
    "rebuild": "Mar 17 08:41:00 oss3 kernel: md: recovery of RAID array md3",
    "drive": "Mar 17 08:12:33 oss3 kernel: blk_update_request: I/O error, dev sdq, sector 123456789 op 0x0:(READ)",
    "router": "Mar 17 10:34:00 n1 kernel: LNet: 4711:0:(router.c:178:lnet_notify_locked()) router 10.10.2.1@o2ib down",
    "recovery": "Mar 17 09:00:00 oss3 kernel: Lustre: fs-OST0003: Will be in recovery for at least 5:00",
    "metadata": "Mar 17 09:00:00 mds kernel: mdt: This server is not able to keep up with request traffic (cpu-bound).",
}

# The small machine with everything that can fail with a message: RAID groups of drives and routers with addresses.
LOGGING_SYSTEM = (
    SYSTEM.replace('server = "oss[1-4]"\nrate = "100 MB/s"', 'server = "oss[1-4]"\non = "md[0-7]"').replace(
        '[[routers.interfaces]]\nnetwork = "fabric"',
        '[[routers.interfaces]]\nnetwork = "fabric"\nnids = "10.1.0.[1-2]@o2ib"',
    )
    + """
[[drives]]
id = "d[0000-0079]"
group = "all-drives"
kind = "hdd"
rate = "20 MB/s"

[[raid_groups]]
id = "md[0-7]"
level = "6"
data = 8
parity = 2
segment = "128 KiB"
drives = "all-drives"
"""
)
# Faults that log something: the fault as the simulator reads it, its messages, the rules of all of them.
LOGGING_FAULTS = {
    "raid-rebuild": ("raid-rebuild t3 40%", {"rebuild oss2"}, {"md-disk-failure", "md-rebuild"}),
    "failing-drive": ("failing-drive t3 20%", {"drive oss2"}, {"disk-io-error"}),
    "router-lost": ("router-lost r2", {"router r2"}, {"lustre-router-down"}),
    "server-lost": ("server-lost oss2 1", {"recovery"}, {"lustre-recovery", "lustre-slow-operation"}),
    "mds-saturated": ("mds-saturated 90%", {"metadata"}, {"lustre-overloaded-server"}),
    "slow-target": ("slow-target t3 200", set(), {"lustre-slow-operation"}),
}
SILENT_FAULTS = {
    *("slow-node", "noisy-neighbor", "unbalanced-path", "cache-limit", "tunable", "client-software"),
    *("full-file-system", "misaligned-slices", "slow-drive", "slow-link", "lossy-link", "write-through"),
}


def simulate_log(folder: Path, fault: str) -> Path:
    """Writes 32 MiB to each target of a machine with a fault; returns the log of its servers."""
    system = read_system(str(write_small_system(folder, LOGGING_SYSTEM)))
    (folder / "system.json").write_text(system.to_json(), encoding="utf-8")
    plan = {
        "schema": "sonde-plan/2",
        "id": "log",
        "target": {"path": "/fs"},
        "tasks": {"processes": 8},
        "data": {
            "files": {"mapping": "per_task"},
            "access": {"transfer": "1MiB", "block": "32MiB"},
            "io": {"direct": True},
        },
        "phases": [{"id": "write", "op": "write"}],
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    subprocess.run(
        [
            *(find_simulator(), "run", folder / "plan.json", "--system", folder / "system.json", "--mount", "m"),
            *("--nodes", "4", "--record", folder / "record.ndjson", "--traces", folder / "traces", "--fault", fault),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "traces" / "messages"


def test_every_fault_of_the_simulator_is_silent_or_logging() -> None:
    faults = {line.split()[0] for line in list_known_faults(find_simulator()).splitlines() if line}
    assert set(LOGGING_FAULTS) | SILENT_FAULTS == faults


@pytest.mark.parametrize("fault", LOGGING_FAULTS)
def test_simulated_messages_match_rules_of_their_kind(tmp_path: Path, fault: str) -> None:
    planted, names, expected_rules = LOGGING_FAULTS[fault]
    log_file = simulate_log(tmp_path, planted)
    machine = read_machine(read_system(str(tmp_path / "small.toml")))
    assert {name for name, is_logged in find_messages([log_file], machine).items() if is_logged} == names
    rules = list_shipped_log_rules()
    for line in log_file.read_text(encoding="utf-8").splitlines():
        assert any(rules[name].pattern.search(line) for name in expected_rules), line


@pytest.mark.parametrize("kind", LINES)
def test_line_of_each_kind_is_recognized(tmp_path: Path, kind: str) -> None:
    log_file = tmp_path / "messages.gz"
    log_file.write_bytes(gzip.compress(f"Mar 17 08:00:00 oss3 kernel: nothing\n{LINES[kind]}\n".encode()))
    messages = find_messages([log_file], read_small_machine(tmp_path))
    assert {name.partition(" ")[0] for name, is_logged in messages.items() if is_logged} == {kind}


def test_message_about_an_unknown_part_belongs_to_its_kind(tmp_path: Path) -> None:
    (tmp_path / "messages").write_text(LINES["router"] + "\n" + LINES["rebuild"].replace("oss3", "other"), "utf-8")
    messages = find_messages([tmp_path / "messages"], read_small_machine(tmp_path))
    assert messages["router"]
    assert messages["rebuild"]
    assert not any(name.startswith("router ") for name in messages)


@pytest.mark.parametrize("name", ["10.1.0.2@o2ib", "r2@o2ib"])
def test_router_is_recognized_by_its_lnet_id_or_its_name(tmp_path: Path, name: str) -> None:
    line = f"Mar 17 10:34:00 oss1 kernel: LNet: route to gni through {name} has gone from up to down"
    (tmp_path / "messages").write_text(line, encoding="utf-8")
    machine = read_machine(read_system(str(write_small_system(tmp_path, LOGGING_SYSTEM))))
    messages = find_messages([tmp_path / "messages"], machine)
    assert (messages["router r1"], messages["router r2"]) == (False, True)


def test_overloaded_data_service_is_no_metadata_message(tmp_path: Path) -> None:
    line = LINES["metadata"].replace("mdt:", "ost_io:")
    (tmp_path / "messages").write_text(line, encoding="utf-8")
    assert not any(find_messages([tmp_path / "messages"], read_small_machine(tmp_path)).values())


def test_log_without_relevant_messages_has_no_kind(tmp_path: Path) -> None:
    (tmp_path / "messages").write_bytes(b"Mar 17 08:00:00 oss3 sshd: I/O error\n\xff\xfe\0\n")
    assert not any(find_messages([tmp_path / "messages"], read_small_machine(tmp_path)).values())


def test_unreadable_log_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08")
    for name in ("cut.gz", "absent"):
        with pytest.raises(UserError, match=rf"{name} cannot be read as a log"):
            find_messages([tmp_path / name], read_small_machine(tmp_path))


def test_logged_message_has_its_probability() -> None:
    prediction = Prediction({}, {}, {"rebuild": np.array([[0.2], [0.9]]), "drive": np.array([[0.1]])})
    densities = compute_message_densities(prediction, [RunMeasurement({}, {}, {"rebuild": True, "drive": False})])
    assert densities[0, :, 0] == pytest.approx([log(0.2 * 0.9), log(0.9 * 0.9)])


def test_kind_of_message_is_logged_if_one_about_any_part_is() -> None:
    prediction = Prediction({}, {}, {"router r1": np.array([[0.9, 0.1]]), "router r2": np.array([[0.1, 0.8]])})
    densities = compute_message_densities(prediction, [RunMeasurement({}, {}, {"router": True})])
    assert densities[0, 0] == pytest.approx([log(1 - 0.1 * 0.9), log(1 - 0.9 * 0.2)])


def test_simulated_message_is_predicted_but_not_surely(machine: DiagnosedMachine) -> None:
    effects = [SimulatedEffect({}, {}, {"metadata": share}) for share in (0.0, 0.5, 1.0)]
    prediction = predict_messages(EXPERIMENT, machine, find_hypothesis(machine, "mds-saturated"), effects)
    assert prediction.messages["metadata"][[0, -1], 0] == pytest.approx([LOGGED_BY_CHANCE, LOGGED_WITH_CAUSE])
    by_chance = np.array([prediction.messages[f"rebuild oss{number}"][0, 0] for number in range(1, 5)])
    assert 1 - np.prod(1 - by_chance) == pytest.approx(LOGGED_BY_CHANCE)


def test_message_of_another_member_names_that_member(machine: DiagnosedMachine) -> None:
    effects = [SimulatedEffect({}, {}, {"router r1": 1.0, "router r2": 0.0})]
    probabilities = predict_messages(
        EXPERIMENT, machine, find_hypothesis(machine, "router-lost:r1-r2"), effects
    ).messages
    by_chance = compute_chance_of_message(2)
    assert probabilities["router r1"][0] == pytest.approx([LOGGED_WITH_CAUSE, by_chance])
    assert probabilities["router r2"][0] == pytest.approx([by_chance, LOGGED_WITH_CAUSE])


def test_message_about_a_target_names_its_server(machine: DiagnosedMachine) -> None:
    effects = [SimulatedEffect({}, {}, {"rebuild oss1": 1.0})] * 3
    hypothesis = find_hypothesis(machine, "raid-rebuild:t0-t7")
    probabilities = predict_messages(EXPERIMENT, machine, hypothesis, effects).messages
    by_chance = compute_chance_of_message(4)
    expected = [
        LOGGED_WITH_CAUSE if machine.target_servers[target] == "oss2" else by_chance for target in machine.targets
    ]
    assert probabilities["rebuild oss2"][0] == pytest.approx(expected)


def find_hypothesis(machine: DiagnosedMachine, hypothesis_id: str) -> Hypothesis:
    return next(item for item in list_hypotheses(machine, ()) if item.id == hypothesis_id)


@pytest.fixture
def machine(tmp_path: Path) -> DiagnosedMachine:
    return read_small_machine(tmp_path)


EXPERIMENT = find_diagnosis_experiment(MESSAGE_EXPERIMENT)
