/** Each answer that a real daemon, or a proxy in front of it, has been seen to give. */
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { SetAnswer } from '../../../../src/core/contracts/router.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { type Config, Daemon, type Mishap, type Slip } from './daemon.ts';
import { remote } from './rig.ts';

const KINDS: Readonly<Record<Exclude<Mishap, 'hangs'>, [kind: SetAnswer['kind'], text: RegExp]>> = {
  answers500: ['unknown', /500: internal error/],
  answersHtml: ['unknown', /200 without the new ncid/],
  answersNothing200: ['unknown', /200 without the new ncid/],
  answersNoNcid: ['unknown', /200 without the new ncid/],
  answersEmpty404: ['refused', /404/],
  answersPlain404: ['refused', /404/],
  redirects: ['unknown', /302/],
  resetsAtOnce: ['unknown', /broke off/],
  resetsMidAnswer: ['unknown', /broke off/],
  floods: ['unknown', /larger than 65536 bytes/],
};

for (const [mishap, [kind, text]] of Object.entries(KINDS)) {
  test.serial(`[R25] a router that ${mishap} to a write leaves it ${kind}, posted once`, async (t) => {
    const daemon = await Daemon.start(t);
    const { api } = await remote(t, { url: daemon.url, answerLimit: 65_536 });
    const config = await api.active();
    daemon.mishaps.push(mishap as Mishap);
    const answer = await api.set(config, newCorrelation());
    t.is(answer.kind, kind);
    t.regex(JSON.stringify(answer), text);
    t.is(daemon.posts.length, 0, 'it was not repeated');
    t.is((await api.set(config, newCorrelation())).kind, 'applied', 'the next one is served again');
  });

  test.serial(`[R24] a router that ${mishap} to a read cannot be read, and says so by code`, async (t) => {
    const daemon = await Daemon.start(t);
    const { api } = await remote(t, { url: daemon.url, answerLimit: 65_536 });
    // A read that breaks off is tried once more.
    daemon.mishaps.push(mishap as Mishap, mishap as Mishap);
    if (mishap === 'answersNoNcid') {
      t.deepEqual(await api.active(), { errors: [] }, 'an object without ncid is for the reader to judge');
      return;
    }
    const error = await t.throwsAsync<HoldfastError>(api.active(), { instanceOf: HoldfastError });
    t.is(error.code, 'HF_ROUTER_UNREACHABLE');
    t.notRegex(error.message, /secret|Please log in|xxxx/, 'nothing of the answer is repeated');
    daemon.mishaps.length = 0;
    t.truthy((await api.active()).ncid);
  });
}

test.serial('[R24] a read whose connection breaks off once is read again', async (t) => {
  const daemon = await Daemon.start(t);
  const { api } = await remote(t, { url: daemon.url });
  daemon.mishaps.push('resetsMidAnswer');
  t.is((await api.active()).ncid, daemon.config.ncid);
});

for (const slip of ['refusesButApplies', 'resetsButApplies', 'hangsButApplies'] satisfies Slip[]) {
  test.serial(`[R25] a router that ${slip} is found out by the next reading`, async (t) => {
    const daemon = await Daemon.start(t);
    const { api } = await remote(t, { url: daemon.url, writeTimeoutMs: 300 });
    const config = (await api.active()) as Config;
    config.interface.vlan['eth1.20'].ipv6 = ['fd00:20::1/64'];
    daemon.slips.push(slip);
    const answer = await api.set(config, newCorrelation());
    t.is(answer.kind, slip === 'refusesButApplies' ? 'refused' : 'unknown');
    const after = (await api.active()) as Config;
    t.deepEqual(after.interface.vlan['eth1.20'].ipv6, ['fd00:20::1/64']);
  });
}

test.serial(
  '[R25] an apply of eight seconds is waited for, and one without end given up after 85',
  async (t) => {
    const clock = new VirtualClock();
    const daemon = await Daemon.start(t);
    const { api } = await remote(t, { url: daemon.url }, { clock });
    const config = await api.active();
    let save = () => {};
    const saving = new Promise<void>((resolve) => {
      save = resolve;
    });
    let applying = false;
    daemon.beforeSave = () => {
      applying = true;
      return saving;
    };
    const slow = api.set(config, newCorrelation());
    while (!applying) await new Promise((resolve) => setTimeout(resolve, 2));
    await clock.advance(8_000);
    await clock.advance(60_000);
    save();
    t.is((await slow).kind, 'applied');

    daemon.beforeSave = undefined;
    const next = await api.active();
    daemon.mishaps.push('hangs');
    const endless = api.set(next, newCorrelation());
    await clock.advance(84_900);
    await clock.advance(200);
    t.deepEqual(await endless, { kind: 'unknown', reason: 'nothing came within 85 s' });
  },
);

test.serial(
  '[R24] a read that hangs is given up sooner, and one that the asker gives up at once',
  async (t) => {
    const clock = new VirtualClock();
    const daemon = await Daemon.start(t);
    const { api, lines } = await remote(t, { url: daemon.url, lookMs: 60_000 }, { clock });
    // The first check of the data folder ends before anything is counted, and the next is due in a day.
    await clock.advance(6_000);
    while (!lines.some((line) => line.includes('data.checked'))) await delay(10);
    await delay(10);
    daemon.mishaps.push('hangs', 'hangs');
    const { armed } = clock;
    const hanging = api.active();
    const asker = new AbortController();
    const asked = api.active(asker.signal);
    asker.abort();
    await t.throwsAsync(asked, { code: 'HF_ROUTER_UNREACHABLE', message: /given up/ });
    await clock.advance(15_100);
    await t.throwsAsync(hanging, { code: 'HF_ROUTER_UNREACHABLE', message: /15 s/ });
    t.is(clock.armed, armed + 1, 'no deadline is left behind, and an alert of the outage is prepared');
  },
);

test.serial(
  '[R29] connections are kept: a hundred readings need no more than the four of the pool',
  async (t) => {
    const daemon = await Daemon.start(t);
    const { api } = await remote(t, { url: daemon.url });
    for (let count = 0; count < 100; count += 1) await api.active();
    t.true(daemon.connections - daemon.idle <= 4, `${daemon.connections}`);
  },
);

test.serial(
  '[R4,R24] what was read is posted but for control fields, and the daemon skips no check',
  async (t) => {
    const daemon = await Daemon.start(t);
    const { api } = await remote(t, { url: daemon.url });
    const config = (await api.active()) as Config;
    t.is(config.reqId, 'req-of-the-app');
    await api.set({ ...config, ignoreNcid: true }, newCorrelation());
    const { reqId: _, ...expected } = config;
    t.deepEqual(daemon.posts, [expected]);
    t.is(daemon.bypassed, 0);
  },
);

test.serial(
  'a bearer token comes from its file at each call, and a wide file is refused unposted',
  async (t) => {
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ncid":"n1"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    const tokenFile = join(tempDir(t), 'token');
    writeFileSync(tokenFile, 'first\n', { mode: 0o600 });
    const { port } = server.address() as AddressInfo;
    const { api, lines } = await remote(t, { url: `http://127.0.0.1:${port}`, tokenFile });
    await api.active();
    writeFileSync(tokenFile, 'second\n');
    await api.active();
    chmodSync(tokenFile, 0o644);
    await t.throwsAsync(api.active(), { code: 'HF_CONFIG_SECRET_MODE' });
    t.like(await api.set({ ncid: 'n1' }, newCorrelation()), { kind: 'refused' });
    t.deepEqual(seen, ['Bearer first', 'Bearer second']);
    t.notRegex(lines.join(''), /first|second/);
  },
);

test.serial('a base with a path keeps it', async (t) => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? '');
    response.writeHead(200).end('{"ncid":"n1"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const { api } = await remote(t, { url: `http://127.0.0.1:${port}/box/one/` });
  await api.active();
  t.deepEqual(paths, ['/box/one/v1/config/active']);
});
