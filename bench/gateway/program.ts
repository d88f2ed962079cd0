import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A program of this bench on one processor: what is measured must not borrow another's time. */
export class Program {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static start(
    name: string,
    processor: number,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Program {
    const file = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
    // As many files as this machine lets a process have: ten thousand streams are twenty thousand sockets.
    const script = 'ulimit -n "$(ulimit -Hn)"; exec taskset -c "$0" "$@"';
    // As the product's door does before anything else; the proxy gets it too.
    const begin = ['--import', new URL('../../bin/ticks.js', import.meta.url).href];
    const command = ['-c', script, String(processor), process.execPath, ...begin, file, ...args];
    const child = spawn('sh', command, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, ...env },
    });
    return new Program(child);
  }

  async said<T>(): Promise<T> {
    const [message] = await once(this.#child, 'message');
    return message as T;
  }

  ask<T>(question: object): Promise<T> {
    this.#child.send(question);
    return this.said<T>();
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
