import { lstatSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { isSocketBase, placeOf } from '../../core/host/http/addresses.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import type { ListenerDeclaration, Place, SurfaceOptions } from '../../core/host/http/contract.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import type { Registrations } from '../../core/host/plugin/registrations.ts';
import { readRuntimeFile } from '../../core/host/runtime/runtime-file.ts';
import { lockedBy } from '../../core/kernel/log/lock.ts';
import { groupOf, userOf, whoCouldReplace } from '../../core/kernel/ownership.ts';
import { type Listening, listeningOn, reachText } from './listening.ts';

const CLOSE =
  "Set `auth: 'token'` with a `tokenFile`, or a `socket` in place of the port, in its options (docs/security.md).";
const START = 'Start it with `holdfast start`, and look again.';
const OPEN_TO_ALL = 0o002;
const OPEN_TO_GROUP = 0o020;
/** A path that no surface has: what is asked for a token answers 401 to it, too. */
const NOWHERE = '/holdfast-doctor';

/** What of a surface's options says what there is to lose. */
type Declared = Pick<SurfaceOptions, 'name' | 'admission' | 'keyedPath' | 'secretPath' | 'readOnly'>;

/** What `holdfast doctor security` looks at of each surface and listener. */
export function surfaceChecks({ surfaces, listeners }: Registrations): CheckDefinition[] {
  return [
    ...surfaces.map(({ options }) => ({
      name: `security.${options.name}`,
      run: (context: CheckContext) => surfaceCheck(options, context),
    })),
    ...listeners.map((listener) => ({
      name: `security.${listener.name}`,
      run: (context: CheckContext) => listenerCheck(listener, context),
    })),
  ];
}

/** Where a surface of the instance on the data folder listens; undefined when none runs, or it does not listen. */
function placeIn(dataDir: string, name: string): Place | undefined {
  return lockedBy(dataDir) === undefined ? undefined : readRuntimeFile(dataDir)?.surfaces[name];
}

function notRunning(name: string): CheckResult {
  const found = 'not looked at: no instance runs here, or it does not listen';
  return { state: 'unknown', lookedAt: `the surface ${name} of the running instance`, found, remedy: START };
}

async function surfaceCheck(declared: Declared, { dataDir, signal }: CheckContext): Promise<CheckResult> {
  const place = placeIn(dataDir, declared.name);
  if (!place) return notRunning(declared.name);
  const reach = reachOf(place, dataDir);
  if ('state' in reach) return reach;
  const demand = await demandOf(place, declared, signal);
  return judgeSurface(place, declared, reach, demand);
}

async function listenerCheck(
  { name, demand }: ListenerDeclaration & { readonly name: string },
  { dataDir, signal }: CheckContext,
): Promise<CheckResult> {
  const place = placeIn(dataDir, name);
  if (!place) return notRunning(name);
  const reach = reachOf(place, dataDir);
  if ('state' in reach) return reach;
  if (!demand) {
    const reason = 'it speaks no HTTP/1.1, and its plugin does not say how to ask it';
    return judgeSurface(place, { name }, reach, { kind: 'unknown', reason });
  }
  try {
    return judgeSurface(place, { name }, reach, { kind: await demand(place, signal) });
  } catch (error) {
    const reason = maskText(error instanceof Error ? error.message : String(error));
    return judgeSurface(place, { name }, reach, { kind: 'unknown', reason });
  }
}

/** Who can connect. */
interface Reach {
  /** For a person. */
  readonly who: string;
  /** `chosen`: users that the rights of a socket name; `local`: all of this machine; `network`: other machines too. */
  readonly kind: 'chosen' | 'local' | 'network';
}

function reachOf({ url }: Place, dataDir: string): Reach | CheckResult {
  const owner = lstatSync(dataDir).uid;
  if (isSocketBase(url)) return socketReach(placeOf(url).socketPath ?? '', url, owner);
  const { port, protocol } = new URL(url);
  const listening = listeningOn(Number(port || (protocol === 'https:' ? 443 : 80)));
  if (listening === undefined) {
    const found = 'this system does not tell on which addresses a process listens';
    return { state: 'unknown', lookedAt: url, found, remedy: 'Look with `ss -lnt` or `netstat -an`.' };
  }
  if (listening.length === 0) {
    const found = 'nothing listens there, although runtime.json says so';
    return { state: 'fail', lookedAt: url, found, remedy: 'Run `holdfast status`, and start it again.' };
  }
  const foreign = listening.find(({ uid }) => uid !== owner && uid !== 0);
  if (foreign) {
    const found = `a process of ${userOf(foreign.uid)} listens there, not one of ${userOf(owner)}: clients talk to it`;
    const remedy = 'End that process, and change what was sent to it: tokens and configs.';
    return { state: 'fail', lookedAt: url, found, remedy };
  }
  return { who: reachText(listening), kind: kindOf(listening) };
}

const kindOf = (listening: readonly Listening[]): Reach['kind'] =>
  listening.every(({ address }) => isLoopback(address)) ? 'local' : 'network';

function socketReach(path: string, url: string, owner: number): Reach | CheckResult {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found?.isSocket()) {
    const remedy = 'Run `holdfast status`, and start it again.';
    return {
      state: 'fail',
      lookedAt: url,
      found: 'there is no socket, although runtime.json says so',
      remedy,
    };
  }
  const unsafe = whoCouldReplace(dirname(path), owner);
  if (unsafe !== undefined) {
    const remedy = 'Put the socket into a folder that only its user and root may change, e.g. below /run.';
    return { state: 'fail', lookedAt: url, found: unsafe, remedy };
  }
  if (found.uid !== owner) {
    const text = `it belongs to ${userOf(found.uid)}, and the instance to ${userOf(owner)}`;
    return { state: 'fail', lookedAt: url, found: text, remedy: 'Remove it, and start the instance again.' };
  }
  return socketUsers(found);
}

function socketUsers({ mode, uid, gid }: Stats): Reach {
  if ((mode & OPEN_TO_ALL) !== 0) return { who: 'every user of this machine', kind: 'local' };
  const group = (mode & OPEN_TO_GROUP) === 0 ? '' : `, ${groupOf(gid)}`;
  const users = uid === 0 ? userOf(uid) : `${userOf(uid)}, ${userOf(0)}`;
  return { who: users + group, kind: 'chosen' };
}

/** What a caller without any credential gets. */
interface Demand {
  /** `token` of the surface, `key` or client `certificate` of the caller's own, `none`, or not known. */
  readonly kind: 'token' | 'key' | 'certificate' | 'none' | 'unknown';
  /** Whether reads with secrets in them are refused; undefined where there are none. */
  readonly keepsSecrets?: boolean;
  /** Why it is not known. */
  readonly reason?: string;
}

const ASKED = {
  token: 'the token',
  key: 'a key of their own',
  certificate: 'a client certificate (what it asks for behind that was not looked at)',
} as const;

/** A surface that fails, e.g. because it cannot read its own token, has not said what a caller without one gets. */
class Failing extends Error {}

async function demandOf({ url, tls }: Place, declared: Declared, signal: AbortSignal): Promise<Demand> {
  const http = new HttpClient({
    base: url,
    timeoutMs: 5_000,
    answerLimit: 64 * 1_048_576,
    excess: 'cut',
  });
  const status = async (path: string, method: 'GET' | 'POST' = 'GET') => {
    const answer = await http.call({ url: path, method, pin: tls?.fingerprint, signal });
    if (answer.status >= 500) throw new Failing(`it answered ${answer.status}`);
    return answer.status;
  };
  try {
    if ((await status(NOWHERE)) === 401) return { kind: 'token' };
    const { keyedPath, secretPath } = declared;
    if (keyedPath) {
      const asks = (await status(keyedPath.path, keyedPath.method)) === 401;
      return { kind: asks ? 'key' : 'none' };
    }
    if (secretPath === undefined) return { kind: 'none' };
    return { kind: 'none', keepsSecrets: (await status(secretPath)) === 401 };
  } catch (error) {
    if (error instanceof Failing) return { kind: 'unknown', reason: error.message };
    if (error instanceof HttpCallError) return { kind: 'unknown', reason: 'it did not answer' };
    throw error;
  } finally {
    await http.close();
  }
}

function judgeSurface(
  { url }: Place,
  { readOnly, name }: Declared,
  { who, kind }: Reach,
  { kind: demand, keepsSecrets, reason = '' }: Demand,
): CheckResult {
  const lookedAt = url;
  if (demand === 'unknown') {
    const found = `${who} can connect; whether it asks for a token or a key is not known, because ${reason}`;
    const remedy =
      'Correct what else `holdfast doctor security` and `holdfast status` report, and look again.';
    return { state: 'unknown', lookedAt, found, remedy };
  }
  if (demand !== 'none') {
    const asked = ASKED[demand];
    if (kind !== 'network') return { state: 'ok', lookedAt, found: `${who}, with ${asked}` };
    if (url.startsWith('https:')) return { state: 'ok', lookedAt, found: `${who}, with ${asked}, over TLS` };
    const found = `${who}, with ${asked}, which anybody on the way can read: it speaks no TLS`;
    const remedy = 'Give it a certificate, or bind it to 127.0.0.1 behind a proxy with TLS.';
    return { state: 'warn', lookedAt, found, remedy };
  }
  if (kind === 'network') {
    const found = `${who} ${readOnly ? 'reads' : 'reads and writes'} here without any credential`;
    return { state: 'fail', lookedAt, found, remedy: `Bind ${name} to 127.0.0.1, or: ${CLOSE}` };
  }
  if (kind === 'chosen') return { state: 'ok', lookedAt, found: `${who}, without a token` };
  if (readOnly)
    return { state: 'ok', lookedAt, found: `${who} reads, without a token; nothing can be changed here` };
  const secrets = keepsSecrets ? '; reads with secrets need the token' : '';
  const all = keepsSecrets === false ? 'reads, secrets included, and writes' : 'reads and writes';
  const found = `${who}, and whatever fetches URLs here, ${all} without a token${secrets}`;
  return { state: 'warn', lookedAt, found, remedy: CLOSE };
}
