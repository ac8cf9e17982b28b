"""Prompts are fetched from elsewhere as copies: they wait until they are allowed, and answer while their
source is away."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import Membership, Role, TokenScope
from accounts.sealed import resealers
from agents.actions.agents import create_agent
from audit.models import AuditEntry
from conversations.actions.messages import post_message
from evals.actions.releases import require_suite
from evals.actions.suites import create_suite
from harness.agentconfig import AgentConfig, PromptUse
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound
from prompts.access import find_prompt
from prompts.actions.prompts import (
    add_version,
    create_prompt,
    import_prompt,
    move_label,
    spec_of,
)
from prompts.actions.sources import (
    MOST_SOURCES,
    add_source,
    allow_pulled,
    ask_source,
    change_source,
    remove_source,
)
from prompts.choosing import version_for, version_named
from prompts.files import read_prompt, written_prompt
from prompts.models import Prompt, PromptLabel, PromptSource, PromptVersion, PulledLabel
from prompts.pulling import pull, pull_due
from prompts.standing import MOST_COMPARED
from prompts.using import told
from tests.cast import shown
from tests.standins.langfuse import KEYS, Langfuse, langfuse
from tests.standins.skillsite import skill_site

LABELS = {"production": "production"}


@pytest.fixture
def elsewhere_at(settings):
    settings.AGENTSITE_PROMPT_SOURCE_SECONDS = 60
    with langfuse() as site:
        settings.AGENTSITE_PROMPTS_PRIVATE_HOSTS = [site.host]
        yield site


@pytest.fixture
def source(alice, acme, elsewhere_at: Langfuse) -> PromptSource:
    elsewhere_at.put("Support/Tone", "Be {{mood}} to {{person}}.", "production")
    made: PromptSource = add_source(
        actor=alice,
        organisation=acme,
        kind="langfuse",
        address=elsewhere_at.url,
        secret=KEYS,
        labels=LABELS,
    )
    return made


def use(label: str = "production") -> PromptUse:
    return PromptUse(name="support-tone", version=label, values={"mood": "kind"})


@pytest.mark.django_db(transaction=True)
def test_a_fetched_text_waits_as_a_version_until_it_is_allowed(
    alice, acme, source, elsewhere_at, converse, make_agent
):
    ask_source(actor=alice, source=source)

    version = PromptVersion.objects.get()
    assert (version.prompt.name, version.text) == ("support-tone", "Be {{mood}} to {{person}}.")
    assert [each.name for each in version.variables] == ["mood"]
    assert version.origin == f"{elsewhere_at.url}: Support/Tone 1"
    for wanted in ("1", "latest", "production"):
        with pytest.raises(NotFound):
            version_for(acme, use(wanted))
    with pytest.raises(NotFound, match="not allowed yet"):
        move_label(actor=alice, prompt=version.prompt, label="staging", version="1")

    allow_pulled(actor=alice, pulled=PulledLabel.objects.get(), number=1)
    elsewhere_at.put("Support/Tone", "Be rude.", "production")
    ask_source(actor=alice, source=source)

    assert PromptVersion.objects.count() == 2
    for wanted in ("1", "latest", "production"):
        assert version_for(acme, use(wanted)).number == 1
    conversation, _scripted = converse(prompts=(use(),))
    post_message(actor=alice, conversation=conversation, text="Hello")
    assert [each.text.startswith("Be kind to") for each in told(conversation)] == [True]
    moved = AuditEntry.objects.filter(action="prompt_label_moved").get()
    assert (moved.details["version"], moved.actor) == (1, alice)


@pytest.mark.django_db
def test_the_copy_answers_while_the_source_is_away_and_it_is_asked_less_and_less(
    alice, acme, source, elsewhere_at
):
    change_source(actor=alice, source=source, moves_labels=True)
    pull_due()
    source.refresh_from_db()
    reached = source.reached_at
    assert reached is not None
    assert version_for(acme, use()).number == 1

    elsewhere_at.away = 503
    waits = []
    for _time in range(3):
        PromptSource.objects.update(due_at=timezone.now())
        assert pull_due() == 1
        assert pull_due() == 0
        source.refresh_from_db()
        waits.append(round((source.due_at - timezone.now()).total_seconds() / 60))
    assert waits == [1, 2, 4]
    assert "answered 503" in source.problem
    assert (source.reached_at, source.failures) == (reached, 3)
    away_since = source.away_since
    assert away_since is not None
    assert away_since > reached
    assert version_for(acme, use()).number == 1
    PromptSource.objects.update(due_at=timezone.now(), failures=40)
    pull_due()
    source.refresh_from_db()
    assert source.away_since == away_since
    assert source.due_at - timezone.now() < timedelta(hours=6, minutes=1)

    elsewhere_at.away = 0
    PromptSource.objects.update(due_at=timezone.now())
    pull_due()
    source.refresh_from_db()
    assert (source.away_since, source.failures, source.problem) == (None, 0, "")


@pytest.mark.django_db
def test_by_the_rule_labels_follow_news_but_never_undo_what_a_person_did(
    alice, acme, source, elsewhere_at
):
    change_source(actor=alice, source=source, moves_labels=True)
    elsewhere_at.put("Support/Tone", "Be brief.", "production")
    ask_source(actor=alice, source=source)
    prompt = Prompt.objects.get()
    assert version_named(prompt, "production").text == "Be brief."

    own = add_version(actor=alice, prompt=prompt, text="Be ours.", label="production")
    ask_source(actor=alice, source=source)
    assert version_named(prompt, "production") == own

    elsewhere_at.put("Support/Tone", "Be quick.", "production")
    ask_source(actor=alice, source=source)
    assert version_named(prompt, "production").text == "Be quick."
    assert PromptVersion.objects.count() == 3
    ask_source(actor=alice, source=source)
    assert PromptVersion.objects.count() == 3


@pytest.mark.django_db
def test_no_label_follows_by_itself_past_the_gate_of_an_agent(
    alice, acme, source, elsewhere_at, client_of
):
    prompt = create_prompt(
        actor=alice, organisation=acme, name="support-tone", text="Be ours.", label="production"
    )
    config = AgentConfig(provider="demo", prompts=(use(),))
    clerk = create_agent(
        actor=alice, organisation=acme, name="Clerk", description="", config=config
    )
    suite = create_suite(actor=alice, organisation=acme, name="Manners")
    require_suite(actor=alice, agent=clerk, suite=suite)
    change_source(actor=alice, source=source, moves_labels=True)

    ask_source(actor=alice, source=source)

    assert version_named(prompt, "production").text == "Be ours."
    assert version_named(prompt, "latest").text == "Be ours."
    pulled = PulledLabel.objects.get()
    with pytest.raises(Conflict, match="Clerk"):
        allow_pulled(actor=alice, pulled=pulled, number=2)
    assert PromptVersion.objects.get(number=2).waits
    client, page = client_of(alice), f"/prompts/sources/{source.uid}/"
    assert 'name="reason"' in client.get(page).content.decode()
    given = {"pulled": pulled.pk, "number": 2}
    refused = client.post(f"{page}allow/", given, follow=True).content.decode()
    assert "It was not tried with version 2 of the prompt" in refused
    client.post(f"{page}allow/", {**given, "reason": "It was read."})
    assert version_named(prompt, "production").text.startswith("Be {{mood}}")
    back = ("label", "support-tone", "production", "1", "--reason", "It was better.")
    call_command("agent", "prompt", *back, "--user", "alice")
    assert version_named(prompt, "production").text == "Be ours."
    place = f"/prompts/{prompt.uid}/label/"
    moved = {"label": "production", "version": "2"}
    assert client.post(place, moved).status_code == 422
    assert client.post(place, {**moved, "reason": "It was read."}).status_code == 302


@pytest.mark.django_db
def test_nor_past_one_that_names_the_servers_prompt_by_number(
    alice, staff, acme, source, elsewhere_at
):
    create_prompt(actor=staff, organisation=None, name="support-tone", text="Be the server's.")
    config = AgentConfig(provider="demo", prompts=(use("1"),))
    clerk = create_agent(
        actor=alice, organisation=acme, name="Clerk", description="", config=config
    )
    suite = create_suite(actor=alice, organisation=acme, name="Manners")
    require_suite(actor=alice, agent=clerk, suite=suite)
    change_source(actor=alice, source=source, moves_labels=True)

    ask_source(actor=alice, source=source)

    assert version_for(acme, use("1")).text == "Be the server's."
    pulled = PulledLabel.objects.get()
    assert pulled.version.waits
    allow_pulled(actor=alice, pulled=pulled, number=1, reason="It was read.")
    assert version_for(acme, use("1")) == pulled.version


@pytest.mark.django_db
def test_what_becomes_the_latest_passes_no_gate_either(alice, acme, source):
    prompt = create_prompt(actor=alice, organisation=acme, name="support-tone", text="Be ours.")
    config = AgentConfig(provider="demo", prompts=(use("latest"),))
    clerk = create_agent(
        actor=alice, organisation=acme, name="Clerk", description="", config=config
    )
    suite = create_suite(actor=alice, organisation=acme, name="Manners")
    require_suite(actor=alice, agent=clerk, suite=suite)
    change_source(actor=alice, source=source, moves_labels=True)

    ask_source(actor=alice, source=source)

    assert version_named(prompt, "latest").text == "Be ours."


@pytest.mark.django_db
def test_the_rule_that_holds_when_it_has_answered_counts(alice, source, elsewhere_at):
    change_source(actor=alice, source=source, moves_labels=True)
    assert change_source(actor=alice, source=source).moves_labels, "nothing was said of it"
    read_before = PromptSource.objects.select_related("organisation", "created_by").get()
    change_source(actor=alice, source=source, moves_labels=False)
    pull(read_before)
    assert not PromptLabel.objects.exists()
    assert PulledLabel.objects.get().version.waits

    remove_source(actor=alice, source=source)
    elsewhere_at.put("Support/Tone", "Be late.", "production")
    pull(read_before)
    assert PromptVersion.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "text"),
    [("to\0ne", "Be."), ("/\0/", "Be."), ("tone", "{{a}} \0 Be.")],
    ids=["name", "no-name", "text"],
)
def test_what_no_database_keeps_is_left_out(alice, source, elsewhere_at, name, text):
    elsewhere_at.prompts.clear()
    elsewhere_at.put(name, text, "production")
    asked = ask_source(actor=alice, source=source)
    assert asked.problem == ""
    kept = PulledLabel.objects.values_list("remote_name", "version__text")
    assert "\0" not in "".join([*asked.remarks, *(part for row in kept for part in row)])


@pytest.mark.django_db
def test_a_number_that_no_version_has_makes_others_wait_no_longer(alice, source, elsewhere_at):
    elsewhere_at.prompts["Support/Tone"][0]["version"] = 10**70
    assert ask_source(actor=alice, source=source).problem
    source.refresh_from_db()
    assert source.due_at > timezone.now()


@pytest.mark.django_db
def test_what_goes_wrong_by_itself_is_asked_again_later_as_if_it_were_away(source):
    PromptSource.objects.update(labels=3)
    pull_due()
    source.refresh_from_db()
    assert source.due_at > timezone.now()
    assert source.problem


@pytest.mark.django_db
def test_what_cannot_be_one_text_is_told_and_not_taken(alice, acme, source, elsewhere_at):
    elsewhere_at.prompts.clear()
    elsewhere_at.put("dialogue", [{"role": "user", "content": "Hi"}], "production")
    elsewhere_at.put("Für", "Ä", "production")
    elsewhere_at.put("///", "No name.", "production")
    elsewhere_at.put("long", "x" * 50_001, "production")
    elsewhere_at.put("told", [{"role": "system", "content": part} for part in "AB"], "production")
    elsewhere_at.put("a b", "One.", "production")
    elsewhere_at.put("a-b", "Two.", "production")
    elsewhere_at.put("other", "Not followed.", "staging")
    elsewhere_at.put("person-only", "{{person}}", "production")

    asked = ask_source(actor=alice, source=source)

    texts = dict(PromptVersion.objects.values_list("prompt__name", "text"))
    assert texts == {"told": "A\n\nB", "a-b": "One.", "person-only": "{{person}}", "f-r": "Ä"}
    assert len(asked.remarks) == 4
    assert asked.problem == ""


@pytest.mark.django_db
@pytest.mark.parametrize("answer", [[], {"data": 3}, {"data": [{"name": ""}]}, "x", None])
def test_what_is_no_answer_of_such_a_source_changes_nothing(alice, source, elsewhere_at, answer):
    class Odd(Langfuse):
        def answer(self, address):
            return answer if answer is not None else {"data": [], "meta": {"totalPages": -1}}

    elsewhere_at.__class__ = Odd
    asked = ask_source(actor=alice, source=source)
    assert asked.problem
    assert not Prompt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_another_agentsite_is_a_source(
    alice, acme, mallory, elsewhere, live_server, settings, client_of
):
    settings.AGENTSITE_PROMPTS_PRIVATE_HOSTS = [live_server.url.partition("//")[2]]
    theirs = create_prompt(
        actor=mallory, organisation=elsewhere, name="tone", text="One.", label="production"
    )
    add_version(actor=mallory, prompt=theirs, text="Two.", label="staging")
    token = create_token(
        actor=mallory,
        organisation=elsewhere,
        name="t",
        scopes=[TokenScope.CONVERSATIONS_READ],
    )
    source = add_source(
        actor=alice,
        organisation=acme,
        kind="site",
        address=f"{live_server.url}/",
        secret=token.secret,
        labels={"production": "production", "staging": "tried-there"},
    )
    assert token.secret not in source.sealed

    ask_source(actor=alice, source=source)
    for pulled in PulledLabel.objects.all():
        allow_pulled(actor=alice, pulled=pulled, number=pulled.version.number)

    ours = find_prompt(alice, acme, "tone")
    assert ours.organisation == acme
    assert version_named(ours, "production").text == "One."
    assert version_named(ours, "tried-there").text == "Two."


@pytest.mark.django_db
def test_a_folder_of_a_repository_is_a_source(alice, acme, settings, tmp_path):
    def git(*words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    (tmp_path / "texts" / "tone.md").write_text("Be {{mood}}.\n")
    (tmp_path / "texts" / "other.py").write_text("x")
    (tmp_path / "texts" / "deep" / "no.md").write_text("x")
    git("add", "-A")
    git("commit", "-q", "-m", "First")
    commit = git("rev-parse", "HEAD")
    with skill_site() as site:
        settings.AGENTSITE_SKILLS_PRIVATE_HOSTS = [site.url.partition("//")[2]]
        site.repositories["/prompts.git"] = tmp_path
        given: dict[str, Any] = {
            "kind": "git",
            "address": f"{site.url}/prompts.git",
            "folder": "texts/",
        }
        with pytest.raises(Invalid, match="40 digits"):
            add_source(actor=alice, organisation=acme, labels=LABELS, commit="main", **given)
        source = add_source(actor=alice, organisation=acme, labels=LABELS, commit=commit, **given)
        asked = ask_source(actor=alice, source=source)
    assert asked.problem == ""
    version = PromptVersion.objects.get()
    assert (version.prompt.name, version.text, version.waits) == ("tone", "Be {{mood}}.\n", True)


@pytest.mark.django_db
def test_an_address_inside_is_asked_only_where_the_operator_lists_it(
    alice, acme, source, elsewhere_at, settings
):
    settings.AGENTSITE_PROMPTS_PRIVATE_HOSTS = []
    before = elsewhere_at.asked
    assert "https" in ask_source(actor=alice, source=source).problem
    PromptSource.objects.update(address=elsewhere_at.url.replace("http:", "https:"))
    source.refresh_from_db()
    assert "private or local address" in ask_source(actor=alice, source=source).problem
    assert elsewhere_at.asked == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("kind", {"kind": "ftp"}),
        ("address", {"address": "ftp://a.example"}),
        ("address", {"address": "http://a.example"}),
        ("secret", {"secret": "only-one"}),
        ("secret", {"secret": "pk:sk\nsecond"}),
        ("secret", {"kind": "site", "secret": "kéy"}),
        ("labels", {"labels": {}}),
        ("labels", {"labels": {"production": "latest"}}),
        ("labels", {"labels": {"a": "same", "b": "same"}}),
        ("folder", {"kind": "git", "folder": "a/../b", "commit": "a" * 40}),
    ],
)
def test_what_is_wrong_with_a_source_is_named(alice, acme, field, more):
    given = {"kind": "langfuse", "address": "https://a.example", "secret": KEYS, "labels": LABELS}
    with pytest.raises(Invalid) as refused:
        add_source(actor=alice, organisation=acme, **{**given, **more})
    assert refused.value.field == field


@pytest.mark.django_db
def test_there_are_so_many_sources_and_each_once(alice, acme):
    given = {"actor": alice, "organisation": acme, "kind": "site", "labels": LABELS}
    for number in range(MOST_SOURCES):
        add_source(address=f"https://a{number}.example", **given)
    with pytest.raises(Conflict):
        add_source(address="https://a0.example/", **given)
    with pytest.raises(LimitReached):
        add_source(address="https://more.example", **given)


@pytest.mark.django_db
def test_it_is_asked_for_who_added_it_as_long_as_she_may(alice, bob, acme, source, elsewhere_at):
    Membership.objects.filter(user=bob).update(role=Role.OWNER)
    Membership.objects.filter(user=alice).update(role=Role.MEMBER)
    before = elsewhere_at.asked
    assert "may not change prompts" in ask_source(actor=bob, source=source).problem
    assert elsewhere_at.asked == before


@pytest.mark.django_db
def test_secrets_are_sealed_and_sealed_anew(source):
    before = source.sealed
    assert KEYS not in before
    assert sum(reseal() for reseal in resealers()) >= 1
    source.refresh_from_db()
    assert source.sealed != before


@pytest.mark.django_db
def test_a_manager_looks_after_sources_on_the_pages(alice, acme, client_of, elsewhere_at):
    client = client_of(alice)
    elsewhere_at.put("tone", "Be kind.", "production")
    form = {
        "kind": "langfuse",
        "address": elsewhere_at.url,
        "secret": "no",
        "labels": "production = production",
    }
    assert client.post("/prompts/sources/", shown(acme, **form)).status_code == 422
    client.post("/prompts/sources/", shown(acme, **{**form, "secret": KEYS}))
    source = PromptSource.objects.get()
    page = f"/prompts/sources/{source.uid}/"
    client.post(f"{page}ask/")
    text = client.get(page).content.decode()
    assert "<ins>Be kind.</ins>" in text
    assert KEYS not in text
    assert "id_commit" not in text, "only a repository has one"
    pulled = PulledLabel.objects.get()
    prompt = pulled.prompt
    assert "waits to be allowed" in client.get(f"/prompts/{prompt.uid}/").content.decode()
    assert "Fetched from" in client.get(f"/prompts/{prompt.uid}/versions/1/").content.decode()

    elsewhere_at.put("tone", "Be quick.", "production")
    client.post(f"{page}ask/")
    client.post(f"{page}allow/", {"pulled": pulled.pk, "number": 1})
    assert not prompt.labels.exists(), "it shows another text by now"
    client.post(f"{page}allow/", {"pulled": pulled.pk, "number": 2})
    assert version_named(prompt, "production").text == "Be quick."

    elsewhere_at.away = 500
    client.post(f"{page}ask/")
    assert "Away since" in client.get(page).content.decode()
    assert "away since" in client.get("/prompts/sources/").content.decode()
    client.post(page, {"moves_labels": "on"})
    source.refresh_from_db()
    assert source.moves_labels
    client.post(f"{page}remove/")
    assert not PromptSource.objects.exists()
    assert version_named(prompt, "production").text == "Be quick."


@pytest.mark.django_db
def test_texts_that_nobody_allowed_go_when_others_take_their_place(
    alice, acme, source, elsewhere_at
):
    texts = ["Be {{mood}} to {{person}}.", "Be quick.", "Be slow.", "Be {{mood}} to {{person}}."]
    for text in (*texts, "Be brief."):
        elsewhere_at.put("Support/Tone", text, "production")
        ask_source(actor=alice, source=source)

    prompt = Prompt.objects.get()
    rows = PromptVersion.objects.order_by("number")
    assert [(each.number, each.text) for each in rows] == [(5, "Be brief.")]
    allow_pulled(actor=alice, pulled=PulledLabel.objects.get(), number=5)
    elsewhere_at.put("Support/Tone", "Be loud.", "production")
    ask_source(actor=alice, source=source)
    assert version_for(acme, use()).text == "Be brief.", "what was allowed stays"

    file = written_prompt(spec_of(prompt)).replace("name: support-tone", "name: copy")
    assert "Be loud." not in file, "or the file would let in what nobody allowed"
    copy, added = import_prompt(actor=alice, organisation=acme, spec=read_prompt(file))
    assert (added, [each.number for each in copy.versions.order_by("number")]) == (1, [5])
    assert import_prompt(actor=alice, organisation=acme, spec=read_prompt(file))[1] == 0


@pytest.mark.django_db
def test_what_nobody_allowed_leaves_in_no_file_and_stands_before_nothing(
    alice, staff, acme, source, client_of
):
    create_prompt(
        actor=staff, organisation=None, name="support-tone", text="Be.", label="production"
    )
    ask_source(actor=alice, source=source)

    prompt = Prompt.objects.get(organisation=acme)
    with pytest.raises(Conflict, match="waits to be allowed"):
        spec_of(prompt)
    assert client_of(alice).get(f"/prompts/{prompt.uid}/export/").status_code == 409
    assert version_for(acme, use()).text == "Be.", "the server's goes on to be had"
    allow_pulled(actor=alice, pulled=PulledLabel.objects.get(), number=1)
    assert version_for(acme, use()).text.startswith("Be {{mood}}")


@pytest.mark.django_db
def test_a_page_draws_what_differs_for_the_first_labels_and_links_to_the_rest(
    alice, source, elsewhere_at, client_of
):
    for number in range(MOST_COMPARED + 2):
        elsewhere_at.put(f"p{number}", f"Say {number}.", "production")
    ask_source(actor=alice, source=source)

    text = client_of(alice).get(f"/prompts/sources/{source.uid}/").content.decode()
    assert text.count("<ins>") == MOST_COMPARED
    assert text.count(">What differs<") == 3
    assert text.count("Allow it") == MOST_COMPARED + 3


@pytest.fixture
def program(client):
    def ask(person, method: str, address: str, body=None, scopes=tuple(TokenScope.values)):
        organisation = person.memberships.get().organisation
        token = create_token(actor=person, organisation=organisation, name="t", scopes=list(scopes))
        return client.generic(
            method,
            f"/api/prompts/sources{address}",
            json.dumps(body) if body is not None else "",
            content_type="application/json",
            headers={"x-api-key": token.secret},
        )

    return ask


@pytest.mark.django_db
def test_a_program_looks_after_sources_at_api(
    alice, bob, mallory, elsewhere, acme, elsewhere_at, program
):
    elsewhere_at.put("tone", "Be kind.", "production")
    body = {"kind": "langfuse", "address": elsewhere_at.url, "secret": KEYS, "labels": LABELS}
    reads = [TokenScope.CONVERSATIONS_READ]
    assert program(alice, "POST", "", body, scopes=reads).status_code == 403
    assert program(alice, "POST", "", {**body, "kind": "none"}).status_code == 422
    made = program(alice, "POST", "", body)
    assert (made.status_code, made.json()["moves_labels"]) == (201, False)
    one = f"/{made.json()['id']}"
    asked = program(alice, "POST", f"{one}/ask")
    assert KEYS not in made.content.decode() + asked.content.decode()
    [pulled] = asked.json()["pulled"]
    assert (pulled["name"], pulled["version"], pulled["here"], pulled["waits"]) == (
        "tone",
        1,
        None,
        True,
    )
    label = f"{one}/labels/tone/production"
    read = program(alice, "GET", label).json()
    assert (read["text"], read["text_here"]) == ("Be kind.", "")
    elsewhere_at.put("tone", "Be quick.", "production")
    program(alice, "POST", f"{one}/ask")
    assert program(alice, "POST", label, {"version": 1}).status_code == 409
    assert program(alice, "POST", label, {"version": 2}).json()["here"] == 2
    assert program(alice, "GET", label).json()["text_here"] == "Be quick."
    assert program(alice, "PATCH", one, {"moves_labels": True}).json()["moves_labels"]
    assert program(alice, "PATCH", one, {}).json()["moves_labels"]
    assert [row["id"] for row in program(alice, "GET", "").json()] == [made.json()["id"]]
    assert program(bob, "GET", "", scopes=reads).status_code == 403
    assert program(bob, "GET", one, scopes=reads).status_code == 404
    assert program(bob, "GET", label, scopes=reads).status_code == 404
    assert program(mallory, "GET", "").json() == []
    for method, address in (("GET", one), ("POST", f"{one}/ask"), ("GET", label), ("DELETE", one)):
        assert program(mallory, method, address).status_code == 404
    assert program(mallory, "POST", label, {"version": 2}).status_code == 404
    assert program(alice, "DELETE", one).json() == {"status": "deleted"}
    assert not PromptSource.objects.exists()


@pytest.mark.django_db
def test_a_source_is_looked_after_in_a_terminal(alice, acme, elsewhere_at, tmp_path, capsys):
    def run(*words: str) -> str:
        call_command("agent", "prompt", *words, "--user", "alice")
        return str(capsys.readouterr().out)

    elsewhere_at.put("tone", "Be kind.", "production")
    key = tmp_path / "key"
    key.write_text(f"{KEYS}\n", encoding="utf-8")
    added = run(
        "add-source", "langfuse", elsewhere_at.url, "--key-file", str(key), "--follow", "production"
    )
    uid = PromptSource.objects.get().uid
    assert uid in added
    assert "tone production: version 1, nowhere here, waits" in run("ask-source", uid)
    assert "+ Be kind." in run("source", uid, "--differs")
    assert "production is version 1" in run("allow", uid, "tone", "production", "1")
    assert "tone production: version 1, in use" in run("source", uid)
    elsewhere_at.away = 503
    with pytest.raises(CommandError, match="answered 503"):
        run("ask-source", uid)
    assert "away since" in run("sources")
    run("change-source", uid, "--labels-follow", "yes")
    assert PromptSource.objects.get().moves_labels
    run("remove-source", uid)
    assert run("sources") == ""
    with pytest.raises(CommandError, match="no such source"):
        run("source", uid)


@pytest.mark.django_db
def test_strangers_find_nothing_and_members_may_not(
    alice, bob, mallory, elsewhere, acme, source, client_of
):
    ask_source(actor=alice, source=source)
    pulled = PulledLabel.objects.select_related("source").get()
    given: dict[str, Any] = {"kind": "site", "address": "https://a.example", "labels": LABELS}
    with pytest.raises(Forbidden):
        add_source(actor=bob, organisation=acme, **given)
    with pytest.raises(NotFound):
        add_source(actor=mallory, organisation=acme, **given)
    for person in (mallory, bob):
        with pytest.raises(NotFound):
            change_source(actor=person, source=source, moves_labels=True)
        with pytest.raises(NotFound):
            ask_source(actor=person, source=source)
        with pytest.raises(NotFound):
            allow_pulled(actor=person, pulled=pulled, number=1)
        with pytest.raises(NotFound):
            remove_source(actor=person, source=source)
        client = client_of(person)
        page = f"/prompts/sources/{source.uid}/"
        assert client.get(page).status_code == 404
        for end in ("ask/", "allow/", "remove/"):
            assert (
                client.post(f"{page}{end}", {"pulled": pulled.pk, "number": 1}).status_code == 404
            )
    assert client_of(bob).get("/prompts/sources/").status_code == 403
    assert source.address not in client_of(mallory).get("/prompts/sources/").content.decode()
    assert PromptVersion.objects.get().waits
