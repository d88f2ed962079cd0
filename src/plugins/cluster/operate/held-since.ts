import { z } from 'zod';
import type { Json } from '../../../core/kernel/json.ts';
import type { SingletonContext } from '../../../machines/cluster/singleton.ts';

const NAME = 'held since';
const times = z.record(z.string(), z.number());

interface Announcements {
  announce(name: string, figures: () => Json): void;
  announced(name: string): ReadonlyMap<string, Json>;
}

/**
 * Has each beat say since when this host holds what it holds.
 *
 * @param singletons the actors `cluster.singleton` of this host; what another host says of itself is taken from its beats
 * @returns since when a host has held a singleton; epoch milliseconds
 */
export function announceHeld(
  beats: Announcements,
  singletons: () => readonly {
    readonly key: string;
    readonly context: Pick<SingletonContext, 'holder' | 'since'>;
  }[],
  host: string,
): (singleton: string, holder: string) => number | undefined {
  const own = (): Record<string, number> =>
    Object.fromEntries(
      singletons().flatMap(({ key, context: { holder, since } }) =>
        holder === host && since !== undefined ? [[key, since]] : [],
      ),
    );
  beats.announce(NAME, own);
  return (singleton, holder) => {
    const said = holder === host ? own() : times.safeParse(beats.announced(NAME).get(holder)).data;
    return said && Object.hasOwn(said, singleton) ? said[singleton] : undefined;
  };
}
