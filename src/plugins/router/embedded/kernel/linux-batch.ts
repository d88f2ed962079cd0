import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { RouterError } from '../../errors.ts';
import { KernelRefusal } from './driver.ts';

/** Where an `ip` works. */
export interface IpOptions {
  /** A network namespace by its name under `/run/netns`; this process's own without one. */
  readonly namespace?: string | undefined;
  /** Continues after a line that fails, to undo as much as possible. */
  readonly force?: boolean;
  /** Prints counters, too. */
  readonly statistics?: boolean;
}

/** `ip` reads at most some 500 words from a line. */
const KEYS_PER_LINE = 200;

/** Its answer shows that all lines before it are done, because `ip` runs them in order. */
const BARRIER = 'link show dev lo';
const isBarrier = (answer: string | undefined): boolean =>
  answer?.startsWith('[{"ifindex":1,') === true && !answer.includes('"addr_info"');

/**
 * One `ip -batch` process that receives line after line: no shell, and only options in the argument list. Lines contain
 * only names and addresses that `checkStep` has accepted.
 */
export class IpBatch {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #namespace: string | undefined;
  readonly #answers: string[] = [];
  readonly #ended: Promise<void>;
  #waiting: (() => void) | undefined;
  #errors = '';
  #failure: Error | undefined;
  #hasEnded = false;

  constructor({ namespace, force = false, statistics = false }: IpOptions, signal: AbortSignal) {
    this.#namespace = namespace;
    const inside = namespace === undefined ? [] : ['-netns', namespace];
    const options = [...(force ? ['-force'] : []), ...(statistics ? ['-statistics'] : [])];
    const child = spawn('ip', [...inside, ...options, '-json', '-details', '-batch', '-'], {
      stdio: 'pipe',
    });
    this.#child = child;
    const stop = () => child.kill('SIGKILL');
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#answers.push(line);
      this.#waiting?.();
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    child.stdin.on('error', () => {}); // it ended first, and says why on its own
    this.#ended = new Promise((resolve) => {
      child.on('error', (error: NodeJS.ErrnoException) => {
        const reason = error.code === 'ENOENT' ? 'there is no program `ip`' : error.message;
        this.#failure = new RouterError('HF_ROUTER_KERNEL', { reason });
        end();
      });
      child.on('close', (code) => {
        if (code !== 0 && !force)
          this.#failure ??= signal.aborted ? (signal.reason as Error) : this.#refusal();
        end();
      });
      const end = () => {
        this.#hasEnded = true;
        signal.removeEventListener('abort', stop);
        this.#waiting?.();
        resolve();
      };
    });
  }

  run(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** @returns the JSON that a `show` line prints @throws KernelRefusal a line before it failed */
  async ask(line: string): Promise<readonly Record<string, unknown>[]> {
    await this.sync();
    this.run(line);
    return (await this.sync()).flatMap((text) => JSON.parse(text) as Record<string, unknown>[]);
  }

  /** Waits until every line so far is done. @returns what they printed @throws KernelRefusal one failed */
  async sync(): Promise<string[]> {
    this.#answers.length = 0;
    this.run(BARRIER);
    while (!this.#hasEnded && !isBarrier(this.#answers.at(-1))) await this.#more();
    if (this.#failure) throw this.#failure;
    if (this.#hasEnded) throw this.#refusal();
    return this.#answers.splice(0).slice(0, -1);
  }

  /**
   * Sets `disable_ipv6` of devices, in order, after the lines so far. In another namespace that needs a process, so many
   * devices share one.
   */
  async disableIpv6(interfaces: readonly string[], disable: boolean): Promise<void> {
    if (interfaces.length === 0) return;
    const value = disable ? '1' : '0';
    if (this.#namespace !== undefined) {
      // This process sees only its own namespace's settings.
      for (let first = 0; first < interfaces.length; first += KEYS_PER_LINE) {
        const some = interfaces.slice(first, first + KEYS_PER_LINE);
        const keys = some.map((intf) => `net/ipv6/conf/${intf}/disable_ipv6=${value}`);
        this.run(`netns exec ${this.#namespace} sysctl -q -w ${keys.join(' ')}`);
      }
      return;
    }
    await this.sync();
    for (const intf of interfaces) {
      try {
        await writeFile(`/proc/sys/net/ipv6/conf/${intf}/disable_ipv6`, value);
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
        throw new KernelRefusal(`IPv6 of ${intf} could not be switched (${code})`);
      }
    }
  }

  /** @throws KernelRefusal a line failed */
  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
    if (this.#failure) throw this.#failure;
  }

  /** Ends the process at once. */
  async kill(): Promise<void> {
    this.#child.stdin.end();
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = () => {
        this.#waiting = undefined;
        resolve();
      };
    });
  }

  /** The kernel's own messages, which contain no secret, because no line contains one. */
  #refusal(): KernelRefusal {
    const messages = this.#errors
      .split('\n')
      .map((line) => line.replace(/^(RTNETLINK answers|Error): /, '').trim())
      .filter((line) => line !== '' && !line.startsWith('Command failed'));
    return new KernelRefusal(messages.join('; ') || 'the kernel refused a change');
  }
}
