"""Documents: read in the background, found by who may read them now, cited, and forgotten when deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Membership
from conversations.actions.messages import post_message
from conversations.actions.sharing import share_conversation
from conversations.models import ShareRole
from documents import indexing
from documents.actions.collections import create_collection, delete_collection
from documents.actions.documents import (
    add_address,
    add_document,
    delete_document,
    read_again,
)
from documents.models import Collection, Document, DocumentBody, Passage
from documents.searching import INDEX, search_passages
from harness.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound, TooLarge
from providers.scripted import call, reply
from recall.documenttools import part
from rendering.cleaning import clean
from rendering.markdown import to_html
from tests import papers
from tests.asked_for import asked_for
from tests.cast import shown
from tests.conversations.conftest import rested
from tests.documents import reading

pytestmark = pytest.mark.django_db
HANDBOOK = b"# Travel\n\nTrains are booked in second class.\n\n# Meals\n\nA lunch costs 14 euros at most.\n"


@pytest.fixture
def shared(alice, acme) -> Collection:
    return create_collection(actor=alice, organisation=acme, name="Handbooks", shared=True)


def added(alice, collection, data: bytes = HANDBOOK, name: str = "handbook.md") -> Document:
    return reading.added(alice, collection, data, name)


@contextmanager
def beside(statement: str, act: Callable[[], object], ends: str = "") -> Iterator[None]:
    """Do something right before each statement that begins and ends so."""

    def wrapped(execute, sql, *given):
        if sql.startswith(statement) and sql.endswith(ends):
            act()
        return execute(sql, *given)

    with connection.execute_wrapper(wrapped):
        yield


def found(user, query: str) -> list[str]:
    hits = search_passages(user, query, Collection.objects.all()).hits
    return [hit.passage.text for hit in hits]


# --- reading --------------------------------------------------------------------------------------


def test_a_document_is_found_with_its_heading_once_it_is_read(alice, shared):
    document = add_document(actor=alice, collection=shared, name="handbook.md", data=HANDBOOK)
    assert (document.state, found(alice, "lunch")) == ("waiting", [])
    indexing.index_document(document.pk)
    document.refresh_from_db()
    assert (document.state, document.progress) == ("ready", 2)
    (hit,) = search_passages(alice, "What may a lunch cost?", Collection.objects.all()).hits
    assert (hit.passage.heading, hit.passage.text) == ("Meals", "A lunch costs 14 euros at most.")
    assert "lunch" in hit.why
    assert not DocumentBody.objects.exists()


@pytest.mark.parametrize(
    ("name", "data", "page"),
    [
        ("costs.xlsx", papers.workbook("Costs", ("lunch", 14)), "Sheet Costs"),
        ("talk.pptx", papers.talk(("Meals", "A lunch costs 14 euros.")), "Slide 1"),
        ("page.html", b"<html><body><h1>Meals</h1><p>A lunch costs 14.</p></body></html>", ""),
        ("costs.csv", b"meal,euros\nlunch,14\n", ""),
        ("costs.py", b"# lunch\nEUROS = 14\n", ""),
    ],
)
def test_all_kinds_of_documents_are_read(alice, shared, name, data, page):
    added(alice, shared, data, name)
    (hit,) = search_passages(alice, "lunch", Collection.objects.all()).hits
    assert (hit.passage.page, "14" in hit.passage.text) == (page, True)


def test_a_changed_document_is_found_as_it_was_until_the_new_one_is_whole(alice, shared):
    document = added(alice, shared)
    again = add_document(
        actor=alice, collection=shared, name="handbook.md", data=b"A lunch costs 20 euros at most."
    )
    assert again == document
    seen: list[list[str]] = []
    with beside('UPDATE "documents_document"', lambda: seen.append(found(alice, "lunch"))):
        indexing.index_document(document.pk)
    assert len(seen) > 3, "it was claimed, written, ended and let go"
    assert all(each == ["A lunch costs 14 euros at most."] for each in seen[:-1])
    assert found(alice, "lunch") == seen[-1] == ["A lunch costs 20 euros at most."]
    assert Passage.objects.count() == 1


def test_the_same_once_more_is_not_read_again(alice, shared):
    document = added(alice, shared)
    again = add_document(actor=alice, collection=shared, name="handbook.md", data=HANDBOOK)
    assert (again.pk, again.state) == (document.pk, "ready")


def test_what_cannot_be_read_says_why_and_keeps_what_was_found_before(alice, shared):
    document = added(alice, shared)
    added(alice, shared, b"\0\1\2\3", "handbook.md")
    document.refresh_from_db()
    assert document.state == "failed"
    assert "neither text" in document.problem
    assert found(alice, "lunch")


def test_one_who_died_in_the_midst_is_followed_and_one_who_was_overtaken_writes_nothing(
    alice, shared
):
    document = add_document(actor=alice, collection=shared, name="handbook.md", data=HANDBOOK)
    anew = [b"Lunch is free."]

    def overtake():
        if anew:
            data = anew.pop()
            add_document(actor=alice, collection=shared, name="handbook.md", data=data)

    with beside('SELECT "documents_documentbody"', overtake):
        indexing.index_document(document.pk)
    document.refresh_from_db()
    assert (document.state, Passage.objects.count(), anew) == ("waiting", 0, [])

    # Somebody claimed it, wrote a part and died.
    claimed = indexing._claim(document.pk)
    assert claimed is not None
    assert claimed.claimed_at is not None
    Passage.objects.create(document=claimed, edition=1, number=1, text="x", audience="")
    assert indexing._claim(document.pk) is None
    Document.objects.update(claimed_at=claimed.claimed_at - 2 * indexing.LEASE)
    before = len(asked_for(indexing.INDEX))
    indexing.sweep()
    assert asked_for(indexing.INDEX)[before:] == [{"document_id": document.pk}]
    indexing.index_document(document.pk)
    assert found(alice, "lunch") == ["Lunch is free."]


def test_what_its_readers_die_of_is_read_no_more_until_somebody_asks(alice, shared):
    document = added(alice, shared)
    add_document(actor=alice, collection=shared, name="handbook.md", data=b"Lunch is free.")
    for _time in range(indexing.TRIES):
        # Somebody claims it, writes a part and dies.
        claimed = indexing._claim(document.pk)
        assert claimed is not None
        Passage.objects.create(document=claimed, edition=2, number=1, text="x", audience="")
        Document.objects.update(claimed_at=timezone.now() - 2 * indexing.LEASE)
    indexing.index_document(document.pk)
    document.refresh_from_db()
    assert (document.state, document.problem_code) == ("failed", "readers_died")
    assert Passage.objects.filter(text="x").count() == 0
    assert found(alice, "lunch") == ["A lunch costs 14 euros at most."]
    indexing.index_document(document.pk)
    assert found(alice, "lunch") == ["A lunch costs 14 euros at most."]

    again = read_again(actor=alice, document=document)
    assert (again.state, again.tries, again.problem_code) == ("waiting", 0, "")
    indexing.index_document(document.pk)
    assert found(alice, "lunch") == ["Lunch is free."]
    assert not DocumentBody.objects.exists()


class Killed(BaseException):
    pass


def die() -> None:
    """Once it is read, or given up: before, whoever claims it looks at passages as well."""
    if Document.objects.filter(state__in=["ready", "failed"]).exists():
        raise Killed


def pass_a_lease() -> None:
    Document.objects.exclude(claimed_at=None).update(claimed_at=timezone.now() - 2 * indexing.LEASE)


def test_what_was_left_of_an_older_edition_goes_also_where_the_next_one_cannot_be_read(
    alice, shared
):
    document = added(alice, shared)
    add_document(actor=alice, collection=shared, name="handbook.md", data=b"Lunch is free.")
    with beside('SELECT "documents_passage"."id"', die), pytest.raises(Killed):
        indexing.index_document(document.pk)
    assert Passage.objects.filter(edition=1).exists()
    add_document(actor=alice, collection=shared, name="handbook.md", data=b"\0\1\2")
    indexing.index_document(document.pk)
    document.refresh_from_db()
    assert document.state == "failed"
    assert list(Passage.objects.values_list("edition", "text")) == [(2, "Lunch is free.")]
    assert document.claimed_at is None


def test_what_was_made_of_a_document_that_was_given_up_goes_though_the_process_died(alice, shared):
    document = added(alice, shared)
    add_document(actor=alice, collection=shared, name="handbook.md", data=b"Lunch is free.")
    for _time in range(indexing.TRIES):
        claimed = indexing._claim(document.pk)
        pass_a_lease()
    assert claimed is not None
    Passage.objects.create(document=claimed, edition=2, number=1, text="x", audience="")
    with beside('SELECT "documents_passage"."id"', die), pytest.raises(Killed):
        indexing.index_document(document.pk)
    document.refresh_from_db()
    assert document.state == "failed"
    pass_a_lease()
    before = len(asked_for(indexing.INDEX))
    indexing.sweep()
    for each in asked_for(indexing.INDEX)[before:]:
        indexing.index_document(**each)
    assert not Passage.objects.filter(text="x").exists()
    assert found(alice, "lunch") == ["A lunch costs 14 euros at most."]


def test_who_is_slow_to_clear_does_not_say_that_another_has_cleared(alice, shared):
    document = added(alice, shared)
    add_document(actor=alice, collection=shared, name="handbook.md", data=b"Lunch is free.")
    since = timezone.now()

    def overtake() -> None:
        Document.objects.filter(state="ready").update(claimed_at=since)

    with beside('SELECT "documents_passage"."id"', overtake):
        indexing.index_document(document.pk)
    document.refresh_from_db()
    assert document.claimed_at == since


def test_passages_of_an_older_edition_go_though_the_process_died_before_it_removed_them(
    alice, shared
):
    document = added(alice, shared)
    add_document(actor=alice, collection=shared, name="handbook.md", data=b"Lunch is free.")
    with beside('SELECT "documents_passage"."id"', die), pytest.raises(Killed):
        indexing.index_document(document.pk)
    document.refresh_from_db()
    assert (document.state, found(alice, "lunch")) == ("ready", ["Lunch is free."])
    assert Passage.objects.filter(edition=1).exists()

    before = len(asked_for(indexing.INDEX))
    indexing.sweep()
    assert asked_for(indexing.INDEX)[before:] == [], "somebody may be at it"
    pass_a_lease()
    for _look in range(2):
        indexing.sweep()
        for each in asked_for(indexing.INDEX)[before:]:
            indexing.index_document(**each)
    assert asked_for(indexing.INDEX)[before:] == [{"document_id": document.pk}]
    assert list(Passage.objects.values_list("edition", "text")) == [(2, "Lunch is free.")]
    assert found(alice, "lunch") == ["Lunch is free."]


def test_a_lease_that_a_slow_reader_still_holds_is_no_death(alice, shared):
    document = add_document(actor=alice, collection=shared, name="handbook.md", data=HANDBOOK)
    Document.objects.update(state="reading", tries=indexing.TRIES, claimed_at=timezone.now())
    indexing.index_document(document.pk)
    document.refresh_from_db()
    assert document.state == "reading"


def test_an_upload_that_cannot_be_read_is_kept_to_be_read_again(alice, shared, client_of):
    document = added(alice, shared, b"\0\1\2\3", "odd.bin")
    assert (document.state, document.problem_code) == ("failed", "unreadable")
    assert added(alice, shared, b" \n", "empty.md").problem_code == "unreadable"
    client, page = client_of(alice), f"/settings/documents/{shared.uid}/"
    assert client.get(page).content.decode().count("Read again") == 2
    assert client.post(f"/documents/{document.uid}/again/").status_code == 302
    document.refresh_from_db()
    assert document.state == "waiting"
    assert client.get(page).content.decode().count("Read again") == 1


def test_of_what_an_address_takes_the_place_of_no_bytes_are_kept(alice, shared):
    added(alice, shared, b"\0\1\2\3", "example.org")
    assert DocumentBody.objects.exists()
    add_address(actor=alice, collection=shared, address="https://example.org")
    assert not DocumentBody.objects.exists()


def test_nobodys_pile_keeps_another_persons_document_waiting(alice, bob, acme, shared):
    for number in range(5):
        add_document(actor=alice, collection=shared, name=f"{number}.md", data=HANDBOOK)
    his = create_collection(actor=bob, organisation=acme, name="Mine")
    last = add_document(actor=bob, collection=his, name="one.md", data=HANDBOOK)
    before = len(asked_for(indexing.INDEX))
    indexing.sweep(at_once=3)
    swept = asked_for(indexing.INDEX)[before:]
    assert len(swept) == 3
    assert {"document_id": last.pk} in swept


def test_an_address_is_fetched_only_from_the_public_internet(alice, shared):
    for address in (
        "file:///etc/passwd",
        "https://a b",
        "https://u:p@example.org/",
        "https://[",
        "https://a.example:99999/",
    ):
        with pytest.raises(Invalid):
            add_address(actor=alice, collection=shared, address=address)
    document = add_address(actor=alice, collection=shared, address="http://127.0.0.1:9/a.md")
    indexing.index_document(document.pk)
    document.refresh_from_db()
    assert document.state == "failed"
    assert "public internet" in document.problem
    assert read_again(actor=alice, document=document).state == "waiting"
    with pytest.raises(Conflict):
        read_again(actor=alice, document=added(alice, shared))


def test_limits_hold(alice, acme, shared, settings):
    settings.AGENTSITE_DOCUMENT_BYTES = 10
    with pytest.raises(TooLarge):
        add_document(actor=alice, collection=shared, name="a.md", data=b"x" * 11)
    add_document(actor=alice, collection=shared, name="a.md", data=b"x" * 10)
    settings.AGENTSITE_DOCUMENTS = 1
    with pytest.raises(LimitReached):
        add_document(actor=alice, collection=shared, name="b.md", data=b"x")
    with pytest.raises(Invalid):
        add_document(actor=alice, collection=shared, name="a.md", data=b"")
    settings.AGENTSITE_COLLECTIONS = 1
    with pytest.raises(LimitReached):
        create_collection(actor=alice, organisation=acme, name="More", shared=True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("everybodys", [True, False], ids=["shared", "her own"])
def test_two_collections_at_once_are_not_one_too_many(alice, acme, settings, everybodys):
    settings.AGENTSITE_COLLECTIONS = 1
    both = threading.Barrier(2)
    refused: list[LimitReached] = []

    def wait() -> None:
        # Only one of them comes so far; the other one waits for it before it counts.
        with suppress(threading.BrokenBarrierError):
            both.wait(1)

    def make(name: str) -> None:
        try:
            with beside('INSERT INTO "documents_collection"', wait):
                create_collection(actor=alice, organisation=acme, name=name, shared=everybodys)
        except LimitReached as problem:
            refused.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=make, args=(name,)) for name in ("One", "Two")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(refused) == 1
    assert Collection.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("everything", [False, True], ids=["document", "collection"])
def test_what_is_deleted_while_its_passages_are_written_goes_with_all_of_them(
    alice, shared, everything
):
    document = Document.objects.create(
        collection=shared, name="a.md", state="reading", claimed_at=timezone.now()
    )
    written, deleting = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            indexing._require_claim(document)
            Passage.objects.create(document=document, edition=1, number=1, text="x", audience="")
            written.set()
            assert deleting.wait(30)
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    assert written.wait(30)
    if connection.vendor == "sqlite":
        deleting.set()  # there it waits for the writer before its first statement
    # Whatever was looked at before, this is what waits for the writer.
    with (
        beside('DELETE FROM "documents_document"', deleting.set),
        beside("SELECT", deleting.set, 'UPDATE OF "documents_document"'),
    ):
        if everything:
            delete_collection(actor=alice, collection=shared)
        else:
            delete_document(actor=alice, document=document)
    writer.join()
    assert not Document.objects.exists()
    assert not Passage.objects.exists()


# --- who may --------------------------------------------------------------------------------------


def test_members_read_what_is_shared_and_only_its_managers_change_it(
    alice, bob, mallory, acme, shared
):
    document = added(alice, shared)
    own = create_collection(actor=alice, organisation=acme, name="Mine")
    added(alice, own, b"Alice's lunch is secret.", "own.md")
    assert found(bob, "lunch") == ["A lunch costs 14 euros at most."]
    assert len(found(alice, "lunch")) == 2
    assert found(mallory, "lunch") == []
    with pytest.raises(Forbidden):
        create_collection(actor=bob, organisation=acme, name="Ours", shared=True)
    for nobody, error in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(error):
            add_document(actor=nobody, collection=shared, name="x.md", data=b"x")
        with pytest.raises(error):
            add_address(actor=nobody, collection=shared, address="https://example.org/")
        with pytest.raises(error):
            delete_document(actor=nobody, document=document)
        with pytest.raises(error):
            read_again(actor=nobody, document=document)
        with pytest.raises(error):
            delete_collection(actor=nobody, collection=shared)
    with pytest.raises(NotFound):
        delete_collection(actor=bob, collection=own)


def test_a_membership_that_ends_ends_every_way_to_a_document(alice, bob, acme, shared, client_of):
    added(alice, shared)
    passage = Passage.objects.visible_to(bob).get(heading="Meals")
    client = client_of(bob)
    assert b"14 euros" in client.get(f"/passages/{passage.uid}/").content
    Membership.objects.filter(user=bob, organisation=acme).delete()
    assert found(bob, "lunch") == []
    assert client.get(f"/passages/{passage.uid}/").status_code == 404
    assert client.get(f"/settings/documents/{shared.uid}/").status_code == 404


def test_what_is_deleted_is_out_of_the_index_as_well(alice, shared):
    document = added(alice, shared)
    delete_document(actor=alice, document=document)
    assert not Passage.objects.exists()
    assert INDEX.having(Passage, ["lunch"], [shared.audience], 10) == []
    added(alice, shared)
    delete_collection(actor=alice, collection=shared)
    assert INDEX.having(Passage, ["lunch"], [shared.audience], 10) == []


# --- pages ----------------------------------------------------------------------------------------


def test_a_person_makes_a_collection_uploads_searches_and_opens_a_passage(alice, acme, client_of):
    client = client_of(alice)
    client.post("/settings/documents/", shown(acme, name="Papers"))
    collection = Collection.objects.get()
    assert collection.owner == alice
    page = f"/settings/documents/{collection.uid}/"
    files = [SimpleUploadedFile("a.md", HANDBOOK), SimpleUploadedFile("b.txt", b"Tea is free.")]
    assert client.post(page, {"uploads": files}).status_code == 302
    for document in Document.objects.all():
        indexing.index_document(document.pk)
    shown_page = client.get(page, {"q": "What do Lunches cost?"}).content.decode()
    assert "found by: Lunches, cost" in shown_page
    passage = Passage.objects.get(heading="Meals")
    assert f"/passages/{passage.uid}/" in shown_page
    assert "b.txt" in shown_page
    assert client.post(page).status_code == 422
    bad = client.post(f"{page}address/", {"address": "nowhere"})
    assert bad.status_code == 422
    assert "nowhere" in bad.content.decode()
    document = Document.objects.get(name="b.txt")
    client.post(f"/documents/{document.uid}/delete/")
    assert not Document.objects.filter(pk=document.pk).exists()
    client.post(f"{page}delete/")
    assert not Collection.objects.exists()


def test_an_answer_links_to_passages_and_to_no_other_page_of_ours():
    cited = "[1](/passages/psg_1a/) [2](/passages/psg_1a/../../settings/) [3](/c/x/) [4](//evil.example/)"
    html = to_html(cited)
    assert html.count("href=") == 1
    assert 'href="/passages/psg_1a/"' in html
    outside = clean(f'{html}<a href="/settings/">x</a><a href="javascript:x">y</a>')
    assert outside.count("href=") == 1


# --- agents ---------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_agent_finds_a_passage_and_its_answer_cites_it(converse, alice, shared):
    added(alice, shared)
    passage = Passage.objects.get(heading="Meals")
    searched = call("search_documents", query="lunch")
    read_on = call("read_passage", id=passage.uid)
    cited = f"14 euros [1](/passages/{passage.uid}/)."
    conversation, _script = converse([reply(searched), reply(read_on), reply(cited)])
    post_message(actor=alice, conversation=conversation, text="What may it cost?")
    rested(conversation)
    results = [
        row.value for row in conversation.events.filter(type="agent.tool_result").order_by("seq")
    ]
    assert all(result.untrusted for result in results)
    assert f"[1](/passages/{passage.uid}/)" in results[0].content[0].text
    assert "second class" in results[1].content[0].text


def test_documents_of_ones_own_are_out_of_a_conversation_that_others_read(
    converse, alice, bob, acme, tmp_path
):
    own = create_collection(actor=alice, organisation=acme, name="Mine")
    added(alice, own)
    conversation, _script = converse([])
    assert set(part(conversation, conversation.config, tmp_path).tools) == {
        "search_documents",
        "read_passage",
    }
    share_conversation(
        actor=alice, conversation=conversation, user_uid=bob.uid, role=ShareRole.VIEWER
    )
    assert not part(conversation, conversation.config, tmp_path).tools
