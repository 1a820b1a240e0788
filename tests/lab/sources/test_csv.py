# SPDX-License-Identifier: Apache-2.0
"""History that people keep in CSV files: every row comes in once, with its meaning, or is a sentence."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from sonde.model.errors import UserError
from sonde.sources.column_guesses import guess_column_map
from sonde.sources.columns import COLUMN_MEANINGS, read_column_map
from sonde.sources.csv_rows import read_csv_runs
from sonde.store.archive import Archive
from sonde.store.history import list_histories

# The columns of a daily probe suite as a site publishes them; every figure is made up.
ROWS = """\
time_utc,system,file_system,benchmark,files,operation,tasks,rate_GiBps,server_read_GiB,job_GiB,concurrent_jobs
2017-02-14T18:22:40Z,knl,scratch,ior,shared,write,4096,32,412.193,1024.0,994
2017-02-14T18:23:51Z,knl,scratch,ior,per_task,write,4096,256,36.847,4096.0,990
2017-02-15T18:22:40Z,knl,scratch,ior,shared,write,4096,16,400.5,1024.0,
2017-02-15T18:25:00Z,knl,,ior,shared,write,4096,8,,1024.0,12
2017-02-15T18:30:00Z,hsw,scratch,ior,shared,write,4096,24,1,1024.0,12
2017-02-15T18:35:00Z,knl,scratch,ior,shared,read,4096,48,1,1024.0,12
2017-02-15T18:40:00Z,knl,scratch,ior,shared,write,1024,20,1,1024.0,12
"""
MAP = """\
tool = "Probes"
definition = "by the slowest process"
[columns]
time = "time_utc"
system = "system"
file_system = "file_system"
experiment = ["benchmark", "files"]
op = "operation"
tasks = "tasks"
rate = { column = "rate_GiBps", unit = "GiB/s" }
bytes = { column = "job_GiB", unit = "GiB" }
"""


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    (tmp_path / "map.toml").write_text(MAP)
    (tmp_path / "daily.csv").write_text(ROWS)
    return tmp_path / "daily.csv"


def test_rows_become_runs_of_comparable_series(sonde: Any, csv_file: Path, archive: Path) -> None:
    answer = sonde("import", csv_file, "--columns", csv_file.with_name("map.toml"))
    assert answer.code == 0, answer.err
    assert "7 runs came into the archive" in answer.out
    series = list_histories(Archive(archive))
    histories = {
        (history.key.system, history.key.file_system, history.plan, history.key.op, len(history)) for history in series
    }
    assert set(histories) == {
        ("knl", "scratch", "ior-shared", "write", 2),
        ("knl", "scratch", "ior-per_task", "write", 1),
        ("knl", "unknown", "ior-shared", "write", 1),
        ("hsw", "scratch", "ior-shared", "write", 1),
        ("knl", "scratch", "ior-shared", "read", 1),
        ("knl", "scratch", "ior-shared", "write", 1),
    }
    assert len(series) == 6, "4,096 tasks and 1,024 are two"
    (daily,) = [history for history in series if len(history) == 2]
    assert daily.values.tolist() == [32 * 2**30, 16 * 2**30]
    assert daily.key.definition == "Probes by the slowest process"
    assert daily.times[0] == pytest.approx(1487096560.0)


def test_unmapped_columns_are_stored(sonde: Any, csv_file: Path, archive: Path) -> None:
    sonde("import", csv_file, "--columns", csv_file.with_name("map.toml"))
    (folder,) = archive.glob("2017-02/20170214T182240Z-*")
    document = json.loads((folder / "run.json").read_text())
    assert document["context"] == {"server_read_GiB": 412.193, "concurrent_jobs": 994.0}
    assert document["experiment"] == {"benchmark": "ior", "files": "shared"}
    assert document["phases"][0]["bytes"] == 1024 << 30
    assert document["source"]["tool"] == "Probes"
    assert document["source"]["file"] == "daily.csv"
    result = sonde("show", folder.name)
    assert result.code == 0
    assert "Imported from daily.csv: Probes" in result.out
    assert "Probes by the slowest process" in result.out
    assert sonde("show", folder.name, "--json").json[0]["id"] == folder.name


def test_repeated_import_adds_only_new_rows(sonde: Any, csv_file: Path, archive: Path) -> None:
    columns = csv_file.with_name("map.toml")
    sonde("import", csv_file, "--columns", columns, "--tag", "history")
    assert sonde("import", csv_file, "--columns", columns, "--json").json["known"] == 7
    csv_file.write_text(ROWS + "2017-02-16T18:22:40Z,knl,scratch,ior,shared,write,4096,17,1,1024.0,3\n")
    again = sonde("import", csv_file, "--columns", columns, "--json").json
    assert len(again["added"]) == 1
    assert again["known"] == 7
    assert len(sonde("list", "--source", "probes", "--json").json) == 8
    assert len(sonde("list", "--tag", "history", "--json").json) == 7


def test_the_map_may_stand_on_the_command_line(sonde: Any, csv_file: Path, archive: Path) -> None:
    columns = ("time=time_utc", "system=system", "op=operation", "experiment=benchmark", "experiment=files")
    options = [part for word in (*columns, "rate=rate_GiBps GiB/s", "tasks=tasks") for part in ("--map", word)]
    assert sonde("import", csv_file, *options, "--file-system", "scratch9", "--dry-run").code == 0
    assert not list(archive.glob("2*"))
    assert sonde("import", csv_file, *options, "--file-system", "scratch9").code == 0
    assert {history.key.file_system for history in list_histories(Archive(archive))} == {"scratch9"}


@pytest.mark.parametrize(
    ("row", "expected_text"),
    [
        ("yesterday,knl,s,ior,shared,write,4,1,,1,", '"yesterday" is not a time'),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,4,fast,,1,", 'rate is "fast", which is not a number'),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,4,-1,,1,", "rate is -1, which cannot be"),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,4,inf,,1,", "which cannot be"),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,4,,,1,", "there is no result"),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,4,nan,,1,", "there is no result"),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,many,1,,1,", 'tasks is "many"'),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,0,1,,1,", 'tasks is "0"'),
        ("2017-02-14T18:22:40Z,knl,s", "the number of values"),
        ("2017-02-14T18:22:40Z,knl,s,ior,shared,write,4,1,,1,,,,", "the number of values"),
    ],
)
def test_a_bad_row_is_a_sentence_with_its_line(
    sonde: Any, csv_file: Path, archive: Path, row: str, expected_text: str
) -> None:
    csv_file.write_text(ROWS + row + "\n")
    answer = sonde("import", csv_file, "--columns", csv_file.with_name("map.toml"))
    assert answer.code == 0
    assert len(answer.sentences) == 1
    assert expected_text in answer.err
    assert f"{csv_file}, line 9: " in answer.err
    assert "7 runs" in answer.out


@pytest.mark.parametrize(
    ("text", "settings", "expected_sentence"),
    [
        ("[columns]\ntime = 't'", (), "which column is the result"),
        ("[columns]\nrate = 'r'", (), "which column is the time"),
        ("[columns]\ntime = 't'\nspeed = 'r'", (), '"speed" is not something a column can mean'),
        ("[columns]\ntime = 't'\nrate = {column = 'r', unit = 'GB'}", (), '"1 GB" is not a rate'),
        ("[columns]\ntime = 't'\nrate = {column = 'r', unit = 'Gb/s'}", (), "does not say which unit"),
        ("[columns]\ntime = 't'\nops_rate = {column = 'r', unit = 'x'}", (), "is not a unit of operations"),
        ("[columns]\ntime = ['t', 'u']\nrate = 'r'", (), "time is not the name of a column"),
        ("[column]\ntime = 't'", (), "has a member column"),
        ("columns = 3", (), "columns is not a table"),
        ("not toml", (), "is not valid TOML"),
        ("", ("time",), "is not MEANING=COLUMN"),
        ("", ("tiem=x",), 'Did you mean "time"?'),
    ],
)
def test_a_bad_map_is_a_sentence(tmp_path: Path, text: str, settings: tuple[str, ...], expected_sentence: str) -> None:
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(UserError) as raised:
        read_column_map(tmp_path / "map.toml", settings)
    assert expected_sentence in str(raised.value)


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        (b"", 'has no column "t"'),
        (b"a,b\n1,2\n", 'has no column "t" for time; it has a, b.'),
        (b"\xff\xfe\x00", "is not a text file"),
        (b't,r\n"unclosed', "is not a CSV file"),
    ],
)
def test_invalid_csv_table_gets_one_sentence(tmp_path: Path, content: bytes, expected_text: str) -> None:
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(UserError) as raised:
        list(read_csv_runs(tmp_path / "x.csv", read_column_map(None, ["time=t", "rate=r"]), lambda complaint: None))
    assert expected_text in str(raised.value)


def test_documented_column_map_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "tasks" / "import.md").read_text()
    (tmp_path / "map.toml").write_text(page.partition("```ini\n")[2].partition("```")[0])
    columns = read_column_map(tmp_path / "map.toml", [])
    assert columns.factors == {"rate": 2.0**30, "bytes": 2.0**30}
    assert set(columns.columns) <= set(COLUMN_MEANINGS)
    assert all(f"`{name}`" in page for name in COLUMN_MEANINGS if name not in ("rate", "ops_rate", "time"))


def test_csv_without_a_map_suggests_a_working_command(sonde: Any, csv_file: Path, archive: Path) -> None:
    answer = sonde("import", csv_file)
    assert answer.code == 2
    assert len(answer.sentences) == 1
    assert not archive.exists()
    proposed = shlex.split(answer.err.partition("perhaps ")[2].partition(" (see")[0])
    assert sonde("import", csv_file, *proposed).code == 0, "what it proposes works"
    document = json.loads(next(archive.glob("2017-02/20170214T182240Z-*/run.json")).read_text())
    assert document["history"]["system"] == "knl"
    assert document["phases"][0]["bytes_per_s"] == 32 * 2**30
    csv_file.write_text("a,b\n1,2\n")
    assert "--map time=start" in sonde("import", csv_file).err


@pytest.mark.parametrize(
    ("header", "settings"),
    [
        ("start,bw_MiBps,op", ["time=start", "rate=bw_MiBps MiB/s", "op=op"]),
        ("date,bandwidth (GB/s),nodes", ["time=date", "rate=bandwidth (GB/s) GB/s", "nodes=nodes"]),
        ("timestamp,throughput", ["time=timestamp", "rate=throughput UNIT"]),
        ("x,y", []),
        ("time,errors", []),
    ],
)
def test_names_of_columns_suggest_their_meaning(header: str, settings: list[str]) -> None:
    assert sorted(guess_column_map(header.split(","))) == sorted(settings)
