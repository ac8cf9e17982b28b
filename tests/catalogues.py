"""The catalogues of words in `locale`: brought up to date (`make messages`), or held to the code (`--check`).

Extracting and compiling is gettext's part. The compiled ones are kept beside their sources, since a user's
machine has no gettext; `tests/agentsite/test_catalogues.py` looks at what they say.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LANGUAGES = ("de", "ar")
NO_WORDS_OF_OURS = ("tests", "bench", "docs", "static", ".venv", ".git", "locale")
_MADE_AT = re.compile(r'^"POT-Creation-Date:.*\n', re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if something would change"
    )
    check = parser.parse_args().check
    if not all(map(shutil.which, ("xgettext", "msgmerge", "msgfmt", "msgunfmt"))):
        print("gettext is not installed (xgettext, msgmerge, msgfmt, msgunfmt).", file=sys.stderr)
        return 0 if check and not os.environ.get("CI") else 1
    if not check:
        update(ROOT)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=_ignored)
        update(copy)
        problems = [*untranslated(copy), *differences(copy)]
    print("\n".join(problems) or f"The catalogues are complete: {', '.join(LANGUAGES)}.")
    return 1 if problems else 0


def update(root: Path) -> None:
    """Take in new words, leave out those that are gone, and compile."""
    _manage(
        root,
        "makemessages",
        *(f"--locale={language}" for language in LANGUAGES),
        *(f"--ignore={name}" for name in NO_WORDS_OF_OURS),
        "--no-obsolete",
        "--no-wrap",
        "--add-location=file",
    )
    for language in LANGUAGES:
        catalogue = _catalogue(root, language)
        catalogue.write_text(_MADE_AT.sub("", catalogue.read_text("utf-8")), "utf-8")
        subprocess.run(
            ["msgfmt", "--check-format", "-o", catalogue.with_suffix(".mo"), catalogue], check=True
        )


def untranslated(root: Path) -> Iterator[str]:
    for language in LANGUAGES:
        told = subprocess.run(
            ["msgfmt", "--statistics", "-o", os.devnull, _catalogue(root, language)],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        if "fuzzy" in told or "untranslated" in told:
            yield f"locale/{language}: {told.strip()} Run `make messages`, and translate."


def differences(root: Path) -> Iterator[str]:
    for language in LANGUAGES:
        kept, made = (_compiled(_catalogue(each, language)) for each in (ROOT, root))
        if kept != made:
            yield f"locale/{language} is not what the code says. Run `make messages`, and commit it."


def _compiled(catalogue: Path) -> str:
    done = ["msgunfmt", "--no-wrap", str(catalogue.with_suffix(".mo"))]
    told: str = subprocess.run(done, capture_output=True, text=True, check=True).stdout
    return told


def _catalogue(root: Path, language: str) -> Path:
    return root / "locale" / language / "LC_MESSAGES" / "django.po"


def _manage(root: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "django", *arguments],
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _ignored(directory: str, names: list[str]) -> set[str]:
    above = NO_WORDS_OF_OURS[:-1] if Path(directory) == ROOT else ()
    return {
        name for name in names if name in above or name == "__pycache__" or name.startswith(".")
    }


if __name__ == "__main__":
    sys.exit(main())
