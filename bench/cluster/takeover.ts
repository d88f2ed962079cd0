import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stroke } from '../../test/support/hosts/pump-plugin.ts';
import type { Scope } from '../../test/support/scope.ts';
import { read } from '../../test/support/until.ts';
import { median, type Result } from '../measure.ts';
import { BenchHost, type ClusterWish } from './host.ts';

export interface TakeoverWish {
  readonly dir: string;
  readonly cluster: ClusterWish & { readonly leaseMs: number };
  /** Of each fault. */
  readonly rounds: number;
}

/** Beside the lease. */
const ALLOWED_MS = 1_000;

/**
 * Kills or freezes the host that holds a singleton, again and again, and looks when the other one does its work. What they do is
 * written into one file with the machine's monotonic clock.
 */
export async function takeoverRows(
  scope: Scope,
  { dir, cluster, rounds }: TakeoverWish,
): Promise<readonly Result[]> {
  const { leaseMs } = cluster;
  const folder = join(dir, cluster.name);
  const journal = `${folder}.journal`;
  writeFileSync(journal, '');
  const start = (name: string) => BenchHost.start(scope, { name, dir: folder, cluster, journal });
  const running = new Map<string, BenchHost>();
  for (const name of ['one', 'two']) running.set(name, await start(name));

  let { host: holder } = await strokeBehind(journal, 0, () => true);
  /** @returns milliseconds from the signal until another host works */
  const moved = async (signal: 'SIGKILL' | 'SIGSTOP' | 'SIGTERM'): Promise<number> => {
    const last = running.get(holder);
    const from = strokes(journal).length;
    const at = process.hrtime.bigint();
    const struck = signal === 'SIGSTOP' ? last?.freeze() : last?.end(signal);
    const next = await strokeBehind(journal, from, ({ host }) => host !== last?.name);
    await struck;
    if (signal === 'SIGSTOP') last?.thaw();
    if (signal === 'SIGKILL' && last) running.set(last.name, await start(last.name));
    holder = next.host;
    return Number(BigInt(next.at) - at) / 1e6;
  };
  const afterEach = async (signal: 'SIGKILL' | 'SIGSTOP'): Promise<readonly number[]> => {
    const after: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await strokeBehind(journal, strokes(journal).length, () => true);
      // At another moment between two beats each time.
      await sleep(((leaseMs / 5) * (round + 0.5)) / rounds);
      after.push(await moved(signal));
    }
    return after;
  };
  const [killed, frozen] = [await afterEach('SIGKILL'), await afterEach('SIGSTOP')];
  const stopped = await moved('SIGTERM');
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  const row = (fault: string, after: readonly number[]): Result => {
    const worst = Math.max(...after);
    return {
      what: `takeover after ${fault}, lease ${leaseMs / 1_000} s, worst of ${rounds} (median ${seconds(median(after))})`,
      ours: seconds(worst),
      baseline: `${seconds(stopped)} after a clean stop`,
      ratio: worst / leaseMs,
      target: '≤ the lease and 1 s',
      met: worst <= leaseMs + ALLOWED_MS,
    };
  };
  return [row('kill -9', killed), row('kill -STOP', frozen)];
}

function strokes(journal: string): Stroke[] {
  const lines = readFileSync(journal, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Stroke);
}

async function strokeBehind(
  journal: string,
  from: number,
  isWanted: (stroke: Stroke) => boolean,
): Promise<Stroke> {
  const found = await read('somebody works', () => strokes(journal).slice(from).find(isWanted), Boolean, 20);
  if (!found) throw new Error('nobody works');
  return found;
}
