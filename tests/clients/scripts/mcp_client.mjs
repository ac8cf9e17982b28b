// What an MCP client does with our agents, through the TypeScript SDKs and the Inspector's command line.
// The argument is which: `handshake` (the SDK of the revisions before), `rounds` (that of 2026-07-28) or `inspector`.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import path from 'node:path';

const { CLIENT_ADDRESS: address, CLIENT_TOKEN: token, CLIENT_NAME: name } = process.env;
const which = process.argv[2];
const url = `${address}/mcp`;
const done = (step) => console.log(step);

const sdk = async () => {
  if (which === 'rounds') return import('@modelcontextprotocol/client');
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return { Client, StreamableHTTPClientTransport };
};

const connected = async () => {
  const { Client, StreamableHTTPClientTransport } = await sdk();
  const options = which === 'rounds' ? { versionNegotiation: { mode: 'auto' } } : {};
  const client = new Client({ name: 'clients', version: '1' }, { capabilities: {}, ...options });
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
};

const use = async () => {
  const client = await connected();
  if (which === 'rounds') assert.equal(client.getProtocolEra(), 'modern');
  const { tools } = await client.listTools();
  assert.ok(tools.some((tool) => tool.name === 'start_conversation'));
  done('lists tools');
  const heard = [];
  const call = { name: 'start_conversation', arguments: { text: `${name}: hello` } };
  const onprogress = ({ progress }) => heard.push(progress);
  const begun =
    which === 'rounds'
      ? await client.callTool(call, { onprogress })
      : await client.callTool(call, undefined, { onprogress });
  const state = begun.structuredContent;
  assert.equal(state.answer, 'Hello there.');
  assert.ok(heard.length > 0);
  done('asks an agent, and hears how far it is');
  const uri = `agentsite://conversations/${state.conversation_id}`;
  const { resources } = await client.listResources();
  assert.ok(resources.some((each) => each.uri === uri));
  const { contents } = await client.readResource({ uri });
  assert.match(contents[0].text, /Hello there\./);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.equal(resourceTemplates.length, 1);
  done('reads the conversation');
  await assert.rejects(client.readResource({ uri: 'agentsite://conversations/sesn_nobody' }));
  done('what is not there is not found');
  await client.close();
};

const inspect = (...args) => {
  const here = path.dirname(fileURLToPath(import.meta.url));
  const launcher = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';
  const header = `Authorization: Bearer ${token}`;
  const command = [path.join(here, launcher), '--cli', url, '--transport', 'http', '--header', header, ...args];
  return JSON.parse(execFileSync(process.execPath, command, { encoding: 'utf8', timeout: 120_000 }));
};

const inspected = () => {
  const { tools } = inspect('--method', 'tools/list');
  assert.ok(tools.some((tool) => tool.name === 'start_conversation'));
  done('lists tools');
  const begun = inspect(
    ...['--method', 'tools/call', '--tool-name', 'start_conversation', '--tool-arg', `text=${name}: hello`],
  );
  const state = begun.structuredContent;
  assert.equal(state.answer, 'Hello there.');
  done('asks an agent');
  const read = inspect('--method', 'resources/read', '--uri', `agentsite://conversations/${state.conversation_id}`);
  assert.match(JSON.stringify(read), /Hello there\./);
  done('reads the conversation');
};

await (which === 'inspector' ? inspected() : use());
