/**
 * The UI that makes the ingest key (HyperDX). Its `PATCH /team/apiKey` takes the session of a user who has logged in, and
 * no token of its API. Behind the UI its API is at `/api`, which the UI strips; it may also be addressed directly.
 */

import { type HttpAnswer, HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import { plaintextHost } from '../../../core/host/http/plaintext.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { readSecretFile } from '../../../core/kernel/secret-file.ts';
import { CollectorError } from '../errors.ts';
import type { CollectorOptions } from '../options.ts';

type Ui = NonNullable<CollectorOptions['ui']> & { readonly loginFile: string };

/** Where the API is, seen from the UI's address. */
const API_PATHS = ['/api', ''];
/** The document database holds users and keys. */
const DATABASE_AWAY = 'as it does while its document database is away';
/** Why the UI turned a login down, by the word in the address to which it sends the browser. */
const LOGIN_FAULTS: Readonly<Record<string, string>> = {
  authFail: 'the UI does not know this e-mail address with this password',
  passwordAuthNotAllowed: 'the team allows no login by password',
};

/** Bodies contain the key or nothing useful, so only little of them is read. */
const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 65_536, excess: 'cut', keepAlive: false });

/** The steps for a person where Holdfast cannot make the key, with the labels of the UI. */
export function stepsByHand(url: string | undefined, why?: string): string {
  const place = url === undefined ? 'the UI' : `${url.replace(/\/+$/, '')}/team`;
  const steps = `make a new key by hand: log in, open ${place} (Team Settings), go to API Keys, press Rotate API Key beside Ingestion API Key and confirm. The old key ends at once. The new one is noticed by itself when the collector has it`;
  return why === undefined ? steps : `${why}; ${steps}`;
}

/**
 * Logs in and requests a new ingest key. The key itself is then read from the collector's config, which proves that the
 * collector has adopted it.
 *
 * @returns why a person must do it, where the UI certainly made no key; undefined when it made one
 * @throws HF_COLLECTOR_UI it cannot be reached or reports an internal fault, HF_CONFIG_SECRET_*
 */
export async function regenerateInUi(ui: Ui, signal: AbortSignal): Promise<string | undefined> {
  const host = plaintextHost(ui.url);
  if (host !== undefined)
    return `a password is not sent in plaintext to ${host}: give the UI's https address`;
  const [email = '', password = ''] = readSecretFile(ui.loginFile).toString('utf8').split(/\r?\n/);
  if (email === '' || password === '')
    return `${ui.loginFile} must hold an e-mail address in its first line and the password in its second`;
  const base = await findApi(ui, signal);
  if (base === undefined) return `no API of the UI was found at ${ui.url} (option ui.apiPath)`;
  const session = await login(base, { email, password }, signal);
  if (session.cookie === undefined) return session.why;
  const status = await statusOf(`${base}/team/apiKey`, session.cookie, signal);
  if (status === 401 || status === 403) return `the UI does not accept its own session (${status})`;
  if (status === 404) return `the UI has no ${base}/team/apiKey`;
  refuseSick(status);
  if (status < 200 || status > 299)
    throw new CollectorError('HF_COLLECTOR_UI', { reason: `it answered ${status}` });
  return undefined;
}

/** The API says without a session whether a team exists; a page of the UI is no such answer. */
async function findApi({ url, apiPath }: Ui, signal: AbortSignal): Promise<string | undefined> {
  for (const path of apiPath === undefined ? API_PATHS : [apiPath]) {
    const base = `${url.replace(/\/+$/, '')}${path}`;
    const answer = await call({ url: `${base}/installation`, signal });
    refuseSick(answer.status);
    const body = answer.json();
    if (answer.ok && isObject(body) && typeof body.isTeamExisting === 'boolean') return base;
  }
  return undefined;
}

type Session = { readonly cookie: string } | { readonly cookie: undefined; readonly why: string };

/** Both outcomes are a redirect, to the search page or back to the login page; only one of them sets a session. */
async function login(
  base: string,
  credentials: { readonly email: string; readonly password: string },
  signal: AbortSignal,
): Promise<Session> {
  const answer = await call({ method: 'POST', url: `${base}/login/password`, json: credentials, signal });
  refuseSick(answer.status);
  const fault = /[?&]err=(\w+)/.exec(answer.header('location') ?? '')?.[1];
  if (fault !== undefined) {
    return { cookie: undefined, why: LOGIN_FAULTS[fault] ?? `the UI refused the login (${fault})` };
  }
  if (answer.status !== 302 && !answer.ok) {
    return { cookie: undefined, why: `the UI answered ${answer.status} to the login` };
  }
  const set = answer.headers['set-cookie'];
  const [cookie] = (Array.isArray(set) ? set : [set ?? '']).flatMap(
    (one) => /^[^;\s]*\.sid[^=;]*=[^;\s]+/.exec(one) ?? [],
  );
  if (cookie !== undefined) return { cookie };
  return { cookie: undefined, why: 'the UI set no session: give the address by which people open it' };
}

/** The head of the answer decides: a body that stalls must not fail the step, whose repetition makes another key. */
async function statusOf(url: string, cookie: string, signal: AbortSignal): Promise<number> {
  try {
    const headers = { cookie, accept: 'application/json' };
    return await http.stream({ method: 'PATCH', url, headers, signal }, async ({ status }) => status);
  } catch (error) {
    throw coded(error);
  }
}

async function call(request: Parameters<HttpClient['call']>[0]): Promise<HttpAnswer> {
  try {
    return await http.call({ ...request, headers: { accept: 'application/json' } });
  } catch (error) {
    throw coded(error);
  }
}

function refuseSick(status: number): void {
  if (status < 500) return;
  throw new CollectorError('HF_COLLECTOR_UI', { reason: `it answers ${status}, ${DATABASE_AWAY}` });
}

function coded(error: unknown): unknown {
  return error instanceof HttpCallError
    ? new CollectorError('HF_COLLECTOR_UI', { reason: error.reason })
    : error;
}
