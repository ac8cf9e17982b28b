"""Drops the index on an event's conversation alone: the unique pair with `seq` begins with it."""

import django.db.models.deletion
from django.db import migrations, models

NAME = "conversations_event_conversation_id_ad7c8c1b"


class Migration(migrations.Migration):

    dependencies = [
        ("conversations", "0018_shared_removals"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            # By itself: on SQLite, `AlterField` would copy every event there is.
            database_operations=[
                migrations.RunSQL(
                    f'DROP INDEX "{NAME}"',
                    f'CREATE INDEX "{NAME}" ON "conversations_event" ("conversation_id")',
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="event",
                    name="conversation",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="conversations.conversation",
                    ),
                ),
            ],
        ),
    ]
