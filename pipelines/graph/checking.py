"""What is wrong with the definition of a pipeline, all of it, in words. Pure; agents are looked up elsewhere.

Rules that lead to a step above (or to their own) have a bound; all others lead down. So every run ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from prompts.filling import places_in
from reading.linear import linear

from .spec import END, FAIL, STRANDS, PipelineSpec, StepSpec, fields_of, rules_of, words_of

QUESTION, TRY, PROBLEM = "question", "try", "problem"
KNOWN = (QUESTION, TRY, PROBLEM)
"""What places can be filled with beside the answers of steps."""
TASK = "task"
"""In a specialist's texts: what the orchestrator has it do."""
_RESERVED = {*KNOWN, END, FAIL}
_WORD = linear(r"[a-z0-9][a-z0-9_-]{0,39}")
_FIELD = linear(r"[A-Za-z_][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z_][A-Za-z0-9_-]{0,63}){0,4}")


def problems(spec: PipelineSpec) -> list[str]:
    """Empty: it can be saved."""
    found = list(_names(spec))
    if found:
        return found  # all else speaks of steps by their names
    if spec.engine == STRANDS:
        return list(_orchestrated(spec))
    for step in spec.steps:
        if step.about:
            found.append(
                _("“%(name)s” has “about”, which only an orchestrator reads (engine: strands).")
                % {"name": step.name}
            )
        found += _step(spec, step)
        found += _rules(spec, step)
    if found:
        return found
    reach = reachable(spec)
    found += _ways(spec, reach)
    for step in spec.steps:
        found += _places(spec, step, reach)
    found += _answer(spec, reach)
    return found


def reachable(spec: PipelineSpec) -> dict[str, set[str]]:
    """For each step those that may run behind it, itself among them where it may run again."""
    found: dict[str, set[str]] = {}
    for step in spec.steps:
        seen: set[str] = set()
        due = [step.name]
        while due:
            for rule in rules_of(spec, due.pop()):
                if rule.to not in seen:
                    seen.add(rule.to)
                    if rule.to not in {END, FAIL}:
                        due.append(rule.to)
        found[step.name] = seen
    return found


def _names(spec: PipelineSpec) -> Iterator[str]:
    seen: set[str] = set()
    for step in spec.steps:
        if step.name in _RESERVED:
            yield _("No step can be called “%(name)s”: that word means something else.") % {
                "name": step.name
            }
        if step.name in seen:
            yield _("Two steps are called “%(name)s”.") % {"name": step.name}
        seen.add(step.name)
    for step in spec.steps:
        for rule in step.next:
            if rule.to not in seen | {END, FAIL}:
                yield _("“%(name)s” leads to “%(to)s”, and there is no such step.") % {
                    "name": step.name,
                    "to": rule.to,
                }
            of = rule.when.of if rule.when is not None else ""
            if of and of not in seen:
                yield _("A rule of “%(name)s” looks at “%(of)s”, and there is no such step.") % {
                    "name": step.name,
                    "of": of,
                }


def _orchestrated(spec: PipelineSpec) -> Iterator[str]:
    """Of a pipeline whose first step says which of the others are asked."""
    first, specialists = spec.steps[0], spec.steps[1:]
    if not specialists:
        yield _("“%(name)s” has nobody to ask: the steps below it are its specialists.") % {
            "name": first.name
        }
    if spec.answer not in {"", first.name}:
        yield _("The answer is that of the orchestrator, “%(name)s”.") % {"name": first.name}
    for step in spec.steps:
        told = {"name": step.name}
        if step.approval or step.next or step.words:
            yield (
                _("“%(name)s” has rules, words or an approval; here the orchestrator decides.")
                % told
            )
            continue
        if not step.prompt.strip():
            yield _("“%(name)s” has no prompt.") % told
        if not (step.agent or spec.agent):
            yield _("“%(name)s” has no agent, and the pipeline names none.") % told
        if step.name == TASK:
            yield _("No step can be called “%(name)s”: that word means something else.") % told
        if step == first:
            places, known = places_in(step.prompt), {QUESTION}
            if step.again or step.about:
                yield _("“%(name)s” is asked by its prompt alone: no “again”, no “about”.") % told
        else:
            places = places_in(f"{step.prompt}\n{step.again}")
            known = {*KNOWN, TASK, *(each.name for each in specialists)}
            if not step.about.strip():
                yield _("“%(name)s” does not say what it is for (“about”).") % told
            if TASK not in places_in(step.prompt):
                yield _("“%(name)s” is not told its task: its prompt has no {{task}}.") % told
            if step.tries > 1 and not _asks_anew(step):
                yield _asked_the_same(step)
        for place in places:
            if place not in known:
                yield _("“%(name)s” has {{%(place)s}}, and there is no such step.") % {
                    **told,
                    "place": place,
                }


def _step(spec: PipelineSpec, step: StepSpec) -> Iterator[str]:
    told = {"name": step.name}
    if step.approval:
        if step.prompt or step.again or step.words or step.script or step.agent or step.tries > 1:
            yield (
                _("“%(name)s” asks a person: it has no agent, prompt, words, tries or script.")
                % told
            )
        if fields_of(spec, step.name):
            yield _("A rule looks at a field of “%(name)s”, and a person answers without.") % told
        return
    if not step.prompt.strip():
        yield _("“%(name)s” has no prompt.") % told
    if not (step.agent or spec.agent):
        yield _("“%(name)s” has no agent, and the pipeline names none.") % told
    for word in step.words:
        if not _WORD.fullmatch(word):
            yield _(
                "“%(word)s” is no word that “%(name)s” can answer: small letters, one word."
            ) % {
                **told,
                "word": word,
            }
    if len(set(step.words)) != len(step.words) or len(step.words) == 1:
        yield _("“%(name)s” needs several different words to answer with.") % told
    if step.words and fields_of(spec, step.name):
        yield _("“%(name)s” answers with a word; rules cannot look at a field as well.") % told
    if step.tries > 1 and not _asks_anew(step):
        yield _asked_the_same(step)


def _asked_the_same(step: StepSpec) -> str:
    return _(
        "“%(name)s” may be tried again, and would be asked the same: “again” needs other words."
    ) % {"name": step.name}


def _asks_anew(step: StepSpec) -> bool:
    return bool(step.again.strip()) and step.again.strip() != step.prompt.strip()


def _rules(spec: PipelineSpec, step: StepSpec) -> Iterator[str]:
    place = {each.name: number for number, each in enumerate(spec.steps)}
    told = {"name": step.name}
    rules = rules_of(spec, step.name)
    for number, rule in enumerate(rules):
        condition = rule.when
        back = rule.to in place and place[rule.to] <= place[step.name]
        if back and rule.at_most is None:
            yield _(
                "“%(name)s” leads back to “%(to)s” without a bound: say “at_most” how often."
            ) % {**told, "to": rule.to}
        if back and not spec.step(rule.to).approval and not _asks_anew(spec.step(rule.to)):
            yield _(
                "“%(name)s” leads back to “%(to)s”, which would be asked the same: its “again” needs other"
                " words."
            ) % {**told, "to": rule.to}
        if condition is None and rule.at_most is None and number + 1 < len(rules):
            yield _("Rules of “%(name)s” behind one that always holds are never asked.") % told
            break
        if condition is not None:
            of = spec.step(condition.of or step.name)
            known = {**told, "of": of.name}
            tests = [condition.equals, condition.at_least, condition.below]
            if bool(condition.word) == bool(condition.field):
                yield _("A rule of “%(name)s” looks at a word or a field: give one of them.") % told
            elif condition.field and tests == [None, None, None]:
                yield (
                    _(
                        "A rule of “%(name)s” does not say what its field must be: equals, at_least or below."
                    )
                    % told
                )
            elif condition.word and tests != [None, None, None]:
                yield _("A rule of “%(name)s” compares a word; that is for fields.") % told
            if condition.field and not _FIELD.fullmatch(condition.field):
                yield _("“%(field)s” is no field: names with dots between.") % {
                    "field": condition.field
                }
            for word in condition.word:
                if word not in words_of(of):
                    yield _("“%(of)s” never answers “%(word)s”: its words do not have it.") % {
                        **known,
                        "word": word,
                    }
    if rules and (rules[-1].when is not None or rules[-1].at_most is not None):
        yield (
            _(
                "The last rule of “%(name)s” must hold always, so that it is known where else it goes."
            )
            % told
        )


def _ways(spec: PipelineSpec, reach: dict[str, set[str]]) -> Iterator[str]:
    first = spec.steps[0].name
    for step in spec.steps[1:]:
        if step.name not in reach[first]:
            yield _("“%(name)s” is never reached.") % {"name": step.name}
    if END not in reach[first]:
        yield _("No rule leads to the end: it could only fail.")


def _places(spec: PipelineSpec, step: StepSpec, reach: dict[str, set[str]]) -> Iterator[str]:
    names = {each.name for each in spec.steps}
    for text, asks_anew in ((step.prompt, False), (step.again, True), (step.approval, False)):
        for place in places_in(text):
            told = {"name": step.name, "place": place}
            if place in KNOWN:
                if place == PROBLEM and not asks_anew:
                    yield (
                        _(
                            "“%(name)s” has {{problem}} in a text that is no “again”: there is none yet."
                        )
                        % told
                    )
            elif place not in names:
                yield _("“%(name)s” has {{%(place)s}}, and there is no such step.") % told
            elif step.name not in reach[place] and not (asks_anew and place == step.name):
                yield (
                    _(
                        "“%(name)s” has {{%(place)s}}, and that step runs later or not at all before it."
                    )
                    % told
                )
    for rule in step.next:
        of = rule.when.of if rule.when is not None else ""
        if of and of != step.name and step.name not in reach[of]:
            yield _(
                "A rule of “%(name)s” looks at “%(of)s”, which runs later or not at all before it."
            ) % {"name": step.name, "of": of}


def _answer(spec: PipelineSpec, reach: dict[str, set[str]]) -> Iterator[str]:
    name = spec.answering
    if not any(step.name == name and not step.approval for step in spec.steps):
        yield _("The answer is to be that of a step with an agent; “%(name)s” is none.") % {
            "name": name
        }
