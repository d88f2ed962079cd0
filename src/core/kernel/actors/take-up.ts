import { type Clock, newCorrelation } from '../clock.ts';
import { KernelError } from '../errors/kernel-error.ts';
import type { Origin } from '../log/record.ts';
import type { ActorTable, LiveActor } from './actor-table.ts';
import { adoptionEvents, decideAdoption, type Inheritance, newestTakeover } from './adoption.ts';
import type { Adoption, TransitionRecorder } from './recorder.ts';

// How actors that were held back or set aside act here again (docs/log.md, Actors of another host): from the state that this
// host's own log has, or from what another host left.

/** What actors are taken up with. */
export interface TakeUpParts {
  readonly table: ActorTable;
  readonly recorder: TransitionRecorder;
  readonly clock: Clock;
}

/**
 * Has actors go on as this host's own log left them, because it held them last.
 *
 * @param isNamed whether an actor is one of them
 * @throws HF_ACTOR_ADOPTION_CUT, HF_MACHINE_VERSION, HF_ACTOR_UNKNOWN; the log is as before then
 */
export function goOn(
  { table, recorder }: Pick<TakeUpParts, 'table' | 'recorder'>,
  isNamed: (ref: string) => boolean,
): LiveActor[] {
  const takeover = newestTakeover(table.allStates(), isNamed);
  if (takeover && !takeover.isComplete) {
    const { host, seq } = takeover;
    throw new KernelError('HF_ACTOR_ADOPTION_CUT', { host, seq });
  }
  const live = [...table.asideStates()]
    .filter(({ ref, seq }) => isNamed(ref) && seq >= (takeover?.first ?? 0))
    .map((state): LiveActor => ({ ...table.registered(state.ref), state }));
  const migrations = live
    .filter(({ state, definition }) => state.version !== definition.version)
    .map((one) => recorder.migration(one));
  for (const one of live) table.takeUp(one);
  for (const migrate of migrations) migrate();
  return live;
}

/**
 * Has actors go on as another host left them, each by a record of its own. Those that it does not name end here.
 *
 * @param isNamed whether an actor is one of those that are taken up
 * @throws HF_ACTOR_ADOPTION, HF_MACHINE_VERSION, HF_ACTOR_UNKNOWN; the log is as before then
 */
export function adopt(
  { table, recorder, clock }: TakeUpParts,
  isNamed: (ref: string) => boolean,
  inheritance: Inheritance,
): LiveActor[] {
  const states = inheritance.states.filter(({ ref }) => isNamed(ref));
  const now = clock.now();
  const adoptions = adoptionEvents({ ...inheritance, states }, now).map(({ ref, event }): Adoption => {
    const type = table.registered(ref);
    const before = table.known(ref);
    // Only whether it is possible, before the log is changed.
    decideAdoption(type.stepper, type.definition, ref, before, event, now);
    return { ref, event, type, before };
  });
  table.setAside(isNamed);
  const { host, seq } = inheritance;
  const origin: Origin = seq > 0 ? { host, seq } : { host };
  const correlation = newCorrelation();
  return adoptions.map((adoption) => recorder.adopt(adoption, origin, correlation));
}
