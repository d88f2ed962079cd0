import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../src/core/host/config/load.ts';
import { PluginHost } from '../../src/core/host/plugin/host.ts';
import { recover } from '../../src/core/kernel/actors/recover.ts';
import { jsonEqual } from '../../src/core/kernel/json.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import type { ReplayReport } from '../../src/core/kernel/replay/verify.ts';
import { verifyLog } from '../../src/core/kernel/replay/verify-log.ts';
import { type Answer, active, type Instance, post, startInstance } from './instance.ts';
import type { Scope } from './scope.ts';

/** What came of killing an instance again and again under load. */
export interface KillReport {
  readonly kills: number;
  /** Writes whose answer the clients have seen. */
  readonly acknowledged: number;
  /** Acknowledged writes that the log does not hold. */
  readonly lost: readonly Answer[];
}

const LEGS = ['eth1.10', 'eth1.20', 'eth1.40', 'eth1.50', 'eth1.70'];
const WRITERS = 4;

/**
 * Starts an instance, lets racing writers save, rename, append and commit, and kills it with signal 9 at a random
 * instant; again and again on the same folder. In the end the log must hold every write that was acknowledged.
 */
export async function killRounds(
  t: Scope,
  dataDir: string,
  config: string,
  rounds: number,
): Promise<KillReport> {
  const acknowledged: Answer[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const instance = await startInstance(t, dataDir, config);
    const seen: Answer[] = [];
    const writers = Array.from({ length: WRITERS }, (_, writer) => write(instance, writer, round, seen));
    // Every other time somebody has been answered before, however busy the machine is.
    for (let waited = 0; round % 2 === 1 && seen.length === 0 && waited < 500; waited += 1) await sleep(10);
    await sleep(20 + Math.random() * 250);
    await instance.child.kill('SIGKILL');
    await Promise.all(writers);
    // A log whose disk hangs says so with 503, which no record can hold, and promises nothing.
    acknowledged.push(...seen.filter(({ status }) => status !== 503));
  }
  return { kills: rounds, acknowledged: acknowledged.length, lost: await missing(dataDir, acknowledged) };
}

async function write({ router }: Instance, writer: number, round: number, seen: Answer[]): Promise<void> {
  try {
    for (let turn = 0; ; turn += 1) {
      const config = await active(router);
      const leg = config.interface.vlan[LEGS[(writer + turn) % LEGS.length] as string];
      if (!leg) throw new Error('a listed leg is gone');
      leg.meta.name = `writer ${writer}, round ${round}, turn ${turn}`;
      if (turn % 2 === 0) delete leg.ipv6;
      const transID = `${round}-${writer}-${turn}`;
      if (turn % 5 === 4) {
        seen.push(await post(router, { ...config, transactionOp: 'append', transID }));
        if (turn % 2 === 0) seen.push(await post(router, { transactionOp: 'commit', transID }));
      } else {
        seen.push(await post(router, config));
      }
    }
  } catch {
    // The instance is dead: whatever was not answered by now is unknown to the client.
  }
}

/** Those of the answers that no record gave: each is a `http.reply` to the request, with status and ncid. */
async function missing(dataDir: string, answers: readonly Answer[]): Promise<Answer[]> {
  const reader = new SqliteReader(dataDir);
  try {
    const given = new Map<string, { status: number; body: { ncid?: string } }>();
    for await (const { effects, correlation } of reader.read()) {
      for (const { type, params } of effects) {
        if (type !== 'http.reply') continue;
        const reply = params as unknown as { to?: string; status: number; body: { ncid?: string } };
        given.set(reply.to ?? correlation, reply);
      }
    }
    return answers.filter(({ correlation, status, body }) => {
      const reply = given.get(correlation);
      return reply?.status !== status || reply.body.ncid !== body.ncid;
    });
  } finally {
    reader.close();
  }
}

/** Whether no transaction is open, and every leg has been found whole since the last news of it. */
export function atRest(dataDir: string): boolean {
  const reader = new SqliteReader(dataDir);
  try {
    const { states } = recover(reader);
    const found = (ref: string) => states.get(ref)?.value;
    const idle = { free: 'idle' };
    return (
      jsonEqual(found('router.config/default'), idle) &&
      LEGS.every((leg) => found(`reconciler.leg/${leg}`) === 'whole')
    );
  } finally {
    reader.close();
  }
}

/** Timers that should have fired long ago: `lateMs` and more before now. */
export function stuckTimers(dataDir: string, lateMs: number): string[] {
  const reader = new SqliteReader(dataDir);
  try {
    return [...recover(reader).states.values()].flatMap(({ ref, timers }) =>
      Object.entries(timers)
        .filter(([, { at }]) => at < Date.now() - lateMs)
        .map(([name]) => `${ref} ${name}`),
    );
  } finally {
    reader.close();
  }
}

/** Replays the log through the machines that a configuration declares. */
export async function replayed(dataDir: string, config: string): Promise<ReplayReport> {
  const { plugins } = await loadConfig({ file: config, env: {} });
  const definitions = new Map(new PluginHost(plugins).register().actors.map((actor) => [actor.type, actor]));
  const reader = new SqliteReader(dataDir);
  try {
    return verifyLog(reader, definitions);
  } finally {
    reader.close();
  }
}
