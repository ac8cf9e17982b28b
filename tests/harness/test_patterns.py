"""Which arguments a rule means, and what slips past an allowing or a denying one."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.patterns import When, input_hash
from net.addresses import meant_by
from reading.commandmatching import Match
from reading.commandwords import simple_command
from tests.heartbeat import seconds_of_work
from tests.hostile import marks


def prefix(words: str) -> When:
    return When(argument="command", prefix=words)


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git  status",
        "git status -s",
        "git 'status'",
        "git status 'a;b'",
        "git\tstatus x",
    ],
)
def test_an_allowed_prefix_covers_a_simple_command_that_begins_with_its_words(command: str) -> None:
    assert prefix("git status").surely({"command": command})


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /",
        "git status;rm -rf /",
        "git status && rm x",
        "git status || rm x",
        "git status | sh",
        "git status & rm x",
        "git status\nrm x",
        "git status\rrm x",
        "git status > /etc/passwd",
        "git status < x",
        "git status `rm x`",
        "git status $(rm x)",
        'git status "$(rm x)"',
        "git status ${IFS}",
        "git status <(rm x)",
        "(git status; rm x)",
        "git status \\\nrm x",
        "git status ';' rm",
        "git statusx",
        "gits status",
        "GIT_SSH=evil git status",
        "/tmp/evil/git status",
        "git stat'us",
        "",
        " ",
        "git",
    ],
)
def test_an_allowed_prefix_covers_nothing_that_may_be_more_than_that(command: str) -> None:
    assert not prefix("git status").surely({"command": command})


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "ls; rm -rf x",
        "ls && /bin/rm -rf x",
        "ls | xargs rm -rf",
        "sudo rm -rf x",
        "find . -exec rm -rf {} +",
        "r\\m -rf x",
        "r''m -rf x",
        "bash -c 'rm -rf x'",
        'echo "$(rm -rf x)"',
        "echo `rm -rf x`",
        "ls\nrm -rf x",
        "rm \\\n -rf x",
        "(rm -rf x)",
        "{ rm -rf x; }",
        "if true; then rm -rf x; fi",
        "rm -rf<x",
        "sh -c \"bash -c 'rm -rf x'\"",
    ],
)
def test_a_denied_prefix_is_found_in_any_part_of_a_command(command: str) -> None:
    assert prefix("rm -rf").at_all({"command": command}) is Match.YES


@pytest.mark.parametrize(
    "command",
    ["$cmd -rf x", "$(echo rm) -rf x", "eval $x", "curl x | sh", "source x", "echo 'open", ". ./x"],
)
def test_a_command_that_cannot_be_read_may_be_the_denied_one(command: str) -> None:
    assert prefix("rm -rf").at_all({"command": command}) is Match.MAYBE


@pytest.mark.parametrize("command", ["ls", "echo $HOME", "git rm x", "rm x", "cat a | sort"])
def test_a_denied_prefix_leaves_other_commands_alone(command: str) -> None:
    assert prefix("rm -rf").at_all({"command": command}) is Match.NO


WORD = st.text(alphabet=string.ascii_letters + string.digits + "-_./=", min_size=1, max_size=8)
JOINTS = st.sampled_from([";", "&&", "||", "|", "&", "\n", " ; ", "$(", "`", "<(", ">", "\r\n"])


@given(st.lists(WORD, max_size=4), JOINTS, st.lists(WORD, min_size=1, max_size=4))
def test_no_second_command_rides_on_an_allowed_prefix(
    tail: list[str], joint: str, second: list[str]
) -> None:
    command = " ".join(["git", "status", *tail]) + joint + " ".join(second)

    assert not prefix("git status").surely({"command": command})


@given(st.text(max_size=60))
def test_any_text_is_read_without_a_fault_and_allowing_is_the_narrower_reading(text: str) -> None:
    for when in [
        prefix("git status"),
        When(argument="command", path="src/**"),
        When(argument="command", host="*.example.org"),
    ]:
        arguments = {"command": text}
        if when.surely(arguments):
            assert when.at_all(arguments) is Match.YES


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("src/a.py", True),
        ("src/deep/a.py", True),
        ("./src/a.py", True),
        ("src/../secret", False),
        ("src/../../etc/passwd", False),
        ("/src/a.py", False),
        ("/etc/passwd", False),
        ("srcs/a.py", False),
        ("src\\..\\x", False),
        ("src/a\0.py", False),
        ("", False),
    ],
)
def test_an_allowed_folder_covers_what_lies_in_it_and_no_way_out(path: str, covered: bool) -> None:
    assert When(argument="path", path="src/**").surely({"path": path}) is covered


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("secrets/key", Match.YES),
        ("Secrets/KEY", Match.YES),
        ("a/../secrets/key", Match.YES),
        ("secrets", Match.YES),
        ("/srv/secrets/key", Match.MAYBE),
        ("../secrets/key", Match.MAYBE),
        (".", Match.MAYBE),
        ("", Match.MAYBE),
        ("docs/key", Match.NO),
    ],
)
def test_a_denied_folder_is_met_however_it_is_written(path: str, match: Match) -> None:
    assert When(argument="path", path="secrets/**").at_all({"path": path}) is match


@pytest.mark.parametrize(
    ("url", "covered"),
    [
        ("https://docs.example.org/x", True),
        ("HTTPS://DOCS.EXAMPLE.ORG./x", True),
        ("https://docs.example.org:8443/", True),
        ("docs.example.org", True),
        ("https://example.org/", False),
        ("https://docs.example.org.evil.test/", False),
        ("https://evil.test/docs.example.org", False),
        ("https://docs.example.org@evil.test/", False),
        ("https://a:b@docs.example.org/", False),
        ("https://evil.test\\@docs.example.org/", False),
        ("https://evil.test#docs.example.org", False),
        ("https://docs.example.org:x/", False),
        ("https://docs.example.org /", False),
    ],
)
def test_an_allowed_host_covers_addresses_that_every_reader_reads_alike(
    url: str, covered: bool
) -> None:
    assert When(argument="url", host="*.example.org").surely({"url": url}) is covered


def test_of_a_list_all_must_match_to_allow_and_one_is_enough_to_deny() -> None:
    src = When(argument="paths", path="src/**")

    assert src.surely({"paths": ["src/a", "src/b"]})
    assert not src.surely({"paths": ["src/a", "etc/b"]})
    assert not src.surely({"paths": []})
    assert src.at_all({"paths": ["etc/b", "src/a"]}) is Match.YES


def test_a_value_of_another_kind_allows_nothing_and_may_be_denied() -> None:
    assert not prefix("ls").surely({"command": 5})
    assert prefix("ls").at_all({"command": {"a": "ls"}}) is Match.MAYBE
    assert prefix("ls").at_all({}) is Match.NO


def test_one_exact_input_is_meant_whatever_the_order_of_its_keys() -> None:
    when = When(sha256=input_hash({"a": 1, "b": ["ü"]}))

    assert when.surely({"b": ["ü"], "a": 1})
    assert not when.surely({"b": ["ü"], "a": 1, "c": None})
    assert not when.surely({"b": ["ü"], "a": 1.5})


def test_true_is_not_one() -> None:
    assert When(argument="force", equals=True).surely({"force": True})
    assert not When(argument="force", equals=True).surely({"force": 1})
    assert not When(argument="n", equals=1).surely({"n": True})


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"argument": "command"},
        {"argument": "command", "prefix": "a", "path": "b"},
        {"prefix": "git "},
        {"argument": "x", "sha256": "0" * 64},
        {"sha256": "xyz"},
        {"argument": "command", "prefix": "a; b"},
        {"argument": "command", "prefix": "'open"},
        {"argument": "command", "prefix": " "},
        {"argument": "url", "host": "https://a/"},
        {"argument": "command", "regex": ".*"},
    ],
)
def test_a_pattern_that_says_nothing_too_much_or_something_unknown_is_refused(
    broken: dict[str, object],
) -> None:
    with pytest.raises(ValidationError):
        When.model_validate(broken)


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4))
def test_the_hash_survives_being_stored(arguments: dict[str, object]) -> None:
    assert input_hash(json.loads(json.dumps(arguments))) == input_hash(arguments)


def test_a_simple_command_is_split_as_a_shell_splits_it() -> None:
    assert simple_command("git commit -m 'a b' c\\ d") == ("git", "commit", "-m", "a b", "c d")


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("secrets\\key", Match.MAYBE),
        ("s%65crets/key", Match.MAYBE),
        ("file:secrets/key", Match.MAYBE),
        ("file:///srv/secrets/key", Match.MAYBE),
        ("\uff53ecrets/key", Match.MAYBE),
        ("~/secrets", Match.MAYBE),
        (" secrets/key", Match.YES),
        ("secrets//./key", Match.YES),
    ],
)
def test_a_denied_folder_is_met_as_careless_readers_spell_it(path: str, match: Match) -> None:
    assert When(argument="path", path="secrets/**").at_all({"path": path}) is match


def test_composed_and_decomposed_names_are_one_and_two_slashes_at_first_are_one() -> None:
    assert When(argument="p", path="caf\u00e9/**").at_all({"p": "cafe\u0301/x"}) is Match.YES
    assert When(argument="p", path="/etc/**").at_all({"p": "//etc/passwd"}) is Match.YES


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("https://evil.example.:443/", Match.YES),
        ("https://EVIL.example/a%20b", Match.YES),
        ("https://a@evil.example/", Match.MAYBE),
        ("https:/evil.example/", Match.MAYBE),
        ("https:evil.example", Match.MAYBE),
        ("https:\\\\evil.example", Match.MAYBE),
        ("https://ev%69l.example/", Match.MAYBE),
        ("https://evil\u3002example/", Match.MAYBE),
        ("https://\uff45vil.example/", Match.MAYBE),
        ("https://fa\u00df.example/", Match.MAYBE),
        ("https://other.example/", Match.NO),
    ],
)
def test_a_denied_host_is_met_or_asked_about_however_it_is_written(url: str, match: Match) -> None:
    assert When(argument="url", host="evil.example").at_all({"url": url}) is match


@pytest.mark.parametrize(
    "url",
    ["http://2130706433/", "http://127.1/", "http://0x7f.1/", "http://017700000001/",
     "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"],
)  # fmt: skip
def test_an_address_is_met_or_asked_about_however_it_is_written(url: str) -> None:
    assert When(argument="url", host="127.0.0.1").at_all({"url": url}, meant_by) is not Match.NO


_LETTERS = "".join(chr(0x4E00 + (place * 7919) % 20_000) for place in range(6_000))
DEAR_ADDRESSES = {
    "a host of marks": f"http://{marks(40_000)}/",
    "a short one of marks": f"http://{marks(2_000)}/",
    "a host of letters": f"http://{_LETTERS}/",
    "megabytes": "http://a.example/" + "x" * 3_900_000,
}


@pytest.mark.parametrize("url", DEAR_ADDRESSES.values(), ids=DEAR_ADDRESSES)
def test_an_address_that_is_dear_to_read_is_not_read(url: str) -> None:
    when = When(argument="url", host="*.example.org")

    assert seconds_of_work(lambda: when.at_all({"url": url})) < 0.01
    assert when.at_all({"url": url}) is Match.MAYBE
    assert not when.surely({"url": url})


@pytest.mark.parametrize(
    "path",
    [marks(4_000), f"live/{marks(4_000)}", ("\uff9e" + "\u0315" * 20) * 190, "%CC%95%CC%A7" * 600],
    ids=["marks", "marks in a folder", "half-width sounds", "escapes"],
)
def test_a_path_that_is_dear_to_read_is_not_read(path: str) -> None:
    when = When(argument="path", path="live/**")

    assert seconds_of_work(lambda: when.at_all({"path": path})) < 0.01
    assert when.at_all({"path": path}) is not Match.NO
