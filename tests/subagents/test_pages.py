"""The pages of subagents: who sees a tree, what one does now, and who stops it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.models import User
from harness.errors import Forbidden, NotFound
from providers.scripted import Hold, reply, say
from subagents.actions.subagents import stop_subagent, stop_subagents
from subagents.models import Subagent
from tests.cast import ClientOf

from .conftest import Lead, ask, child_of, done, scenes, told, until

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_tree_shows_each_branch_with_what_it_used(
    alice: User, mallory: User, lead: Lead, client_of: ClientOf
) -> None:
    script = scenes([reply(ask("alpha")), reply("Done.")], alpha=[reply("Seven.")])
    conversation = done(lead(script))
    (row,) = told(conversation)
    address = reverse("subagents:tree", kwargs={"uid": conversation.uid})

    page = client_of(alice).get(address).content.decode()

    assert "Do alpha" in page
    assert "15 tokens" in page
    assert "with all below: 45 tokens" in page
    assert client_of(mallory).get(address).status_code == 404
    assert "Stop all that work" not in page
    below = client_of(alice).get(child_of(row).get_absolute_url()).content.decode()
    aside = below.partition("Started by")[2].partition("</dd>")[0]
    assert conversation.title in aside
    assert f">{conversation.uid}<" not in aside
    assert conversation.get_absolute_url() in below
    assert "Back to the conversation that asked for this" in below
    card = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    assert "A subagent worked: Do alpha" in card
    assert child_of(row).get_absolute_url() in card


def test_while_it_works_the_page_has_a_strip_and_a_line_of_what_it_does_now(
    alice: User, mallory: User, lead: Lead, client_of: ClientOf
) -> None:
    hold = Hold()
    script = scenes([reply(ask("alpha")), reply("Done.")], alpha=[reply(say("Sev", hold))])
    conversation = lead(script)
    until(hold.reached.is_set)
    until(lambda: not conversation.runs.filter(state="running").exists())
    row = Subagent.objects.get()
    child = child_of(row)

    page = client_of(alice).get(conversation.get_absolute_url()).content.decode()
    assert "1 subagent works" in page
    tree = reverse("subagents:tree", kwargs={"uid": conversation.uid})
    assert "Stop all that work" in client_of(alice).get(tree).content.decode()
    assert "Waiting for its subagents" in page
    address = reverse("subagents:now", kwargs={"uid": child.uid})
    assert address in page
    line = client_of(alice).get(address)
    assert "tokens" in line.content.decode()
    assert client_of(mallory).get(address).status_code == 404

    stop = reverse("subagents:stop", kwargs={"uid": child.uid})
    assert client_of(mallory).post(stop).status_code == 404
    assert client_of(alice).post(stop).status_code == 302
    done(conversation)
    row.refresh_from_db()
    assert row.state == "stopped"


def test_only_who_may_write_above_stops_a_subagent(
    alice: User, bob: User, mallory: User, lead: Lead
) -> None:
    hold = Hold()
    script = scenes(
        [reply(ask("alpha", background=True)), reply("Going on."), reply("Heard.")],
        alpha=[reply(say("A", hold))],
    )
    conversation = lead(script)
    until(hold.reached.is_set)
    child = child_of(Subagent.objects.get())

    for stranger in (bob, mallory):
        with pytest.raises((NotFound, Forbidden)):
            stop_subagent(actor=stranger, conversation=child)
        with pytest.raises((NotFound, Forbidden)):
            stop_subagents(actor=stranger, conversation=conversation)
    with pytest.raises(NotFound):
        stop_subagent(actor=alice, conversation=conversation)
    assert stop_subagents(actor=alice, conversation=conversation) == 1
    assert stop_subagents(actor=alice, conversation=conversation) == 0
    assert [row.state for row in told(conversation)] == ["stopped"]
    until(lambda: not conversation.runs.filter(state="running").exists())
