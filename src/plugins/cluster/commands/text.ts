import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { counted, duration, plainText, table, timestamp } from '../../../core/host/terminal.ts';
import type { ClusterView, HostView, MovedView } from '../operate/view.ts';

const COLOUR = {
  here: 'green',
  there: 'green',
  isolated: 'red',
  silent: 'yellow',
  stopped: 'dim',
  gone: 'red',
  unknown: 'yellow',
} as const;

/** `holdfast cluster status`. */
export function statusLines(view: ClusterView, context: CommandContext): string[] {
  const { name, host, nats, mirror, isDrained, forged, problems } = view;
  const { paint } = context.terminal;
  const server =
    nats.problem ?? `${nats.servers}${nats.version === undefined ? '' : ` (version ${nats.version})`}`;
  const place = `record ${mirror.seq} (incarnation ${mirror.incarnation})`;
  const log =
    mirror.records === 0
      ? `everything is on the stream, up to ${place}`
      : `on the stream up to ${place}; ${counted(mirror.records, 'record waits', 'records wait')}, the oldest for ${duration(mirror.ms)}`;
  return [
    `${plainText(host)}${isDrained ? ', drained' : ''}, a host of ${plainText(name)}; NATS: ${plainText(server)}`,
    `log: ${log}`,
    ...(forged > 0 ? [`${counted(forged, 'message')} dropped that no host of the cluster sent`] : []),
    '',
    ...hostLines(view, context),
    '',
    ...leaseLines(view, context),
    ...(problems.length > 0 ? [''] : []),
    ...problems.map((problem) => paint('red', plainText(problem))),
  ];
}

export function hostLines({ hosts }: ClusterView, { terminal }: CommandContext): string[] {
  const rows = hosts.map(({ host, state, isThis, heardMs, drained, holds, lag, version }) => [
    isThis ? `${host} (this)` : host,
    drained ? `${state}, drained` : state,
    isThis && state === 'here' ? 'now' : `${duration(heardMs)} ago`,
    holds === undefined ? 'unknown' : holds.join(', ') || '-',
    lag === undefined ? 'unknown' : String(lag),
    version,
  ]);
  const head = ['host', 'state', 'heard', 'holds', 'not mirrored', 'version'];
  return coloured(
    table([head, ...rows], terminal),
    hosts.map(({ state }) => state),
    terminal,
  );
}

export function leaseLines({ leases }: ClusterView, { terminal }: CommandContext): string[] {
  if (leases.length === 0) return ['nothing runs on one host alone'];
  const rows = leases.map(({ singleton, holder, isUnknown, since, token, last }) => [
    singleton,
    holder ?? (isUnknown ? 'unknown' : 'nobody'),
    since === undefined ? '-' : timestamp(since),
    token ?? '-',
    last ?? '-',
  ]);
  return table([['work', 'held by', 'since', 'fencing token', 'before'], ...rows], terminal).flat();
}

/** `holdfast cluster move`. */
export function movedLines(view: MovedView, context: CommandContext): string[] {
  const { hadIt } = view;
  return [
    ...(hadIt === undefined ? [] : [`${plainText(hadIt)} has it already`]),
    ...leaseLines(view, context),
  ];
}

export function orphanLines({ orphans }: ClusterView, { terminal }: CommandContext): string[] {
  if (orphans.length === 0) return ['this host has no orphaned branch'];
  const rows = orphans.map(({ number, singleton, by, records, after, to, exportedAt }) => [
    String(number),
    singleton,
    by,
    String(records),
    `${after + 1} to ${to}`,
    exportedAt === undefined ? 'no' : timestamp(exportedAt),
  ]);
  const head = ['number', 'work', 'taken over by', 'records', 'within', 'exported'];
  return [
    ...table([head, ...rows], terminal).flat(),
    'They are in the log of this host, and in nobody else’s story. Look at one: holdfast cluster orphans export 1 FILE',
  ];
}

function coloured(
  rows: readonly (readonly string[])[],
  states: readonly HostView['state'][],
  { paint }: CommandContext['terminal'],
): string[] {
  return rows.flatMap((lines, at) => {
    const state = states[at - 1];
    return state === undefined ? lines : lines.map((line) => paint(COLOUR[state], line));
  });
}
