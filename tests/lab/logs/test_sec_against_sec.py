# SPDX-License-Identifier: Apache-2.0
"""The real sec and our engine do the same with generated rule files and lines, on a clock that lines of the test set.

sec reads its clock by `time`, which Perl lets us replace: a first rule file sets it from lines like "CLOCK 1700000005".
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from sonde.logs.sec_engine import SecEngine
from sonde.logs.sec_rules import read_sec_rule_file

LINES = 40
# Rule sets in which operations that end in one second affect each other may need another of sec's own orders.
MAX_ORDERS = 12
START = 1_700_000_000
CLOCK_RULE = (
    "type=Single\ncontinue=EndMatch\nptype=PerlFunc\n"
    "pattern=sub { if ($_[0] =~ /^CLOCK (\\d+)$/) { $main::sonde_clock = $1; return 1; } return 0; }\n"
    "desc=clock\naction=none\n"
)
RUN_SEC = (
    "BEGIN { $main::sonde_clock = %d; *CORE::GLOBAL::time = sub () { $main::sonde_clock }; } "
    "my $program = shift @ARGV; do $program; die $@ if $@;"
)
LOG_WORDS = ("disk", "link", "node", "path")
STATES = ("down", "up", "slow", "error")
PATTERNS = (
    ("RegExp", r"^(\w+) (\d) (down|slow)$"),
    ("RegExp", r"^(?<word>\w+) (?<number>[[:digit:]]) up$"),
    ("RegExp", "error"),
    ("RegExp", r"^seen (\S+)(?: (\S+))?"),
    ("SubStr", "slow"),
    ("SubStr", r"disk\s1"),
    ("NRegExp", "disk|seen|made"),
    ("NSubStr", "o"),
    ("TValue", "TRUE"),
)
CONTEXTS = ("C1", "!C1", "C1 && !C2", "!(C1 || C2)", "C_$1", "!C_$1", "[C2]", "[!C1]", "C1 || C2 && !C_$2")
DESCRIPTIONS = ("$0", "$1", "x $1 $2", "constant", "$+{word} ${1} $$", "a%%b")


def generate_actions(generator: random.Random, outputs_only: bool = False) -> str:
    """One to three actions. `outputs_only`: none that changes what operations of the same second do."""
    choices = (
        "write out %u W %s",
        "write out %u $1:$2 (%%) \\(x\\)",
        "logonly L %u %s",
        "write out %u %.hmsstr %t",
        "event 2 made later $2",
        "none",
        f"create C1 {generator.randrange(6)}",
        "create C_$1 3",
        "delete C1",
        "delete C_$1",
        "create C2 2 (write out %u expired %s $0; delete C1)",
        "obsolete C2",
        "event seen $1 %s",
        "assign %x $1; write out %u x=%x y=%y",
    )
    allowed = choices[:6] if outputs_only else choices
    return "; ".join(generator.choice(allowed) for _ in range(generator.randrange(1, 4)))


def generate_rule(generator: random.Random) -> str:
    kind = generator.choice(
        ("Single", "SingleWithSuppress", "SingleWithThreshold", "Pair", "PairWithWindow", "Suppress")
    )
    ptype, pattern = generator.choice(PATTERNS[: -1 if kind.startswith("Pair") else None])
    lines = [f"type={kind}", f"ptype={ptype}", f"pattern={pattern}"]
    if generator.random() < 0.5 and kind != "Suppress":
        lines.append(f"continue={generator.choice(('TakeNext', 'DontCont', 'EndMatch'))}")
    if generator.random() < 0.4 or kind == "Suppress":
        lines.append(f"context={generator.choice(CONTEXTS)}")
    if kind == "Suppress":
        return "\n".join(lines)
    lines += [
        f"desc={generator.choice(DESCRIPTIONS)}",
        f"action={generate_actions(generator, kind == 'PairWithWindow')}",
    ]
    if kind not in ("Single",):
        lines.append(f"window={generator.randrange(1, 8)}")
    if kind == "SingleWithThreshold":
        lines.append(f"thresh={generator.randrange(1, 5)}")
        if generator.random() < 0.5:
            lines.append(f"action2={generate_actions(generator, outputs_only=True)}")
    if kind.startswith("Pair"):
        second = generator.choice([("RegExp", r"^$1 (\d) (up|error)"), ("RegExp", r"(\w+) up$"), ("SubStr", "up")])
        lines += [f"ptype2={second[0]}", f"pattern2={second[1]}"]
        has_context2 = generator.random() < 0.3  # an action that changes it would depend on sec's order of operations
        if has_context2:
            lines.append(f"context2={generator.choice(('C1', '!C1', '!C_%1', '[!C2]'))}")
        actions2 = generate_actions(generator, outputs_only=has_context2)
        lines += [f"desc2=%1 {generator.choice(DESCRIPTIONS)}", f"action2={actions2}; write out %u %1"]
        if generator.random() < 0.5:
            lines.append("continue2=TakeNext")
    return "\n".join(lines)


def generate_lines(generator: random.Random) -> list[tuple[int, str]]:
    time, lines = START, []
    for _ in range(LINES):
        time += generator.choice((0, 0, 1, 1, 2, 3, 9))
        text = f"{generator.choice(LOG_WORDS)} {generator.randrange(3)} {generator.choice(STATES)}"
        lines.append((time, generator.choice((text, text, text, f"seen {text}", "100%s $1 \\t (x)"))))
    return lines


def run_sec(program: str, folder: Path, lines: list[tuple[int, str]], seed: int) -> dict[int, list[str]]:
    """Outputs of the real sec by time. `seed` orders the operations that end in the same second: sec has no order."""
    for name in ("out", "log"):
        (folder / name).unlink(missing_ok=True)
    (folder / "clock.conf").write_text(CLOCK_RULE, encoding="utf-8")
    clocked = [part for time, text in lines for part in (f"CLOCK {time}", text)]
    clocked.append(f"CLOCK {lines[-1][0] + 60}\n")
    (folder / "input").write_text("\n".join(clocked), encoding="utf-8")
    arguments = ["-conf=clock.conf", "-conf=rules.sec", "-input=input", "-notail", "-log=log", "-debug=4"]
    command = ["perl", "-e", RUN_SEC % START, program, *arguments]
    environment = {"TZ": "UTC", "PATH": "/bin", "PERL_HASH_SEED": str(seed), "PERL_PERTURB_KEYS": "0"}
    subprocess.run(command, cwd=folder, check=True, timeout=60, capture_output=True, env=environment)
    outputs: dict[int, list[str]] = defaultdict(list)
    log = re.findall(r"^.{24}: (L \d+ .*)$", (folder / "log").read_text(encoding="utf-8"), re.MULTILINE)
    written = (folder / "out").read_text(encoding="utf-8").splitlines() if (folder / "out").exists() else []
    for text in [*log, *written]:
        outputs[int(text.removeprefix("L ").split()[0])].append(text)
    return {time: sorted(texts) for time, texts in outputs.items()}


def run_engine(folder: Path, lines: list[tuple[int, str]]) -> dict[int, list[str]] | None:
    """Outputs of our engine by time; None where rules create events for each other for ever, which sec does not end."""
    file = read_sec_rule_file(folder / "rules.sec")
    assert file.problems == []
    engine = SecEngine([file.rules])
    engine.advance_clock(START)
    outputs = [output for time, text in lines for output in engine.process_line(text, time)]
    outputs += engine.finish_due_operations(lines[-1][0] + 60)
    if engine.dropped_events:
        return None
    by_time: dict[int, list[str]] = defaultdict(list)
    for output in outputs:
        by_time[output.time].append(output.text)
    return {time: sorted(texts) for time, texts in by_time.items()}


@pytest.mark.skipif(shutil.which("sec") is None, reason="sec is not installed")
@pytest.mark.parametrize(("sets", "min_equal"), [(16, 12), pytest.param(260, 220, marks=pytest.mark.nightly)])
def test_engine_acts_as_sec_on_generated_rules(sets: int, min_equal: int, tmp_path: Path) -> None:
    program = shutil.which("sec")
    assert program is not None
    output_count = 0
    endless = 0
    reordered: list[int] = []
    for seed in range(sets):
        generator = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        rules = "\n\n".join(generate_rule(generator) for _ in range(generator.randrange(1, 6)))
        (folder / "rules.sec").write_text(rules + "\n", encoding="utf-8")
        lines = generate_lines(generator)
        outputs = run_engine(folder, lines)
        if outputs is None:
            endless += 1
            continue
        expected = run_sec(program, folder, lines, 0)
        if outputs != expected:
            reordered.append(seed)
            orders = [run_sec(program, folder, lines, order) for order in range(1, MAX_ORDERS)]
            assert any(order != expected for order in orders), f"seed {seed}:\n{rules}"
            assert outputs in orders, f"seed {seed}:\n{rules}"
        output_count += sum(map(len, expected.values()))
    assert output_count > sets * 5
    assert sets - endless - len(reordered) >= min_equal, (endless, reordered)
