"""What only the server's user may read is readable by nobody else, and no log keeps a link's token."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from agentsite import startup
from agentsite.checks import check_installation
from agentsite.logs import mask
from agentsite.sqlite3.base import DatabaseWrapper


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes_of_use(file: Path) -> set[int]:
    """The modes of a database and its companions while it is written."""
    wrapper: Any = DatabaseWrapper({"NAME": str(file), "OPTIONS": {}})
    wrapper.init_commands = ["PRAGMA journal_mode=WAL"]
    connection = wrapper.get_new_connection({"database": str(file)})
    connection.execute("CREATE TABLE IF NOT EXISTS a (b)")
    modes = {mode_of(path) for path in file.parent.iterdir()}
    assert len(list(file.parent.iterdir())) == 3
    connection.close()
    return modes


def test_a_new_database_and_its_companions_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0o000)
    try:
        assert modes_of_use(tmp_path / "db.sqlite3") == {0o600}
    finally:
        os.umask(before)


def test_an_older_database_that_others_could_read_is_closed(tmp_path):
    file = tmp_path / "db.sqlite3"
    sqlite3.connect(file).close()
    file.touch()
    file.chmod(0o644)
    assert modes_of_use(file) == {0o600}


def test_a_folder_that_is_named_for_a_database_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o755)
    wrapper: Any = DatabaseWrapper({"NAME": str(tmp_path), "OPTIONS": {}})
    with pytest.raises(sqlite3.OperationalError):
        wrapper.get_new_connection({"database": str(tmp_path)})
    assert mode_of(tmp_path) == 0o755


def test_an_open_data_directory_is_warned_of_with_its_remedy(settings, tmp_path):
    settings.AGENTSITE_DATA_DIR = tmp_path
    tmp_path.chmod(0o755)
    [warning] = [found for found in check_installation() if found.id == "agentsite.W002"]
    assert f"chmod o-rw,g-w {tmp_path}" in str(warning.hint)
    tmp_path.chmod(0o711)
    assert not [found for found in check_installation() if found.id == "agentsite.W002"]


@pytest.mark.parametrize(
    "path",
    [
        "/setup/{}/",
        "/invitations/{}/",
        "/shared/{}/",
        "/accounts/password/reset/key/{}/",
        "/x?n=/setup/{}/",
    ],
)
def test_no_log_line_keeps_the_token_of_a_link(path):
    token = "Xk2-8sZ_pQ71mmV0aaLrTgB4"
    assert token not in mask("Not Found: " + path.format(token))


def test_a_production_server_prints_no_set_up_link_into_its_log(settings, tmp_path):
    settings.AGENTSITE_ENV = "production"
    settings.AGENTSITE_DATA_DIR = tmp_path
    said = startup.setup_words("https://agents.example.org", "/setup/secret-word/")
    file = tmp_path / "setup-link"
    assert "secret-word" not in said
    assert str(file) in said
    assert file.read_text() == "https://agents.example.org/setup/secret-word/\n"
    assert mode_of(file) == 0o600
    assert startup.setup_words("https://agents.example.org", None) == ""
    assert not file.exists()


def test_on_one_s_own_machine_the_link_is_printed(settings, tmp_path):
    settings.AGENTSITE_DATA_DIR = tmp_path
    assert "/setup/word/" in startup.setup_words("http://127.0.0.1:8000", "/setup/word/")
