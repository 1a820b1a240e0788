# SPDX-License-Identifier: Apache-2.0
"""One module writes shell, `sonde.model.shell`, and only constants of the source code reach a script unquoted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from syntax_trees import list_nodes, parse_python

LAB = Path(__file__).resolve().parents[2] / "lab" / "sonde"
ENCODER = LAB / "model" / "shell.py"
# Methods of ShellScript whose text is part of the script as it is.
CONSTANT_METHODS = {"add_literal_lines"}
CONSTANT_KEYWORDS = {("add_command", "failure_command")}
# The only module that may take shell from the user, who writes it as such into a sites file.
USER_SHELL = {"jobs/batch_script.py"}


@cache
def modules() -> list[tuple[str, ast.Module]]:
    paths = [path for path in sorted(LAB.rglob("*.py")) if path != ENCODER]
    return [(path.relative_to(LAB).as_posix(), parse_python(path)) for path in paths]


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the last name of what is called."""
    for node in list_nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def imports(tree: ast.Module) -> set[str | None]:
    return {node.module for node in list_nodes(tree) if isinstance(node, ast.ImportFrom)}


def constants(tree: ast.Module) -> set[str]:
    """Names that the module binds once, at its top, to a constant text."""
    bound = [
        target.id
        for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets if isinstance(target, ast.Name)
    ]  # fmt: skip
    stored = [node.id for node in list_nodes(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {name for name in bound if stored.count(name) == 1}


def test_scripts_take_only_constants_as_text() -> None:
    wrong, checked = [], 0
    for file, tree in modules():
        constant_names = constants(tree)
        for name, call in calls(tree):
            texts = [*call.args] if name in CONSTANT_METHODS else []
            texts += [item.value for item in call.keywords if (name, item.arg) in CONSTANT_KEYWORDS]
            for text in texts:
                checked += 1
                if not isinstance(text, ast.Constant) and not (
                    isinstance(text, ast.Name) and text.id in constant_names
                ):
                    wrong.append(f"{file}:{text.lineno}: {ast.unparse(text)} is not a constant")
    assert wrong == []
    assert checked >= 8


def test_only_the_encoder_quotes_shell_arguments() -> None:
    wrong = []
    for file, tree in modules():
        if "sonde.model.shell" in imports(tree):
            wrong += [
                f"{file}:{call.lineno}: {name}()"
                for name, call in calls(tree)
                if name in ("ShellWord", "_UnquotedText")
            ]
        wrong += [
            f"{file}:{node.lineno}: shlex.{node.attr}"
            for node in list_nodes(tree)
            if isinstance(node, ast.Attribute) and node.attr in ("quote", "join")
            and isinstance(node.value, ast.Name) and node.value.id == "shlex"
        ]  # fmt: skip
        if file not in USER_SHELL:
            wrong += [
                f"{file}:{call.lineno}: {name}()" for name, call in calls(tree) if name == "make_unquoted_user_word"
            ]
    assert wrong == []


def test_no_other_module_writes_a_script() -> None:
    violations = [
        f"{file}:{node.lineno}"
        for file, tree in modules()
        for node in list_nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("#!/")
    ]
    assert violations == []


def test_python_is_started_without_the_current_directory() -> None:
    """`python -m` searches the current directory first, where another user may have put a module of that name."""
    wrong, checked = [], 0
    for file, tree in modules():
        for node in list_nodes(tree):
            if isinstance(node, ast.List) and any(ast.unparse(item) == "sys.executable" for item in node.elts):
                checked += 1
                after = [ast.unparse(item) for item in node.elts]
                if after[after.index("sys.executable") + 1 : after.index("sys.executable") + 2] != ["'-P'"]:
                    wrong.append(f"{file}:{node.lineno}: {ast.unparse(node)}")
    assert wrong == []
    assert checked >= 3
