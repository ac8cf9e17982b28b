"""Strands, the real package in its own environment, drives a model-driven pipeline over our conversations."""

from __future__ import annotations

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from conversations.actions.redacting import redact_content
from conversations.log import append
from conversations.models import Conversation, Event
from harness.content import Text
from harness.errors import Conflict
from harness.events import AgentToolResult, AgentToolUse
from harness.history import Entry
from harness.redacted import REMOVED
from jobs.engine import engine
from pipelines import driving
from pipelines.actions.definitions import save_pipeline
from pipelines.actions.runs import start_run
from pipelines.files import read_pipeline
from pipelines.graph.checking import problems
from pipelines.jobs import look
from pipelines.models import PipelineRun
from pipelines.running import go_on
from pipelines.shipped import example_pipelines
from pipelines.showing import show
from pipelines.withstrands.process import PROGRAM, Broken, end, interpreter, orchestrated
from tests.patience import PATIENCE

from .conftest import QUESTION, asked, ended, names, spec_of, step

pytestmark = pytest.mark.django_db(transaction=True)
STRANDS = "orchestrated-answer"
ASKS = '{"ask": [{"specialist": "%s", "task": "%s"}]}'


@pytest.fixture(scope="module", autouse=True)
def _no_loop_is_left():
    yield
    end()


def specialist(name: str, *script: str, **more):
    return step(name, *script, about="Does things.", prompt="{{task}}", **more)


def test_the_orchestrator_has_its_specialists_work_and_is_told_what_they_said(
    alice, acme, worker, environment
):
    spec = read_pipeline(example_pipelines()[STRANDS])
    version = save_pipeline(actor=alice, organisation=acme, spec=spec)

    run = ended(start_run(actor=alice, pipeline=version.pipeline, question=QUESTION, scripted=True))

    assert run.problem == ""
    first = ["orchestrate", "research", "calculate"]
    assert names(run) == [*first, "orchestrate", "write", "review", "orchestrate"]
    ways = [each.came_by for each in run.steps.order_by("place")]
    assert ways[:4] == ["start", "orchestrate.0", "orchestrate.1", "calculate.0"]
    assert QUESTION in asked(run, 1)
    assert "- research: Looks facts up" in asked(run, 1)
    assert "Your task: How high is the tower today" in asked(run, 2)
    assert "Facts: The tower is 330 m high" in asked(run, 3)
    told = asked(run, 7)
    places = [
        told.index(each)
        for each in (
            QUESTION,
            "You asked research:\nHow high",
            "You asked calculate:\nTwice",
            "research answered:\nThe tower is 330 m",
            "calculate answered:\n2 × 330 m",
            "You asked write:",
            "review answered:\nIt is right",
        )
    ]
    assert places == sorted(places)
    shown = show(run, alice)
    assert shown.answer.startswith(
        "Two of them are 660 m high, since the tower has 330 m since 2022"
    )
    assert shown.steps[0].answer.startswith("**research**: How high")
    assert sum(line.taken for line in shown.drawing.lines) == 7


def test_what_cannot_be_used_is_asked_again_and_what_fails_is_told(start):
    run = start(
        step("lead", ASKS % ("nobody", "x"), ASKS % ("a", "It is due"), "All done.", tries=2),
        specialist("a", " "),
        engine="strands",
    )
    assert ended(run).state == "done", run.problem
    assert names(run) == ["lead", "lead", "a", "lead"]
    assert [each.came_by for each in run.steps.order_by("place")][1] == "retry"
    assert "there are: a." in asked(run, 2)
    assert asked(run, 3) == "It is due"
    assert "a came to no answer: It said nothing." in asked(run, 4)


def test_an_orchestrator_that_never_answers_is_stopped_by_its_bound(start):
    run = start(step("lead", ASKS % ("a", "More")), specialist("a"), engine="strands", turns=2)
    assert ended(run).state == "failed"
    assert "took 2 turns" in run.problem
    assert names(run) == ["lead", "a", "lead"]


def test_words_of_strangers_mark_whoever_is_told_them_and_what_is_taken_out_goes_everywhere(
    start, alice
):
    run = ended(
        start(
            step("lead", ASKS % ("a", "Find the swordfish"), "Here it is."),
            specialist("a", "It swims."),
            engine="strands",
        )
    )
    first = run.steps.get(place=1).conversation
    assert asked(run, 2) == "Find the swordfish"
    assert "Find the swordfish" in asked(run, 3)
    assert first is not None
    said = Event.objects.get(conversation=first, type="agent.message")

    redact_content(actor=alice, conversation=first, event_uid=said.uid)

    assert asked(run, 2) == asked(run, 3) == REMOVED
    assert run.steps.get(place=1).outcome["calls"] == [{"to": "a", "task": REMOVED}]
    assert not Event.objects.filter(payload__icontains="swordfish").exists()
    # As if the last turn had never begun, and what the specialist read were a stranger's.
    place = run.steps.get(place=2).conversation
    use = Entry.of(AgentToolUse(name="fetch", input={}, model_request_id="r"))
    brought = AgentToolResult(tool_use_id=use.uid, content=(Text(text="Hi"),), untrusted=True)
    append(place.pk, [use, Entry.of(brought)])
    Conversation.objects.get(pipeline_step__run=run, pipeline_step__place=3).delete()
    run.steps.get(place=3).delete()
    PipelineRun.objects.filter(pk=run.pk).update(state="running", ended_at=None)
    go_on(run.pk)
    assert ended(run).state == "done"
    third = Event.objects.get(conversation=run.steps.get(place=3).conversation, type="user.message")
    assert third.payload["untrusted_by"] == "fetch, by way of the step a"


def test_without_the_environment_it_is_said_and_nothing_starts(
    alice, acme, worker, environment, settings, tmp_path
):
    spec = read_pipeline(example_pipelines()[STRANDS])
    version = save_pipeline(actor=alice, organisation=acme, spec=spec)
    settings.AGENTSITE_STRANDS_DIR = str(tmp_path)
    assert driving.driver_of(spec) is None
    with pytest.raises(Conflict, match="Strands is not installed on this server"):
        start_run(actor=alice, pipeline=version.pipeline, question=QUESTION, scripted=True)
    assert not PipelineRun.objects.exists()


def test_a_run_waits_while_strands_does_not_start(start, settings, tmp_path):
    """As while `make strands` is under way, or has failed."""
    end()
    there = settings.AGENTSITE_STRANDS_DIR
    bare = tmp_path / "bin" / "python"
    bare.parent.mkdir()
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o700)
    settings.AGENTSITE_STRANDS_DIR = str(tmp_path)
    run = start(step("lead", "All done."), specialist("a"), engine="strands")
    engine.submit(partial(engine.settle, PATIENCE)).result(PATIENCE)
    run.refresh_from_db()
    assert (names(run), run.state) == ([], "running")
    settings.AGENTSITE_STRANDS_DIR = there

    async def again() -> None:
        await look(run.pk)

    engine.submit(again).result(PATIENCE)
    assert ended(run).state == "done"


def test_the_loop_has_no_variables_of_ours_reaches_nothing_and_is_begun_anew_when_it_dies():
    pids: list[int] = []

    def kill(_heard):
        os.kill(_children()[0], signal.SIGKILL)
        return {"text": "answer:1"}

    def answer(heard):
        (pid,) = _children()
        pids.append(pid)
        environ = Path(f"/proc/{pid}/environ").read_bytes().decode()
        assert {each.partition("=")[0] for each in environ.split("\0") if each} == {
            "PATH",
            "LANG",
            "OTEL_SDK_DISABLED",
            "AWS_EC2_METADATA_DISABLED",
        }
        return {"text": "answer:1"}

    assert orchestrated(["a"], answer) == {"end": "end_turn"}
    os.kill(pids[0], signal.SIGKILL)
    with pytest.raises(Broken):
        orchestrated(["a"], kill)
    end()
    assert _children() == []


def test_who_is_forked_meanwhile_does_not_keep_it_from_ending_with_its_host():
    ended: list[int] = []

    def answer(_heard):
        (loop,) = _children()
        pipes = {link for link in _links(f"/proc/{loop}/fd") if link.startswith("pipe:")}
        assert pipes
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = int(bool(pipes & _links("/proc/self/fd")))
            finally:
                os._exit(code)
        ended.append(os.waitpid(child, 0)[1])
        return {"text": "answer:1"}

    assert orchestrated(["a"], answer) == {"end": "end_turn"}, "nor does it lose its own host"
    assert ended == [0], "its input ends with the one process that speaks with it"


def _links(folder: str) -> set[str]:
    """What the numbers there mean. The one by which it is read is gone by then."""
    there = [each for each in Path(folder).iterdir() if each.is_symlink()]
    return {str(each.readlink()) for each in there}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("exit 1", "it has ended"),
        ("echo hello; sleep 9", "is no JSON"),
        ("echo []; sleep 9", "is no object"),
        ("yes | tr -d '\\n'", "more in one line than is read"),
    ],
)
def test_an_environment_that_is_none_is_named_and_its_process_does_not_stay(
    settings, tmp_path, program, words
):
    end()
    stand_in = tmp_path / "bin" / "python"
    stand_in.parent.mkdir()
    stand_in.write_text(f"#!/bin/sh\n# withstrands\n{program}\n")
    stand_in.chmod(0o700)
    settings.AGENTSITE_STRANDS_DIR = str(tmp_path)
    with pytest.raises(Broken, match=words):
        orchestrated(["a"], lambda _heard: {})
    assert _children() == []


def test_the_program_may_not_connect_write_or_begin_another(tmp_path):
    tried = (
        "import runpy, socket, subprocess, sys;"
        f"runpy.run_path({str(PROGRAM)!r})['confine']();"
        "got = [];"
        "\nfor act in (lambda: socket.create_connection(('127.0.0.1', 9)),"
        " lambda: socket.getaddrinfo('localhost', 80), lambda: subprocess.run(['true']),"
        " lambda: open(sys.argv[1], 'w').write('x' * 9999)):"
        "\n    try: act()"
        "\n    except OSError as problem: got.append(type(problem).__name__)"
        "\nprint(*got)"
    )
    done = subprocess.run(
        [str(interpreter()), "-I", "-c", tried, str(tmp_path / "new")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == [*["PermissionError"] * 3, "OSError"], done.stderr


def _children() -> list[int]:
    mine = [line for line in Path("/proc").glob("[0-9]*") if _is_loop(line)]
    return [int(each.name) for each in mine]


def _is_loop(process: Path) -> bool:
    try:
        parent = process.joinpath("stat").read_text().rpartition(")")[2].split()[1]
        return (
            int(parent) == os.getpid()
            and b"withstrands" in process.joinpath("cmdline").read_bytes()
        )
    except OSError:
        return False


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([step("lead")], "“lead” has nobody to ask"),
        ([step("lead"), step("a")], "“a” does not say what it is for"),
        ([step("lead"), step("a", about="x")], "“a” is not told its task"),
        ([step("lead", next=[{"to": "a"}]), specialist("a")], "here the orchestrator decides"),
        ([step("lead", prompt="{{a}}"), specialist("a")], "“lead” has {{a}}"),
        ([step("lead"), specialist("a", tries=2)], "“a” may be tried again"),
    ],
)
def test_what_is_wrong_with_an_orchestrated_pipeline_is_said(steps, words):
    assert words in "\n".join(problems(spec_of(*steps, engine="strands")))
