import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { request } from 'undici';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { consolePlugin } from '../../../../src/plugins/console/index.ts';
import { router } from '../../../../src/plugins/router/index.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const MIB = 1024 * 1024;

/** A data folder on a disk of its own. @param megabytes its size */
function smallDisk(t: ExecutionContext, megabytes: number): string {
  const dir = tempDir(t);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', dir], {
    encoding: 'utf8',
  });
  if (mounted.status !== 0) throw new Error(`this test needs a small disk: ${mounted.stderr}`);
  t.teardown(() => spawnSync('umount', ['-l', dir]));
  return dir;
}

async function started(t: ExecutionContext, dataDir: string, clock: VirtualClock) {
  const { plugins } = resolveConfig(
    { plugins: [router({ port: 0 }), consolePlugin({ port: 0 })] },
    { env: {} },
  );
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir, logger, clock, reserveBytes: 4 * MIB });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const alerts: string[] = [];
  runtime.services.bus.subscribe(alertRaised, 'test', ({ payload }) => {
    if (payload.name.startsWith('log.')) alerts.push(`${payload.name} ${payload.labels.state ?? ''}`.trim());
  });
  const health = async () => {
    const { statusCode, body } = await request(`${runtime.surfaces.console?.url}/healthz`);
    return { statusCode, body: (await body.json()) as Record<string, any> };
  };
  const until = async (ready: () => boolean | Promise<boolean>) => {
    for (let n = 0; n < 400 && !(await ready()); n += 1) {
      await clock.advance(250);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    t.true(await ready());
  };
  const apply = () =>
    request(`${runtime.surfaces.router?.url}/v1/config/apply_current_config`, { method: 'POST' });
  return { runtime, alerts, health, until, apply, file: join(dataDir, 'disk-reserve') };
}

/** Leaves not a block on the disk. */
function fill(file: string): void {
  for (const size of [MIB, 64 * 1024, 4_096, 1]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // no more of this size
    }
  }
}

test.serial(
  '[C2] a full disk: the reserve is given back, decisions go on, a stop is recorded, and it is made again',
  async (t) => {
    const dir = smallDisk(t, 24);
    const clock = new VirtualClock();
    const { runtime, alerts, health, until, apply, file } = await started(t, dir, clock);
    await until(() => existsSync(file));
    t.is(statSync(file).size, 4 * MIB);
    t.true(statSync(file).blocks * 512 >= 4 * MIB, 'it takes room');
    t.is((await health()).body.reserve.state, 'held');

    const filler = join(dir, 'filler');
    fill(filler);
    const answers: number[] = [];
    for (let n = 0; n < 60 && existsSync(file); n += 1) {
      const answer = apply().then(({ statusCode }) => answers.push(statusCode));
      await until(() => answers.length > n);
      await answer;
    }
    t.false(existsSync(file), 'the reserve is given back');
    await until(async () => (await health()).body.log.state === 'open');
    // Whoever waited while the log was frozen was told so; what comes now is decided, though the disk is full.
    let next: number | undefined;
    const answer = apply().then(({ statusCode }) => {
      next = statusCode;
    });
    await until(() => next !== undefined);
    await answer;
    t.is(next, 200);
    const { statusCode, body } = await health();
    t.is(statusCode, 200);
    t.is(body.status, 'degraded');
    t.regex(body.reasons.join(), /the disk is full, and the log uses its reserve of 4\.2 MB/);
    t.true(alerts.includes('log.reserve_used firing'), String(alerts));

    rmSync(filler);
    await until(() => existsSync(file));
    await until(async () => (await health()).body.reserve.state === 'held');
    t.is((await health()).body.status, 'ok');
    t.true(alerts.includes('log.reserve_used resolved'));

    fill(filler);
    await clock.passUntil(runtime.stop('SIGTERM'));
    const reader = new SqliteReader(dir);
    t.teardown(() => reader.close());
    const records = await Array.fromAsync(reader.read());
    t.true(
      records.some(({ event }) => JSON.stringify(event).includes('SIGTERM')),
      'the stop is recorded',
    );
  },
);

test.serial(
  '[C2] where there is no room the reserve is not what fills the disk, and health says so',
  async (t) => {
    const { health, until, file } = await started(t, smallDisk(t, 11), new VirtualClock());
    await until(async () => (await health()).body.reserve.state === 'no_room');
    t.false(existsSync(file));
    const { body } = await health();
    t.is(body.status, 'degraded');
    t.regex(body.reserve.reason, /no room for the reserve of 4\.2 MB \([\d.]+ [KMG]B are free/);
  },
);

test('[C2] 64 MiB are kept unless the configuration says otherwise', (t) => {
  const of = (data?: { reserve: string | false }) =>
    resolveConfig({ plugins: [], ...(data && { data }) }, { env: {} }).reserveBytes;
  t.is(of(), 64 * MIB);
  t.is(of({ reserve: '10MiB' }), 10 * MIB);
  t.is(of({ reserve: false }), undefined);
  t.throws(() => of({ reserve: '10' }), { message: /reserve/ });
});
