import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { postControl } from '../../src/core/host/operations/control-client.ts';
import { ConsoleClient } from '../../test/plugins/console/console-rig.ts';
import type { Scope } from '../../test/support/scope.ts';
import type { Question } from './instance.ts';

const program = new URL('./instance.ts', import.meta.url).pathname;
/** In which an answer of the control socket has to come, milliseconds. */
const PATIENCE_MS = 10_000;

interface Started {
  readonly url: string;
  readonly lastSeq: number;
  readonly stop: () => Promise<void>;
}

/** An instance that runs, and somebody who asks it. */
export class Instance {
  readonly #child: ChildProcess;
  readonly dataDir: string;
  readonly url: string;
  readonly lastSeq: number;
  readonly stop: () => Promise<void>;

  constructor(child: ChildProcess, dataDir: string, { url, lastSeq, stop }: Started) {
    this.#child = child;
    this.dataDir = dataDir;
    this.url = url;
    this.lastSeq = lastSeq;
    this.stop = stop;
  }

  static async start(scope: Scope, dataDir: string, withConsole = true): Promise<Instance> {
    const child = fork(program, [dataDir, withConsole ? 'yes' : 'no'], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: ['--disable-warning=ExperimentalWarning', '--expose-gc'],
    });
    const exited = once(child, 'exit');
    const stop = async () => {
      if (child.connected) child.disconnect();
      await exited;
    };
    scope.teardown(stop);
    const [{ value }] = await once(child, 'message');
    return new Instance(child, dataDir, { ...value, stop });
  }

  async ask<T = void>(question: Question): Promise<T> {
    const answered = once(this.#child, 'message');
    this.#child.send(question);
    const [{ value }] = await answered;
    return value;
  }

  async code(): Promise<string> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const { body } = await postControl(this.dataDir, '/console/code', { by: 'bench' }, signal);
    return (body as { code: string }).code;
  }

  /** Somebody who is logged in. */
  async client(scope: Scope): Promise<ConsoleClient> {
    const client = new ConsoleClient(this.url);
    scope.teardown(() => client.dispatcher.destroy());
    await client.loginWith(await this.code());
    return client;
  }
}
