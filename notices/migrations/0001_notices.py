import django.db.models.deletion
import notices.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('conversations', '0001_conversations'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='PushKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(default='current', max_length=10, unique=True)),
                ('sealed', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Device',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(default=notices.models.new_device_id, editable=False, max_length=40, unique=True)),
                ('session_key', models.CharField(db_index=True, max_length=40)),
                ('name', models.CharField(max_length=100)),
                ('endpoint', models.TextField()),
                ('endpoint_sha256', models.CharField(max_length=64, unique=True)),
                ('p256dh', models.CharField(max_length=100)),
                ('auth', models.CharField(max_length=30)),
                ('server_key', models.CharField(max_length=100)),
                ('last_code', models.CharField(blank=True, max_length=30)),
                ('last_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='push_devices', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='NoticeWish',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('waits_by_mail', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='away', max_length=10)),
                ('waits_by_push', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='away', max_length=10)),
                ('done_by_mail', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='never', max_length=10)),
                ('done_by_push', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='away', max_length=10)),
                ('waits_by_webhook', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='never', max_length=10)),
                ('done_by_webhook', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='never', max_length=10)),
                ('brief_by_push', models.CharField(choices=[('always', 'Always'), ('away', 'When I am away'), ('never', 'Never')], default='never', max_length=10)),
                ('mail_after_minutes', models.PositiveSmallIntegerField(default=5)),
                ('tells_contents', models.BooleanField(default=True)),
                ('quiet_from', models.TimeField(null=True)),
                ('quiet_until', models.TimeField(null=True)),
                ('timezone', models.CharField(default='UTC', max_length=60)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='notice_wish', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Push',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('waits', 'waits for you'), ('done', 'done while you were away'), ('brief', 'daily brief'), ('test', 'test')], max_length=10)),
                ('batch', models.CharField(blank=True, max_length=40)),
                ('path', models.CharField(blank=True, max_length=200)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('next_at', models.DateTimeField(db_index=True)),
                ('expires_at', models.DateTimeField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('device', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pushes', to='notices.device')),
            ],
        ),
        migrations.CreateModel(
            name='Seen',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seen_at', models.DateTimeField()),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='conversations.conversation')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'conversation'), name='seen_once')],
            },
        ),
        migrations.CreateModel(
            name='WaitNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=60)),
                ('channel', models.CharField(choices=[('mail', 'mail'), ('push', 'push'), ('webhook', 'webhook')], default='mail', max_length=10)),
                ('batch', models.CharField(db_index=True, max_length=40)),
                ('tries', models.PositiveSmallIntegerField(default=1)),
                ('mailed_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wait_notices', to='conversations.conversation')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wait_notices', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'subject', 'channel'), name='wait_notice_once')],
            },
        ),
    ]
