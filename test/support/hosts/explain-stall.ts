import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { isObject } from '../../../src/core/kernel/json.ts';
import { PATHS } from '../../../src/plugins/cluster/operate/view.ts';
import type { NatsServers } from '../nats.ts';
import type { Hosts } from './hosts.ts';

/** A server or a host that says nothing for longer says that. */
const ANSWER_MS = 3_000;
const NEWEST_RECORDS = 30;
const LOG_BYTES = 3_000;

/**
 * What is needed to tell why nothing goes on: who leads each stream and where it ends, as each server of NATS has it, what each server logged last, and
 * what each host says that it waits for.
 *
 * @param timeline what the hosts recorded of the lease, oldest first
 */
export async function explainStall(
  nats: NatsServers,
  hosts: Hosts,
  names: readonly string[],
  timeline: readonly string[],
): Promise<string> {
  const servers = Array.from({ length: nats.count }, (_, server) => server);
  const told = await Promise.all([
    ...servers.map(async (server) => `server n${server}: ${await serverSays(nats, server)}`),
    ...names.map(async (name) => `host ${name}: ${await hostSays(hosts, name)}`),
  ]);
  const logs = servers.map((server) => `log of n${server}:\n${nats.logOf(server).slice(-LOG_BYTES)}`);
  return [...told, ...logs, 'recorded of the lease:', ...timeline.slice(-NEWEST_RECORDS)].join('\n');
}

/** Through its monitoring: a leader that cannot write answers no question about its stream. */
async function serverSays(nats: NatsServers, server: number): Promise<string> {
  try {
    const url = `${nats.monitorOf(server)}/jsz?streams=true`;
    const body: unknown = await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })).json();
    if (!isObject(body)) return 'it answers nothing that can be read';
    const streams = listOf(body.account_details)
      .flatMap((account) => listOf(account.stream_detail))
      .map(({ name, cluster, state }) => `\n  ${name}: ${JSON.stringify({ cluster, state })}`);
    return `${body.disabled ? 'without JetStream' : 'with JetStream'}${streams.join('')}`;
  } catch (error) {
    return `no answer: ${error}`;
  }
}

async function hostSays(hosts: Hosts, host: string): Promise<string> {
  if (!hosts.isUp(host)) return 'it does not run';
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const { body } = await postControl(hosts.dataDir(host), PATHS.view, {}, signal);
    if (!isObject(body)) return 'it answers nothing that can be read';
    const { problems, leases, mirror, isIsolated, isBehind } = body;
    return JSON.stringify({ problems, leases, mirror, isIsolated, isBehind });
  } catch (error) {
    return `no answer: ${error}`;
  }
}

function listOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
