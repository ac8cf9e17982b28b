"""`manage.py agent skills …`: the library of skills from a terminal, with this machine's tables.

`check` and `pack` look at an author's folder and need no tables. What may be done is said by the actions,
what a command prints by the functions below; programs elsewhere use `/api/skills`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from django.db import transaction

from accounts.models import Organisation, User
from agents.actions.agents import change_agent
from agents.models import Agent
from conversations.actions.conversations import find_agent
from harness.errors import Conflict, Invalid, NotFound
from skills_app.actions.releases import ask_for_release
from skills_app.actions.skills import add_version, create_skill
from skills_app.actions.sources import know_source, look_at_source, take_from_source
from skills_app.choosing import find_skill, version_for
from skills_app.files import files_of
from skills_app.folder import SkillFolder, faults_of
from skills_app.listing import listed
from skills_app.locking import Locked, lock, way_to
from skills_app.looking import fetch_offer
from skills_app.models import Channel, Skill, SkillVersion
from skills_app.packages import Packages
from skills_app.packing import pack
from skills_app.places import read_place
from skills_app.planning import Plan, plan_installation
from skills_app.scanning import scan
from skills_app.serving import public_key
from skills_app.uses import uses_of
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending

OWN, ORGANISATION, SERVER = "own", "organisation", "server"
SCOPES = (OWN, ORGANISATION, SERVER)
MOST = 1_000
"""Skills that are listed."""

Options = dict[str, Any]


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    """The words behind `agent skills`, each with the options that all commands have."""
    commands = parser.add_subparsers(dest="skills", required=True, metavar="COMMAND")

    def command(name: str, help_text: str, *arguments: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        for argument in arguments:
            made.add_argument(argument, help=_MEANING[argument])
        return made

    made = command("list", "list the skills that the person may use")
    made.add_argument("--query", default="", help="words of the name or the description")
    made.add_argument("--scope", choices=SCOPES, default="")
    made = command("show", "print a skill, with its versions and where it is used", "name")
    made.add_argument("--version", default="", help="one version, or a channel")
    command("check", "say what keeps a folder from being published", "place")
    made = command("pack", "write a folder as a ZIP file", "place")
    made.add_argument("--output", type=Path, help="where to; else beside it, by its name")
    for name, help_text in (
        ("publish", "store a version and ask for its release"),
        ("install", "the same after it was shown what that brings and changes"),
    ):
        made = command(name, help_text, "place")
        made.add_argument("--scope", choices=SCOPES, default=OWN, help="whose it becomes")
        made.add_argument("--note", default="", help="what is new")
        if name == "install":
            made.add_argument("--yes", action="store_true", help="do not ask")
            made.add_argument(
                "--from",
                dest="source",
                default="",
                metavar="ADDRESS",
                help="a source that is known, or a server; the place is then a skill's name",
            )
            made.add_argument(
                "--key", default="", help="that the server signs with, the first time"
            )
            made.add_argument("--version", default="", help="of the server's; else the stable one")
    made = command("lock", "print what an agent's skills come to, with digests", "agent")
    made.add_argument(
        "--save", action="store_true", help="have the agent keep to this, as a new version"
    )
    command("key", "print the key by which others know this server as a source")
    command("why", "say why an agent comes to a skill", "agent", "name")


_MEANING = {
    "place": "the skill's folder, or a ZIP file of it",
    "name": "the skill's name",
    "agent": "the agent's name or id",
}


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Skills are looked after on the machine of their library.",
            field="url",
            hint="Programs elsewhere use /api/skills and /v1/skills.",
        )
    what = options["skills"]
    if what in {"check", "pack"}:
        return {"check": _check, "pack": _pack}[what](options)
    if what == "key":
        _print(public_key())
        return Ending.DONE
    person = find_person(options["user"])
    act: Callable[[User, Organisation, Options], Ending] = {
        "list": _list,
        "show": _show,
        "publish": _publish,
        "install": _install,
        "lock": _lock,
        "why": _why,
    }[what]
    return act(person, find_organisation(person, options["organisation"]), options)


# --- an author's folder -------------------------------------------------------------------------------


def _check(options: Options) -> Ending:
    folder = read_place(Path(options["place"]))
    faults = faults_of(folder)
    undeclared = [each for each in scan(folder).findings if not each.declared]
    row = {"name": folder.name, "digest": folder.digest, "files": len(folder.files)}
    if options["json"]:
        found = [{"kind": each.kind, "what": each.what} for each in undeclared]
        _print(json.dumps({**row, "faults": faults, "undeclared": found}, ensure_ascii=False))
    else:
        _print(f"{folder.name}  sha256:{folder.digest}  {len(folder.files)} files")
        for fault in faults:
            _print(f"- {fault}")
        for each in undeclared:
            _print(f"? {each.kind} {each.what}  {' '.join(each.places)}")
    return Ending.REFUSED if faults else Ending.DONE


def _pack(options: Options) -> Ending:
    folder = read_place(Path(options["place"]))
    target: Path = options["output"] or Path(f"{folder.name}.zip")
    try:
        with target.open("xb") as file:
            file.write(pack(folder.name, folder.files))
    except OSError as problem:
        raise Conflict(
            f"{target}: {problem.strerror}", hint="Name another file with --output."
        ) from None
    _print(f"{target}  sha256:{folder.digest}")
    return Ending.DONE


# --- the library --------------------------------------------------------------------------------------


def _list(person: User, organisation: Organisation, options: Options) -> Ending:
    rows = listed(person, organisation, query=options["query"], scope=options["scope"])
    for skill in rows[:MOST]:
        row = {
            "name": skill.name,
            "scope": _scope_of(skill),
            "stable": skill.stable.label if skill.stable else "",
            "canary": skill.canary.label if skill.canary else "",
            "stopped": skill.killed_reason if skill.killed_at else "",
            "description": skill.description,
        }
        if options["json"]:
            _print(json.dumps(row, ensure_ascii=False))
        else:
            state = "stopped" if skill.killed_at else row["stable"] or "–"
            words = " ".join(skill.description.split())
            _print(f"{skill.name:<32}  {state:<10}  {_scope_of(skill):<12}  {words[:100]}")
    return Ending.DONE


def _show(person: User, organisation: Organisation, options: Options) -> Ending:
    skill = _skill(person, organisation, options["name"])
    versions = SkillVersion.objects.visible_to(person).filter(skill=skill).order_by("-number")
    wanted = options["version"]
    shown = version_for(skill, wanted) if wanted else skill.stable or versions.first()
    if shown is None:
        raise NotFound("The skill has no version that you may see.")
    files = files_of(shown)
    uses = uses_of(person, skill)
    if options["json"]:
        row = {
            "name": skill.name,
            "scope": _scope_of(skill),
            "version": shown.label,
            "digest": shown.digest,
            "description": shown.description,
            "requires": shown.requires,
            "python": shown.python.get("packages", []),
            "warnings": shown.warnings,
            "files": {path: len(data) for path, data in files.items()},
            "versions": [_version_row(each) for each in versions],
            "used": [{"kind": use.kind, "name": use.name, "version": use.version} for use in uses],
        }
        _print(json.dumps(row, ensure_ascii=False))
        return Ending.DONE
    _print(f"{skill.name} {shown.label}  sha256:{shown.digest}")
    _print(" ".join(shown.description.split()))
    if skill.killed_at:
        _print(f"! stopped: {skill.killed_reason}")
    _lines("requires", shown.requires)
    _lines("warnings", shown.warnings)
    _lines("files", (f"{path} ({len(data):,} bytes)" for path, data in files.items()))
    _lines("versions", (_version_line(skill, each) for each in versions))
    _lines("used by", (f"{use.kind} {use.name}: {use.version}" for use in uses))
    return Ending.DONE


def _publish(person: User, organisation: Organisation, options: Options) -> Ending:
    there, owner = _scope(person, organisation, options["scope"])
    return _store(person, there, owner, read_place(Path(options["place"])), options)


def _install(person: User, organisation: Organisation, options: Options) -> Ending:
    if options["source"]:
        return _install_from(person, organisation, options)
    folder = read_place(Path(options["place"]))
    there, owner = _scope(person, organisation, options["scope"])
    plan = plan_installation(folder, there, owner)
    _tell(plan)
    if not plan.is_new:
        return Ending.DONE
    if plan.problem or plan.faults:
        raise Conflict("Nothing was installed.", hint="Mend what is named above.")
    if not options["yes"] and not _agreed():
        raise Conflict("Nothing was installed.", hint="Say yes, or give --yes.")
    return _store(person, there, owner, folder, options)


def _install_from(person: User, organisation: Organisation, options: Options) -> Ending:
    """For the organisation, into review like what its members write."""
    source = know_source(
        actor=person, organisation=organisation, address=options["source"], key=options["key"]
    )
    offer = look_at_source(actor=person, source=source).offers.of(
        options["place"], options["version"]
    )
    folder = fetch_offer(source, offer)
    _note(f"from {source.address}")
    if offer.deprecated:
        until = f", used until {offer.removal_on}" if offer.removal_on else ""
        instead = f", use {offer.replacement}" if offer.replacement else ""
        _note(f"! deprecated{until}{instead}")
    plan = plan_installation(folder, organisation, None)
    _tell(plan)
    if not plan.is_new:
        return Ending.DONE
    if plan.problem or plan.faults:
        raise Conflict("Nothing was installed.", hint="Mend what is named above.")
    if not options["yes"] and not _agreed():
        raise Conflict("Nothing was installed.", hint="Say yes, or give --yes.")
    version = take_from_source(actor=person, source=source, offer=offer, folder=folder)
    _print(f"{folder.name} {version.label}  sha256:{version.digest}  waits for a review")
    return Ending.DONE


def _store(
    person: User,
    there: Organisation | None,
    owner: User | None,
    folder: SkillFolder,
    options: Options,
) -> Ending:
    """As it was read, whatever lies there by now."""
    note = options["note"]
    with transaction.atomic():
        skill = Skill.objects.filter(organisation=there, owner=owner, name=folder.name).first()
        if skill is None:
            own = owner is not None
            version = create_skill(
                actor=person, organisation=there, files=folder.files, own=own, note=note
            )
        else:
            version = add_version(actor=person, skill=skill, files=folder.files, note=note)
        version = ask_for_release(actor=person, version=version)
    words = "released" if version.state == SkillVersion.State.RELEASED else "waits for a review"
    if options["json"]:
        _print(json.dumps({"name": folder.name, **_version_row(version)}, ensure_ascii=False))
    else:
        _print(f"{folder.name} {version.label}  sha256:{version.digest}  {words}")
    return Ending.DONE


def _lock(person: User, organisation: Organisation, options: Options) -> Ending:
    agent = _agent(person, organisation, options["agent"])
    locked = _locked(agent, organisation)
    for each in locked:
        version = each.version
        if options["json"]:
            row = {"way": list(each.way), **each.use.model_dump()}
            _print(json.dumps(row, ensure_ascii=False))
        else:
            why = f"  # {' → '.join(each.way)}" if len(each.way) > 1 else ""
            _print(f"{version.skill.name}=={version.label} sha256:{version.digest}{why}")
    if options["save"]:
        config = agent.current.config if agent.current else None
        if config is None:
            raise Conflict("The agent has no version yet.")
        uses = tuple(each.use for each in locked)
        changed = change_agent(
            actor=person,
            agent=agent,
            name=agent.name,
            description=agent.description,
            config=config.model_copy(update={"skills": uses}),
            expected_version=agent.current.number if agent.current else None,
        )
        number = changed.current.number if changed.current else 0
        _note(f"{agent.name} keeps to this from version {number} on.")
    return Ending.DONE


def _why(person: User, organisation: Organisation, options: Options) -> Ending:
    agent = _agent(person, organisation, options["agent"])
    way = way_to(options["name"], _locked(agent, organisation))
    _print(" → ".join((agent.name, *way)))
    return Ending.DONE


# --- parts --------------------------------------------------------------------------------------------


def _tell(plan: Plan) -> None:
    """What an installation would do, for the person who decides on it."""
    folder = plan.folder
    if not plan.is_new:
        _note(f"{folder.name}: exactly this is there already.")
        return
    before = f"in place of {plan.before.label}" if plan.before else "new"
    version = folder.manifest.version
    _note(f"{' '.join(filter(None, (folder.name, version)))}  sha256:{folder.digest}  {before}")
    for each in plan.brings:
        _note(f"  brings {each.skill.name} {each.label}  sha256:{each.digest}")
    if plan.packages is not None:
        _tell_packages(plan.packages)
    for change in plan.changes:
        _note(f"  {change.kind} {change.path}")
    for words in (*plan.faults, *filter(None, (plan.problem,))):
        _note(f"! {words}")


def _tell_packages(found: Packages) -> None:
    for each in found.needs.packages:
        _note(f"  needs the Python package {each}")
    _note(f"  from {found.source}" if found.source else f"! {found.problem}")
    for part in found.parts:
        _note(f"  locked {part.name}=={part.version}  {part.digest}")


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write("Install this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _scope(
    person: User, organisation: Organisation, scope: str
) -> tuple[Organisation | None, User | None]:
    if scope == SERVER:
        return None, None
    return organisation, person if scope == OWN else None


def _scope_of(skill: Skill) -> str:
    return OWN if skill.owner_id else ORGANISATION if skill.organisation_id else SERVER


def _skill(person: User, organisation: Organisation, name: str) -> Skill:
    skill = find_skill(name, organisation, person)
    if not Skill.objects.visible_to(person).filter(pk=skill.pk).exists():
        raise NotFound(f"There is no skill “{name}” here.", hint="`agent skills list` has them.")
    return skill


def _agent(person: User, organisation: Organisation, wanted: str) -> Agent:
    return find_agent(actor=person, organisation=organisation, wanted=wanted)


def _locked(agent: Agent, organisation: Organisation) -> Sequence[Locked]:
    if agent.current is None:
        return ()
    return lock(agent.current.config.skills, organisation, agent.owner)


def _version_row(version: SkillVersion) -> dict[str, Any]:
    return {
        "version": version.label,
        "state": version.state,
        "digest": version.digest,
        "deprecated": version.deprecated_at is not None,
    }


def _version_line(skill: Skill, version: SkillVersion) -> str:
    points = [channel for channel in Channel.values if skill.at(channel) == version]
    old = ["deprecated"] if version.deprecated_at else []
    return "  ".join((version.label, version.state, *points, *old, version.digest[:12]))


def _lines(title: str, lines: Iterable[str]) -> None:
    found = list(lines)
    if found:
        _print(f"{title}:")
    for line in found:
        _print(f"  {line}")


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")


def _note(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
