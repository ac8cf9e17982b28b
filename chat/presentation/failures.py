"""Why a turn ended before its answer, in the language of whoever reads it: providers and the loop say it in
English, and so do apps that may end one (`add_sentences`).

What a model's service said of itself stays as it said it.
"""

from __future__ import annotations

from django.utils.translation import gettext, gettext_noop

from accounts.provider_labels import told_label

from .sentences import Sentences, one_of

_SERVICE = (
    gettext_noop("The model service refused the key"),
    gettext_noop("The model service refused for want of credit"),
    gettext_noop("The model service takes no request of this length"),
    gettext_noop("The model service is failing or overloaded"),
    gettext_noop("The model service did not answer in time"),
    gettext_noop("The model service could not be reached"),
    gettext_noop("The model service is asked too often"),
    gettext_noop("The model service knows no such model"),
    gettext_noop("The model service refused the request"),
    gettext_noop("The reply broke off"),
)
_FAILURES = Sentences(
    # What a model's service answered, and what to do then.
    gettext_noop("%(service)s (HTTP %(status)s)."),
    gettext_noop("%(service)s: %(cause)s."),
    gettext_noop("%(service)s."),
    gettext_noop("Check credit and spending limits of the account behind this key."),
    gettext_noop("Check the provider key under Settings → Provider keys."),
    gettext_noop("Check the key's permissions: it may not use %(model)s."),
    gettext_noop("Check the agent's model name: nobody there knows %(model)s."),
    gettext_noop("Nothing answers at this address. Check the provider's base URL."),
    gettext_noop("Shorten the conversation or choose a larger model window."),
    gettext_noop("The request is larger than the service takes. Attach less."),
    gettext_noop("The service took too long. Try again."),
    gettext_noop("Wait a little: this key may ask only so often."),
    gettext_noop("The service is failing or overloaded. Try again later."),
    gettext_noop("The model service sent nothing for %(seconds)s seconds."),
    gettext_noop("Try again, or raise the provider's timeout."),
    gettext_noop("Check the network and the provider's base URL."),
    gettext_noop("What had arrived is kept. Ask to continue."),
    gettext_noop("The model service sent a reply that cannot be taken: %(cause)s."),
    gettext_noop("What had arrived is kept. Ask whoever runs the model service."),
    gettext_noop("The reply is longer than %(count)s characters and was cut."),
    gettext_noop("Ask for less at once, or ask whoever runs the model service."),
    gettext_noop("The reply ended before it was complete."),
    gettext_noop("The reply had not ended after %(seconds)s seconds, and was cut."),
    gettext_noop("What had arrived is kept. Ask for less at once, or raise %(setting)s."),
    gettext_noop("The provider failed unexpectedly: %(cause)s"),
    # What was not sent.
    gettext_noop("There is no provider %(provider)s."),
    gettext_noop("Choose one of: %(choices)s."),
    gettext_noop("%(provider)s needs a key and there is none."),
    gettext_noop("Add one under Settings → Provider keys, or choose the demo provider."),
    gettext_noop("The key for %(provider)s holds characters that no key has, such as spaces."),
    gettext_noop("Enter it again under Settings → Provider keys."),
    gettext_noop("%(provider)s needs a base URL and there is none."),
    gettext_noop("Set it, for example %(example)s for Ollama."),
    gettext_noop("The agent names no model, and %(provider)s has no default one."),
    gettext_noop("Staff can enter a model in the agent's settings."),
    gettext_noop("%(provider)s is not configured."),
    gettext_noop(
        "The base URL of the provider key leads to a private or local address, which is refused."
    ),
    gettext_noop(
        "Check it, or ask the operator to list it, with its port, in AGENTSITE_PRIVATE_PROVIDER_HOSTS."
    ),
    gettext_noop("MCP servers are not told to a model service at this address."),
    gettext_noop("This provider calls no tools of MCP servers by itself."),
    gettext_noop("This provider cannot be sent a %(kind)s by %(source)s."),
    gettext_noop("The file %(file)s was not read before the request was built."),
    gettext_noop("Attach the file again."),
    gettext_noop("Attach the file itself, or use another provider."),
    # Limits of the agent.
    gettext_noop("The model declined to answer this."),
    gettext_noop("Say it differently, or ask something else."),
    gettext_noop("The answer is longer than the output limit, even with continuations."),
    gettext_noop("Ask it to go on, or raise the agent's output limit."),
    gettext_noop("The limit of %(count)s model steps for one message is reached."),
    gettext_noop("Send another message to go on, or have staff raise the agent's step limit."),
    gettext_noop("This message has used %(count)s of its %(limit)s tokens."),
    gettext_noop(
        "Go on with “Try again”, which starts a new budget, or have staff raise the agent's."
    ),
    gettext_noop("This message has been worked on for longer than %(count)s seconds."),
    gettext_noop("Go on with “Try again”, or have staff raise the agent's time limit."),
    # This server.
    gettext_noop("A worker of the environment carries this out."),
    gettext_noop("Subagents work at this."),
    gettext_noop("The person this agent works for has left the organisation."),
    gettext_noop("Nothing runs here until she is a member again."),
    gettext_noop("The run failed because of a fault in this server."),
    gettext_noop("Try again; if it stays, tell the people who run this server."),
    gettext_noop("At least %(count)s processes in a row ended while they worked on this."),
    gettext_noop("Tell the people who run this server: it is listed there as a dead letter."),
    places={
        "service": one_of(_SERVICE),
        "status": r"\d+",
        "seconds": r"[\d.]+",
        **dict.fromkeys(("count", "limit"), r"[\d,]+"),
    },
    told={"service": gettext, "provider": told_label},
)
_known = [_FAILURES]


def add_sentences(sentences: Sentences) -> None:
    """Let an app have its own reasons told: what ends a turn is not chat's alone to know."""
    if sentences not in _known:
        _known.append(sentences)


def in_words(said: str) -> str:
    """The message or the hint of a stop, in the language of the moment; as it was said if nobody knows it."""
    for sentences in _known:
        if (told := sentences.told(said)) is not None:
            return told
    return said
