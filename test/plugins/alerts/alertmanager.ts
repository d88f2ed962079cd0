import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';

export const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

/** Debian's Alertmanager, alone. */
export class Alertmanager {
  readonly url: string;
  readonly #scope: Scope;
  readonly #file: string;
  #child: ChildProcess | undefined;

  private constructor(scope: Scope, file: string, url: string) {
    this.#scope = scope;
    this.#file = file;
    this.url = url;
  }

  /** @param webhook where it tells of its own alerts */
  static async start(scope: Scope, webhook: string): Promise<Alertmanager> {
    const file = join(tempDir(scope), 'alertmanager.yml');
    const receivers = [{ name: 'holdfast', webhook_configs: [{ url: webhook }] }];
    const route = { receiver: 'holdfast', group_wait: '1ms', group_interval: '1s' };
    writeFileSync(file, JSON.stringify({ route, receivers })); // JSON is YAML
    const manager = new Alertmanager(scope, file, `http://127.0.0.1:${await freePort()}`);
    scope.teardown(() => manager.#kill());
    await manager.#run();
    return manager;
  }

  /** Ends and starts again at the same address: it keeps alerts in memory alone. */
  async restart(): Promise<void> {
    await this.#kill();
    await this.#run();
  }

  async alerts(): Promise<any[]> {
    return (await (await fetch(`${this.url}/api/v2/alerts`)).json()) as any[];
  }

  async #run(): Promise<void> {
    const child = spawn(
      'prometheus-alertmanager',
      [
        `--config.file=${this.#file}`,
        `--storage.path=${tempDir(this.#scope)}`,
        `--web.listen-address=${new URL(this.url).host}`,
        '--cluster.listen-address=',
      ],
      { stdio: 'ignore' },
    );
    this.#child = child;
    const isReady = async () => (await fetch(`${this.url}/-/ready`).catch(() => undefined))?.ok === true;
    while (child.exitCode === null && !(await isReady())) await pause();
  }

  async #kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
