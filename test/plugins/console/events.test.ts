import test from 'ava';
import { createParser } from 'eventsource-parser';
import { request } from 'undici';
import { z } from 'zod';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { door } from '../../support/door.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { read, until } from '../../support/until.ts';
import { ConsoleRig } from './console-rig.ts';

const doors = definePlugin({
  name: 'test',
  options: z.strictObject({}),
  register(context) {
    context.actor(door);
    for (const type of ['bell.ring', 'lamp.on'])
      context.effect(type, () => undefined, { onRecovery: 'fail' });
  },
});

interface Following {
  readonly seqs: number[];
  readonly gaps: { from: number; to: number }[];
  readonly status: number;
  ended: boolean;
}

/** Follows the log as a window does. */
async function follow(t: Scope, rig: ConsoleRig, path = '/api/events', headers = {}): Promise<Following> {
  const leave = new AbortController();
  t.teardown(() => leave.abort());
  const answer = await request(rig.url + path, {
    headers: { cookie: rig.cookie, ...headers },
    signal: leave.signal,
    bodyTimeout: 0,
  });
  const following: Following = { seqs: [], gaps: [], status: answer.statusCode, ended: false };
  const parser = createParser({
    onEvent({ id, event, data }) {
      if (event === 'record') following.seqs.push(JSON.parse(data).seq);
      else if (event === 'gap') following.gaps.push(JSON.parse(data));
      if (String(event === 'gap' ? following.gaps.at(-1)?.to : following.seqs.at(-1)) !== id)
        throw new Error(`event ${id} is another`);
    },
  });
  void (async () => {
    try {
      for await (const chunk of answer.body) parser.feed(String(chunk));
    } catch {
      // the test is over, or the instance
    }
    following.ended = true;
  })();
  return following;
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test('[C15] a window gets each new record once, in order, and over a restart those that it missed', async (t) => {
  const dataDir = tempDir(t);
  const rig = await ConsoleRig.start(t, { dataDir, others: [doors()] });
  await rig.login();
  const begin = await rig.durable();
  const first = await follow(t, rig);
  const { actors } = rig.runtime.services;
  for (let round = 0; round < 20; round += 1) actors.send(door, 'one', { type: 'KNOCK' });
  await until('the window has them', () => first.seqs.length >= 40);
  t.deepEqual(first.seqs, range(begin + 1, first.seqs.at(-1) ?? 0));

  const late = await follow(t, rig, '/api/events?after=1');
  actors.send(door, 'one', { type: 'KNOCK' });
  const all = await rig.durable();
  await until('both windows have it', () => [first, late].every(({ seqs }) => (seqs.at(-1) ?? 0) >= all));
  t.deepEqual(late.seqs, range(2, late.seqs.at(-1) ?? 0), 'it begins where it asked to');
  t.deepEqual(first.seqs, range(begin + 1, first.seqs.at(-1) ?? 0), 'the other gets nothing twice');

  await rig.runtime.stop('restart');
  await until('the stream ends with the instance', () => first.ended);
  const seen = first.seqs.at(-1) ?? 0;
  const again = await ConsoleRig.start(t, { dataDir, others: [doors()] });
  await again.login();
  const last = await again.durable();
  const second = await follow(t, again, '/api/events', { 'last-event-id': String(seen) });
  await read(
    'what came meanwhile',
    () => second.seqs,
    (seqs) => seqs.includes(last),
  );
  t.deepEqual(second.seqs.slice(0, last - seen), range(seen + 1, last));
});

test('[C15] of more records than a window can take it gets the newest, and is told which it missed', async (t) => {
  const rig = await ConsoleRig.start(t, { others: [doors()] });
  await rig.login();
  const { actors } = rig.runtime.services;
  for (let round = 0; round < 1_500; round += 1) {
    actors.send(door, `door-${round % 7}`, { type: 'OPEN', by: 'a guest' });
    actors.send(door, `door-${round % 7}`, { type: 'CLOSE' });
  }
  const last = await rig.durable();
  const window = await follow(t, rig, '/api/events?after=1');
  await until('the window is at the end', () => (window.seqs.at(-1) ?? 0) >= last);
  t.true(window.gaps.length > 0);
  const covered = [...window.seqs, ...window.gaps.flatMap(({ from, to }) => range(from, to))].sort(
    (a, b) => a - b,
  );
  t.deepEqual(covered, range(2, covered.at(-1) ?? 0), 'each is sent, or named as left out, once');
});

test('[C15] no more windows than 32 follow, and a stream ends with its session', async (t) => {
  const rig = await ConsoleRig.start(t);
  await rig.login();
  // A HEAD that opened a stream would take a place of it for as long as the login lasts: nobody reads it to its end.
  const { dispatcher, cookie } = rig;
  const head = await request(`${rig.url}/api/events`, { method: 'HEAD', dispatcher, headers: { cookie } });
  await head.body.dump();
  t.is(head.statusCode, 404);
  const windows = await Promise.all(range(1, 32).map(() => follow(t, rig)));
  t.true(windows.every(({ status }) => status === 200));
  t.is((await rig.send('/api/events')).body.error.code, 'HF_CONSOLE_STREAMS');
  await rig.send('/api/logout', { method: 'POST' });
  await until('every stream has ended', () => windows.every(({ ended }) => ended));
  await rig.login();
  t.is((await follow(t, rig)).status, 200);
});
