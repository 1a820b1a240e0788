# SPDX-License-Identifier: Apache-2.0
"""Machines, faults and seeds that tools/diagnosis_calibration.py draws, and what is right for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sonde.diagnose.cause_predictions import compute_cause_change
from sonde.diagnose.description import CAUSE_FORMAT, CauseEffect, CauseFile
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.hypotheses import FAULT, NOTHING, UNEXPLAINED, Hypothesis
from sonde.diagnose.machine_map import DiagnosedMachine, read_machine
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.noise import NoiseModel
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.unknown_causes import MIN_SEPARATION, compute_separation, list_rate_phases
from sonde.model.bundled_files import find_system_file
from sonde.model.system import read_system

# All shipped machines with storage targets: system, mount, and targets of a smaller machine of the same kind.
SHIPPED_MACHINES = (
    *(("edison", "fs3", 8), ("hpcs-demo", "", 8), ("sonexion-1300", "", 8)),
    *(("cumulus", "", 6), ("slingshot-lustre", "", 8)),
)
COVERED, CAUSED, HEALTHY, UNCOVERED, PAIR = "covered", "cause", "healthy", "uncovered", "pair"
_MAX_DRAWS = 200
_VISIBLE_SDS = 3.0  # standard deviations of the noise by which a fault of a pair changes some measurement
_STRENGTHS = (0.1, 0.3, 0.5, 0.7, 0.9)  # positions between the weakest and the strongest simulated strength

_MACHINE_TEMPLATE = """
schema = "sonde-system/2"
id = "drawn-{number}"
title = "drawn machine {number}"

[[networks]]
id = "storage"
kind = "infiniband"
lnet = "o2ib"
rate = "{link} MB/s"

[[networks]]
id = "compute"
kind = "aries"
lnet = "gni"

[[nodes]]
id = "n[1-{nodes}]"
memory = "32 GB"
[[nodes.interfaces]]
network = "{compute}"
{routers}
[[servers]]
id = "oss[01-{servers:02d}]"
roles = ["oss"]
failover = "pairs"
[[servers.interfaces]]
network = "storage"

[[servers]]
id = "mds"
roles = ["mds", "mgs"]
[[servers.interfaces]]
network = "storage"
{drives}
[[targets]]
id = "t[000-{last:03d}]"
kind = "ost"
index = 0
file_system = "fs"
server = "oss[01-{servers:02d}]"
{medium}

[[targets]]
id = "mdt"
kind = "mdt"
index = 0
file_system = "fs"
server = "mds"

[[file_systems]]
id = "fs"
kind = "lustre"

[[mounts]]
id = "m"
file_system = "fs"
path = "/fs"
on = "n[1-{nodes}]"
"""
_ROUTERS_TEMPLATE = """
[[routers]]
id = "r[1-{count}]"
protocol = "lnet"
[[routers.interfaces]]
network = "compute"
[[routers.interfaces]]
network = "storage"
"""
_DRIVES_TEMPLATE = """
[[drives]]
id = "d[0000-{last_drive:04d}]"
group = "all-drives"
kind = "hdd"
rate = "{rate} MB/s"

[[raid_groups]]
id = "md[000-{last:03d}]"
level = "6"
data = 8
parity = 2
segment = "128 KiB"
drives = "all-drives"
"""


@dataclass(frozen=True)
class Trial:
    """One planted truth on one machine; `answers` are (hypothesis, part) pairs that are right, all of them together.

    `left_out` is a fault that is no hypothesis in this trial.
    """

    kind: str
    name: str
    truth: ModeledTruth
    answers: tuple[tuple[str, str], ...]
    left_out: str = ""


def draw_system(generator: np.random.Generator, system_number: int) -> str:
    """Returns a machine with drawn numbers of servers, targets, nodes and routers, and drawn rates."""
    servers, per_server = int(generator.integers(1, 4)) * 2, int(generator.integers(1, 4))
    nodes, routers = int(generator.integers(4, 9)), int(generator.integers(0, 4))
    rate = int(generator.integers(100, 1200))
    last = servers * per_server - 1
    has_drives = generator.random() < 0.5
    drives = _DRIVES_TEMPLATE.format(last_drive=(last + 1) * 10 - 1, rate=max(20, rate // 8), last=last)
    return _MACHINE_TEMPLATE.format(
        number=system_number,
        link=int(rate * per_server * generator.uniform(1.1, 2.5)),
        nodes=nodes,
        compute="compute" if routers else "storage",
        routers=_ROUTERS_TEMPLATE.format(count=routers) if routers else "",
        servers=servers,
        last=last,
        drives=drives if has_drives else "",
        medium=f'on = "md[000-{last:03d}]"' if has_drives else f'rate = "{rate} MB/s"',
    )


def list_machines(drawn_count: int, folder: Path) -> Iterator[tuple[str, DiagnosedMachine]]:
    """Yields shipped and drawn machines."""
    for system, mount, targets in SHIPPED_MACHINES:
        yield system, read_machine(read_system(find_system_file(system)), mount, targets)
    generator = np.random.default_rng(20131217)
    for number in range(1, drawn_count + 1):
        path = folder / f"drawn-{number}.toml"
        path.write_text(draw_system(generator, number), encoding="utf-8")
        yield f"drawn-{number}", read_machine(read_system(str(path)))


def draw_trial(
    model: DiagnosisModel, simulator: Simulator, trial_kind: str, trial_number: int, seed: int
) -> Trial | None:
    """Draws a trial; equal arguments draw the same one. None when the machine cannot have what is drawn."""
    generator = np.random.default_rng([seed, trial_number, *trial_kind.encode()])
    noise_seed = int(generator.integers(1, 2**31))
    if trial_kind == HEALTHY:
        return Trial(trial_kind, HEALTHY, ModeledTruth(seed=noise_seed), ((NOTHING, ""),))
    if trial_kind == COVERED:
        fault, answer = _draw_fault(model, trial_number, generator)
        return Trial(trial_kind, answer[0], ModeledTruth((fault,), seed=noise_seed), (answer,))
    if trial_kind == CAUSED:
        return _draw_cause(model, trial_number, generator, noise_seed)
    if trial_kind == PAIR:
        return _draw_pair(model, simulator, trial_number, generator, noise_seed)
    return (_draw_strange_change, _draw_left_out, _draw_slow_parts)[trial_number % 3](
        model, trial_number // 3, generator, noise_seed
    )


def _draw_fault(
    model: DiagnosisModel, trial_number: int, generator: np.random.Generator
) -> tuple[str, tuple[str, str]]:
    """Draws a fault of the model, each kind equally often, and its hypothesis and part."""
    faults = [item for item in model.hypotheses if item.kind == FAULT]
    kinds = list(dict.fromkeys(item.fault for item in faults))
    candidates = [item for item in faults if item.fault == kinds[trial_number % len(kinds)]]
    chosen: Hypothesis = candidates[int(generator.integers(len(candidates)))]
    members = chosen.members
    if chosen.group is not None and chosen.group.kind == "node":
        members = members[:4]  # nodes that take part in every experiment
    part = str(generator.choice(members))
    return chosen.format_fault_argument(_draw_amount(model, chosen, generator), part), (chosen.id, part)


def _draw_pair(
    model: DiagnosisModel, simulator: Simulator, trial_number: int, generator: np.random.Generator, noise_seed: int
) -> Trial | None:
    """Draws two faults of different kinds, each of which some experiment shows beside the other.

    A fault that changes nothing beside the other one is hidden: no experiment can find it.
    """
    first_fault, first_answer = _draw_fault(model, trial_number, generator)
    for _ in range(_MAX_DRAWS):
        second_fault, second_answer = _draw_fault(model, int(generator.integers(1000)), generator)
        faults = first_fault, second_fault
        if first_answer[0] != second_answer[0] and _is_each_fault_visible(model, simulator, faults):
            truth = ModeledTruth(faults, seed=noise_seed)
            return Trial(PAIR, f"{first_answer[0]} + {second_answer[0]}", truth, (first_answer, second_answer))
    return None


def _is_each_fault_visible(model: DiagnosisModel, simulator: Simulator, fault_texts: tuple[str, str]) -> bool:
    """Whether some rate or part under both faults differs from that under each alone by more than the noise."""
    together = _measure_without_noise(model, simulator, fault_texts)
    for fault in fault_texts:
        alone = _measure_without_noise(model, simulator, (fault,))
        sds = {key: model.noise.run_sd if len(key) == 2 else model.noise.part_sd for key in together}
        if not any(abs(value - alone[key]) > _VISIBLE_SDS * sds[key] for key, value in together.items()):
            return False
    return True


def _measure_without_noise(
    model: DiagnosisModel, simulator: Simulator, fault_texts: tuple[str, ...]
) -> dict[tuple[str, ...], float]:
    """Relative log rates by (experiment, phase), and those of parts by (experiment, phase, kind, part)."""
    quiet = NoiseModel(run_sd=0.0, busy_share=0.0, part_sd=0.0)
    values: dict[tuple[str, ...], float] = {}
    for experiment in model.experiments:
        if not experiment.description.yes_or_no_phases:
            run = ModeledTruth(fault_texts).run_experiment(experiment, 0, simulator, quiet).runs[0]
            values |= {(experiment.id, phase): rate for phase, rate in run.rates.items()}
            for key, parts in run.vectors.items():
                values |= {(experiment.id, *key, name): value for name, value in parts.items()}
    return values


def _draw_cause(model: DiagnosisModel, trial_number: int, generator: np.random.Generator, noise_seed: int) -> Trial:
    """Draws a cause outside the model, each equally often, at one of five strengths that changes a rate visibly."""
    causes = [item for item in model.hypotheses if item.cause is not None]
    chosen = causes[trial_number % len(causes)]
    strength = float(generator.choice(_list_visible_strengths(model, chosen)))
    truth = ModeledTruth(cause=chosen.cause, strength=strength, seed=noise_seed)
    return Trial(CAUSED, chosen.id, truth, ((chosen.id, ""),))


def _list_visible_strengths(model: DiagnosisModel, hypothesis: Hypothesis) -> list[float]:
    visible = model.find_visible_strengths(model.hypotheses.index(hypothesis))
    # Stronger ones are visible too, so a share between two strengths is visible where the weaker one is.
    return [share for share in _STRENGTHS if visible[int(share * (len(visible) - 1))]] or [1.0]


def _draw_amount(model: DiagnosisModel, hypothesis: Hypothesis, generator: np.random.Generator) -> str:
    """Draws one of five strengths of the whole simulated range that changes a rate by more than the noise.

    What changes nothing is no fault that anyone complains about.
    """
    texts = hypothesis.strength_grid.amounts
    if len(texts) == 1:
        return texts[0]
    position = float(generator.choice(_list_visible_strengths(model, hypothesis))) * (len(texts) - 1)
    logs = np.log([float(text) for text in texts])
    return f"{np.exp(np.interp(position, range(len(texts)), logs)):.4g}"


def _draw_strange_change(
    model: DiagnosisModel, trial_number: int, generator: np.random.Generator, noise_seed: int
) -> Trial | None:
    """Draws factors on two or three kinds of measurements, which some experiment separates from every hypothesis."""
    phases = list_rate_phases(model.experiments)
    traits = [phase.traits for item in model.experiments for phase in item.description.rate_phases]
    covered = [
        {item.id: model.predictions[item.id][index] for item in model.experiments}
        for index, hypothesis in enumerate(model.hypotheses)
        if hypothesis.kind != UNEXPLAINED
    ]
    for _ in range(_MAX_DRAWS):
        effects = []
        for _ in range(int(generator.integers(2, 4))):
            stated = traits[int(generator.integers(len(traits)))]
            names = generator.choice(sorted(stated), size=int(generator.integers(1, 3)), replace=False)
            factor = float(generator.uniform(0.15, 0.6))
            effects.append(CauseEffect(traits={str(n): stated[str(n)] for n in names}, least=factor, most=factor))
        cause = CauseFile(
            schema=CAUSE_FORMAT, id="strange", title="strange", category="fault", source="drawn", advice="",
            effects=tuple(effects),
        )  # fmt: skip
        changes = np.array(
            [[compute_cause_change(cause, model.find_experiment(name).description, phase)[0] for name, phase in phases]]
        )
        if all(compute_separation(changes, phases, item, model.noise)[0] >= MIN_SEPARATION for item in covered):
            return Trial(UNCOVERED, "traits", ModeledTruth(cause=cause, seed=noise_seed), ((UNEXPLAINED, ""),))
    return None


def _draw_left_out(
    model: DiagnosisModel, trial_number: int, generator: np.random.Generator, noise_seed: int
) -> Trial | None:
    """Draws a fault of the model that is left out of the hypotheses, of those whose rates no other one predicts."""
    phases = list_rate_phases(model.experiments)
    usable = []
    for index, hypothesis in enumerate(model.hypotheses):
        if hypothesis.kind == FAULT:
            rates = {item.id: model.predictions[item.id][index].rates for item in model.experiments}
            strongest = np.array([[rates[name][phase][0][-1] for name, phase in phases]])
            others = [
                {item.id: model.predictions[item.id][other] for item in model.experiments}
                for other, candidate in enumerate(model.hypotheses)
                if candidate.kind != UNEXPLAINED and candidate.fault != hypothesis.fault
            ]
            if all(compute_separation(strongest, phases, item, model.noise)[0] >= MIN_SEPARATION for item in others):
                usable.append(hypothesis)
    if not usable:
        return None
    chosen = usable[trial_number % len(usable)]
    part = str(generator.choice(chosen.members[:4]))
    truth = ModeledTruth((chosen.format_fault_argument(chosen.strength_grid.amounts[-1], part),), seed=noise_seed)
    return Trial(UNCOVERED, f"left out: {chosen.fault}", truth, ((UNEXPLAINED, ""),), chosen.fault)


def _draw_slow_parts(
    model: DiagnosisModel, trial_number: int, generator: np.random.Generator, noise_seed: int
) -> Trial | None:
    """Draws three slow targets on different servers, each with a factor of its own."""
    servers = model.machine.target_servers
    by_server: dict[str, list[str]] = {}
    for target in model.machine.targets:
        by_server.setdefault(servers.get(target, target), []).append(target)
    if len(by_server) < 3:
        return None
    names = [str(name) for name in generator.choice(list(by_server), size=3, replace=False)]
    targets = [str(generator.choice(by_server[name])) for name in names]
    factors = [float(generator.choice((2, 3, 4, 6, 8))) for _ in targets]
    faults = tuple(f"slow-target {target} {factor:g}" for target, factor in zip(targets, factors, strict=True))
    return Trial(UNCOVERED, "three slow targets", ModeledTruth(faults, seed=noise_seed), ((UNEXPLAINED, ""),))
