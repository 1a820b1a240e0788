# SPDX-License-Identifier: Apache-2.0
"""All output of the lab goes through `sonde.terminal`, which encodes control characters."""

from __future__ import annotations

import ast
from pathlib import Path

from syntax_trees import list_nodes, parse_python

LAB = Path(__file__).resolve().parents[2] / "lab" / "sonde"
# (file, call) -> why it may print by itself.
ALLOWED = {
    ("design/routes/traffic.py", "print"): "JSON on a pipe to the parent process, which reads it back",
}
CALLS = {"print", "click.echo", "click.secho", "Console", "rich.print", "sys.stdout.write", "sys.stderr.write"}


def test_all_output_is_printed_by_the_encoder() -> None:
    wrong, used = [], set()
    for path in sorted(LAB.rglob("*.py")):
        name = path.relative_to(LAB).as_posix()
        if name.startswith("terminal/"):
            continue
        for node in list_nodes(parse_python(path)):
            if isinstance(node, ast.Call) and (call := ast.unparse(node.func)) in CALLS:
                if (name, call) in ALLOWED:
                    used.add((name, call))
                else:
                    wrong.append(f"{name}:{node.lineno}: {call}")
    assert wrong == []
    assert used == set(ALLOWED), "an exception that nothing needs any more"
