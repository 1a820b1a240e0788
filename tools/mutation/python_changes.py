# SPDX-License-Identifier: Apache-2.0
"""The changes of a Python source, found in its syntax tree and made in its text.

Not changed, because no behavior hangs on it: annotations, docstrings, sentences for people (tests hold their numbers,
not every word), arguments of `dataclass`, `strict` of `zip`, encodings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutation.change import SourceChange, make_source_change

_COMPARISON_CHANGES = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
_ARITHMETIC_CHANGES = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip
_UNCHANGED_ARGUMENTS = frozenset({"strict", "encoding", "errors", "newline", "dtype", "kw_only", "repr"})


def list_python_changes(source_file: str, source_text: str) -> list[SourceChange]:
    """All changes of a file, in the order of its text."""
    return sorted(set(_Finder(source_file, source_text).find_changes(ast.parse(source_text))))


class _Finder:
    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = source.splitlines(keepends=True)

    def compute_offset(self, line: int, column: int) -> int:
        """The parser counts bytes of UTF-8; we count characters."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def compute_offsets_of_node(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.compute_offset(node.lineno, node.col_offset), self.compute_offset(
            node.end_lineno, node.end_col_offset
        )

    def replace_node(self, node: ast.expr | ast.stmt, new_text: str, change_kind: str) -> SourceChange:
        return make_source_change(self.file, self.source, *self.compute_offsets_of_node(node), new_text, change_kind)

    def replace_operator_between(
        self, left_operand: ast.expr, right_operand: ast.expr, old_operator: str, new_operator: str, change_kind: str
    ) -> Iterator[SourceChange]:
        begin, end = self.compute_offsets_of_node(left_operand)[1], self.compute_offsets_of_node(right_operand)[0]
        position = self.source.find(old_operator, begin, end)
        if position >= 0:
            yield make_source_change(
                self.file, self.source, position, position + len(old_operator), new_operator, change_kind
            )

    def find_changes(self, node: ast.AST) -> Iterator[SourceChange]:
        yield from self.list_changes_of_node(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not self.is_excluded_child(node, name, child):
                    yield from self.find_changes(child)

    def is_excluded_child(self, node: ast.AST, name: str, child: ast.AST) -> bool:
        if name == "decorator_list" and "dataclass" in ast.unparse(child):
            return True
        if isinstance(child, ast.keyword) and child.arg in _UNCHANGED_ARGUMENTS:
            return True
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            return True
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            return True  # a docstring, or what stands below a member
        if isinstance(child, ast.Subscript) and ast.unparse(child.value) == "Literal":
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "TypeVar"):
            return True
        return isinstance(child, ast.JoinedStr | ast.Assert)

    def list_changes_of_node(self, node: ast.AST) -> Iterator[SourceChange]:
        if isinstance(node, ast.Compare):
            for left_operand, op, right_operand in zip(
                [node.left, *node.comparators], node.ops, node.comparators, strict=False
            ):
                old, new = _COMPARISON_CHANGES[type(op)]
                yield from self.replace_operator_between(left_operand, right_operand, old, new, "comparison")
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left_operand, right_operand in zip(node.values, node.values[1:], strict=False):
                yield from self.replace_operator_between(left_operand, right_operand, f" {old} ", f" {new} ", "and/or")
                yield from self.replace_operator_between(
                    left_operand, right_operand, f"\n{old} ", f"\n{new} ", "and/or"
                )
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC_CHANGES:
            if not isinstance(node.op, ast.BitOr) or not self.is_union_of_types(node):
                old, new = _ARITHMETIC_CHANGES[type(node.op)]
                yield from self.replace_operator_between(node.left, node.right, old, new, "arithmetic")
        elif isinstance(node, ast.AugAssign):
            yield self.replace_node(node, "pass", "statement removed")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            yield self.replace_node(
                node, self.source[slice(*self.compute_offsets_of_node(node.operand))], "sign or not"
            )
        elif isinstance(node, ast.Constant):
            yield from self.list_constant_changes(node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            if not isinstance(node, ast.While):
                yield self.replace_node(
                    node.test, f"not ({self.source[slice(*self.compute_offsets_of_node(node.test))]})", "condition"
                )
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield self.replace_node(node, "pass", "statement removed")
        elif isinstance(node, ast.Continue):
            yield self.replace_node(node, "break", "statement changed")
        elif isinstance(node, ast.Break):
            yield self.replace_node(node, "continue", "statement changed")
        elif isinstance(node, ast.FunctionDef):
            yield from self.list_return_value_changes(node)

    @staticmethod
    def is_union_of_types(node: ast.BinOp) -> bool:
        """`str | None`, in an alias or `isinstance`."""
        text = ast.unparse(node)
        return all(part.strip("[]., ")[:1].isupper() or part.split("[")[0] in
                   ("str", "int", "float", "bool", "None", "list", "dict", "tuple", "set", "frozenset", "date")
                   for part in text.split(" | "))  # fmt: skip

    def list_constant_changes(self, node: ast.Constant) -> Iterator[SourceChange]:
        value = node.value
        if value is True or value is False:
            yield self.replace_node(node, str(not value), "constant")
        elif isinstance(value, int):
            yield self.replace_node(node, str(value + 1), "constant")
            if value > 1:
                yield self.replace_node(node, str(value - 1), "constant")
        elif isinstance(value, float):
            yield self.replace_node(node, repr(value * 2 if value else 1.0), "constant")
        elif isinstance(value, str) and value and " " not in value and len(value) < 30:
            try:
                number = float(value)
            except ValueError:
                yield self.replace_node(node, repr("XX" + value), "constant")
            else:
                other = number * 2 if number else 1
                if other != number:  # twice infinity is infinity
                    yield self.replace_node(node, repr(str(other)), "constant")

    def list_return_value_changes(self, node: ast.FunctionDef) -> Iterator[SourceChange]:
        boolean = node.returns is not None and ast.unparse(node.returns) == "bool"
        for statement in _list_statements_outside_nested_functions(node):
            if isinstance(statement, ast.Return) and statement.value is not None:
                now = ast.unparse(statement.value)
                for text in ("True", "False") if boolean else ("None",):
                    if text != now:
                        yield self.replace_node(statement.value, text, "returned constant")


def _list_statements_outside_nested_functions(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of a function without those of functions in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
