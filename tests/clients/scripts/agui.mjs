// A front end that runs an agent through AG-UI's own client: text, an approval, edited arguments, a
// denial, and what the client itself verifies of the order of events.

import assert from 'node:assert/strict';
import process from 'node:process';
import { HttpAgent, buildResumeArray } from '@ag-ui/client';
import Anthropic from '@anthropic-ai/sdk';

const {
  CLIENT_ADDRESS: address,
  CLIENT_TOKEN: token,
  CLIENT_NAME: name,
  CLIENT_ENVIRONMENT: environment,
} = process.env;
const managed = new Anthropic({ baseURL: address, apiKey: token }).beta;
const asking = await managed.agents.create({
  name: `${name} ${Date.now()}`,
  model: 'claude-sonnet-5-5',
  tools: [
    {
      type: 'agent_toolset_20260401',
      default_config: { enabled: true, permission_policy: { type: 'always_ask' } },
    },
  ],
});

const frontEnd = () =>
  new HttpAgent({
    url: `${address}/agui?agent=${asking.id}&environment=${environment}`,
    headers: { Authorization: `Bearer ${token}` },
  });

async function say(agent, opening) {
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: `${name}: ${opening}` });
  return ended(agent);
}

async function ended(agent, parameters) {
  let last;
  await agent.runAgent(parameters, {
    onRunFinishedEvent: ({ event }) => void (last = event),
    onRunErrorEvent: ({ event }) => void (last = event),
  });
  return last;
}

const answered = (agent, payload) => {
  const [interrupt] = agent.pendingInterrupts;
  const answers = { [interrupt.id]: { status: 'resolved', payload } };
  return ended(agent, { resume: buildResumeArray(agent.pendingInterrupts, answers) });
};

const resultOf = (agent) => agent.messages.findLast((one) => one.role === 'tool');

const step = (words) => console.log(words);

const hello = frontEnd();
assert.equal((await say(hello, 'hello')).outcome.type, 'success');
assert.equal(hello.messages.at(-1).content, 'Hello there.');
step('text');

const approving = frontEnd();
assert.equal((await say(approving, 'write')).outcome.type, 'interrupt');
assert.equal(approving.pendingInterrupts.length, 1);
const [call] = approving.messages.findLast((one) => one.toolCalls).toolCalls;
assert.equal(call.function.name, 'write_file');
assert.equal((await answered(approving, { approved: true })).outcome.type, 'success');
assert.equal(resultOf(approving).toolCallId, call.id);
assert.equal(approving.messages.at(-1).content, 'Written.');
assert.equal(approving.pendingInterrupts.length, 0);
step('approval');

const editing = frontEnd();
await say(editing, 'edit');
const editedArgs = { path: 'edited.txt', content: 'y' };
assert.equal((await answered(editing, { approved: true, editedArgs })).outcome.type, 'success');
assert(resultOf(editing).content.includes('edited.txt'), resultOf(editing).content);
step('edited arguments');

const denying = frontEnd();
await say(denying, 'deny');
await answered(denying, { approved: false, reason: 'Not today.' });
assert(resultOf(denying).content.includes('Not today.'));
step('denial');

const showing = frontEnd();
showing.setState({ open: null });
const tools = [
  {
    name: 'show_file',
    description: 'Shows a file.',
    parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  },
];
showing.addMessage({ id: crypto.randomUUID(), role: 'user', content: `${name}: show` });
const context = [{ description: 'The page', value: 'Files' }];
const shown = await ended(showing, { tools, context });
assert.equal(shown.outcome.type, 'success');
const [pending] = shown.outcome.pendingToolCallIds;
const [asked] = showing.messages.findLast((one) => one.toolCalls).toolCalls;
assert.equal(asked.id, pending);
assert.deepEqual(JSON.parse(asked.function.arguments), { path: 'a.py' });
assert.deepEqual(showing.state, { open: null });
showing.setState({ open: 'a.py' });
showing.addMessage({
  id: crypto.randomUUID(),
  role: 'tool',
  toolCallId: pending,
  content: 'It is open.',
});
assert.equal((await ended(showing, { tools, context })).outcome.type, 'success');
assert.equal(showing.messages.at(-1).content, 'You see.');
assert.equal(showing.messages.filter((one) => one.role === 'tool').length, 1);
assert.deepEqual(showing.state, { open: 'a.py' });
step('front-end tool');
