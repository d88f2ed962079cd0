import type { Bus } from '../../../bus/bus.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Place } from '../http/contract.ts';
import { certificateActor, certificateJudged } from './actor.ts';
import { type CertificateVerdict, judgeCertificate } from './judge.ts';

const EVERY_MS = 3_600_000;
/** Of the actor's states. */
const VERDICTS: Readonly<Record<string, CertificateVerdict['state']>> = { warned: 'warn', failed: 'fail' };

interface Services {
  readonly actors: ActorSystem;
  readonly bus: Bus;
  readonly clock: Clock;
}

/**
 * Looks at the certificate of every surface and listener: at once, each hour, and when one is read again. Records only
 * what is another verdict than the last, also of an earlier run; its actor raises the alert.
 */
export class CertificateWatch {
  readonly #places: () => Readonly<Record<string, Place>>;
  readonly #services: Services;
  #cancel: (() => void) | undefined;

  constructor(places: () => Readonly<Record<string, Place>>, services: Services) {
    this.#places = places;
    this.#services = services;
    this.look();
  }

  look(): void {
    this.#cancel?.();
    const { actors, bus, clock } = this.#services;
    const places = this.#places();
    const verdicts = new Map<string, CertificateVerdict>();
    // What serves none any more, e.g. with another configuration, needs nobody.
    for (const { key } of actors.list(certificateActor)) {
      verdicts.set(key, { state: 'ok', text: 'it serves no certificate any more' });
    }
    for (const [surface, { tls }] of Object.entries(places)) {
      if (tls) verdicts.set(surface, judgeCertificate(tls, clock.now()));
    }
    for (const [surface, { state, text }] of verdicts) {
      const last = actors.get(certificateActor, surface)?.value;
      if ((VERDICTS[String(last)] ?? 'ok') !== state)
        bus.publish(certificateJudged, { surface, state, text });
    }
    if (verdicts.size > 0) this.#cancel = clock.after(EVERY_MS, () => this.look());
  }

  stop(): void {
    this.#cancel?.();
  }
}
