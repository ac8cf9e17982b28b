"""Agents and environments through the official SDK."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from tests.contract.conftest import error_type

TOOLSET: dict[str, Any] = {"type": "agent_toolset_20260401"}
CUSTOM: dict[str, Any] = {
    "type": "custom",
    "name": "look_up",
    "description": "Looks something up.",
    "input_schema": {"type": "object"},
}
ASK = {"type": "always_ask"}


def test_an_agent_is_made_read_changed_and_archived(alice, make_agent):
    agent = make_agent(
        description="Reviews code",
        system="You review code.",
        model={"id": "claude-sonnet-5-5", "effort": "high"},
        metadata={"team": "core"},
        tools=[
            {
                "type": "agent_toolset_20260401",
                "configs": [
                    {"name": "bash", "permission_policy": ASK},
                    {"name": "web_search", "enabled": False},
                ],
            },
            {
                "type": "custom",
                "name": "look_up",
                "description": "Looks something up.",
                "input_schema": {"type": "object", "properties": {"what": {"type": "string"}}},
            },
        ],
    )
    assert (agent.version, agent.type, agent.system) == (1, "agent", "You review code.")
    assert agent.model.id == "claude-sonnet-5-5"
    assert agent.model.effort.type == "high"
    assert agent.metadata == {"team": "core"}
    toolset, custom = agent.tools
    assert toolset.default_config.enabled
    configs = {config.name: config for config in toolset.configs}
    assert configs["bash"].permission_policy.type == "always_ask"
    assert not configs["web_search"].enabled
    assert set(configs) == {"bash", "web_search"}
    assert custom.name == "look_up"
    assert alice.beta.agents.retrieve(agent.id) == agent

    changed = alice.beta.agents.update(
        agent.id, version=1, system=None, metadata={"team": None, "tier": "1"}
    )
    assert (changed.version, changed.system, changed.metadata) == (2, None, {"tier": "1"})
    assert changed.tools == agent.tools
    assert alice.beta.agents.update(agent.id, description="Reviews code").version == 2
    assert alice.beta.agents.retrieve(agent.id, version=1).system == "You review code."
    assert [one.version for one in alice.beta.agents.versions.list(agent.id)] == [2, 1]

    archived = alice.beta.agents.archive(agent.id)
    assert archived.archived_at is not None
    assert agent.id not in {one.id for one in alice.beta.agents.list()}
    assert agent.id in {one.id for one in alice.beta.agents.list(include_archived=True)}
    with pytest.raises(anthropic.ConflictError):
        alice.beta.agents.update(agent.id, name="Back again")


def test_a_stale_version_is_refused_once_and_not_retried(alice, make_agent):
    agent = make_agent()
    alice.beta.agents.update(agent.id, system="Two")
    with pytest.raises(anthropic.ConflictError) as caught:
        alice.beta.agents.update(agent.id, version=1, system="Three")
    assert caught.value.response.headers["x-should-retry"] == "false"
    assert error_type(caught) == "conflict_error"
    assert caught.value.request_id == caught.value.response.json()["request_id"]
    assert alice.beta.agents.retrieve(agent.id).version == 2


def test_an_exception_that_allows_more_than_the_default_is_kept(alice, make_agent):
    agent = make_agent(
        tools=[
            {
                "type": "agent_toolset_20260401",
                "default_config": {"enabled": True, "permission_policy": ASK},
                "configs": [{"name": "read", "permission_policy": {"type": "always_allow"}}],
            }
        ]
    )
    (toolset,) = agent.tools
    policies = {config.name: config.permission_policy.type for config in toolset.configs}
    assert policies == {"read": "always_allow"}
    assert toolset.default_config.permission_policy.type == "always_ask"


def test_lists_come_in_pages(alice, make_agent):
    made = [make_agent().id for _ in range(5)]
    first = alice.beta.agents.list(limit=2)
    assert [agent.id for agent in first.data] == made[:-3:-1]
    assert first.next_page is not None
    every = [agent.id for agent in alice.beta.agents.list(limit=2)]
    assert every[:5] == made[::-1]
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"model": "claude-sonnet-5-5", "name": ""}, "name"),
        ({"model": "claude-sonnet-5-5", "name": "n" * 101}, "name"),
        ({"model": "", "name": "x"}, "model"),
        ({"model": "m", "name": "x", "metadata": {"k": "v" * 513}}, "metadata"),
        ({"model": "m", "name": "x", "metadata": {str(n): "v" for n in range(17)}}, "metadata"),
        ({"model": "m", "name": "x", "tools": [{"type": "unheard_of"}]}, "tools"),
        (
            {
                "model": "m",
                "name": "x",
                "mcp_servers": [{"type": "url", "name": "a", "url": "https://x.example"}],
            },
            "mcp_servers",
        ),
        ({"model": "m", "name": "x", "system": "s" * 100_001}, "system"),
        ({"model": "m", "name": "x", "tools": [CUSTOM | {"name": "no name"}]}, "tools[0].name"),
        ({"model": "m", "name": "x", "tools": [CUSTOM | {"description": ""}]}, "tools[0].descr"),
        ({"model": "m", "name": "x", "tools": [CUSTOM | {"input_schema": {}}]}, "tools[0].input"),
        ({"model": "m", "name": "x", "tools": [CUSTOM, CUSTOM]}, "tools"),
        ({"model": "m", "name": "x", "tools": [TOOLSET, TOOLSET]}, "tools"),
    ],
)
def test_a_wrong_agent_is_refused_by_the_name_of_its_field(alice, values, word):
    with pytest.raises((anthropic.BadRequestError, anthropic.APIStatusError)) as caught:
        alice.beta.agents.create(**values)
    assert caught.value.status_code in {400, 413}
    assert word in caught.value.message


def test_mallory_finds_no_agent_of_alices(mallory, make_agent):
    agent = make_agent()
    for attempt in (
        lambda: mallory.beta.agents.retrieve(agent.id),
        lambda: mallory.beta.agents.update(agent.id, system="Mine"),
        lambda: mallory.beta.agents.archive(agent.id),
        lambda: list(mallory.beta.agents.versions.list(agent.id)),
    ):
        with pytest.raises(anthropic.NotFoundError) as caught:
            attempt()
        assert error_type(caught) == "not_found_error"
    assert agent.id not in {one.id for one in mallory.beta.agents.list(include_archived=True)}


def test_a_token_for_reading_changes_no_agent(world, make_agent):
    reader = world.client("reader")
    agent = make_agent()
    assert reader.beta.agents.retrieve(agent.id).id == agent.id
    with pytest.raises(anthropic.PermissionDeniedError) as caught:
        reader.beta.agents.update(agent.id, system="x")
    assert "agents:manage" in caught.value.message


def test_models_are_listed_by_the_names_that_agents_take(alice, make_agent):
    models = {model.id: model for model in alice.beta.models.list()}
    assert models["claude-sonnet-5-5"].max_input_tokens > 0
    for name in list(models)[:3]:
        assert make_agent(model=name).model.id == name
        assert alice.beta.models.retrieve(name).id == name


def test_agents_may_share_a_name(alice):
    one, other = (
        alice.beta.agents.create(name="Twin", model="claude-sonnet-5-5") for _time in range(2)
    )
    assert one.id != other.id
    assert {one.id, other.id} <= {each.id for each in alice.beta.agents.list()}


# --- environments ---------------------------------------------------------------------------------


def test_an_environment_is_made_changed_archived_and_deleted(staff):
    limited = {"type": "limited", "allowed_hosts": ["api.example.org", "*.example.net"]}
    made = staff.beta.environments.create(
        name="Build", config={"type": "cloud", "networking": limited}, metadata={"a": "b"}
    )
    assert made.config.networking.allowed_hosts == ["*.example.net", "api.example.org"]
    assert made.config.packages.pip == []
    changed = staff.beta.environments.update(
        made.id,
        description="For builds",
        config={"type": "cloud", "networking": {"type": "limited"}},
    )
    assert changed.config.networking.allowed_hosts == []
    assert (changed.description, changed.metadata) == ("For builds", {"a": "b"})
    assert made.id in {one.id for one in staff.beta.environments.list()}
    assert staff.beta.environments.archive(made.id).archived_at is not None
    assert made.id not in {one.id for one in staff.beta.environments.list()}
    assert staff.beta.environments.delete(made.id).type == "environment_deleted"
    with pytest.raises(anthropic.NotFoundError):
        staff.beta.environments.retrieve(made.id)


def test_what_a_sandbox_here_cannot_promise_is_refused(staff):
    every = {"type": "limited", "allowed_hosts": ["*"]}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"networking": {"type": "unrestricted"}}, "AGENTSITE_SANDBOX_UNRESTRICTED"),
        ({"packages": {"pip": ["numpy"]}}, "installs no packages"),
        ({"networking": every}, "is not a host"),
    ]
    for part, said in cases:
        config: Any = {"type": "cloud", **part}
        with pytest.raises(anthropic.BadRequestError, match=said):
            staff.beta.environments.create(name="x", config=config)


def test_only_staff_make_environments(alice, mallory, staff):
    with pytest.raises(anthropic.PermissionDeniedError):
        alice.beta.environments.create(name="x")
    made = staff.beta.environments.create(name="Acme's own")
    assert alice.beta.environments.retrieve(made.id).name == "Acme's own"
    for attempt in (mallory.beta.environments.retrieve, mallory.beta.environments.archive):
        with pytest.raises(anthropic.NotFoundError):
            attempt(made.id)
    with pytest.raises(anthropic.NotFoundError):
        mallory.beta.environments.delete(made.id)
