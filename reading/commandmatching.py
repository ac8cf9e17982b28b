"""Whether a command is one that a rule means, or starts it.

An allowing rule is told of what is certain; one that denies or asks also of what cannot be excluded.
Reading the command line is `reading.commandwords`' part, what follows `harness.policy`'s.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from posixpath import basename, normpath

from reading.commandwords import NESTED, Simple, Word, all_words, read, simple_command
from reading.digits import is_digits
from reading.harmless import words_to_name
from reading.hostnames import MeantBy, as_written
from reading.programs import (
    ALONE,
    ANY_HYPHENS,
    ASSIGNING,
    CONTAINED,
    FETCHED,
    FOLDER_UNSAID,
    GIT_ALL,
    GIT_BY_SETTINGS,
    GIT_CHANGING,
    GIT_EVERYTHING,
    GIT_FORMS,
    GIT_LISTED,
    GIT_LISTING,
    GIT_OPTIONS,
    GIT_OPTIONS_WITH_VALUE,
    GIT_PATHS,
    GIT_PLAIN,
    GIT_REACHING,
    GIT_STARTING,
    GIT_STARTING_BELOW,
    GIT_TWINS,
    GIT_UNSAID,
    GIT_VERIFYING,
    INTERPRETERS,
    JOINING,
    MACHINES,
    MANY,
    NAMES_IN_A_FILE,
    OPERANDS,
    PIPING,
    PLAIN,
    READ,
    REMOTE,
    RUNNING,
    SCRIPTING,
    SETTING,
    SHELLING,
    SPARED_BELOW,
    STARTING,
    STARTING_SUBCOMMANDS,
    STARTING_WORDS,
    VALUED,
    WRAPPED,
    WRAPPERS,
    WRITING,
    installed_name,
    sets_by_a_piece,
)

FAR = 64
"""How many letters may stand in a row of options before nobody looks further."""


class Match(IntEnum):
    """Whether a call is one that a rule means; the greater, the surer."""

    NO = 0
    UNFAMILIAR = 1
    """It is begun by a program of which nobody here knows what it starts."""
    MAYBE = 2
    """It cannot be told from the arguments."""
    YES = 3


def surely_begins(command: str, prefix: Sequence[str], *, goes_on: bool = False) -> bool:
    """Whether the command is one simple command, readable to its end, that begins with these words and
    is no more than they say: whatever stands behind them is known to be harmless (`reading.harmless`).

    With `goes_on` anything may stand behind them, save what is known to start another program than they
    name, by an option or because the program is made for that; nor does one that only reads write by an
    option that they do not name.
    """
    words = simple_command(command)
    if words is None or tuple(words[: len(prefix)]) != tuple(prefix):
        return False
    if goes_on and starts_no_other(words, len(prefix)):
        return True
    if len(words) == len(prefix):
        return bool(prefix)
    needed = words_to_name(words)
    return needed is not None and needed <= len(prefix)


def starts_no_other(words: Sequence[str], named: int, depth: int = 0) -> bool:
    """Whether what stands behind the first `named` words makes no program start but those among them."""
    if named <= 0 or depth > NESTED:
        return False
    if _assigns(words[0]):
        return len(words) == named or starts_no_other(words[1:], named - 1, depth + 1)
    rest, name = list(words[named:]), _family(basename(words[0]))
    if not rest:
        return name != "git" or _git_starts_no_other(words, named)
    if name in WRAPPERS:
        return _wraps_no_other(name, words, named, depth)
    if name == "git":
        return _git_starts_no_other(words, named)
    if name in INTERPRETERS and not _interprets_what_is_named(name, words, named, depth):
        return False
    if name in _TARS and named == 1 and not rest[0].startswith("-"):
        rest[0] = f"-{rest[0]}"  # its letters need no hyphen
    if name in ASSIGNING and any("=" in word for word in rest):
        return False
    spared = SPARED_BELOW.get(name, {}).get(words[1], ())
    known = (*STARTING.get(name, ()), *WRITING.get(name, ()))
    options = tuple(each for each in known if each not in spared)
    given = [*rest, *_respelt(rest)] if name in ANY_HYPHENS else rest
    if _begins_any(options, given, VALUED.get(name, _NONE)) or sets_by_a_piece(name, rest):
        return False
    return not _starts_by_a_word(name, words, named)


def _wraps_no_other(name: str, words: Sequence[str], named: int, depth: int) -> bool:
    place = _begun(name, words[:named])
    if place is None or name in SETTING:
        return False
    reads = _shell_starts_no_other if name in JOINING else starts_no_other
    return reads(words[place:], named - place, depth + 1)


def _shell_starts_no_other(words: Sequence[str], named: int, depth: int) -> bool:
    """The same where a shell may take the line apart once more, at other places perhaps; or the one behind
    it does (`sshpass ssh h`), or none (`oc rsh`), so that the words count as they are as well."""
    if not starts_no_other(words, named, depth):
        return False
    line, beginning = simple_command(" ".join(words)), simple_command(" ".join(words[:named]))
    if line is None or beginning is None or line[: len(beginning)] != beginning:
        return False
    return starts_no_other(line, len(beginning), depth)


def _respelt(words: Sequence[str]) -> list[str]:
    """Options with one hyphen and with two."""
    options = [word.lstrip("-") for word in words if word.startswith("-")]
    return [f"{hyphens}{option}" for option in options if option for hyphens in ("-", "--")]


def _starts_by_a_word(name: str, words: Sequence[str], named: int) -> bool:
    if name in REMOTE and any(map(_SHELL.search, words[named:])):
        return True
    if SHELLING.get(name) in words[1:named]:
        return True
    if name in PIPING and any("|" in word for word in words[named:]):
        return True
    if name in READ and _names_more(words, named, READ[name]):
        return True
    if not STARTING_WORDS.get(name, _NONE).isdisjoint(words[named:]):
        return True
    # Behind an option nobody tells which word is the subcommand and which a value.
    last = len(words) if words[1].startswith("-") else 2
    return not STARTING_SUBCOMMANDS.get(name, _NONE).isdisjoint(words[named:last])


def _names_more(words: Sequence[str], named: int, read: int) -> bool:
    """Whether more names are given than these, and not by the rule."""
    names = [place for place, word in enumerate(words) if place and not _is_name_of_option(word)]
    return "--" in words[named:] or any(place >= named for place in names[read:])


def _is_name_of_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


_NONE = frozenset[str]()
_TARS = frozenset({"bsdtar", "gtar", "tar"})
_SHELL = re.compile(r"[;|&<>()$`\n]")
_KNOWN = WRAPPERS | INTERPRETERS | PLAIN | STARTING.keys()
_MAY_START = WRAPPERS | INTERPRETERS | STARTING.keys() | WRITING.keys() | READ.keys() | {"git"}
_VERSION = re.compile(r"[-.]?[0-9]{1,4}(?:\.[0-9]{1,4}){0,4}\Z|\.(?:basic|tiny|nox)\Z")


def _assigns(word: str) -> bool:
    name, equals, _value = word.partition("=")
    return bool(equals) and name.isascii() and name.removesuffix("+").isidentifier()


def _family(name: str) -> str:
    """What a program is called without its version (`python3.11`, `gcc-12`), or by those who wrap it."""
    if name in WRAPPED:
        return WRAPPED[name]
    return name if name in _KNOWN else _VERSION.sub("", name) or name


def _begun(name: str, named: Sequence[str], more: int = 0) -> int | None:
    """Where the program stands that a wrapper starts; None where these words do not surely name one. What
    follows an option may be its value, unless it is called like a program that may start others; `more`
    words without a hyphen stand before it."""
    operands, alone = OPERANDS.get(name, 0) + more, ALONE.get(name, frozenset[str]())
    for place, word in enumerate(named):
        before = named[place - 1] if place else ""
        is_value = before.startswith("-") and before != "--" and before not in alone
        if not place or word.startswith("-") or _assigns(word):
            continue
        if not (is_value or operands):
            return place
        if _family(basename(word)) in _MAY_START:
            return None
        if not is_value:
            operands -= 1
    return None


_RUNNING_MORE = frozenset({"dlx", "exec", "run"})
"""Subcommands below another one (`docker compose exec`) that run whatever follows."""


def _interprets_what_is_named(name: str, words: Sequence[str], named: int, depth: int) -> bool:
    """Whether the rule says what such a program runs, and that starts no other."""
    at = 1 if name in SCRIPTING else _behind_running(name, words, named)
    held = at > 1 and (name in CONTAINED or (name in MACHINES and "--" not in words[at : at + 1]))
    place = _begun(name, ("", *words[at:named]), int(held))
    if place is None or not _RUNNING_MORE.isdisjoint(words[named:]):
        return False
    inner = at + place - 1
    if at > 1 and not _RUNNING_MORE.isdisjoint(words[at : inner + 1]):
        return False  # what stood before was no subcommand, but the value of an option
    many = name if name in MANY else basename(words[inner])
    if many in MANY and _names_another(words, named, MANY[many]):
        return False
    if at == 1 and name not in FETCHED and "-m" not in words[at:inner]:
        # What it runs is named. Its options may still have it run other files, and behind a program on the
        # line (`perl -e`) options are its own.
        scripting = name in SCRIPTING and words[inner - 1] != "-e"
        known = scripting or name in CONTAINED or name in STARTING
        return known or not any(map(_is_option, words[named:]))
    reads = _shell_starts_no_other if words[at - 1] in _JOINED else starts_no_other
    return reads(words[inner:], named - inner, depth + 1)


_JOINED = frozenset({"rsh", "shell", "ssh"})
"""Subcommands that hand one line to a shell elsewhere."""
_RUNNING_FAR = _RUNNING_MORE | _JOINED
"""Those that stand for nothing else behind options (`kubectl -n x exec`)."""


def _behind_running(name: str, words: Sequence[str], named: int) -> int:
    """Where it stands what a subcommand runs; 1 where none does. Options, and their values, may stand before
    the subcommand."""
    near = (place + 1 for place in range(1, min(3, len(words))) if words[place] in RUNNING)
    running = _RUNNING_FAR if name in CONTAINED else RUNNING
    far = (place + 1 for place in range(3, named) if words[place] in running)
    return next(near, next(far, 1))


def _names_another(words: Sequence[str], named: int, valued: Collection[str]) -> bool:
    """Whether a word behind the named ones may be one more thing to do."""
    return any(
        not _is_option(words[place])
        and words[place - 1] not in valued
        and not is_digits(words[place])
        for place in range(named, len(words))
    )


def _git_starts_no_other(words: Sequence[str], named: int) -> bool:
    place = _behind_git_options(words[1:])
    if place is None:
        return False
    before, after = words[1 : place + 1], words[place + 1 :]
    if not GIT_STARTING.isdisjoint(word.partition("=")[0] for word in before):
        return False
    if not after:
        return True
    if place + 1 >= named and after[0] not in GIT_PLAIN:
        return False  # an alias, or one that runs what it is told
    unnamed = after[max(named - 1 - place, 1) :]
    below = GIT_STARTING_BELOW.get(after[0], ())
    if _names_a_program(after[0], unnamed) or _begins_any(below, unnamed):
        return False
    if any(piece in word for word in unnamed for piece in GIT_VERIFYING):
        return False
    return not _changes_what_is_shown(after[0], after[1 : len(after) - len(unnamed)], unnamed)


def _changes_what_is_shown(command: str, said: Sequence[str], unnamed: Sequence[str]) -> bool:
    """Whether a rule means to have something shown, and the words behind its own change it."""
    if command not in GIT_CHANGING or not said:
        return False
    if command == "config" and not _are_options(said):
        return bool(unnamed)  # the name of a setting: what follows is its value
    if not _are_options(said):
        return False
    if not _are_options(unnamed):
        lists = GIT_LISTED.get(command, ("",))  # the others show what is named
        if command == "remote" or not _begins_any(lists, said):
            return True
    return _begins_any(GIT_CHANGING[command], unnamed)


def occurs(command: str, prefix: Sequence[str], meant_by: MeantBy = as_written) -> Match:
    """Whether these words stand anywhere in the command, in quotes and substitutions as well; if not,
    whether it is certain that nothing in it comes to the same.

    Any place counts, not only where a command begins: `sudo`, `xargs`, `find -exec` and their like
    make a command of any word.
    """
    if _stands_in(command, prefix):
        return Match.YES
    commands = read(command)
    if commands is None:
        return Match.MAYBE
    moves = [at for at, each in enumerate(commands) if each.words[0] in _MOVING]
    still = moves[0] if moves else len(commands)
    return max(
        (_is_meant(each, prefix, meant_by, moved=at > still) for at, each in enumerate(commands)),
        default=Match.NO,
    )


def vouches(allowed: Sequence[str], denied: Sequence[str]) -> bool:
    """Whether a rule that allows `allowed` says enough of a program that nobody here knows to keep it
    from being asked about because of `denied`: it names the program, and what of it is allowed where
    the program has subcommands or runs whatever it is given."""
    name = _family(basename(allowed[0]))
    if name in WRAPPERS or name == "git":
        return False
    if name in INTERPRETERS:
        named = allowed[2:] if allowed[1:2] and allowed[1] in RUNNING else allowed[1:]
        if not named or named[0].startswith("-"):
            return False
    return basename(allowed[0]) != basename(denied[0]) or len(allowed) >= len(denied)


# --- searching ------------------------------------------------------------------------------------


def _stands_in(command: str, prefix: Sequence[str]) -> bool:
    """Whether the program stands there and the rest of `prefix` behind it, with nothing but known options
    of the program between them."""
    name, rest = basename(prefix[0]), tuple(prefix[1:])
    for words, places in _programs(command):
        begun: set[int | None] = {place + 1 for place in places.get(name, ())}
        if begun and not rest:
            return True
        if begun and name == "git":
            behind = _git_subcommands(words)
            begun |= {behind[place] for place in begun if place is not None}
        for place in begun - {None}:
            if place is not None and words[place : place + len(rest)] == rest:
                return True
    return False


@lru_cache(maxsize=64)
def _programs(command: str) -> tuple[tuple[tuple[str, ...], Mapping[str, Sequence[int]]], ...]:
    """All words of the command, and where each program that may be meant by one stands among them."""
    found = []
    for words in all_words(command):
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            places.setdefault(basename(word), []).append(place)
        found.append((words, places))
    return tuple(found)


@lru_cache(maxsize=64)
def _git_subcommands(words: tuple[Word, ...]) -> Sequence[int | None]:
    """For each place, and the end, where git's subcommand stands if its options begin there; None where
    that cannot be told. From the end, so that many of them cost what one does."""
    found: list[int | None] = [len(words), len(words)]
    for place in range(len(words) - 1, -1, -1):
        found.append(_git_subcommand(words, place, found[-1], found[-2]))
    return tuple(found[:0:-1])


def _git_subcommand(
    words: tuple[Word, ...], place: int, after: int | None, after_value: int | None
) -> int | None:
    word = words[place]
    if word is None:
        return None
    if not word.startswith("-"):
        return place
    name, equals, _value = word.partition("=")
    if word in GIT_OPTIONS_WITH_VALUE:
        # One that vanishes makes the next word the value.
        return None if None in words[place + 1 : place + 2] else after_value
    if word in GIT_OPTIONS or (equals and name in {*GIT_OPTIONS_WITH_VALUE, "--exec-path"}):
        return after
    return None


def _behind_git_options(words: Sequence[Word]) -> int | None:
    """Where git's subcommand stands; None where that cannot be told."""
    return _git_subcommands(tuple(words))[0]


# --- making sure ----------------------------------------------------------------------------------


def _is_meant(command: Simple, prefix: Sequence[str], meant_by: MeantBy, *, moved: bool) -> Match:
    """The same of one simple command that can be read; `moved` where one before it changed the folder."""
    head, *rest = command.words
    if head is None or "=" in head:
        return Match.MAYBE
    same = basename(head) == basename(prefix[0])
    name = installed_name(head)
    if name in WRAPPERS:
        return Match.MAYBE
    if same and rest[: len(prefix) - 1] == list(prefix[1:]):
        return Match.YES
    if name == "git":
        return _git_is_meant(rest, command.targets, prefix[1:] if same else None, moved=moved)
    if name in PLAIN and (
        _begins_any(STARTING.get(name, ()), rest, VALUED.get(name, _NONE))
        or sets_by_a_piece(name, rest)
    ):
        return Match.MAYBE
    otherwise = Match.NO if name in PLAIN else Match.UNFAMILIAR
    if not same:
        return otherwise
    if name == "curl":
        any_name = any(_CURL_EXPANDS.search(word or "") for word in rest)
        any_name = (
            any_name or _is_same_address(rest, prefix[1:], meant_by) or _reads_addresses(rest)
        )
    else:
        any_name = moved and name in FOLDER_UNSAID and _leaves_out(rest, prefix[1:])
        any_name = any_name or _begins_any(NAMES_IN_A_FILE.get(name, ()), rest)
        any_name = any_name or (name == "jq" and any(_JQ_READS.search(word or "") for word in rest))
    given = (*rest, *command.targets)
    return max(_plain_is_meant(given, prefix[1:], any_name=any_name, moved=moved), otherwise)


_MOVING = frozenset({"cd", "chdir", "pushd", "popd"})
_CURL_EXPANDS = re.compile(r"[\[{%]|[^\0-\x7f]|\w\.(?!\w)|xn--", re.IGNORECASE)
"""By what curl makes another address of a word: its own globs, escapes, letters of other alphabets and
their spelling without them, the dot that ends a host."""
_JQ_READS = re.compile(r"\b(?:import|include|modulemeta)\b")
"""By what a program of jq names a file, without the end of its name."""


_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}")
"""An IPv4 address in any of its spellings, `2130706433` and `127.1` among them."""


def _is_same_address(words: Sequence[Word], wanted: Sequence[str], meant_by: MeantBy) -> bool:
    """Whether one of the words holds a wanted address in another spelling."""
    spelt = {found for word in wanted for found in _NUMBERS.findall(word.lower())}
    meant = {address for found in spelt for address in meant_by(found)}
    if not meant:
        return False
    given = {found for word in words if word for found in _NUMBERS.findall(word.lower())} - spelt
    return any(not meant.isdisjoint(meant_by(found)) for found in given)


def _reads_addresses(words: Sequence[Word]) -> bool:
    """Whether curl takes its addresses from a file (`--url @list`)."""
    before: Word = ""
    for word in words:
        name, _equals, value = (word or "").partition("=")
        if _begins_any(("--url",), [before]) and (word or "").startswith("@"):
            return True
        if value.startswith("@") and _begins_any(("--url",), [name]):
            return True
        before = word
    return False


def _leaves_out(words: Sequence[Word], wanted: Sequence[str]) -> bool:
    """Whether the folder may be left out; a name behind an option may be the value of that."""
    named = sum(not (word or "").startswith("-") for word in words)
    few = named < sum(not word.startswith("-") for word in wanted)
    return few or any((word or "").startswith("-") for word in words[:1])


def _begins_any(
    beginnings: tuple[str, ...], words: Sequence[Word], valued: Collection[str] = ()
) -> bool:
    if not beginnings:
        return False
    return any(
        word is None or any(_begins(word, beginning, valued) for beginning in beginnings)
        for word in words
    )


def _begins(word: str, beginning: str, valued: Collection[str]) -> bool:
    """Whether the word begins so, is the same option cut shorter still, or has its letter in a row of
    others (`-qu` for `-u`), which ends at one whose value the rest of the word is."""
    if word.startswith(beginning):
        return True
    if beginning[0].isalpha():
        return beginning.startswith(word)
    if beginning.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and beginning.startswith(name)
    is_row = word.startswith("-") and not word.startswith("--")
    if not (is_row and len(beginning) == 2 and beginning[0] == "-"):
        return False
    place = word.find(beginning[1], 1)
    return place > 0 and not any(letter in valued for letter in word[1:place])


def _git_is_meant(
    rest: Sequence[Word], targets: Sequence[str], wanted: Sequence[str] | None, *, moved: bool
) -> Match:
    """`wanted` is what follows `git`; None where another program is meant."""
    place = _behind_git_options(rest)
    if place is None:
        return Match.MAYBE
    before = [word.partition("=")[0] for word in rest[:place] if word is not None]
    if GIT_STARTING.intersection(before):
        return Match.MAYBE
    if place >= len(rest):
        return Match.NO
    command, after = rest[place], rest[place + 1 :]
    if command is None or command not in GIT_PLAIN:
        return Match.MAYBE  # an alias, or one that runs what it is told
    if _begins_any(GIT_STARTING_BELOW.get(command, ()), after):
        return Match.MAYBE
    if _names_a_program(command, after):
        return Match.MAYBE
    if wanted is None:
        return Match.NO
    begins = _behind_git_options(wanted)
    if begins is None or begins >= len(wanted):
        return _plain_is_meant((*rest, *targets), wanted)
    # Options before it say where git works, which a folder changed to before does as well.
    arguments = wanted[begins + 1 :]
    if wanted[begins] != command:
        if command not in GIT_TWINS.get(wanted[begins], ()):
            return Match.NO
        if arguments and _are_options(arguments):
            return Match.MAYBE if any(map(_is_option, after)) else Match.NO
        arguments = [word for word in arguments if not _is_option(word)]
    if forms := GIT_FORMS.get(command):
        arguments = [word for word in arguments if not _is_option(word) and word not in forms]
    supplied = command in GIT_BY_SETTINGS or (command in GIT_UNSAID and _are_options(after))
    if supplied and not _are_options(arguments):
        return Match.MAYBE
    given, moved = (*after, *targets), moved or "-C" in before
    everything = command not in GIT_LISTING and _names_many(command, after)
    if everything:
        arguments = [word for word in arguments if word not in GIT_ALL.get(command, _NONE)]
    return _plain_is_meant(given, arguments, any_name=everything, moved=moved)


def _names_many(command: str, words: Sequence[Word]) -> bool:
    if _begins_any(GIT_EVERYTHING, words) or any(_GIT_EXPANDS.search(word or "") for word in words):
        return True
    return command in GIT_PATHS and (_are_options(words) or any(map(_is_here, words)))


_GIT_EXPANDS = re.compile(r"[*?\[\\]|\A:")
"""What git itself takes for many names."""


def _names_a_program(command: str, words: Sequence[Word]) -> bool:
    """Whether one of git's words may be an address that names a program (`ext::sh`)."""
    reaches = command in GIT_REACHING or command not in GIT_PLAIN
    return reaches and any("::" in (word or "") for word in words)


def _are_options(words: Sequence[Word]) -> bool:
    return all(map(_is_option, words))


def _is_option(word: Word) -> bool:
    return word is not None and word.startswith("-")


def _plain_is_meant(
    words: Sequence[Word], wanted: Sequence[str], *, any_name: bool = False, moved: bool = False
) -> Match:
    """Whether options in another order or form, values joined to them or apart, or names written otherwise,
    may come to what is wanted: which letters take a value, what a long option is called in short, and
    whether one may have a single hyphen (`-run=x`), is the program's own affair. With `any_name` they stand
    for every name there is."""
    parts = [part for word in wanted for part in _parted(word)]
    apart = [part for word in parts for part in _parted(word, "-")]
    readings = [parts] if apart == parts else [parts, apart]
    return max(_are_given(words, each, any_name=any_name, moved=moved) for each in readings)


def _are_given(
    words: Sequence[Word], parts: Sequence[str], *, any_name: bool, moved: bool
) -> Match:
    if None in words:
        return Match.MAYBE
    given = [word for word in words if word is not None]
    used = [word for word in given if word.startswith(_LIKE_OPTIONS) and word not in _ANY]
    options = [part for part in parts if part.startswith("-") and part not in _ANY]
    names = {name for word in given for name in _names(word)}
    ends = {end for word in used for end in (word.casefold(), _folded(word))}
    is_any = any_name or any(
        word in _ANY or "@{" in word or _is_above(word) or (moved and _is_here(word))
        for word in given
    )
    if not given or given[0].startswith("-"):
        names |= _UNSAID

    def may_be_given(name: str) -> bool:
        folded = _folded(name)
        known = is_any or name in _ANY or folded in names
        return known or any(end.endswith(folded) for end in ends)

    if not all(may_be_given(part) for part in parts if part not in options):
        return Match.NO
    if not options:
        return Match.MAYBE
    if any(word.startswith(("--", *_SIGNS)) or is_digits(word[1:2]) for word in (*options, *used)):
        return Match.MAYBE if used else Match.NO
    letters = {letter for word in used for letter in word[1:].casefold()}

    def may_be_used(option: str) -> bool:
        """Its letters all stand there, or the first of them and the others as a value."""
        row = option[1:]
        return len(row) > FAR or any(
            letters.issuperset(row[:place].casefold())
            and (place == len(row) or may_be_given(row[place:]))
            for place in range(1, len(row) + 1)
        )

    return Match.MAYBE if all(map(may_be_used, options)) else Match.NO


_SIGNS = ("+", ":")
"""What git takes before a branch for `--force` and for `--delete`."""
_LIKE_OPTIONS = ("-", *_SIGNS)
_ANY = frozenset({"-", "@"})
"""Words for what was there before, for what comes in, for the branch one is on."""
_UNSAID = frozenset({".", "head"})
"""What programs take where nothing is named."""
_OPTION = re.compile(r"\A(?:--[\w-]+=|-\w+=?)")
_BETWEEN = re.compile(r"[^\w./-]+|(?<=[^./])\.\.+(?=[^/]|\Z)")
"""What joins several names to one word: `--to=x`, `a,b`, `host:x`, `x^0`, `x..y`."""


def _is_here(word: Word) -> bool:
    """Whether it is the folder one is in, which has another name as well."""
    value = _OPTION.sub("", word or "")
    return bool(value) and normpath(value) == "."


def _is_above(word: str) -> bool:
    value = _OPTION.sub("", word)
    return bool(value) and set(normpath(value).split("/")) == {".."}


def _parted(word: str, hyphens: str = "--") -> list[str]:
    """A long option and its value as the two words that they may be."""
    name, equals, value = word.partition("=")
    return [name, value] if equals and value and word.startswith(hyphens) else [word]


def _names(word: str) -> set[str]:
    return {_folded(name) for name in (word, *_BETWEEN.split(word)) if name}


def _folded(word: str) -> str:
    name = basename(normpath(word)).casefold() or "/"
    return name.lstrip("0") or name
