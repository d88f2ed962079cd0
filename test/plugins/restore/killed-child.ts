import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import type { Result } from '../../../src/machines/restore/drill-shapes.ts';
import type { DrillStatus } from '../../../src/plugins/restore/control.ts';
import { call, root, type Spawned, spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { read } from '../../support/until.ts';

const never = new AbortController().signal;

/** An instance in a process of its own, which is killed in the middle of drills. */
export class KilledChild {
  readonly dataDir: string;
  readonly #t: ExecutionContext;
  readonly #cwd: string;
  #instance: Spawned | undefined;

  /** @param plugins how the configuration lists them; each is imported by its name */
  constructor(t: ExecutionContext, plugins: Readonly<Record<string, string>>) {
    this.#t = t;
    this.#cwd = tempDir(t);
    this.dataDir = join(this.#cwd, 'data');
    const folders = { memoryStore: 'memory-store' } as Readonly<Record<string, string>>;
    writeConfig(
      this.#cwd,
      `export default defineConfig({ plugins: [${Object.values(plugins).join(', ')}] });`,
      Object.keys(plugins).map((name) => {
        const file = join(root, 'src/plugins', folders[name] ?? name, 'index.ts');
        return `import { ${name} } from ${JSON.stringify(file)};`;
      }),
    );
  }

  async start(): Promise<void> {
    const env = { NODE_NO_WARNINGS: '1', HOME: this.#cwd };
    this.#instance = spawnHoldfast(this.#t, ['start', '--data-dir', this.dataDir], { cwd: this.#cwd, env });
    await this.#instance.see(/Holdfast is ready/);
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#instance?.child.kill(signal);
    await this.#instance?.ended;
  }

  /** @returns the drill's id */
  async ask(path: 'a' | 'b'): Promise<string> {
    return ((await postControl(this.dataDir, '/restore/drill', { path }, never)).body as { id: string }).id;
  }

  async status(): Promise<DrillStatus> {
    return (await postControl(this.dataDir, '/restore/status', {}, never)).body as unknown as DrillStatus;
  }

  /** Kills the process, starts another one, and waits until that has cleaned up. @returns the last drill */
  async killAndRestart(meanwhile: () => void = () => {}): Promise<Result> {
    await this.end('SIGKILL');
    meanwhile();
    await this.start();
    const isResting = ({ state }: DrillStatus) => state.startsWith('resting');
    const now = await read('it rests', () => this.status(), isResting, 20);
    return now.results.at(-1)!;
  }

  /** Ends it, and replays its log. */
  async verify(): Promise<void> {
    await this.end('SIGTERM');
    const verified = await call(['replay', 'verify', '--data-dir', this.dataDir], { cwd: this.#cwd });
    this.#t.regex(verified.out, /0 divergences, chain ok/, verified.err);
  }
}
