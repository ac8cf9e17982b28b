"""A folder in which authors edit skills: an edit is a draft for everybody, a broken one changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.agentconfig import SkillUse
from skills_app import watching
from skills_app.choosing import choose
from skills_app.files import files_of as stored_files
from skills_app.models import Skill, SkillVersion
from skillsets.fixing import add
from skillsets.models import UsedSkill

from .conftest import files_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(tmp_path, settings) -> Path:
    """The folder of one skill in the folder that is watched, as this process has seen it."""
    settings.AGENTSITE_SKILLS_DIR = str(tmp_path)
    folder: Path = tmp_path / "code-review"
    for path, data in files_of().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    watching.look_for_edits()
    return folder


def draft_in(acme) -> SkillVersion:
    (version,) = choose([SkillUse(name="code-review", version="draft")], acme, None).versions
    return version


def test_an_edit_is_a_draft_that_only_who_names_it_gets(place, acme):
    first = draft_in(acme)
    (place / "SKILL.md").write_bytes(text_of(body="Look at the risks."))
    watching.look_for_edits()
    second = draft_in(acme)
    assert b"risks" in stored_files(second)["SKILL.md"]
    assert b"risks" not in stored_files(first)["SKILL.md"]
    assert (first.state, second.state) == ("draft", "draft")
    nobodys = choose([SkillUse(name="code-review")], acme, None)
    assert not nobodys.versions
    assert "stable" in nobodys.problems[0]


def test_an_edit_of_the_same_length_and_second_is_seen_and_a_folder_at_rest_is_not_read(
    place, acme, django_assert_num_queries
):
    script = place / "scripts/look.py"
    script.write_bytes(script.read_bytes().replace(b"seen", b"find"))
    watching.look_for_edits()
    assert b"find" in stored_files(draft_in(acme))["scripts/look.py"]
    with django_assert_num_queries(0):
        watching.look_for_edits()


def test_another_process_finds_what_was_stored_and_stores_nothing_twice(place, acme):
    watching._seen.clear()
    watching.look_for_edits()
    assert SkillVersion.objects.filter(skill__name="code-review").count() == 1


@pytest.mark.parametrize(
    "broken", [b"", b"---\nname: code-review\n---\nNo description", b"\xff---"]
)
def test_a_broken_edit_keeps_the_draft_before_and_says_why(place, acme, broken, staff, client):
    before = draft_in(acme)
    (place / "SKILL.md").write_bytes(broken)
    watching.look_for_edits()
    assert draft_in(acme) == before
    skill = Skill.objects.get(name="code-review")
    assert "SKILL.md" in skill.edit_problem
    client.force_login(staff)
    assert "was not taken" in client.get(f"/skills/{skill.uid}/").content.decode()
    (place / "SKILL.md").write_bytes(text_of(body="Mended."))
    watching.look_for_edits()
    skill.refresh_from_db()
    assert skill.edit_problem == ""
    assert draft_in(acme) != before


def test_a_link_out_of_the_folder_is_not_followed(place, acme):
    before = draft_in(acme)
    (place / "passwords").symlink_to("/etc/passwd")
    watching.look_for_edits()
    assert draft_in(acme) == before
    assert "link" in Skill.objects.get(name="code-review").edit_problem


def test_a_skill_that_is_broken_or_goes_away_hinders_no_other(place, acme):
    (place.parent / "another").mkdir()
    (place.parent / "another/SKILL.md").write_bytes(b"\xff")
    (place / "SKILL.md").write_bytes(text_of(body="Again."))
    watching.look_for_edits()
    assert b"Again." in stored_files(draft_in(acme))["SKILL.md"]
    (place / "SKILL.md").unlink()
    watching.look_for_edits()
    assert b"Again." in stored_files(draft_in(acme))["SKILL.md"]


def test_old_drafts_go_but_for_those_that_conversations_began_with(
    place, acme, converse, monkeypatch
):
    monkeypatch.setattr(watching, "KEPT", 2)
    first = draft_in(acme)
    conversation, _script = converse()
    add(conversation, (first,), {"code-review"})
    for number in range(5):
        (place / "SKILL.md").write_bytes(text_of(body=f"Text {number}."))
        watching.look_for_edits()
    assert UsedSkill.objects.get(conversation=conversation).version == first
    assert SkillVersion.objects.filter(skill=first.skill).count() == 4
