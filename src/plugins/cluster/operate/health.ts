import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { counted, timestamp } from '../../../core/host/terminal.ts';
import type { Json } from '../../../core/kernel/json.ts';
import { type ClusterParts, clusterView } from './view.ts';

/** Registers the fact `cluster` of health pages and of `holdfast status`. */
export function registerHealth<S>(context: PluginContext<S>, parts: (started: S) => ClusterParts): void {
  context.health('cluster', (started) => clusterFact(parts(started)));
}

const AWAY: readonly string[] = ['silent', 'stopped', 'gone'];

/** Not `ok` while this host is cut off, its log lags behind, or an orphaned branch was not looked at. */
export function clusterFact(parts: ClusterParts): Json {
  const view = clusterView(parts);
  const {
    name,
    host,
    hosts,
    leases,
    mirror,
    isIsolated,
    isDrained,
    orphans,
    problems,
    unknownSince,
    forged,
  } = view;
  const there = hosts.filter(({ state }) => state === 'here' || state === 'there').length;
  const held = leases.filter(({ holder }) => holder === host).map(({ singleton }) => singleton);
  const holds = held.length > 0 ? `holds ${held.join(', ')}` : isDrained ? 'is drained' : 'holds nothing';
  const others =
    unknownSince === undefined
      ? `${counted(there, 'host is', 'hosts are')} there`
      : `since ${timestamp(unknownSince)} it is unknown which hosts are there`;
  const strangers =
    forged === 0 ? [] : [`${counted(forged, 'message')} dropped that no host of the cluster sent`];
  const away = hosts.filter(({ state }) => AWAY.includes(state)).map((one) => `${one.host} is ${one.state}`);
  const reason = problems.map((problem) => problem.replace(/\.$/, '')).join('; ');
  const facts = [others, ...away, ...strangers, ...(reason === '' ? [] : [reason])].join('; ');
  return {
    text: `${host} of ${name} ${holds}; ${facts}`,
    ...(reason !== '' && { ok: false, reason }),
    ready: isReady(parts),
    host,
    hosts: unknownSince === undefined ? there : 'unknown',
    ...(unknownSince !== undefined && { unknownSince }),
    holds: held,
    isolated: isIsolated,
    drained: isDrained,
    lagRecords: mirror.records,
    lagMs: mirror.ms,
    orphans: orphans.length,
    forged,
  };
}

/** A host that is behind refuses every call; one that is cut off serves some for a while, which others may serve better, if there are any. */
function isReady(parts: ClusterParts): boolean {
  const { hosts, isIsolated, isBehind } = parts.standing();
  return !isBehind && !(isIsolated && hosts > 1);
}
