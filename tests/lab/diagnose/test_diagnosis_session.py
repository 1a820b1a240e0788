# SPDX-License-Identifier: Apache-2.0
"""An open diagnosis: results by hand, explanation, confirmation, page and archive for the vendor."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from sonde.charts.study import write_study_page
from sonde.cli.main import main
from sonde.diagnose.diagnosis import DiagnosisStopRule
from sonde.diagnose.diagnosis_model import DiagnosisModel
from sonde.diagnose.diagnosis_page import build_diagnosis_page
from sonde.diagnose.diagnosis_session import DiagnosisSession
from sonde.diagnose.diagnosis_state import DiagnosisState
from sonde.diagnose.diagnosis_text import (
    describe_answer,
    describe_candidate,
    describe_next_experiment,
    describe_next_steps,
    describe_second_cause,
)
from sonde.diagnose.library import find_diagnosis_experiment
from sonde.diagnose.modeled_truth import ModeledTruth
from sonde.diagnose.predictive_check import PredictiveCheck
from sonde.diagnose.simulation import Simulator
from sonde.diagnose.stated_results import parse_stated_result
from sonde.diagnose.vendor_bundle import Redaction, build_vendor_bundle
from sonde.model.errors import UserError
from sonde.store.archive import Archive


@pytest.fixture
def session(diagnosis_model: DiagnosisModel, simulator: Simulator) -> DiagnosisSession:
    """A diagnosis of a slow target on the model, after one experiment."""
    state = DiagnosisState("small", truth=ModeledTruth(("slow-target t5 4",), seed=5))
    opened = DiagnosisSession(state, diagnosis_model, simulator)
    opened.run_on_model("every-target")
    return opened


def test_hand_result_is_a_log_ratio() -> None:
    result = parse_stated_result(find_diagnosis_experiment("names"), ["create=-40%", "stat=0.5x", "remove=2"])
    assert result.runs[0].rates == pytest.approx({"create": log(0.6), "stat": log(0.5), "remove": log(2)})


@pytest.mark.parametrize(
    ("text", "expected_problem"),
    [
        ("write=-40%", "its phases are create, stat, remove"),
        ("create=slow", "no change"),
        ("create=-100%", "no change"),
    ],
)
def test_wrong_hand_result_is_refused(text: str, expected_problem: str) -> None:
    with pytest.raises(UserError, match=expected_problem):
        parse_stated_result(find_diagnosis_experiment("names"), [text])


def test_explanation_names_the_result_that_decides(session: DiagnosisSession) -> None:
    (row,) = session.list_evidence_for_hypothesis("slow-target:t0-t7")
    assert row.comment == "strongly for"
    assert "slowest target in write: t5" in row.measured
    (against,) = session.list_evidence_for_hypothesis("nothing")
    assert against.comment == "strongly against"


def test_explanation_of_a_refused_fault_gives_the_reason(session: DiagnosisSession) -> None:
    with pytest.raises(UserError, match=r"is no hypothesis for this machine: .*no link"):
        session.list_evidence_for_hypothesis("slow-link:n1-n4")


def test_confirmation_repeats_the_deciding_experiment(session: DiagnosisSession) -> None:
    confirmation = session.confirm_fix(())
    assert confirmation.experiment == "every-target"
    assert confirmation.is_fixed
    assert (
        session.answer.most_probable.hypothesis.id == "slow-target:t0-t7"
    )  # the evidence about the fault is unchanged


def test_real_machine_needs_a_hand_result_to_confirm(diagnosis_model: DiagnosisModel, simulator: Simulator) -> None:
    opened = DiagnosisSession(DiagnosisState("small"), diagnosis_model, simulator)
    with pytest.raises(UserError, match="no cause to confirm"):
        opened.confirm_fix(())
    opened.add_result(
        parse_stated_result(find_diagnosis_experiment("every-target"), ["write=-60%", "read=-60%"]), "hand"
    )
    with pytest.raises(UserError, match="Repeat every-target"):
        opened.confirm_fix(())
    assert not opened.confirm_fix(["write=-55%", "read=-1%"]).is_fixed


def test_part_that_may_be_another_has_its_probability(session: DiagnosisSession) -> None:
    first = session.find_candidate("slow-target:t0-t7")
    assert describe_candidate(replace(first, part_probability=0.96)) == "a storage target is slow: t5"
    assert describe_candidate(replace(first, part_probability=0.55)) == "a storage target is slow: perhaps t5 (55 %)"
    assert describe_candidate(replace(first, part_probability=0.4)) == "a storage target is slow (one of 8: t0 to t7)"


def test_contradiction_names_the_measurement(session: DiagnosisSession) -> None:
    answer = replace(session.answer, status="contradicted", check=PredictiveCheck("names", "stat", 0.002))
    sentences = describe_answer(answer)
    assert sentences[0] == "None of the hypotheses explains the results."
    assert "contradicts stat of names (p = 0.002)" in sentences[1]


def test_page_lists_the_steps_in_order(session: DiagnosisSession, tmp_path: Path) -> None:
    session.run_on_model("names")
    page = write_study_page(build_diagnosis_page(session), tmp_path / "case.html").read_text(encoding="utf-8")
    assert page.index("Step 1: every-target") < page.index("Step 2: names")
    assert "a storage target is slow: t5" in page
    assert "<script" not in page


def test_page_and_document_have_the_sentences_of_the_terminal(
    diagnosis_model: DiagnosisModel, simulator: Simulator, tmp_path: Path
) -> None:
    session = DiagnosisSession(DiagnosisState("small"), diagnosis_model, simulator)
    session.add_result(
        parse_stated_result(find_diagnosis_experiment("every-target"), ["write=-5%", "read=-30%"]), "hand"
    )
    page = write_study_page(build_diagnosis_page(session), tmp_path / "case.html").read_text(encoding="utf-8")
    choice = session.choose_next(DiagnosisStopRule())
    assert choice.experiment is not None
    experiment = session.model.find_experiment(choice.experiment)
    assert describe_next_experiment(experiment, choice.values[0].cost_s) in page
    (sentence,) = describe_next_steps(session.model, session.answer)  # no advice while nothing is decided
    assert sentence in page
    assert sentence in session.to_json()["sentences"]
    assert page.count(describe_answer(session.answer)[0]) == 1
    assert "interval" not in page.partition("Step 1")[2].partition("For and against")[0]


def test_bundle_has_no_names_of_hosts(session: DiagnosisSession, tmp_path: Path) -> None:
    names = build_vendor_bundle(session, Archive(tmp_path / "archive"), tmp_path / "case.tar.gz")
    with tarfile.open(tmp_path / "case.tar.gz") as bundle:
        texts = [bundle.extractfile(member).read().decode() for member in bundle.getmembers()]  # type: ignore[union-attr]
    assert len(texts) == len(names) == 4
    assert not any(host in text for host in ("oss1", "oss3", 'mds"') for text in texts)
    assert any("server-3" in text for text in texts)
    assert all("t5" in text for text in texts[:2])  # parts that a vendor must find keep their names


def test_redaction_is_consistent_across_documents() -> None:
    redaction = Redaction({"nodes": [{"id": "n1"}, {"id": "n12"}]}, ("login.example.org",))
    assert redaction.redact_text("n12 n1 n1-n12 login.example.org") == "node-2 node-1 node-1-node-2 host-3"
    document = redaction.redact_document({"n1": ["n12"], "nid": "7@o2ib", "title": "ours"})
    assert document == {"node-1": ["node-2"]}


def test_bundle_of_a_directory_has_no_path(tmp_path: Path) -> None:
    case, bundle_file, scratch = tmp_path / "case.json", tmp_path / "case.tar.gz", tmp_path / "anna"
    scratch.mkdir()
    archive = ["--archive", str(tmp_path / "archive")]
    assert main(["diagnose", "start", str(case), "--directory", str(scratch)]) == 0
    assert main(["diagnose", "answer", str(case), "cached-file", "write=-60%", *archive]) == 0
    assert main(["diagnose", "bundle", str(case), "--out", str(bundle_file), *archive]) == 0
    with tarfile.open(bundle_file) as bundle:
        texts = [bundle.extractfile(member).read().decode() for member in bundle.getmembers()]  # type: ignore[union-attr]
    assert len(texts) == 4
    assert not any("anna" in text for text in texts)
    assert "mount the directory" in texts[3]


def test_logs_are_evidence_once(diagnosis_model: DiagnosisModel, simulator: Simulator, tmp_path: Path) -> None:
    session = DiagnosisSession(DiagnosisState("small"), diagnosis_model, simulator)
    log_file = tmp_path / "messages"
    log_file.write_text("Mar 17 09:00:00 mds kernel: mdt: This server is not able to keep up with request traffic.\n")
    before = session.find_candidate("mds-saturated").probability
    assert session.add_logs([log_file]) == (
        "Messages in the logs: rebuild: no, drive: no, router: no, recovery: no, metadata: yes."
    )
    assert session.find_candidate("mds-saturated").probability > 2 * before
    assert "metadata messages: yes" in session.describe_last_result()
    with pytest.raises(UserError, match="were entered already"):
        session.add_logs([log_file])


def test_messages_are_entered_by_hand_as_yes_or_no() -> None:
    experiment = find_diagnosis_experiment("server-messages")
    result = parse_stated_result(experiment, ["rebuild=yes", "drive=no"])
    assert result.runs[0].messages == {"rebuild": True, "drive": False}
    with pytest.raises(UserError, match="write rebuild=yes or rebuild=no"):
        parse_stated_result(experiment, ["rebuild=-40%"])


def test_messages_entered_by_hand_may_name_parts(diagnosis_model: DiagnosisModel) -> None:
    experiment = find_diagnosis_experiment("server-messages")
    result = parse_stated_result(experiment, ["rebuild=oss1,oss3", "router=no"], diagnosis_model.machine)
    logged = {name for name, is_logged in result.runs[0].messages.items() if is_logged}
    assert logged == {"rebuild oss1", "rebuild oss3"}
    with pytest.raises(UserError, match="write rebuild=yes, rebuild=no or rebuild=oss1"):
        parse_stated_result(experiment, ["rebuild=oss9"], diagnosis_model.machine)


def test_single_cause_has_no_second_cause(session: DiagnosisSession) -> None:
    session.run_on_model("names")
    causes, _ = session.find_second_cause()
    sentences = describe_second_cause(causes)
    assert sentences[0].endswith("a storage target is slow: t5.")
    assert sentences[1].startswith("Beside it nothing else is wrong")
    assert causes.to_json()["first"]["part"] == "t5"


def test_undecided_pair_lists_further_candidates(session: DiagnosisSession) -> None:
    causes, _ = session.find_second_cause()
    other = next(item for item in causes.seconds if item.hypothesis.kind == "cause")
    seconds = (replace(other, probability=0.6), replace(causes.second_cause, probability=0.3))
    undecided = replace(causes, seconds=seconds, probability=0.55, unexplained=0.1)
    first, second, doubt, unexplained = describe_second_cause(undecided)
    assert first.startswith("If there are two causes, the first is (")
    assert second.startswith("The second is (60 %)")
    assert doubt.startswith("This is not decided: both together have 55 %; not excluded beside the first: ")
    assert unexplained == "That no pair explains the results has 10 %."
