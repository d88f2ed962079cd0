import type { Decision } from './ledger.ts';
import { limitFigures } from './limits.ts';
import { messageFigures } from './messages.ts';
import { election, type SteadyFigures, steady, TTL_MS, takeover, threeSites } from './scenarios.ts';

const SEED = 1;
const DECISIONS: readonly Decision[] = ['expectation', 'order'];
const MINUTE_MS = 60_000;
/** Between sites the lease is three times as long: a cut of half a minute moves nothing. */
const SITES_TTL_MS = 3 * TTL_MS;

const HEADING = '### What the simulation gives\n';

/** All figures of `docs/cluster.md`, section "Many hosts and several sites", as Markdown. */
export function simulationTables(): string {
  return [oneLedger(), messages(), limits(), stretched(), perSite()].join('\n\n');
}

/** @returns `docs/cluster.md` with other figures */
export function withSimulation(page: string, tables: string): string {
  const from = page.indexOf(HEADING) + HEADING.length;
  const to = page.indexOf('\n### ', from);
  return `${page.slice(0, from)}\n${tables}\n${page.slice(to)}`;
}

function oneLedger(): string {
  const rows = [3, 10, 30, 100].flatMap((hosts) =>
    // With few hosts both decide alike.
    DECISIONS.slice(0, hosts < 30 ? 1 : 2).map((decision) => {
      const setting = { hosts, decision, ttlMs: TTL_MS, seed: SEED };
      const quiet = steady(setting, MINUTE_MS);
      const death = takeover(setting, 10);
      const loss = election(hosts, decision, 20, SEED);
      return [
        hosts,
        decision,
        ...renewals(quiet),
        `${seconds(death.median)}, ${seconds(death.worst)}`,
        seconds(death.gap),
        percent(loss.lost),
      ];
    }),
  );
  return table(
    'One ledger, all hosts beside each other; each of them holds something.',
    [
      'hosts',
      'decided by',
      'appends/s',
      'for one entry',
      'renewal p50, p99',
      'takeover, median and worst',
      'between two holders',
      'leases lost by an election',
    ],
    rows,
  );
}

function messages(): string {
  const rows = [3, 10, 30, 100, 300, 500].map((hosts) => {
    const { deliveries, server, host, p50, lastP99 } = messageFigures(hosts, SEED);
    return [
      hosts,
      Math.round(deliveries).toLocaleString('en'),
      percent(server),
      percent(host),
      milliseconds(p50),
      milliseconds(lastP99),
    ];
  });
  return table(
    'Two beats a second and host, and ten messages a second to every host, over three servers.',
    [
      'hosts',
      'deliveries/s',
      'a server’s processor',
      'a host’s processor',
      'one host has it, p50',
      'all have it, p99',
    ],
    rows,
  );
}

function limits(): string {
  const rows = [60, 600, 6_000].flatMap((limit) =>
    [3, 10, 30, 100].map((hosts) => {
      const figures = (demand: number, busyHosts: number) =>
        limitFigures({ hosts, limit, demand, busyHosts }, SEED);
      const [over, one, under] = [figures(1.5, hosts), figures(1.5, 1), figures(0.8, hosts)];
      return [
        limit.toLocaleString('en'),
        hosts,
        over.grantsPerSecond.toFixed(1),
        percent(over.admitted),
        percent(over.most),
        percent(one.admitted),
        percent(Math.min(1, under.admitted / 0.8)),
      ];
    }),
  );
  return table(
    'A limit in calls a minute, spent in slices. Clients ask for 1.5 times the limit, of all hosts or of one alone, or for 0.8 times of it.',
    ['limit', 'hosts', 'grants/s', 'used', 'used at most', 'used by one host alone', 'admitted of 0.8 times'],
    rows,
  );
}

function stretched(): string {
  const rows = [50, 200].flatMap((wanMs) =>
    [9, 30, 90].flatMap((hosts) =>
      DECISIONS.map((decision) => {
        const setting = { hosts, decision, ttlMs: TTL_MS, seed: SEED };
        const quiet = steady({ ...setting, network: threeSites(wanMs) }, MINUTE_MS);
        const cut = takeover(setting, 3, wanMs);
        return [
          `${wanMs} ms`,
          hosts,
          decision,
          ...renewals(quiet),
          percent(quiet.without),
          cut.unprovoked === 0 ? `${seconds(cut.median)}, ${seconds(cut.worst)}` : 'moves by itself',
          seconds(cut.gap),
        ];
      }),
    ),
  );
  return table(
    'One ledger over three sites, a server in each; each host holds something; one site is cut off.',
    [
      'between sites',
      'hosts',
      'decided by',
      'appends/s',
      'for one entry',
      'renewal p50, p99',
      'time without a lease',
      'takeover, median and worst',
      'between two holders',
    ],
    rows,
  );
}

function perSite(): string {
  const inside = { hosts: 30, decision: 'expectation', ttlMs: TTL_MS, seed: SEED } as const;
  const death = takeover(inside, 20);
  const rows = [50, 100, 200].map((wanMs) => {
    const setting = { hosts: 3, decision: 'expectation', ttlMs: SITES_TTL_MS, seed: SEED } as const;
    const quiet = steady({ ...setting, network: threeSites(wanMs) }, 10 * MINUTE_MS);
    const cut = takeover(setting, 20, wanMs);
    return [
      `${wanMs} ms`,
      ...renewals(quiet),
      percent(quiet.without),
      `${seconds(death.median)}, ${seconds(death.worst)}`,
      `${seconds(cut.median)}, ${seconds(cut.worst)}`,
    ];
  });
  return table(
    `A ledger a site (30 hosts, lease ${seconds(TTL_MS)}), and one between the three sites (a beat a site, lease ${seconds(SITES_TTL_MS)}).`,
    [
      'between sites',
      'appends/s between sites',
      'for one entry',
      'renewal p50, p99',
      'time without a lease',
      'takeover in a site',
      'takeover of a cut site',
    ],
    rows,
  );
}

function renewals({ appendsPerSecond, attempts, p50, p99 }: SteadyFigures): readonly string[] {
  return [
    appendsPerSecond < 10 ? appendsPerSecond.toFixed(1) : Math.round(appendsPerSecond).toLocaleString('en'),
    attempts < 10 ? attempts.toFixed(2) : Math.round(attempts).toLocaleString('en'),
    `${milliseconds(p50)}, ${p99 < 2_000 ? milliseconds(p99) : seconds(p99)}`,
  ];
}

function table(
  title: string,
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return `${title}\n\n${lines.join('\n')}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
