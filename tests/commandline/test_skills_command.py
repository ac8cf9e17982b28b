"""`agent skills …`: an author's folder looked at, packed, published and installed; what an agent comes to."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.actions.agents import create_agent
from harness.agentconfig import AgentConfig, SkillUse
from skills_app.actions.releases import ask_for_release, decide_release
from skills_app.actions.skills import add_version
from skills_app.choosing import choose
from skills_app.models import Skill, SkillVersion
from tests.skills_app.conftest import converse, environment, files_of, make_agent, released, text_of

__all__ = ["converse", "environment", "make_agent", "released"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "code-review"
    for path, data in files_of().items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_bytes(data)
    return made


@pytest.fixture
def skills(capsys: pytest.CaptureFixture[str]):
    def run(*words: str, user: str = "alice") -> tuple[str, str]:
        call_command("agent", "skills", *words, "--user", user)
        return capsys.readouterr()

    return run


def refused(skills, *words: str, user: str = "alice") -> str:
    with pytest.raises(CommandError) as problem:
        skills(*words, user=user)
    assert problem.value.returncode == 1
    return str(problem.value)


def test_a_sound_folder_is_checked_without_a_word_and_one_with_faults_by_each(
    skills, folder, capsys
):
    out, _notes = skills("check", str(folder))
    assert out.startswith("code-review  sha256:")
    assert "\n- " not in out
    (folder / "SKILL.md").write_bytes(text_of(body=""))
    with pytest.raises(SystemExit) as ended:
        skills("check", str(folder))
    assert ended.value.code == 1
    assert "- There is nothing below the head of SKILL.md." in capsys.readouterr().out


def test_links_and_pipes_in_a_folder_are_refused_and_what_tools_left_is_passed_over(skills, folder):
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("secret")
    (folder / "link").symlink_to("/etc/passwd")
    assert "link or a device" in refused(skills, "check", str(folder))
    (folder / "link").unlink()
    os.mkfifo(folder / "pipe")
    assert "link or a device" in refused(skills, "check", str(folder))
    (folder / "pipe").unlink()
    out, _notes = skills("check", str(folder), "--json")
    assert json.loads(out)["files"] == 2


def test_what_is_packed_holds_the_folder_alone_and_takes_no_files_place(skills, folder, tmp_path):
    target = tmp_path / "packed.zip"
    skills("pack", str(folder), "--output", str(target))
    with zipfile.ZipFile(target) as archive:
        assert archive.namelist() == ["code-review/SKILL.md", "code-review/scripts/look.py"]
    before = target.read_bytes()
    refused(skills, "pack", str(folder), "--output", str(target))
    assert target.read_bytes() == before


def test_ones_own_is_offered_at_once_and_the_organisations_waits(skills, alice, bob, acme, folder):
    out, _notes = skills("publish", str(folder))
    assert out.rstrip().endswith("released")
    assert Skill.objects.get(owner=alice).stable is not None
    out, _notes = skills("publish", str(folder), "--scope", "organisation", user="bob")
    assert out.rstrip().endswith("waits for a review")
    assert SkillVersion.objects.get(created_by=bob).state == "waiting"


def test_mallory_sees_and_locks_nothing_of_acmes(skills, alice, acme, mallory, released):
    released()
    mallory_sees, _notes = skills("list", user="mallory")
    assert "code-review" not in mallory_sees
    assert "no skill" in refused(skills, "show", "code-review", user="mallory")
    assert "code-review" in skills("list")[0]


def test_a_skill_is_shown_with_its_files_versions_and_uses(skills, alice, acme, released):
    version = released()
    out, _notes = skills("show", "code-review")
    assert f"code-review 1  sha256:{version.digest}" in out
    assert "scripts/look.py" in out
    assert "1  released  stable" in out
    row = json.loads(skills("show", "code-review", "--json")[0])
    assert row["files"].keys() == files_of().keys()


def test_an_installation_is_shown_first_and_nothing_is_stored_without_a_yes(
    skills, alice, acme, folder, capsys
):
    assert "Nothing was installed" in refused(skills, "install", str(folder))
    notes = capsys.readouterr().err
    assert "added scripts/look.py" in notes
    assert not Skill.objects.filter(owner=alice).exists()
    skills("install", str(folder), "--yes")
    assert Skill.objects.get(owner=alice).stable is not None
    _out, notes = skills("install", str(folder), "--yes")
    assert "exactly this is there already" in notes
    (folder / "scripts" / "look.py").write_bytes(b"print('other')\n")
    _out, notes = skills("install", str(folder), "--yes")
    assert "in place of 1" in notes
    assert "changed scripts/look.py" in notes


def test_what_requires_what_cannot_be_had_is_not_installed(skills, alice, acme, folder, capsys):
    (folder / "agentsite.yaml").write_text('requires: ["tables>=2"]\n')
    assert "Nothing was installed" in refused(skills, "install", str(folder), "--yes")
    assert "tables>=2" in capsys.readouterr().err
    assert not Skill.objects.filter(name="code-review").exists()


@pytest.fixture
def composed(alice, acme, released):
    """An agent that names a skill which requires another one."""
    released(files_of("tables"))
    needing = files_of("reports") | {"agentsite.yaml": b'requires: ["tables>=1"]\n'}
    released(needing)
    boss = type(alice).objects.create_superuser("boss", "boss@example.org", "a-long-Passw0rd")
    config = AgentConfig(skills=(SkillUse(name="reports"),))
    return create_agent(actor=boss, organisation=acme, name="Writer", description="", config=config)


def test_why_tells_the_way_to_a_required_skill(skills, composed):
    assert skills("why", "Writer", "tables")[0] == "Writer → reports → tables>=1\n"
    assert "does not come to" in refused(skills, "why", "Writer", "code-review")


def test_a_saved_lock_keeps_to_every_version_whatever_channels_say_later(
    skills, composed, alice, bob, acme
):
    with pytest.raises(CommandError):  # bob does not look after agents
        skills("lock", "Writer", "--save", user="bob")
    composed.refresh_from_db()
    assert composed.current.config.skills == (SkillUse(name="reports"),)
    out, notes = skills("lock", "Writer", "--save")
    tables = SkillVersion.objects.get(skill__name="tables")
    assert out.splitlines()[0] == f"tables==1 sha256:{tables.digest}  # reports → tables>=1"
    assert "from version 2 on" in notes
    newer = add_version(
        actor=alice, skill=tables.skill, files=files_of("tables", **{"notes.md": b"More."})
    )
    ask_for_release(actor=alice, version=newer)
    decide_release(actor=alice, version=newer, approve=True)
    composed.refresh_from_db()
    kept = choose(composed.current.config.skills, acme, None)
    assert [str(each) for each in kept.versions] == ["tables 1", "reports 1"]
    assert [str(each) for each in choose((SkillUse(name="reports"),), acme, None).versions] == [
        "tables 2",
        "reports 1",
    ]


def test_a_version_that_is_not_the_locked_one_is_not_used(alice, acme, released):
    released()
    use = SkillUse(name="code-review", version="1", digest="0" * 64)
    chosen = choose((use,), acme, None)
    assert not chosen.versions
    assert "not the one that was locked" in chosen.problems[0]


def test_another_machine_is_refused_with_where_to_turn(skills):
    assert "/api/skills" in refused(skills, "list", "--url", "http://127.0.0.1:1")
