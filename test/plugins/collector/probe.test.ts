import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { z } from 'zod';
import {
  type ColumnarDatabase,
  ColumnarDatabaseToken,
} from '../../../src/core/contracts/columnar-database.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { ColumnarError } from '../../../src/plugins/columnar/errors.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { startRig } from './rig.ts';

/** A receiver that admits the key and a database that has what it took, each as a test wants it. */
async function pipeline(t: Scope) {
  const services: string[] = [];
  const bent = { status: 0, keeps: true, isAway: false, seen: [] as (string | undefined)[] };
  let key = '';
  const server = createServer(async (request, response) => {
    const parts: Uint8Array[] = [];
    for await (const part of request) parts.push(part);
    bent.seen.push(request.headers.authorization);
    const body = JSON.parse(Buffer.concat(parts).toString());
    const status = bent.status || (request.headers.authorization === key ? 200 : 401);
    if (status === 200 && bent.keeps) {
      services.push(body.resourceSpans[0].resource.attributes[0].value.stringValue);
    }
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify(status === 200 ? { partialSuccess: {} } : { code: 16, message: `no ${key}` }),
    );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => server.close());
  const database = {
    kind: 'remote',
    place: 'stand-in',
    query: async (_sql: string, { service }: { service: string }) => {
      if (bent.isAway)
        throw new ColumnarError('HF_COLUMNAR_UNREACHABLE', { place: 'stand-in', reason: 'gone' });
      return [{ n: String(services.filter((one) => one === service).length) }];
    },
  } as unknown as ColumnarDatabase;
  const plugin = definePlugin({
    name: 'database',
    options: z.strictObject({}),
    provides: [ColumnarDatabaseToken],
    register: (context) => context.provide(ColumnarDatabaseToken, () => database),
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const rig = await startRig(t, tempDir(t), {}, [plugin()]);
  key = await rig.keys.current();
  const probe = async (...more: string[]) => {
    const { code, out, err } = await rig.holdfast(
      'stack',
      'probe',
      '--endpoint',
      endpoint,
      '--wait',
      '0.2',
      ...more,
    );
    t.log(out, err);
    return { code, out, err };
  };
  return { bent, services, rig, key, probe };
}

test('[O1] a probe shows its span arriving, under another name each time, and is remembered as an event', async (t) => {
  const { services, rig, key, probe } = await pipeline(t);
  const first = await probe('--json');
  t.is(first.code, 0, first.err);
  const report = JSON.parse(first.out);
  t.like(report, { end: 'arrived', service: services[0] });
  t.true(report.arrivedMs >= report.answeredMs);
  const second = await probe();
  t.regex(second.out, /^arrived: .* accepted it in \d+ ms; it is in otel_traces after \d+ ms/);
  t.is(new Set(services).size, 2);
  t.false((first.out + second.out).includes(key));
  const { actors } = rig.runtime.services;
  t.is(actors.snapshot('collector.probe/traces')?.value, 'wired');
  t.like(actors.snapshot('collector.probe/traces')?.context, { probes: 2, end: 'arrived' });
});

test('[O1] where a probe stopped is told apart by text and exit code', async (t) => {
  const { bent, rig, key, probe } = await pipeline(t);
  bent.status = 401;
  const refused = await probe();
  t.is(refused.code, 1);
  t.regex(refused.out, /stopped \(refused\): the receiver answered 401/);
  t.false(refused.out.includes(key));
  bent.status = 503;
  t.regex((await probe()).out, /answered 503[\s\S]*try again/);
  bent.status = 0;
  bent.keeps = false;
  const lost = await probe('--json');
  t.is(lost.code, 3);
  t.is(JSON.parse(lost.out).end, 'lost');
  bent.isAway = true;
  const away = await probe();
  t.is(away.code, 4);
  t.regex(away.out, /database_away/);
  t.is(rig.runtime.services.actors.snapshot('collector.probe/traces')?.value, 'broken');
  const nobody = await rig.holdfast('stack', 'probe', '--endpoint', 'http://127.0.0.1:9');
  t.is(nobody.code, 1);
  t.regex(nobody.out, /unreachable/);
  t.not((await rig.holdfast('stack', 'probe', '--endpoint', 'ftp://x')).code, 0);
});
