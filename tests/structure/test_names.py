# SPDX-License-Identifier: Apache-2.0
"""Names that a stranger can guess: one meaning each, nouns instead of pronouns, short test names, short functions."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from syntax_trees import list_nodes, parse_python

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

# Words that say nothing in the name of a test: pronouns, and participles where a noun or a verb of the field fits.
EMPTY_TEST_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        what whose who whom told tell tells found said say says kept known know knows given named shown seen asked taken
        made drawn listed left gone laid put puts goes rest own whole place places way ways thing things such others so
        those them they mine ours theirs nobody somebody anybody anything something everything everywhere nowhere beside
        around apart meant word words ones
        """,
    )
)
# Terms of the field that contain such a word.
TEST_TERMS = re.compile(r"(?<![a-z])(?:in_place|no_space_left|known_answers?|whole_numbers?)(?![a-z])")
# `one` as a pronoun. As a number before a noun it is good, as are `one_by_one` and `one_at_a_time`, a kind of sweep.
PRONOUN_ONE = re.compile(
    r"(?<![a-z])(?<!from_)(?<!than_)(?<!exactly_)(?<!least_)(?<!by_)(?<!to_)one"
    r"(?:$|_(?!at_a_time|by_one|to_one)(?:of|is|are|and|or|that|to|in|with|without|for|was|has|had|the|by|on|may|can|"
    r"cannot|does|not|from|at|be|it|its|alone|stays|which|per|as|ends|counts|named)(?:_|$))"
)


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
    for node in list_nodes(tree):
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
    for node in list_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.removeprefix("test_")


def cpp_test_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each C++ test case."""
    for match in re.finditer(r'TEST_CASE(?:_TEMPLATE)?\(\s*"((?:\\.|[^"\\])*)"', text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def has_empty_words(name: str) -> bool:
    """Whether a test name contains a word that says nothing; the name of a C++ test may be a sentence."""
    parts = "_".join(re.findall(r"[a-z0-9]+", name.lower()))
    return bool(EMPTY_TEST_WORDS & set(TEST_TERMS.sub("", parts).split("_")) or PRONOUN_ONE.search(parts))


def python_functions(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """Line, name and length in lines, without decorators and docstring, of each function."""
    for node in list_nodes(tree):
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
        for node in list_nodes(tree):
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


def test_names_of_variables_and_functions_are_meaningful() -> None:
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


def test_file_names_are_meaningful() -> None:
    folders = ("lab", *CPP_PARTS, "tests", "tools", "bench")
    paths = [
        path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".cpp", ".hpp")
    ]
    assert len(paths) > 1000
    assert [str(path.relative_to(ROOT)) for path in paths if path.stem in EMPTY_NAMES] == []


def all_test_names() -> list[tuple[str, int, str]]:
    """File, line and name of each Python and C++ test."""
    python = [(path, line, name) for path, tree in python_files("tests") for line, name in python_test_names(tree)]
    cpp = [(path, line, name) for path, text in cpp_files("tests") for line, name in cpp_test_names(text)]
    assert len(python) > 3000
    assert len(cpp) > 800
    return [*python, *cpp]


def test_test_names_are_short() -> None:
    long = [f"{path}:{line} {name}" for path, line, name in all_test_names() if len(name) > LONGEST_TEST_NAME]
    assert long == []


def test_test_names_are_meaningful() -> None:
    empty = [f"{path}:{line} {name}" for path, line, name in all_test_names() if has_empty_words(name)]
    assert empty == []


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


def test_meaningless_test_names_are_detected() -> None:
    empty = (
        "what_was_said_is_kept",
        "slow_target_is_named",
        "equal_plans_are_one",
        "the_first_one_is_used",
        "each_of_these_is_one_of_many",
        "Mirrors: what the server says counts",
    )
    assert [name for name in empty if not has_empty_words(name)] == []
    python = "def test_what_was_said():\n    pass\n"
    assert [has_empty_words(name) for _, name in python_test_names(ast.parse(python))] == [True]
    cpp = 'TEST_CASE("full stripe is written at once") {}\nTEST_CASE(\n    "what is left is read") {}\n'
    assert [(line, has_empty_words(name)) for line, name in cpp_test_names(cpp)] == [(1, False), (2, True)]


def test_terms_of_the_field_are_accepted_in_test_names() -> None:
    terms = (
        "known_answer_of_a_paced_run",
        "whole_numbers_are_integers",
        "invalid_plan_gets_one_sentence",
        "one_at_a_time_sweep_has_a_base_cell",
        "sounds_and_sorted_placements_differ",
        "size_is_counted_from_one",
        "paths and file numbers map one to one",
        "batched counting equals counting one by one",
    )
    assert [name for name in terms if has_empty_words(name)] == []


def test_long_functions_are_noticed() -> None:
    body = "".join(f"    call({number});\n" for number in range(70))
    (function,) = cpp_functions(
        f"namespace n {{\n\nstd::vector<int> Reader::read(int first,\n    int last) {{\n{body}}}\n\n}}\n"
    )
    assert function == (3, "read", 73)
    (line, name, length), *_ = python_functions(ast.parse(f"def f():\n    '''Text.'''\n{body.replace(';', '')}"))
    assert (line, name, length) == (1, "f", 71)
