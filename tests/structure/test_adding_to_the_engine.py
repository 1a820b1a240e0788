# SPDX-License-Identifier: Apache-2.0
"""What HACKING.md says one must touch to add something to the engine: no more and no less, and it is enough.

A row's example stands in exactly the files that the row names; a treatment and a workload are really added in a copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sonde.model.backends import BACKENDS_WITHOUT_STORAGE

ROOT = Path(__file__).resolve().parents[2]
LISTED = re.compile(r"`((?:engine|schema|docs|tools|lab|tests|simulate|preload|systems|experiments)/[\w./-]+)`")


def row(subject: str) -> str:
    """The second column of the table in HACKING.md for what one wants to add."""
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    matches = re.findall(rf"^\| {re.escape(subject)} \| (.*?) \| .* \|$", text, re.MULTILINE)
    assert len(matches) == 1, f"HACKING.md has {len(matches)} rows for {subject}"
    return str(matches[0])


@dataclass(frozen=True)
class Example:
    """One thing that was added once, by its words, and where it may stand besides the files that the row names."""

    subject: str
    pattern: str
    roots: tuple[str, ...]
    own_files: tuple[str, ...]  # files that were made for it


EXAMPLES = (
    Example("a backend", r"\bnull_backend\b", ("engine",), ("engine/backends/null.cpp",)),
    Example(
        "a stripe layout of a file system",
        r"\bgluster_system\b|\"gluster\"|\bgluster, ",
        ("engine", "schema/plan", "schema/record"),  # system files name Gluster as a kind of file system
        ("engine/layouts/gluster.cpp",),
    ),
    Example("a treatment", r"\bsleep_treatment\b", ("engine",), ("engine/treatments/sleep.cpp",)),
    Example(
        "a workload",
        r"\bFileStream\b",
        ("engine",),
        ("engine/workloads/file_stream.hpp", "engine/workloads/file_stream.cpp"),
    ),
    Example("a dialect", r"\bmdtest_dialect\b", ("engine",), ("engine/dialects/mdtest/session.cpp",)),
    Example("a metadata operation", r"\b(kind_)?open_close\b", ("engine", "schema", "docs/concepts"), ()),
    Example("a member of a record line", r"\bdroop\b", ("schema",), ()),
)


def files_with(pattern_text: str, roots: tuple[str, ...]) -> set[str]:
    """Sources, pages and schemas that hold the words."""
    pattern = re.compile(pattern_text)
    return {
        path.relative_to(ROOT).as_posix()
        for root in roots
        for path in (ROOT / root).rglob("*")
        if path.suffix in (".cpp", ".hpp", ".json", ".md") and pattern.search(path.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.subject for example in EXAMPLES])
def test_example_is_mentioned_only_in_the_files_of_its_row(example: Example) -> None:
    row_paths = {path for path in LISTED.findall(row(example.subject)) if (ROOT / path).is_file()}
    within = {path for path in row_paths if path.startswith(tuple(f"{root}/" for root in example.roots))}
    assert files_with(example.pattern, example.roots) - set(example.own_files) == within


def test_every_file_in_a_hacking_row_exists() -> None:
    text = (ROOT / "HACKING.md").read_text(encoding="utf-8")
    table = text[text.index("## To add something") : text.index("## Commands")]
    missing = [path for path in LISTED.findall(table) if not (ROOT / path).exists()]
    assert missing == []


def test_engine_code_does_not_hard_code_backend_names() -> None:
    """Only its own file, and dialects, in which other tools' words choose one.

    What a plan would touch is found out with the backend that moves nothing.
    """
    names = re.findall(r'\.name = "(\w+)"', "".join(p.read_text() for p in (ROOT / "engine/backends").glob("*.cpp")))
    assert {"posix", "mpiio", "paced"} <= set(names)
    quoted = re.compile(rf'"({"|".join(names)})"')
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "engine").rglob("*.[ch]pp")
        if path.parent.name != "backends" and "dialects" not in path.parts and path.name != "planned_accesses.cpp"
        for line in path.read_text(encoding="utf-8").splitlines()
        if quoted.search(line.split("//")[0])
        # a plan that names none means posix; `paced` and `s3` are also members of plans, `s3` the kind of a store
        if "std::string backend =" not in line and not re.search('"(paced|s3)"', line)
    ]
    assert wrong == []


def test_lab_and_engine_agree_on_backends_without_storage() -> None:
    names = set()
    for path in (ROOT / "engine/backends").glob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        # one backend a file; the name is the first member of its list entry
        if ".stores_data = false" in text:
            names.update(re.findall(r'\.name = "(\w+)"', text))
    assert names == BACKENDS_WITHOUT_STORAGE, "lab/sonde/model/backends.py differs from engine/backends"


@pytest.fixture
def source_copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "engine", tmp_path / "engine")
    return tmp_path


def compiles(root: Path, *files: str) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    # As one file, as the package is compiled: most of the time goes into their common headers.
    (root / "unity.cpp").write_text("".join(f'#include "{root / file}"\n' for file in files), encoding="utf-8")
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Iengine", "unity.cpp"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if "nlohmann/json.hpp: No such file" in done.stderr:
        pytest.skip("nlohmann/json is not installed for the compiler: the build downloaded it")
    assert done.returncode == 0, done.stderr


def insert(path: Path, before: str, text: str) -> None:
    text_before = path.read_text(encoding="utf-8")
    assert text_before.count(before) == 1, f"{path} has {before!r} {text_before.count(before)} times"
    path.write_text(text_before.replace(before, text + before), encoding="utf-8")


def test_a_treatment_is_one_file_and_a_line_in_each_group_of_the_list(source_copy: Path) -> None:
    folder = source_copy / "engine" / "treatments"
    text = (folder / "sleep.cpp").read_text(encoding="utf-8")
    text = text.replace("sleep_treatment", "nap_treatment").replace('.name = "sleep"', '.name = "nap"')
    (folder / "nap.cpp").write_text(text, encoding="utf-8")
    insert(
        folder / "treatments.cpp",
        "extern const TreatmentKind sleep_treatment;",
        "extern const TreatmentKind nap_treatment;\n",
    )
    insert(folder / "treatments.cpp", "&sleep_treatment", "&nap_treatment, ")
    compiles(source_copy, "engine/treatments/nap.cpp", "engine/treatments/treatments.cpp")
    # Nobody else has a list of them: what the parser allows and what is applied both come from this one.
    others = [
        path.relative_to(source_copy).as_posix()
        for path in (source_copy / "engine").rglob("*.[ch]pp")
        if '"drop_page_cache"' in path.read_text(encoding="utf-8")
    ]
    assert set(others) <= {"engine/treatments/page_cache.cpp", "engine/results/tree_findings.cpp"}


def test_new_workload_is_a_class_and_a_line_in_the_factory(source_copy: Path) -> None:
    folder = source_copy / "engine" / "workloads"
    for ending in ("hpp", "cpp"):
        text = (folder / f"file_stream.{ending}").read_text(encoding="utf-8")
        text = text.replace("FileStream", "NapStream").replace("file_stream", "nap_stream")
        (folder / f"nap_stream.{ending}").write_text(text, encoding="utf-8")
    data = folder / "stream_factory.cpp"
    insert(data, '#include "workloads/file_stream.hpp"', '#include "workloads/nap_stream.hpp"\n')
    insert(
        data,
        "    if (plan::acts_on_files(job.phase->op)) {",
        "    if (job.phase->op == plan::Op::reread) {\n"
        "        return std::make_unique<NapStream<Time>>(job, team, clock, meter, job.backend->make_channel(setup));\n"
        "    }\n",
    )
    compiles(source_copy, "engine/workloads/nap_stream.cpp", "engine/workloads/stream_factory.cpp")


PLAN_PROGRAM = """
#include "plan/parse.hpp"
#include "plan/resolved.hpp"
#include "plan/schema.hpp"
#include <iostream>

int main() {
    const sonde::plan::Capabilities capabilities{{{"posix", {}}}, {}};
    std::cout << sonde::plan::build_schema(capabilities).dump() << "\\n";
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::cout << sonde::plan::resolve_plan(sonde::plan::parse_plan(line, capabilities)).dump() << "\\n";
        } catch (const sonde::plan::PlanError& error) {
            std::cout << error.what() << "\\n";
        }
    }
}
"""
LAB_PROGRAM = """
import json, sys
from sonde.model.plan import Plan
from sonde.model.plan_hash import compute_plan_hash

for line in sys.stdin:
    plan = json.loads(line)
    resolved = Plan.from_document(plan, "test").resolve()
    print(resolved["phases"][0]["io"].get("naps"), compute_plan_hash(plan, 1, 1, 1))
"""


def run_lab(lab: Path, plans: list[str]) -> list[list[str]]:
    """For each plan the value of io.naps and the plan's hash."""
    environment = {**os.environ, "PYTHONPATH": str(lab), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LAB_PROGRAM],
        input="\n".join(plans),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.nightly  # 30 s of compiling
def test_plan_member_is_a_field_and_an_entry(source_copy: Path) -> None:
    """Reader, resolved form, schema, and defaults and hash in the lab follow from the entry."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    folder = source_copy / "engine" / "plan"
    insert(folder / "plan.hpp", "    int queue_depth = 1;", "    int naps = 3;\n")
    insert(
        folder / "declare_data.cpp",
        '    visitor.member("queue_depth"',
        '    visitor.member("naps", io.naps, IntegerKind(0, 9), "how often to sleep");\n',
    )
    sources = [f'#include "{path}"\n' for path in sorted(folder.glob("*.cpp"))]
    (source_copy / "program.cpp").write_text("".join(sources) + PLAN_PROGRAM, encoding="utf-8")
    command = [compiler, "-std=c++20", "-O0", "-Iengine", "program.cpp", "-o", "program"]
    built = subprocess.run(command, cwd=source_copy, capture_output=True, text=True, check=False)
    if "nlohmann/json.hpp: No such file" in built.stderr:
        pytest.skip("nlohmann/json is not installed for the compiler: the build downloaded it")
    assert built.returncode == 0, built.stderr

    def plan(**io: object) -> str:
        document = {"schema": "sonde-plan/2", "id": "x", "target": {"path": "/tmp"}}
        return json.dumps(document | {"phases": [{"id": "w", "op": "write", "io": io}]})

    plans = [plan(), plan(naps=7), plan(naps=10)]
    done = subprocess.run([source_copy / "program"], input="\n".join(plans), capture_output=True, text=True, check=True)
    schema, absent, present, refused = done.stdout.splitlines()
    assert json.loads(absent)["phases"][0]["io"]["naps"] == 3
    assert json.loads(present)["phases"][0]["io"]["naps"] == 7
    assert refused == "plan: phases[0].io.naps is 10, but must be a whole number from 0 to 9"
    shutil.copytree(ROOT / "lab", source_copy / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "schema", source_copy / "schema")
    (source_copy / "schema" / "plan" / "plan.schema.json").write_text(schema, encoding="utf-8")
    (default, hash_of_default), (set_value, hash_of_set) = run_lab(source_copy / "lab", plans[:2])
    ((_, hash_before),) = run_lab(ROOT / "lab", plans[:1])
    assert (default, set_value) == ("3", "7")
    assert hash_before == hash_of_default != hash_of_set


def test_key_of_a_plan_member_is_in_its_entry_only() -> None:
    files = [path.name for path in (ROOT / "engine/plan").glob("*.[ch]pp") if '"queue_depth"' in path.read_text()]
    assert files == ["declare_data.cpp"]
    touched = row("a plan member")
    assert "`engine/plan/plan.hpp`" in touched
    assert "`engine/plan/declare_*.cpp`" in touched


NAP_DIALECT = """// SPDX-License-Identifier: Apache-2.0
#include "dialects/dialect.hpp"

namespace sonde::dialects {
namespace {

class NapSession final : public Session {
    void begin(const SessionSetup&) override {}
    std::optional<std::string> next_plan() override { return std::nullopt; }
    void read_record_line(std::string_view, const nlohmann::ordered_json&) override {}
    void end_plan(int) override {}
    int finish_session(int code) override { return code; }
};

}  // namespace

extern const Dialect nap_dialect;
const Dialect nap_dialect{
    .name = "nap",
    .summary = "a tool that sleeps",
    .make_session = [](const std::vector<std::string>&) -> std::unique_ptr<Session> {
        return std::make_unique<NapSession>();
    },
};

}  // namespace sonde::dialects
"""


def test_a_dialect_is_a_folder_and_a_line_in_each_group_of_the_list(source_copy: Path) -> None:
    folder = source_copy / "engine" / "dialects"
    (folder / "nap").mkdir()
    (folder / "nap" / "session.cpp").write_text(NAP_DIALECT, encoding="utf-8")
    insert(folder / "list.cpp", "extern const Dialect mdtest_dialect;", "extern const Dialect nap_dialect;\n")
    insert(folder / "list.cpp", "&mdtest_dialect", "&nap_dialect, ")
    compiles(source_copy, "engine/dialects/nap/session.cpp", "engine/dialects/list.cpp")
    # Who starts a dialect, and who says which there are, asks the list.
    quoted = re.compile('"(?:mdtest|md-workbench)"')
    knowing = [
        path.relative_to(source_copy).as_posix()
        for path in (source_copy / "engine").rglob("*.[ch]pp")
        if quoted.search(path.read_text(encoding="utf-8")) and "dialects" not in path.parts
    ]
    assert knowing == []


def test_each_dialect_has_its_page() -> None:
    names = [
        re.search(r'const Dialect \w+\{\s*\.name = "([\w-]+)"', path.read_text(encoding="utf-8"))
        for path in (ROOT / "engine/dialects").glob("*/session.cpp")
    ]
    assert len(names) >= 3
    for name in names:
        assert name is not None
        assert (ROOT / "docs" / "reference" / f"{name[1]}.md").is_file()


def test_an_operation_that_the_table_lacks_does_not_compile(source_copy: Path) -> None:
    """The compiler requires a row for each operation, so every user of the table knows the operation."""
    header = source_copy / "engine" / "plan" / "operations.hpp"
    insert(header, "    readdir,\n", "    nap,\n")
    command = ["c++", "-std=c++20", "-fsyntax-only", "-Iengine", "engine/plan/operations.cpp"]
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler here")
    refused = subprocess.run(command, cwd=source_copy, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "a row for each operation" in refused.stderr
    insert(
        header,
        '    OperationInfo{Op::readdir, "readdir"',
        '    OperationInfo{Op::nap, "nap", OperationInfo::Subject::item, OperationInfo::OperationEffect::inspects},\n',
    )
    compiles(source_copy, "engine/plan/operations.cpp")
