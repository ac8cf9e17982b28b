import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("conversations", "0008_sandboxes_and_background"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="overrides",
            field=models.JSONField(default=dict),
        ),
        migrations.CreateModel(
            name="SocketTicket",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("token_uid", models.CharField(blank=True, max_length=40)),
                ("session_key", models.CharField(blank=True, max_length=40)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("conversation", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="conversations.conversation")),
                ("user", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
        ),
    ]
