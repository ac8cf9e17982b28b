"""What a start does about the database it finds."""

from __future__ import annotations

import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from agentsite import startup


def test_a_database_of_before_the_first_release_is_refused_in_words(db):
    MigrationRecorder(connection).migration_qs.filter(app="agents").delete()
    with pytest.raises(CommandError, match="earlier, unreleased version"):
        startup.migrate()
