"""The table of searchable texts and the database's own full-text index beside it."""

import django.db.models.deletion
from django.db import migrations, models

SQLITE = (
    """
    CREATE VIRTUAL TABLE conversations_searchindex USING fts5(
        text,
        content='conversations_searchentry', content_rowid='id',
        tokenize="unicode61 remove_diacritics 2", prefix='2 3'
    )
    """,
    """
    CREATE TRIGGER conversations_searchentry_added AFTER INSERT ON conversations_searchentry BEGIN
        INSERT INTO conversations_searchindex (rowid, text) VALUES (new.id, new.text);
    END
    """,
    """
    CREATE TRIGGER conversations_searchentry_removed AFTER DELETE ON conversations_searchentry BEGIN
        INSERT INTO conversations_searchindex (conversations_searchindex, rowid, text)
            VALUES ('delete', old.id, old.text);
    END
    """,
    """
    CREATE TRIGGER conversations_searchentry_changed AFTER UPDATE ON conversations_searchentry BEGIN
        INSERT INTO conversations_searchindex (conversations_searchindex, rowid, text)
            VALUES ('delete', old.id, old.text);
        INSERT INTO conversations_searchindex (rowid, text) VALUES (new.id, new.text);
    END
    """,
)
SQLITE_BACK = (
    "DROP TRIGGER conversations_searchentry_added",
    "DROP TRIGGER conversations_searchentry_removed",
    "DROP TRIGGER conversations_searchentry_changed",
    "DROP TABLE conversations_searchindex",
)
# Without accents, as the other one: the expression is also asked for, word by word, in `search.py`.
POSTGRESQL = (
    r"""
    CREATE INDEX conversations_searchindex ON conversations_searchentry
        USING gin (to_tsvector('simple', regexp_replace(normalize(text, NFD), '[\u0300-\u036f]', '', 'g')))
    """,
)
POSTGRESQL_BACK = ("DROP INDEX conversations_searchindex",)


def run_for_vendor(sqlite, postgresql):
    def run(apps, schema_editor):
        statements = {"sqlite": sqlite, "postgresql": postgresql}
        for statement in statements.get(schema_editor.connection.vendor, ()):
            schema_editor.execute(statement)

    return run


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_conversations")]

    operations = [
        migrations.CreateModel(
            name="SearchEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.PositiveBigIntegerField()),
                ("text", models.TextField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="search_entries",
                        to="conversations.conversation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "seq"), name="search_entry_seq_unique"
                    )
                ],
            },
        ),
        migrations.RunPython(
            run_for_vendor(SQLITE, POSTGRESQL),
            run_for_vendor(SQLITE_BACK, POSTGRESQL_BACK),
        ),
    ]
