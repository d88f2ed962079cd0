import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { SecretsStore } from '../../../core/contracts/secrets-store.ts';
import { type HttpAnswer, HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import { insecureOption, refusePlaintext } from '../../../core/host/http/plaintext.ts';
import { parseSecretReference, secretReference } from '../../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { AlertsError } from '../errors.ts';
import type { Rule } from './rule.ts';
import { rejectedByUi } from './ui-limits.ts';

const id = z.string().min(1).max(64);
const ruleName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/);

/** A UI of the HyperDX kind, where rules are to be alerts on tiles too. */
export const uiOptions = z
  .strictObject({
    /** Its base, `https://ui.example.org`; its API is found at `/api/api/v2` behind the UI, which strips `/api`, or at `/api/v2`. */
    url: z.url({ protocol: /^https?$/ }),
    /** File of mode 0600 with an API token. */
    tokenFile: z.string().min(1).optional(),
    tokenSecret: secretReference.optional(),
    /** The token may go to another machine over `http://`. */
    insecure: insecureOption,
    dashboardId: id,
    /** Whom the UI notifies. */
    webhookId: id,
    /** By the name of a rule: the tile of the dashboard that shows what it measures. Other rules stay with Holdfast alone. */
    tiles: z.record(ruleName, z.strictObject({ id, query: z.enum(['builder', 'sql']).default('builder') })),
  })
  .refine(
    ({ tokenFile, tokenSecret }) => (tokenFile === undefined) !== (tokenSecret === undefined),
    'give one of tokenFile and tokenSecret',
  )
  .superRefine(({ url, insecure }, context) =>
    refusePlaintext(context, { url, insecure, credential: 'the API token' }),
  );
export type Ui = z.output<typeof uiOptions>;

/** The result for one rule in the UI. */
export interface InUi {
  readonly title: string;
  readonly change: 'created' | 'changed' | 'unchanged' | 'rejected';
  /** Why it was not sent, or what could not be checked. */
  readonly reason?: string;
}

const existing = z.looseObject({ id, name: z.string().nullish() });
const listed = z.looseObject({
  data: z.array(existing).max(1_000),
  meta: z.looseObject({ total: z.int().min(0).optional() }).optional(),
});
type Existing = z.output<typeof existing>;

const SECRET_MS = 5_000;
const PAGE = 1_000;
const PAGES = 20;
const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 8 * 1_048_576 });

/**
 * Makes the alerts of the UI agree with the rules, by name; a second run writes nothing. Alerts of other names are not
 * changed, and neither are further fields that people have set.
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
  const api = await findApi(ui, await tokenOf(ui, store), signal);
  const there = await allOf(api);
  const tiles = wanted.length === 0 ? [] : await tilesOf(api, ui.dashboardId);
  const results: InUi[] = [];
  for (const { rule, tile } of wanted) {
    const { title, measure, window: interval } = rule;
    const shown = tiles.find(({ id }) => id === tile.id);
    const reason =
      rejectedByUi({ name: title, query: tile.query, source: measure.table, take: measure.take, interval }) ??
      unfitTile(tile, shown, ui.dashboardId);
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
    const change = !same ? 'created' : holds(same, alert) ? 'unchanged' : 'changed';
    if (change !== 'unchanged') {
      const written = same
        ? await api.send('PUT', `/alerts/${encodeURIComponent(same.id)}`, merged(same, alert))
        : await api.send('POST', '/alerts', alert);
      const kept = answered.safeParse(written).data?.data;
      if (!kept || !holds(kept, alert)) {
        throw api.refusal(`it did not keep "${title}" as it was sent: look at the alert in the UI`);
      }
    }
    const unseen = tile.query === 'sql' ? { reason: NOT_SEEN_IN_SQL } : {};
    results.push({ title, change, ...unseen });
  }
  return results;
}

const tileShape = z.looseObject({
  id: z.string(),
  /** The answer of the newer API. */
  config: z
    .looseObject({
      configType: z.string().optional(),
      displayType: z.string().optional(),
      groupBy: z.string().nullish(),
    })
    .optional(),
  /** The answer of the older API. */
  series: z.array(z.looseObject({ type: z.string(), groupBy: z.array(z.string()).optional() })).optional(),
});
type Tile = z.output<typeof tileShape>;
const dashboard = z.looseObject({ data: z.looseObject({ tiles: z.array(tileShape).max(1_000) }) });
const answered = z.looseObject({ data: existing });

const NOT_SEEN_IN_SQL = 'not checked whether the tile is un-grouped: it is raw SQL';
/** Tiles with which the UI can compare a threshold. */
const DISPLAYS = ['line', 'stacked_bar', 'number', 'time'];

/** @throws HF_ALERTS_UI also when there is no such dashboard */
async function tilesOf(api: Api, id: string): Promise<readonly Tile[]> {
  const answer = await api.send('GET', `/dashboards/${encodeURIComponent(id)}`);
  const { data, error } = dashboard.safeParse(answer);
  if (error) throw api.refusal('its dashboard has another shape, so the tiles cannot be checked');
  return data.data.tiles;
}

/** Why an alert on the tile would not be the rule's: the tile is gone, of another kind, or has a value for each group. */
function unfitTile(
  { id, query }: Ui['tiles'][string],
  tile: Tile | undefined,
  board: string,
): string | undefined {
  if (!tile)
    return `There is no tile ${id} on dashboard ${board}: correct the option hyperdx.tiles, or add the tile.`;
  const { config, series = [] } = tile;
  const isSql = config?.configType === 'sql';
  if (isSql !== (query === 'sql')) {
    return `Tile ${id} is ${isSql ? 'raw SQL' : 'made by the query builder'}, and the option hyperdx.tiles says otherwise.`;
  }
  const display = config?.displayType ?? series[0]?.type;
  if (display === undefined || !DISPLAYS.includes(display)) {
    return `Tile ${id} shows ${display ?? 'nothing known'}: an alert needs a line, a stacked bar or a number.`;
  }
  const groups = [config?.groupBy ?? '', ...series.flatMap(({ groupBy = [] }) => groupBy)].filter(
    (one) => one.trim() !== '',
  );
  if (groups.length === 0) return undefined;
  return `Tile ${id} is grouped by ${groups.join(', ').slice(0, 200)}: each group is compared alone, and a group that is silent is none at all. Take the grouping out.`;
}

type Api = ReturnType<typeof apiOf>;

/** Where the API of version 2 is, seen from the UI's address: the UI takes the first `/api` away. */
const API_PATHS = ['/api/v2', '/api/api/v2'];

/** @throws HF_ALERTS_UI */
async function findApi(ui: Ui, token: string, signal: AbortSignal): Promise<Api> {
  for (const path of API_PATHS) {
    const api = apiOf(ui, path, token, signal);
    if (await api.isThere()) return api;
  }
  const { refusal } = apiOf(ui, '', token, signal);
  throw refusal(`it has no API at ${API_PATHS.join(' or ')}: give the address by which people open it`);
}

async function allOf(api: Api): Promise<readonly Existing[]> {
  const all: Existing[] = [];
  for (let page = 0; page < PAGES; page += 1) {
    const { data, error } = listed.safeParse(
      await api.send('GET', `/alerts${page === 0 ? '' : `?limit=${PAGE}&offset=${all.length}`}`),
    );
    if (error) throw api.refusal('its list of alerts has another shape');
    all.push(...data.data);
    if (data.data.length === 0 || all.length >= (data.meta?.total ?? 0)) return all;
  }
  throw api.refusal(`it has more than ${PAGES * PAGE} alerts`);
}

/** Whether an alert is as wanted. Not every version shows `source`. */
function holds(same: Existing, { source: _, channel, ...wanted }: Record<string, unknown>): boolean {
  const has = same.channel as Record<string, unknown> | undefined;
  return (
    Object.entries(wanted).every(([key, value]) => isDeepStrictEqual(same[key], value)) &&
    Object.entries(channel as object).every(([key, value]) => has?.[key] === value)
  );
}

/** An update replaces the alert, so its other fields are sent again, and further channels are kept after ours. */
function merged(same: Existing, wanted: Record<string, unknown>): Record<string, unknown> {
  const { id: _, channels, ...rest } = same;
  const kept = Object.entries(rest).filter(([, value]) => value !== null);
  const others = Array.isArray(channels) ? channels.slice(1) : [];
  return {
    ...Object.fromEntries(kept),
    ...wanted,
    ...(others.length > 0 && { channels: [wanted.channel, ...others] }),
  };
}

function apiOf({ url: base, insecure }: Ui, path: string, token: string, signal: AbortSignal) {
  const place = new URL(base).origin;
  const root = `${base.replace(/\/+$/, '')}${path}`;
  const refusal = (reason: string) => new AlertsError('HF_ALERTS_UI', { place, reason });
  async function call(method: 'GET' | 'POST' | 'PUT', where: string, body?: object): Promise<HttpAnswer> {
    try {
      return await http.call({
        method,
        url: `${root}${where}`,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
        json: body,
        insecure,
        signal,
      });
    } catch (error) {
      throw error instanceof HttpCallError ? refusal(`it can't be reached: ${error.reason}`) : error;
    }
  }
  /** A page of the UI, or the answer of its proxy to an unknown path, is not the API. */
  async function isThere(): Promise<boolean> {
    const answer = await call('GET', '/alerts?limit=1');
    return answer.status !== 404 && !(answer.ok && answer.json() === undefined);
  }
  async function send(method: 'GET' | 'POST' | 'PUT', where: string, body?: object): Promise<unknown> {
    const answer = await call(method, where, body);
    if (!answer.ok) {
      const said = answer.excerpt(200, token);
      throw refusal(`it answered ${answer.status} to ${method} ${where}${said === '' ? '' : `: ${said}`}`);
    }
    if (answer.bytes.length === 0) return {};
    const parsed = answer.json();
    if (parsed === undefined) throw refusal('its answer is not JSON');
    return parsed;
  }
  return { send, isThere, refusal };
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
