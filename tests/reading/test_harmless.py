"""What may follow the words that a rule allows: what is known to be harmless there, and nothing else."""

from __future__ import annotations

import shutil
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.patterns import When
from reading.harmless import KNOWN, Harmless, words_to_name
from tests.heartbeat import seconds_of_work


def covers(rule: str, command: str) -> bool:
    return When(argument="command", prefix=rule).surely({"command": command})


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git status -s", "git status"),
        ("git status -sb --untracked-files=no src", "git status"),
        ("git log --oneline -5 main", "git log"),
        ("git log -n 3 --format=%h --since yesterday", "git log"),
        ("git diff --stat HEAD^ -U3", "git diff"),
        ("git commit -am 'Say: it works'", "git commit"),
        ("git diff -U 3 x", "git diff"),
        ("git diff -M --stat HEAD -- src --output=x", "git diff"),
        ("git --no-pager log -p -n 3", "git --no-pager log"),
        ("git add -- -x", "git add"),
        ("mypy -p core --python-version 3.11", "mypy"),
        ("cargo check --message-format short", "cargo check"),
        ("git log --pretty oneline --pretty=short -S x", "git log"),
        ("git shortlog -sn --no-merges HEAD", "git shortlog"),
        ("git branch -av", "git branch"),
        ("git add -A src", "git add"),
        ("pytest -qx tests/a.py -k 'a or b' -m slow --maxfail=2", "pytest"),
        ("python -m pytest -q tests", "python -m pytest"),
        ("uv run pytest -q -n auto", "uv run pytest"),
        ("uv run ruff check src --select E", "uv run ruff check"),
        ("npx eslint --quiet src", "npx eslint"),
        ("ls -la /srv", "ls"),
        ("/usr/bin/ls -a", "/usr/bin/ls"),
        ("head -5 x", "head"),
        ("grep -rn --include '*.py' TODO src", "grep"),
        ("find . -mtime -7 -size -10k -type f", "find"),
        ("sort -k2,2 -t , -u x", "sort"),
        ("uniq -c x", "uniq"),
        ("make test -j 4", "make test"),
        ("make test -sj4", "make test"),
        ("make -k", "make"),
        ("npm run build --silent", "npm run build"),
        ("tree -L 2 -a src", "tree"),
        ("cut -d - -f -3 x", "cut"),
        ("go test ./... -run=TestX -v", "go test ./..."),
        ("cargo test --release -p core", "cargo test"),
        ("./build.sh --fast", "./build.sh --fast"),
        ("sudo ls", "sudo ls"),
        ("git push", "git push"),
        ("pytest --basetemp=x", "pytest --basetemp=x"),
    ],
)
def test_a_rule_covers_its_own_words_and_what_is_harmless_behind_them(
    command: str, rule: str
) -> None:
    assert covers(rule, command)


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git fetch --prune origin", "git fetch"),
        ("git commit --amend", "git commit"),
        ("git commit -m x file", "git commit"),
        ("git -C x status -s", "git -C x status"),
        ("git status -s", "git"),
        ("git branch x", "git branch"),
        ("git branch -vD x", "git branch -v"),
        ("git tag x", "git tag"),
        ("git remote remove x", "git remote"),
        ("git diff --output=x", "git diff"),
        ("git diff --out x", "git diff"),
        ("git log --ext-diff", "git log"),
        ("git log --format=%GK", "git log"),
        ("git show '--pretty=format:%h%+GS'", "git show"),
        ("git grep -O x", "git grep"),
        ("git grep --open x", "git grep"),
        ("git log -p -- --output=x -- @y", "git log"),
        ("git log --author -- --output=x", "git log"),
        ("git -- log", "git"),
        ("git --no-pager log --output=x", "git --no-pager log"),
        ("git --no-pager p -a", "git --no-pager p"),
        ("git log -p", "git --no-pager log"),
        ("git commit -- x", "git commit"),
        ("pytest -- x", "pytest"),
        ("flyctl apps destroy x", "flyctl apps"),
        ("unheardof --all", "unheardof"),
        ("./build.sh --fast", "./build.sh"),
        ("./ls -a", "./ls"),
        ("ls/ls -a", "ls/ls"),
        ("python a.py -x", "python a.py"),
        ("python -m site x", "python -m site"),
        ("sudo ls -a", "sudo ls"),
        ("env ls -a", "env ls"),
        ("X=1 ls -a", "X=1 ls"),
        ("sort -ro x y", "sort"),
        ("sort -o x y", "sort"),
        ("sort --out=x y", "sort"),
        ("sort --compress-program=./x y", "sort"),
        ("sort -T", "sort"),
        ("find . -delete", "find"),
        ("find . -name", "find"),
        ("find . -name -delete", "find"),
        ("find . -exec x", "find"),
        ("find . -fprint x", "find"),
        ("uniq a b", "uniq"),
        ("uniq a b", "uniq a"),
        ("date 01010101", "date"),
        ("date -s x", "date"),
        ("tree -o x", "tree"),
        ("rg --pre x y", "rg"),
        ("rg -z y", "rg"),
        ("printf -v x y", "printf"),
        ("printf %n PATH", "printf"),
        ("printf 'x%5n' PATH", "printf"),
        ("pytest -p evil", "pytest"),
        ("pytest evil", "pytest -p"),
        ("pytest -q evil", "pytest -p other"),
        ("pytest @x", "pytest"),
        ("pytest -o addopts=x", "pytest"),
        ("pytest --basetemp=src", "pytest"),
        ("mypy @x", "mypy"),
        ("strings @x", "strings"),
        ("jq -f x y", "jq"),
        ("uv run --with x pytest -q", "uv run --with x pytest"),
        ("uv run ls -a", "uv run ls"),
        ("python -m ls -a", "python -m ls"),
        ("ruff check --fix", "ruff check"),
        ("ruff check --config x", "ruff check"),
        ("eslint -c x", "eslint"),
        ("eslint --fix", "eslint"),
        ("make test deploy", "make test"),
        ("make test -j deploy", "make test"),
        ("make test SHELL=x", "make test"),
        ("make test -f x", "make test"),
        ("make test -sf x", "make test"),
        ("make deploy", "make"),
        ("npm run deploy", "npm run"),
        ("npm run build -- --x", "npm run build"),
        ("npm run build --script-shell=x", "npm run build"),
        ("go test ./... -exec x", "go test ./..."),
        ("go test x", "go test"),
        ("cargo test --config x", "cargo test"),
        ("cargo +nightly build -q", "cargo +nightly build"),
        ("prettier --write x", "prettier --check"),
        ("tsc a.ts", "tsc"),
        # What looks like an option is one to many programs, where a value is optional or missing.
        ("git diff -U --output=x", "git diff"),
        ("git diff --unified --output=x", "git diff"),
        ("git log --pretty --output=x", "git log"),
        ("git shortlog -n --output=x", "git shortlog"),
        ("git shortlog -sn --output=x", "git shortlog"),
        ("pytest -k -pevil", "pytest"),
        ("pytest -k -p evil", "pytest"),
        ("pytest -vk -pevil", "pytest"),
        ("flake8 --select --config=x", "flake8"),
        ("pylint --disable --init-hook=x", "pylint"),
        ("prettier --check --log-level --write x", "prettier --check"),
        ("cargo test --bin --config=x", "cargo test"),
        ("grep -e -- x", "grep"),
        # A file of further words is read wherever it stands, for a value as well.
        ("pytest -k @x", "pytest"),
        ("ruff check --select @x", "ruff check"),
        ("mypy -p @x", "mypy"),
        # What is joined to an option that takes no value may be more options, or a word of its own.
        ("pytest -q=oaddopts=-pevil", "pytest"),
        ("isort -q=x a.py", "isort"),
        ("npm run --silent=deploy", "npm run"),
        ("npm run --if-present=deploy", "npm run"),
        ("npm run build --silent=--script-shell=./x", "npm run build"),
        ("npm test -s=--script-shell=./x", "npm test"),
        ("tree -Io x y", "tree"),
        ("tree -L=o 2 y", "tree"),
        # Behind the name of a script all is the script's.
        ("yarn run build -s", "yarn run build"),
        ("pnpm run build --silent", "pnpm run build"),
        ("pnpm test -s", "pnpm test"),
    ],
)
def test_whatever_is_not_known_to_be_harmless_behind_it_is_not_covered(
    command: str, rule: str
) -> None:
    assert not covers(rule, command)


@pytest.mark.parametrize(
    ("command", "rule", "covered"),
    [
        ("./build.sh --fast x", "./build.sh *", True),
        ("./build.sh", "./build.sh *", True),
        ("./build.sh --fast", "./build.sh\t*  ", True),
        ("git push -u origin main", "git push *", True),
        ("python a.py -x", "python a.py *", True),
        ("sudo rm x", "sudo *", False),
        ("git p x", "git *", False),
        ("git log --format=%h", "git log *", True),
        ("git log --format=%GK", "git log *", False),
        ("git log -1 --show-signature", "git log *", False),
        ("python -c x", "python *", False),
        ("find . -exec x", "find *", False),
        ("./build.sh; x", "./build.sh *", False),
        ("./build.sh > x", "./build.sh *", False),
        ("./build.sh x", "./build.sh '*'", False),
        ("./build.sh x", "./build.sh \\*", False),
        ("./build.sh x", "./build.sh x\\ *", False),
        ("./build.sh x", "./build.sh*", False),
        ("./build.sh x", "*", False),
        ("./build.sh x", "* *", False),
    ],
)
def test_a_star_of_its_own_lets_follow_whatever_starts_no_other_program(
    command: str, rule: str, *, covered: bool
) -> None:
    assert covers(rule, command) is covered


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("black --check src", "black --check"),
        ("black -q src --diff", "black -q src --diff"),
        ("black src", "black"),
        ("isort -c src", "isort -c"),
        ("ruff format --check src", "ruff format --check"),
        ("ruff check --no-fix -q src", "ruff check --no-fix"),
        ("make -kn", "make -kn"),
        ("make -n build", "make -n build"),
        ("make -k", "make"),
        ("git add -nv src", "git add -nv"),
        ("pytest --co -q tests", "pytest --co"),
        ("tsc --noEmit --pretty", "tsc --noEmit"),
        ("cargo test --no-run -q", "cargo test --no-run"),
        ("cargo build --locked -r", "cargo build --locked"),
        ("cargo test -q --offline", "cargo test -q --offline"),
        ("cargo check --frozen", "cargo check --frozen"),
        ("ruff check --show-files src", "ruff check --show-files"),
    ],
)
def test_what_only_checks_is_allowed_by_words_that_say_so(command: str, named: str) -> None:
    """A yes to it is none to changing what it looked at."""
    words = tuple(command.split())
    assert " ".join(words[: words_to_name(words, no_more=True) or 0]) == named
    assert covers(named, command)


WORDS = st.lists(
    st.text(alphabet=string.ascii_letters + string.digits + "-_./=@", min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)


@given(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=12), WORDS)
def test_of_a_program_nobody_here_knows_a_rule_covers_its_own_words_alone(
    program: str, behind: list[str]
) -> None:
    name = f"x-{program}"
    assert covers(name, name)
    assert not covers(name, " ".join([name, *behind]))


@given(st.sampled_from(sorted(KNOWN)), WORDS)
def test_an_option_that_stands_on_no_list_has_any_command_ask(
    beginning: tuple[str, ...], behind: list[str]
) -> None:
    """Options are put first, so that none is the value of another."""
    rule = " ".join(beginning)
    assert not covers(rule, f"{rule} --unheard-of {' '.join(behind)}")
    assert not covers(rule, f"{rule} --unheard-of=x {' '.join(behind)}")


def test_no_beginning_that_is_known_is_that_of_another() -> None:
    for one in KNOWN:
        assert not any(len(other) > len(one) and other[: len(one)] == one for other in KNOWN)


def test_a_long_command_is_weighed_in_one_pass() -> None:
    words = ("make", *("x" for _ in range(2_400)))
    assert words_to_name(words) == len(words)
    assert seconds_of_work(lambda: words_to_name(words)) < 0.05


# --- by the programs themselves -------------------------------------------------------------------

CHANGES = frozenset({"git add", "git commit", "make", "gmake", "ruff format", "black", "isort"})
"""Those that are made for changing something, which a rule then says."""
NEVER_ENDING = frozenset({"sleep", "tail"})
INSTALLED = [
    (beginning, known)
    for beginning, known in sorted(KNOWN.items())
    if shutil.which(beginning[0])
    and beginning[0]
    not in {"npm", "npx", "pnpm", "yarn", "cargo", "go", "mypy", "pytest", "py.test"}
    and " ".join(beginning) not in CHANGES | NEVER_ENDING
]


def held(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What stands in the files, and since when."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "index"
    }


def told(known: Harmless) -> list[list[str]]:
    """Each option alone, with values that a program could take for the name of a file."""
    alone = [[option] for option in sorted(known.flags)]
    given = [[option, "made"] for option in sorted(known.valued)]
    joined = [[f"{option}=made"] for option in sorted(known.flags | known.valued)]
    return [*alone, *given, *joined]


@pytest.mark.parametrize(
    ("beginning", "known"), INSTALLED, ids=[" ".join(beginning) for beginning, _known in INSTALLED]
)
def test_no_option_that_is_called_harmless_changes_a_file(
    tmp_path: Path, beginning: tuple[str, ...], known: Harmless
) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("two\nthree\n")
    quiet = {"cwd": tmp_path, "capture_output": True, "timeout": 20, "stdin": None}
    if beginning[0] == "git":
        name = ("-c", "user.name=Alice", "-c", "user.email=alice@example.org")
        for words in (("init", "-q"), ("add", "a"), (*name, "commit", "-qm", "One")):
            subprocess.run(["git", *words], check=True, **quiet)  # type: ignore[call-overload]
    before = held(tmp_path)
    operands = {"free": ["a", "b"], "one": ["a"], "own": []}[known.operands]

    for options in told(known):
        command = [*beginning, *options, *operands]
        subprocess.run(command, check=False, **{**quiet, "stdin": subprocess.DEVNULL})  # type: ignore[call-overload]
        assert held(tmp_path) == before, command
