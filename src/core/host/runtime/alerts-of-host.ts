import type { Bus } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import { type AlertRaised, alertRaised } from '../../contracts/alerts.ts';
import type { Route } from '../../kernel/actors/definition.ts';
import { parseActorRef } from '../../kernel/ids.ts';

/**
 * Of several hosts an alert may be about one of them (its disk, its log, its connections) or about what is the same from all of
 * them (what a singleton works on, what messages to every host decide). The former names its host, so that what is well on one
 * host does not end the alert of another one.
 */
export class AlertsOfHost {
  readonly #host: () => string | undefined;
  readonly #isSingletons: (type: string) => boolean;
  readonly #sameEverywhere: ReadonlySet<string>;

  /** @param host the name of this one; undefined where it is alone */
  constructor(
    host: () => string | undefined,
    isSingletons: (type: string) => boolean,
    routes: readonly Pick<Route, 'to' | 'everyHost' | 'ownHost' | 'ownState'>[],
  ) {
    this.#host = host;
    this.#isSingletons = isSingletons;
    const same = routes.filter(({ everyHost, ownHost, ownState }) => ownHost || (everyHost && !ownState));
    this.#sameEverywhere = new Set(same.map(({ to }) => to));
  }

  /** An alert that an actor raised. */
  ofActor(alert: AlertRaised, actor: string): AlertRaised {
    const { type } = parseActorRef(actor);
    return this.#isSingletons(type) || this.#sameEverywhere.has(type) ? alert : this.named(alert);
  }

  /** An alert about this host. */
  named(alert: AlertRaised): AlertRaised {
    const host = this.#host();
    if (host === undefined || alert.labels.host !== undefined) return alert;
    return { ...alert, labels: { ...alert.labels, host } };
  }

  /** Publishes for the parts of the runtime: all their alerts are about this host. */
  publisher(bus: Bus): Pick<Bus, 'publish'> {
    return {
      publish: <T>(topic: Topic<T>, payload: T, meta?: Parameters<Bus['publish']>[2]) => {
        if (topic.name !== alertRaised.name) return bus.publish(topic, payload, meta);
        return bus.publish(alertRaised, this.named(alertRaised.schema.parse(payload)), meta);
      },
    };
  }
}
