"""Which words may follow what an allowing rule names without more being allowed than it says.

A list of what is known to be harmless, not of what is not: whatever stands on no line here asks. It is
about commands that can be read to their end (`reading.commandwords`); what denies or asks goes by
`reading.commandmatching`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reading.digits import is_digits
from reading.programs import GIT_VERIFYING, installed_name, sets_by_a_piece

Operands = Literal["free", "one", "own"]
"""Words that are no options. *free*: any may follow; *one*: one in all, since a second is a file that it
writes; *own*: the rule says them, since each says something else to do."""


@dataclass(frozen=True, slots=True)
class Harmless:
    """What a program, or one of its subcommands, may be told beyond what a rule says."""

    flags: frozenset[str] = frozenset()
    """Options without a value of their own; long ones may take one behind `=`."""
    valued: frozenset[str] = frozenset()
    """Options whose value is the rest of their word, or the next word where that is no option by its looks:
    where a value is missing, many programs read it as one."""
    numbered: frozenset[str] = frozenset()
    """Options that take the next word only where it is a number."""
    operands: Operands = "free"
    rows: bool = True
    """Whether options of one letter may stand in a row (`-la`)."""
    numbers: bool = False
    """Whether a number is an option (`head -5`)."""
    joined: bool = True
    """Whether a value may stand behind the `=` of a flag; some take it for a word of its own."""
    ends: bool = False
    """Whether `--` may stand before operands."""
    less: frozenset[str] = frozenset()
    """Flags by which it only checks or shows what it would do without them, or reaches less far."""
    starting: tuple[str, ...] = ()
    """Pieces of a value by which it starts another program."""


def words_to_name(words: Sequence[str], *, no_more: bool = False) -> int | None:
    """How many of a command's words a rule has to name, so that all behind them are harmless; None where
    more than its beginning is not known here. With `no_more`, so that it allows no more than such a command
    does either: an option that has it only check or show (`black --check`), or reach less far
    (`cargo build --offline`), is among them."""
    for count in range(1, min(len(words), _LONGEST) + 1):
        known = KNOWN.get(_spelt(words[:count]))
        if known is not None:
            needed = _words_to_name(known, words, count)
            if needed is None or not no_more:
                return needed
            less = (
                at for at, word in enumerate(words, 1) if at > needed and _does_less(known, word)
            )
            return max(less, default=needed)
    return None


def _spelt(beginning: Sequence[str]) -> tuple[str, ...]:
    """A program that lies where programs are installed by its name alone, and without one that only
    runs it."""
    spelt = (installed_name(beginning[0]), *beginning[1:])
    if spelt[:2] == ("git", "--no-pager"):
        return ("git", *spelt[2:])
    for handing in HANDING_ON:
        if spelt[: len(handing)] == handing and len(spelt) > len(handing):
            return spelt[len(handing) :] if spelt[len(handing)] in HANDED else ()
    return spelt


def _does_less(known: Harmless, word: str) -> bool:
    """Rather once too often: a letter may be part of a value."""
    letters = word[1:] if word.startswith("-") and not word.startswith("--") else ""
    return word in known.less or any(f"-{letter}" in known.less for letter in letters)


def _words_to_name(known: Harmless, words: Sequence[str], begins: int) -> int | None:
    operands, needed, place, ended = 0, begins, begins, False
    if any(piece in word for word in words[begins:] for piece in known.starting):
        return None
    if sets_by_a_piece(installed_name(words[0]), words[begins:]):
        return None
    while place < len(words):
        word = words[place]
        if word == "--" and known.ends and not ended:
            ended = True
        elif word.startswith("-") and word != "-" and not ended:
            behind = words[place + 1] if place + 1 < len(words) else None
            taken = _taken(known, word, behind)
            if taken is None:
                return None
            place += taken
        else:
            operands += 1
            if _is_file_of_words(word) or (known.operands == "one" and operands > 1):
                return None
            if known.operands == "own":
                needed = place + 1
        place += 1
    return needed


def _taken(known: Harmless, word: str, behind: str | None) -> int | None:
    """How many words behind an option are its value; None where it is not known, or its value is missing."""
    name, equals, _value = word.partition("=")
    is_long = len(name) > len("-x")  # behind a short one `=` may be a letter of a row as well
    if equals and is_long and name in known.valued:
        return 0
    if equals and name.startswith("--"):
        return 0 if known.joined and name in known.flags else None
    if word in known.flags:
        return 0
    if word in known.valued:
        return _taken_as_value(behind)
    if known.numbers and is_digits(word[1:]):
        return 0
    if word.startswith("--") or not (known.rows or word[:2] in known.numbered):
        return None
    return _taken_by_row(known, word, behind)


def _taken_by_row(known: Harmless, row: str, behind: str | None) -> int | None:
    for at, letter in enumerate(row[1:], start=1):
        option, rest = f"-{letter}", row[at + 1 :]
        if option in known.numbered:
            if rest:
                return 0 if is_digits(rest) else None
            return int(behind is not None and is_digits(behind))
        if option in known.valued:
            return 0 if rest else _taken_as_value(behind)
        if option not in known.flags:
            return None
    return 0


def _taken_as_value(word: str | None) -> int | None:
    if word is None or _is_file_of_words(word):
        return None
    is_option = word.startswith("-") and word != "-" and not is_digits(word[1:2])
    return None if is_option else 1


def _is_file_of_words(word: str) -> bool:
    """Whether many programs put the words of a file in its place, before they read any."""
    return word.startswith("@")


# --- what is known --------------------------------------------------------------------------------


def _known(
    letters: str = "",
    flags: str = "",
    *,
    takes: str = "",
    valued: str = "",
    numbered: str = "",
    operands: Operands = "free",
    rows: bool = True,
    numbers: bool = False,
    joined: bool = True,
    ends: bool = False,
    less: str = "",
    starting: tuple[str, ...] = (),
) -> Harmless:
    """`letters` and `takes` are options of one letter, with and without a value."""
    return Harmless(
        frozenset({*(f"-{letter}" for letter in letters), *flags.split()}),
        frozenset({*(f"-{letter}" for letter in takes), *valued.split()}),
        frozenset(f"-{letter}" for letter in numbered),
        operands,
        rows,
        numbers,
        joined,
        ends,
        frozenset(less.split()),
        starting,
    )


_SUMS = _known("bt", "--tag --binary --text")
_GREP = _known(
    "abcEFGhHiIlLnoqrRsTUvwxzZ",
    "--basic-regexp --color --colour --count --extended-regexp --files-with-matches "
    "--files-without-match --fixed-strings --ignore-case --invert-match --line-number --line-regexp "
    "--no-filename --no-messages --null --only-matching --perl-regexp --quiet --recursive --silent "
    "--text --with-filename --word-regexp -P",
    takes="ABCem",
    valued="--after-context --before-context --context --exclude --exclude-dir --include --max-count "
    "--regexp",
    numbers=True,
)
_LISTING = _known(
    "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxX1",
    "--all --almost-all --classify --color --directory --full-time --group-directories-first "
    "--human-readable --inode --no-group --numeric-uid-gid --recursive --reverse --size --time-style "
    "--sort --time",
    takes="ITw",
    valued="--hide --ignore",
)
_GIT_LOG = _known(
    "abcEFimpPRsuwWz",
    "--abbrev --abbrev-commit --all --branches --cached --check --cherry-pick --color --color-words "
    "--date-order --decorate --exit-code --find-renames --first-parent --follow --format --full-history "
    "--graph --histogram --ignore-all-space --ignore-blank-lines --ignore-space-change --left-right --merges "
    "--minimal --name-only --name-status --no-color --no-decorate --no-ext-diff --no-merges --no-patch "
    "--no-prefix --no-renames --no-textconv --numstat --oneline --patch --patience --pretty --quiet --raw "
    "--remotes --reverse --shortstat --staged --stat --summary --tags --topo-order --unified --word-diff",
    takes="GLSn",
    valued="--after --author --before --committer --date --diff-filter --grep --max-count --since --skip "
    "--until",
    numbered="UMC",
    numbers=True,
    ends=True,
    starting=GIT_VERIFYING,
)
_PYTEST = _known(
    "qvsxl",
    "--co --collect-only --disable-warnings --exitfirst --failed-first --ff --last-failed --lf "
    "--new-first --nf --no-header --no-summary --quiet --showlocals --stepwise --strict-markers --sw "
    "--verbose",
    takes="kmnr",
    valued="--capture --color --deselect --dist --durations --ignore --ignore-glob --maxfail --show-capture "
    "--tb --timeout",
    less="--co --collect-only",
)
_CARGO = _known(
    "qvr",
    "--all --all-features --all-targets --benches --bins --doc --examples --frozen --lib --locked "
    "--no-default-features --no-fail-fast --no-run --offline --quiet --release --tests --verbose "
    "--workspace",
    takes="jp",
    valued="--bin --color --example --exclude --features --jobs --message-format --package --test",
    operands="own",
    less="--frozen --locked --no-run --offline",
)
_GO = _known(
    flags="-v -race -short -cover -failfast -json -benchmem",
    valued="-run -bench -count -timeout -cpu -parallel -tags -skip -shuffle",
    operands="own",
    rows=False,
)
_SCRIPTS = _known("s", "--silent --if-present", operands="own", joined=False)
_SCRIPTS_HANDED = _known(operands="own")
"""Of those that hand the options behind a script's name to the script."""
_MAKE = _known(
    "ksBnw",
    "--always-make --dry-run --keep-going --just-print --no-print-directory --print-directory --silent",
    numbered="j",
    operands="own",
    less="-n --dry-run --just-print",
)

_PROGRAMS: Mapping[str, Harmless] = {
    **dict.fromkeys(
        ("b2sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum"), _SUMS
    ),
    **dict.fromkeys(("egrep", "fgrep", "grep"), _GREP),
    **dict.fromkeys(("dir", "ls"), _LISTING),
    **dict.fromkeys((":", "cksum", "false", "printf", "rev", "sleep", "true", "tsort"), _known()),
    **dict.fromkeys(("make", "gmake"), _MAKE),
    **dict.fromkeys(("py.test", "pytest"), _PYTEST),
    "basename": _known("az", "--multiple --zero", takes="s", valued="--suffix"),
    "black": _known(
        "qv",
        "--check --color --diff --quiet --verbose",
        takes="l",
        valued="--line-length",
        less="--check --diff",
    ),
    "cat": _known(
        "AbeEnstTuv", "--number --number-nonblank --show-all --show-ends --squeeze-blank"
    ),
    "cmp": _known("bls", "--print-bytes --quiet --silent --verbose", takes="in"),
    "column": _known("t", "--table", takes="s", valued="--separator"),
    "comm": _known("123iz", "--check-order --nocheck-order --total"),
    "cut": _known(
        "sz",
        "--complement --only-delimited",
        takes="bcdf",
        valued="--bytes --characters --delimiter --fields --output-delimiter",
    ),
    "date": _known("Ru", "--iso-8601 --rfc-3339 --rfc-email --utc", operands="own"),
    "df": _known("ahHiklmPT", "--all --human-readable --inodes --local --total", takes="Btx"),
    "diff": _known(
        "abBcdeinNqrstuwyEZ",
        "--brief --color --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change "
        "--minimal --new-file --recursive --report-identical-files --side-by-side --suppress-common-lines "
        "--text --unified",
        takes="CIUWx",
        valued="--exclude --ignore-matching-lines --width",
    ),
    "dirname": _known("z", "--zero"),
    "du": _known(
        "abchHklLmPsSx0",
        "--all --apparent-size --bytes --human-readable --one-file-system --summarize --total",
        takes="Bdt",
        valued="--exclude --max-depth --threshold",
    ),
    "echo": _known("eEn"),
    "eslint": _known(flags="--no-color --quiet", valued="--ext --max-warnings", rows=False),
    "expand": _known("i", "--initial", takes="t", valued="--tabs"),
    "file": _known("bhikLNr", "--brief --mime --mime-encoding --mime-type", takes="F"),
    "find": _known(
        "HLP",
        "-a -and -daystart -depth -empty -executable -false -follow -ls -mount -nogroup -not -nouser -o "
        "-or -print -print0 -prune -quit -readable -true -writable -xdev",
        valued="-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath "
        "-iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -newermt -path "
        "-perm -printf -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype",
        rows=False,
    ),
    "flake8": _known("qv", "--count --statistics", valued="--ignore --max-line-length --select"),
    "fmt": _known("cstu", takes="pw", numbers=True),
    "fold": _known("bs", "--bytes --spaces", takes="w", valued="--width"),
    "head": _known(
        "qvz", "--quiet --silent --verbose", takes="cn", valued="--bytes --lines", numbers=True
    ),
    "hexdump": _known("bcCdovx", "--canonical", takes="ns"),
    "id": _known("aGgnruz"),
    "isort": _known(
        "cqv",
        "--check --check-only --diff --quiet --verbose",
        rows=False,
        less="-c --check --check-only --diff",
    ),
    "join": _known("iz", "--header", takes="12aejotv"),
    "jq": _known(
        "acCeMnrRsS",
        "--ascii-output --color-output --compact-output --exit-status --monochrome-output --null-input "
        "--raw-input --raw-output --slurp --sort-keys --tab",
        valued="--indent",
    ),
    "mypy": _known(
        flags="--ignore-missing-imports --no-error-summary --pretty --show-error-codes --strict",
        valued="--exclude --follow-imports --module --package --python-version -m -p",
        rows=False,
    ),
    "nl": _known("p", takes="bdfhilnsvw"),
    "nproc": _known(flags="--all", operands="own"),
    "od": _known("abcdovx", takes="AjNtw"),
    "paste": _known("sz", "--serial", takes="d", valued="--delimiters"),
    "ps": _known("aAefluwx", takes="CopU", valued="--sort"),
    "pwd": _known("LP", operands="own"),
    "pylint": _known("E", "--errors-only", valued="--disable --enable"),
    **dict.fromkeys(
        ("readlink", "realpath"),
        _known("efmnqsvzLP", "--canonicalize", valued="--relative-base --relative-to"),
    ),
    "rg": _known(
        "acFHiIlLnNopPqsSuUvwx.",
        "--count --files --files-with-matches --files-without-match --fixed-strings --follow --heading "
        "--hidden --ignore-case --invert-match --json --line-number --multiline --no-heading --no-ignore "
        "--only-matching --quiet --smart-case --stats --trim --vimgrep --word-regexp",
        takes="ABCegjmMrtT",
        valued="--after-context --before-context --color --context --glob --max-count --max-depth "
        "--regexp --sort --type --type-not",
    ),
    "seq": _known("w", "--equal-width", takes="fs", numbers=True),
    "shellcheck": _known("ax", takes="efsS", valued="--exclude --format --severity --shell"),
    "sort": _known(
        "bcCdfghimMnrRsuVz",
        "--check --general-numeric-sort --human-numeric-sort --ignore-case --numeric-sort --reverse "
        "--stable --unique --version-sort",
        takes="kt",
        valued="--field-separator --key",
    ),
    "stat": _known(
        "fLt", "--dereference --file-system --terse", takes="c", valued="--format --printf"
    ),
    "strings": _known("af", takes="nt"),
    "sum": _known("rs"),
    "tac": _known("br", takes="s"),
    "tail": _known(
        "fFqvz",
        "--follow --quiet --retry --silent --verbose",
        takes="cns",
        valued="--bytes --lines --pid --sleep-interval",
        numbers=True,
    ),
    "tr": _known("cCdst", "--complement --delete --squeeze-repeats --truncate-set1"),
    "tree": _known(
        "aCdDfFghiJlnNpqQrstuUvX",
        "--dirsfirst --gitignore --noreport --prune",
        takes="ILP",
        valued="--filelimit",
        rows=False,  # a value is the next word also where more letters follow
    ),
    "tsc": _known(flags="--noEmit --pretty --strict", operands="own", rows=False, less="--noEmit"),
    "tty": _known("s", operands="own"),
    "uname": _known("aimnoprsv", operands="own"),
    "unexpand": _known("a", "--all", takes="t", valued="--tabs"),
    "uniq": _known(
        "cdDiuz",
        "--count --ignore-case --repeated --unique",
        takes="fsw",
        valued="--check-chars --skip-chars --skip-fields",
        operands="one",
    ),
    "uptime": _known("ps", operands="own"),
    "wc": _known("clLmw", "--bytes --chars --lines --max-line-length --words"),
    "which": _known("a"),
    "who": _known("abHqu", operands="own"),
    "whoami": _known(operands="own"),
}

_SUBCOMMANDS: Mapping[str, Harmless] = {
    **dict.fromkeys(
        ("cargo bench", "cargo build", "cargo check", "cargo clippy", "cargo test"), _CARGO
    ),
    **dict.fromkeys(("git diff", "git log", "git show", "git whatchanged"), _GIT_LOG),
    **dict.fromkeys(("go build", "go test", "go vet"), _GO),
    **dict.fromkeys(("npm run", "npm test"), _SCRIPTS),
    **dict.fromkeys(("pnpm run", "pnpm test", "yarn run", "yarn test"), _SCRIPTS_HANDED),
    "git add": _known(
        "AnNuv",
        "--all --dry-run --intent-to-add --no-ignore-removal --update --verbose",
        ends=True,
        less="-n --dry-run",
    ),
    **dict.fromkeys(
        ("git annotate", "git blame"),
        _known("bcefhlnpstwMC", "--porcelain", takes="L", ends=True),
    ),
    "git branch": _known("arv", "--all --list --no-color --remotes --show-current", operands="own"),
    "git cat-file": _known("epst"),
    "git commit": _known(
        "aqsv", "--all --quiet --signoff --verbose", takes="m", valued="--message", operands="own"
    ),
    "git describe": _known(
        flags="--abbrev --all --always --dirty --exact-match --long --tags",
        valued="--candidates --match",
    ),
    "git grep": _known(
        "abcEFhHilLnoPvwz",
        "--cached --count --files-with-matches --fixed-strings --ignore-case --line-number --name-only "
        "--untracked --word-regexp",
        takes="ABCe",
        valued="--max-depth",
        ends=True,
    ),
    "git ls-files": _known(
        "cdikmostuvz",
        "--cached --deleted --directory --exclude-standard --full-name --ignored --modified --others "
        "--stage --unmerged",
        takes="x",
        valued="--exclude",
    ),
    "git ls-tree": _known("dlrtz", "--full-name --full-tree --long --name-only"),
    "git remote": _known("v", "--verbose", operands="own"),
    "git rev-list": _known(
        flags="--all --count --first-parent --merges --no-merges --reverse",
        takes="n",
        valued="--max-count --since --until",
        numbers=True,
    ),
    "git rev-parse": _known(
        "q",
        "--abbrev-ref --absolute-git-dir --git-dir --is-inside-work-tree --quiet --short --show-cdup "
        "--show-prefix --show-toplevel --symbolic-full-name --verify",
    ),
    "git shortlog": _known(
        "cens",
        "--all --email --no-merges --numbered --summary",
        valued="--author --since --until",
    ),
    "git stash list": _known("p", "--oneline --stat", operands="own"),
    "git status": _known(
        "bsuvz",
        "--ahead-behind --branch --ignored --long --no-renames --porcelain --short --show-stash "
        "--untracked-files --verbose -uall -uno -unormal",
        ends=True,
    ),
    "git tag": _known("ln", "--list --no-color", valued="--sort", operands="own"),
    "prettier --check": _known(valued="--log-level", rows=False),
    "ruff check": _known(
        "nqv",
        "--diff --no-cache --no-fix --preview --quiet --show-files --statistics --verbose",
        valued="--exclude --extend-select --ignore --line-length --output-format --select --target-version",
        less="--diff --no-fix --show-files",
    ),
    "ruff format": _known(
        "nqv",
        "--check --diff --no-cache --quiet --verbose",
        valued="--exclude",
        less="--check --diff",
    ),
}

KNOWN: Mapping[tuple[str, ...], Harmless] = {
    **{(name,): known for name, known in _PROGRAMS.items()},
    **{tuple(words.split()): known for words, known in _SUBCOMMANDS.items()},
}
"""By the words that a rule has to begin with, each with all the options that may follow them."""

HANDING_ON = (
    ("npx",),
    ("pipenv", "run"),
    ("poetry", "run"),
    ("python", "-m"),
    ("python3", "-m"),
    ("uv", "run"),
)
"""What only runs the program that is named behind it, and hands on all else."""
HANDED = frozenset(
    {"black", "eslint", "flake8", "isort", "mypy", "prettier", "pylint", "pytest", "ruff", "tsc"}
)
"""The programs that are named behind them."""

_LONGEST = max(map(len, KNOWN)) + max(map(len, HANDING_ON))
