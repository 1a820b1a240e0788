# SPDX-License-Identifier: Apache-2.0
"""The program that changes the sources: what it changes, what it leaves, and what is said to mean the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from mutation import cpp_changes, python_changes, results  # noqa: E402
from mutation.change import BROKEN, EQUIVALENT, KILLED, SURVIVED, TIMEOUT, SourceChange  # noqa: E402
from mutation.lab_trial import ModuleBaseline  # noqa: E402
from mutation.modules import MODULES  # noqa: E402

PYTHON = '''"""A docstring with 1 < 2."""
UNITS = {"min": Decimal(60)}


def near(a: int | None, b: int = 3) -> bool:
    """Whether."""
    if a is None or not b:
        return False
    log("a sentence with spaces")
    return a < b
'''
CPP = """#include <array>
static_assert(sizeof(int) < 8);
/// Whether 1 < 2.
bool near(int a, int b) {
    if (a == 3 && !b) {
        note("1 < 2", a);
    }
    return sized<4>(a) < static_cast<std::size_t>(b);
}
"""


def lines(changes: list[SourceChange]) -> set[str]:
    return {change.after for change in changes}


def test_python_mutants_change_behavior_only() -> None:
    changes = python_changes.list_python_changes("x.py", PYTHON)
    assert {
        'UNITS = {"min": Decimal(61)}',
        'UNITS = {"min": Decimal(59)}',
        "UNITS = {'XXmin': Decimal(60)}",
        "def near(a: int | None, b: int = 4) -> bool:",
        "if a is not None or not b:",
        "if a is None and not b:",
        "if a is None or b:",
        "if not (a is None or not b):",
        "return True",
        "pass",
        "return a <= b",
    } <= lines(changes)
    assert not any("docstring" in change.before or '"""' in change.before for change in changes)
    for change in changes:
        ast.parse(change.apply_to(PYTHON))


def test_code_of_other_architectures_is_not_mutated(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """bool near() {
#if defined(__x86_64__)
    return one();
#elif defined(__aarch64__)
    return two();
#if SOMETHING
    return three();
#endif
#else
    return four();
#endif
    return five();
}
"""
    for machine, tried in (("x86_64", {3, 12}), ("aarch64", {5, 7, 12}), ("riscv64", {10, 12})):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert {change.line for change in cpp_changes.list_cpp_changes("x.cpp", source)} == tried


def test_comparison_for_a_minimum_is_not_mutated() -> None:
    source = "    least = a.ns < least ? a.ns : least;\n    from = a < b ? b : c;\n    to = a[i] > b ? b : a[i];\n"
    assert {
        change.line for change in cpp_changes.list_cpp_changes("x.cpp", source) if change.operator == "operator"
    } == {2}


def test_cpp_mutants_change_behavior_only() -> None:
    changes = cpp_changes.list_cpp_changes("x.cpp", CPP)
    assert {
        "if (a != 3 && !b) {",
        "if (a == 4 && !b) {",
        "if (a == 3 || !b) {",
        "if (a == 3 && b) {",
        "if (!(a == 3 && !b)) {",
        "return true;",
        "return sized<4>(a) <= static_cast<std::size_t>(b);",
    } <= lines(changes)
    assert not any(word in change.before for change in changes for word in ("static_assert", "Whether", "#include"))
    assert ";" in lines(changes), "a call may be left out"
    assert not any('"1 <= 2"' in change.after for change in changes)


def test_mutant_is_identified_by_text_not_by_line() -> None:
    changes = python_changes.list_python_changes("x.py", PYTHON)
    other = python_changes.list_python_changes("x.py", "\n\n" + PYTHON)
    assert [change.key for change in changes] == [change.key for change in other]
    assert [change.line + 2 for change in changes] == [change.line for change in other]


def test_mutation_score_excludes_equivalent_mutants() -> None:
    change = python_changes.list_python_changes("x.py", PYTHON)[0]
    kinds = [KILLED] * 7 + [TIMEOUT] + [SURVIVED] * 2 + [EQUIVALENT] * 5
    counts, share = results.compute_killed_share([results.ChangeOutcome("m", change, kind, 0.0) for kind in kinds])
    assert (counts[EQUIVALENT], share) == (5, 0.8)
    table = results.format_outcome_table(
        {"m": 99}, [results.ChangeOutcome("m", change, kind, 0.0) for kind in [*kinds, BROKEN]]
    )
    assert table[-1] == "| m | 99 | 15 | 7 | 1 | 2 | 5 | 80 % |"


def test_results_are_read_back(tmp_path: Path) -> None:
    change = python_changes.list_python_changes("x.py", PYTHON)[0]
    file = tmp_path / "results.ndjson"
    outcomes = [results.ChangeOutcome("m", change, kind, 1.5) for kind in (SURVIVED, KILLED)]
    file.write_text("".join(outcome.format_json_line() + "\n" for outcome in outcomes), encoding="utf-8")
    assert results.read_outcomes(file) == {change.key: outcomes[1]}
    assert results.read_outcomes(tmp_path / "none") == {}


def test_each_module_has_sources_and_tests() -> None:
    for module in MODULES:
        assert module.list_source_files(), module.name
        assert module.list_test_files(), module.name


@pytest.mark.parametrize(
    "key", results.read_equivalent_changes(), ids=lambda key: f"{Path(key[0]).name}: {key[2][:40]}"
)
def test_equivalent_change_is_possible_and_has_a_reason(key: results.Key) -> None:
    file, before, after = key
    make = python_changes.list_python_changes if file.endswith(".py") else cpp_changes.list_cpp_changes
    possible_changes = {change.key for change in make(file, (ROOT / file).read_text(encoding="utf-8"))}
    assert (file, before, after) in possible_changes, "the line is another one now: take the entry out, or mend it"
    assert len(results.read_equivalent_changes()[key]) > 20


def test_tests_that_run_the_line_come_first() -> None:
    file = "lab/sonde/stats/multiple.py"
    near, far = "tests/lab/stats/test_multiple.py", "tests/lab/stats/test_dips.py"
    other = "tests/lab/trends/test_bench.py::starts_a_program"
    seconds = {f"{near}::dear": 9.0, f"{near}::cheap": 1.0, f"{far}::dear": 5.0, f"{far}::cheap": 0.5, other: 0.1}
    source = "LEVEL = 5\n\ndef f():\n    return LEVEL\n\ndef g():\n    return 3\n"
    reached = {file: {1: [""], 4: [f"{far}::dear"]}}
    baseline = ModuleBaseline(seconds, reached, good=True, stamp="")
    constant, inside, nobody = (
        next(change for change in python_changes.list_python_changes(file, source) if change.line == line)
        for line in (1, 4, 7)
    )
    assert baseline.list_tests_of_change(inside, source) == [f"{far}::dear", f"{far}::cheap"]
    assert baseline.list_tests_of_change(constant, source) == [
        f"{near}::cheap",
        f"{near}::dear",
        f"{far}::dear",
        f"{far}::cheap",
    ]
    assert baseline.list_tests_of_change(nobody, source) == []


def test_a_second_run_in_the_same_tree_is_refused_and_names_the_first(tmp_path: Path) -> None:
    held = "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import mutants\n"
    held += "with mutants.lock_folder(pathlib.Path(sys.argv[2])):\n    print('held', flush=True); sys.stdin.read()\n"
    command = [sys.executable, "-c", held, str(ROOT / "tools"), str(tmp_path / "place")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        second = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.startswith(f"mutants: process {first.pid} tries changes in {tmp_path}/place already")
        first.kill()
    # Whoever is killed holds nothing.
    third = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (third.returncode, third.stdout) == (0, "held\n")
