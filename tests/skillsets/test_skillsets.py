"""Skills in conversations: fixed with the first message, read when needed, stopped at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import docx
import openpyxl
import pptx
import pypdf
import pytest
from django.utils import timezone

from agentsite.seeding import seed
from chat.commands import commands_of
from chat.presentation.frames import page as page_of
from conversations.actions.messages import post_message
from conversations.actions.sharing import share_conversation
from conversations.kitparts import mounts_of, rules_of
from conversations.kits import plan_kit
from conversations.models import Conversation
from harness.errors import Conflict, LimitReached, NotFound
from providers.scripted import call, reply
from skills_app.actions.releases import ask_for_release, decide_release, deprecate_version
from skills_app.actions.skills import add_version, create_skill, delete_skill, kill_skill
from skills_app.models import Skill, SkillVersion
from skills_app.uses import uses_of
from skillsets.actions import adding
from skillsets.actions.adding import add_skill
from skillsets.kitpart import part
from skillsets.models import SkillSet, UsedSkill
from tests.conversations.conftest import rested
from tests.skills_app.conftest import files_of, text_of
from tools_app.workspace import workspace_for

pytestmark = pytest.mark.django_db(transaction=True)

SKILLS = [{"name": "code-review"}]


def used(conversation: Conversation) -> list[str]:
    return [str(each.version) for each in UsedSkill.objects.of(conversation)]


def result(conversation: Conversation) -> str:
    row = conversation.events.filter(type="agent.tool_result").order_by("seq").last()
    return row.value.content[0].text


def section(conversation: Conversation) -> str:
    made = part(conversation, conversation.config, Path())
    return made.sections[0].text if made.sections else ""


def release(alice, skill: Skill, **files: bytes) -> SkillVersion:
    version = add_version(actor=alice, skill=skill, files={**files_of(), **files})
    ask_for_release(actor=alice, version=version)
    return decide_release(actor=alice, version=version, approve=True)


def test_a_prompt_names_skills_and_an_agent_reads_one_when_it_needs_it(converse, released):
    released()
    conversation, script = converse(
        [reply(call("read_skill", name="code-review")), reply("Done.")], skills=SKILLS
    )
    post_message(actor=conversation.owner, conversation=conversation, text="Review this.")
    rested(conversation)
    system = script.requests[0].system
    assert "- code-review: How we review code." in system
    assert "Look at the tests first." not in system
    text = result(conversation)
    assert text.startswith('<skill name="code-review" version="1">\nLook at the tests first.')
    assert "/skills/code-review" in text
    assert "- scripts/look.py" in text
    assert "seen" not in text


def test_an_agent_without_skills_is_told_nothing_and_has_no_tool_for_them(converse):
    conversation, script = converse([reply("Hello.")])
    post_message(actor=conversation.owner, conversation=conversation, text="Hi")
    rested(conversation)
    assert "read_skill" not in {tool.name for tool in script.requests[0].tools}
    assert not SkillSet.objects.exists()


def test_what_a_conversation_has_stays_when_channels_move(alice, converse, released):
    first = released()
    conversation, _script = converse([reply("One."), reply("Two.")], skills=SKILLS)
    post_message(actor=alice, conversation=conversation, text="Hi")
    rested(conversation)
    release(alice, first.skill, **{"SKILL.md": text_of(body="Look twice.")})
    post_message(actor=alice, conversation=conversation, text="And?")
    rested(conversation, 2)
    assert used(conversation) == ["code-review 1"]
    later, _script = converse([reply("Three.")], skills=SKILLS)
    post_message(actor=alice, conversation=later, text="Hi")
    assert used(later) == ["code-review 2"]


def test_what_cannot_be_had_is_told_and_the_rest_is_there(alice, converse, released):
    released()
    conversation, script = converse([reply("Hello.")], skills=[*SKILLS, {"name": "gone"}])
    post_message(actor=alice, conversation=conversation, text="Hi")
    rested(conversation)
    assert used(conversation) == ["code-review 1"]
    assert "Not to be had: There is no skill “gone” here." in script.requests[0].system


def test_what_a_skill_requires_comes_with_it(alice, acme, converse, released):
    released()
    released(files_of("briefing", **{"agentsite.yaml": b"requires: [code-review]"}))
    conversation, _script = converse([], skills=[{"name": "briefing"}])
    post_message(actor=alice, conversation=conversation, text="Hi")
    rows = UsedSkill.objects.of(conversation)
    assert [(row.skill.name, row.by) for row in rows] == [
        ("code-review", "required"),
        ("briefing", "agent"),
    ]


def test_commands_see_the_files_read_only(alice, converse, released):
    version = released()
    conversation, _script = converse([], skills=SKILLS)
    post_message(actor=alice, conversation=conversation, text="Hi")
    (mount,) = [each for each in mounts_of(conversation) if "skill" in each.label]
    assert (str(mount.target), mount.writable) == ("/skills/code-review", False)
    assert (mount.source / "scripts/look.py").read_bytes() == files_of()["scripts/look.py"]
    assert version.digest in mount.source.name


def test_a_stopped_skill_is_refused_and_its_files_are_gone_before_the_next_call(
    alice, converse, released
):
    version = released()
    conversation, _script = converse(
        [reply(call("read_skill", name="code-review")), reply("Done.")], skills=SKILLS
    )
    post_message(actor=alice, conversation=conversation, text="Hi")
    (mount,) = [each for each in mounts_of(conversation) if "skill" in each.label]
    kill_skill(actor=alice, skill=version.skill, reason="It fetches scripts.")
    rules_of(conversation)
    assert list(mount.source.iterdir()) == []
    rested(conversation)
    assert "It fetches scripts." in result(conversation)
    assert "code-review" not in section(conversation)
    assert not [each for each in mounts_of(conversation) if "skill" in each.label]


def test_a_deprecated_skill_warns_and_is_refused_from_its_day_on(alice, converse, released):
    version = released()
    read = reply(call("read_skill", name="code-review"))
    conversation, _script = converse([read, reply("Done."), read, reply("Done.")], skills=SKILLS)
    soon = timezone.now().date() + timedelta(days=1)
    deprecate_version(actor=alice, version=version, replacement="reviews", removal_on=soon)
    post_message(actor=alice, conversation=conversation, text="Hi")
    rested(conversation)
    assert f"It can be used until {soon}. Use reviews in its place." in result(conversation)
    SkillVersion.objects.update(removal_on=timezone.now().date())
    post_message(actor=alice, conversation=conversation, text="Again")
    rested(conversation, 2)
    assert "could be used until" in result(conversation)
    assert "Use reviews in its place." in result(conversation)


def test_a_skill_that_is_hidden_from_models_is_read_when_a_person_names_it(
    alice, converse, released
):
    released({"SKILL.md": text_of(more="metadata:\n  a: b\n")})
    SkillVersion.objects.update(front={"disable-model-invocation": True})
    conversation, _script = converse(
        [reply(call("read_skill", name="code-review")), reply("Done.")], skills=SKILLS
    )
    post_message(actor=alice, conversation=conversation, text="Use code-review.")
    assert section(conversation) == ""
    rested(conversation)
    assert "Look at the tests first." in result(conversation)


def test_names_fill_their_share_of_the_prompt_and_the_rest_is_found(
    alice, converse, released, settings
):
    for number in range(30):
        released(files_of(f"skill-{number:02}"))
    settings.AGENTSITE_SKILLS_PROMPT = 200
    skills = [{"name": f"skill-{number:02}"} for number in range(30)]
    conversation, _script = converse(
        [reply(call("search_skills", query="skill-29 review")), reply("Done.")], skills=skills
    )
    post_message(actor=alice, conversation=conversation, text="Hi")
    text = section(conversation)
    listed = [line for line in text.splitlines() if line.startswith("- ")]
    assert 0 < sum(map(len, listed)) <= 200
    assert f"There are {30 - len(listed)} more" in text
    rested(conversation)
    assert result(conversation).startswith("skill-29: How we review code.")


def test_one_file_of_a_skill_is_read_and_no_other_path_leads_anywhere(alice, converse, released):
    released({**files_of(), "data.bin": b"\xff\xfe\x00"})
    paths = ["scripts/look.py", "../../etc/passwd", "data.bin"]
    conversation, _script = converse(
        [
            reply(*(call("read_skill", name="code-review", path=path) for path in paths)),
            reply("Done."),
        ],
        skills=SKILLS,
    )
    post_message(actor=alice, conversation=conversation, text="Hi")
    rested(conversation)
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    texts = {row.value.content[0].text: row.value.is_error for row in rows}
    assert texts[files_of()["scripts/look.py"].decode()] is False
    assert sum(texts.values()) == 2
    assert any("has no file" in text for text in texts)


def test_a_person_adds_a_skill_that_her_agent_does_not_name(
    alice, bob, acme, mallory, converse, released
):
    released()
    conversation, script = converse([reply("One."), reply("Two.")])
    for actor in (bob, mallory):
        with pytest.raises(NotFound):
            add_skill(actor=actor, conversation=conversation, name="code-review")
    post_message(actor=alice, conversation=conversation, text="Hi")
    rested(conversation)
    add_skill(actor=alice, conversation=conversation, name="code-review")
    with pytest.raises(Conflict, match="already"):
        add_skill(actor=alice, conversation=conversation, name="code-review")
    with pytest.raises(NotFound):
        add_skill(actor=alice, conversation=conversation, name="gone")
    post_message(actor=alice, conversation=conversation, text="Use it")
    rested(conversation, 2)
    assert "code-review" in script.requests[1].system
    units = "".join(str(unit) for unit in page_of(conversation).units)
    assert "may use the skill “code-review” 1" in units
    assert [row.by for row in UsedSkill.objects.of(conversation)] == ["person"]


def test_a_persons_own_skill_comes_along_in_her_conversations_alone(alice, bob, acme, converse):
    version = create_skill(actor=alice, organisation=acme, files=files_of(), own=True)
    ask_for_release(actor=alice, version=version)
    conversation, script = converse([reply("One."), reply("Two.")])
    for number, text in enumerate(("Hi", "Again"), start=1):
        post_message(actor=alice, conversation=conversation, text=text)
        rested(conversation, number)
    assert "- code-review: How we review code." in script.requests[1].system
    assert [row.by for row in UsedSkill.objects.of(conversation)] == ["person"]
    other, _script = converse([])
    Conversation.objects.filter(pk=other.pk).update(owner=bob)
    other.refresh_from_db()
    post_message(actor=bob, conversation=other, text="Hi")
    assert used(other) == []


def test_another_members_own_skill_is_not_found(alice, bob, acme, converse):
    version = create_skill(actor=bob, organisation=acme, files=files_of(), own=True)
    ask_for_release(actor=bob, version=version)
    conversation, _script = converse([], skills=SKILLS)
    with pytest.raises(NotFound):
        add_skill(actor=alice, conversation=conversation, name="code-review")
    post_message(actor=alice, conversation=conversation, text="Hi")
    assert used(conversation) == []


def test_a_conversation_has_so_many_skills_and_no_more(alice, converse, released, monkeypatch):
    released()
    conversation, _script = converse([])
    monkeypatch.setattr(adding, "MOST", 0)
    with pytest.raises(LimitReached):
        add_skill(actor=alice, conversation=conversation, name="code-review")
    monkeypatch.setattr(adding, "MOST", 1)
    add_skill(actor=alice, conversation=conversation, name="code-review")


def test_a_slash_offers_what_a_conversation_has_and_what_can_be_added(alice, converse, released):
    released()
    released(files_of("tables"))
    conversation, _script = converse([], skills=SKILLS)
    post_message(actor=alice, conversation=conversation, text="Hi")
    offered = {each.name: each for each in commands_of(conversation, alice)}
    assert offered["code-review"].text == "Use the skill “code-review”: "
    assert offered["tables"].dialog.endswith("/skills/tables/add/")


def test_where_it_is_used_is_told_to_whom_it_concerns_and_keeps_it_from_being_deleted(
    alice, bob, mallory, converse, released
):
    version = released()
    conversation, _script = converse([], skills=SKILLS)
    post_message(actor=alice, conversation=conversation, text="Hi")
    assert [use.kind for use in uses_of(alice, version.skill)] == ["agent", "conversation"]
    assert [use.kind for use in uses_of(bob, version.skill)] == ["agent"]
    with pytest.raises(Conflict, match="used"):
        delete_skill(actor=alice, skill=version.skill)


def test_the_pages_show_and_add_to_whose_conversation_it_is_alone(
    client_of, alice, bob, converse, released
):
    released()
    conversation, _script = converse([])
    pages = client_of(alice)
    base = f"/c/{conversation.uid}/skills/"
    before = pages.get(base).content.decode()
    assert f'hx-get="{base}code-review/add/"' in before, "what may be added is offered"
    offered = pages.get(f"/c/{conversation.uid}/commands/?q=skills").json()["commands"]
    assert [(each["name"], each["dialog"]) for each in offered] == [("skills", base)]
    assert "How we review code." in pages.get(f"{base}code-review/add/").content.decode()
    assert pages.post(f"{base}code-review/add/").status_code == 302
    after = pages.get(base).content.decode()
    assert "code-review 1" in after
    assert f"{base}code-review/add/" not in after
    for client in (client_of(bob),):
        assert client.get(base).status_code == 404
        assert client.post(f"{base}code-review/add/").status_code == 404


def test_a_kit_is_planned_with_what_skills_add(alice, converse, released):
    released()
    conversation, _script = converse([], skills=SKILLS)
    post_message(actor=alice, conversation=conversation, text="Hi")
    plan = plan_kit(conversation)
    assert {"read_skill", "search_skills"} <= plan.part.tools.keys()
    assert [str(mount.target) for mount in plan.sandbox.more] == ["/skills/code-review"]


def test_an_agent_makes_documents_in_its_sandbox_with_shipped_skills(alice, converse):
    seed()
    kinds = {
        "docx": "word-documents",
        "xlsx": "spreadsheets",
        "pptx": "slide-decks",
        "pdf": "pdf-files",
    }
    made = " && ".join(
        f"python3 /skills/{skill}/scripts/to_{kind}.py"
        f" {'dues.csv' if kind == 'xlsx' else 'letter.md'} letter.{kind}"
        for kind, skill in kinds.items()
    )
    conversation, _script = converse(
        [
            reply(call("write_file", path="letter.md", content="Dear **Ann**,\n\n- four\n")),
            reply(call("write_file", path="dues.csv", content="ship,dues\nAda,4\n")),
            reply(call("bash", command=f"{made} && echo made")),
            reply("There it is."),
        ],
        skills=[{"name": name} for name in kinds.values()],
    )
    post_message(actor=alice, conversation=conversation, text="Write to Ann")
    rested(conversation)
    assert "made" in result(conversation), result(conversation)
    letter = str(workspace_for(conversation.uid) / "letter")
    document = docx.Document(f"{letter}.docx")
    assert [each.text for each in document.paragraphs] == ["Dear Ann,", "four"]
    sheet = openpyxl.load_workbook(f"{letter}.xlsx").active
    assert [[cell.value for cell in row] for row in sheet.rows] == [["ship", "dues"], ["Ada", 4]]
    shapes = [
        shape for slide in pptx.Presentation(f"{letter}.pptx").slides for shape in slide.shapes
    ]
    assert "four" in "".join(shape.text_frame.text for shape in shapes if shape.has_text_frame)
    (page,) = pypdf.PdfReader(f"{letter}.pdf").pages
    assert "four" in page.extract_text()


def test_whom_a_conversation_is_shared_with_is_not_told_of_its_owners_library(
    alice, bob, acme, client_of, converse
):
    version = create_skill(actor=alice, organisation=acme, files=files_of("my-diary"), own=True)
    ask_for_release(actor=alice, version=version)
    conversation, _script = converse([])
    share_conversation(actor=alice, conversation=conversation, user_uid=bob.uid, role="writer")
    address = f"/c/{conversation.uid}/commands/"
    assert "my-diary" in client_of(alice).get(address).content.decode()
    assert "my-diary" not in client_of(bob).get(address).content.decode()
    dialog = f"/c/{conversation.uid}/skills/"
    assert "my-diary" in client_of(alice).get(dialog).content.decode()
    assert "my-diary" not in client_of(bob).get(dialog).content.decode()
