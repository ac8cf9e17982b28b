import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0005_makers_of_service_accounts'),
        ('conversations', '0020_accounts_that_decide'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='budget',
            name='budget_scope_names_its_subject',
        ),
        migrations.RemoveConstraint(
            model_name='budgetperiod',
            name='one_row_per_period',
        ),
        migrations.AddField(
            model_name='budgetperiod',
            name='user',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='usage',
            name='charged_to',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='usage',
            name='server_keys',
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name='budget',
            name='scope',
            field=models.PositiveSmallIntegerField(choices=[(1, 'everybody on this server'), (2, 'the organisation'), (3, 'one member'), (4, 'one conversation'), (5, "a person on this server's keys")], verbose_name='scope'),
        ),
        migrations.AddIndex(
            model_name='usage',
            index=models.Index(fields=['charged_to', 'created_at'], name='usage_charged_time'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('conversation', None), ('organisation', None), ('scope', 1), ('user', None)), models.Q(('conversation', None), ('organisation__isnull', False), ('scope', 2), ('user', None)), models.Q(('conversation', None), ('organisation__isnull', False), ('scope', 3), ('user__isnull', False)), models.Q(('conversation__isnull', False), ('organisation__isnull', False), ('scope', 4), ('user', None)), models.Q(('conversation', None), ('organisation', None), ('scope', 5)), _connector='OR'), name='budget_scope_names_its_subject'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.UniqueConstraint(condition=models.Q(('removed_at', None), ('scope', 5), ('user__isnull', False)), fields=('user', 'unit', 'period'), name='one_person_budget'),
        ),
        migrations.AddConstraint(
            model_name='budget',
            constraint=models.UniqueConstraint(condition=models.Q(('removed_at', None), ('scope', 5), ('user', None)), fields=('unit', 'period'), name='one_budget_for_each_person'),
        ),
        migrations.AddConstraint(
            model_name='budgetperiod',
            constraint=models.UniqueConstraint(condition=models.Q(('user', None)), fields=('budget', 'starts_on'), name='one_row_per_period'),
        ),
        migrations.AddConstraint(
            model_name='budgetperiod',
            constraint=models.UniqueConstraint(condition=models.Q(('user__isnull', False)), fields=('budget', 'starts_on', 'user'), name='one_row_per_period_and_person'),
        ),
    ]
