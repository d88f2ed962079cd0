import { fakeDisk } from '../../test/support/disk.ts';
import type { Order } from './load.ts';
import { Program } from './program.ts';
import { KEY, session } from './session.ts';

/** Where calls go: straight to the upstream, through the proxy, or through a gateway. */
export interface Target extends Pick<Order, 'url' | 'headers' | 'prefix'> {
  readonly name: 'direct' | 'proxy' | 'gateway' | 'slow';
  /** The process whose time and memory is looked at. */
  readonly program?: Program;
}

export interface Targets {
  /** In the order of their turns. */
  readonly all: readonly Target[];
  readonly load: Program;
  stop(): void;
}

/**
 * So many processes of each program: V8 makes other code and another heap in each, so that one may be a quarter slower
 * than the next, for as long as it lives.
 */
const PROCESSES = 3;

/**
 * Starts the upstream and the load on one processor, and all that stands between them on the other.
 *
 * @param syncMs milliseconds in every sync of the slow gateways' disk
 */
export async function startTargets(dir: string, syncMs: number): Promise<Targets> {
  const upstream = Program.start('upstream', 1);
  const { url: direct } = await upstream.said<{ url: string }>();
  const { env } = fakeDisk(dir, syncMs);
  const start = {
    proxy: (_: number) => Program.start('proxy', 0, [direct]),
    gateway: (index: number) => Program.start('gateway', 0, [direct, `${dir}/fast${index}`, KEY]),
    slow: (index: number) => Program.start('gateway', 0, [direct, `${dir}/slow${index}`, KEY], env),
  };
  const all: Target[] = [{ name: 'direct', url: direct, headers: {}, prefix: '' }];
  for (let index = 0; index < PROCESSES; index += 1) {
    for (const name of ['proxy', 'gateway', 'slow'] as const) {
      const program = start[name](index);
      const { url } = await program.said<{ url: string }>();
      const asked =
        name === 'proxy' ? { headers: {}, prefix: '' } : { headers: await session(url), prefix: 'bench-' };
      all.push({ name, url, program, ...asked });
    }
  }
  const load = Program.start('load', 1);
  await load.said();
  const programs = [load, ...all.flatMap(({ program }) => program ?? []), upstream];
  const stop = () => {
    for (const program of programs) program.stop();
  };
  return { all, load, stop };
}
