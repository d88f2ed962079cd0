import type { Result } from '../measure.ts';
import type { Load } from './load.ts';
import type { Target } from './targets.ts';

/** What a target's processor and memory did meanwhile. */
export interface Used extends Load {
  readonly cpuPerCallMs: number;
  readonly rssMb: number;
}

/** The same load against all targets. */
export type Measured = Readonly<Record<Target['name'], Used>>;

const ms = (value: number): string => `${value.toFixed(2)} ms`;

/** Clients that send the next call when the last is answered. @param syncMs in every sync of the slow gateway's disk */
export function rows(
  size: 'small' | '1 MB',
  clients: number,
  { direct, proxy, gateway, slow }: Measured,
  syncMs: number,
): Result[] {
  const ratio = gateway.rate / proxy.rate;
  const what = `${size} results, ${clients} clients`;
  const aimed = clients === 8 && size === 'small';
  const costs = ({ p99, cpuPerCallMs, rssMb }: Used) =>
    `${ms(p99)} · ${cpuPerCallMs.toFixed(3)} ms · ${rssMb.toFixed(0)} MB`;
  return [
    {
      what: `${what}, calls/s`,
      ours: `${gateway.rate.toFixed(0)}/s`,
      baseline: `${proxy.rate.toFixed(0)}/s bare undici proxy`,
      ratio,
      target: '≥ 0.6',
      met: ratio >= 0.6,
    },
    {
      what: `${what}, p50`,
      ours: ms(gateway.p50),
      baseline: `${ms(direct.p50)} direct, ${ms(proxy.p50)} proxy`,
      ratio: gateway.p50 / proxy.p50,
      ...(aimed && added(gateway, proxy)),
    },
    {
      what: `the same with ${syncMs} ms in every sync of the disk`,
      ours: ms(slow.p50),
      baseline: `${ms(gateway.p50)} without`,
      ratio: slow.p50 / gateway.p50,
      ...(aimed && { target: '< 0.3 ms more', met: slow.p50 - gateway.p50 < 0.3 }),
    },
    {
      what: `${what}, p99 · CPU · RSS`,
      ours: costs(gateway),
      baseline: `${costs(proxy)} proxy`,
      ratio: gateway.cpuPerCallMs / proxy.cpuPerCallMs,
    },
  ];
}

/** Clients that call at a fixed rate, so that what the gateway adds to one call is not eight times its processor time. */
export function pacedRows(
  clients: number,
  everyMs: number,
  { direct, proxy, gateway, slow }: Measured,
  syncMs: number,
): Result[] {
  return [
    {
      what: `small results, ${clients} clients, each every ${everyMs} ms, p50`,
      ours: ms(gateway.p50),
      baseline: `${ms(direct.p50)} direct, ${ms(proxy.p50)} proxy`,
      ratio: gateway.p50 / proxy.p50,
      ...added(gateway, proxy),
    },
    {
      what: `the same with ${syncMs} ms in every sync of the disk`,
      ours: ms(slow.p50),
      baseline: `${ms(proxy.p50)} proxy, ${ms(gateway.p50)} without`,
      ratio: slow.p50 / proxy.p50,
      ...added(slow, proxy),
    },
  ];
}

export function streamRow(clients: number, { direct, proxy, gateway }: Measured): Result {
  return {
    what: `event stream, first byte, ${clients} clients`,
    ours: ms(gateway.first),
    baseline: `${ms(direct.first)} direct, ${ms(proxy.first)} proxy`,
    ratio: gateway.first / direct.first,
    target: '< 5 ms added',
    met: gateway.first - direct.first < 5,
  };
}

function added(ours: Used, proxy: Used): Pick<Result, 'target' | 'met'> {
  return { target: '< 0.3 ms added', met: ours.p50 - proxy.p50 < 0.3 };
}
