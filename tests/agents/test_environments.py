"""Environments say what a sandbox allows: validated, versioned, and only ever narrowed by others."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from django.urls import reverse

from agents.actions.agents import change_agent
from agents.actions.environments import change_environment, create_environment, set_sandbox_rules
from agents.models import Environment, SandboxRules
from agentsite.seeding import seed
from conversations.actions.conversations import create_conversation
from conversations.sandboxing import policy_of
from harness.errors import Forbidden, Invalid
from sandbox.guarantees import Guarantee
from sandbox.narrowing import narrow_where_said
from sandbox.policy import Policy, parse_policy
from tests.cast import make_user

OPEN = """
network_policies:
  packages: {endpoints: [{host: packages.example.org}, {host: "*.example.org"}]}
resources: {memory_mb: 2048}
"""


@pytest.fixture
def browser(staff, client_of):
    return client_of(staff)


def change(environment, actor, **values):
    given = {"name": environment.name, "description": "", "upload_limit": 5, **values}
    return change_environment(actor=actor, environment=environment, **given)


def test_the_seeded_environment_has_no_network_and_says_so(db):
    seed()
    row = Environment.objects.get(seed_name="default")
    assert row.sandbox_policy.endpoints == ()
    assert Guarantee.NO_NETWORK in row.sandbox_policy.required
    assert "without network" in row.description
    seed()
    row.refresh_from_db()
    assert row.version == 1


def test_what_staff_made_of_the_seeded_environment_stays(db, staff):
    seed()
    row = Environment.objects.get(seed_name="default")
    change(row, staff, policy="resources: {pids: 20}")
    seed()
    row.refresh_from_db()
    assert row.sandbox_policy.resources.pids == 20


def test_another_policy_is_another_version_and_another_name_is_not(environment, staff):
    row = change(environment, staff, policy=OPEN)
    assert row.version == 2
    assert [endpoint.host for endpoint in row.sandbox_policy.endpoints] == [
        "packages.example.org",
        "*.example.org",
    ]
    row = change(row, staff, name="Other")
    assert (row.version, row.policy.strip()) == (2, OPEN.strip())
    assert change(row, staff, backend="process").version == 3


def test_two_texts_that_say_the_same_have_one_digest():
    a = parse_policy({"resources": {"pids": 20}})
    assert a.digest == parse_policy({"version": 1, "resources": {"pids": 20}}).digest
    assert a.digest != Policy().digest


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("filesystem_polisy: {}", "filesystem_polisy: There is no such field here"),
        ("require: [safety]", "require[0]"),
        ("resources: {memory_mb: 1}", "resources.memory_mb"),
        ("a: [", "not valid YAML in line"),
        ("process: {env_allow: [AGENTSITE_SECRET_KEY]}", "never handed to a command"),
    ],
)
def test_a_policy_that_breaks_its_schema_is_refused_with_place_rule_and_remedy(
    policy, said, environment, staff
):
    with pytest.raises(Invalid) as refusal:
        change(environment, staff, policy=policy)
    assert refusal.value.field == "policy"
    assert said in refusal.value.message
    assert refusal.value.hint
    environment.refresh_from_db()
    assert (environment.policy, environment.version) == ("", 1)


def test_the_admin_keeps_the_typed_policy_and_shows_the_error_beside_it(environment, browser):
    page = reverse("admin:agents_environment_change", args=[environment.pk])
    values = {
        "name": "A",
        "upload_limit": "5",
        "backend": "",
        "policy": "rezources: {}\nversion: 1",
    }
    answer = browser.post(page, values)
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "rezources: There is no such field here" in text
    assert "rezources: {}" in text
    assert browser.post(page, {**values, "policy": "resources: {pids: 9}"}).status_code == 302
    shown = browser.get(page).content.decode()
    environment.refresh_from_db()
    assert environment.sandbox_policy.digest in shown
    assert environment.version == 2


def test_without_a_sandbox_nothing_may_be_required(environment, staff):
    with pytest.raises(Invalid, match="Without a sandbox") as refusal:
        change(environment, staff, backend="none")
    assert refusal.value.field == "policy"
    assert change(environment, staff, backend="none", policy="require: []").backend == "none"


def test_an_unknown_sandbox_is_refused_with_the_choices(environment, staff):
    with pytest.raises(Invalid) as refusal:
        change(environment, staff, backend="chroot")
    assert refusal.value.field == "backend"
    assert "bubblewrap" in refusal.value.hint


# --- what others take away ------------------------------------------------------------------------


def test_rules_take_away_only_what_they_mention():
    operator = parse_policy(
        {
            "network_policies": {"a": {"endpoints": [{"host": "*.example.org"}]}},
            "filesystem_policy": {"read_only": ["/usr", "/opt/data"]},
            "resources": {"memory_mb": 4096},
        }
    )
    less = narrow_where_said(operator, parse_policy({"resources": {"memory_mb": 512}}))
    assert less.resources.memory_mb == 512
    assert less.endpoints == operator.endpoints
    assert set(less.filesystem_policy.read_only) == {"/usr", "/opt/data"}
    closed = narrow_where_said(operator, parse_policy({"network_policies": {}}))
    assert closed.endpoints == ()
    assert Guarantee.NO_NETWORK in closed.required
    read_only = narrow_where_said(
        operator, parse_policy({"filesystem_policy": {"include_workdir": False}})
    )
    assert not read_only.filesystem_policy.include_workdir
    assert set(read_only.filesystem_policy.read_only) == {"/usr", "/opt/data"}


def test_rules_never_add_anything():
    wanted = parse_policy(
        {
            "require": [],
            "network_policies": {"a": {"endpoints": [{"host": "evil.example"}]}},
            "filesystem_policy": {"read_write": ["/srv/all"]},
            "process": {"env_allow": ["LANG", "TZ", "EDITOR"]},
            "resources": {"memory_mb": 1_000_000},
        }
    )
    narrowed = narrow_where_said(Policy(), wanted)
    assert narrowed.endpoints == ()
    assert narrowed.filesystem_policy.read_write == ()
    assert "EDITOR" not in narrowed.process.env_allow
    assert narrowed.resources == Policy().resources
    assert set(narrowed.require) == set(Policy().require)


def test_staff_set_change_and_remove_an_organisations_rules(acme, staff, browser):
    add = reverse("admin:agents_sandboxrules_add")
    wrong = browser.post(add, {"organisation": str(acme.pk), "policy": "x: 1"})
    assert "x: There is no such field here" in wrong.content.decode()
    empty = browser.post(add, {"organisation": str(acme.pk), "policy": ""})
    assert "delete these rules" in empty.content.decode()
    assert not SandboxRules.objects.exists()
    made = browser.post(add, {"organisation": str(acme.pk), "policy": "network_policies: {}"})
    assert made.status_code == 302
    rules = SandboxRules.objects.get(organisation=acme)
    assert (rules.version, rules.updated_by) == (1, staff)
    changed = set_sandbox_rules(actor=staff, organisation=acme, policy="resources: {pids: 10}")
    assert changed is not None
    assert changed.version == 2
    assert set_sandbox_rules(actor=staff, organisation=acme, policy=" ") is None
    assert not SandboxRules.objects.exists()


def test_an_agents_rules_are_checked_like_every_policy(make_agent, staff):
    agent = make_agent("Coder", provider="demo")
    config = agent.current.config.model_copy(update={"sandbox": "nonsense: 1"})
    with pytest.raises(Invalid) as refusal:
        change_agent(actor=staff, agent=agent, name="Coder", description="", config=config)
    assert refusal.value.field == "sandbox"
    config = agent.current.config.model_copy(update={"sandbox": "network_policies: {}"})
    changed = change_agent(actor=staff, agent=agent, name="Coder", description="", config=config)
    assert changed.current is not None
    assert changed.current.config.sandbox == "network_policies: {}"


@pytest.mark.parametrize("person", ["alice", "mallory", "clerk"])
def test_nobody_without_the_permission_changes_a_policy(person, environment, acme, request):
    actor = (
        make_user("clerk", is_staff=True) if person == "clerk" else request.getfixturevalue(person)
    )
    for attempt in (
        lambda: change(environment, actor, policy=OPEN),
        lambda: set_sandbox_rules(actor=actor, organisation=acme, policy="version: 1"),
        lambda: create_environment(
            actor=actor, organisation=None, name="X", description="", upload_limit=1, policy=OPEN
        ),
    ):
        with pytest.raises(Forbidden):
            attempt()


def test_commands_are_given_only_those_variables_of_the_server_that_the_operator_lists(
    environment, staff, settings, alice, acme, make_agent
):
    policy = "process: {env_allow: [LANG, BROKER_URL]}"
    with pytest.raises(Invalid, match="BROKER_URL") as refusal:
        change(environment, staff, policy=policy)
    assert refusal.value.field == "policy"
    assert "AGENTSITE_SANDBOX_ENVIRONMENT" in refusal.value.hint

    settings.AGENTSITE_SANDBOX_ENVIRONMENT = ["BROKER_URL"]
    row = change(environment, staff, policy=policy)
    agent = make_agent("Coding")
    conversation = create_conversation(actor=alice, organisation=acme, agent=agent, environment=row)
    config = agent.current.config
    assert policy_of(conversation, config).process.env_allow == ("LANG", "BROKER_URL")
    settings.AGENTSITE_SANDBOX_ENVIRONMENT = []
    with pytest.raises(Invalid, match="BROKER_URL"):
        policy_of(conversation, config)


EVERYWHERE = 'network_policies: {all: {endpoints: [{host: "*", ports: [80, 443]}]}}'


def test_every_public_host_is_opened_only_where_the_operator_allows_it(
    environment, staff, settings, alice, acme, make_agent
):
    with pytest.raises(Invalid) as refusal:
        change(environment, staff, policy=EVERYWHERE)
    assert refusal.value.field == "policy"
    assert "AGENTSITE_SANDBOX_UNRESTRICTED" in refusal.value.hint

    settings.AGENTSITE_SANDBOX_UNRESTRICTED = True
    row = change(environment, staff, policy=EVERYWHERE)
    agent = make_agent("Coding")
    conversation = create_conversation(actor=alice, organisation=acme, agent=agent, environment=row)
    config = agent.current.config
    assert policy_of(conversation, config).unrestricted

    settings.AGENTSITE_SANDBOX_UNRESTRICTED = False
    with pytest.raises(Invalid, match="listed hosts only"):
        policy_of(conversation, config)


@pytest.mark.parametrize("write", [False, True])
def test_nothing_of_the_server_is_ever_mounted_whoever_asks(environment, staff, settings, write):
    """Staff who may add environments read no secret of the server by way of them."""
    data = Path(settings.AGENTSITE_DATA_DIR)
    settings.AGENTSITE_MOUNT_ROOTS = [str(data.parent), str(settings.BASE_DIR.parent), "/srv"]
    own = [data, data / "workspaces", data.parent, settings.BASE_DIR, settings.BASE_DIR / ".env"]
    link = Path(tempfile.mkdtemp(dir=data.parent)) / "way"
    link.symlink_to(data)
    for path in (*own, link, link.parent.parent, link / "db.sqlite3"):
        text = f"filesystem_policy: {{read_only: [], {'read_write' if write else 'read_only'}: [{path}]}}"
        text = text if write else f"filesystem_policy: {{read_only: ['{path}']}}"
        with pytest.raises(Invalid, match="cannot be opened") as refusal:
            change(environment, staff, policy=text)
        assert refusal.value.field == "policy"
        assert "AGENTSITE_MOUNT_ROOTS" in refusal.value.hint
        environment.refresh_from_db()
        assert environment.policy == ""


def test_by_default_only_the_systems_folders_may_be_mounted(environment, staff, settings):
    assert settings.AGENTSITE_MOUNT_ROOTS == []
    for path in ("/etc", "/home", "/srv", "/opt", "/var/lib", "/root"):
        with pytest.raises(Invalid, match="cannot be opened"):
            change(environment, staff, policy=f"filesystem_policy: {{read_only: [{path}]}}")
    text = "filesystem_policy: {read_only: [/usr, /lib, /usr/share]}"
    assert change(environment, staff, policy=text).version == 2
