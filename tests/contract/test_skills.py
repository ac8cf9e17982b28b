"""Skills through the official SDK: uploaded, downloaded, named by an agent, used in a session."""

from __future__ import annotations

import io
import uuid
import zipfile
from typing import Any

import anthropic
import pytest

from providers.scripted import call, reply
from tests.contract.conftest import error_type


def folder(name: str, more: str = "") -> list[tuple[str, bytes]]:
    text = f"---\nname: {name}\ndescription: How we write letters.\n---\n\nBegin with the date. {more}\n"
    return [(f"{name}/SKILL.md", text.encode()), (f"{name}/more/form.txt", b"Dear \xe2\x80\xa6")]


@pytest.fixture
def name() -> str:
    return f"letters-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def skill(alice: anthropic.Anthropic, name: str) -> Any:
    return alice.beta.skills.create(files=folder(name), display_name="Our letters")


def test_a_skill_is_uploaded_found_changed_downloaded_and_deleted(alice, skill, name):
    skills = alice.beta.skills
    assert (skill.display_name, skill.source.type) == ("Our letters", "custom")
    assert skills.retrieve(skill.id) == skill
    assert skill.id in {one.id for one in skills.list(limit=1, source="custom")}
    assert skill.id not in {one.id for one in skills.list(source="anthropic")}
    first = skills.versions.retrieve("latest", skill_id=skill.id)
    assert (first.id, first.name) == (skill.latest_version_id, name)
    second = skills.versions.create(skill.id, files=folder(name, "End with a name."))
    assert [one.id for one in skills.versions.list(skill.id)] == [second.id, first.id]
    assert skills.retrieve(skill.id).latest_version_id == second.id
    packed = zipfile.ZipFile(
        io.BytesIO(skills.versions.download(second.id, skill_id=skill.id).read())
    )
    assert [(one, packed.read(one)) for one in packed.namelist()] == folder(
        name, "End with a name."
    )
    again = io.BytesIO()
    with zipfile.ZipFile(again, "w") as archive:
        for path, data in folder(name, "Thrice."):
            archive.writestr(path, data)
    third = skills.versions.create(skill.id, files=[(f"{name}.zip", again.getvalue())])
    assert skills.versions.delete(third.id, skill_id=skill.id).type == "skill_version_deleted"
    assert skills.retrieve(skill.id).latest_version_id == second.id
    assert skills.delete(skill.id).type == "skill_deleted"
    with pytest.raises(anthropic.NotFoundError):
        skills.retrieve(skill.id)


def test_a_folder_that_breaks_the_standard_is_refused_and_leaves_nothing(alice, name):
    skills = alice.beta.skills
    text = f"---\nname: {name}\n---\nWithout a description."
    for files in (
        [(f"{name}/SKILL.md", text.encode())],
        [(f"{name}/SKILL.md", b"x"), ("other/SKILL.md", b"y")],
        [("SKILL.zip", b"no archive")],
        [(f"{name}/SKILL.md", folder(name)[0][1]), (f"{name}/../../up.txt", b"up")],
    ):
        with pytest.raises((anthropic.BadRequestError, anthropic.ConflictError)):
            skills.create(files=files)
    assert name not in {one.display_name for one in skills.list()}


def test_nobody_elsewhere_finds_or_changes_a_skill(mallory, skill, name):
    skills = mallory.beta.skills
    assert skill.id not in {one.id for one in skills.list()}
    version = skill.latest_version_id
    for attempt in (
        lambda: skills.retrieve(skill.id),
        lambda: skills.delete(skill.id),
        lambda: skills.versions.list(skill.id),
        lambda: skills.versions.create(skill.id, files=folder(name, "Mine.")),
        lambda: skills.versions.retrieve(version, skill_id=skill.id),
        lambda: skills.versions.delete(version, skill_id=skill.id),
        lambda: skills.versions.download(version, skill_id=skill.id),
    ):
        with pytest.raises(anthropic.NotFoundError):
            attempt()
    with pytest.raises(anthropic.BadRequestError) as caught:
        mallory.beta.agents.create(
            name="Thief",
            model="claude-sonnet-5-5",
            skills=[{"type": "custom", "skill_id": skill.id}],
        )
    assert error_type(caught) == "invalid_request_error"


def test_what_comes_with_the_server_is_listed_and_cannot_be_deleted(alice):
    skills = alice.beta.skills
    shipped = {one.display_name: one for one in skills.list(source="anthropic")}
    assert {"word-documents", "spreadsheets", "slide-decks", "pdf-files"} <= shipped.keys()
    with pytest.raises(anthropic.PermissionDeniedError):
        skills.delete(shipped["pdf-files"].id)


def test_an_agent_with_a_skill_reads_it_in_a_session(alice, world, make_agent, skill, name):
    agent = make_agent(
        skills=[{"type": "custom", "skill_id": skill.id}],
        tools=[{"type": "agent_toolset_20260401"}],
    )
    assert [(one.type, one.skill_id, one.version) for one in agent.skills] == [
        ("custom", skill.id, "latest")
    ]
    pinned = alice.beta.agents.update(
        agent.id,
        version=agent.version,
        skills=[{"type": "custom", "skill_id": skill.id, "version": skill.latest_version_id}],
    )
    assert pinned.skills[0].version == skill.latest_version_id
    kept = alice.beta.agents.update(agent.id, version=pinned.version, system="Be brief.")
    assert kept.skills == pinned.skills
    world.service.expect(
        f"Write with {name}", reply(call("read_skill", name=name)), reply("Dear Ann")
    )
    session = alice.beta.sessions.create(agent=agent.id, environment_id=world.environment)
    alice.beta.sessions.events.send(
        session.id,
        events=[
            {
                "type": "user.message",
                "content": [{"type": "text", "text": f"Write with {name}"}],
            }
        ],
    )
    with alice.beta.sessions.events.stream(session.id) as stream:
        for event in stream:
            if event.type == "session.status_idle":
                break
    events = list(alice.beta.sessions.events.list(session.id))
    assert "Begin with the date." in str([one for one in events if "tool_result" in one.type])
    with pytest.raises(anthropic.ConflictError):
        alice.beta.skills.delete(skill.id)
