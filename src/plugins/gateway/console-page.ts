import {
  type ConsolePage,
  consolePages,
  type PageMoment,
  type PageSection,
  type PageStatus,
} from '../../core/contracts/console.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { stateName } from '../../core/host/terminal.ts';
import { actorRef, parseActorRef } from '../../core/kernel/ids.ts';
import type { ApprovalContext } from '../../machines/gateway/approval.ts';
import type { RouteHealthContext } from '../../machines/gateway/route-health.ts';
import type { RoutesContext } from '../../machines/gateway/route-table.ts';
import { callsPage } from './pages/calls.ts';
import { keysPage } from './pages/keys.ts';

const APPROVAL_TYPE = 'gateway.approval';
const HEALTH_TYPE = 'gateway.route_health';
const ROUTES = actorRef('gateway.routes', 'table');

const STATUS: Readonly<Record<string, PageStatus>> = { healthy: 'ok', unknown: 'unknown', down: 'failing' };

/** What the newest probes found of a route's upstream. */
function healthOf(states: PageMoment['states'], route: string) {
  const ref = actorRef(HEALTH_TYPE, route);
  const state = states.get(ref);
  if (!state) return { status: 'unknown', health: 'not probed yet', tools: null, reason: '' } as const;
  const { tools = null, reason = '', token } = state.context as Partial<RouteHealthContext>;
  const health = stateName(state.value);
  return {
    status: STATUS[health] ?? 'degraded',
    actor: ref,
    health: health.replace('_', ' '),
    tools,
    reason: token?.problem ?? reason,
  };
}

/** The calls that wait for a person. Their arguments are sealed beside the log, so no page of a moment has them. */
function waitingCalls(states: PageMoment['states']): PageSection[] {
  const rows = [...states.values()]
    .filter(({ ref, value }) => parseActorRef(ref).type === APPROVAL_TYPE && value === 'waiting')
    .flatMap(({ ref, context }) => {
      const { request, askedAt = null, until = null } = context as Partial<ApprovalContext>;
      if (!request) return [];
      const { id, alias, key, route, tool } = request;
      return [{ actor: ref, cells: { id, by: alias ?? key, call: `${route} ${tool}`, askedAt, until } }];
    });
  if (rows.length === 0) return [];
  const columns = [
    { name: 'id', title: 'Id' },
    { name: 'by', title: 'Key' },
    { name: 'call', title: 'Call' },
    { name: 'askedAt', title: 'Asked at', format: 'time' },
    { name: 'until', title: 'Refused at', format: 'time' },
  ] as const;
  return [{ kind: 'table', title: 'Calls that wait for approval', columns, rows }];
}

/** The table of routes, their health, and who waits, at a moment. */
export const routesPage: ConsolePage = {
  name: 'routes',
  title: 'Routes',
  data: ({ states }) => {
    const ref = ROUTES;
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
      { name: 'health', title: 'Health' },
      { name: 'tools', title: 'Tools', format: 'number' },
      { name: 'upstream', title: 'Upstream' },
      { name: 'disposition', title: 'Credential' },
      { name: 'since', title: 'Serves since', format: 'time' },
      { name: 'revision', title: 'Revision', format: 'number' },
      { name: 'problem', title: 'Problem' },
    ] as const;
    const rows = Object.entries(routes).map(([route, { serving, problem, pinned }]) => {
      const isConfigured = serving?.upstream !== undefined;
      const { status, health, tools, reason, ...link } = healthOf(states, route);
      return {
        ...(isConfigured && { status, ...link }),
        ...((problem !== undefined || !serving) && { status: 'degraded' as const }),
        cells: {
          route,
          health: isConfigured ? health : 'not configured',
          tools: isConfigured ? tools : null,
          upstream: serving?.upstream ?? null,
          disposition: serving?.disposition ?? null,
          since: serving?.since ?? null,
          revision: serving?.revision ?? null,
          problem: problem ?? (pinned ? 'rolled back' : isConfigured ? reason : ''),
        },
      };
    });
    if (!states.has(ref)) return [{ kind: 'text', text: 'There were no routes at that moment.' }];
    return [
      ...waitingCalls(states),
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

/** Lets the console show routes, keys and calls at any moment. */
export function contributePages<S>(context: PluginContext<S>): void {
  for (const page of [routesPage, keysPage, callsPage]) context.contribute(consolePages, page);
}
