import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { SecretsStore } from '../../../core/contracts/secrets-store.ts';
import { type HttpAnswer, HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import { parseSecretReference, secretReference } from '../../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { AlertsError } from '../errors.ts';
import type { Rule } from './rule.ts';
import { rejectedByUi } from './ui-limits.ts';

const id = z.string().min(1).max(64);
const ruleName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/);

/** A UI of the HyperDX kind, where rules are to be alerts on tiles too. */
export const uiOptions = z
  .strictObject({
    /** Its base, `https://ui.example.org`. */
    url: z.url({ protocol: /^https?$/ }),
    /** File of mode 0600 with an API token. */
    tokenFile: z.string().min(1).optional(),
    tokenSecret: secretReference.optional(),
    dashboardId: id,
    /** Whom the UI notifies. */
    webhookId: id,
    /** By the name of a rule: the tile of the dashboard that shows what it measures. Other rules stay with Holdfast alone. */
    tiles: z.record(ruleName, z.strictObject({ id, query: z.enum(['builder', 'sql']).default('builder') })),
  })
  .refine(
    ({ tokenFile, tokenSecret }) => (tokenFile === undefined) !== (tokenSecret === undefined),
    'give one of tokenFile and tokenSecret',
  );
export type Ui = z.output<typeof uiOptions>;

/** What became of a rule in the UI. */
export interface InUi {
  readonly title: string;
  readonly change: 'created' | 'changed' | 'unchanged' | 'rejected';
  /** Why it was not even sent. */
  readonly reason?: string;
}

const known = z.looseObject({ id, name: z.string().nullish() });
const listed = z.looseObject({
  data: z.array(known).max(1_000),
  meta: z.looseObject({ total: z.int().min(0).optional() }).optional(),
});
type Known = z.output<typeof known>;

const SECRET_MS = 5_000;
const PAGE = 1_000;
const PAGES = 20;
const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 8 * 1_048_576 });

/**
 * Makes the alerts of the UI agree with the rules, by name; done twice, the second time nothing is written. Alerts of other
 * names are left alone, and so is what people set of ours beyond these fields.
 *
 * @throws HF_ALERTS_UI it cannot be reached, refuses, or has two alerts of one name
 */
export async function upsertInUi(
  ui: Ui,
  rules: readonly Rule[],
  store: SecretsStore | undefined,
  signal: AbortSignal,
): Promise<readonly InUi[]> {
  const wanted = rules.flatMap((rule) => {
    const tile = ui.tiles[rule.name];
    return tile ? [{ rule, tile }] : [];
  });
  const api = apiOf(ui.url, await tokenOf(ui, store), signal);
  const there = await allOf(api);
  const results: InUi[] = [];
  for (const { rule, tile } of wanted) {
    const { title, measure, window: interval } = rule;
    const reason = rejectedByUi({
      name: title,
      query: tile.query,
      source: measure.table,
      take: measure.take,
      interval,
    });
    if (reason !== undefined) {
      results.push({ title, change: 'rejected', reason });
      continue;
    }
    const alert = {
      name: title,
      source: 'tile',
      dashboardId: ui.dashboardId,
      tileId: tile.id,
      interval,
      // The UI's plain `above` includes the threshold; ours do not.
      threshold: rule.above ?? rule.below ?? 0,
      thresholdType: rule.above === undefined ? 'below' : 'above_exclusive',
      channel: { type: 'webhook', webhookId: ui.webhookId },
    };
    const [same, another] = there.filter(({ name }) => name === title);
    if (another) throw api.refusal(`it has more than one alert named "${title}": delete all but one`);
    if (!same) await api.send('POST', '', alert);
    else if (!holds(same, alert))
      await api.send('PUT', `/${encodeURIComponent(same.id)}`, merged(same, alert));
    const change = !same ? 'created' : holds(same, alert) ? 'unchanged' : 'changed';
    results.push({ title, change });
  }
  return results;
}

type Api = ReturnType<typeof apiOf>;

async function allOf(api: Api): Promise<readonly Known[]> {
  const all: Known[] = [];
  for (let page = 0; page < PAGES; page += 1) {
    const { data, error } = listed.safeParse(
      await api.send('GET', page === 0 ? '' : `?limit=${PAGE}&offset=${all.length}`),
    );
    if (error) throw api.refusal('its list of alerts has another shape');
    all.push(...data.data);
    if (data.data.length === 0 || all.length >= (data.meta?.total ?? 0)) return all;
  }
  throw api.refusal(`it has more than ${PAGES * PAGE} alerts`);
}

/** Whether an alert is as wanted. Not every version shows `source`. */
function holds(same: Known, { source: _, channel, ...wanted }: Record<string, unknown>): boolean {
  const has = same.channel as Record<string, unknown> | undefined;
  return (
    Object.entries(wanted).every(([key, value]) => isDeepStrictEqual(same[key], value)) &&
    Object.entries(channel as object).every(([key, value]) => has?.[key] === value)
  );
}

/** An update replaces, so what else was set goes along; further channels stay behind ours. */
function merged(same: Known, wanted: Record<string, unknown>): Record<string, unknown> {
  const { id: _, channels, ...rest } = same;
  const kept = Object.entries(rest).filter(([, value]) => value !== null);
  const others = Array.isArray(channels) ? channels.slice(1) : [];
  return {
    ...Object.fromEntries(kept),
    ...wanted,
    ...(others.length > 0 && { channels: [wanted.channel, ...others] }),
  };
}

function apiOf(base: string, token: string, signal: AbortSignal) {
  const place = new URL(base).origin;
  const refusal = (reason: string) => new AlertsError('HF_ALERTS_UI', { place, reason });
  async function send(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<unknown> {
    let answer: HttpAnswer;
    try {
      answer = await http.call({
        method,
        url: `${base.replace(/\/+$/, '')}/api/v2/alerts${path}`,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
        json: body,
        signal,
      });
    } catch (error) {
      throw error instanceof HttpCallError ? refusal(`it can't be asked: ${error.reason}`) : error;
    }
    if (!answer.ok) {
      const said = answer.excerpt(200, token);
      throw refusal(`it answered ${answer.status} to ${method}${said === '' ? '' : `: ${said}`}`);
    }
    if (answer.bytes.length === 0) return {};
    const parsed = answer.json();
    if (parsed === undefined) throw refusal('its answer is not JSON');
    return parsed;
  }
  return { send, refusal };
}

async function tokenOf(
  { url, tokenFile, tokenSecret }: Ui,
  store: SecretsStore | undefined,
): Promise<string> {
  if (tokenFile !== undefined) return readTokenFile(tokenFile).trim();
  const place = new URL(url).origin;
  if (!store || tokenSecret === undefined) {
    throw new AlertsError('HF_ALERTS_UI', {
      place,
      reason: 'no plugin provides a secrets store for its token',
    });
  }
  const { path, property } = parseSecretReference(tokenSecret);
  return (await store.read(path, property, AbortSignal.timeout(SECRET_MS))).trim();
}
