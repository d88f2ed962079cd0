import { defineActor } from '../../src/core/kernel/actors/definition.ts';
import { EFFECT_DONE } from '../../src/core/kernel/actors/effect.ts';
import { ActorSystem } from '../../src/core/kernel/actors/system.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { SqliteLog } from '../../src/core/kernel/log/sqlite-log.ts';
import { leg as reconciler } from '../../src/machines/reconciler/leg.ts';

export const LEGS = 50;
const ADDRESS = 'fd5e:21aa:90c4:10::1/64';

export const leg = defineActor({
  type: 'reconciler.leg',
  machine: reconciler,
  version: 1,
  input: (key) => ({ intf: key, label: key, address: ADDRESS }),
});

/** What a leg lives through when an app save drops its address: heard, settled, read, added, verified, looked again. */
const STORY = [
  { type: 'CHANGED' },
  { type: 'xstate.after.settle.reconciler-leg.settling' },
  { type: 'LEG_READ', ncid: '4be19c02d7a83f5516e1795200000123', addresses: [] },
  { type: 'ADDED', ncid: '7c1a9c02d7a83f5516e1795200000456' },
  { type: 'LEG_READ', ncid: '7c1a9c02d7a83f5516e1795200000456', addresses: [ADDRESS] },
  { type: 'xstate.after.secondLook.reconciler-leg.checking' },
  { type: 'LEG_READ', ncid: '7c1a9c02d7a83f5516e1795200000456', addresses: [ADDRESS] },
] as const;

/** Effects whose outcome the story tells; every other is done at once. */
const ANSWERED = new Set(['reconciler.read_leg', 'reconciler.add_address']);

export function event(index: number): { readonly type: string } {
  return STORY[Math.floor(index / LEGS) % STORY.length] ?? STORY[0];
}

/**
 * Writes a log of so many events, each outcome naming its effect.
 *
 * @param checkpoint the states are saved every so many records; a runtime does so every 10,000
 */
export async function writeLog(
  dir: string,
  events: number,
  checkpoint = Number.POSITIVE_INFINITY,
): Promise<void> {
  const log = new SqliteLog({ dataDir: dir });
  const actors = new ActorSystem(log, systemClock, { seq: 0, at: 0 }, () => {});
  actors.register(leg);
  const asked = new Map<string, string>();
  for (let index = 0; index < events; index += 1) {
    const ref = `reconciler.leg/eth1.${index % LEGS}`;
    const next = event(index);
    const isOutcome = next.type === 'LEG_READ' || next.type === 'ADDED';
    const { record } = actors.deliver(ref, next, isOutcome ? { outcome: asked.get(ref) } : {});
    for (const [place, { type }] of record?.effects.entries() ?? []) {
      const id = `${record?.seq}.${place}`;
      if (ANSWERED.has(type)) asked.set(ref, id);
      else if (!type.startsWith('timer.'))
        actors.deliver(ref, { type: EFFECT_DONE, effect: type }, { outcome: id });
    }
    if (index % 2_000 === 0) await log.whenDurable(log.lastSeq());
    if (index % checkpoint === checkpoint - 1) {
      const states = actors
        .states()
        .map((state) => ({ actor: state.ref, seq: state.seq, body: JSON.stringify(state) }));
      const seq = log.lastSeq();
      await log.saveSnapshots(
        states.map((state) => ({ ...state, seq })),
        () => [],
      );
    }
  }
  await log.close();
}
