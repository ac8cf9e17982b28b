"""`agent eval …`: a suite from a file, tried, compared and let pass, with exit codes for CI."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from agents.actions.agents import change_agent, create_agent
from agents.models import Agent
from evals.actions.releases import require_suite
from evals.models import Evaluation, Suite
from harness.agentconfig import AgentConfig
from tests.conversations.conftest import environment

__all__ = ["environment"]

pytestmark = pytest.mark.django_db(transaction=True)

SUITE = """\
version: 1
name: Manners
cases:
- name: house-rule
  input: Will you refund it?
  told_date: '2026-01-02'
  script:
    replies:
    - {say: I pass this on., if_told: Never promise}
    - {say: You get a refund., unless_told: Never promise}
  checks:
  - {type: text, none: [a refund]}
"""


@pytest.fixture
def evals(capsys, environment):
    def run(*words: str, user: str = "alice") -> tuple[int, str]:
        code = 0
        try:
            call_command("agent", "eval", *words, "--user", user)
        except SystemExit as ended:
            code = int(str(ended.code))
        except CommandError as problem:
            return problem.returncode, str(problem)
        return code, capsys.readouterr().out

    return run


def config(instructions: str) -> AgentConfig:
    return AgentConfig(provider="demo", instructions=instructions)


def test_a_suite_in_ci_catches_a_prompt_that_forgets_a_rule(evals, alice, acme, tmp_path, mallory):
    file = tmp_path / "suite.yaml"
    file.write_text(SUITE)
    agent = create_agent(
        actor=alice, organisation=acme, name="Clerk", description="", config=config("Never promise")
    )
    assert evals("import", str(file))[0] == 0
    assert evals("export", "Manners")[1].startswith("version: 1\nname: Manners\n")
    require_suite(actor=alice, agent=agent, suite=Suite.objects.get(), by_script=True)
    run = ("run", "Manners", "--agent", "Clerk", "--scripted")

    code, told = evals(*run)
    assert (code, "1/1 passed" in told) == (0, True)
    change_agent(actor=alice, agent=agent, name="Clerk", description="", config=config("Hi"))
    code, told = evals(*run, "--junit", str(tmp_path / "junit.xml"))
    assert code == 1
    assert "house-rule #1  text: it says “a refund”" in told
    assert ElementTree.parse(tmp_path / "junit.xml").getroot()[0].attrib["failures"] == "1"

    after, before = Evaluation.objects.values_list("uid", flat=True)
    code, told = evals("compare", before, after)
    assert (code, told.splitlines()[-1]) == (1, "1 of 1 cases do worse")
    assert evals("compare", after, before)[0] == 0
    code, told = evals("gate", "Clerk", "--json")
    assert (code, json.loads(told)[0]["green"]) == (1, False)
    assert evals("gate", "Clerk", "--release")[0] == 1
    assert evals("gate", "Clerk", "--release", "--reason", "Wanted.")[0] == 0
    assert evals("gate", "Clerk", "--roll-back")[0] == 0
    assert Agent.objects.get(pk=agent.pk).current_id == agent.versions.get(number=1).pk

    assert evals("canary", "Clerk")[0] == 1
    assert evals("canary", "Clerk", "--share", "10")[0] == 1
    code, told = evals("canary", "Clerk", "--share", "10", "--reason", "A try.")
    assert (code, told.splitlines()[0]) == (0, "version 2: 10% of new conversations")
    assert evals("canary", "Clerk", "--roll-back")[0] == 0
    assert evals("canary", "Clerk", "--share", "10", user="mallory")[0] == 1
    assert evals("canary", "Clerk", "--share", "20", "--reason", "Again.")[0] == 0
    assert evals("canary", "Clerk", "--promote", "--reason", "It does well.")[0] == 0
    assert Agent.objects.get(pk=agent.pk).current_id == agent.versions.get(number=2).pk

    code, told = evals("run", "Manners", "--agent", "Clerk", user="mallory")
    assert (code, "no suite" in told) == (1, True)
    assert evals("compare", before, after, user="mallory")[0] == 1


@pytest.mark.parametrize("limit", ["nan", "inf", "1_0", "-1", "1e999"])
def test_a_limit_that_is_no_amount_is_refused_in_words(evals, alice, acme, limit):
    code, said = evals("run", "Manners", "--agent", "Clerk", f"--limit={limit}")
    assert code
    assert "give a number from 0 to 1e+09" in said
