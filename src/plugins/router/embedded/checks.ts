import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { isSocketBase } from '../../../core/host/http/addresses.ts';
import { HttpClient } from '../../../core/host/http/client.ts';
import { ownSurface } from '../../../core/host/http/own-surface.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { collisionText, setCollisions } from '../config/networks.ts';
import { countSecrets } from '../config/secrets.ts';
import { hostChecks } from '../host/checks.ts';
import { redisChecks } from '../redis.ts';
import type { RouterOptions } from './options.ts';
import { isPendingTransaction } from './pending-transaction.ts';
import type { StorePlace } from './store/read-store.ts';
import { storeFile } from './store/schema.ts';

interface Checked {
  readonly redisUrl: string | undefined;
  /** Only for a router with a real kernel: how that and the folder of generated files are read. */
  readonly host?: Pick<RouterOptions, 'namespace' | 'generatedDir' | 'dhcpRestartMs'> | undefined;
}

/** What `holdfast doctor router` checks of the embedded router. */
export function routerChecks({ redisUrl, host }: Checked): CheckDefinition[] {
  return [
    { name: 'router.api', run: apiCheck },
    ...(redisUrl === undefined
      ? [{ name: 'router.store', run: ({ dataDir }: CheckContext) => storeCheck(dataDir) }]
      : redisChecks(redisUrl)),
    { name: 'router.transaction', run: transactionCheck },
    { name: 'router.address_sets', run: ({ dataDir }) => setsCheck({ dataDir, redisUrl }) },
    ...(host === undefined
      ? []
      : hostChecks({
          namespace: host.namespace,
          readWithinMs: 2 * host.dhcpRestartMs,
          config: ({ dataDir }) => active({ dataDir, redisUrl }),
          confDir: ({ dataDir }) => resolve(dataDir, host.generatedDir, 'dhcp', 'conf'),
          generatesFiles: true,
          hasChains: false, // the embedded router writes none
        })),
  ];
}

const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 64 * 1_048_576 });

async function apiCheck({ running, signal }: CheckContext): Promise<CheckResult> {
  const place = running?.surfaces.router;
  if (place === undefined) {
    const remedy = 'Start it with `holdfast start`.';
    return { state: 'warn', lookedAt: 'the running instance', found: 'no instance runs', remedy };
  }
  const url = '/v1/config/active';
  const lookedAt = `${place.url}${isSocketBase(place.url) ? ' ' : ''}${url}`;
  const began = performance.now();
  const answer = await http.call({ ...ownSurface(place), url, signal });
  const remedy = 'Run `holdfast status`, and read the reason in the log of the instance.';
  if (answer.status !== 200) return { state: 'fail', lookedAt, found: `it answers ${answer.status}`, remedy };
  const config = answer.json();
  if (!isObject(config)) return { state: 'fail', lookedAt, found: 'its answer is no config', remedy };
  const ms = Math.round(performance.now() - began);
  const { count } = countSecrets(config);
  const found = `it answers in ${ms} ms: ncid ${String(config.ncid).slice(0, 8)}…, ${count} secrets`;
  return { state: 'ok', lookedAt, found };
}

/** @throws HF_ROUTER_STORE, HF_SECRET_* it cannot be read */
async function storeCheck(dataDir: string): Promise<CheckResult> {
  const config = await active({ dataDir });
  const lookedAt = storeFile(dataDir);
  if (!config) return nothingYet(lookedAt, 'there is no store yet; the first start creates it');
  const found = `it holds ncid ${String(config.ncid).slice(0, 8)}…, sealed`;
  return { state: 'ok', lookedAt, found };
}

const nothingYet = (lookedAt: string, found: string): CheckResult => ({
  state: 'unknown',
  lookedAt,
  found: `not looked at: ${found}`,
  remedy: 'Start it with `holdfast start`.',
});

/** A stopped instance cannot revert a transaction in time, so one that its log shows as pending is reported. */
function transactionCheck({ running, facts }: CheckContext): CheckResult {
  const lookedAt = running ? 'the running instance' : 'the event log';
  const transaction = facts?.transaction;
  const isReported = facts !== undefined && (!running || running.surfaces.router !== undefined);
  if (isReported && transaction === undefined) {
    return { state: 'ok', lookedAt, found: 'no transaction is pending' };
  }
  // A report that throws leaves its error in the place of the transaction, and a router that did not start none at all.
  if (!isPendingTransaction(transaction)) {
    const remedy = '`holdfast status` says why.';
    return { state: 'warn', lookedAt, found: 'it is unknown whether a transaction is pending', remedy };
  }
  const { transID, who, secondsLeft } = transaction;
  const found = `${transID} by ${who} is pending, ${secondsLeft} s left`;
  if (!running) {
    const remedy =
      'Start Holdfast. Until then the uncommitted config stays in force, also beyond its deadline.';
    if (secondsLeft <= 0) {
      const late = `${transID} by ${who} is pending beyond its deadline; the next start reverts it at once`;
      return { state: 'fail', lookedAt, found: late, remedy };
    }
    return { state: 'warn', lookedAt, found: `${found}; the next start reverts it`, remedy };
  }
  const remedy = 'Commit or revert it, or wait: an uncommitted one reverts by itself.';
  return { state: 'warn', lookedAt, found: `${found}; plain writes are refused`, remedy };
}

/** Networks whose sets would have one name (R34). */
async function setsCheck(place: StorePlace): Promise<CheckResult> {
  const lookedAt = 'the names of the address sets';
  const config = await active(place);
  if (!config) return nothingYet(lookedAt, 'there is no config yet');
  const collisions = setCollisions(config);
  if (collisions.length === 0) return { state: 'ok', lookedAt, found: 'each network has a name of its own' };
  const remedy = 'Give one of the networks another uuid by making it anew in the app.';
  return { state: 'fail', lookedAt, found: collisions.map(collisionText).join('; '), remedy };
}

/** @returns undefined while nothing has been stored */
async function active(place: StorePlace): Promise<NetworkConfig | undefined> {
  const isNew = place.redisUrl === undefined && !existsSync(storeFile(place.dataDir));
  if (isNew) return undefined;
  const { readStore } = await import('./store/read-store.ts');
  const stored = await readStore(place, (store) => store.active());
  return stored && (JSON.parse(stored.body) as NetworkConfig);
}
