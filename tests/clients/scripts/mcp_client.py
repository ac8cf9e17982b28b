"""What an MCP client does with our agents, through whatever versions of the SDKs run this file.

Stands alone, as `managed.py` does; the argument is the era: a revision, or `legacy` for the handshake's. By
the first a person is asked by the client whether a call may run; by the second she is led to the page.
"""

# Its types are those of several versions at once.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import os
import sys

import anthropic
import httpx2
from anthropic.lib.tools.mcp import async_mcp_tool, mcp_resource_to_content
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

ADDRESS, TOKEN, READER = (os.environ[f"CLIENT_{name}"] for name in ("ADDRESS", "TOKEN", "READER"))
NAME = os.environ["CLIENT_NAME"]
MODE = sys.argv[1]
ASKS = {
    "type": "agent_toolset_20260401",
    "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}},
}
asked = []
heard = []


async def allow(_context, params):
    asked.append(params.message)
    return ElicitResult(action="accept", content={"decision": "allow"})


async def hear(progress, _total, _message):
    heard.append(progress)


def done(step):
    print(step, flush=True)


async def use(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert "start_conversation" in names, names
    done("lists tools")
    hello = {"text": f"{NAME}: hello"}
    begun = await client.call_tool("start_conversation", hello, progress_callback=hear)
    state = begun.structured_content
    assert state["answer"] == "Hello there.", state
    assert heard == sorted(heard) != [], heard
    done("asks an agent, and hears how far it is")
    uri = f"agentsite://conversations/{state['conversation_id']}"
    listed = [str(each.uri) for each in (await client.list_resources()).resources]
    assert uri in listed, listed
    read = await client.read_resource(uri)
    assert "Hello there." in read.contents[0].text
    assert mcp_resource_to_content(read)
    done("reads the conversation")
    agents = anthropic.Anthropic(base_url=ADDRESS, api_key=TOKEN).beta.agents
    made = agents.create(name=f"{NAME} asks"[:100], model="claude-sonnet-5-5", tools=[ASKS])
    given = {"text": f"{NAME}: write", "agent": made.id}
    state = (await client.call_tool("start_conversation", given)).structured_content
    if MODE == "legacy":
        assert state["status"] == "waits_for_person", state
        assert state["waits_for"][0]["url"].startswith(ADDRESS), state
        done("is led to the page where a call waits")
    else:
        assert state["answer"] == "Written.", state
        assert "a.txt" in asked[0], asked
        done("asks its person whether a call may run")
    tool = next(each for each in (await client.list_tools()).tools if each.name == "list_agents")
    told = await async_mcp_tool(tool, client.session).call({})
    assert "asks" in str(told)
    done("anthropic's helpers")
    code = 0
    try:
        await client.read_resource("agentsite://conversations/sesn_nobody")
    except MCPError as problem:
        code = problem.code
    assert code == (-32002 if MODE == "legacy" else -32602), code
    done("what is not there is not found")


def opened(token):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    transport = streamable_http_client(f"{ADDRESS}/mcp", http_client=http)
    return Client(transport, mode=MODE, elicitation_callback=allow)


async def main():
    async with opened(TOKEN) as client:
        await use(client)
    async with opened(READER) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[:2] == ["list_agents", "read_conversation"], names
    done("a reader's token reads")


asyncio.run(main())
