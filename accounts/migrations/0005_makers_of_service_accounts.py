from django.db import migrations


def tell_makers(apps, _schema_editor):
    """Who made a service account before this was kept: as far as it is known, who made its first token."""
    User, ApiToken = apps.get_model("accounts", "User"), apps.get_model("accounts", "ApiToken")
    for account in User.objects.filter(kind="service", made_by=None):
        first = ApiToken.objects.filter(user=account).exclude(created_by=None).order_by("created").first()
        if first is not None:
            User.objects.filter(pk=account.pk).update(made_by=first.created_by_id)


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0004_who_made_what"),
    ]

    operations = [
        migrations.RunPython(tell_makers, migrations.RunPython.noop),
    ]
