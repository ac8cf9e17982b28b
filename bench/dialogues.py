"""Long dialogues with facts whose place is known, and questions about them: the corpus of the recall bench.

Generated from a seed, so that everybody has the same one. A fact is stated once, stated as the answer to a
colleague's question, changed later, contradicted and put right, or forgotten (its turn is taken out). The
sentence that is asked with is not the one it was stated with, and one in twenty shares little but the name
of the thing. Around the facts stands talk about the same things that states nothing. Questions without an
answer pair things that are talked about with what was never said of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from memory.retrieval.turns import Turn

CONVERSATIONS = 200
TURNS = 90
"""About so many in each."""
QUESTIONS = 500
BEGAN = datetime(2025, 1, 6, 9, tzinfo=UTC)

_FIRST = "Amber Basil Cedar Dahlia Ember Fjord Garnet Hazel Indigo Juniper Kestrel Lagoon Maple Nimbus Onyx "
_SECOND = "Bridge Harbor Lantern Meadow Orbit Pioneer Quarry Ridge Signal Tundra "
_PEOPLE = "Ana Ben Chloe Dmitri Elif Farid Greta Hugo Ines Jonas Kemal Lucia Marek Nadia Omar Petra"
PEOPLE = tuple(_PEOPLE.split())


@dataclass(frozen=True)
class Way:
    """One choice of words for what can be known of a thing."""

    stated: str
    asked: str
    """By a colleague, before a short answer."""
    looked_for: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    ways: tuple[Way, ...]
    values: tuple[str, ...]


OTHER_WORDS = 0.05
"""Share of questions that are put in another way than the fact was stated in: little or nothing but the name
of the thing is the same."""
_CITIES = "Lisbon Oslo Porto Turin Graz Ghent Malmo Bilbao Krakow Riga Tartu Nantes"
_COLOURS = ("blue", "green", "amber", "violet", "red", "grey")
ATTRIBUTES = (
    Attribute(
        (
            Way(
                "The deadline of {e} is {v}.",
                "What did they say about the deadline of {e}?",
                ("What is the deadline of {e}?", "Which deadline does {e} have?"),
            ),
            Way("{e} is due on {v}, that is settled.", "When is {e} due?", ("When is {e} due?",)),
            Way(
                "We must deliver {e} by {v}.",
                "By when do we have to deliver {e}?",
                ("On which day must {e} be delivered?", "When do we deliver {e}?"),
            ),
        ),
        tuple(f"{day} {month}" for day in (3, 9, 14, 22) for month in ("March", "June", "October")),
    ),
    Attribute(
        (
            Way(
                "Finance gave {e} a budget of {v} euros.",
                "How large is the budget of {e}?",
                ("What is the budget of {e}?", "How large is the budget for {e}?"),
            ),
            Way(
                "{e} may cost {v} euros.",
                "What may {e} cost?",
                ("How much may {e} cost?", "What are the costs of {e} limited to?"),
            ),
        ),
        tuple(f"{n},500" for n in range(11, 60, 4)),
    ),
    Attribute(
        (
            Way(
                "{v} owns {e}, ask there first.",
                "Who is the owner of {e}?",
                ("Who owns {e}?", "By whom is {e} owned?"),
            ),
            Way(
                "{v} is responsible for {e}.",
                "Who is responsible for {e}?",
                ("Who is responsible for {e}?", "Whose responsibility is {e}?"),
            ),
        ),
        PEOPLE,
    ),
    Attribute(
        (
            Way(
                "The database of {e} runs on {v}.",
                "Where is the database of {e}?",
                ("On which host is the database of {e}?", "Where does the {e} database run?"),
            ),
            Way(
                "{e} keeps its tables on {v}.",
                "Which host has the tables of {e}?",
                ("Where does {e} keep its tables?", "Which host keeps the tables of {e}?"),
            ),
        ),
        tuple(f"db-{word}-{n}.internal" for n, word in enumerate(_COLOURS, 3)),
    ),
    Attribute(
        (
            Way(
                "The workshop for {e} takes place in {v}.",
                "Where will the workshop for {e} be?",
                ("Where is the workshop for {e}?", "In which city is the {e} workshop?"),
            ),
            Way(
                "We meet the team of {e} in {v}.",
                "In which city do we meet the {e} team?",
                ("Where do we meet the team of {e}?", "In which city are we meeting the {e} team?"),
            ),
        ),
        tuple(_CITIES.split()),
    ),
    Attribute(
        (
            Way(
                "{e} is written in {v}.",
                "What is {e} written in?",
                ("What is {e} written in?", "In which language is {e} being written?"),
            ),
            Way(
                "We chose {v} as the language of {e}.",
                "Which language did we choose for {e}?",
                ("Which language did we choose for {e}?", "What is the language of {e}?"),
            ),
        ),
        ("Kotlin", "Elixir", "Haskell", "Rust", "Erlang", "Scala", "Clojure", "OCaml"),
    ),
    Attribute(
        (
            Way(
                "The customer of {e} is {v}.",
                "Which customer is {e} for?",
                ("Who is the customer of {e}?", "Which customer did {e} get?"),
            ),
            Way(
                "{v} ordered {e}.",
                "Who ordered {e}?",
                ("Who ordered {e}?", "Who placed the order for {e}?"),
            ),
        ),
        ("Norwind", "Halcyon Foods", "Brightmill", "Castor Rail", "Velora", "Pinecrest Bank"),
    ),
    Attribute(
        (
            Way(
                "{e} is released on {v} mornings.",
                "On which day is {e} released?",
                ("On which day of the week is {e} released?", "When are releases of {e}?"),
            ),
            Way(
                "{e} goes live every {v}.",
                "When does {e} go live?",
                ("When does {e} go live?", "On which days does {e} go live?"),
            ),
        ),
        ("Monday", "Tuesday", "Wednesday", "Thursday"),
    ),
)
_CHANGED = (
    "Change of plan: {s}",
    "News from this morning: {s}",
    "That is different now. {s}",
    "Update: {s}",
)
_CORRECTED = (
    "I was wrong about that. {s}",
    "Correction: {s}",
    "Sorry, that was a mistake of mine. {s}",
)
_NOW = ("Right now: {q}", "{q} I mean currently.", "As of today, {q}", "What is the latest: {q}")
_ANSWERS = ("It is {v}.", "{v}, as far as I know.", "They told me {v}.", "{v}.")
_TALK = (
    "I spent the morning on {e}, it goes well.",
    "Can you summarise what we discussed about {e} last week?",
    "The tests of {e} are green again.",
    "Let us talk about {e} after lunch.",
    "Thanks, that helps a lot.",
    "I rewrote the introduction, please have a look.",
    "The build was slow today, about twenty minutes.",
    "Could you sort the list by name and send it again?",
    "{p} liked the draft of {e} very much.",
    "I moved the notes about {e} into another folder.",
    "What do you think of the colours on the first page?",
    "Please shorten the second paragraph.",
    "{p} is on holiday until next week.",
    "The meeting was long, but we agreed in the end.",
    "I will write the tests tomorrow.",
    "There was a question about {e} in the review, I answered it.",
    "Sure, I can do that. Which part first?",
    "Here is the table you asked for.",
    "Done. I also fixed two typing errors.",
    "The weather is awful, the train was late again.",
)


@dataclass
class Question:
    text: str
    evidence: frozenset[str]
    """Ids of turns that answer it; none: nothing does."""
    now: bool = False
    newest: str = ""
    """Of what changed: the turn that is true now."""
    in_other_words: bool = False


@dataclass
class Corpus:
    turns: list[Turn] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def generate(
    seed: int = 14, *, conversations: int = CONVERSATIONS, questions: int = QUESTIONS
) -> Corpus:
    chance = random.Random(seed)  # noqa: S311 - no secret
    things = [f"{one} {two}" for one in _FIRST.split() for two in _SECOND.split()]
    chance.shuffle(things)
    lines = {number: _talk(chance, things) for number in range(conversations)}
    asked: list[Question] = []
    said: set[tuple[str, Attribute]] = set()
    while len(asked) < questions:
        thing, attribute = chance.choice(things), chance.choice(ATTRIBUTES)
        if (thing, attribute) in said:
            continue
        said.add((thing, attribute))
        asked.append(_place(chance, lines, thing, attribute))
    corpus = Corpus(questions=asked)
    for number in range(conversations):
        began = BEGAN + timedelta(days=number)
        for at, (key, speaker, text) in enumerate(lines[number]):
            if text:
                when = began + timedelta(minutes=at)
                corpus.turns.append(Turn(key, text, speaker, when, f"c{number}"))
    return corpus


Line = tuple[str, str, str]


def _talk(chance: random.Random, things: list[str]) -> list[Line]:
    mine = chance.sample(things, 6)
    lines = []
    for at in range(chance.randint(TURNS - 20, TURNS + 20)):
        text = chance.choice(_TALK).format(e=chance.choice(mine), p=chance.choice(PEOPLE))
        lines.append(("", "person" if at % 2 == 0 else "agent", text))
    return lines


def _place(
    chance: random.Random, lines: dict[int, list[Line]], thing: str, attribute: Attribute
) -> Question:
    """Put what is known into the dialogues, and say how it is asked for."""
    way, other = chance.sample(attribute.ways, 2)
    asked = other if chance.random() < OTHER_WORDS else way
    question = chance.choice(asked.looked_for).format(e=thing)
    first, second = chance.sample(attribute.values, 2)
    fate = chance.choices(
        ("once", "answered", "changed", "contradicted", "forgotten", "never"),
        (30, 20, 20, 10, 8, 12),
    )[0]
    key = f"{thing}/{ATTRIBUTES.index(attribute)}".replace(" ", "-").lower()
    early, late = sorted(chance.sample(sorted(lines), 2))
    if fate == "never":
        return Question(question, frozenset())
    if fate == "answered":
        asks = way.asked.format(e=thing)
        answer = chance.choice(_ANSWERS).format(v=first)
        _insert(chance, lines[early], [("", "person", asks), (key, "agent", answer)])
        return Question(question, frozenset({key}), in_other_words=asked is other)
    text = way.stated.format(e=thing, v=first)
    _insert(chance, lines[early], [(key, "person", "" if fate == "forgotten" else text)])
    if fate == "forgotten":
        return Question(question, frozenset())
    if fate == "once":
        return Question(question, frozenset({key}), in_other_words=asked is other)
    words = chance.choice(_CHANGED if fate == "changed" else _CORRECTED)
    again = words.format(s=way.stated.format(e=thing, v=second))
    newest = f"{key}/2"
    _insert(chance, lines[late], [(newest, "person", again)])
    now = chance.choice(_NOW).format(q=question)
    return Question(
        now, frozenset({key, newest}), now=True, newest=newest, in_other_words=asked is other
    )


def _insert(chance: random.Random, lines: list[Line], more: list[Line]) -> None:
    at = chance.randrange(len(lines))
    lines[at:at] = more
