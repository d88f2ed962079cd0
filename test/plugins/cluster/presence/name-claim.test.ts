import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../../src/core/kernel/clock.ts';
import { NameClaim } from '../../../../src/plugins/cluster/presence/name-claim.ts';
import { openLink, silent } from '../../../support/cluster.ts';
import { clusterName } from '../../../support/message-hosts.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';

const nats = natsOfFile(test);

interface ClaimWish {
  readonly servers?: string;
  /** How long the run has lasted; 0 unless set. */
  readonly upMs?: number;
}

/** A run of the host `attic` that began at a time; it waits a fifth as long as others do. */
async function claimOf(
  t: ExecutionContext,
  name: string,
  startedAt: number,
  { servers = nats().url(), upMs = 0 }: ClaimWish = {},
) {
  const clock: Clock = { ...systemClock, after: (ms, callback) => systemClock.after(ms / 5, callback) };
  const link = await openLink(t, servers, { name, clock });
  const run = `run-${startedAt}`;
  const options = { link, clock, logger: silent, name, host: 'attic', run, startedAt, upMs: () => upMs };
  return new NameClaim({ ...options, version: '1.0.0', protocol: 1 });
}

test('[C13] a name is known to be a run’s own when its questions came back to it and nobody else answered', async (t) => {
  const name = clusterName();
  const claim = await claimOf(t, name, 2);
  await t.throwsAsync(claim.ours(), { code: 'HF_CLUSTER_NAME_UNKNOWN' }, 'it does not hear itself');
  t.teardown(claim.answer());
  claim.started();
  await t.notThrowsAsync(claim.ours());
  const older = await claimOf(t, name, 1);
  t.teardown(older.answer());
  await t.notThrowsAsync(claim.ours(), 'it is known for some seconds');
});

test('[C13] who answers late has the name all the same', async (t) => {
  const name = clusterName();
  const proxy = await nats().proxyTo(0);
  const [older, later] = [await claimOf(t, name, 1, { servers: proxy.url }), await claimOf(t, name, 2)];
  for (const claim of [older, later]) {
    t.teardown(claim.answer());
    claim.started();
  }
  proxy.set({ delayMs: 150 });
  t.is(await later.check(), undefined, 'it waits for so long only before a stream is replaced');
  await t.throwsAsync(later.ours(), { code: 'HF_CLUSTER_NAME_TAKEN' });
});

test('[C13] a name is not a run’s own while one that began before answers, and is while one does that began later', async (t) => {
  const name = clusterName();
  const [older, later] = [await claimOf(t, name, 1), await claimOf(t, name, 2)];
  for (const claim of [older, later]) {
    t.teardown(claim.answer());
    claim.started();
  }
  await t.throwsAsync(later.ours(), { code: 'HF_CLUSTER_NAME_TAKEN' });
  await t.notThrowsAsync(older.ours());
});

/** The claim answers, as that of a host that has started. @returns ends it */
function begin(t: ExecutionContext, claim: NameClaim): () => void {
  const end = claim.answer();
  t.teardown(end);
  claim.started();
  return end;
}

test('[C13] the run that has lasted longer keeps the name, though its wall clock says that it began later', async (t) => {
  const name = clusterName();
  const older = await claimOf(t, name, Date.UTC(2026), { upMs: 60_000 });
  const later = await claimOf(t, name, Date.UTC(2020), { upMs: 50_000 });
  for (const claim of [older, later]) begin(t, claim);
  await t.throwsAsync(later.ours(), { code: 'HF_CLUSTER_NAME_TAKEN' });
  await t.notThrowsAsync(older.ours());
});

test('[C13] of two runs that have lasted nearly as long, the one yields that says it began later', async (t) => {
  const name = clusterName();
  const first = await claimOf(t, name, 1, { upMs: 60_000 });
  const second = await claimOf(t, name, 2, { upMs: 62_000 });
  for (const claim of [first, second]) begin(t, claim);
  await t.throwsAsync(second.ours(), { code: 'HF_CLUSTER_NAME_TAKEN' });
  await t.notThrowsAsync(first.ours());
});

test('[C13] a host of an earlier release, which does not say how long it has lasted, is compared by its wall clock', async (t) => {
  const name = clusterName();
  const earlier = await openLink(t, nats().url(), { name });
  const answer = {
    host: 'attic',
    run: 'earlier',
    version: '0.1.0',
    protocol: 1,
    startedAt: 2,
    isStarted: true,
  };
  earlier.subscribe(`hf.${name}.is.attic`, (asked) => asked.respond(JSON.stringify(answer)));
  const first = await claimOf(t, name, 1);
  const end = begin(t, first);
  await t.notThrowsAsync(first.ours());
  end();
  const second = await claimOf(t, name, 3, { upMs: 60_000 });
  begin(t, second);
  await t.throwsAsync(second.ours(), { code: 'HF_CLUSTER_NAME_TAKEN' });
});
