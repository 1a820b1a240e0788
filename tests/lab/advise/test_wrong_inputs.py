# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs of `sonde advise`, `sonde replay` and `sonde tune`: one sentence each, exit code 2, no file left."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from built_programs import needs_programs
from darshan_builder import DarshanBuilder

from sonde.model.errors import EXIT_BAD_INPUT
from sonde.tune.description import TUNABLES_FORMAT

COLUMNS = ["t_ns", "ns", "file", "op", "offset", "bytes"]
TUNABLE = f'schema = "{TUNABLES_FORMAT}"\ntitle = "t"\n[[tunables]]\nid = "x"\ntitle = "x"\n'


def write_trace(path: Path, *rows: list[Any], columns: list[str] = COLUMNS, schema: str = "sonde-trace/1") -> None:
    """A trace of one process with these calls on one file."""
    lines = [
        {"type": "process", "schema": schema, "command": ["./a"], "started_unix_s": 5.0, "seconds": 1.0},
        {"type": "file", "number": 0, "path": "/data/run/x", "calls": {"open": 1}},
        {"type": "events", "columns": columns, "rows": list(rows)},
        {"type": "end"},
    ]
    path.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: good and wrong logs, and an empty directory `target`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("target", "empty", "logs"):
        Path(name).mkdir()
    DarshanBuilder().write(Path("logs/a.darshan"))
    content = Path("logs/a.darshan").read_bytes()
    Path("nothing.darshan").write_bytes(b"")
    Path("cut.darshan").write_bytes(content[: len(content) // 2])
    Path("garbage.darshan").write_bytes(content[:1328] + bytes(range(256)) * 4)
    Path("text.darshan").write_text("no log")
    Path("text.txt").write_text("no log")
    Path("cut.pfw.gz").write_bytes(gzip.compress(b'[\n{"id":1}\n' * 100)[:40])
    write_trace(Path("good.ndjson"), [0, 10, 0, "write", 0, 1000])
    write_trace(Path("other.ndjson"), [0, 10, 0, "write", 0, 1000], schema="sonde-trace/9")
    write_trace(Path("names.ndjson"), [0, 10, 0, "write", 0], columns=COLUMNS[:5])
    write_trace(Path("negative.ndjson"), [0, 10, 0, "write", -4096, 1000])
    write_trace(Path("far.ndjson"), [0, 10, 0, "write", 1 << 62, 1 << 62])
    write_trace(Path("beyond.ndjson"), [0, 10, 0, "write", 1 << 70, 1000])
    write_trace(Path("text.ndjson"), [0, 10, 0, "write", "first", 1000])
    write_trace(Path("closes.ndjson"), [0, 10, 0, "close", 0, 0])
    Path("binary.ndjson").write_bytes(bytes(range(256)) * 16)
    os.mkfifo("pipe.darshan")
    Path("loop.ndjson").symlink_to("loop.ndjson")
    Path("wrong.json").write_text("{")
    Path("text.json").write_text('{"schema": "sonde-check/3", "figures": [{"key": "write-storage-1", "value": "x"}]}')
    Path("negative.json").write_text(
        '{"schema": "sonde-check/3", "figures": [{"key": "write-storage-1", "value": -5}]}'
    )
    Path("unknown.toml").write_text(TUNABLE + 'kind = "plan"\nname = "a"\nvalues = ["1"]\ncolor = "red"\n')
    Path("number.toml").write_text(TUNABLE + 'kind = "plan"\nname = "a"\nvalues = [1]\n')
    Path("binary.toml").write_bytes(bytes(range(256)))
    return tmp_path


WRONG_CALLS = {
    "advise": "Name a log",
    "advise absent.darshan": "There is no log absent.darshan",
    "advise target": "target is neither a Darshan log",
    "advise nothing.darshan": "nothing.darshan is neither a Darshan log",
    "advise cut.darshan": "cut.darshan is no Darshan log that this version of the library reads",
    "advise garbage.darshan": "garbage.darshan is damaged",
    "advise text.txt": "text.txt is neither a Darshan log",
    "advise cut.pfw.gz": "cut.pfw.gz holds no call of DFTracer",
    "advise binary.ndjson": "binary.ndjson is neither",
    "advise loop.ndjson": "There is no log loop.ndjson",
    "advise pipe.darshan": "pipe.darshan is neither a Darshan log",
    "advise good.ndjson --storage absent.json": "There is no result of sonde check absent.json",
    "advise good.ndjson --storage wrong.json": "wrong.json is neither the JSON output of `sonde check`",
    "advise good.ndjson --storage text.json": "text.json holds no rate of large transfers",
    "advise good.ndjson --storage negative.json": "negative.json holds no rate of large transfers",
    "advise good.ndjson --storage edisn": 'Did you mean "edison"?',
    "advise good.ndjson --blocks many": "'many' is not a whole number",
    "advise good.ndjson --bloks 9": "Did you mean",
    "advise good.ndjson --cold": "belong to --prove",
    "advise good.ndjson --part 1/3": "--table and --part belong to --fleet",
    "advise good.ndjson --prove": "Say where to replay",
    "advise good.ndjson --prove --on absent": "There is no directory absent",
    "advise good.ndjson --prove --on text.txt": "text.txt is not a directory",
    "advise good.ndjson good.ndjson --prove --on target": "--prove takes one log",
    "advise good.ndjson -o text.txt/page.html": "text.txt",
    "advise --fleet text.txt": "--fleet text.txt is not a folder",
    "advise --fleet empty": "There is no Darshan log (*.darshan) below empty",
    "advise --fleet logs --part 4/3": '--part is "4/3"',
    "advise --fleet logs --table text.txt": "--table text.txt is not a folder",
    "advise --fleet logs --prove --on target": "--prove takes one log",
    "replay": "Missing argument 'LOG'",
    "replay absent --on target": "There is no log absent",
    "replay good.ndjson": "Say where to replay",
    "replay good.ndjson --on absent": "There is no directory absent",
    "replay good.ndjson --on text.txt": "text.txt is not a directory",
    "replay good.ndjson --on target --on-model edison": "one of them",
    "replay good.ndjson --on target --mount x": "--mount belongs to --on-model",
    "replay good.ndjson --on-model edison --mount nowhere": "nowhere",
    "replay good.ndjson --on-model text.txt": "text.txt is not valid TOML",
    "replay good.ndjson --on target --below run": "by its whole path",
    "replay good.ndjson --on target --below /elsewhere": "on files below /elsewhere",
    "replay good.ndjson --on target --think-time some": "'some' is not one of",
    "replay good.ndjson other --on target": "unexpected extra argument",
    "replay cut.darshan --on target": "cut.darshan is no Darshan log",
    "replay garbage.darshan --on target": "garbage.darshan is damaged",
    "replay logs/a.darshan --on target": "holds no reads and writes",
    "replay names.ndjson --on target": "names.ndjson holds no reads and writes",
    "replay negative.ndjson --on target": "negative.ndjson is damaged: a call on /data/run/x has the offset -4,096",
    "replay far.ndjson --on target": "far.ndjson is damaged: a call on /data/run/x has the offset 4,611,686",
    "replay beyond.ndjson --on target": "beyond.ndjson holds no reads and writes",
    "replay text.ndjson --on target": "text.ndjson holds no reads and writes",
    "replay closes.ndjson --on target": "holds no reads and writes",
    "tune": "Name a plan and a setting",
    "tune quick --on target": "Say which setting to tune",
    "tune quick --try transfer": "Say what to tune",
    "tune quick --on target --try transfr": 'Did you mean "transfer"?',
    "tune quick --on target --try transfer=": "holds an empty value",
    "tune quick --on target --try transfer=many": "--try transfer: no value is possible; ",
    "tune quick --on target --try nr-requests=nan": "outside of the safe range",
    "tune quick --on target --try io-scheduler=fast": "fast is not one of",
    "tune text.txt --on target --try transfer": "text.txt is not valid TOML",
    "tune quick --on target --try transfer --phase writes": 'no phase "writes"',
    "tune quick --on target --try transfer --device ../sda": "no block device ../sda",
    "tune quick --on target --try transfer --worth 2": "not in the range",
    "tune quick --on target --try transfer --set data.color=red": 'no member "color"',
    "tune quick --on target --try transfer --set data": 'has no "="',
    "tune quick --system edison --mount nowhere --try transfer": 'The system has no mount "nowhere"',
    "tune --list --tunables unknown.toml": 'no member "color"',
    "tune --list --tunables number.toml": "it must be a text or a list of texts",
    "tune --list --tunables binary.toml": "binary.toml is not a text file",
    "tune --list --tunables empty": "empty is a directory",
    "tune --list --tunables pipe.darshan": "not a regular file",
    "tune --restore quick": "--restore takes no plan",
}


@needs_programs
@pytest.mark.parametrize("call", WRONG_CALLS)
def test_wrong_call_is_one_sentence_and_changes_nothing(sonde: Any, folder: Path, call: str) -> None:
    result = sonde(*call.split())
    assert result.code == EXIT_BAD_INPUT, result.out + result.err
    (sentence,) = result.sentences
    assert result.err.endswith(f"{sentence}\n")
    assert WRONG_CALLS[call] in sentence
    assert result.out == ""
    assert list((folder / "target").iterdir()) == []


def test_forty_wrong_calls_are_tried_over_three_verbs() -> None:
    counts = [sum(call.split()[0] == verb for call in WRONG_CALLS) for verb in ("advise", "replay", "tune")]
    assert sum(counts) >= 40
    assert min(counts) >= 10
