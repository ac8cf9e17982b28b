"""Comparisons on their pages, at `/api` and on the command line."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from accounts.actions.tokens import create_token
from accounts.models import TokenScope
from comparisons.models import Comparison
from tests.cast import shown

from .conftest import QUESTION, over

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_started_and_read_on_its_pages_and_mallory_finds_none(
    alice, acme, mallory, elsewhere, client_of, worker, line, environment
):
    client, hers = client_of(alice), client_of(mallory)
    one, two = line("First line"), line("Second line")
    page = client.get(f"/comparisons/?pipeline={one.uid}").content.decode()
    assert f'value="{one.uid}"' in page
    assert "checked" in page
    refused = client.post("/comparisons/", shown(acme, question=QUESTION, pipelines=[one.uid]))
    assert refused.status_code == 422
    assert QUESTION in refused.content.decode()

    form = {"question": QUESTION, "environment": environment.uid, "scripted": "on", "limit": ""}
    answer = client.post(
        "/comparisons/", shown(acme, pipelines=[one.uid, two.uid], agents=[worker.uid], **form)
    )

    place = answer.headers["Location"]
    comparison = over(Comparison.objects.get())
    assert place == f"/comparisons/{comparison.uid}/"
    page = client.get(place).content.decode()
    assert "First line says 660 m." in page
    assert "Winner" in page
    assert f"{place}now/" not in page, "it asks for no more"
    assert "HX-Refresh" in client.get(f"{place}now/?mark=running").headers
    assert QUESTION in client.get("/comparisons/").content.decode()
    assert QUESTION not in hers.get("/comparisons/").content.decode()
    for address in ("", "now/"):
        assert hers.get(f"{place}{address}").status_code == 404
    for address in ("stop/", "continue/", "delete/"):
        assert hers.post(f"{place}{address}").status_code == 404
    client.post(f"{place}stop/")
    client.post(f"{place}continue/", {"limit": "-1"})
    client.post(f"{place}continue/", {"limit": ""})
    assert "waits to go on" in client.get(place).content.decode()
    client.post(f"{place}delete/")
    assert not Comparison.objects.exists()


@pytest.fixture
def program(client):
    """Asks `/api/comparisons` as a person's token does."""

    def ask(person, method, address="", body=None):
        token = create_token(
            actor=person,
            organisation=person.memberships.get().organisation,
            name="t",
            scopes=list(TokenScope),
        )
        return client.generic(
            method,
            f"/api/comparisons{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"x-api-key": token.secret},
        )

    return ask


def test_a_program_compares_and_mallorys_finds_nothing(
    alice, mallory, elsewhere, program, worker, line, judge
):
    line("One"), line("Two")
    body = {
        "question": QUESTION,
        "pipelines": ["One", "Two"],
        "agents": ["General work"],
        "scripted": True,
        "judge_provider": "scripted",
        "judge_model": "judge",
    }
    assert program(mallory, "POST", body=body).status_code == 404
    odd = program(alice, "POST", body={**body, "agents": "General work", "more": 1})
    assert odd.status_code == 422
    assert program(alice, "POST", body={**body, "pipelines": ["Nobody"]}).status_code == 404
    made = program(alice, "POST", body=body)
    assert made.status_code == 201, made.content

    over(Comparison.objects.get())

    place = f"/{made.json()['id']}"
    told = program(alice, "GET", place).json()
    assert [each["points"] for each in told["entries"]] == [5.0, 5.0, 2.0]
    assert (told["winner"], told["won_by"]) in {(1, "tokens"), (None, "tie"), (2, "tokens")}
    assert told["entries"][0]["answer"] == "One says 660 m."
    assert program(alice, "GET").json()[0]["entries"][0] == "One 1"
    assert program(mallory, "GET").json() == []
    for method, address in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("POST", "/continue")):
        assert program(mallory, method, place + address).status_code == 404
    assert program(alice, "POST", f"{place}/continue", {}).status_code == 409
    assert program(alice, "POST", f"{place}/stop").json()["state"] == "done"
    assert program(alice, "DELETE", place).status_code == 200


def test_answers_are_compared_in_a_terminal(
    alice, acme, mallory, elsewhere, line, judge, capsys, environment
):
    line("One"), line("Two")

    def run(*words, user="alice"):
        try:
            call_command("agent", "pipeline", "compare", *words, "--user", user)
        except SystemExit as ended:
            return int(str(ended.code)), capsys.readouterr().out
        except CommandError as problem:
            return problem.returncode, str(problem)
        return 0, capsys.readouterr().out

    asked = (QUESTION, "One", "Two", "--scripted")
    code, told = run(*asked, "--judge-provider", "scripted", "--judge-model", "judge")
    assert code == 0, told
    assert "quality" in told.splitlines()[0]
    assert "5/5" in told
    over(Comparison.objects.get())
    code, told = run(*asked, "--no-judge", "--json")
    assert json.loads(told)["state"] == "done"
    assert run(QUESTION, "One", "--no-judge")[0] == 1
    assert run(*asked, "--no-judge", user="mallory")[0] == 1
