// What a program does with a session, through the TypeScript SDK: the steps of managed.py.

import assert from 'node:assert/strict';
import { writeFileSync, createReadStream } from 'node:fs';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

const {
  CLIENT_ADDRESS: baseURL,
  CLIENT_TOKEN: apiKey,
  CLIENT_READER: reader,
  CLIENT_NAME: name,
  CLIENT_ENVIRONMENT: environment_id,
  CLIENT_DELIVERY: delivery,
} = process.env;
const asks = {
  type: 'agent_toolset_20260401',
  default_config: { enabled: true, permission_policy: { type: 'always_ask' } },
};
const weather = {
  type: 'custom',
  name: 'weather',
  description: 'Says the weather.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
};
const client = new Anthropic({ baseURL, apiKey });
const { sessions, agents, environments, files, webhooks } = client.beta;

const message = (text) => ({ type: 'user.message', content: [{ type: 'text', text }] });

const allowing = (id) => ({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' });

const begin = (agent, opening) =>
  sessions.create({
    agent: agent.id,
    environment_id,
    ...(opening && { initial_events: [message(`${name}: ${opening}`)] }),
  });

async function all(pages) {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
}

const logged = (session) => all(sessions.events.list(session.id, { limit: 100 }));

async function rested(session, reason) {
  const end = Date.now() + 60_000;
  for (;;) {
    const last = (await logged(session)).at(-1);
    if (last?.type === 'session.status_idle' && last.stop_reason.type === reason) return last;
    assert(Date.now() < end, `${last?.type} and not ${reason}`);
    await pause(100);
  }
}

async function refused(kind, attempt) {
  try {
    await attempt();
  } catch (error) {
    assert(error instanceof kind, `${kind.name}, not ${error}`);
    assert.equal(error.error.type, 'error');
    return error;
  }
  assert.fail(`${kind.name} was not raised`);
}

async function agentAndEnvironment() {
  const environment = await environments.retrieve(environment_id);
  assert((await all(environments.list())).some((one) => one.id === environment.id));
  const agent = await agents.create({
    name: `${name} ${Date.now()}`,
    model: 'claude-sonnet-5-5',
    tools: [asks, weather],
  });
  const changed = await agents.update(agent.id, {
    version: agent.version,
    system: 'Be brief.',
    description: "A smoke test's.",
  });
  assert.equal((await agents.retrieve(agent.id)).version, changed.version);
  return changed;
}

async function streamWithToolUseAndConfirmation(agent) {
  const session = await begin(agent);
  const seen = [];
  const stream = await sessions.events.stream(session.id);
  await sessions.events.send(session.id, { events: [message(`${name}: write`)] });
  for await (const event of stream) {
    if (event.type === 'ping') continue;
    seen.push(event);
    if (event.type !== 'session.status_idle') continue;
    if (event.stop_reason.type !== 'requires_action') break;
    const [call] = event.stop_reason.event_ids;
    const answer = allowing(call);
    const sent = await sessions.events.send(session.id, { events: [answer] });
    const again = await sessions.events.send(session.id, { events: [answer] });
    assert.equal(sent.data[0].id, again.data[0].id);
    await refused(Anthropic.ConflictError, () =>
      sessions.events.send(session.id, { events: [{ ...answer, result: 'deny' }] }),
    );
  }
  const kinds = seen.map((event) => event.type);
  assert.equal(kinds[0], 'user.message');
  assert(kinds.indexOf('agent.tool_use') < kinds.indexOf('agent.tool_result'), kinds.join());
  assert.equal(seen.find((event) => event.type === 'agent.tool_result').is_error, false);
  const words = seen.filter((event) => event.type === 'agent.message').at(-1);
  assert.equal(words.content[0].text, 'Written.');
  assert.deepEqual(seen.map((event) => event.id), (await logged(session)).map((event) => event.id));
  return session;
}

async function aDenial(agent) {
  const session = await begin(agent, 'deny');
  const [call] = (await rested(session, 'requires_action')).stop_reason.event_ids;
  const denial = { ...allowing(call), result: 'deny', deny_message: 'Not today.' };
  await sessions.events.send(session.id, { events: [denial] });
  await rested(session, 'end_turn');
  const result = (await logged(session)).find((event) => event.type === 'agent.tool_result');
  assert(result.is_error && result.content[0].text.includes('Not today.'));
}

async function aCustomTool(agent) {
  const session = await begin(agent, 'weather');
  const [call] = (await rested(session, 'requires_action')).stop_reason.event_ids;
  const content = [{ type: 'text', text: 'It snows.' }];
  await sessions.events.send(session.id, {
    events: [{ type: 'user.custom_tool_result', custom_tool_use_id: call, content }],
  });
  await rested(session, 'end_turn');
}

async function theToolRunner(agent) {
  const session = await begin(agent, 'both');
  const tool = betaTool({
    name: 'weather',
    description: 'Say the weather in a city.',
    inputSchema: weather.input_schema,
    run: ({ city }) => `It snows in ${city}.`,
  });
  const posted = {};
  const runner = sessions.events.toolRunner(session.id, { tools: [tool], maxIdleMs: 1000 });
  for await (const call of runner) {
    posted[call.name] = call.posted;
    if (call.name !== 'weather') continue;
    // What it answered has the other call asked about anew: others wrote it.
    const rest = await rested(session, 'requires_action');
    await sessions.events.send(session.id, { events: rest.stop_reason.event_ids.map(allowing) });
  }
  assert.equal(posted.weather, true);
  await rested(session, 'end_turn');
  const found = await logged(session);
  const given = found.find((event) => event.type === 'user.custom_tool_result');
  assert.equal(given.content[0].text, 'It snows in Oslo.');
  assert.equal(found.find((event) => event.type === 'agent.tool_result').is_error, false);
}

async function anInterrupt(agent) {
  const session = await begin(agent, 'count');
  while (!(await logged(session)).some((event) => event.type === 'span.model_request_start'))
    await pause(100);
  await refused(Anthropic.ConflictError, () => sessions.delete(session.id));
  await sessions.events.send(session.id, { events: [{ type: 'user.interrupt' }] });
  await rested(session, 'end_turn');
  assert.equal((await sessions.delete(session.id)).id, session.id);
  await refused(Anthropic.NotFoundError, () => sessions.retrieve(session.id));
}

async function someFiles(agent) {
  writeFileSync('notes.txt', 'remember this');
  const file = await files.upload({ file: createReadStream('notes.txt') });
  assert.equal(file.filename, 'notes.txt');
  assert.equal(await (await files.download(file.id)).text(), 'remember this');
  const session = await sessions.create({
    agent: agent.id,
    environment_id,
    resources: [{ type: 'file', file_id: file.id }],
  });
  assert(session.resources[0].mount_path.endsWith('/notes.txt'));
  await files.delete(file.id);
  await refused(Anthropic.NotFoundError, () => files.retrieveMetadata(file.id));
}

async function paging(agent, session) {
  const mine = [session.id];
  for (let count = 0; count < 3; count += 1) mine.push((await begin(agent)).id);
  const first = await sessions.list({ agent_id: agent.id, limit: 2 });
  assert(first.data.length === 2 && first.hasNextPage());
  const listed = (await all(sessions.list({ agent_id: agent.id, limit: 2 }))).map((one) => one.id);
  assert.equal(new Set(listed).size, listed.length);
  assert(mine.every((id) => listed.includes(id)));
  const whole = (await logged(session)).map((event) => event.id);
  const ids = async (params) =>
    (await all(sessions.events.list(session.id, params))).map((event) => event.id);
  assert.deepEqual(await ids({ limit: 3 }), whole);
  assert.deepEqual(await ids({ limit: 3, order: 'desc' }), whole.toReversed());
}

async function classesOfErrors(agent, session) {
  const other = (apiKey) => new Anthropic({ baseURL, apiKey }).beta.sessions;
  await refused(Anthropic.AuthenticationError, () => other('ags_wrong').retrieve(session.id));
  await refused(Anthropic.PermissionDeniedError, () =>
    other(reader).create({ agent: agent.id, environment_id }),
  );
  const gone = await refused(Anthropic.NotFoundError, () => sessions.retrieve('sesn_1'));
  assert.equal(gone.error.error.type, 'not_found_error');
  assert.equal(gone.requestID, gone.error.request_id);
  const bad = await refused(Anthropic.BadRequestError, () =>
    sessions.events.send(session.id, { events: [message('')] }),
  );
  assert.equal(bad.error.error.type, 'invalid_request_error');
}

function webhooksUnwrap() {
  const { secret, body, headers } = JSON.parse(delivery);
  const event = webhooks.unwrap(body, { headers, key: secret });
  assert.equal(event.data.type, 'session.created');
  const changed = body.replace('session.created', 'session.deleted');
  assert.throws(() => webhooks.unwrap(changed, { headers, key: secret }), /[Ss]ignature/);
}

const step = (words) => console.log(words);
const agent = await agentAndEnvironment();
step('agent and environment');
const session = await streamWithToolUseAndConfirmation(agent);
step('stream, tool use, confirmation');
await aDenial(agent);
step('denial');
await aCustomTool(agent);
step('custom tool');
await theToolRunner(agent);
step('tool runner');
await anInterrupt(agent);
step('interrupt');
await someFiles(agent);
step('files');
await paging(agent, session);
step('paging');
await classesOfErrors(agent, session);
step('errors');
webhooksUnwrap();
step('webhook');
