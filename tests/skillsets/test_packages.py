"""Skills with Python packages in a conversation: scripts and tools find what was installed, cannot change it,
and fetch nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from accounts.models import User
from conversations.actions.messages import post_message
from conversations.kitparts import mounts_of
from harness.agentconfig import ToolRule
from harness.content import text_of
from jobs.engine import engine
from providers.scripted import call, reply
from skills_app import packages
from skills_app.installing import FRESH
from skills_app.models import SkillPackages, SkillVersion
from tests.cast import ClientOf
from tests.conversations.conftest import Converse, rested, still
from tests.patience import SHORTEST, until
from tests.skills_app.conftest import text_of as skill_text
from tests.standins.packageindex import wheel

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("needs_bubblewrap"),
]

SCRIPT = b"""# /// script
# dependencies = ["tables"]
# ///
import pathlib, subprocess, sys, tables
print(tables.read())
for path in (tables.__file__, pathlib.Path(tables.__file__).with_name("evil.py")):
    try:
        pathlib.Path(path).write_text("evil = 1")
        print("written")
    except OSError:
        print("kept")
"""
TOOL = b"""
import tables

def work():
    return tables.read()
"""
FILES = {
    "SKILL.md": skill_text("reports"),
    "agentsite.yaml": json.dumps(
        {"tools": [{"name": "work", "description": "Works.", "entry": "scripts/tool.py:work"}]}
    ).encode(),
    "scripts/look.py": SCRIPT,
    "scripts/tool.py": TOOL,
}
SKILLS = [{"name": "reports"}]


@pytest.fixture
def wheels(tmp_path: Path, settings: Any) -> Path:
    settings.AGENTSITE_DATA_DIR = tmp_path / "data"
    folder = tmp_path / "wheels"
    folder.mkdir()
    tmp_path.chmod(0o755)
    settings.AGENTSITE_SKILLS_INDEX = str(folder)
    return folder


def results(conversation: Any) -> list[str]:
    rows = conversation.events.filter(type="agent.tool_result").order_by("seq")
    return [text_of(row.value.content) for row in rows]


def steps() -> list[Any]:
    run = "/skills/reports.python/bin/python3 /skills/reports/scripts/look.py"
    return [
        reply(call("read_skill", name="reports")),
        reply(call("bash", command=run)),
        reply(call("skill__reports__work")),
        reply("Done."),
    ]


def test_scripts_and_tools_of_a_skill_find_its_packages_and_change_nothing(
    wheels: Path, converse: Converse, released: Callable[..., SkillVersion], alice: User
):
    file, body = wheel("tables", "1.0", {"tables.py": "def read(): return 'one'\n"})
    (wheels / file).write_bytes(body)
    version = released(FILES)
    row = until(lambda: SkillPackages.objects.filter(state=SkillPackages.State.READY).first())
    for place in wheels.iterdir():
        place.unlink()  # from here on there is nothing to fetch
    for _each in range(2):
        conversation, _script = converse(steps(), skills=SKILLS, tools=(ToolRule(tool="*"),))
        post_message(actor=alice, conversation=conversation, text="Go")
        rested(conversation)
        read, ran, worked = results(conversation)
        assert "/skills/reports.python/bin/python3 in place of python3" in read
        assert "one\nkept\nkept" in ran
        assert worked == "one"
        shown = {str(each.target): each for each in mounts_of(conversation)}
        mount = shown["/skills/reports.python"]
        assert (mount.source, mount.writable) == (packages.root() / row.tree, False)
    assert SkillPackages.objects.get().ended_at == row.ended_at, "installed once for both"
    assert packages.place_of(version) == mount.source


def test_a_skill_whose_packages_are_not_there_says_so_and_fetches_nothing(
    wheels: Path, converse: Converse, released: Callable[..., SkillVersion], alice: User,
    client_of: ClientOf,
):  # fmt: skip
    # Who packed it has a say in what the installer prints, and none to the agent.
    file, body = wheel("tables", "1.0", {}, requires=["x Ignore"])
    (wheels / file).write_bytes(body)
    released(FILES)
    until(lambda: SkillPackages.objects.filter(state=SkillPackages.State.FAILED).first())
    conversation, _script = converse(steps(), skills=SKILLS, tools=(ToolRule(tool="*"),))
    post_message(actor=alice, conversation=conversation, text="Go")
    rested(conversation)
    read, ran, worked = results(conversation)
    assert "not installed. The page of the skill’s version says why." in read
    assert "are not installed; nothing is downloaded while it runs" in ran
    assert "not installed. The page of the skill’s version says why." in worked
    assert not any("Ignore" in each for each in (read, ran, worked))
    still()
    assert SkillPackages.objects.get().state == SkillPackages.State.FAILED
    page = client_of(alice).get(reverse("skillsets:skills", args=[conversation.uid]))
    assert "Ignore" in page.content.decode()


def test_an_installation_that_a_stopping_server_breaks_off_is_taken_up_by_the_next(
    wheels: Path, released: Callable[..., SkillVersion]
):
    file, body = wheel("tables", "1.0", {"tables.py": "def read(): return 'one'\n"})
    (wheels / file).write_bytes(body)
    released(FILES)
    running = SkillPackages.objects.filter(state=SkillPackages.State.RUNNING)
    row = until(running.first, longest=SHORTEST)
    engine.stop()
    row.refresh_from_db()
    assert row.state == SkillPackages.State.WAITING
    packages.look_after()
    assert until(lambda: SkillPackages.objects.filter(state=SkillPackages.State.READY).first())
    # What was broken off half way goes when it is old.
    whole = [each.name for each in packages.root().iterdir() if not each.name.startswith(FRESH)]
    assert whole == [SkillPackages.objects.get().tree]
