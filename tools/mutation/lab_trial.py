# SPDX-License-Identifier: Apache-2.0
"""Tests of the lab, run against one change of it: in a forked process with the libraries already there.

Nothing is written into the tree: the process that tests takes the changed text when it imports the module. A program
that a test starts does not see the change, so a change that only such a test would notice counts as survived.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mutation.change import KILLED, SURVIVED, SourceChange
from mutation.modules import ROOT, Module

LAB = ROOT / "lab"
# What tests of the lab import besides the lab; the server has them before it forks.
_PRELOADED_MODULES = (
    *("click", "coverage", "duckdb", "hypothesis", "jinja2", "jsonschema", "numpy", "pyarrow.parquet", "rich", "yaml"),
    *("hypothesis.extra.numpy", "rich.console", "rich.table"),
)


@dataclass(frozen=True)
class ModuleBaseline:
    """Results of the tests with unchanged sources: their durations and the lines that each reaches."""

    seconds: Mapping[str, float]
    """Each test and how long it took."""
    reached: Mapping[str, Mapping[int, Sequence[str]]]
    """File -> line -> the tests that ran it; "" stands for what runs when the lab is imported."""
    good: bool
    stamp: str

    def list_tests_of_change(self, change: SourceChange, source_text: str) -> list[str]:
        """The tests that can notice a change: first those that run its lines, then those that share a file with them. A
        shared fixture is counted for the first test that uses it, so the other tests of that file are included. Any
        test may detect a change of code that runs at import: tests whose file imports from there come first."""
        lines = self.reached.get(change.file, {})
        last = change.line + change.before.count("\n") + source_text[change.begin : change.end].count("\n")
        first = {test for line in range(change.line, last + 1) for test in lines.get(line, ())}
        if "" in first or (not first and not _is_in_function(source_text, change)):
            first = {test for tests in lines.values() for test in tests if test}
            # a file whose tests run no line of the module looks at other programs, which do not see the change
            files = {
                test.split("::")[0] for lines in self.reached.values() for tests in lines.values() for test in tests
            }
            near = _select_test_files_importing(change.file, {test.split("::")[0] for test in self.seconds})
            able = [test for test in self.seconds if test.split("::")[0] in files | near]
            order = {test: (test.split("::")[0] not in near, test not in first) for test in able}
            return sorted(able, key=lambda test: (*order[test], self.get_seconds_of_test(test)))
        files = {test.split("::")[0] for test in first}
        others = {test for test in self.seconds if test.split("::")[0] in files} - first
        return [*sorted(first, key=self.get_seconds_of_test), *sorted(others, key=self.get_seconds_of_test)]

    def get_seconds_of_test(self, test_id: str) -> float:
        return self.seconds.get(test_id, 0.0)


def _select_test_files_importing(source_file: str, test_files: Iterable[str]) -> set[str]:
    """Those of the files of tests that import something from a source of the lab."""
    module = re.escape(".".join(Path(source_file).relative_to("lab").with_suffix("").parts))
    imported = re.compile(rf"^(?:from|import) {module}\b", re.MULTILINE)
    return {file for file in test_files if imported.search((ROOT / file).read_text(encoding="utf-8"))}


def _is_in_function(source_text: str, change: SourceChange) -> bool:
    inside = [
        node
        for node in ast.walk(ast.parse(source_text))
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= change.line <= (node.end_lineno or 0)
    ]
    return bool(inside)


def hash_lab_and_tests(module: Module) -> str:
    """Hash of the inputs of a baseline: all files of the lab and of its tests."""
    files = sorted([*LAB.rglob("*.py"), *(ROOT / "tests" / "lab").rglob("*.py"), *module.list_test_files()])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def preload_modules() -> None:
    """Imports what no change touches. Call before forking."""
    for name in _PRELOADED_MODULES:
        importlib.import_module(name)


def _run_pytest(pytest_arguments: Sequence[str], plugins: Sequence[object], output_file: Path) -> int:
    """Runs pytest in this process, which exists only for that; its output goes to a file."""
    where = os.open(output_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(where, 1)
    os.dup2(where, 2)
    import hypothesis.configuration

    hypothesis.configuration.set_hypothesis_home_dir(output_file.with_suffix(".hypothesis"))
    sys.path.insert(0, str(LAB))
    os.chdir(ROOT)
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:randomly",
        "--hypothesis-seed=0",
        "--tb=short",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    return int(pytest.main([*options, *pytest_arguments], plugins=[*plugins]))


class _TestTimer:
    """Says to the coverage which test runs, and to us how long it took."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterable[None]:
        self.coverage.switch_context(item.nodeid)
        began = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - began


def measure_baseline(module: Module, baseline_file: Path) -> str:
    """Runs all tests of a module with its sources as they are; writes what the baseline holds. In a forked process."""
    from coverage import Coverage

    coverage = Coverage(data_file=None, include=[f"{ROOT / module.sources}/*"], messages=False)
    coverage.start()
    plugin = _TestTimer(coverage)
    arguments = [
        *(str(file.relative_to(ROOT)) for file in module.list_test_files()),
        "-m",
        "not serial and not browser",
    ]
    code = _run_pytest(arguments, [plugin], baseline_file.with_suffix(".log"))
    coverage.stop()
    data = coverage.get_data()
    reached: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        lines = data.contexts_by_lineno(file)
        name = Path(file).relative_to(ROOT).as_posix()
        reached[name] = {line: list(tests) for line, tests in lines.items()}
    text = json.dumps(
        {"seconds": plugin.seconds, "reached": reached, "good": code == 0, "stamp": hash_lab_and_tests(module)}
    )
    baseline_file.write_text(text, encoding="utf-8")
    return SURVIVED


def read_baseline(baseline_file: Path) -> ModuleBaseline:
    document = json.loads(baseline_file.read_text(encoding="utf-8"))
    reached = {name: {int(line): tests for line, tests in lines.items()} for name, lines in document["reached"].items()}
    return ModuleBaseline(document["seconds"], reached, document["good"], document.get("stamp", ""))


class _ChangedModuleImporter(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):  # type: ignore[misc]
    """Imports one file with other text than it has."""

    def __init__(self, change: SourceChange) -> None:
        parts = Path(change.file).relative_to("lab").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        super().__init__(name, str(ROOT / change.file))
        self.text = change.apply_to((ROOT / change.file).read_text(encoding="utf-8"))

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname: str) -> Any:
        return compile(self.text, self.path, "exec", dont_inherit=True)


class _TestOrder:
    """Keeps the tests that were asked for, in that order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: index for index, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])


def try_lab_change(change: SourceChange, test_ids: Sequence[str], output_file: Path) -> str:
    """Outcome of the tests for a change. In a forked process."""
    sys.meta_path.insert(0, _ChangedModuleImporter(change))
    files = dict.fromkeys(test.split("::")[0] for test in test_ids)
    code = _run_pytest(["-x", *files], [_TestOrder(test_ids)], output_file)
    return SURVIVED if code == 0 else KILLED
