import {
  type ConsolePage,
  consolePages,
  type PageSection,
  type PageStatus,
} from '../../../core/contracts/console.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { type ClusterParts, type ClusterView, clusterView, type HostView } from './view.ts';

/** Contributes the console's page of hosts, leases and orphaned branches. */
export function contributePage<S>(context: PluginContext<S>, parts: (started: S) => ClusterParts): void {
  context.contribute(consolePages, (started) => hostsPage(parts(started)));
}

const STATUS: Readonly<Record<HostView['state'], PageStatus>> = {
  here: 'ok',
  there: 'ok',
  isolated: 'failing',
  silent: 'degraded',
  stopped: 'unknown',
  gone: 'failing',
  unknown: 'degraded',
};

/** The hosts of the cluster as this one sees them now. */
export function hostsPage(parts: ClusterParts): ConsolePage {
  return {
    name: 'hosts',
    title: 'Hosts',
    needsInstance: true,
    data: ({ isNow, time }) => {
      if (!isNow)
        return [
          { kind: 'text', text: 'Who was connected is known of now alone; the log says who held what.' },
        ];
      const view = clusterView(parts);
      return [facts(view), hosts(view, time), leases(view), ...orphans(view)];
    },
  };
}

function facts({ name, host, nats, mirror, isIsolated, isDrained, problems }: ClusterView): PageSection {
  return {
    kind: 'facts',
    facts: [
      { label: 'cluster', value: name },
      { label: 'this host', value: isDrained ? `${host}, drained` : host },
      {
        label: 'NATS',
        value:
          nats.problem ?? `${nats.servers}${nats.version === undefined ? '' : `, version ${nats.version}`}`,
        status: nats.problem === undefined && !isIsolated ? 'ok' : 'failing',
      },
      {
        label: 'not yet on the stream',
        value: mirror.records,
        format: 'number',
        status: mirror.problem === undefined ? 'ok' : 'degraded',
      },
      { label: 'record on the stream', value: mirror.seq, format: 'number', seq: mirror.seq },
      ...problems.map((value) => ({ label: 'problem', value, status: 'failing' as const })),
    ],
  };
}

function hosts(view: ClusterView, now: number): PageSection {
  return {
    kind: 'table',
    title: 'Hosts',
    columns: [
      { name: 'host', title: 'Host' },
      { name: 'state', title: 'State' },
      { name: 'heard', title: 'Last heard', format: 'time' },
      { name: 'holds', title: 'Holds' },
      { name: 'lag', title: 'Not on its stream', format: 'number' },
      { name: 'version', title: 'Version' },
    ],
    rows: view.hosts.map(({ host, state, heardMs, drained, holds, lag, version }) => ({
      status: drained && STATUS[state] === 'ok' ? 'degraded' : STATUS[state],
      cells: {
        host,
        state: drained ? `${state}, drained` : state,
        heard: now - heardMs,
        holds: holds?.join(', ') ?? 'unknown',
        ...(lag !== undefined && { lag }),
        version,
      },
    })),
  };
}

function leases(view: ClusterView): PageSection {
  return {
    kind: 'table',
    title: 'What one host does at a time',
    columns: [
      { name: 'singleton', title: 'Work' },
      { name: 'holder', title: 'Held by' },
      { name: 'since', title: 'Since', format: 'time' },
      { name: 'fencing', title: 'Fencing token' },
      { name: 'last', title: 'Before' },
    ],
    rows: view.leases.map(({ singleton, holder, isUnknown, since, token, last }) => ({
      status: holder !== undefined ? 'ok' : isUnknown ? 'degraded' : 'failing',
      cells: {
        singleton,
        holder: holder ?? (isUnknown ? 'unknown' : 'nobody'),
        since: since ?? null,
        fencing: token ?? '',
        last: last ?? '',
      },
    })),
  };
}

function orphans({ orphans: branches }: ClusterView): PageSection[] {
  if (branches.length === 0) return [];
  return [
    {
      kind: 'table',
      title: 'Orphaned branches of this host',
      columns: [
        { name: 'singleton', title: 'Work' },
        { name: 'by', title: 'Taken over by' },
        { name: 'records', title: 'Records', format: 'number' },
        { name: 'after', title: 'Last that counts', format: 'number' },
        { name: 'exportedAt', title: 'Exported', format: 'time' },
      ],
      rows: branches.map(({ singleton, by, records, after, exportedAt }) => ({
        status: exportedAt === undefined ? 'degraded' : 'ok',
        seq: after,
        cells: { singleton, by, records, after, exportedAt: exportedAt ?? null },
      })),
    },
  ];
}
