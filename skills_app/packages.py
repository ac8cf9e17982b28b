"""The Python packages of versions: whether they are installed, where they lie, and having them installed.

Versions that need the same share one folder, which nobody writes to again: before it is shown to a sandbox it
is held against what was put there, by the lock and by the digest of all its files. `installing` fetches them;
who may ask is the actions' part.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from harness.errors import AgentError, Conflict
from jobs.dispatch import dispatch
from tools_app.packagetrees import Part, facts_of
from tools_app.removing import remove_tree

from .installing import FRESH, Laid, Lock, index, interpreter, name_of, not_installed, record_in
from .models import SkillPackages, SkillVersion
from .pythonneeds import PythonNeeds

logger = logging.getLogger(__name__)

JOB = "skills_app.install_packages"
MOST_AT_ONCE = 2
"""Installed at one time, of all."""
SHARES = 2
"""One organisation's skills take one of them at most of what all may have."""
KEPT = timedelta(days=1)
"""After which packages go that no version needs."""
AGAIN_AFTER = timedelta(hours=1)
"""After which a folder that is gone is installed again unasked."""
LEFT_SECONDS = 3_600.0
"""After which a folder goes that no row names."""
State = SkillPackages.State

_held: dict[Path, str] = {}
"""What the file system said of folders when this process had read all of them."""


@dataclass(frozen=True, slots=True)
class Packages:
    """How one version stands."""

    needs: PythonNeeds
    source: str
    """Where they come from, in words; empty: from nowhere, no index is named."""
    row: SkillPackages | None

    @property
    def ready(self) -> bool:
        return self.row is not None and self.row.state == State.READY

    @property
    def under_way(self) -> bool:
        return self.row is not None and self.row.state in {State.WAITING, State.RUNNING}

    @property
    def state(self) -> str:
        return self.row.state if self.row is not None else State.FAILED

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(Part.model_validate(each) for each in self.row.parts) if self.row else ()

    @property
    def problem(self) -> str:
        """Why they are not there, in words; empty: they are."""
        if self.ready:
            return ""
        if self.row is not None:
            return self.row.problem or _(
                "They are being installed; that takes some minutes at most."
            )
        if not self.source:
            return _(
                "This server installs no Python packages. Whoever runs it can name an index in "
                "AGENTSITE_SKILLS_INDEX."
            )
        return _("Nobody has had them installed yet.")

    @property
    def told_agents(self) -> str:
        """Beside that they are not there: nothing that an installer printed, where strangers have a say."""
        if self.under_way:
            return _("They are being installed; that takes some minutes at most.")
        return _("The page of the skill’s version says why.")


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be installed."""

    row: int
    needs: PythonNeeds
    lock: Lock | None


def root() -> Path:
    return Path(settings.AGENTSITE_DATA_DIR) / "skill-packages"


def needs_of_version(version: SkillVersion) -> PythonNeeds | None:
    return PythonNeeds.model_validate(version.python) if version.python else None


def packages_of(version: SkillVersion) -> Packages | None:
    """None: it needs none."""
    needs = needs_of_version(version)
    return packages_for(needs) if needs is not None else None


def packages_for(needs: PythonNeeds) -> Packages:
    source = index()
    row = SkillPackages.objects.filter(needs=key_of(needs)).first()
    return Packages(needs, source.shown if source is not None else "", row)


def missing_of(versions: Iterable[SkillVersion]) -> list[tuple[SkillVersion, Packages]]:
    """Those whose packages could not be installed, with why. It asks once."""
    needing = [(each, key_of(needs)) for each in versions if (needs := needs_of_version(each))]
    if not needing:
        return []
    source = index()
    shown = source.shown if source is not None else ""
    rows = SkillPackages.objects.in_bulk({key for _each, key in needing}, field_name="needs")
    found = [
        (each, Packages(PythonNeeds.model_validate(each.python), shown, rows.get(key)))
        for each, key in needing
    ]
    return [(each, packages) for each, packages in found if packages.state == State.FAILED]


def key_of(needs: PythonNeeds) -> str:
    whole = json.dumps([list(needs.packages), needs.python, interpreter()])
    return sha256(whole.encode()).hexdigest()


def ask_for(version: SkillVersion, *, again: bool = False) -> None:
    """Have its packages installed, if it needs some that nobody asked for yet. `again`: also those whose
    installation failed. Without an index nothing is asked."""
    needs = needs_of_version(version)
    if needs is None or index() is None:
        return
    with transaction.atomic():
        row, made = SkillPackages.objects.get_or_create(
            needs=key_of(needs), defaults={"wanted": needs.model_dump()}
        )
        if again and row.state == State.FAILED:
            row.state, row.problem = State.WAITING, ""
            row.save(update_fields=["state", "problem"])
        if made or (again and row.state == State.WAITING):
            dispatch(JOB, row_id=row.pk)


def place_of(version: SkillVersion) -> Path | None:
    """The folder with its packages, or one that says in their place that they are not installed; None: it
    needs none. Nothing is fetched here: what nobody asked for yet is asked for."""
    found = packages_of(version)
    if found is None:
        return None
    try:
        return sound_place(found)
    except Conflict:
        if found.row is None:
            ask_for(version)
        return not_installed(root())


def sound_place(found: Packages) -> Path:
    """The folder, as it was installed. Raises Conflict where it is not, or is not there: the packages count
    as not installed from then on."""
    if not found.ready or found.row is None:
        raise Conflict(
            _("The Python packages that it needs are not installed. %(why)s")
            % {"why": found.told_agents}
        )
    place, row = root() / found.row.tree, found.row
    if not place.exists() and _ask_for_lost(row):
        raise Conflict(
            _("Their folder is gone. They are being installed again, by what was locked.")
        )
    try:
        _require_same(place, row)
    except (OSError, ValueError):
        logger.exception("the packages in %s are not what was installed", place)
        words = _(
            "Their folder holds something else than was installed. Have them installed again; whoever runs "
            "this server should know."
        )
        SkillPackages.objects.filter(pk=row.pk, tree=row.tree, state=State.READY).update(
            state=State.FAILED, problem=words
        )
        raise Conflict(words) from None
    return place


def _ask_for_lost(row: SkillPackages) -> bool:
    """Where all of a folder is gone, as after a backup that has none was restored, nobody has to look at it
    first: by its lock comes the same or nothing. One that goes again and again is told instead."""
    if index() is None:
        return False
    late = timezone.now() - AGAIN_AFTER
    rows = SkillPackages.objects.filter(pk=row.pk, tree=row.tree, state=State.READY)
    if not rows.filter(ended_at__lt=late).update(state=State.WAITING):
        return False
    dispatch(JOB, row_id=row.pk)
    return True


def _require_same(place: Path, row: SkillPackages) -> None:
    """Every file is read once by each process, and again when the file system says something else of one.
    Raises OSError and ValueError."""
    record = record_in(place)
    locked = tuple(Part.model_validate(each) for each in row.parts)
    if record is None or record.tree != row.tree or record.parts != locked:
        raise ValueError("the lock is another one")
    said = facts_of(place)
    if _held.get(place) == said:
        return
    if name_of(place, Lock(parts=locked)) != row.tree:
        raise ValueError("a file is another one")
    if len(_held) > 10_000:
        _held.clear()
    _held[place] = said


# --- installing them ---------------------------------------------------------------------------------


def begin(row_id: int) -> Order | None:
    """Take it up; None: somebody else did, it is done, or it is not its turn."""
    with transaction.atomic():
        rows = SkillPackages.objects.select_for_update(no_key=True)
        row = rows.filter(pk=row_id, state=State.WAITING).first()
        since = timezone.now() - SkillPackages.LOST_AFTER
        busy = SkillPackages.objects.filter(state=State.RUNNING, began_at__gte=since)
        if row is None or row.pk not in _turns()[: max(0, MOST_AT_ONCE - busy.count())]:
            return None
        row.state, row.began_at = State.RUNNING, timezone.now()
        row.save(update_fields=["state", "began_at"])
    parts = tuple(Part.model_validate(each) for each in row.parts)
    needs = PythonNeeds.model_validate(row.wanted)
    return Order(row.pk, needs, Lock(parts=parts) if parts else None)


def end(row_id: int, laid: Laid) -> None:
    """What was laid out is there from now on, unless it would take too much room of all, or of what one
    organisation may have."""
    if problem := _too_much(row_id, laid):
        _end(row_id, state=State.FAILED, problem=problem)
        return
    parts = [each.model_dump() for each in laid.lock.parts]
    _end(row_id, state=State.READY, problem="", parts=parts, tree=laid.tree, size=laid.size)


def _too_much(row_id: int, laid: Laid) -> str:
    """Why it cannot stay, in words; empty: it can."""
    most = settings.AGENTSITE_SKILLS_PACKAGES_TOTAL_MB
    ready = SkillPackages.objects.filter(state=State.READY).exclude(pk=row_id)
    rows = list(ready.values_list("needs", "tree", "size"))

    def size_of(needs: Container[str]) -> int:
        found = {tree: size for each, tree, size in rows if each in needs}  # some share one
        return sum((found | {laid.tree: laid.size}).values())

    if size_of({each for each, _tree, _size in rows}) > most * 1024 * 1024:
        words = _(
            "The packages of all skills hold %(most)d megabytes at most. Whoever runs this server can raise "
            "AGENTSITE_SKILLS_PACKAGES_TOTAL_MB."
        )
        return words % {"most": most}
    wanted = _wanted()
    needs = SkillPackages.objects.filter(pk=row_id).values_list("needs", flat=True).first()
    for organisation in wanted.get(needs or "", {None}):
        theirs = {key for key, who in wanted.items() if organisation in who}
        if organisation is None or size_of(theirs) <= most * 1024 * 1024 // SHARES:
            return ""
    words = _(
        "The packages of one organisation’s skills hold %(most)d megabytes at most. Whoever runs this server "
        "can raise AGENTSITE_SKILLS_PACKAGES_TOTAL_MB."
    )
    return words % {"most": most // SHARES}


def fail(row_id: int, problem: AgentError | None) -> None:
    """None: by a fault of ours."""
    words = problem.words if problem else _("It broke off.")
    _end(row_id, state=State.FAILED, problem=words[:1_000])


def give_back(row_id: int) -> None:
    """It was broken off, and is as if nobody had taken it up."""
    SkillPackages.objects.filter(pk=row_id, state=State.RUNNING).update(state=State.WAITING)


def _end(row_id: int, **said: object) -> None:
    rows = SkillPackages.objects.filter(pk=row_id, state=State.RUNNING)
    rows.update(ended_at=timezone.now(), **said)
    for pk in _turns()[:MOST_AT_ONCE]:
        dispatch(JOB, row_id=pk)


def _turns() -> list[int]:
    """Those that wait. However many one organisation asks for, others come in between."""
    rows = SkillPackages.objects.filter(state__in=(State.WAITING, State.RUNNING)).order_by("pk")
    asked = list(rows.values_list("pk", "needs", "state"))
    wanted = _wanted() if len(asked) > 1 else {}
    taken: Counter[int | None] = Counter()
    turns = []
    for running in (True, False):
        for pk, needs, state in asked:
            if (state == State.RUNNING) != running:
                continue
            organisations = wanted.get(needs) or {None}
            if not running:
                turns.append((min(taken[each] for each in organisations), pk))
            taken.update(organisations)
    return [pk for _turn, pk in sorted(turns)]


def look_after() -> None:
    """What was forgotten is begun again; what nobody needs any more goes."""
    now = timezone.now()
    lost = Q(state=State.RUNNING, began_at__lt=now - SkillPackages.LOST_AFTER)
    SkillPackages.objects.filter(lost).update(state=State.WAITING)
    for pk in _turns()[:10]:
        dispatch(JOB, row_id=pk)
    old = SkillPackages.objects.filter(asked_at__lt=now - KEPT).exclude(state=State.RUNNING)
    if old.exists():
        old.exclude(needs__in=set(_wanted())).delete()
    _clear_away(set(SkillPackages.objects.exclude(tree="").values_list("tree", flat=True)))


def _wanted() -> dict[str, set[int | None]]:
    """What versions need, each with the organisations whose skills do; None: this server's."""
    rows = SkillVersion.objects.exclude(python={}).order_by()
    found: dict[str, set[int | None]] = {}
    for python, organisation in rows.values_list("python", "skill__organisation").distinct():
        found.setdefault(key_of(PythonNeeds.model_validate(python)), set()).add(organisation)
    return found


def _clear_away(trees: set[str]) -> None:
    for place in _folders():
        with suppress(OSError):
            late = time.time() - place.stat().st_mtime > LEFT_SECONDS
            if late and (place.name.startswith(FRESH) or place.name not in trees):
                remove_tree(place)


def _folders() -> Iterator[Path]:
    with suppress(OSError):
        yield from [each for each in root().iterdir() if each.name != "not-installed"]
