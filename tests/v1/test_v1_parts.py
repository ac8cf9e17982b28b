"""The parts of `/v1` that need no server: names of models, tools as rules, cursors, frames, keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import example, given
from hypothesis import strategies as some
from pydantic import TypeAdapter

from harness.agentconfig import AgentConfig, AskOptions, CustomTool, McpUse, ToolRule
from harness.errors import Invalid
from harness.patterns import When
from harness.policy import Policy as RulesInForce
from harness.policy import Verdict
from harness.rules import Level, LevelledRule
from live.items import Delta, OpenText
from providers.table import KINDS
from sandbox.policy import read_policy
from tools_app.catalogue import all_tools
from v1 import modelnames
from v1.agents import config_from
from v1.door import clean
from v1.environments import Cloud, SelfHosted, policy_from
from v1.mcptoolsets import McpServerBody
from v1.metadata import merged
from v1.paging import flag, page_of, time_window, values, whole_number
from v1.publictools import NAMES, our_input, public_call
from v1.stream import _frame, _Previews
from v1.toolsets import Tool, ToolConfig, Toolset, narrowed, to_rules, to_wire
from wire.ids import conversation_uid, thread_id

PROVIDERS = some.sampled_from(["auto", *KINDS])
NAMES_OF_MODELS = some.one_of(
    some.text(min_size=1, max_size=20),
    some.sampled_from(["claude-x", "auto", "demo", "auto/x", "a/b/c", "anthropic/claude-x", "/"]),
)


@given(PROVIDERS, some.one_of(some.just(""), NAMES_OF_MODELS))
def test_a_models_name_on_the_wire_gives_back_both_words(provider, model):
    assert modelnames.from_wire(modelnames.to_wire(provider, model)) == (provider, model)


@pytest.mark.parametrize(
    ("wire", "ours"),
    [
        ("claude-sonnet-5-5", ("anthropic", "claude-sonnet-5-5")),
        ("ollama/qwen3", ("auto", "ollama/qwen3")),
        ("openai_compatible/qwen3", ("openai_compatible", "qwen3")),
        ("demo", ("demo", "")),
        ("gpt-6", ("auto", "gpt-6")),
    ],
)
def test_a_name_says_its_provider_where_it_does(wire, ours):
    assert modelnames.from_wire(wire) == ours
    assert modelnames.to_wire(*ours) == wire


# --- tools ----------------------------------------------------------------------------------------

POLICIES = some.sampled_from(["always_allow", "always_ask"])
CONFIGS = some.lists(
    some.fixed_dictionaries(
        {"name": some.sampled_from(sorted(NAMES))},
        optional={
            "enabled": some.booleans(),
            "permission_policy": some.fixed_dictionaries({"type": POLICIES}),
        },
    ),
    unique_by=lambda config: config["name"],
)
TOOLSETS = some.builds(
    lambda enabled, policy, configs: Toolset.model_validate(
        {
            "type": "agent_toolset_20260401",
            "default_config": {"enabled": enabled, "permission_policy": {"type": policy}},
            "configs": configs,
        }
    ),
    some.booleans(),
    POLICIES,
    CONFIGS,
)


def said(toolset: Toolset, name: str) -> str:
    """What the toolset says of one tool, by the rules of the public API."""
    default = toolset.default_config
    assert default is not None
    config = next((one for one in toolset.configs or () if one.name == name), None)
    enabled, policy = default.enabled, default.permission_policy.type
    if config is not None:
        enabled = enabled if config.enabled is None else config.enabled
        policy = config.permission_policy.type if config.permission_policy else policy
    return policy if enabled else "always_deny"


def shown(config: AgentConfig) -> dict[str, str]:
    """What clients are shown of each tool."""
    wire = to_wire(config)
    if not wire:
        return dict.fromkeys(NAMES, "always_deny")
    toolset = Toolset.model_validate(wire[0] | {"x_rules": None})
    return {name: said(toolset, name) for name in NAMES}


@given(TOOLSETS)
def test_rules_mean_what_the_toolset_says(toolset):
    config = AgentConfig(tools=to_rules([toolset]).tools)
    assert shown(config) == {name: said(toolset, name) for name in NAMES}


@given(TOOLSETS, TOOLSETS)
def test_a_session_gets_the_stricter_of_both(agents, sessions):
    config = AgentConfig(tools=to_rules([agents]).tools)
    made = config.model_validate({**config.model_dump(), **narrowed([sessions], config)})
    order = ["always_allow", "always_ask", "always_deny"]
    for name, permission in shown(made).items():
        assert permission == max(said(agents, name), said(sessions, name), key=order.index)


def test_what_the_wire_cannot_say_is_kept_when_a_program_writes_the_rest():
    conditional = ToolRule(
        tool="bash", permission="always_deny", when=When(argument="command", prefix="rm")
    )
    other = ToolRule(tool="todo_write", permission="always_ask")
    before = AgentConfig(tools=(ToolRule(tool="*"), conditional, other))
    toolset = Toolset.model_validate({"type": "agent_toolset_20260401"})
    written = to_rules([toolset], before=before).tools
    assert {rule.tool for rule in written} == {*NAMES.values(), "todo_write"}
    assert set(written) >= {conditional, other}
    assert to_rules([], before=before).tools == (conditional, other)


CUSTOM = CustomTool(name="look_up", description="Looks something up.")
PATTERNS = ["*", "?*", "web_*", "*_file", "todo_*", "[b]ash", "mcp__*", "mcp:*", "mcp:tracker:g?t"]
SINGLE = [*NAMES.values(), "todo_write", "ask_user", "look_up", "gone_by_now"]
OF_SERVERS = ["mcp:tracker:*", "mcp:tracker:get", "mcp:tracker:put", "mcp:other:*", "mcp:other:put"]
PERMISSIONS = ["always_allow", "always_ask", "always_deny"]
CONDITIONAL = {"argument": "command", "prefix": "rm"}
KEPT_RULES = some.builds(
    ToolRule,
    tool=some.sampled_from([*PATTERNS, *SINGLE, *OF_SERVERS]),
    permission=some.sampled_from(PERMISSIONS),
    when=some.sampled_from([None, None, None, When.model_validate(CONDITIONAL)]),
    options=some.sampled_from([AskOptions(), AskOptions(), AskOptions(two_people=True)]),
    apart=some.booleans(),
    note=some.sampled_from(["", "Because of the audit."]),
)
USED = some.builds(
    McpUse,
    name=some.just("tracker"),
    tools=some.sampled_from([None, (), ("get",), ("get", "a tool"), ("put", "get")]),
    through_provider=some.booleans(),
)
AGENTS = some.builds(
    AgentConfig,
    tools=some.lists(KEPT_RULES, max_size=6).map(tuple),
    mcp_servers=some.lists(USED, max_size=1).map(tuple),
    custom_tools=some.sampled_from([(), (CUSTOM,)]),
)


def read_by_a_client(config: AgentConfig) -> list[Any]:
    """The tools as a client has them that read the agent, in the words in which it sends them."""
    return TypeAdapter(list[Tool]).validate_json(json.dumps(to_wire(config)))


@given(AGENTS)
@example(AgentConfig(tools=(ToolRule(tool="*"), ToolRule(tool="*_file", permission="always_ask"))))
def test_an_agents_tools_written_back_as_they_were_read_change_nothing(config):
    tools = read_by_a_client(config)
    assert config_from({"tools": tools}, before=config) == config
    again = [
        McpServerBody(type="url", name=use.name, url="https://a.example")
        for use in config.mcp_servers
    ]
    assert config_from({"tools": tools, "mcp_servers": again}, before=config) == config
    assert config_from({"mcp_servers": again}, before=config) == config


@given(AGENTS, AGENTS)
def test_a_sessions_tools_written_back_as_they_were_read_change_nothing(agents, sessions):
    """What a session has of its own, such as rules that a fork brought along, is not the wire's to say."""
    made = narrowed(read_by_a_client(sessions), agents, now=sessions)
    assert AgentConfig.model_validate({**agents.model_dump(), **made}) == sessions


def effective(config: AgentConfig, name: str) -> int:
    return PERMISSIONS.index(permission_of(name, config.tools))


def permission_of(name: str, rules: Sequence[ToolRule]) -> str:
    said = [r.permission for r in rules if r.when is None and fnmatchcase(name, r.tool)]
    return max(said, key=PERMISSIONS.index, default="always_deny")


@given(AGENTS, some.sampled_from(sorted(NAMES)), some.sampled_from(PERMISSIONS))
def test_one_tool_changed_leaves_every_other_as_it_was(config, name, wanted):
    tools = read_by_a_client(config)
    toolset = next((tool for tool in tools if isinstance(tool, Toolset)), None)
    if toolset is None:
        return
    policy = {"type": "always_ask" if wanted == "always_deny" else wanted}
    chosen = {"name": name, "enabled": wanted != "always_deny", "permission_policy": policy}
    others = [one for one in toolset.configs or () if one.name != name]
    changed = toolset.model_copy(update={"configs": (*others, ToolConfig.model_validate(chosen))})
    made = config_from({"tools": [changed, *tools[1:]]}, before=config)
    for other in {*SINGLE, "mcp__tracker__get"} - {NAMES[name]}:
        assert effective(made, other) >= effective(config, other)
        if other in NAMES.values():
            assert effective(made, other) == effective(config, other)
    assert effective(made, NAMES[name]) >= PERMISSIONS.index(wanted)


def test_the_public_toolset_brings_the_public_tools_and_no_other():
    offered = {rule.tool for rule in to_rules([Toolset(type="agent_toolset_20260401")]).tools}
    assert offered == set(NAMES.values())


def test_further_tools_are_opted_into_and_read_back():
    wanted = [
        {"name": "todo_write"},
        {"name": "ask_user", "permission_policy": {"type": "always_ask"}},
        {"name": "calculator", "enabled": False},
    ]
    toolset = Toolset.model_validate({"type": "agent_toolset_20260401", "x_tools": wanted})
    config = AgentConfig(tools=to_rules([toolset]).tools)
    said_back = {
        one["name"]: one["permission_policy"]["type"] for one in to_wire(config)[0]["x_tools"]
    }
    assert said_back == {"todo_write": "always_allow", "ask_user": "always_ask"}
    everything = Toolset.model_validate(
        {"type": "agent_toolset_20260401", "x_tools": [{"name": "*"}, wanted[2]]}
    )
    names = {rule.tool for rule in to_rules([everything]).tools}
    assert names == set(all_tools()) - {"calculator"}
    rewritten = to_rules([Toolset(type="agent_toolset_20260401", x_tools=())], before=config)
    assert {rule.tool for rule in rewritten.tools} == set(NAMES.values())


@pytest.mark.parametrize("name", ["no_such_tool", "bash", "read_file", "mcp__x__y"])
def test_a_further_tool_that_is_none_is_refused_in_words(name):
    toolset = Toolset.model_validate(
        {"type": "agent_toolset_20260401", "x_tools": [{"name": name}]}
    )
    with pytest.raises(Invalid, match="further tools"):
        to_rules([toolset])


@pytest.mark.parametrize(
    ("ours", "public"),
    [
        (("read_file", {"path": "a"}), ("read", {"file_path": "a"})),
        (
            ("read_file", {"path": "a", "start_line": 3, "end_line": 9}),
            ("read", {"file_path": "a", "view_range": [3, 9]}),
        ),
        (
            ("read_file", {"path": "a", "start_line": 3}),
            ("read", {"file_path": "a", "view_range": [3, -1]}),
        ),
        (
            ("write_file", {"path": "a", "content": ""}),
            ("write", {"file_path": "a", "content": ""}),
        ),
        (
            ("edit_file", {"path": "a", "old_text": "1", "new_text": "2", "more": 1}),
            ("edit", {"file_path": "a", "old_string": "1", "new_string": "2", "more": 1}),
        ),
        (
            ("bash", {"command": "ls", "timeout": 1.5}),
            ("bash", {"command": "ls", "timeout_ms": 1500}),
        ),
        (("grep", {"pattern": "x", "literal": True}), ("grep", {"pattern": "x", "literal": True})),
        (("ask_user", {"path": "a"}), ("ask_user", {"path": "a"})),
        (("bash", {"timeout": "soon"}), ("bash", {"timeout": "soon"})),
    ],
)
def test_a_call_is_told_in_public_words_and_taken_back_in_either(ours, public):
    assert public_call(*ours) == public
    assert our_input(ours[0], public[1]) == ours[1]
    assert our_input(*ours) == ours[1]


def bash_asks(config: AgentConfig, *others: LevelledRule) -> bool:
    policy = RulesInForce(config.tools, others, all_tools())
    return policy.judge(all_tools()["bash"], "bash", config.features).verdict is Verdict.ASK


WRITE_ASKS = {
    "type": "agent_toolset_20260401",
    "configs": [{"name": "write", "permission_policy": {"type": "always_ask"}}],
}
NO_WRITING = {
    "type": "agent_toolset_20260401",
    "configs": [{"name": "write", "enabled": False}, {"name": "edit", "enabled": False}],
}


@pytest.mark.parametrize("wire", [WRITE_ASKS, NO_WRITING], ids=["asks", "denied"])
def test_a_shell_asks_as_the_wire_says_whatever_is_said_of_other_tools(wire):
    toolset = Toolset.model_validate(wire)
    config = AgentConfig(tools=to_rules([toolset]).tools)
    assert not bash_asks(config)
    # A session's own choice, on an agent that a page or a program made.
    for tools in ((ToolRule(tool="*"),), to_rules([Toolset(type="agent_toolset_20260401")]).tools):
        free = AgentConfig(tools=tools)
        made = AgentConfig.model_validate({**free.model_dump(), **narrowed([toolset], free)})
        assert not bash_asks(made)


def test_a_shell_opens_no_way_around_rules_that_are_not_the_programs():
    toolset = Toolset(type="agent_toolset_20260401")
    config = AgentConfig(tools=to_rules([toolset]).tools)
    asks = ToolRule(tool="write_file", permission="always_ask")
    assert bash_asks(config, LevelledRule(asks, Level.ORGANISATION))
    careful = AgentConfig(tools=(ToolRule(tool="*"), asks))
    made = AgentConfig.model_validate({**careful.model_dump(), **narrowed([toolset], careful)})
    assert bash_asks(made)


# --- environments ---------------------------------------------------------------------------------

GUARDED = """
version: 1
resources: {memory_mb: 256}
network_policies:
  api:
    name: Reading
    endpoints:
      - {host: api.example.org, ports: [8443], methods: [GET]}
      - {host: files.example.org}
"""


def limited(*hosts: str) -> Cloud:
    networking = {"type": "limited", "allowed_hosts": list(hosts)}
    return Cloud.model_validate({"type": "cloud", "networking": networking})


def test_hosts_that_are_written_back_as_they_were_read_keep_what_their_policy_says():
    assert policy_from(limited("api.example.org", "files.example.org"), GUARDED) == GUARDED
    wider = read_policy(policy_from(limited("api.example.org", "new.example.org"), GUARDED))
    held = {one.host: (one.ports, one.methods) for one in wider.endpoints}
    assert held == {
        "api.example.org": ((8443,), ("GET",)),
        "new.example.org": ((443,), ()),
    }
    assert wider.resources.memory_mb == 256
    none = read_policy(policy_from(limited(), GUARDED))
    assert (none.endpoints, none.resources.memory_mb) == ((), 256)


def test_what_is_unrestricted_or_works_elsewhere_stays_as_it_is():
    unrestricted = Cloud.model_validate({"type": "cloud", "networking": {"type": "unrestricted"}})
    opened = policy_from(unrestricted, GUARDED)
    assert read_policy(opened).unrestricted
    assert policy_from(unrestricted, opened) == opened
    elsewhere = SelfHosted(type="self_hosted")
    assert policy_from(elsewhere, GUARDED, worked=True) == GUARDED
    assert policy_from(elsewhere, GUARDED) == ""


# --- parameters and pages -------------------------------------------------------------------------


def test_arrays_come_with_brackets_and_without():
    query = QueryDict("types[]=a&types[]=b&types=c")
    assert values(query, "types") == ["a", "b", "c"]
    with pytest.raises(Invalid):
        values(QueryDict("types=d"), "types", ["a"])


@pytest.mark.parametrize("given_", ["0", "101", "-1", "x", "1.5", "9" * 30, "١"])
def test_a_limit_is_a_number_in_its_range(given_):
    with pytest.raises(Invalid) as caught:
        whole_number(QueryDict(f"limit={given_}"), "limit", 20, least=1, most=100)
    assert caught.value.field == "limit"


@pytest.mark.parametrize(("given_", "value"), [("true", True), ("1", True), ("false", False)])
def test_a_flag_is_true_or_false(given_, value):
    assert flag(QueryDict(f"a={given_}"), "a") is value
    with pytest.raises(Invalid):
        flag(QueryDict("a=maybe"), "a")


@pytest.mark.parametrize("given_", ["yesterday", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z"])
def test_a_time_has_an_offset(given_):
    with pytest.raises(Invalid) as caught:
        time_window(QueryDict(f"created_at[gte]={given_}"), "created_at", "created_at")
    assert caught.value.field == "created_at[gte]"


@pytest.mark.django_db
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_forwards_and_back_show_each_row_once(make_agent, order):
    model = type(make_agent("0"))
    for number in range(1, 7):
        make_agent(str(number))
    rows = model.objects.all()
    expected = list(rows.order_by("pk" if order == "asc" else "-pk").values_list("name", flat=True))

    def ask(page: str | None) -> dict[str, Any]:
        query = QueryDict(mutable=True)
        query.update({"limit": "3", **({"page": page} if page else {})})
        return page_of(
            rows,
            query,
            about="test",
            show=lambda found: [{"name": row.name} for row in found],
            order=order,
            both_ways=True,
        )

    pages = [ask(None)]
    while pages[-1]["next_page"]:
        pages.append(ask(pages[-1]["next_page"]))
    assert [row["name"] for page in pages for row in page["data"]] == expected
    assert [page["prev_page"] is None for page in pages] == [True, False, False]
    back = pages[-1]
    for earlier in reversed(pages[:-1]):
        back = ask(back["prev_page"])
        assert back["data"] == earlier["data"]
    assert back["prev_page"] is None


@pytest.mark.django_db
@pytest.mark.parametrize("cursor", ["x", "a:b:c", "é", "x" * 5000])
def test_a_cursor_of_somebody_else_is_refused(make_agent, cursor):
    query = QueryDict(mutable=True)
    query["page"] = cursor
    with pytest.raises(Invalid) as caught:
        page_of(type(make_agent()).objects.all(), query, about="test", show=lambda _: [])
    assert caught.value.field == "page"


# --- texts, ids, frames ---------------------------------------------------------------------------


def test_what_no_database_holds_goes_or_is_refused():
    assert clean({"a\0": ["b\0c"]}) == {"a": ["bc"]}
    with pytest.raises(Invalid):
        clean(["\ud800"])
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(Invalid):
        clean(deep)


def test_a_thread_has_its_conversations_random_part():
    assert thread_id("sesn_abc") == "sthr_abc"
    assert {conversation_uid(one) for one in ("sthr_abc", "sesn_abc", "session_abc")} == {
        "sesn_abc"
    }


def test_null_takes_a_key_away():
    assert merged({"a": "1", "b": "2"}, {"a": None, "c": "3"}) == {"b": "2", "c": "3"}


def test_a_frame_is_one_event_of_the_standard():
    framed = _frame("message", {"type": "x", "text": "a\nb"}, 7)
    assert framed == b'event: message\nid: 7\ndata: {"type":"x","text":"a\\nb"}\n\n'


def joined(events: list[dict[str, Any]]) -> str:
    return "".join(
        event["delta"]["content"]["text"] for event in events if event["type"] == "event_delta"
    )


@given(some.text(max_size=40), some.data())
def test_however_deltas_come_what_is_sent_begins_the_whole(whole, data):
    """Repeated, overlapping, with gaps, and snapshots in between."""
    previews = _Previews(frozenset({"agent.message"}))
    sent: list[dict[str, Any]] = []
    for _ in range(data.draw(some.integers(0, 8))):
        start = data.draw(some.integers(0, len(whole)))
        end = data.draw(some.integers(start, len(whole)))
        if data.draw(some.booleans()):
            sent += previews.open(OpenText("b", "text", None, whole[:end]))
        else:
            sent += previews.delta(Delta("b", "text", start, whole[start:end]))
    assert whole.startswith(joined(sent))
    assert [event["type"] for event in sent].count("event_start") <= 1


def test_thinking_is_announced_and_never_shown():
    previews = _Previews(frozenset({"agent.thinking"}))
    sent = previews.delta(Delta("b", "thinking", 0, "secret"))
    sent += previews.delta(Delta("b", "thinking", 6, "more"))
    sent += previews.delta(Delta("c", "text", 0, "not asked for"))
    assert sent == [{"type": "event_start", "event": {"type": "agent.thinking", "id": "b"}}]
