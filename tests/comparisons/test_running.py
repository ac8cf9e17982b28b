"""Pipelines and agents answer the same question in the real engine, are judged, and one of them wins."""

from __future__ import annotations

from typing import Any

import pytest

from comparisons import running
from comparisons.actions.comparisons import (
    continue_comparison,
    delete_comparison,
    start_comparison,
    stop_comparison,
)
from comparisons.models import Comparison, Entry
from comparisons.showing import show
from conversations.actions.redacting import redact_content
from conversations.actions.sharing import share_conversation
from conversations.models import Conversation
from harness.errors import Conflict, Forbidden, Invalid, NotFound
from harness.redacted import REMOVED
from pipelines.actions.definitions import save_pipeline
from pipelines.models import PipelineRun
from providers.scripted import registered, reply
from spending.models import ModelPrice
from tests.conversations.conftest import until
from tests.pipelines.conftest import spec_of

from .conftest import JUDGE, QUESTION, over, step

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_better_of_a_pipeline_and_an_agent_wins(alice, worker, line, compare, judge):
    comparison = over(compare(line("Long"), agents=[worker], judged=True, **JUDGE))

    shown = show(comparison, alice)
    assert [entry.state for entry in shown.entries] == ["done", "done"]
    assert [entry.row.points for entry in shown.entries] == [5, 2]
    assert shown.entries[0].reason == "By the facts."
    assert (shown.won.place, shown.won.by) == (1, "quality")
    top = [entry.row.top for entry in shown.entries]
    assert all(each.parent == comparison.root for each in top)
    calls = [entry.figures.model_calls for entry in shown.entries]
    assert calls == [1, 1]
    assert shown.figures.model_calls == sum(calls) + 2, "and those of two judges"
    asked = Entry.objects.get(place=2).conversation.events.get(type="user.message")
    assert asked.payload["content"][0]["text"] == QUESTION


def test_whatever_drives_pipelines_is_compared_by_the_same_figures(alice, worker, acme, compare):
    calls = '{"ask": [{"specialist": "a", "task": "Say it"}]}'
    led = spec_of(
        step("lead", calls, "Two of them are 660 m high."),
        step("a", about="Says it.", prompt="{{task}}"),
        name="Led",
        engine="strands",
    )
    ruled = spec_of(step("a"), step("b"), name="Ruled", engine="langgraph")
    pipelines = [
        save_pipeline(actor=alice, organisation=acme, spec=spec).pipeline for spec in (led, ruled)
    ]
    comparison = over(compare(*pipelines, agents=[worker]))

    shown = show(comparison, alice)
    assert [entry.state for entry in shown.entries] == ["done"] * 3
    assert [entry.figures.steps for entry in shown.entries][:2] == [3, 2]
    assert [entry.figures.model_calls for entry in shown.entries] == [3, 2, 1]


def test_what_did_not_pass_its_quality_gate_cannot_win(alice, line, compare):
    gate = [{"when": {"field": "score", "at_least": 0.7}, "to": "end"}, {"to": "fail"}]
    gated = line("Gated", step("a"), step("b", '{"score": 0.2}', next=gate))
    comparison = over(compare(gated, line("Plain"), line("Longer", step("a"), step("b"))))

    shown = show(comparison, alice)
    assert [entry.state for entry in shown.entries] == ["failed", "done", "done"]
    assert "did not pass" in shown.entries[0].row.problem
    assert shown.won.by == "tokens"
    assert shown.won.place == 2
    assert shown.figures.cost_text == "$0.00", "what is played costs nothing, also in the sum"


def test_a_judge_that_cannot_be_read_gives_no_points(alice, line, compare):
    with registered("judge", lambda _request: reply("Both are nice.")):
        comparison = over(compare(line("A"), line("B"), judged=True, **JUDGE))
    shown = show(comparison, alice)
    assert [entry.row.points for entry in shown.entries] == [None, None]
    assert "nothing that can be read" in shown.entries[0].row.problem


def test_what_is_wrong_is_said_before_anything_begins(
    alice, bob, acme, mallory, elsewhere, worker, line, compare
):
    one = line("One")
    for refused, field in (
        ({"pipelines": [one]}, "pipelines"),
        ({"pipelines": [one, one]}, "pipelines"),
        ({"pipelines": [one], "agents": [worker] * 4}, "pipelines"),
        ({"pipelines": [one], "agents": [worker], "question": " "}, "question"),
        ({"pipelines": [one], "agents": [worker], "scripted": True, "limit": 1}, "limit"),
        ({"pipelines": [one], "agents": [worker], "judged": True}, "judged"),
        ({"pipelines": [one], "agents": [worker], "judge_provider": "nobody"}, "judge_model"),
    ):
        given: dict[str, Any] = {
            "question": QUESTION,
            "judged": "judge_provider" in refused,
            **refused,
        }
        with pytest.raises(Invalid) as problem:
            start_comparison(actor=alice, organisation=acme, **given)
        assert problem.value.field == field
        assert problem.value.hint
    with pytest.raises(NotFound):
        start_comparison(
            actor=mallory,
            organisation=acme,
            question="x",
            pipelines=[one],
            agents=[worker],
            judged=False,
        )
    assert not Comparison.objects.exists()
    assert not PipelineRun.objects.exists()
    assert not Conversation.objects.exists()


def test_what_is_lost_is_found_by_the_sweep_and_nothing_is_done_twice(line, compare, judge, alice):
    comparison = over(compare(line("A"), line("B"), judged=True, **JUDGE))
    counted = Conversation.objects.count()
    # As it stood before anybody looked, with the hints lost.
    Comparison.objects.update(state="running", ended_at=None)
    entry = comparison.entries.get(place=1)
    Entry.objects.filter(pk=entry.pk).update(state="judging", points=None)
    assert list(Comparison.objects.due()) == [comparison]

    running.look_again()

    comparison = over(comparison)
    assert comparison.state == "done"
    assert comparison.entries.get(place=1).points == 5
    running.go_on(comparison.pk)
    running.go_on(comparison.pk)
    assert Conversation.objects.count() == counted


def test_one_budget_caps_all_of_it_and_with_more_it_goes_on(alice, bob, worker, line, compare):
    million = dict.fromkeys(("input", "output", "cache_write", "cache_read"), 1_000)
    ModelPrice.objects.create(provider="demo", model="", **million)
    comparison = compare(line("A"), agents=[worker], limit=0, scripted=False)
    until(lambda: show(comparison, alice).entries[1].state == "waits")
    shown = show(Comparison.objects.get(), alice)
    assert (shown.state, shown.may_go_on) == ("waits", True)

    share_conversation(actor=alice, conversation=comparison.root, user_uid="", role="decider")
    with pytest.raises(Forbidden):
        continue_comparison(actor=bob, comparison=comparison)
    continue_comparison(actor=alice, comparison=comparison, limit=10**12)

    assert over(comparison).entries.get(place=2).state == "done"
    with pytest.raises(Conflict):
        continue_comparison(actor=alice, comparison=comparison)


def test_a_stopped_one_begins_nothing_more_and_goes_with_all_it_had(alice, mallory, line, compare):
    asks = {"name": "release", "approval": "May this go out? {{a}}"}
    comparison = compare(line("Asks", step("a"), asks), line("Plain"))
    until(lambda: show(comparison, alice).entries[1].state == "done")
    until(lambda: show(comparison, alice).entries[0].state == "waits")
    assert not Comparison.objects.due().exists(), "it keeps the sweep from no other"
    with pytest.raises(Conflict):
        delete_comparison(actor=alice, comparison=comparison)
    for act in (stop_comparison, continue_comparison, delete_comparison):
        with pytest.raises((NotFound, Conflict)):
            act(actor=mallory, comparison=comparison)

    stop_comparison(actor=alice, comparison=comparison)

    until(lambda: not Entry.objects.filter(state="running").exists())
    comparison.refresh_from_db()
    assert PipelineRun.objects.get(version__pipeline__name="Asks").state == "stopped"
    assert show(comparison, alice).won.place == 2
    with pytest.raises(NotFound):
        delete_comparison(actor=mallory, comparison=comparison)
    delete_comparison(actor=alice, comparison=comparison)
    assert not PipelineRun.objects.exists()
    assert not Conversation.objects.exists()


def test_what_is_taken_out_of_one_answer_goes_from_its_judge_and_the_question_from_all(
    alice, worker, line, compare, judge
):
    comparison = over(compare(line("A"), agents=[worker], judged=True, **JUDGE))
    entries = {entry.place: entry for entry in comparison.entries.all()}
    agents = entries[2].conversation
    assert agents is not None

    redact_content(
        actor=alice,
        conversation=agents,
        event_uid=agents.events.get(type="agent.message").uid,
    )
    told = entries[2].judge.events.get(type="user.message").payload
    assert REMOVED in str(told)
    said = entries[2].judge.events.get(type="agent.message").payload
    assert REMOVED in str(said), "it may quote what it was shown"
    assert show(comparison, alice).entries[1].reason == ""
    assert REMOVED not in str(entries[1].judge.events.get(type="user.message").payload)

    redact_content(actor=alice, conversation=agents, event_uid=entries[2].asked_event)
    comparison.refresh_from_db()
    assert comparison.question == REMOVED
    for conversation in Conversation.objects.exclude(pk=comparison.root_id):
        for row in conversation.events.filter(type="user.message"):
            assert QUESTION not in str(row.payload)
