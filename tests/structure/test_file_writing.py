# SPDX-License-Identifier: Apache-2.0
"""Only `sonde.model.confined_files` creates, replaces and removes files, because directories may be shared."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from syntax_trees import parse_python

LAB = Path(__file__).resolve().parents[2] / "lab" / "sonde"
MODULE = "model/confined_files.py"
# (file, call) -> why it may do so by itself.
ALLOWED = {
    ("advise/page_costs.py", "os.open"): "a file that never has a name (O_TMPFILE)",
    ("advise/reader_process.py", "os.open"): "/dev/null, for what a C library writes to standard error",
    ("cli/main.py", "os.open"): "/dev/null, for the rest of the output when its reader has gone",
    ("cli/main.py", "tempfile.NamedTemporaryFile"): "makes a new file under a random name",
    ("design/layout/live/superblocks.py", "os.open"): "opens a directory to read",
    ("diagnose/scratch_folders.py", "os.open"): "opens an own directory below TMPDIR to lock it",
    ("diagnose/scratch_folders.py", "shutil.rmtree"): "an own directory below TMPDIR that this process has locked",
    (
        "experiments/environment_setup.py",
        "_DROP_CACHES_FILE.write_text",
    ): "a file of the kernel, /proc/sys/vm/drop_caches",
    ("tune/system_settings.py", "Path(setting_key).write_text"): "a file of the kernel below /proc or /sys",
    ("store/packing.py", "zip_file.open"): "a member of a pack that is open already",
    ("store/shards.py", "os.open"): "opens a directory to read",
}
PATH_METHODS = {"unlink", "touch", "symlink_to", "hardlink_to", "extract", "extractall"}
FUNCTIONS = {
    *("os.open", "os.rename", "os.replace", "os.unlink", "os.remove", "os.link", "os.symlink", "os.makedirs"),
    *("shutil.rmtree", "shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move"),
    *("tempfile.NamedTemporaryFile", "tempfile.mkstemp", "tempfile.mktemp"),
}


def forbidden_calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, call) of each call that changes files by their path."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        call = ast.unparse(node.func)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else call
        arguments = (*node.args, *(keyword.value for keyword in node.keywords))
        modes = [ast.literal_eval(argument) for argument in arguments if is_mode(argument)]
        # Methods of ConfinedDirectory have the same names, and take the name of the file first.
        by_path = len(node.args) == 1 and isinstance(node.func, ast.Attribute)
        if (
            call in FUNCTIONS
            or (isinstance(node.func, ast.Attribute) and name in PATH_METHODS)
            or (name == "open" and modes)
            or (by_path and name in ("write_text", "write_bytes", "rename"))
            or (by_path and name == "replace" and not node.keywords)
        ):
            yield node.lineno, call


def is_mode(node: ast.expr) -> bool:
    """Whether it is the mode of an open() that writes."""
    mode = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return len(mode) <= 3 and (mode[:1] in ("w", "a", "x") or (mode[:1] == "r" and "+" in mode))


def test_files_are_written_by_one_module() -> None:
    wrong, used = [], set()
    for path in sorted(LAB.rglob("*.py")):
        name = path.relative_to(LAB).as_posix()
        if name == MODULE:
            continue
        for line, call in forbidden_calls(parse_python(path)):
            if (name, call) in ALLOWED:
                used.add((name, call))
            else:
                wrong.append(f"{name}:{line}: {call}")
    assert wrong == []
    assert used == set(ALLOWED), "an exception that nothing needs any more"


def test_each_forbidden_call_is_detected() -> None:
    ways = """
open(path, "w")
path.open("wb")
path.open(mode="a")
path.write_text(text, encoding="utf-8")
path.write_bytes(content)
path.unlink(missing_ok=True)
path.rename(other)
path.replace(other)
shutil.rmtree(folder)
os.replace(a, b)
tape.extractall(folder)
packed.extract(member)
"""
    assert [line for line, _ in forbidden_calls(ast.parse(ways))] == list(range(2, 14))
    harmless = 'path.open("rb")\nopen(path)\ntext.replace("a", "b")\nreplace(run, a=1)\ndirectory.write_text("a", text)'
    assert list(forbidden_calls(ast.parse(harmless))) == []
