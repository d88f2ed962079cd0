/**
 * The adoption of legs (R24): beside a router elsewhere nothing is written until an operator, or the option `adopted`, has
 * confirmed the list. The embedded router needs none.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ADOPTION_PATH, type AdoptionView } from '../../core/contracts/reconciler.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { type AdoptedHow, identityOf, type ListedLeg } from '../../machines/reconciler/adoption.ts';
import type { LegSettings } from '../../machines/reconciler/leg-shapes.ts';
import { ADOPTION_KEY, adoptionActor, legActor } from './actors.ts';
import { ReconcilerError } from './errors.ts';
import { legStatus, stateText } from './leg-status.ts';

export class Adoption {
  /** The listed legs and kept fields, adopted or not. */
  readonly legs: readonly LegSettings[];
  readonly #services: Services;
  readonly #place: string | undefined;

  /** @param place base URL of a router elsewhere; undefined for one of this process */
  constructor(services: Services, legs: readonly LegSettings[], place: string | undefined) {
    this.#services = services;
    this.#place = place;
    this.legs = legs;
  }

  /** Records the list that is configured. @param adopted the option of that name */
  list(adopted: boolean): void {
    const place = this.#place;
    if (place === undefined) return;
    const { actors } = this.#services;
    const legs = listed(this.legs);
    const recorded = actors.get(adoptionActor, ADOPTION_KEY)?.context;
    if (!recorded || JSON.stringify([recorded.place, recorded.legs]) !== JSON.stringify([place, legs]))
      actors.send(adoptionActor, ADOPTION_KEY, { type: 'LISTED', place, legs });
    if (adopted && this.isObserving()) this.adopt('configuration', 'option');
  }

  adopt(by: string, how: AdoptedHow, correlation?: string) {
    const { actors, clock } = this.#services;
    return actors.send(
      adoptionActor,
      ADOPTION_KEY,
      { type: 'ADOPT', by, how, at: clock.now() },
      { correlation },
    );
  }

  /** Whether nothing may be written, because nobody has confirmed the legs for this router. */
  isObserving(): boolean {
    if (this.#place === undefined || this.legs.length === 0) return false;
    const actor = this.#services.actors.get(adoptionActor, ADOPTION_KEY);
    const configured = identityOf({ place: this.#place, legs: listed(this.legs) });
    return actor?.value !== 'adopted' || identityOf(actor.context) !== configured;
  }

  /** The settings by which the legs' actors write, or only observe. */
  settings(): readonly LegSettings[] {
    const observes = this.isObserving();
    return this.legs.map((leg) => ({ ...leg, observes }));
  }

  /** Why nothing is written, with what would be; undefined when the legs are adopted. */
  reason(): string | undefined {
    if (this.legs.length === 0)
      return 'no leg is listed for the router elsewhere: name them in router_ula_reconciler_addresses, or in the option legs';
    if (!this.isObserving()) return undefined;
    const missing = this.view().legs.filter(({ state }) => state === 'not adopted');
    const would = missing.map(({ intf, label, address }) => `${address} to ${intf} (${label})`).join(', ');
    return `not adopted: would add ${would || 'nothing now'}; confirm with \`holdfast router adopt\``;
  }

  view(): AdoptionView {
    const { actors } = this.#services;
    const adopted = actors.get(adoptionActor, ADOPTION_KEY)?.context.adopted;
    const place = this.#place;
    const state = place === undefined ? 'not needed' : this.isObserving() ? 'observing' : 'adopted';
    return {
      state,
      ...(place !== undefined && { place, list: fingerprint(place, this.legs) }),
      ...(state === 'adopted' &&
        adopted && { by: adopted.by, how: adopted.how, at: new Date(adopted.at).toISOString() }),
      legs: listed(this.legs).map((leg) => {
        const actor = actors.get(legActor, leg.intf);
        if (!actor) return { ...leg, state: 'unread', text: 'unread' };
        const status = legStatus(actor);
        return { ...leg, state: status.state, text: stateText(status) };
      }),
    };
  }
}

interface Started extends Services {
  readonly adoption: Adoption;
}

/** Registers the actor of the adoption, its effect and its operations. */
export function registerAdoption(context: PluginContext<Started>): void {
  context.actor(adoptionActor);
  context.effect(
    'reconciler.legs_adopted',
    (_params, { correlation, cause }, { actors, adoption, logger }) => {
      const { by, how, at, place } = adoption.view();
      logger.info({ by, how, at, place }, 'reconciler.adopted');
      for (const leg of adoption.settings())
        actors.send(legActor, leg.intf, { type: 'CONFIGURE', leg }, { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
  context.effect<ListedLeg & { ncid: string }>(
    'reconciler.would_add',
    ({ intf, label, address }, _effect, { logger }) =>
      logger.warn({ intf, label, address, remedy: 'holdfast router adopt' }, 'leg.would_add'),
    { onRecovery: 'retry' },
  );
  const adopt = z.strictObject({ by: z.string().min(1).max(64), list: z.string() });
  context.control((surface, { adoption }) => {
    serveOperation(surface, ADOPTION_PATH, z.strictObject({}), () => adoption.view());
    serveOperation(surface, `${ADOPTION_PATH}/adopt`, adopt, async ({ by, list }, { correlation }) => {
      const { state, list: present } = adoption.view();
      if (list !== present)
        throw new ReconcilerError('HF_RECONCILER_ADOPTION', {
          reason: 'the list of legs has changed meanwhile',
        });
      if (state === 'observing') await adoption.adopt(by, 'operator', correlation).durable();
      return adoption.view();
    });
  });
}

function listed(legs: readonly LegSettings[]): ListedLeg[] {
  return legs.map(({ intf, label, address, keep }) => ({
    ...{ intf, label, address },
    ...(keep && { match: keep.match }),
  }));
}

/** Names the list that a person was shown, so that no other one is confirmed. */
function fingerprint(place: string, legs: readonly LegSettings[]): string {
  return createHash('sha256')
    .update(identityOf({ place, legs: listed(legs) }))
    .digest('hex')
    .slice(0, 16);
}
