import conversations.models.webhook
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_api_tokens'),
        ('conversations', '0009_overrides_and_tickets'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_id', models.CharField(default=conversations.models.webhook.new_webhook_event_id, max_length=40, verbose_name='event')),
                ('event_type', models.CharField(max_length=60, verbose_name='type')),
                ('subject', models.CharField(max_length=40, verbose_name='about')),
                ('body', models.TextField()),
                ('state', models.CharField(choices=[('pending', 'pending'), ('delivered', 'delivered'), ('failed', 'failed, tried again'), ('dead', 'given up')], default='pending', max_length=10, verbose_name='state')),
                ('attempts', models.PositiveIntegerField(default=0, verbose_name='attempts')),
                ('next_attempt_at', models.DateTimeField()),
                ('last_result', models.CharField(blank=True, max_length=200, verbose_name='last result')),
                ('created_at', models.DateTimeField(verbose_name='created at')),
                ('settled_at', models.DateTimeField(null=True, verbose_name='settled at')),
            ],
            options={
                'verbose_name': 'webhook delivery',
                'verbose_name_plural': 'webhook deliveries',
                'ordering': ['-id'],
            },
        ),
        migrations.AddField(
            model_name='preference',
            name='mail_after_minutes',
            field=models.PositiveSmallIntegerField(default=5),
        ),
        migrations.AddField(
            model_name='preference',
            name='mail_when_waiting',
            field=models.BooleanField(default=True),
        ),
        migrations.CreateModel(
            name='WebhookAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('started_at', models.DateTimeField()),
                ('milliseconds', models.PositiveIntegerField(default=0)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('error', models.CharField(blank=True, max_length=200)),
                ('excerpt', models.TextField(blank=True)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempt_log', to='conversations.webhookdelivery')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='WebhookEndpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(default=conversations.models.webhook.new_endpoint_id, editable=False, max_length=40, unique=True)),
                ('url', models.CharField(max_length=500, verbose_name='address')),
                ('description', models.CharField(blank=True, max_length=200, verbose_name='description')),
                ('event_types', models.JSONField(default=list, verbose_name='event types')),
                ('disabled_at', models.DateTimeField(null=True, verbose_name='switched off at')),
                ('disabled_reason', models.CharField(blank=True, choices=[('person', 'switched off by somebody'), ('failing', 'it failed for too long'), ('gone', 'it answered that it is gone (410)'), ('address', 'its name leads to an address that is not allowed')], max_length=10, verbose_name='switched off because')),
                ('failing_since', models.DateTimeField(null=True, verbose_name='failing since')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhook_endpoints', to='accounts.organisation')),
            ],
            options={
                'verbose_name': 'webhook endpoint',
                'verbose_name_plural': 'webhook endpoints',
                'ordering': ['id'],
            },
        ),
        migrations.AddField(
            model_name='webhookdelivery',
            name='endpoint',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='conversations.webhookendpoint'),
        ),
        migrations.CreateModel(
            name='WebhookSecret',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.TextField(editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='conversations.webhookendpoint')),
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
                ('subject', models.CharField(max_length=40)),
                ('batch', models.CharField(db_index=True, max_length=40)),
                ('tries', models.PositiveSmallIntegerField(default=1)),
                ('mailed_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wait_notices', to='conversations.conversation')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wait_notices', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'subject'), name='wait_notice_once')],
            },
        ),
        migrations.AddIndex(
            model_name='webhookendpoint',
            index=models.Index(condition=models.Q(('disabled_at__isnull', True)), fields=['organisation'], name='webhook_listening'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('state__in', ['pending', 'failed'])), fields=['next_attempt_at'], name='webhook_due'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['endpoint', 'state', '-id'], name='webhook_by_state'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['created_at'], name='webhook_age'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.UniqueConstraint(fields=('endpoint', 'event_id'), name='webhook_event_once'),
        ),
    ]
