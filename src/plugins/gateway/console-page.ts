import { type ConsolePage, consolePages } from '../../core/contracts/console.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { RoutesContext } from '../../machines/gateway/route-table.ts';
import { ROUTES_KEY, routesActor } from './routes/actor.ts';

/** The table of routes at a moment. */
const page: ConsolePage = {
  name: 'routes',
  title: 'Routes',
  data: ({ states }) => {
    const ref = actorRef(routesActor.type, ROUTES_KEY);
    const {
      revision = 0,
      served = 0,
      routes = {},
      rejected = [],
      refused,
      changedAt,
    } = (states.get(ref)?.context ?? {}) as Partial<RoutesContext>;
    const columns = [
      { name: 'route', title: 'Route' },
      { name: 'upstream', title: 'Upstream' },
      { name: 'disposition', title: 'Credential' },
      { name: 'since', title: 'Serves since', format: 'time' },
      { name: 'revision', title: 'Revision', format: 'number' },
      { name: 'problem', title: 'Problem' },
    ] as const;
    const rows = Object.entries(routes).map(([route, { serving, problem, pinned }]) => ({
      // Whether its upstream answers is not in the table.
      ...((problem !== undefined || !serving) && { status: 'degraded' as const }),
      cells: {
        route,
        upstream: serving?.upstream ?? null,
        disposition: serving?.disposition ?? null,
        since: serving?.since ?? null,
        revision: serving?.revision ?? null,
        problem: problem ?? (pinned ? 'rolled back' : ''),
      },
    }));
    return [
      {
        kind: 'facts',
        facts: [
          {
            label: 'revision',
            value: revision,
            actor: ref,
            ...(changedAt !== undefined && { since: changedAt }),
          },
          {
            label: 'served',
            value: served === revision ? 'the newest' : served,
            status: served === revision ? 'ok' : 'degraded',
          },
          ...(refused
            ? [{ label: 'file', value: refused.reason, status: 'degraded' as const, since: refused.at }]
            : []),
        ],
      },
      { kind: 'table', title: 'Routes', columns, rows },
      ...(rejected.length === 0
        ? []
        : [
            {
              kind: 'table' as const,
              title: 'Entries that are no routes',
              columns: [
                { name: 'name', title: 'Entry' },
                { name: 'reason', title: 'Why' },
              ],
              rows: rejected.map(({ name, reason }) => ({
                status: 'degraded' as const,
                cells: { name, reason },
              })),
            },
          ]),
    ];
  },
};

/** Lets the console show the routes at any moment. */
export function contributePage<S>(context: PluginContext<S>): void {
  context.contribute(consolePages, () => page);
}
