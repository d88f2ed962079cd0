import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { keyActor } from '../../src/plugins/gateway/keys/virtual-keys.ts';
import { openBench } from '../support/actors.ts';
import { call, writeConfig } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const quiet = () => undefined;
const handlers = ['gateway.forward', 'gateway.answer', 'gateway.confine', 'http.reply', 'lamp.on'].map(
  (type) => {
    return { type, handler: quiet, onRecovery: 'retry' as const };
  },
);
const KEY = 'gateway.key/k_1';

/** A key is made, called, revoked a minute later by ann, and called again an hour later. The last record is the refusal. */
async function revoked(t: ExecutionContext): Promise<{ dir: string; refusal: number; revocation: number }> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [keyActor, door], handlers, new VirtualClock());
  const send = async (event: { type: string; [field: string]: unknown }) => {
    bench.actors.deliver(KEY, { ...event, at: bench.clock.now() });
    await bench.settled();
  };
  const call = { type: 'CALL', routes: ['memory'], method: 'tools/call', presented: 'k_1', cost: 0 };
  await send({
    type: 'KEY_CREATED',
    by: 'ann',
    presented: 'k_1',
    terms: { alias: 'ci', servers: ['memory'] },
  });
  await send(call);
  await bench.clock.advance(60_000);
  await send({ type: 'KEY_REVOKED', by: 'ann' });
  for (let calls = 0; calls < 3; calls += 1) {
    await bench.clock.advance(1_200_000);
    await send(call);
  }
  const records = await bench.records();
  await bench.close();
  const refusal = records.findLast(({ event }) => event.type === 'CALL')?.seq ?? 0;
  const revocation = records.find(({ event }) => event.type === 'KEY_REVOKED')?.seq ?? 0;
  writeConfig(dir, `export default defineConfig({ plugins: [gateway()] });`, [
    `import { gateway } from 'holdfast/plugins/gateway';`,
  ]);
  return { dir, refusal, revocation };
}

test('[C7] the explanation of a refusal points to the revocation that made it so', async (t) => {
  const { dir, refusal, revocation } = await revoked(t);
  const explain = (...more: string[]) =>
    call(['replay', 'explain', String(refusal), '--data-dir', dir, ...more], { cwd: dir, columns: 400 });
  const { out, err } = await explain();
  const text = out.replace(/\s+/g, ' ');
  t.regex(
    text,
    new RegExp(`It had been revoked since record ${revocation} \\(KEY_REVOKED.*?\\), 60 min before\\.`),
    err,
  );
  t.regex(text, /That was decided by revision 2, which the same record made\./);
  t.like(JSON.parse((await explain('--json')).out).at(-1), { stateSince: revocation, decidedBy: revocation });

  const show = await call(['log', 'show', String(refusal), '--data-dir', dir], { cwd: dir });
  t.regex(show.out, new RegExp(`since +revoked: record ${revocation}: .*, 60 min before`));
  const json = await call(['log', 'show', String(refusal), '--json', '--data-dir', dir], { cwd: dir });
  t.like(JSON.parse(json.out), { stateSince: revocation, decidedBy: revocation });
});

test('[C7] a decision under changed terms points to the change, though the state is an older one', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [keyActor], handlers, new VirtualClock());
  const send = async (event: { type: string; [field: string]: unknown }) => {
    bench.actors.deliver(KEY, { ...event, at: bench.clock.now() });
    await bench.settled();
  };
  await send({ type: 'KEY_CREATED', presented: 'k_1', terms: { alias: 'ci', servers: ['memory'] } });
  await send({ type: 'KEY_UPDATED', by: 'ann', set: { servers: [] } });
  await send({ type: 'CALL', routes: ['memory'], method: 'tools/call', presented: 'k_1', cost: 0 });
  const records = await bench.records();
  await bench.close();
  const seqOf = (type: string) => records.find(({ event }) => event.type === type)?.seq;
  const { out } = await call(['replay', 'explain', String(seqOf('CALL')), '--json', '--data-dir', dir], {
    cwd: dir,
  });
  t.like(JSON.parse(out).at(-1), { stateSince: seqOf('KEY_CREATED'), decidedBy: seqOf('KEY_UPDATED') });
});

test('[C7] replay at names the record that entered a state, not the one that touched it last', async (t) => {
  const { dir, refusal, revocation } = await revoked(t);
  const at = (...more: string[]) => call(['replay', 'at', String(refusal), dir, ...more], { cwd: dir });
  t.regex(
    (await at()).out,
    new RegExp(
      `gateway\\.key/k_1 {2}revoked {2}since record ${revocation}, 60 min before; last touched by record ${refusal}, 0 ms`,
    ),
  );
  t.like(JSON.parse((await at('--json')).out).actors[0], { stateSince: revocation, seq: refusal });
});

test('[C7] where the record that entered a state is before the first of an export, that is said', async (t) => {
  const { dir, refusal } = await revoked(t);
  const file = join(dir, 'part.jsonl');
  await call(['log', 'export', dir, '--from', String(refusal), '--out', file], { cwd: dir });
  const explain = await call(['replay', 'explain', String(refusal), file], { cwd: dir, columns: 400 });
  t.regex(
    explain.out.replace(/\s+/g, ' '),
    /It had been revoked since before this log begins\./,
    explain.err,
  );
  const { out } = await call(['replay', 'at', String(refusal), file], { cwd: dir });
  t.regex(out, /revoked {2}since before this log begins; last touched by record/);
});
