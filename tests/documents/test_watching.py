"""Directories that the operator named: their files are documents, and nothing outside of them is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from django.db.models.signals import post_init

from documents import indexing, watching
from documents.actions.collections import create_collection, forget_held
from documents.actions.documents import add_document
from documents.models import Collection, Document, Passage
from documents.searching import search_passages
from documents.watching import watch
from harness.errors import Conflict, Forbidden, NotFound

pytestmark = pytest.mark.django_db


@pytest.fixture
def handbooks(alice, acme) -> Collection:
    return create_collection(actor=alice, organisation=acme, name="Handbooks", shared=True)


@pytest.fixture
def directory(tmp_path) -> Path:
    made: Path = tmp_path / "handbooks"
    (made / "travel").mkdir(parents=True)
    (made / "travel" / "trains.md").write_text("# Trains\n\nTrains are booked in second class.\n")
    (made / "meals.txt").write_text("A lunch costs 14 euros at most.\n")
    return made


def look(collection: Collection, directory: Path, **limits: int) -> int:
    changed = watch(collection, directory, **limits)
    for document in Document.objects.filter(state=Document.State.WAITING):
        indexing.index_document(document.pk)
    return changed


def names() -> set[str]:
    return set(Document.objects.values_list("name", flat=True))


def found(user, query: str) -> list[str]:
    hits = search_passages(user, query, Collection.objects.all()).hits
    return [hit.passage.text for hit in hits]


def test_files_are_found_and_cited_by_their_paths(alice, bob, mallory, handbooks, directory):
    assert look(handbooks, directory) == 2
    assert names() == {"travel/trains.md", "meals.txt"}
    assert found(bob, "trains") == ["Trains are booked in second class."]
    assert found(mallory, "trains") == []
    assert look(handbooks, directory) == 0


def test_what_is_changed_is_read_anew_and_what_is_deleted_is_forgotten(alice, handbooks, directory):
    look(handbooks, directory)
    (directory / "meals.txt").write_text("A lunch costs 15 euros.\n")
    (directory / "travel" / "trains.md").unlink()
    assert look(handbooks, directory) == 2
    assert found(alice, "lunch") == ["A lunch costs 15 euros."]
    assert (names(), found(alice, "trains")) == ({"meals.txt"}, [])
    assert Passage.objects.count() == 1


def test_a_look_takes_back_nothing_that_a_reader_stored_meanwhile(alice, handbooks, directory):
    look(handbooks, directory)
    (directory / "meals.txt").write_text("A lunch costs 15 euros.\n")

    def read_meanwhile(instance: Document, **_more: object) -> None:
        Document.objects.filter(pk=instance.pk).update(edition=7, size=11)

    post_init.connect(read_meanwhile, sender=Document)
    try:
        watch(handbooks, directory)
    finally:
        post_init.disconnect(read_meanwhile, sender=Document)
    document = Document.objects.get(name="meals.txt")
    assert (document.edition, document.size, document.state) == (7, 11, "waiting")


def test_links_lead_nowhere(alice, handbooks, directory, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("The password of the vault.\n")
    (directory / "one.txt").symlink_to(outside / "secret.txt")
    (directory / "all").symlink_to(outside)
    (directory / "up.txt").symlink_to("../outside/secret.txt")
    os.link(outside / "secret.txt", directory / "hard.txt")
    os.mkfifo(directory / "pipe.txt")
    (directory / ".hidden.txt").write_text("Hidden.\n")
    look(handbooks, directory)
    assert names() == {"travel/trains.md", "meals.txt"}


def test_a_link_that_takes_a_files_place_after_it_was_seen_is_not_read(directory, tmp_path):
    (tmp_path / "trains.md").write_text("Outside.\n")
    root = os.open(directory, os.O_RDONLY)
    assert watching._read(root, "travel/trains.md").startswith(b"# Trains")
    (directory / "travel" / "trains.md").unlink()
    (directory / "travel").rmdir()
    (directory / "travel").symlink_to(tmp_path)
    assert watching._read(root, "travel/trains.md") == b""
    (directory / "meals.txt").unlink()
    (directory / "meals.txt").symlink_to(tmp_path / "trains.md")
    assert watching._read(root, "meals.txt") == b""
    os.close(root)


def test_a_directory_that_cannot_be_read_forgets_nothing(handbooks, directory, settings):
    look(handbooks, directory)
    settings.AGENTSITE_WATCHED_DOCUMENTS = {
        handbooks.uid: str(directory.parent / "gone"),
        "coll_unknown": str(directory),
    }
    watching.watch_all()
    assert len(names()) == 2
    handbooks.refresh_from_db()
    assert handbooks.held_back == "missing"


def on_devices(patch: pytest.MonkeyPatch, devices: dict[Path, int]) -> None:
    """Have these folders lie on devices of their own, which only root could mount there."""
    by_number = {folder.stat().st_ino: device for folder, device in devices.items()}
    fstat = os.fstat

    def found(descriptor: int) -> os.stat_result:
        there = fstat(descriptor)
        device = by_number.get(there.st_ino, there.st_dev)
        return os.stat_result((*there[:2], device, *there[3:10]))

    patch.setattr(os, "fstat", found)


def test_what_lay_on_a_device_that_is_not_mounted_is_kept(handbooks, directory, monkeypatch):
    travel, far = directory / "travel", directory / "travel" / "far"
    far.mkdir()
    (far / "ferries.md").write_text("Ferries.\n")
    with monkeypatch.context() as both:
        on_devices(both, {travel: 10**6, far: 10**6 + 1})
        look(handbooks, directory)
    every = {"travel/far/ferries.md", "travel/trains.md", "meals.txt"}
    assert names() == every
    (far / "ferries.md").unlink()
    with monkeypatch.context() as outer:
        on_devices(outer, {travel: 10**6, far: 10**6})
        assert look(handbooks, directory) == 0
    assert names() == every
    (travel / "trains.md").unlink()
    far.rmdir()
    assert look(handbooks, directory) == 0
    travel.rmdir()
    assert look(handbooks, directory) == 0
    assert names() == every


def test_what_is_gone_from_a_device_that_is_mounted_is_forgotten(handbooks, directory, monkeypatch):
    on_devices(monkeypatch, {directory / "travel": 10**6})
    look(handbooks, directory)
    (directory / "travel" / "trains.md").rename(directory / "travel" / "ferries.md")
    look(handbooks, directory)
    assert names() == {"travel/ferries.md", "meals.txt"}


def test_what_is_gone_all_at_once_is_kept_until_it_is_back_or_somebody_says_so(
    alice, bob, mallory, handbooks, directory, client_of
):
    look(handbooks, directory)
    away, page = directory.with_name("away"), f"/settings/documents/{handbooks.uid}/"
    directory.rename(away)
    directory.mkdir()
    assert look(handbooks, directory) == 0
    assert found(bob, "trains")
    assert "no file is left" in client_of(alice).get(page).content.decode()
    assert "forget them" not in client_of(bob).get(page).content.decode()
    directory.rmdir()
    away.rename(directory)
    assert look(handbooks, directory) == 0
    assert "no file is left" not in client_of(alice).get(page).content.decode()
    with pytest.raises(Conflict):
        forget_held(actor=alice, collection=handbooks)
    directory.rename(away)
    directory.mkdir()
    look(handbooks, directory)
    for nobody, error in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(error):
            forget_held(actor=nobody, collection=handbooks)
    assert client_of(alice).post(f"{page}forget/").status_code == 302
    assert (names(), found(alice, "trains")) == (set(), [])
    assert look(handbooks, directory) == 0
    handbooks.refresh_from_db()
    assert handbooks.held_back == ""


def test_what_somebody_uploaded_is_hers(alice, handbooks, directory):
    add_document(actor=alice, collection=handbooks, name="meals.txt", data=b"Mine.\n")
    look(handbooks, directory)
    assert found(alice, "mine") == ["Mine."]
    (directory / "meals.txt").unlink()
    look(handbooks, directory)
    assert found(alice, "mine") == ["Mine."]


def test_what_is_too_large_or_empty_is_named_and_tried_again_when_it_changes(
    handbooks, directory, settings
):
    settings.AGENTSITE_DOCUMENT_BYTES = 40
    (directory / "travel" / "trains.md").write_text("x" * 41)
    (directory / "meals.txt").write_text("")
    assert look(handbooks, directory) == 0
    states = set(Document.objects.values_list("state", "problem_code"))
    assert states == {("failed", "unreadable")}
    (directory / "meals.txt").write_text("A lunch.\n")
    assert look(handbooks, directory) == 1
    assert Document.objects.get(name="meals.txt").state == Document.State.READY


def test_a_look_is_bounded_and_takes_the_rest_up_later(handbooks, directory, settings):
    assert [look(handbooks, directory, at_once=1) for _ in range(3)] == [1, 1, 0]
    settings.AGENTSITE_DOCUMENTS = 2
    (directory / "third.txt").write_text("A third.\n")
    assert look(handbooks, directory) == 0
    with pytest.raises(watching.TooMany):
        watch(handbooks, directory, entries=2)
    assert len(names()) == 2


def test_files_that_are_not_taken_stand_in_the_way_of_none(alice, handbooks, directory, settings):
    look(handbooks, directory)
    add_document(actor=alice, collection=handbooks, name="a.txt", data=b"Mine.\n")
    settings.AGENTSITE_DOCUMENTS = 3
    for name in ("a.txt", "b.txt", "c.txt"):
        (directory / name).write_text("No room.\n")
    (directory / "travel" / "trains.md").write_text("Trains are booked in first class.\n")
    assert [look(handbooks, directory, at_once=1) for _ in range(2)] == [1, 0]
    assert found(alice, "trains") == ["Trains are booked in first class."]


def test_what_is_uploaded_in_the_place_of_a_watched_file_is_hers_from_then_on(
    alice, handbooks, directory
):
    look(handbooks, directory)
    add_document(actor=alice, collection=handbooks, name="meals.txt", data=b"Mine.\n")
    look(handbooks, directory)
    (directory / "meals.txt").unlink()
    look(handbooks, directory)
    assert found(alice, "mine") == ["Mine."]


def test_a_folder_below_that_cannot_be_read_forgets_nothing(handbooks, directory):
    look(handbooks, directory)
    unread: list[str] = []
    with pytest.MonkeyPatch.context() as few:
        # As where a process has no descriptors left: root may read everything.
        few.setattr(os, "open", refusing("travel", os.open))
        assert {file.path for file in watching._files(directory, unread, [])} == {"meals.txt"}
        assert look(handbooks, directory) == 0
    assert unread == ["travel/"]
    assert len(names()) == 2


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_many_folders_side_by_side_are_open_one_at_a_time(handbooks, directory):
    for number in range(60):
        (directory / f"folder{number}").mkdir()
    before = descriptors()
    looks = watching._files(directory, [], [])
    next(looks)
    assert descriptors() - before < 10
    looks.close()
    assert descriptors() == before


def refusing(name: str, really):
    def opened(path, flags, *given, **more):
        if path == name:
            raise OSError(errno.EMFILE, "Too many open files")
        return really(path, flags, *given, **more)

    return opened
