"""Pipelines on their pages, at `/api` and on the command line."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from agents.models import AgentVersion
from harness.agentconfig import ToolRule
from pipelines.actions.definitions import save_pipeline
from pipelines.models import Pipeline, PipelineRun
from pipelines.shipped import example_pipelines
from pipelines.showing import as_json
from tests.cast import shown
from tests.conversations.conftest import until

from .conftest import EXAMPLE, QUESTION, ended, names, spec_of, step

pytestmark = pytest.mark.django_db(transaction=True)
ASKS = {"name": "release", "approval": "May this go out? {{a}}"}


def test_a_manager_defines_a_pipeline_and_sees_its_run_drawn(
    alice, acme, client_of, worker, environment
):
    client = client_of(alice)
    begun = client.get(f"/pipelines/?example={EXAMPLE}").content.decode()
    assert "Reviewed answer" in begun
    client.post("/pipelines/", shown(acme, text=example_pipelines()[EXAMPLE], note=""))
    pipeline = Pipeline.objects.get()
    place = f"/pipelines/{pipeline.uid}/"
    page = client.get(place).content.decode()
    assert page.count("<rect") == 6
    assert "If score is at least 0.7: to the end" in page
    assert "To “research”, at most 1 time" in page

    form = {"question": QUESTION, "environment": environment.uid, "scripted": "on", "limit": ""}
    answer = client.post(place, form)

    run = ended(PipelineRun.objects.get())
    assert answer.headers["Location"] == f"/pipelines/runs/{run.uid}/"
    page = client.get(answer.headers["Location"]).content.decode()
    assert "Two of them are 660 m high" in page
    assert "/now/" not in page, "it asks for no more"
    assert client.get("/pipelines/").content.decode().count(QUESTION) == 1


def test_without_a_model_the_scripts_of_a_pipeline_are_offered_first(
    alice, acme, client_of, example, worker, settings
):
    client, place = client_of(alice), f"/pipelines/{example.pipeline.uid}/"
    form = client.get(place).context["form"]
    assert form["scripted"].initial is True

    version = worker.current
    version.stored_config = {**version.stored_config, "provider": "auto"}
    version.save(update_fields=["stored_config"])
    assert client.get(place).context["form"]["scripted"].initial is True
    settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "a key", "base_url": ""}}
    assert client.get(place).context["form"]["scripted"].initial is False


def test_what_is_wrong_stands_beside_the_form_and_nothing_is_lost(alice, acme, client_of, worker):
    client = client_of(alice)
    text = "name: Line\nagent: General work\nsteps:\n- {name: a, prompt: '{{b}}'}\n"

    answer = client.post("/pipelines/", shown(acme, text=text, note=""))

    assert answer.status_code == 422
    page = answer.content.decode()
    assert "there is no such step" in page
    assert "name: Line" in page
    assert not Pipeline.objects.exists()


def test_a_version_is_added_and_put_away_on_the_page(alice, client_of, start):
    run = ended(start(step("a")))
    pipeline = run.version.pipeline
    client, place = client_of(alice), f"/pipelines/{pipeline.uid}/"
    text = client.get(f"{place}export/").content.decode()
    assert "name: Line" in text

    client.post(f"{place}change/", {"text": text.replace("Do it", "Do it well"), "note": "Better"})

    assert pipeline.newest().number == 2
    page = client.get(f"{place}versions/1/").content.decode()
    assert "Do it: {{question}}" in page
    assert "Better" in page
    client.post(f"{place}archive/")
    assert "put away" in client.get(place).content.decode()
    client.post(f"{place}archive/", {"back": "1"})
    assert "put away" not in client.get(place).content.decode()


def test_a_person_is_asked_on_the_page_beside_her_approvals(alice, client_of, start):
    run = start(step("a", "Draft"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    client, place = client_of(alice), f"/pipelines/runs/{run.uid}/"
    waiting = client.get("/pipelines/waiting/").content.decode()
    assert QUESTION in waiting
    assert "waits</span>" in waiting
    assert "under way" not in waiting
    assert "May this go out? Draft" in client.get(place).content.decode()
    now = client.get(f"{place}now/?mark=running:0")
    assert now.headers["HX-Refresh"] == "true"
    assert "HX-Refresh" not in client.get(f"{place}now/?mark=waits:2").headers

    client.post(f"{place}decide/", {"place": "2", "decision": "approve", "comment": "Yes"})

    assert ended(run).state == "done"
    client.post(f"{place}decide/", {"place": "2", "decision": "refuse"})
    assert "Nobody is asked that any more" in client.get(place).content.decode()
    client.post(f"{place}delete/")
    assert not PipelineRun.objects.exists()


def test_what_a_person_refused_does_not_look_done(alice, client_of, start):
    run = start(step("a"), ASKS)
    until(lambda: run.steps.filter(state="asking").exists())
    client, place = client_of(alice), f"/pipelines/runs/{run.uid}/"
    client.post(f"{place}decide/", {"place": "2", "decision": "refuse", "comment": "Not yet"})
    assert ended(run).state == "failed"
    page = client.get(place).content.decode()
    assert '<span class="badge">refused</span>' in page
    assert page.count("pipeline-node done") == 1


def test_a_page_that_has_what_ended_steps_said_does_not_read_and_send_it_again(
    alice, client_of, start
):
    client, counts = client_of(alice), []
    for number in (3, 10):
        run = ended(start(*(step(f"s{each}") for each in range(number)), name=f"Of {number}"))
        place = f"/pipelines/runs/{run.uid}/now/"
        with CaptureQueriesContext(connection) as asked:
            now = client.get(f"{place}?known={number}").content.decode()
        counts.append(len(asked))
        assert "is done." not in now
        assert f'<div id="said-{number}" hx-preserve="true"></div>' in now
        assert f'<div id="answer-{number}" hx-preserve="true"></div>' in now
        partly = client.get(f"{place}?known={number - 1}").content.decode()
        assert partly.count(f"s{number - 1} is done.") == 2, "as its own and as the run's"
        assert "s0 is done." not in partly
        for odd in ("", "?known=-1", "?known=x"):
            assert "s0 is done." in client.get(f"{place}{odd}").content.decode()
    assert counts[0] == counts[1]


def test_a_long_answer_is_cut_on_the_page_and_whole_for_whoever_asks(alice, client_of, start):
    long = "".join(f"Line {number} of many.\n\n" for number in range(400))
    run = ended(start(step("a", long), step("b")))
    client, place = client_of(alice), f"/pipelines/runs/{run.uid}/"
    page = client.get(place).content.decode()
    assert "Line 10 of many." in page
    assert "Line 399 of many." not in page
    assert f"{place}?whole=1#said-1" in page
    page = client.get(f"{place}?whole=1").content.decode()
    assert "Line 399 of many." in page
    assert "<details open>" in page
    assert "Show all" not in page, "the other one is short"
    assert as_json(run, alice)["steps"][0]["answer"].rstrip().endswith("Line 399 of many.")


def test_lists_of_runs_load_neither_their_pipelines_nor_all_that_was_asked(alice, client_of, start):
    run = start(step("a"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    client = client_of(alice)
    PipelineRun.objects.update(question=f"{QUESTION} {'x' * 500} END")
    for page in ("/pipelines/", "/pipelines/waiting/", f"/pipelines/{run.version.pipeline.uid}/"):
        answer = client.get(page)
        told = answer.content.decode()
        assert told.count(QUESTION) == 1
        assert "END" not in told
        (listed,) = answer.context["runs"]
        assert listed.get_deferred_fields() == {"question"}
        assert listed.version.get_deferred_fields() == {"stored_spec"}


def test_a_run_is_stopped_on_its_page(alice, client_of, start):
    run = start(step("a"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    client, place = client_of(alice), f"/pipelines/runs/{run.uid}/"
    client.post(f"{place}continue/", {"limit": ""})
    assert "Nothing of this run waits" in client.get(place).content.decode()
    client.post(f"{place}continue/", {"limit": "-1"})
    client.post(f"{place}delete/")
    assert PipelineRun.objects.exists()

    client.post(f"{place}stop/")

    run.refresh_from_db()
    assert run.state == "stopped"


@pytest.mark.parametrize("address", ["", "now/", "stop/", "continue/", "decide/", "delete/"])
def test_mallory_finds_no_run(mallory, elsewhere, client_of, start, address):
    run = ended(start(step("a")))
    client = client_of(mallory)
    place = f"/pipelines/runs/{run.uid}/{address}"
    ask = client.get if address in {"", "now/"} else client.post

    assert ask(place).status_code == 404
    run.refresh_from_db()
    assert run.state == "done"
    assert QUESTION not in client.get("/pipelines/").content.decode()
    for page in ("", "change/", "export/", "versions/1/"):
        uid = run.version.pipeline.uid
        assert client.get(f"/pipelines/{uid}/{page}").status_code == 404


# --- programs -------------------------------------------------------------------------------------


@pytest.fixture
def program(client):
    """Asks `/api/pipelines` as a person's token does."""

    def ask(person, method, address="", body=None, scopes=tuple(TokenScope)):
        token = create_token(
            actor=person,
            organisation=person.memberships.get().organisation,
            name="t",
            scopes=list(scopes),
        )
        return client.generic(
            method,
            f"/api/pipelines{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"x-api-key": token.secret},
        )

    return ask


def test_a_program_defines_starts_and_reads(alice, acme, program, worker, mallory, elsewhere):
    made = program(alice, "POST", body={"file": example_pipelines()[EXAMPLE]}).json()
    assert [each["step"] for each in made["steps"]][:2] == ["route", "research"]
    assert program(alice, "GET").json()[0]["name"] == "Reviewed answer"
    asked = {"question": QUESTION, "scripted": True, "limit": 1.5}
    started = program(alice, "POST", f"/{made['id']}/runs", asked)
    assert started.status_code == 201

    ended(PipelineRun.objects.get())

    told = program(alice, "GET", f"/runs/{started.json()['id']}").json()
    assert (told["state"], told["figures"]["steps"]) == ("done", 9)
    assert told["steps"][-1]["outcome"] == {"word": "", "fields": {"score": 0.9}}
    assert told["answer"].startswith("Two of them are 660 m high")
    assert program(alice, "GET", f"/{made['id']}/runs").json()[0]["id"] == told["id"]
    for method, address in (
        ("GET", f"/{made['id']}"),
        ("GET", f"/{made['id']}/runs"),
        ("GET", f"/runs/{told['id']}"),
        ("POST", f"/runs/{told['id']}/stop"),
        ("DELETE", f"/runs/{told['id']}"),
    ):
        assert program(mallory, method, address).status_code == 404
    assert program(mallory, "GET").json() == []
    refused = program(alice, "POST", body={"file": "name: [", "note": ""})
    assert refused.status_code == 422
    assert program(alice, "DELETE", f"/runs/{told['id']}").status_code == 200


def test_a_program_decides_only_with_the_scope_for_it(alice, program, start):
    run = start(step("a"), ASKS, step("b"))
    until(lambda: run.steps.filter(state="asking").exists())
    place, body = f"/runs/{run.uid}", {"place": 2, "approved": True}
    writes = [TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE]
    told = program(alice, "GET", place, scopes=writes).json()
    assert (told["state"], told["asks"]) == ("waits", 2)
    assert program(alice, "POST", f"{place}/decide", body, scopes=writes).status_code == 403
    assert program(alice, "POST", f"{place}/continue", {}, scopes=writes).status_code == 409

    done = program(alice, "POST", f"{place}/decide", body, scopes=[TokenScope.APPROVALS_DECIDE])

    assert done.status_code == 200
    assert ended(run).state == "done"
    assert program(alice, "POST", f"{place}/decide", body).status_code == 409


def test_a_program_starts_no_version_that_asks_less_than_now_without_the_scope_for_it(
    alice, acme, program, worker
):
    version = save_pipeline(actor=alice, organisation=acme, spec=spec_of(step("a")))
    config = worker.current.config.model_copy(
        update={"tools": (ToolRule(tool="bash", permission="always_ask"),)}
    )
    worker.current = AgentVersion.objects.create(
        agent=worker, number=2, stored_config=config.model_dump(mode="json")
    )
    worker.save()
    place, body = f"/{version.pipeline.uid}/runs", {"question": QUESTION, "scripted": True}
    others = [scope for scope in TokenScope if scope != TokenScope.APPROVALS_DECIDE]

    refused = program(alice, "POST", place, body, scopes=others)
    assert refused.status_code == 403
    assert "approvals:decide" in refused.content.decode()
    assert not PipelineRun.objects.exists()
    assert program(alice, "POST", place, body).status_code == 201
    ended(PipelineRun.objects.get())


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def pipeline(capsys, worker, environment):
    def run(*words: str, user: str = "alice") -> tuple[int, str]:
        code = 0
        try:
            call_command("agent", "pipeline", *words, "--user", user)
        except SystemExit as ended:
            code = int(str(ended.code))
        except CommandError as problem:
            return problem.returncode, str(problem)
        return code, capsys.readouterr().out

    return run


def test_a_file_that_cannot_be_read_is_named_in_a_terminal(pipeline, alice, acme, tmp_path):
    code, told = pipeline("import", str(tmp_path / "none.yaml"))
    assert code
    assert "none.yaml: No such file" in told
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"\xff\xfe")
    assert "it is no UTF-8" in pipeline("import", str(odd))[1]


def test_a_pipeline_is_imported_shown_and_run_in_a_terminal(
    pipeline, alice, acme, mallory, elsewhere, tmp_path
):
    assert pipeline("import", EXAMPLE)[0] == 0
    assert "Reviewed answer  version 1" in pipeline("list")[1]
    assert "review  General work" in pipeline("show", "Reviewed answer")[1]
    file = tmp_path / "line.yaml"
    file.write_text(pipeline("export", "Reviewed answer")[1])
    assert "version 1" in pipeline("import", str(file))[1]

    code, told = pipeline("run", "Reviewed answer", QUESTION, "--scripted")

    assert code == 0
    assert "Two of them are 660 m high" in told
    assert "done  9 steps" in told
    run = PipelineRun.objects.get()
    assert names(run)[0] == "route"
    assert json.loads(pipeline("show", run.uid, "--json")[1])["state"] == "done"
    assert pipeline("run", "Reviewed answer", "x", user="mallory")[0] == 1
    assert pipeline("show", run.uid, user="mallory")[0] == 1


def test_a_run_that_asks_somebody_says_so_by_its_code(pipeline, start, alice):
    first = start(step("a"), ASKS, step("b"))
    code, told = pipeline("run", first.version.pipeline.name, QUESTION, "--scripted")

    assert code == 3
    assert "waits" in told
