import { ALERT_RAISE } from '../../contracts/alerts.ts';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import type { Route } from '../../kernel/actors/route.ts';
import { HTTP_REPLY } from '../http/exchanges.ts';
import { checkpointRoute, lifecycleActor } from '../lifecycle/run.ts';
import type { Owned } from './registrations.ts';

/** The owner of what no plugin declares. */
export const CORE = 'core';

/** What core itself declares: part of every instance, whatever plugins it has. */
export const coreActors: readonly Owned<ActorDefinition>[] = [
  Object.freeze({ ...lifecycleActor, owner: CORE }),
];
export const coreRoutes: readonly Owned<Route>[] = [Object.freeze({ ...checkpointRoute, owner: CORE })];

/** Effect types that core carries out itself (`runtime/builtin-effects.ts`); a trailing `*` stands for any rest. */
export const CORE_EFFECTS: readonly string[] = ['timer.*', HTTP_REPLY, ALERT_RAISE];
