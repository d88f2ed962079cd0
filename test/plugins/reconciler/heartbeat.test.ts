import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { routerChannels } from '../../../src/core/contracts/router.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { FieldRouter, fieldRouterPlugin } from './field-router.ts';
import { quick, until } from './rig.ts';

test('[R27] the reconciler beats after each event and every 240 s without one, with the token as it is at each push', async (t) => {
  const asked: URL[] = [];
  let reply = { status: 200, body: '{"ok":true}' };
  const server = createServer((request, response) => {
    asked.push(new URL(request.url!, 'http://x'));
    response.writeHead(reply.status).end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dataDir = tempDir(t);
  const file = join(dataDir, 'secrets', 'push', 'router-ula');
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(file, 'first\n', { mode: 0o600 });

  const clock = new VirtualClock();
  const lines: string[] = [];
  const entries = [
    fieldRouterPlugin(new FieldRouter()),
    reconciler({ ...quick, resyncMs: 80_000_000 }),
    uptime({ url }),
  ];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const destination = { write: (line: string) => void lines.push(line) };
  const runtime = createRuntime({
    plugins,
    dataDir,
    clock,
    logger: createLogger({ level: 'debug', destination }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { actors, bus, log } = runtime.services;
  const state = () => actors.snapshot('reconciler.heartbeat/router-ula')!;
  /** Moves time on until so many beats were asked for, and their answers are recorded. */
  const beats = async (count: number, ms: number): Promise<void> => {
    await log.whenDurable(log.lastSeq());
    clock.jump(ms);
    await until(`${count} beats`, () => asked.length === count);
    await until('the answer is recorded', () => state().value !== 'pushing');
    await log.whenDurable(log.lastSeq());
  };

  await beats(1, 5_000);
  t.is(asked[0]!.pathname, '/api/push/first');
  t.is(asked[0]!.searchParams.get('status'), 'up');
  await beats(2, 240_000);
  t.regex(asked[1]!.searchParams.get('msg')!, /^\d of 5 legs whole, no event since the last beat$/);

  writeFileSync(file, 'second\n');
  for (let count = 0; count < 30; count += 1)
    bus.publish(routerChannels.ifaceChangeApplied, { intf: 'eth1.10' });
  await beats(3, 1_000);
  t.is(asked[2]!.pathname, '/api/push/second');
  t.regex(asked[2]!.searchParams.get('msg')!, /30 events since the last beat/);

  reply = { status: 404, body: '{"ok":false,"msg":"database is locked"}' };
  await beats(4, 240_000);
  // A beat without news is recorded only when its answer is.
  const told = () => JSON.stringify(runtime.health().reconcilerPush);
  await until('the refusal is told', () =>
    told().includes('no beat arrives at router-ula: HTTP 404: database is locked'),
  );
  reply = { status: 200, body: '{"ok":true}' };
  await beats(5, 15_000);
  t.deepEqual(Object.keys(runtime.health().reconcilerPush as object), ['text', 'heartbeat']);

  chmodSync(file, 0o640);
  clock.jump(240_000);
  await until('the refusal is recorded', () => state().value === 'failing');
  t.regex(
    JSON.stringify(state().context),
    /There is no usable push token for the monitor router-ula: .*0640/,
  );
  t.is(asked.length, 5);
  // What the legs are doing waits on this clock, too.
  const stopped = runtime.stop('done');
  await clock.advance(1_000);
  clock.jump(10_000);
  await stopped;
  t.notRegex(lines.join(''), /api\/push\/(first|second)/);
});

test('[R27] where nobody speaks to an uptime monitor nothing is sent, and nothing recorded', async (t) => {
  const { plugins } = resolveConfig(
    { plugins: [fieldRouterPlugin(new FieldRouter()), reconciler(quick)] },
    { env: {} },
  );
  const runtime = createRuntime({ plugins, dataDir: tempDir(t), logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  runtime.services.bus.publish(routerChannels.ifaceChangeApplied, {});
  t.deepEqual(runtime.services.actors.states('reconciler.heartbeat'), []);
  t.is(runtime.health().reconcilerPush, undefined);
});
