"""A permission beyond one call covers what its giver reads: a suggested pattern, or one she wrote."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Organisation, User
from approvals.actions.approvals import decide_approval
from approvals.models import Approval, PolicyRule
from approvals.policyrules import held_for
from approvals.suggestions import cover_of, in_words
from conversations.models import Conversation
from harness.errors import Invalid
from harness.events import UserToolConfirmation
from tests.approvals.asking import a_reviewer, asks
from tests.cast import ClientOf
from tests.conversations.conftest import Converse
from tests.heartbeat import seconds_of_work
from tests.hostile import marks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.actions.approvals.wake", lambda _pk: None)


@pytest.fixture
def conversation(converse: Converse) -> Conversation:
    begun: Conversation = converse()[0]
    return begun


def runs(conversation: Conversation, command: str, **terms: Any) -> Approval:
    return asks(conversation, {"command": command}, tool="bash", **terms)


def allow(actor: User, approval: Approval, **more: Any) -> Approval:
    return decide_approval(
        actor=actor,
        approval=approval,
        verdict="approve",
        input_hash=approval.effective_sha256,
        seen_round=approval.round,
        **more,
    )


@pytest.mark.parametrize(
    ("tool", "given", "pattern"),
    [
        ("bash", {"command": "pytest -q tests/unit"}, "pytest"),
        ("bash", {"command": "git status -s"}, "git status"),
        ("bash", {"command": "python -m pytest -q"}, "python -m pytest"),
        ("bash", {"command": "uv run pytest -q"}, "uv run pytest"),
        ("bash", {"command": "make test -j4"}, "make test"),
        ("bash", {"command": "make test deploy"}, ""),
        ("bash", {"command": "go test ./... -run TestX"}, "go test ./..."),
        ("bash", {"command": "git commit -am 'Drop it'"}, "git commit"),
        ("bash", {"command": "git commit --amend"}, ""),
        ("bash", {"command": "git branch -v"}, "git branch"),
        ("bash", {"command": "python build.py --fast"}, ""),
        ("bash", {"command": "aws s3 ls"}, ""),
        ("bash", {"command": "aws s3 ls s3://logs --recursive"}, ""),
        ("bash", {"command": "aws --profile dev s3 ls"}, ""),
        ("bash", {"command": "gcloud compute instances list"}, ""),
        ("bash", {"command": "gcloud --project x projects list"}, ""),
        ("bash", {"command": "gcloud compute --zone x instances list"}, ""),
        ("bash", {"command": "az network vnet subnet list -g 7"}, ""),
        ("bash", {"command": "redis-cli GET greeting"}, ""),
        ("bash", {"command": "redis-cli -h cache get greeting"}, ""),
        ("bash", {"command": "service nginx status"}, ""),
        ("bash", {"command": "service nginx"}, ""),
        ("bash", {"command": "systemctl status nginx"}, ""),
        ("bash", {"command": "kubectl get pods"}, ""),
        ("bash", {"command": "kubectl config view"}, ""),
        ("bash", {"command": "helm repo list"}, ""),
        ("bash", {"command": "gh repo view acme/site"}, ""),
        ("bash", {"command": "supervisorctl status"}, ""),
        ("bash", {"command": "unheardof"}, ""),
        ("bash", {"command": "unheardof --list"}, ""),
        ("bash", {"command": "uv run aws s3 ls"}, ""),
        ("bash", {"command": "python -m pip list"}, ""),
        ("bash", {"command": "python manage.py check --deploy"}, ""),
        ("bash", {"command": "npm run build"}, "npm run build"),
        ("bash", {"command": "npm audit"}, ""),
        ("bash", {"command": "make clean"}, ""),
        ("bash", {"command": "make test"}, "make test"),
        ("bash", {"command": "git reflog"}, ""),
        ("bash", {"command": "git reflog show main"}, ""),
        ("bash", {"command": "git stash list"}, "git stash list"),
        ("bash", {"command": "./build.sh --fast"}, ""),
        ("bash", {"command": "ruff check src"}, "ruff check"),
        ("bash", {"command": "black --check src"}, "black --check"),
        ("bash", {"command": "make -n"}, "make -n"),
        ("bash", {"command": "ls -la src"}, "ls"),
        ("bash", {"command": "rm -rf build"}, ""),
        ("bash", {"command": "rm notes.txt"}, ""),
        ("bash", {"command": "curl -d a=b https://example.org"}, ""),
        ("bash", {"command": "pytest && rm x"}, ""),
        ("bash", {"command": "sudo pytest"}, ""),
        ("bash", {"command": "git rm old.txt"}, ""),
        ("bash", {"command": "git checkout main"}, ""),
        ("bash", {"command": "git stash drop"}, ""),
        ("bash", {"command": "git worktree remove ../old"}, ""),
        ("bash", {"command": "docker volume prune"}, ""),
        ("bash", {"command": "cargo clean"}, ""),
        ("bash", {"command": "aws s3 rm s3://logs/a"}, ""),
        ("bash", {"command": "aws ec2 terminate-instances --instance-ids i-1"}, ""),
        ("bash", {"command": "gsutil cp a gs://logs"}, ""),
        ("bash", {"command": "heroku apps:destroy site"}, ""),
        ("bash", {"command": "rails db:drop"}, ""),
        ("bash", {"command": "rake 'db:drop[all]'"}, ""),
        ("bash", {"command": "mix ecto.drop"}, ""),
        ("bash", {"command": "invoke db.drop"}, ""),
        ("bash", {"command": "gradle publishToMavenLocal"}, ""),
        ("bash", {"command": "mix ecto.migrate"}, ""),
        ("bash", {"command": "gh repo delete acme/site"}, ""),
        ("bash", {"command": "python -c 'print(1)'"}, ""),
        ("write_file", {"path": "src/app/a.py", "content": ""}, "src/app/**"),
        ("write_file", {"path": "a.py", "content": ""}, "a.py"),
        ("write_file", {"path": "../a.py", "content": ""}, ""),
        ("fetch_url", {"url": "https://example.org/x"}, "example.org"),
    ],
)
def test_what_is_suggested_covers_the_call_and_nothing_grave(
    tool: str, given: dict[str, Any], pattern: str
) -> None:
    cover = cover_of(tool, given)
    assert cover is not None
    assert cover.pattern == pattern


def test_a_pattern_is_saved_as_the_rule_it_says_and_listed_in_words(
    alice: User, conversation: Conversation, client_of: ClientOf
) -> None:
    allow(alice, runs(conversation, "pytest -q"), scope="conversation", pattern="pytest")
    (rule,) = PolicyRule.objects.all()
    assert rule.when == {"argument": "command", "prefix": "pytest"}
    assert (rule.scope, rule.conversation) == ("conversation", conversation)
    held = [one.rule.when for one in held_for(conversation) if one.uid == rule.uid]
    assert [when.surely({"command": "pytest -x a"}) for when in held if when] == [True]
    assert [when.surely({"command": "pytest; rm x"}) for when in held if when] == [False]
    page = client_of(alice).get("/approvals/rules/").content.decode()
    assert "commands that begin with “pytest”" in page


def test_exactly_one_call_is_listed_by_what_it_was_and_not_by_its_hash(
    alice: User, conversation: Conversation, client_of: ClientOf
) -> None:
    asked = runs(conversation, "make release")
    allow(alice, asked, scope="conversation")
    page = client_of(alice).get("/approvals/rules/").content.decode()
    assert "exactly the call with “make release”" in page
    assert asked.effective_sha256 not in page
    (rule,) = PolicyRule.objects.all()
    assert "exactly one call" in in_words(rule.value)


@pytest.mark.parametrize("pattern", ["mypy", "pytest; rm", "pyte", "*"])
def test_a_pattern_that_does_not_cover_the_call_allows_nothing(
    alice: User, conversation: Conversation, pattern: str
) -> None:
    asked = runs(conversation, "pytest -q")
    with pytest.raises(Invalid) as refused:
        allow(alice, asked, scope="conversation", pattern=pattern)
    assert "pattern" in str(refused.value.field)
    asked.refresh_from_db()
    assert asked.state == "pending"
    assert not PolicyRule.objects.exists()
    assert not asked.decisions.exists()


def test_a_pattern_goes_with_a_scope_and_with_a_tool_that_has_one(
    alice: User, conversation: Conversation
) -> None:
    with pytest.raises(Invalid):
        allow(alice, runs(conversation, "pytest"), pattern="pytest")
    other = asks(conversation, {"text": "x"}, tool="remember")
    with pytest.raises(Invalid):
        allow(alice, other, scope="conversation", pattern="x")


def test_of_two_peoples_patterns_only_what_both_gave_is_saved(
    alice: User, acme: Organisation, converse: Converse
) -> None:
    rita = a_reviewer(acme)
    for hers, saved in (("pytest", {"prefix"}), ("pytest -q", {"sha256"})):
        asked = runs(converse()[0], "pytest -q", two_people=True)
        allow(alice, asked, scope="conversation", pattern="pytest")
        allow(rita, asked, scope="conversation", pattern=hers)
        rule = PolicyRule.objects.get(made_from=asked)
        assert set(rule.when or {}) - {"argument"} == saved


def test_the_card_offers_the_pattern_and_its_form_grants_it_without_leaving_the_page(
    alice: User, conversation: Conversation, client_of: ClientOf
) -> None:
    asked = runs(conversation, "pytest -q")
    client = client_of(alice)
    form = client.get(f"/approvals/calls/{asked.call_uid}/longer/").content.decode()
    assert 'value="pytest"' in form
    posted = {
        "place": "conversation",
        "verdict": "approve",
        "input_hash": asked.effective_sha256,
        "round": "1",
        "scope": "conversation",
        "covers": "pattern",
        "pattern": "mypy",
        "argument-command": "pytest -q",
    }
    where = f"/approvals/{asked.uid}/decide/"
    refused = client.post(where, posted)
    assert refused.status_code == 422
    assert "does not cover" in refused.content.decode()
    assert 'value="mypy"' in refused.content.decode()
    assert client.post(where, {**posted, "pattern": "pytest"}).status_code == 204
    assert PolicyRule.objects.get().when == {"argument": "command", "prefix": "pytest"}
    said = conversation.events.get(type="user.tool_confirmation").value
    assert isinstance(said, UserToolConfirmation)
    assert said.edited_input is None


def test_nobody_else_gets_the_form_of_a_card(
    bob: User, mallory: User, conversation: Conversation, client_of: ClientOf
) -> None:
    asked = runs(conversation, "pytest -q")
    for stranger in (bob, mallory):
        where = f"/approvals/calls/{asked.call_uid}/longer/"
        assert client_of(stranger).get(where).status_code == 404


@pytest.mark.parametrize("host", [marks(40_000), marks(2_000)], ids=["long", "short"])
def test_for_an_address_that_is_dear_to_read_only_the_call_is_suggested(host: str) -> None:
    given = {"url": f"http://{host}/"}

    assert seconds_of_work(lambda: cover_of("web_fetch", given)) < 0.005
    found = cover_of("web_fetch", given)
    assert found is not None
    assert found.pattern == ""
