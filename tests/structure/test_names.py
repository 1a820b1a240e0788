# SPDX-License-Identifier: Apache-2.0
"""Names that a stranger can guess: one meaning each, nouns instead of pronouns, short test names, short functions."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP_PARTS = ("engine", "preload", "simulate")
LONGEST_TEST_NAME = 60
LONGEST_FUNCTION = 60  # lines

# Names that say nothing about what they hold.
EMPTY_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
        one found words told said kept made known at place way what whole own given laid asked taken left rest those
        named listed shown drawn gone seen beside around apart thing things much many mine theirs former latter
        """,
    )
)


@cache
def parse_python(path: Path) -> ast.Module:
    """The syntax tree of a file, parsed once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


def python_files(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Every Python file below the folders with its syntax tree."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), parse_python(path)


def cpp_files(*folders: str) -> Iterator[tuple[str, str]]:
    """Every C++ file below the folders with its text."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


@cache
def without_comments_and_strings(text: str) -> str:
    """C++ text in which comments and string literals are blank; line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.DOTALL)


def empty_python_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter and function whose name is in EMPTY_NAMES."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in EMPTY_NAMES:
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.strip("_") in EMPTY_NAMES:
            yield node.lineno, node.name


# A declaration: a type that ends in a word, `>`, `&` or `*`, then the name, then what can follow a declared name.
_DECLARED = re.compile(
    rf"(?:[\w>]\s*[&*]+\s*|[\w>]\s+)(?P<name>{'|'.join(sorted(EMPTY_NAMES))})\s*(?:=(?!=)|;|,|\)|\{{|:(?!:)|\[)"
)
_NOT_A_TYPE = re.compile(r"\b(return|case|else|delete|throw|goto|new|co_return|and|or|not)\s*$")


def empty_cpp_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each C++ declaration whose name is in EMPTY_NAMES."""
    plain = without_comments_and_strings(text)
    for match in _DECLARED.finditer(plain):
        if not _NOT_A_TYPE.search(plain[max(0, match.start() - 12) : match.start("name")]):
            yield plain.count("\n", 0, match.start("name")) + 1, match["name"]


def python_test_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name, without `test_`, of each test function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_")


def python_functions(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """Line, name and length in lines, without decorators and docstring, of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node, clean=False) is not None
            docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            yield node.lineno, node.name, (node.end_lineno or 0) - node.lineno + 1 - docstring


def cpp_functions(text: str) -> Iterator[tuple[int, str, int]]:
    """Line, name and length in lines of each C++ function. Relies on the layout of tools/format: a function ends with a
    closing brace in the column in which its declaration begins."""
    lines = without_comments_and_strings(text).split("\n")
    opening = re.compile(
        r"^( *)(?!(?:if|for|while|switch|else|do|namespace|return|catch|try|struct|class|enum|co_\w+)\b)\w"
    )
    declaration = re.compile(r"(?:[\w>&*\]] [*&]*|\w::|^ *)(?P<name>~?[A-Za-z_]\w*|operator\W+)\(")
    for number, line in enumerate(lines):
        begin = opening.match(line)
        previous = lines[number - 1].rstrip() if number else ""
        if not begin or not re.search(r"(^|[;{}:>\]])$|^#", previous):
            continue
        end = number
        while end < len(lines) - 1 and end - number < 12 and not re.search(r"[{};]\s*$", lines[end]):
            end += 1
        head = " ".join(lines[number : end + 1])
        name = declaration.search(head)
        if not name or not head.rstrip().endswith("{") or re.search(r" = |\? |\[[&=\w]*\]\s*[({]| && |\|\|", head):
            continue
        close = next((row for row in range(end + 1, len(lines)) if re.match(rf"{begin[1]}\}}", lines[row])), None)
        if close is not None:
            yield number + 1, name["name"], close - number + 1


def test_class_names_are_unique_in_the_lab() -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in python_files("lab"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                files[node.name.lstrip("_")].append(path)
    assert len(files) > 300
    shared = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert shared == {}


def test_cpp_type_names_have_one_meaning() -> None:
    definition = re.compile(r"(?m)^\s*(?:struct|class|enum class|enum)\s+(?:alignas\([^)]*\)\s+)?([A-Z]\w*)[^;(){]*\{")
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in cpp_files(*CPP_PARTS):
        for name in definition.findall(without_comments_and_strings(text)):
            files[name].append(path)
    assert len(files) > 300
    shared = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert shared == {}


def test_names_say_what_they_hold() -> None:
    python = (
        f"{path}:{line} {name}"
        for path, tree in python_files("lab", "tests", "tools", "bench")
        for line, name in empty_python_names(tree)
    )
    cpp = (
        f"{path}:{line} {name}"
        for path, text in cpp_files(*CPP_PARTS, "tests", "bench")
        for line, name in empty_cpp_names(text)
    )
    assert [*python, *cpp] == []


def test_file_names_say_what_files_hold() -> None:
    folders = ("lab", *CPP_PARTS, "tests", "tools", "bench")
    paths = [
        path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".cpp", ".hpp")
    ]
    assert len(paths) > 1000
    assert [str(path.relative_to(ROOT)) for path in paths if path.stem in EMPTY_NAMES] == []


def test_test_names_are_short() -> None:
    names = [(path, line, name) for path, tree in python_files("tests") for line, name in python_test_names(tree)]
    names += [
        (path, text.count("\n", 0, match.start()) + 1, match[1])
        for path, text in cpp_files("tests")
        for match in re.finditer(r'TEST_CASE(?:_TEMPLATE)?\(\s*"((?:\\.|[^"\\])*)"', text)
    ]
    assert len(names) > 3000
    long = [f"{path}:{line} {name}" for path, line, name in names if len(name) > LONGEST_TEST_NAME]
    assert long == []


def test_functions_are_short() -> None:
    functions = [
        *((path, *function) for path, tree in python_files("lab", "tools") for function in python_functions(tree)),
        *((path, *function) for path, text in cpp_files(*CPP_PARTS) for function in cpp_functions(text)),
    ]
    assert len(functions) > 5000
    long = [f"{path}:{line} {name} {length}" for path, line, name, length in functions if length > LONGEST_FUNCTION]
    assert long == []


def test_empty_names_are_noticed() -> None:
    python = "def f(one, *, at=1):\n    found = [words for words in one]\n    one.kept = 1\n    return found.at\n"
    assert sorted(name for _, name in empty_python_names(ast.parse(python))) == ["at", "found", "one", "words"]
    cpp = (
        'int f(const T& one, int at) {\n    auto found = g("int told = 1;");  // int said;\n    x.kept = y->made;\n}\n'
    )
    assert [name for _, name in empty_cpp_names(cpp)] == ["one", "at", "found"]
    assert [name for _, name in empty_cpp_names("for (const auto& known : list) return one;\n")] == ["known"]


def test_long_functions_are_noticed() -> None:
    body = "".join(f"    call({number});\n" for number in range(70))
    (function,) = cpp_functions(
        f"namespace n {{\n\nstd::vector<int> Reader::read(int first,\n    int last) {{\n{body}}}\n\n}}\n"
    )
    assert function == (3, "read", 73)
    (line, name, length), *_ = python_functions(ast.parse(f"def f():\n    '''Text.'''\n{body.replace(';', '')}"))
    assert (line, name, length) == (1, "f", 71)
