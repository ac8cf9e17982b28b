"""Python packages of skills: declared, resolved and locked once, in a sandbox that reaches the index alone;
held against what was installed before anything sees them.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from accounts.actions.tokens import create_token
from accounts.models import Organisation, TokenScope, User
from agentsite.checks import check_installation
from harness.errors import Conflict, Declined, Forbidden, Invalid, NotFound
from sandbox.bubblewrap import BubblewrapBackend
from sandbox.contract import NOTHING, Captured, Mounts, Result
from sandbox.environment import PATH
from skills_app import packages
from skills_app.actions.packages import install_packages
from skills_app.actions.skills import create_skill
from skills_app.folder import faults_of, read_folder
from skills_app.installing import LAUNCHER, PROGRAM, Laid, Lock, install, put_program
from skills_app.models import SkillPackages, SkillVersion
from skills_app.planning import plan_installation
from skills_app.pythonneeds import MOST, PythonNeeds
from skills_app.trialrun.carrying import carry_out
from skills_app.trialrun.planning import plan_trial_run
from tests.cast import ClientOf
from tests.standins.packageindex import PackageIndex, wheel
from tools_app.packagetrees import RECORD

from .conftest import files_of

PUBLIC = "93.184.216.34"
State = SkillPackages.State


def script(*lines: str) -> bytes:
    block = "".join(f"# {line}\n" if line else "#\n" for line in lines)
    return f"# /// script\n{block}# ///\nimport tables\nprint(tables.read())\n".encode()


TABLES = wheel("tables", "1.0", {"tables.py": "def read(): return 'one'\n"})
NEEDS_TABLES = script('dependencies = ["tables>=1,<3"]')


def skill(files: dict[str, bytes], name: str = "code-review") -> dict[str, bytes]:
    return files_of(name) | files


# --- what is needed ------------------------------------------------------------------------------------


def test_scripts_and_the_manifest_say_together_what_is_needed():
    folder = read_folder(
        skill(
            {
                "agentsite.yaml": b'needs: {python: ["Charts==2.*", "tables>=1"]}',
                "scripts/a.py": script(
                    'requires-python = ">=3.9"', "", "dependencies = [", '  "tables >= 1",', "]"
                ),
                "scripts/b.py": script("dependencies = [\"dates; python_version<'3.9'\"]"),
                "notes.md": script('dependencies = ["elsewhere"]'),
            }
        )
    )
    assert folder.python.packages == (
        "Charts==2.*", "dates; python_version < \"3.9\"", "tables>=1",
    )  # fmt: skip
    assert folder.python.python == ">=3.9"
    assert faults_of(folder) == []
    assert read_folder(files_of()).python == PythonNeeds()


@pytest.mark.parametrize(
    "text",
    [
        script('dependencies = ["tables >> 1"]'),
        script('dependencies = ["tables @ https://evil.example.org/tables.whl"]'),
        script('dependencies = ["tables===/../../wheels/tables.whl"]'),
        script('dependencies = "tables"'),
        script("dependencies = [1]"),
        script("dependencies = ["),
        script('requires-python = "some"'),
        script(f'dependencies = ["tables"] # {"x" * 20_000}'),
        script("a = " + "[" * 3_000),
        script() + script(),
        b"# /// script\n# dependencies = []\nimport tables\n",
        script('dependencies = ["' + "x" * 300 + '"]'),
        script("dependencies = [" + ", ".join(f'"p{n}"' for n in range(MOST + 1)) + "]"),
    ],
)
def test_a_block_that_cannot_be_read_is_a_warning_and_keeps_from_being_published(text: bytes):
    folder = read_folder(skill({"scripts/a.py": text}))
    assert folder.python == PythonNeeds()
    assert len(folder.warnings) == 1
    assert faults_of(folder) == list(folder.warnings)


def test_blocks_of_many_scripts_are_read_to_a_bound():
    """TOML is read in the square of its length: what one skill has of it is bounded as a whole."""
    long = script('dependencies = ["tables"]', "#" * 3_900)
    folder = read_folder(skill({f"scripts/{number}.py": long for number in range(12)}))
    assert folder.python.packages == ("tables",)
    assert len(folder.warnings) == 2
    assert all("together are too long" in warning for warning in folder.warnings)


def test_a_package_by_an_address_keeps_a_manifest_from_being_read():
    with pytest.raises(Invalid) as refused:
        read_folder(skill({"agentsite.yaml": b'needs: {python: ["a @ https://evil.example"]}'}))
    assert refused.value.field == "agentsite.yaml.needs.python"


# --- installing ----------------------------------------------------------------------------------------


@pytest.fixture
def served(settings: Any) -> Iterator[PackageIndex]:
    """An index by its name, which the way out of the sandbox finds on loopback. It has tables 1 and 2, of
    which the second needs cells, and one that is no wheel."""
    settings.AGENTSITE_SKILLS_INDEX = "http://index.example.org/simple/"
    with PackageIndex() as held:
        held.add(*TABLES)
        needs = {"tables.py": "import cells\ndef read(): return cells.ALL\n"}
        held.add(
            *wheel("tables", "2.0", needs, requires=["cells>=1"], scripts={"t": "tables:read"})
        )
        held.add(*wheel("cells", "1.5", {"cells/__init__.py": "ALL = 'two'\n"}))
        held.add("evil-1.0.tar.gz", b"x")
        yield held


def outwards(served: PackageIndex) -> Callable[[], BubblewrapBackend]:
    async def resolve(_host: str, _port: int) -> list[str]:
        return [PUBLIC]

    async def connect(_address: str, _port: int) -> Any:
        return await asyncio.open_connection("127.0.0.1", served.port)

    return lambda: BubblewrapBackend(resolve=resolve, connect=connect)


def installed(served: PackageIndex, root: Path, *needs: str, **more: Any) -> Laid:
    wanted = PythonNeeds(packages=needs, python=more.pop("python", ""))
    return asyncio.run(install(wanted, root, made=outwards(served), **more))


def said(place: Path) -> str:
    """What a script prints with these packages."""
    command = [str(place / PROGRAM), "-c", "import tables; print(tables.read())"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.usefixtures("needs_bubblewrap")
def test_what_is_needed_is_resolved_locked_and_laid_out_by_the_index_alone(
    served: PackageIndex, tmp_path: Path
):
    laid = installed(served, tmp_path, "tables>=1")
    assert [(each.name, each.version) for each in laid.lock.parts] == [
        ("cells", "1.5"), ("tables", "2.0"),
    ]  # fmt: skip
    assert all(each.digest.startswith("sha256:") for each in laid.lock.parts)
    place = tmp_path / laid.tree
    assert said(place) == "two"
    assert sorted(each.name for each in tmp_path.iterdir()) == [laid.tree]
    assert sorted(each.name for each in place.iterdir()) == ["bin", RECORD, "site"]
    assert not (place / "site" / "bin").exists()
    assert not place.stat().st_mode & 0o022
    # Later there is a newer one, and the lock still means the same files.
    served.add(*wheel("tables", "3.0", {"tables.py": "def read(): return 'three'\n"}))
    again = installed(served, tmp_path / "other", "tables>=1", lock=laid.lock)
    assert again.lock == laid.lock
    assert said(tmp_path / "other" / again.tree) == "two"


@pytest.mark.usefixtures("needs_bubblewrap")
def test_a_file_that_is_not_the_locked_one_is_not_installed(served: PackageIndex, tmp_path: Path):
    lock = installed(served, tmp_path, "tables<2").lock
    served.add(*wheel("tables", "1.0", {"tables.py": "def read(): return 'evil'\n"}))
    with pytest.raises(Declined, match="HASH"):
        installed(served, tmp_path / "other", "tables<2", lock=lock)
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.usefixtures("needs_bubblewrap")
def test_what_cannot_be_had_is_told_with_the_words_of_the_installer(
    served: PackageIndex, tmp_path: Path, settings: Any
):
    # The index names a file on a host that the operator did not list.
    served.held["/simple/away/"] = (
        "text/html",
        b'<a href="http://files.example.net/away-1.0-py3-none-any.whl#sha256=00">away-1.0-py3-none-any.whl</a>',
    )
    for needs, why in (
        (("tables<2", "tables>1.5"), "conflict"),
        (("evil",), "evil"),
        (("away",), "files.example.net:80"),
    ):
        with pytest.raises(Declined) as refused:
            installed(served, tmp_path, *needs)
        assert why in refused.value.message
    with pytest.raises(Declined, match=">=4"):
        installed(served, tmp_path, "tables", python=">=4")
    settings.AGENTSITE_SKILLS_PACKAGES_MB = 1
    served.add(*wheel("large", "1", {"large.py": "#" * 1_100_000}))
    with pytest.raises(Declined, match="1 megabytes"):
        installed(served, tmp_path, "large")
    assert list(tmp_path.iterdir()) == []


def to_be_built() -> bytes:
    """A package that is no wheel, and brings along what builds it."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n',
        "b.py": "raise SystemExit('it ran')\n",
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as packed:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"trap-1.0/{name}")
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.mark.usefixtures("needs_bubblewrap")
def test_nothing_of_a_package_is_run_also_where_a_wheel_names_an_address(
    served: PackageIndex, tmp_path: Path
):
    served.held["/files/trap-1.0.tar.gz"] = ("application/gzip", to_be_built())
    address = "http://index.example.org/files/trap-1.0.tar.gz"
    served.add(*wheel("bait", "1.0", {"bait.py": ""}, requires=[f"trap @ {address}"]))
    with pytest.raises(Declined, match="has to be built"):
        installed(served, tmp_path, "bait")
    assert "/files/trap-1.0.tar.gz" in served.asked


def test_the_interpreter_of_packages_may_stand_in_the_path(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name / "site").mkdir(parents=True)
        put_program(tmp_path / name, LAUNCHER)
        (tmp_path / name / "site" / f"{name}.py").touch()
    first, second = (tmp_path / name / "bin" for name in ("one", "two"))
    for path in (
        f"{first}/:{second}:{PATH}",
        f"{PATH}:{first}",
        f"{second}:{first}:{PATH}:{first}",
    ):
        ran = subprocess.run(
            [first / "python3", "-c", "import one; print('found')"],
            env={"PATH": path}, capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
        assert ran.stdout == "found\n"


class Overtaken:
    """A sandbox whose installer does what somebody else wants in the folder that it may write."""

    def __init__(self, act: Callable[[Path], object], said: str = "") -> None:
        self._act, self._said = act, said.encode()

    async def run(self, _command: Any, _policy: Any, mounts: Mounts, **_more: Any) -> Result:
        self._act(mounts.workdir.source)
        said = Captured(self._said, b"", len(self._said))
        return Result("bubblewrap", True, int(bool(said.size)), 0.1, NOTHING, said)

    async def close(self) -> None:
        pass


@pytest.mark.usefixtures("wheels")
def test_an_installer_that_was_overtaken_reaches_nothing_outside_of_its_folder(tmp_path: Path):
    victim = tmp_path / "victim"
    (victim / "bin").mkdir(parents=True)
    (victim / "bin" / "python").touch()

    def link(work: Path) -> None:
        (work / "site").unlink(missing_ok=True)
        (work / "site").symlink_to(victim)

    def pipe(work: Path) -> None:
        os.mkfifo(work / "report.json")

    for act, lock in ((link, Lock(parts=())), (pipe, None)):
        backend: Any = Overtaken(act)
        wanted = PythonNeeds(packages=("tables",))
        with pytest.raises(Declined):
            asyncio.run(install(wanted, tmp_path / "root", lock=lock, made=lambda: backend))  # noqa: B023
    assert (victim / "bin" / "python").exists()
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.usefixtures("needs_bubblewrap")
def test_installations_with_the_same_files_leave_each_other_as_they_are(
    wheels: Path, tmp_path: Path
):
    (file,) = wheels.iterdir()
    wanted = PythonNeeds(packages=("tables",))
    first = asyncio.run(install(wanted, tmp_path / "root"))
    place = tmp_path / "root" / first.tree
    os.utime(place, (0, 0))
    shown = place.stat().st_ino
    # Somebody else needs the same, while programs see what lies there.
    again = asyncio.run(install(PythonNeeds(packages=("tables>=1",)), tmp_path / "root"))
    assert again == first
    assert place.stat().st_ino == shown
    assert place.stat().st_mtime > 0, "nobody names it yet, and it is no leftover"
    # The same files, packed anew: another file as indexes count, so another lock.
    with zipfile.ZipFile(file, "a") as packed:
        packed.comment = b"packed anew"
    anew = asyncio.run(install(wanted, tmp_path / "root"))
    assert anew.lock != first.lock
    assert anew.tree != first.tree
    assert place.stat().st_ino == shown
    # What was changed is put right.
    other_file(tmp_path / "root" / anew.tree)
    asyncio.run(install(wanted, tmp_path / "root"))
    assert said(tmp_path / "root" / anew.tree) == "one"


@pytest.mark.usefixtures("wheels")
def test_what_an_installer_prints_can_be_stored_and_seen(tmp_path: Path):
    backend: Any = Overtaken(lambda _work: None, "a\0b \u202e \x1b[31m")
    with pytest.raises(Declined) as refused:
        asyncio.run(install(PythonNeeds(packages=("a",)), tmp_path, made=lambda: backend))
    assert r"a\u0000b \u202e \u001b[31m" in refused.value.message


def test_an_index_that_is_none_keeps_a_server_from_starting(settings: Any):
    def found() -> list[str | None]:
        return [each.id for each in check_installation(None)]

    assert "agentsite.E057" not in found()
    for wrong in ("packages.example.org", "ftp://example.org/simple/", "https:///simple/"):
        settings.AGENTSITE_SKILLS_INDEX = wrong
        assert "agentsite.E057" in found()
    settings.AGENTSITE_SKILLS_INDEX = "https://reader:word@packages.example.org/simple/"
    assert "agentsite.E057" not in found()
    for name, wrong_too in (
        ("AGENTSITE_SKILLS_PACKAGES_MB", 0),
        ("AGENTSITE_SKILLS_INDEX_HOSTS", ["https://example.org"]),
    ):
        with override_settings(**{name: wrong_too}):
            assert "agentsite.E057" in found()


# --- of versions ---------------------------------------------------------------------------------------


@pytest.fixture
def wheels(tmp_path: Path, settings: Any) -> Path:
    """A folder with wheels as the index, and data of its own."""
    settings.AGENTSITE_DATA_DIR = tmp_path / "data"
    folder = tmp_path / "wheels"
    folder.mkdir()
    settings.AGENTSITE_SKILLS_INDEX = str(folder)
    file, body = TABLES
    (folder / file).write_bytes(body)
    return folder


def by_token(person: User, organisation: Organisation) -> Client:
    scopes = (TokenScope.CONVERSATIONS_READ, TokenScope.SKILLS_MANAGE)
    issued = create_token(actor=person, organisation=organisation, name="p", scopes=scopes)
    return Client(headers={"Authorization": f"Bearer {issued.secret}"})


def carried(row: SkillPackages) -> SkillPackages:
    """What the job does."""
    order = packages.begin(row.pk)
    assert order is not None
    try:
        packages.end(row.pk, asyncio.run(install(order.needs, packages.root(), lock=order.lock)))
    except Declined as problem:
        packages.fail(row.pk, problem)
    row.refresh_from_db()
    return row


@pytest.fixture
def needing(released: Callable[..., SkillVersion], wheels: Path) -> SkillVersion:
    return released(skill({"scripts/look.py": NEEDS_TABLES}))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Laid]:
    """What the installer made of the same wheel, once for all of these tests."""
    wheels, root = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("built")
    file, body = TABLES
    (wheels / file).write_bytes(body)
    with override_settings(AGENTSITE_SKILLS_INDEX=str(wheels)):
        return root, asyncio.run(install(PythonNeeds(packages=("tables",)), root))


@pytest.fixture
def ready(needs_bubblewrap: None, built: tuple[Path, Laid], needing: SkillVersion) -> SkillPackages:
    root, laid = built
    shutil.copytree(root / laid.tree, packages.root() / laid.tree)
    row = SkillPackages.objects.get()
    assert packages.begin(row.pk) is not None
    packages.end(row.pk, laid)
    row.refresh_from_db()
    return row


def test_a_release_asks_for_packages_once_and_every_version_that_needs_them_has_them(
    ready: SkillPackages, needing: SkillVersion, released: Callable[..., SkillVersion]
):
    assert (ready.state, ready.problem) == (State.READY, "")
    other = released(skill({"scripts/other.py": NEEDS_TABLES}, "other"))
    assert SkillPackages.objects.get() == ready
    place = packages.place_of(needing)
    assert place == packages.place_of(other)
    assert place is not None
    assert said(place) == "one"
    assert packages.place_of(released(files_of("third"))) is None


def other_file(place: Path) -> None:
    (place / "site" / "tables.py").write_text("evil = 1\n")


def same_size_and_times(place: Path) -> None:
    module = place / "site" / "tables.py"
    before = module.stat()
    module.write_text(module.read_text().replace("one", "two"))
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))


def compiled(place: Path) -> None:
    (found,) = (place / "site" / "__pycache__").iterdir()
    found.write_bytes(found.read_bytes() + b"x")


def other_lock(place: Path) -> None:
    text = (place / RECORD).read_text()
    (place / RECORD).write_text(text.replace("sha256:", "sha256:0"))


def other_digest(place: Path) -> None:
    text = (place / RECORD).read_text()
    (place / RECORD).write_text(text.replace(place.name, "0" * 64))


def one_more_file(place: Path) -> None:
    (place / "site" / "evil.py").touch()


@pytest.mark.parametrize(
    "change",
    [
        *(other_file, same_size_and_times, compiled, other_lock, other_digest, one_more_file),
        shutil.rmtree,
    ],
)
def test_packages_that_are_not_what_was_installed_are_shown_to_nothing(
    change: Callable[[Path], None], ready: SkillPackages, needing: SkillVersion
):
    place = packages.place_of(needing)
    assert place == packages.root() / ready.tree
    change(place)
    instead = packages.place_of(needing)
    assert instead == packages.root() / "not-installed"
    ran = subprocess.run([instead / PROGRAM, "x.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 69
    assert "not installed" in ran.stderr
    found = packages.packages_of(needing)
    assert found is not None
    assert "something else than was installed" in found.problem


def test_packages_that_a_restored_backup_lacks_are_installed_again_by_their_lock(
    ready: SkillPackages, needing: SkillVersion, wheels: Path
):
    SkillPackages.objects.update(ended_at=timezone.now() - timedelta(days=1))
    file, body = wheel("tables", "2.0", {"tables.py": "def read(): return 'two'\n"})
    (wheels / file).write_bytes(body)
    shutil.rmtree(packages.root())
    assert packages.place_of(needing) == packages.root() / "not-installed"
    assert carried(ready).state == State.READY
    place = packages.place_of(needing)
    assert place is not None
    assert said(place) == "one"


def test_a_row_whose_lock_is_another_one_is_not_believed(
    ready: SkillPackages, needing: SkillVersion
):
    SkillPackages.objects.update(parts=[{**ready.parts[0], "digest": "sha256:00"}])
    assert packages.place_of(needing) == packages.root() / "not-installed"


def test_packages_that_were_changed_are_installed_again_by_their_lock(
    ready: SkillPackages, needing: SkillVersion, alice: User, wheels: Path, client_of: ClientOf
):
    other_file(packages.root() / ready.tree)
    file, body = wheel("tables", "2.0", {"tables.py": "def read(): return 'two'\n"})
    (wheels / file).write_bytes(body)
    client_of(alice).post(reverse("skills:packages", args=[needing.skill.uid, needing.label]))
    assert carried(ready).state == State.READY
    place = packages.place_of(needing)
    assert place is not None
    assert said(place) == "one"


@pytest.mark.usefixtures("needs_bubblewrap")
def test_why_packages_are_not_there_is_told_to_who_can_do_something(
    needing: SkillVersion, wheels: Path, alice: User, bob: User, mallory: User,
    acme: Organisation, elsewhere: Organisation, client_of: ClientOf,
):  # fmt: skip
    (gone,) = wheels.iterdir()
    kept = gone.read_bytes()
    gone.unlink()
    row = carried(SkillPackages.objects.get())
    assert row.state == State.FAILED
    assert "tables" in row.problem
    uid, label = needing.skill.uid, needing.label
    page = reverse("skills:version", args=[uid, label])
    button = reverse("skills:packages", args=[uid, label])
    text = client_of(alice).get(page).content.decode()
    assert "They were not fetched" in text
    assert button in text
    assert (
        "They were not fetched" in client_of(alice).get(reverse("skills:reviews")).content.decode()
    )
    theirs = client_of(bob).get(page).content.decode()
    assert "They were not fetched" in theirs
    assert button not in theirs
    assert "They were not" not in client_of(bob).get(reverse("skills:reviews")).content.decode()
    for nobody, refusal in ((bob, Forbidden), (mallory, NotFound)):
        with pytest.raises(refusal):
            install_packages(actor=nobody, version=needing)
    assert client_of(mallory).post(button).status_code == 404
    gone.write_bytes(kept)
    address = f"/api/skills/{uid}/versions/{label}"
    for person, place, status in ((mallory, elsewhere, 404), (bob, acme, 403), (alice, acme, 200)):
        program = by_token(person, place)
        answer = program.post(f"{address}/packages")
        assert answer.status_code == status
    assert answer.json()["state"] == "waiting"
    assert program.post(f"{address}/packages").status_code == 409
    assert carried(row).state == State.READY
    told = program.get(address).json()["python"]
    assert (told["state"], told["needs"]) == ("ready", ["tables<3,>=1"])
    assert [each["name"] for each in told["packages"]] == ["tables"]
    assert "sha256:" in client_of(alice).get(page).content.decode()
    with pytest.raises(Conflict, match="are installed"):
        install_packages(actor=alice, version=needing)


def test_without_an_index_nothing_is_asked_and_the_page_says_why(
    released: Callable[..., SkillVersion], alice: User, client_of: ClientOf
):
    version = released(skill({"scripts/look.py": NEEDS_TABLES}))
    assert not SkillPackages.objects.exists()
    page = reverse("skills:version", args=[version.skill.uid, version.label])
    assert "AGENTSITE_SKILLS_INDEX" in client_of(alice).get(page).content.decode()
    with pytest.raises(Conflict):
        install_packages(actor=alice, version=version)


def test_a_plan_tells_what_would_come_and_from_where(wheels: Path, acme: Any):
    folder = read_folder(skill({"scripts/look.py": NEEDS_TABLES}))
    plan = plan_installation(folder, acme, None)
    assert plan.packages is not None
    assert plan.packages.needs.packages == ("tables<3,>=1",)
    assert plan.packages.source == str(wheels)
    assert plan_installation(read_folder(files_of()), acme, None).packages is None


def test_a_trial_run_runs_scripts_with_their_packages(ready: SkillPackages, needing: SkillVersion):
    place = packages.place_of(needing)
    assert place is not None
    folder = read_folder(skill({"scripts/look.py": NEEDS_TABLES}))
    plan = plan_trial_run(folder, packages={"code-review": place})
    report = asyncio.run(carry_out(plan))
    (step,) = report.steps
    assert (step.exit_code, step.output) == (0, "one")


def test_installations_wait_for_their_turn_and_what_was_left_is_taken_up(
    needing: SkillVersion, released: Callable[..., SkillVersion]
):
    names = ("cells", "charts")
    for name in names:
        needs = script(f'dependencies = ["{name}"]')
        released(skill({"scripts/a.py": needs}, name))
    rows = list(SkillPackages.objects.order_by("pk"))
    assert [packages.begin(each.pk) is not None for each in rows] == [True, True, False]
    assert packages.begin(rows[0].pk) is None
    SkillPackages.objects.filter(pk=rows[0].pk).update(
        began_at=timezone.now() - SkillPackages.LOST_AFTER - timedelta(seconds=1)
    )
    packages.look_after()
    assert packages.begin(rows[0].pk) is not None


def test_an_organisation_that_asks_for_much_keeps_nobody_waiting(
    released: Callable[..., SkillVersion], wheels: Path, mallory: User, elsewhere: Organisation
):
    for number in range(4):
        needs = script(f'dependencies = ["theirs{number}"]')
        theirs = create_skill(
            actor=mallory,
            organisation=elsewhere,
            files=skill({"scripts/a.py": needs}, f"theirs-{number}"),
        )
        packages.ask_for(theirs)
    version = released(skill({"scripts/look.py": NEEDS_TABLES}))
    asked = list(SkillPackages.objects.order_by("pk"))
    assert asked[-1].wanted == version.python
    assert [packages.begin(each.pk) is not None for each in asked] == [True, *[False] * 3, True]
    packages.fail(asked[0].pk, None)
    assert packages.begin(asked[1].pk) is not None


def test_packages_that_no_version_needs_any_more_go(needing: SkillVersion, wheels: Path):
    row = SkillPackages.objects.get()
    tree = packages.root() / ("0" * 64)
    left = packages.root() / ("a" * 64)
    for place in (tree, left):
        place.mkdir(parents=True)
        os.utime(place, (0, 0))
    SkillPackages.objects.update(tree=left.name, asked_at=timezone.now() - timedelta(days=2))
    packages.look_after()
    assert SkillPackages.objects.get() == row
    assert (left.exists(), tree.exists()) == (True, False)
    SkillVersion.objects.update(python={})
    packages.look_after()
    assert not SkillPackages.objects.exists()
    assert not left.exists()


def test_all_packages_together_have_one_limit(needing: SkillVersion, settings: Any):
    row = SkillPackages.objects.get()
    assert packages.begin(row.pk) is not None
    settings.AGENTSITE_SKILLS_PACKAGES_TOTAL_MB = 1
    laid = Laid(lock=Lock(parts=()), tree="0" * 64, size=2 * 1024 * 1024)
    packages.end(row.pk, laid)
    row.refresh_from_db()
    assert row.state == State.FAILED
    assert "AGENTSITE_SKILLS_PACKAGES_TOTAL_MB" in row.problem
    # What several share lies there once.
    settings.AGENTSITE_SKILLS_PACKAGES_TOTAL_MB = 4
    SkillPackages.objects.update(state=State.RUNNING)
    packages.end(row.pk, laid)
    other = SkillPackages.objects.create(needs="1" * 64, state=State.RUNNING)
    packages.end(other.pk, laid)
    other.refresh_from_db()
    assert other.state == State.READY


def test_one_organisation_does_not_take_all_the_room(
    needing: SkillVersion, settings: Any, mallory: User, elsewhere: Organisation
):
    settings.AGENTSITE_SKILLS_PACKAGES_TOTAL_MB = 10
    for number in range(3):
        needs = script(f'dependencies = ["theirs{number}"]')
        files = skill({"scripts/a.py": needs}, f"theirs-{number}")
        packages.ask_for(create_skill(actor=mallory, organisation=elsewhere, files=files))
    own, *theirs = SkillPackages.objects.order_by("pk")
    for number, (row, state) in enumerate(
        [(theirs[0], State.READY), (theirs[1], State.READY), (theirs[2], State.FAILED),
         (own, State.READY)]
    ):  # fmt: skip
        SkillPackages.objects.filter(pk=row.pk).update(state=State.RUNNING)
        packages.end(row.pk, Laid(lock=Lock(parts=()), tree=str(number) * 64, size=2_500_000))
        row.refresh_from_db()
        assert row.state == state
    assert (
        "one organisation’s skills hold 5 megabytes"
        in SkillPackages.objects.get(pk=theirs[2].pk).problem
    )
