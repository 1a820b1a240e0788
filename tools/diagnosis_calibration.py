# SPDX-License-Identifier: Apache-2.0
"""Draws machines, faults and seeds, diagnoses each on the model, and writes how often the answer is right and whether
its probabilities are calibrated: docs/concepts/diagnosis-figures.md and docs/concepts/diagnosis.svg.

Usage: .venv/bin/python tools/diagnosis_calibration.py [--cases N] [--healthy N] [--odd N] [--drawn N] [--cache DIR]
[--write]. Without --write the tables are printed. Equal options give equal figures.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

from sonde.diagnose.description import CAUSE_FORMAT, CauseEffect, CauseFile  # noqa: E402
from sonde.diagnose.diagnosis import DiagnosisStopRule, choose_next, is_decided, rank_hypotheses  # noqa: E402
from sonde.diagnose.diagnosis_model import DiagnosisModel, build_model  # noqa: E402
from sonde.diagnose.hypotheses import FAULT, NOTHING, UNEXPLAINED, Hypothesis  # noqa: E402
from sonde.diagnose.likelihood import ExperimentResult  # noqa: E402
from sonde.diagnose.machine_map import DiagnosedMachine, read_machine  # noqa: E402
from sonde.diagnose.modeled_truth import ModeledTruth  # noqa: E402
from sonde.diagnose.noise import NoiseModel  # noqa: E402
from sonde.diagnose.simulation import Simulator  # noqa: E402
from sonde.model.bundled_files import find_system_file  # noqa: E402
from sonde.model.system import read_system  # noqa: E402

PAGES = ROOT / "docs" / "concepts"
# Shipped machines: system, mount, and targets of a smaller machine of the same kind.
SHIPPED = (("edison", "fs3", 8), ("sonexion-1300", "", 0), ("hpcs-demo", "", 8))
# The order of the Edison talk (slides 18 to 33), then what it did not need.
CHECKLIST = (
    *("mpiio-against-posix", "old-against-new-file", "read-after-write", "every-target", "server-cache"),
    *("previous-options", "previous-software", "one-client", "warm-cache", "small-reads", "names"),
    *("shared-against-own-files", "other-nodes", "network-alone", "quiet-time", "previous-server-software"),
)
# Traits of changes that no shipped cause and no fault has together.
ODD = (
    ({"op": "metadata"}, {"cache": "warm"}),
    ({"cache": "full"}, {"op": "metadata"}),
    ({"size": "small", "cache": "direct"}, {"cache": "warm"}),
)


@dataclass(frozen=True)
class Case:
    """One planted truth; `hypothesis` and `part` are the right answer."""

    machine: str
    truth: ModeledTruth
    hypothesis: str
    part: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a diagnosis answered: (probability, whether right) of the first answer, experiments and cost in seconds."""

    case: Case
    first: str
    part: str
    probability: float
    experiments: int
    cost_s: float
    checklist_s: float
    forecasts: tuple[tuple[float, bool], ...] = field(default=())

    @property
    def is_right(self) -> bool:
        return self.first == self.case.hypothesis and (not self.case.part or self.part == self.case.part)


_MACHINE = """
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
_ROUTERS = """
[[routers]]
id = "r[1-{count}]"
protocol = "lnet"
[[routers.interfaces]]
network = "compute"
[[routers.interfaces]]
network = "storage"
"""
_DRIVES = """
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


def draw_system(generator: np.random.Generator, number: int) -> str:
    """Returns a machine with drawn numbers of servers, targets, nodes and routers, and drawn rates."""
    servers, per_server = int(generator.integers(1, 4)) * 2, int(generator.integers(1, 4))
    nodes, routers = int(generator.integers(4, 9)), int(generator.integers(0, 4))
    rate = int(generator.integers(100, 1200))
    last = servers * per_server - 1
    has_drives = generator.random() < 0.5
    drives = _DRIVES.format(last_drive=(last + 1) * 10 - 1, rate=max(20, rate // 8), last=last)
    return _MACHINE.format(
        number=number,
        link=int(rate * per_server * generator.uniform(1.1, 2.5)),
        nodes=nodes,
        compute="compute" if routers else "storage",
        routers=_ROUTERS.format(count=routers) if routers else "",
        servers=servers,
        last=last,
        drives=drives if has_drives else "",
        medium=f'on = "md[000-{last:03d}]"' if has_drives else f'rate = "{rate} MB/s"',
    )


def list_machines(drawn_count: int, folder: Path) -> Iterator[tuple[str, DiagnosedMachine]]:
    """Yields shipped and drawn machines."""
    for system, mount, targets in SHIPPED:
        yield system, read_machine(read_system(find_system_file(system)), mount, targets)
    generator = np.random.default_rng(20131217)
    for number in range(1, drawn_count + 1):
        path = folder / f"drawn-{number}.toml"
        path.write_text(draw_system(generator, number), encoding="utf-8")
        yield f"drawn-{number}", read_machine(read_system(str(path)))


def draw_fault(model: DiagnosisModel, name: str, number: int, generator: np.random.Generator) -> Case:
    """Draws a fault of the model: kind, group, part and strength, each kind equally often."""
    faults = [item for item in model.hypotheses if item.kind == FAULT]
    kinds = list(dict.fromkeys(item.fault for item in faults))
    kind = kinds[number % len(kinds)]
    chosen: Hypothesis = generator.choice(np.array([item for item in faults if item.fault == kind], dtype=object))
    members = chosen.members
    if chosen.group is not None and chosen.group.kind == "node":
        members = members[:4]  # nodes that take part in every experiment
    part = str(generator.choice(members))
    amounts = [float(amount) for amount in chosen.grid.amounts if amount]
    # Strengths between the middle of the simulated range and its end: the weakest are within the noise.
    text = ""
    if amounts:
        low = amounts[len(amounts) // 2] if len(amounts) > 1 else amounts[0]
        text = f"{np.exp(generator.uniform(np.log(max(low, 1e-15)), np.log(max(amounts[-1], 1e-15)))):.4g}"
        text = chosen.grid.amounts[0] if len(amounts) == 1 else text
    fault = chosen.describe_fault(text, part)
    return Case(name, ModeledTruth((fault,), seed=1000 + number), chosen.id, part)


def draw_odd(name: str, number: int) -> Case:
    """A change that no hypothesis predicts."""
    effects = [CauseEffect(traits=traits, least=0.2, most=0.4) for traits in ODD[number % len(ODD)]]
    cause = CauseFile(
        schema=CAUSE_FORMAT, id="odd", title="odd", category="fault", source="drawn", advice="", effects=tuple(effects)
    )
    return Case(name, ModeledTruth(cause=cause, seed=3000 + number), UNEXPLAINED)


def diagnose(model: DiagnosisModel, simulator: Simulator, case: Case) -> Outcome:
    """Runs the adaptive diagnosis and the fixed checklist."""
    results: list[ExperimentResult] = []
    cost = 0.0
    forecasts: list[tuple[float, bool]] = []
    while True:
        posterior = model.compute_posterior(results)
        first = rank_hypotheses(posterior)[0]
        if results:
            right = first.hypothesis.id == case.hypothesis
            forecasts.append((first.probability, right))
        value, _, _ = choose_next(model, posterior, results, DiagnosisStopRule(), case.truth.seed)
        if value is None:
            break
        cost += value.cost_s
        results.append(run(model, simulator, case, value.experiment, len(results)))
    fixed: list[ExperimentResult] = []
    checklist_cost = 0.0
    for name in CHECKLIST:
        checklist_cost += model.compute_cost_s(name)
        fixed.append(run(model, simulator, case, name, len(fixed)))
        if is_decided(rank_hypotheses(model.compute_posterior(fixed))[0], DiagnosisStopRule()):
            break
    return Outcome(
        case, first.hypothesis.id, first.part, first.probability, len(results), cost, checklist_cost, tuple(forecasts)
    )


def run(model: DiagnosisModel, simulator: Simulator, case: Case, name: str, number: int) -> ExperimentResult:
    return case.truth.run_experiment(model.find_experiment(name), number, simulator, model.noise)


def compute_reliability(forecasts: Sequence[tuple[float, bool]]) -> list[tuple[float, float, int]]:
    """Returns mean probability, share that was right and number of forecasts for five ranges of probability."""
    rows = []
    for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = [(value, right) for value, right in forecasts if low <= value < high]
        if inside:
            rows.append(
                (
                    statistics.fmean(value for value, _ in inside),
                    statistics.fmean(right for _, right in inside),
                    len(inside),
                )
            )
    return rows


def format_tables(outcomes: Sequence[Outcome], command: str) -> str:
    """Returns the figures as Markdown."""
    kinds = {
        "faults": [item for item in outcomes if item.case.hypothesis not in (NOTHING, UNEXPLAINED)],
        "healthy machines": [item for item in outcomes if item.case.hypothesis == NOTHING],
        "changes that no hypothesis covers": [item for item in outcomes if item.case.hypothesis == UNEXPLAINED],
    }
    lines = [
        f"<!-- written by {command} -->",
        "",
        "| | cases | right | experiments, median | cost against the checklist |",
    ]
    lines.append("|---|--:|--:|--:|--:|")
    for name, items in kinds.items():
        if items:
            right = statistics.fmean(item.is_right for item in items)
            median = statistics.median(item.experiments for item in items)
            cost = sum(item.cost_s for item in items) / sum(item.checklist_s for item in items)
            lines.append(f"| {name} | {len(items)} | {100 * right:.0f} % | {median:g} | {cost:.2f} |")
    by_fault: dict[str, list[Outcome]] = {}
    for item in kinds["faults"]:
        by_fault.setdefault(item.case.hypothesis.split(":")[0], []).append(item)
    lines += ["", "| fault | cases | fault right | part too | taken for |", "|---|--:|--:|--:|---|"]
    for name, items in sorted(by_fault.items()):
        wrong = [item.first.split(":")[0] for item in items if item.first != item.case.hypothesis]
        confused_with = ", ".join(f"{other} ({wrong.count(other)})" for other in dict.fromkeys(wrong))
        kind_right = sum(item.first == item.case.hypothesis for item in items)
        lines.append(
            f"| {name} | {len(items)} | {kind_right} | {sum(item.is_right for item in items)} | {confused_with} |"
        )
    forecasts = [forecast for item in outcomes for forecast in item.forecasts]
    brier = statistics.fmean((value - right) ** 2 for value, right in forecasts)
    lines += [
        "",
        f"Brier score of the first hypothesis after each experiment: {brier:.3f} ({len(forecasts)} forecasts).",
        "",
    ]
    lines += ["| stated probability | right | forecasts |", "|--:|--:|--:|"]
    lines += [f"| {100 * p:.0f} % | {100 * r:.0f} % | {n} |" for p, r, n in compute_reliability(forecasts)]
    return "\n".join(lines) + "\n"


def draw_diagram(rows: Sequence[tuple[float, float, int]]) -> str:
    """Returns the reliability diagram as SVG."""
    size, margin = 300, 45

    def locate_point(stated: float, right: float) -> tuple[float, float]:
        return margin + size * stated, margin + size * (1 - right)

    points = [locate_point(stated, right) for stated, right, _ in rows]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#0072b2"/>' for x, y in points)
    full, end = size + 2 * margin, margin + size
    middle = margin + size / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {full}" font-family="sans-serif" font-size="12">'
        f'<rect width="{full}" height="{full}" fill="#fff"/>'
        f'<rect x="{margin}" y="{margin}" width="{size}" height="{size}" fill="none" stroke="#888"/>'
        f'<line x1="{margin}" y1="{end}" x2="{end}" y2="{margin}" stroke="#888" stroke-dasharray="4"/>'
        f'<polyline points="{path}" fill="none" stroke="#0072b2"/>{dots}'
        f'<text x="{middle}" y="{full - 12}" text-anchor="middle">stated probability, 0 to 1</text>'
        f'<text x="15" y="{middle}" text-anchor="middle" transform="rotate(-90 15 {middle})">'
        "share that was right</text>"
        "</svg>\n"
    )


def evaluate(options: argparse.Namespace, folder: Path) -> list[Outcome]:
    """Diagnoses all cases, machine by machine."""
    outcomes: list[Outcome] = []
    machines = list(list_machines(options.drawn, folder))
    for name, machine in machines:
        simulator = Simulator(machine, options.cache)
        model = build_model(machine, simulator, NoiseModel())
        generator = np.random.default_rng([7, *name.encode()])
        cases = [draw_fault(model, name, number, generator) for number in range(options.cases)]
        cases += [Case(name, ModeledTruth(seed=2000 + number), NOTHING) for number in range(options.healthy)]
        cases += [draw_odd(name, number) for number in range(options.odd)]
        for case in cases:
            outcome = diagnose(model, simulator, case)
            outcomes.append(outcome)
            summary = f"{outcome.first} {outcome.part} {outcome.probability:.2f}"
            planted = case.truth.faults or case.hypothesis
            print(f"{name}: {planted} -> {summary}, {outcome.experiments} experiments", file=sys.stderr, flush=True)
    return outcomes


def main() -> int:
    """Prints or writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=40, help="faults on each machine")
    parser.add_argument("--healthy", type=int, default=10, help="healthy runs of each machine")
    parser.add_argument("--odd", type=int, default=6, help="changes of each machine that no hypothesis covers")
    parser.add_argument("--drawn", type=int, default=4, help="machines drawn at random")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "diagnosis", help="cache of simulations")
    parser.add_argument("--write", action="store_true", help="write the page's figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sonde-diagnosis-") as name:
        outcomes = evaluate(options, Path(name))
    command = (
        f"tools/diagnosis_calibration.py --cases {options.cases} --healthy {options.healthy} --odd {options.odd}"
        f" --drawn {options.drawn} --write"
    )
    tables = format_tables(outcomes, command)
    if not options.write:
        print(tables)
        return 0
    (PAGES / "diagnosis-figures.md").write_text(tables, encoding="utf-8")
    forecasts = [forecast for item in outcomes for forecast in item.forecasts]
    (PAGES / "diagnosis.svg").write_text(draw_diagram(compute_reliability(forecasts)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
