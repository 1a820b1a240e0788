# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the gate as JUnit XML, GitHub workflow commands and GitLab Code Quality, for known rates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import junitparser
import pytest

from sonde.trends.gate_ci_output import GateCase, format_github_commands, format_gitlab_report, format_junit_document

AddRun = Callable[..., Path]
Sonde = Callable[..., Any]
SLOW_NUMBER_TEXT = (
    "probe · read (read, bytes_per_s): measured 700 MB/s; the limit is 850 MB/s, the median of the baseline"
    " 1.00 GB/s, the change −30 %."
)
ODD = GateCase("h1", "a<b", "p\x1b%\n", "too slow", 'p\x1b%\n: 50 % "too" slow\ud800.')
UNJUDGED = GateCase("h2", "stat", "p", "not judged", "stat: not judged, not a storage number (page cache).")
# Members as GitLab's manual lists them, page "Code Quality", section "Code Quality report format".
CODE_QUALITY = {
    "type": "array",
    "items": {
        "required": ["description", "check_name", "fingerprint", "location", "severity"],
        "properties": {
            "description": {"type": "string"},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./|/)"},
                    "lines": {"required": ["begin"], "properties": {"begin": {"type": "integer"}}},
                },
            },
        },
    },
}


@pytest.fixture
def slow_read(sonde: Sonde, add_run: AddRun, archive: Path) -> None:
    """Six runs at exactly 1 GB/s are the baseline; the last run reads at 700 MB/s and writes as before."""
    for day in range(6):
        add_run(day, {("read", "read"): 1e9, ("write", "write"): 1e9})
    sonde("baseline", "set", "good", "2026-01-01..2026-01-06")
    add_run(20, {("read", "read"): 7e8, ("write", "write"): 1e9})


def gate(sonde: Sonde, *arguments: str | Path) -> Any:
    return sonde("gate", "last", "--baseline", "good", "--retests", "0", *arguments)


@pytest.mark.usefixtures("slow_read")
def test_junit_has_a_case_for_each_history(sonde: Sonde, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    completed = gate(sonde, "--junit", file)
    assert (completed.code, "Too slow" in completed.out) == (1, True), completed.err
    root = ElementTree.parse(file).getroot()
    assert root.attrib == {"tests": "2", "failures": "1", "errors": "0"}
    read, write = root.findall("testsuite/testcase")
    assert read.attrib == {"classname": "probe", "name": "probe · read (read, bytes_per_s)"}
    failure = read.find("failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == (SLOW_NUMBER_TEXT, SLOW_NUMBER_TEXT)
    assert (write.get("name"), write.find("failure")) == ("probe · write (write, bytes_per_s)", None)


@pytest.mark.usefixtures("slow_read")
def test_github_annotation_follows_the_table(sonde: Sonde) -> None:
    completed = gate(sonde, "--annotate", "github")
    assert completed.code == 1
    annotations = [line for line in completed.out.splitlines() if line.startswith("::")]
    assert annotations == [f"::error title=Too slow::{SLOW_NUMBER_TEXT.replace('%', '%25')}"]
    assert "Too slow: 2 numbers compared" in completed.out


@pytest.mark.usefixtures("slow_read")
def test_gitlab_report_is_the_only_output(sonde: Sonde, add_run: AddRun) -> None:
    (issue,) = json.loads(gate(sonde, "--annotate", "gitlab").out)
    fingerprint = issue.pop("fingerprint")
    assert issue == {
        "description": SLOW_NUMBER_TEXT,
        "check_name": "sonde-gate/too-slow",
        "severity": "major",
        "location": {"path": "probe", "lines": {"begin": 1}},
    }
    add_run(21, {("read", "read"): 6e8, ("write", "write"): 1e9})
    (later,) = json.loads(gate(sonde, "--annotate", "gitlab").out)
    assert (later["fingerprint"], len(fingerprint)) == (fingerprint, 64), "a later slow run is the same issue"
    add_run(22, {("read", "read"): 1e9, ("write", "write"): 1e9})
    good = gate(sonde, "--annotate", "gitlab")
    assert (good.code, json.loads(good.out)) == (0, [])


@pytest.mark.usefixtures("slow_read")
def test_stated_limits_are_cases_too(sonde: Sonde, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    limits = ("--at-least", "read=800MB/s", "--at-least", "write=900MB/s")
    completed = sonde("gate", "last", *limits, "--retests", "0", "--junit", file, "--annotate", "github")
    sentence = "read (bytes_per_s): measured 700 MB/s; the limit is 800 MB/s."
    assert completed.code == 1
    assert completed.out.splitlines()[-1] == f"::error title=Too slow::{sentence}"
    suite = ElementTree.parse(file).getroot()[0]
    assert [suite.get(name) for name in ("name", "tests", "failures")] == ["sonde gate: the given limits", "2", "1"]
    assert [case.get("name") for case in suite] == ["read (bytes_per_s)", "write (bytes_per_s)"]


@pytest.mark.usefixtures("slow_read")
def test_invalid_output_options_get_one_sentence(sonde: Sonde, tmp_path: Path) -> None:
    both = gate(sonde, "--json", "--annotate", "github")
    assert (both.code, both.sentences) == (2, ["sonde: --json and --annotate exclude each other; give one of them."])
    absent = tmp_path / "absent"
    completed = gate(sonde, "--junit", absent / "gate.xml")
    sentence = f"sonde: {absent / 'gate.xml'} cannot be written: the directory {absent} does not exist."
    assert (completed.code, completed.out, completed.sentences) == (2, "", [sentence])
    (tmp_path / "gate.xml").symlink_to(tmp_path / "gate.xml")
    completed = gate(sonde, "--junit", tmp_path / "gate.xml")
    sentence = f"sonde: {tmp_path / 'gate.xml'} cannot be written: Too many levels of symbolic links."
    assert (completed.code, completed.sentences) == (2, [sentence])


@pytest.mark.usefixtures("slow_read")
def test_junit_reader_understands_the_file(sonde: Sonde, tmp_path: Path) -> None:
    """junitparser is a reader of others, which Jenkins-like services use."""
    file = tmp_path / "gate.xml"
    gate(sonde, "--junit", file)
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == (
        "sonde gate: baseline:good",
        2,
        1,
        0,
        0,
    )
    read, write = suite
    assert [(type(result), result.message) for result in read.result] == [(junitparser.Failure, SLOW_NUMBER_TEXT)]
    assert (write.is_passed, write.classname) == (True, "probe")


def test_unjudged_and_odd_text_stay_well_formed() -> None:
    root = ElementTree.fromstring(format_junit_document([ODD, UNJUDGED], "b\x00", ["now, p: busy."]).encode())
    suite = root[0]
    assert (suite.get("name"), suite.get("failures"), suite.get("skipped")) == ("sonde gate: b\\x00", "1", "1")
    odd, unjudged, caveat = suite
    assert (odd.get("name"), odd.get("classname")) == ("a<b", "p\\x1b%\\n")
    assert odd[0].get("message") == 'p\\x1b%\\n: 50 % "too" slow\\ud800.'
    assert (unjudged[0].tag, unjudged[0].get("message")) == ("skipped", UNJUDGED.sentence)
    assert caveat.text == "Doubtful now, p: busy."
    assert format_github_commands([ODD, UNJUDGED], ["now, p: busy."]).splitlines() == [
        '::error title=Too slow::p\\x1b%25\\n: 50 %25 "too" slow\\ud800.',
        f"::warning title=Not judged::{UNJUDGED.sentence}",
        "::warning title=Doubtful::now, p: busy.",
    ]
    issues = json.loads(format_gitlab_report([ODD, UNJUDGED], ["now, p: busy."]))
    jsonschema.validate(issues, CODE_QUALITY)
    assert [(issue["severity"], issue["location"]["path"]) for issue in issues] == [
        ("major", "p\\x1b%\\n"),
        ("info", "p"),
    ]
    assert issues[1]["description"] == f"{UNJUDGED.sentence} (1 caveat: now, p: busy.)"
