"""What a registry says of a server (`server.json`): the ways to have it here, what each asks a person for,
and what her answers make of it. All of it is strangers' words, read within bounds.

What may be added is the actions' question, where it comes from `registries`'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from harness.errors import Invalid
from reading.unseen import visible
from sandbox.images import IMAGE

NAME = re.compile(r"[a-zA-Z0-9.-]{1,100}/[a-zA-Z0-9._-]{1,100}", re.ASCII)
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}", re.ASCII)
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]{0,63})\}", re.ASCII)
_OPTION = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9-]{0,63}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_LOADING = re.compile(
    r"(LD|DYLD|GCONV|GLIBC|MALLOC|BASH|UV|PIP|NPM_CONFIG)_.*|PATH|HOME|ENV|IFS|SHELL|TMPDIR|WORKSPACE"
    r"|PYTHON(?!UNBUFFERED|IOENCODING|UTF8|HASHSEED).*|PERL5?(OPT|LIB|DB)|RUBY(OPT|LIB)"
    r"|NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)|_?(JAVA|JDK_JAVA|JAVA_TOOL)_(OPTS|OPTIONS)"
    r"|GIT_(SSH|EXEC|CONFIG|ASKPASS|PROXY|EXTERNAL|PAGER|EDITOR|TEMPLATE).*"
    r"|(HTTPS?|ALL|NO|FTP|GRPC)_PROXY|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE",
    re.IGNORECASE,
)
"""Variables by which a program loads others, or reaches through others: which runs, and how, is not the
registry's to say."""
LATEST = "latest"
MOST_INPUTS = 40
"""Of one way: more than anybody fills in."""

Seen = Annotated[str, AfterValidator(visible)]
"""A text that shows what it holds."""


class _Part(BaseModel):
    """Fields that are not read are let be."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )


class Input(_Part):
    description: Seen = Field(default="", max_length=2_000)
    is_required: bool = False
    is_secret: bool = False
    default: Seen | None = Field(default=None, max_length=2_000)
    value: Seen | None = Field(default=None, max_length=2_000)
    """Fixed, but for the names between braces."""
    choices: list[Annotated[Seen, Field(max_length=200)]] | None = Field(
        default=None, max_length=100
    )
    variables: dict[str, Input] = Field(default={}, max_length=MOST_INPUTS)


class Named(Input):
    """A header or a variable."""

    name: str = Field(min_length=1, max_length=100)


class Argument(Input):
    type: Literal["positional", "named"]
    name: str = Field(default="", max_length=100)
    value_hint: Seen = Field(default="", max_length=100)
    is_repeated: bool = False


class Transport(_Part):
    type: str = Field(max_length=40)
    url: str = Field(default="", max_length=2_000)
    headers: list[Named] = Field(default=[], max_length=MOST_INPUTS)
    variables: dict[str, Input] = Field(default={}, max_length=MOST_INPUTS)


class Package(_Part):
    registry_type: str = Field(max_length=40)
    identifier: str = Field(min_length=1, max_length=500)
    version: str = Field(default="", max_length=100)
    transport: Transport = Transport(type="stdio")
    environment_variables: list[Named] = Field(default=[], max_length=MOST_INPUTS)
    package_arguments: list[Argument] = Field(default=[], max_length=MOST_INPUTS)


class ServerJson(_Part):
    name: str = Field(pattern=f"^{NAME.pattern}$")
    title: Seen = Field(default="", max_length=200)
    description: Seen = Field(default="", max_length=2_000)
    version: str = Field(pattern=f"^{VERSION.pattern}$")
    packages: list[Package] = Field(default=[], max_length=50)
    remotes: list[Transport] = Field(default=[], max_length=50)

    @property
    def label(self) -> str:
        return self.title or self.name

    @property
    def digest(self) -> str:
        """Of all that a person saw of it."""
        return sha256(self.model_dump_json().encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked for."""

    key: str
    label: str
    input: Input


@dataclass(frozen=True, slots=True)
class Way:
    """One way to have a server: at an address, or as a program that is there already."""

    number: int
    what: str
    """For people: the address, or the package and its version."""
    questions: tuple[Question, ...]
    refusal: str = ""
    """Why it is none here; empty: it is one."""
    hint: str = ""
    remote: Transport | None = None
    package: Package | None = None
    settled: tuple[tuple[str, str], ...] = ()
    """What it sets without asking, by name: a person sees that too before she adds it."""

    def refused(self, why: str, *, hint: str = "") -> Way:
        return replace(self, refusal=why, hint=hint)


@dataclass(frozen=True, slots=True)
class Filled:
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict, repr=False)


def read_server(value: Any) -> ServerJson:
    """Raises Invalid for what is no description of a server."""
    try:
        return ServerJson.model_validate(value)
    except (ValidationError, RecursionError):
        raise Invalid(
            _("The registry describes this server in no way that can be read."),
            hint=_("Add it by its address, or tell whoever runs the registry."),
        ) from None


def ways_of(server: ServerJson) -> list[Way]:
    """Remotes first; such as are none here say why."""
    found: list[Way] = []
    for remote in server.remotes:
        questions = _of_remote(remote)
        refusal = _no_remote(remote) or _given_away(remote.headers) or _too_many(questions)
        settled = _settled((each.name, each) for each in remote.headers)
        found.append(
            Way(
                len(found),
                visible(remote.url),
                questions,
                refusal or _seen_secret(questions, "url."),
                remote=remote,
                settled=settled,
            )
        )
    for package in server.packages:
        questions = _of_package(package)
        what = visible(f"{package.registry_type}: {package.identifier} {package.version}".strip())
        named, arguments = package.environment_variables, package.package_arguments
        refusal = _no_package(package) or _given_away(named) or _too_many(questions)
        settled = _settled(
            (*((each.name, each) for each in named), *((each.name, each) for each in arguments))
        )
        found.append(
            Way(
                len(found),
                what,
                questions,
                refusal or _seen_secret(questions, "argument."),
                package=package,
                settled=settled,
            )
        )
    return found


def fill(way: Way, given: Mapping[str, str]) -> Filled:
    """What the answers make of it, each under its question's key. Raises Invalid, on that key.

    A secret is never taken from the registry: who publishes it knows it. No answer becomes an option of the
    program: one in the place of an argument does not begin with a hyphen.
    """
    answers: dict[str, str] = {}
    for question in way.questions:
        answer = given.get(question.key, "").strip()
        source = question.input
        if not answer and source.default and not source.is_secret:
            answer = source.default
        if not answer and source.is_required:
            raise _missing(question)
        if answer and source.choices and answer not in source.choices:
            raise Invalid(
                _("“%(name)s” is none of the choices.") % {"name": question.label},
                field=question.key,
                hint=_("Choose from: %(names)s") % {"names": ", ".join(source.choices)[:500]},
            )
        answers[question.key] = answer
    if way.remote is not None:
        return Filled(
            url=_put_in(way.remote.url, "url", answers),
            headers=_pairs("header", way.remote.headers, answers),
        )
    assert way.package is not None  # noqa: S101 - it is one or the other
    return Filled(
        arguments=tuple(_arguments(way.package.package_arguments, answers)),
        variables=_pairs("variable", way.package.environment_variables, answers),
    )


def _of_remote(remote: Transport) -> tuple[Question, ...]:
    return (
        *_places("url", remote.url, Input(is_required=True, variables=remote.variables)),
        *(
            each
            for named in remote.headers
            for each in _asked(f"header.{named.name}", named.name, named)
        ),
    )


def _of_package(package: Package) -> tuple[Question, ...]:
    found: list[Question] = []
    for named in package.environment_variables:
        found += _asked(f"variable.{named.name}", named.name, named)
    for number, argument in enumerate(package.package_arguments):
        label = (
            argument.name
            or argument.value_hint
            or _("Argument %(number)d") % {"number": number + 1}
        )
        found += _asked(f"argument.{number}", label, argument)
    return tuple(found)


def _asked(key: str, label: str, source: Input) -> Iterator[Question]:
    if source.value is None:
        yield Question(key, label, source)
    else:
        yield from _places(key, source.value, source)


def _places(key: str, template: str, whole: Input) -> Iterator[Question]:
    """What stands in a secret is one."""
    for name in dict.fromkeys(_PLACE.findall(template)):
        source = whole.variables.get(name) or Input(is_required=whole.is_required)
        if whole.is_secret and not source.is_secret:
            source = source.model_copy(update={"is_secret": True})
        yield Question(f"{key}.{name}", name, source)


def _put_in(template: str, key: str, answers: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda found: answers.get(f"{key}.{found[1]}", ""), template)


def _value(key: str, source: Input, answers: Mapping[str, str]) -> str:
    """Empty: it is left out."""
    if source.value is None:
        return answers.get(key, "")
    asked = [f"{key}.{name}" for name in _PLACE.findall(source.value)]
    if asked and not any(answers.get(each) for each in asked):
        return ""
    return _put_in(source.value, key, answers)


def _pairs(kind: str, named: Sequence[Named], answers: Mapping[str, str]) -> dict[str, str]:
    found = {each.name: _value(f"{kind}.{each.name}", each, answers) for each in named}
    return {name: value for name, value in found.items() if value}


def _arguments(arguments: Sequence[Argument], answers: Mapping[str, str]) -> Iterator[str]:
    for number, argument in enumerate(arguments):
        key = f"argument.{number}"
        value = _value(key, argument, answers)
        if argument.type == "named":
            if value and argument.name.startswith("--"):
                yield f"{argument.name}={value}"
            elif value:
                _require_no_option(key, value)
                yield argument.name
                yield value
            elif argument.value is None and argument.default is None and argument.is_required:
                yield argument.name
        elif value:
            _require_no_option(key, value)
            yield value


def _require_no_option(key: str, value: str) -> None:
    if value.startswith("-"):
        raise Invalid(
            _("“%(value)s” would be an option of the program.") % {"value": value[:60]},
            field=key,
            hint=_("Type a value that does not begin with a hyphen."),
        )


def _no_remote(remote: Transport) -> str:
    if remote.type not in {"streamable-http", "sse"}:
        return _("It is reached by “%(kind)s”, which is not spoken here.") % {
            "kind": visible(remote.type)
        }
    if "{" in _PLACE.sub("", remote.url) or not remote.url.startswith(("https://", "http://", "{")):
        return _("Its address is none that can be filled in.")
    return ""


def _no_package(package: Package) -> str:
    if package.transport.type != "stdio":
        return _("It is a program that is spoken to over HTTP, which nothing starts here.")
    if any(not _VARIABLE.fullmatch(each.name) for each in package.environment_variables):
        return _("It wants a variable whose name is none.")
    if any(
        each.type == "named" and not _OPTION.fullmatch(each.name)
        for each in package.package_arguments
    ):
        return _("It wants an option whose name is none.")
    if any(_LOADING.fullmatch(each.name) for each in package.environment_variables):
        return _("It wants a variable that decides what else is loaded.")
    if package.registry_type == "oci":
        return (
            ""
            if IMAGE.fullmatch(package.identifier)
            else _(
                "It is an image by a tag, which may be another one tomorrow: only image@sha256:… is taken."
            )
        )
    if package.registry_type not in {"npm", "pypi"}:
        return _("Packages of “%(kind)s” are not run here.") % {
            "kind": visible(package.registry_type)
        }
    if not VERSION.fullmatch(package.version) or package.version == LATEST:
        return _("It does not say which version it is.")
    return ""


def _settled(parts: Iterable[tuple[str, Input]]) -> tuple[tuple[str, str], ...]:
    return tuple((visible(name), each.value) for name, each in parts if each.value)


def _given_away(named: Sequence[Named]) -> str:
    """A secret that everybody knows is somebody's: what is sent along with it would be hers."""
    if any(each.is_secret and each.value and not _PLACE.search(each.value) for each in named):
        return _("It comes with a secret that everybody knows.")
    return ""


def _seen_secret(questions: Sequence[Question], beginning: str) -> str:
    """Addresses and arguments are stored as they are, and seen by all who may use the server."""
    if any(each.input.is_secret and each.key.startswith(beginning) for each in questions):
        return _("It wants a secret in its address or arguments, where others would see it.")
    return ""


def _too_many(questions: Sequence[Question]) -> str:
    keys = {question.key for question in questions}
    if len(questions) > MOST_INPUTS or len(keys) < len(questions):
        return _("It asks for more than can be filled in, or for something twice.")
    return ""


def _missing(question: Question) -> Invalid:
    return Invalid(
        _("“%(name)s” is missing.") % {"name": question.label},
        field=question.key,
        hint=_("Type something."),
    )
