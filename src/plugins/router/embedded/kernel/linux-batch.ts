import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import ipaddr from 'ipaddr.js';
import { isConfigurable } from '../../config/validate.ts';
import { RouterError } from '../../errors.ts';
import { KernelRefusal, type KernelStep } from './driver.ts';
import { type LinuxRoute, OWN_PROTOCOL } from './linux-snapshot.ts';

/** Where an `ip` works. */
export interface IpOptions {
  /** A network namespace by its name under `/run/netns`; this process's own without one. */
  readonly namespace?: string | undefined;
  /** Continues after a line that fails, to undo as much as possible. */
  readonly force?: boolean;
}

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

  constructor({ namespace, force = false }: IpOptions, signal: AbortSignal) {
    this.#namespace = namespace;
    const inside = namespace === undefined ? [] : ['-netns', namespace];
    const child = spawn('ip', [...inside, ...(force ? ['-force'] : []), '-json', '-details', '-batch', '-'], {
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

  /** Sets `disable_ipv6` of a device, after the lines so far. */
  async disableIpv6(intf: string, disable: boolean): Promise<void> {
    const value = disable ? '1' : '0';
    if (this.#namespace !== undefined) {
      // This process sees only its own namespace's settings.
      const key = `net/ipv6/conf/${intf}/disable_ipv6=${value}`;
      return this.run(`netns exec ${this.#namespace} sysctl -q -w ${key}`);
    }
    await this.sync();
    try {
      await writeFile(`/proc/sys/net/ipv6/conf/${intf}/disable_ipv6`, value);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
      throw new KernelRefusal(`IPv6 of ${intf} could not be switched (${code})`);
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

// Lines for `ip -batch`. Every value from a config or the kernel is checked before it becomes part of a line.

/** @throws KernelRefusal a value of the step may not be passed to `ip` */
export function checkStep(step: KernelStep): void {
  nameWord(step.intf);
  switch (step.step) {
    case 'setLink':
      step.lower.forEach(nameWord);
      if (step.vid !== undefined && !(Number.isInteger(step.vid) && step.vid > 0 && step.vid < 4095))
        throw new KernelRefusal(`Invalid vid for ${step.intf}`);
      break;
    case 'applyIpv4Settings':
      for (const address of step.addresses) cidrWord(address, 4, step.intf);
      break;
    case 'applyIpv6Settings':
      for (const address of step.addresses) cidrWord(address, 6, step.intf);
      if (step.delegated !== undefined) cidrWord(step.delegated, 6, step.intf);
      break;
    case 'changeRoutingTables':
      if (step.gateway !== undefined) addressWord(step.gateway, 4, step.intf);
      if (step.gateway6 !== undefined) addressWord(step.gateway6, 6, step.intf);
      break;
    case 'removeLink':
    case 'flushIP':
      break;
  }
}

/** @returns the name @throws KernelRefusal */
export function nameWord(name: string): string {
  if (!isConfigurable(name)) throw new KernelRefusal(`"${shown(name)}" is no device to configure`);
  return name;
}

export function cidrWord(text: string, family: 4 | 6, intf: string): string {
  const [address = '', bits = '', ...rest] = text.split('/');
  const fits = /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
  if (rest.length > 0 || !fits) throw new KernelRefusal(`Invalid ipv${family} address for ${intf}`);
  return `${addressWord(address, family, intf)}/${bits}`;
}

function addressWord(text: string, family: 4 | 6, intf: string): string {
  const valid = family === 4 ? ipaddr.IPv4.isValidFourPartDecimal(text) : ipaddr.IPv6.isValid(text);
  if (!valid || !/^[0-9a-fA-F:.]+$/.test(text))
    throw new KernelRefusal(`Invalid ipv${family} address for ${intf}`);
  return text;
}

/** A default route of our own. */
export function defaultRouteLine(intf: string, gateway: string, family: 4 | 6): string {
  return `route replace ${anywhere(family)} via ${gateway} dev ${intf} proto ${OWN_PROTOCOL}`;
}

/** Puts back, or takes away, a route that the kernel had. @returns undefined for a route that no line can express */
export function routeLine(verb: 'replace' | 'del', route: LinuxRoute): string | undefined {
  const { family, destination, gateway, devices, protocol, metric, source, table, scope } = route;
  const [intf, ...others] = devices;
  if (intf === undefined || others.length > 0) return undefined;
  const words = [
    ['', destination === 'default' ? anywhere(family) : destination],
    ['via ', gateway],
    ['dev ', intf],
    ['proto ', protocol],
    ['metric ', metric === undefined ? undefined : String(metric)],
    ['src ', source],
    ['table ', table],
    // IPv6 routes have none; `ip` would apply the word to both families.
    ['scope ', family === 4 ? scope : undefined],
  ].filter((pair): pair is [string, string] => pair[1] !== undefined);
  if (!words.every(([, word]) => /^[\w.:/-]+$/.test(word))) return undefined;
  return `route ${verb} ${words.map(([before, word]) => before + word).join(' ')}`;
}

function anywhere(family: 4 | 6): string {
  return family === 4 ? '0.0.0.0/0' : '::/0';
}

function shown(name: string): string {
  return name.replace(/[^\w.-]/g, '?').slice(0, 20);
}
