from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0019_event_index'),
    ]

    operations = [
        migrations.AddField(
            model_name='approval',
            name='service_accounts',
            field=models.JSONField(default=list),
        ),
    ]
