# SPDX-License-Identifier: Apache-2.0
"""The variables of obdfilter-survey, its combinations and lines, and what is said to `lctl` in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sonde.dialects.survey.echo import EchoSurvey
from sonde.dialects.survey.plans import (
    SurveyResult,
    build_point_plan,
    compute_rate_samples,
    format_result_line_end,
    format_result_line_start,
)
from sonde.dialects.survey.stored_run import make_imported_run
from sonde.dialects.survey.variables import SurveyPoint, SurveySettings, parse_survey_settings
from sonde.model.errors import MachineError, RunFailedError, UserError
from sonde.model.lines import SeriesLine
from sonde.model.parents import TargetParents
from sonde.store.archive import Archive
from sonde.store.imports import add_imported_runs

DEVICES = """  0 UP osd-ldiskfs lustre-OST0000-osd lustre-OST0000-osd_UUID 5
  1 UP obdfilter lustre-OST0000 lustre-OST0000_UUID 7
  2 UP obdfilter lustre-OST0001 lustre-OST0001_UUID 7
  3 IN obdfilter lustre-OST0002 lustre-OST0002_UUID 7
"""


def survey(text: str = "", **environment: str) -> SurveySettings:
    return parse_survey_settings(text.split(), environment)


def test_defaults_equal_the_original_script() -> None:
    settings = survey()
    assert (settings.case, settings.size, settings.records) == ("disk", 16384, (1024, 1024))
    assert (settings.objects, settings.threads) == ((1, 16), (1, 16))
    assert settings.tests == ("write", "rewrite", "read")
    assert not settings.verify


def test_arguments_override_environment_variables() -> None:
    settings = survey("thrhi=4 targets=c", nobjhi="2", thrhi="64", size="1024", targets="a b")
    assert (settings.objects, settings.threads, settings.size, settings.targets) == ((1, 2), (1, 4), 1024, ("c",))
    assert survey(targets="a b").targets == ("a", "b")
    assert survey("targets=a,b").targets == ("a", "b")


def test_sizes_double_and_threads_are_a_multiple_of_objects() -> None:
    points = survey("nobjhi=4 thrhi=4 rszlo=64 rszhi=128").list_points()
    one_size = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4)]
    assert [(p.record, p.objects, p.threads) for p in points] == [(r, n, t) for r in (64, 128) for n, t in one_size]
    assert [(p.objects, p.threads) for p in survey("nobjlo=3 nobjhi=3 thrlo=4 thrhi=6").list_points()] == []


WRONG_VARIABLES = {
    "size=0": "size=0",
    "size=x": "whole number",
    "nobjlo=8 nobjhi=4": "more than",
    "sise=4": "Did you mean",
    "stray": "name=value",
    "tests_str=read": "must be write",
    "case=network": "not built into Sonde",
    "size=1 thrlo=16 thrhi=16": "make it larger",
}


@pytest.mark.parametrize("text", WRONG_VARIABLES)
def test_wrong_variables_are_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match=WRONG_VARIABLES[text]):
        survey(text)
    with pytest.raises(UserError, match="names frob"):
        parse_survey_settings(["tests_str=write frob"], {})


def test_output_lines_equal_the_original_script() -> None:
    # The line of its documentation: eight OSTs of 8 GiB, an object and a thread on each.
    eight = survey("size=8192 thrhi=1 nobjhi=1", targets=" ".join("abcdefgh"))
    assert (
        format_result_line_start(eight, SurveyPoint(1024, 1, 1)) == "ost  8 sz 67108864K rsz 1024K obj    8 thr    8 "
    )
    assert format_result_line_end([SurveyResult("write", 613.54, 64.0, 82.0)]) == "write  613.54 [  64.00,   82.00] "
    assert format_result_line_end([SurveyResult("read", 1.0)]) == "read    1.00             SHORT "
    assert (
        format_result_line_end([SurveyResult("read", 1.0, 1.0, 2.0, failed=True)]) == "read    1.00             ERROR "
    )


def test_survey_point_becomes_a_plan(tmp_path: Path) -> None:
    settings = survey(f"size=64 targets={tmp_path}/a,{tmp_path}/b")
    plan = build_point_plan(settings, SurveyPoint(1024, 2, 4)).document
    assert plan["tasks"] == {"processes": 8}
    files = plan["data"]["files"]
    assert (files["mapping"], files["group_size"]) == ("per_group", 2)
    assert files["paths"] == [f"{tmp_path}/a/sonde-survey-object", f"{tmp_path}/b/sonde-survey-object"]
    # Each thread has its part: eight of 16 MiB make two targets of 64 MiB.
    assert plan["data"]["access"] == {"transfer": 1 << 20, "block": 16 << 20}
    assert plan["data"]["io"] == {"direct": True}
    assert [(phase["id"], phase["op"]) for phase in plan["phases"]] == [
        ("write", "write"),
        ("rewrite", "rewrite"),
        ("read", "read"),
        ("destroy", "remove"),
    ]


def test_samples_are_full_seconds_of_a_single_target() -> None:
    mib = 1 << 20
    series = SeriesLine(phase="write", slice_s=0.4, bytes=(mib,) * 3 + (3 * mib,) * 3 + (mib,))
    assert compute_rate_samples(series, 2) == pytest.approx([3 / 1.2 / 2, 9 / 1.2 / 2])
    assert compute_rate_samples(SeriesLine(phase="write", slice_s=0.1, bytes=(mib,) * 9), 1) == []
    assert compute_rate_samples(None, 1) == []


class Lustre:
    """OperationTimes as `lctl` does, and remembers what was said."""

    def __init__(self, answer: str = "1/1 Total: 100.000000/second\n1/1 Total: 80.000000/second\n") -> None:
        self.said: list[tuple[list[list[str]], str]] = []
        self.attached: list[str] = []
        self.answer = answer
        self.objects = "create: #1 is object id 0x2\ncreate: #2 is object id 0x3\n"

    def __call__(self, commands: Sequence[Sequence[str]], stdin: str) -> list[str]:
        self.said.append(([list(command) for command in commands], stdin))
        first_command = commands[0]
        if stdin.startswith("attach"):
            self.attached.append(stdin.split()[2])
        if first_command[:1] == ["dl"]:
            more = [f"  {9 + index} UP echo_client {name} {name}_UUID 3\n" for index, name in enumerate(self.attached)]
            return [DEVICES + "".join(more)]
        if "create" in first_command:
            return [self.objects]
        if "test_brw" in first_command:
            return ["Selected device 9\n" + self.answer + "Total: total 8 threads 2 sec 2.0 4.0/second\n"] * len(
                commands
            )
        return [""] * len(commands)


def test_the_sequence_for_lctl_is_that_of_the_original() -> None:
    lustre, times = Lustre(), iter(range(100))
    settings = survey("size=64 nobjhi=2 targets=lustre-OST0000,lustre-OST0001 tests_str=write")
    echo = EchoSurvey(settings, lustre, lambda: float(next(times)))
    with echo.open_echo_clients(echo.list_targets()) as clients:
        assert clients == [9, 10]
        (result,) = echo.run_tests(SurveyPoint(1024, 2, 4), clients)
    calls = [call for call in lustre.said if call[0] != [["dl"]]]
    attach = "attach echo_client {0}_ecc {0}_ecc_UUID\nsetup {0}\n"
    brw = "--threads 4 -1 {} test_brw 16 wx q 256 2t2 p256"
    assert calls == [
        ([[]], attach.format("lustre-OST0000")),
        ([[]], attach.format("lustre-OST0001")),
        ([["--device", "9", "create", "2"]], ""),
        ([["--device", "10", "create", "2"]], ""),
        ([brw.format(9).split(), brw.format(10).split()], ""),
        ([["--device", "9", "destroy", "2", "2"]], ""),
        ([["--device", "10", "destroy", "2", "2"]], ""),
        ([[]], "--device lustre-OST0000_ecc cleanup\n--device lustre-OST0000_ecc detach\n"),
        ([[]], "--device lustre-OST0001_ecc cleanup\n--device lustre-OST0001_ecc detach\n"),
    ]
    # 2 targets x 4 threads x 16 records of 1 MiB in one second of the clock; 80 to 100 records a second at a target.
    assert result == SurveyResult("write", 128.0, 80.0, 100.0, each=(4.0, 4.0))


def test_stored_run_has_total_servers_and_targets(tmp_path: Path) -> None:
    """The table of a survey of two OSSs with two OSTs each: 3757 MB/s written by both, 1899 and 1858 by each."""
    settings = survey("size=16384 targets=lustre-OST0000,lustre-OST0001,lustre-OST0002,lustre-OST0003 tests_str=write")
    levels = {"OSS": {"oss1": ("OST0000", "OST0001"), "oss2": ("OST0002", "OST0003")}}
    written = SurveyResult("write", 3700.0, 900.0, 960.0, each=(950.0, 949.0, 929.0, 929.0))
    began = datetime(2012, 4, 30, 12, tzinfo=UTC)
    point = SurveyPoint(1024, 8, 64)
    run = make_imported_run(settings, point, [written], began, 20.0, "client", "survey-1", TargetParents("s", levels))
    rates = {phase.phase: (phase.bytes_per_s or 0) / 2**20 for phase in run.phases}
    assert rates == {
        "write": 3700.0, "write oss1": 1899.0, "write oss2": 1858.0,
        "write OST0000": 950.0, "write OST0001": 949.0, "write OST0002": 929.0, "write OST0003": 929.0,
    }  # fmt: skip
    moved = {phase.phase: phase.bytes for phase in run.phases}
    assert moved == {name: (4 << 34) // (4 if "OST" in name else 2 if "oss" in name else 1) for name in moved}
    assert {phase.definition for phase in run.phases} == {
        "obdfilter-survey", "obdfilter-survey, one OSS", "obdfilter-survey, one OST"
    }  # fmt: skip
    add_imported_runs(Archive(tmp_path), [run], {"file": "lctl"}, None, lambda done: None)
    (folder,) = tmp_path.glob("20*/*")
    assert json.loads((folder / "run.json").read_text())["context"]["osts"]["OST0002"] == "oss2"


def test_host_serves_targets_without_system_file() -> None:
    settings = survey("size=64 targets=lustre-OST0000,lustre-OST0001 tests_str=write")
    silent = SurveyResult("write", 10.0, each=(5.0, None))
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    run = make_imported_run(settings, SurveyPoint(1024, 1, 1), [silent], moment, 1.0, "oss7", "g", TargetParents())
    assert [phase.phase for phase in run.phases] == ["write", "write OST0000"]
    both = SurveyResult("write", 10.0, each=(5.0, 4.0))
    served = make_imported_run(settings, SurveyPoint(1024, 1, 1), [both], moment, 1.0, "oss7", "g", TargetParents())
    assert "write oss7" in {phase.phase for phase in served.phases}
    over_network = survey("size=64 case=netdisk targets=lustre-OST0000-osc-ffff tests_str=write")
    nine = SurveyResult("write", 9.0, each=(9.0,))
    alone = make_imported_run(over_network, SurveyPoint(1024, 1, 1), [nine], moment, 1.0, "c", "g", TargetParents())
    assert [phase.phase for phase in alone.phases] == ["write", "write OST0000"]


def test_reads_are_verified_on_request_and_errors_are_reported() -> None:
    lustre = Lustre("error: test_brw: #1 - 0x2: Input/output error\n")
    settings = survey("size=64 verify=1 tests_str=write targets=lustre-OST0000 nobjhi=2")
    echo = EchoSurvey(settings, lustre)
    (result,) = echo.run_tests(SurveyPoint(1024, 2, 2), [9])
    assert result.failed
    assert "w" in lustre.said[1][0][0]
    assert lustre.said[-1][0] == [["--device", "9", "destroy", "2", "2"]]


def test_default_targets_are_all_that_are_up() -> None:
    assert EchoSurvey(survey(), Lustre()).list_targets() == ["lustre-OST0000", "lustre-OST0001"]
    with pytest.raises(UserError, match="lustre-OST0002 is neither"):
        EchoSurvey(survey("targets=lustre-OST0002"), Lustre()).list_targets()
    with pytest.raises(MachineError, match="no osc that is UP"):
        EchoSurvey(survey("case=netdisk"), Lustre()).list_targets()


def test_objects_must_be_in_a_row_and_clients_go_again() -> None:
    lustre = Lustre()
    lustre.objects = "create: #1 is object id 0x2\ncreate: #2 is object id 0x9\n"
    echo = EchoSurvey(survey("size=64 targets=lustre-OST0000 nobjhi=2"), lustre)
    with pytest.raises(RunFailedError, match="in a row"), echo.open_echo_clients(["lustre-OST0000"]) as clients:
        echo.run_tests(SurveyPoint(1024, 2, 2), clients)
    assert lustre.said[-1][1].endswith("detach\n")
