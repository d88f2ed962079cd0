import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { fakeDisk } from '../test/support/disk.ts';
import { tempDir } from '../test/support/temp.ts';
import { type Benchmark, median, withScope } from './measure.ts';

const SLOW_MS = 20;
const ROUNDS = 3;
const child = new URL('./stall-child.ts', import.meta.url).pathname;

interface Stall {
  readonly max: number;
  readonly p99: number;
  readonly commits: number;
}

/** How long a main thread under load is held up at a time, while the log commits onto a disk. */
async function stall(delayMs: number, how: 'log' | 'inline' | 'idle'): Promise<Stall> {
  return withScope(async (scope) => {
    const dir = tempDir(scope);
    const { env } = fakeDisk(tempDir(scope), delayMs);
    const { stdout } = await promisify(execFile)(process.execPath, [child, dir, how], {
      env: { ...process.env, ...env },
      timeout: 30_000,
    });
    return JSON.parse(stdout);
  });
}

const middle = (stalls: readonly Stall[], of: 'max' | 'p99') => median(stalls.map((stall) => stall[of]));
const ms = (value: number) => `${value.toFixed(1)} ms`;

export const stallBenchmark: Benchmark = {
  name: 'stall',
  summary: `the longest that the main thread is held up while 1,000 decisions a second are logged, with ${SLOW_MS} ms injected into every sync, against the same thread on the same machine`,
  async run() {
    const rounds = { slow: [] as Stall[], fast: [] as Stall[], idle: [] as Stall[], inline: [] as Stall[] };
    for (let round = 0; round < ROUNDS; round += 1) {
      rounds.slow.push(await stall(SLOW_MS, 'log'));
      rounds.fast.push(await stall(0, 'log'));
      rounds.idle.push(await stall(SLOW_MS, 'idle'));
      rounds.inline.push(await stall(SLOW_MS, 'inline'));
    }
    const slow = middle(rounds.slow, 'max');
    const against = (name: keyof typeof rounds, of: 'max' | 'p99', words: string) => {
      const [ours, baseline] = [middle(rounds.slow, of), middle(rounds[name], of)];
      const what = of === 'max' ? 'longest stall' : 'p99 of all turns';
      return { what, ours: ms(ours), baseline: `${ms(baseline)} ${words}`, ratio: ours / baseline };
    };
    return [
      { ...against('fast', 'max', 'on a disk without delay'), target: '< 10 ms', met: slow < 10 },
      against('idle', 'max', 'with the same load and no log'),
      against('inline', 'max', 'when the main thread commits itself'),
      against('fast', 'p99', 'on a disk without delay'),
    ];
  },
};
